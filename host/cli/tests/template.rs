//! `pintle template` held against the real `helm template`: bytes on standard output, exit code, and the
//! sentence on standard error. A fresh clone checks itself: the charts are those of `charts/`, and charts that are
//! generated here.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

#[path = "template/bad.rs"]
mod bad;
#[path = "../../dev/src/binaries.rs"]
#[allow(dead_code, unreachable_pub, reason = "a library's file, of which a part is used here")]
mod binaries;
#[path = "../../dev/src/cache.rs"]
#[allow(dead_code, unreachable_pub, reason = "a library's file, of which a part is used here")]
mod cache;
#[path = "template/generate.rs"]
mod generate;
#[path = "../../dev/src/helm.rs"]
#[allow(dead_code, unreachable_pub, reason = "a library's file, of which a part is used here")]
mod helm;
#[path = "template/rows.rs"]
mod rows;
#[path = "template/tree.rs"]
mod tree;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use tempfile::TempDir;

/// Generated charts; each feature is in half of them, and each pair of features in a quarter.
const CHARTS: u64 = 40;

/// Generated trees of charts; by hand thousands are tried.
const TREES: u64 = 24;

/// One call of both programs.
#[derive(Clone, Debug)]
struct Case {
    args: Vec<String>,
    /// Both write below this folder; it is compared and removed.
    output: Option<PathBuf>,
    stdin: &'static str,
    /// Where both run, below the folder of the test.
    folder: String,
    /// Both fail, each in words of its own.
    own_words: bool,
    /// Whether Helm may draw by lot: in which order it takes charts that no requirement names, and so whose
    /// `global` or `crds/` comes first.
    by_lot: bool,
}

/// The program to compare with; nothing where it cannot be had, which is said once.
fn real() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let found = helm::ensure(&mut |line| eprintln!("{line}"));
        found.inspect_err(|error| eprintln!("skipped: what is compared with helm: {error}")).ok()
    };
    FOUND.get_or_init(find).as_deref()
}

/// Charts and files for one test.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, files: &BTreeMap<String, Vec<u8>>) {
        for (name, data) in files {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, data).unwrap();
        }
    }

    fn run(&self, program: &Path, leading: &[&str], case: &Case) -> Output {
        let mut command = Command::new("/bin/sh");
        // Helm has no limit of its own for a chart that makes it build without end.
        command.args(["-c", "ulimit -t 10; exec \"$0\" \"$@\""]).arg(program);
        let home = self.path("home");
        command.args(leading).args(&case.args).current_dir(self.path(&case.folder));
        command.env_clear().env("HOME", &home).env("PATH", "/nonexistent").env("TZ", "UTC");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), case.stdin.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// What differs; nothing where both do the same.
    fn difference(&self, real: &Path, case: &Case, rendered: &AtomicUsize) -> Option<String> {
        if case.by_lot && self.is_endless(case) {
            return None;
        }
        let theirs = self.run(real, &["template"], case);
        rendered.fetch_add(usize::from(theirs.status.success()), Ordering::Relaxed);
        let their_files = case.output.as_deref().map(take_files);
        let ours = self.run(Path::new(env!("CARGO_BIN_EXE_pintle")), &["template"], case);
        let our_files = case.output.as_deref().map(take_files);
        let named = format!("{:?}", case.args.join(" "));
        if theirs.status.code() != ours.status.code() {
            let said = String::from_utf8_lossy(&ours.stderr).into_owned();
            return Some(format!(
                "{named}: helm ends with {:?}, we with {:?}: {said}\n{}",
                theirs.status.code(),
                ours.status.code(),
                String::from_utf8_lossy(&theirs.stderr)
            ));
        }
        if theirs.stdout != ours.stdout {
            return Some(format!("{named}: {}", first_difference(&ours.stdout, &theirs.stdout)));
        }
        if their_files != our_files {
            return Some(format!("{named}: other files are written:\n{our_files:?}\n{their_files:?}"));
        }
        let (ours, theirs) = (said(&ours.stderr), said(&theirs.stderr));
        (!case.own_words && !theirs.is_empty() && !ours.starts_with(&theirs))
            .then(|| format!("{named}: we say\n{ours}\nhelm says\n{theirs}"))
    }

    /// Whether Helm gives what we give at another try, or something else at each.
    fn is_drawn(&self, real: &Path, case: &Case) -> bool {
        let ours = self.run(Path::new(env!("CARGO_BIN_EXE_pintle")), &["template"], case);
        let theirs: Vec<_> = (0..24).map(|_| self.run(real, &["template"], case).stdout).collect();
        let is_same = theirs.windows(2).all(|pair| pair[0] == pair[1]);
        if !is_same && !theirs.contains(&ours.stdout) {
            println!("helm gives something else at each try of {:?} in {}", case.args.join(" "), case.folder);
        }
        !is_same
    }

    /// Whether mappings contain themselves, which Helm follows until no memory is left.
    fn is_endless(&self, case: &Case) -> bool {
        let ours = self.run(Path::new(env!("CARGO_BIN_EXE_pintle")), &["template"], case);
        String::from_utf8_lossy(&ours.stderr).contains("does import-values put a mapping into itself")
    }

    /// Compares all, of which at least `least` must be charts that Helm renders.
    #[track_caller]
    fn compare(&self, cases: &[Case], least: usize) {
        let named: Vec<_> = cases.iter().map(|case| (String::new(), case.clone())).collect();
        self.compare_named(&named, least);
    }

    /// As [`Bench::compare`], with a word in front of what differs.
    #[track_caller]
    fn compare_named(&self, cases: &[(String, Case)], least: usize) {
        let Some(real) = real() else {
            println!("skipped: {} cases, for want of helm {}", cases.len(), helm::VERSION);
            return;
        };
        let (next, rendered) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let differences = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some((name, case)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let found = self.difference(real, case, &rendered);
                        let found = found.filter(|_| !case.by_lot || !self.is_drawn(real, case));
                        differences.lock().unwrap().extend(found.map(|text| format!("{name} {text}")));
                    }
                });
            }
        });
        let differences = differences.into_inner().unwrap();
        let rendered = rendered.into_inner();
        println!("{} of {} calls are equal; {rendered} render", cases.len() - differences.len(), cases.len());
        let shown: Vec<_> = differences.iter().take(40).cloned().collect();
        assert!(
            differences.is_empty(),
            "{} of {} calls differ:\n{}",
            differences.len(),
            cases.len(),
            shown.join("\n")
        );
        assert!(rendered >= least, "{rendered} of {} calls render: the others only fail alike", cases.len());
    }
}

fn case(args: &[&str]) -> Case {
    let args = args.iter().map(|&arg| arg.to_owned()).collect();
    Case { args, output: None, stdin: "", folder: String::new(), own_words: false, by_lot: false }
}

/// All files below a folder, which is removed.
fn take_files(folder: &Path) -> BTreeMap<String, String> {
    fn collect(folder: &Path, top: &Path, found: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, top, found);
                continue;
            }
            let name = path.strip_prefix(top).unwrap().display().to_string();
            found.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
    let mut found = BTreeMap::new();
    collect(folder, folder, &mut found);
    let _ = fs::remove_dir_all(folder);
    found
}

/// What is said of a failure, without what Helm logs besides and its hint at its own flags.
fn said(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr).into_owned();
    let from = text.find("Error: ").map_or("", |at| &text[at..]);
    let text = from.split("\n\nUse --debug flag").next().unwrap_or_default().trim_end();
    if !text.starts_with("Error: values don't meet the specifications") {
        return text.to_owned();
    }
    // Helm goes through the properties of a schema in another order each time.
    let mut lines: Vec<&str> = text.split("\n\n").next().unwrap_or_default().lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

fn first_difference(ours: &[u8], theirs: &[u8]) -> String {
    let (ours, theirs) = (String::from_utf8_lossy(ours), String::from_utf8_lossy(theirs));
    let (mut our, mut their) = (ours.split('\n'), theirs.split('\n'));
    for line in 1.. {
        match (our.next(), their.next()) {
            (None, None) => break,
            (one, other) if one == other => {}
            (one, other) => {
                let alike = |one: &str, other: &str| {
                    one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count()
                };
                let from = one.zip(other).map_or(0, |(one, other)| alike(one, other)).saturating_sub(120);
                let shown = |line: Option<&str>| {
                    line.map(|line| line.chars().skip(from).take(400).collect::<String>())
                };
                return format!("line {line}: ours {:?}, helm's {:?}", shown(one), shown(other));
            }
        }
    }
    "equal".to_owned()
}

#[test]
fn the_charts_of_this_project_render_as_helm_renders_them() {
    let bench = Bench::new();
    let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts");
    let mut cases = Vec::new();
    for entry in fs::read_dir(charts).unwrap() {
        let path = entry.unwrap().path();
        // Helm knows nothing of Jinja.
        let mut templates = fs::read_dir(path.join("templates")).unwrap();
        if templates.any(|file| file.unwrap().path().extension().is_some_and(|ending| ending == "j2")) {
            continue;
        }
        let chart = path.display().to_string();
        for flags in
            [&[][..], &["--include-crds", "--is-upgrade"], &["--kube-version", "1.31.4", "-n", "else"]]
        {
            cases.push(case(&[&["rel", chart.as_str()], flags].concat()));
        }
    }
    // The recipe needs what only a cluster knows, so it fails, in the same words.
    let half = cases.len() / 2;
    bench.compare(&cases, half);
}

#[test]
fn generated_charts_render_as_helm_renders_them_flag_by_flag() {
    let bench = Bench::new();
    let mut cases = Vec::new();
    for seed in 0..CHARTS {
        bench.write(&generate::chart(seed));
        let chart = format!("chart{seed}");
        cases.push(case(&["rel", &chart]));
        for flags in generate::flags(seed) {
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            cases.push(case(&[&["rel", chart.as_str()], flags.as_slice()].concat()));
        }
    }
    let most = cases.len() * 4 / 5;
    bench.compare(&cases, most);
}

/// By hand, `PINTLE_TREES` trees from seed `PINTLE_SEED` on, which stay where they are with `PINTLE_KEEP`.
#[test]
fn generated_trees_of_charts_render_as_helm_renders_them() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
    let rounds = number("PINTLE_TREES").unwrap_or(TREES);
    let mut bench = Bench::new();
    if std::env::var_os("PINTLE_KEEP").is_some() {
        bench.folder.disable_cleanup(true);
        println!("the trees stay in {}", bench.folder.path().display());
    }
    let mut cases = Vec::new();
    let seed: u64 = number("PINTLE_SEED").unwrap_or(1);
    for seed in seed * 1_000_000..seed * 1_000_000 + rounds {
        let folder = format!("tree{seed}");
        let tree = tree::tree(seed);
        let files = tree.files.into_iter().map(|(path, data)| (format!("{folder}/{path}"), data));
        bench.write(&files.collect());
        let args = ["rel".to_owned(), "c".to_owned()].into_iter().chain(tree.flags).collect();
        cases.push((folder.clone(), Case { args, folder, by_lot: true, ..case(&[]) }));
    }
    bench.compare_named(&cases, cases.len() / 2);
}

#[test]
fn folders_of_output_are_written_as_helm_writes_them() {
    let bench = Bench::new();
    let mut cases = Vec::new();
    for seed in 0..8 {
        bench.write(&generate::chart(seed));
        for (number, flags) in
            [&[][..], &["--include-crds", "--release-name"], &["--no-hooks"], &["--skip-tests"]]
                .iter()
                .enumerate()
        {
            let output = format!("out-{seed}-{number}");
            let chart = format!("chart{seed}");
            let mut case =
                case(&[&["rel", chart.as_str(), "--output-dir", output.as_str()], *flags].concat());
            case.output = Some(bench.path(&output));
            cases.push(case);
        }
    }
    let all = cases.len();
    bench.compare(&cases, all);
}

#[test]
fn archives_and_standard_input_are_read_as_helm_reads_them() {
    let bench = Bench::new();
    bench.write(&BTreeMap::from([("packed.tgz".to_owned(), tgz(generate::packed(3)))]));
    let stdin = Case { stdin: "replicas: 7\nname: from-stdin\n", ..case(&["rel", "packed.tgz", "-f", "-"]) };
    let files = ["Chart.yaml", "crds/z.yaml", "crds/b/x.yaml", "crds/a.yaml"].map(|path| {
        let text = format!("apiVersion: v2\nname: odd\nversion: 1.0.0\n# {path}\n");
        (format!("odd/{path}"), text.into_bytes())
    });
    bench.write(&BTreeMap::from([("odd.tgz".to_owned(), tgz(files.into_iter()))]));
    bench.compare(&[case(&["rel", "odd.tgz", "--include-crds"])], 1);
    bench.compare(&[case(&["rel", "packed.tgz"]), case(&["packed.tgz", "--include-crds"]), stdin], 3);
}

fn tgz(files: impl Iterator<Item = (String, Vec<u8>)>) -> Vec<u8> {
    let mut builder =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (path, data) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, data.as_slice()).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

#[test]
fn wrong_calls_and_broken_charts_end_in_helms_words() {
    let bench = Bench::new();
    bench.write(&generate::chart(0));
    bench.write(&generate::broken());
    let mut cases: Vec<Case> = generate::broken_names().iter().map(|name| case(&["rel", name])).collect();
    for args in [
        &["rel", "./nope"][..],
        &["rel", "nope"],
        &["rel", "a/b"],
        &["Rel_x", "chart0"],
        &["rel", "chart0", "more"],
        &["rel", "chart0", "--set", "a"],
        &["rel", "chart0", "--set", "a[x]=1"],
        &["rel", "chart0", "--set-json", "a={"],
        &["rel", "chart0", "--set-json", "{\"a\": "],
        &["rel", "chart0", "--set-file", "a=nope"],
        &["rel", "chart0", "-f", "nope.yaml"],
        &["rel", "chart0", "-f", "bad-values.yaml"],
        &["rel", "chart0", "--kube-version", "x"],
        &["rel", "chart0", "-s", "templates/none.yaml"],
        &["rel", "chart0", "--name-template", "x"],
        &["--name-template", "{{ nope }}", "chart0"],
        &["rel", "bad-values.yaml"],
    ] {
        cases.push(case(args));
    }
    bench.compare(&cases, 0);
}

#[test]
fn usage_and_failures_have_codes_of_their_own() {
    let bench = Bench::new();
    bench.write(&generate::chart(0));
    let code = |args: &[&str]| {
        let output = bench.run(Path::new(env!("CARGO_BIN_EXE_pintle")), &["template"], &case(args));
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(code(&["rel", "chart0"]).0, Some(0));
    assert_eq!(code(&["rel", "nope"]).0, Some(1));
    assert_eq!(code(&[]).0, Some(2));
    assert_eq!(code(&["rel", "chart0", "--nonsense"]).0, Some(2));
    for flag in ["--dependency-update", "--verify", "--enable-dns", "--post-renderer=x"] {
        let (code, text) = code(&["rel", "chart0", flag]);
        let name = flag.split('=').next().unwrap();
        assert_eq!(code, Some(1));
        assert!(text.starts_with(&format!("Error: {name} is not served: ")), "{text}");
    }
}

#[test]
fn a_failing_template_is_shown_with_its_place() {
    let bench = Bench::new();
    bench.write(&generate::broken());
    let output =
        bench.run(Path::new(env!("CARGO_BIN_EXE_pintle")), &["template"], &case(&["rel", "broken-fail"]));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.starts_with("Error: execution error at (broken-fail/templates/x.yaml:2:5): no"), "{text}");
    assert!(text.contains("--> broken-fail/templates/x.yaml:2:6") && text.contains("^^^^"), "{text}");
}

#[test]
fn what_is_wrong_with_a_value_is_shown_with_its_file_and_line() {
    let bench = Bench::new();
    let files = [
        ("c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        ("c/values.yaml", "# defaults\nport: many\n"),
        ("c/templates/x.yaml", "a: {{ .Values.image.tag.major }}\n"),
        ("s/Chart.yaml", "apiVersion: v2\nname: s\nversion: 1.0.0\n"),
        ("s/values.yaml", "\n\nport: many\n"),
        (
            "s/values.schema.json",
            "{\"properties\": {\"port\": {\"type\": \"integer\"}, \"image\": {\"type\": \"string\"}}}",
        ),
        ("my.yaml", "image:\n  tag: v1\n"),
        ("broken.yaml", "a: 1\nb: [\n"),
    ];
    bench.write(&files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).into());
    let says = |args: &[&str]| {
        let output = bench.run(Path::new(env!("CARGO_BIN_EXE_pintle")), &["template"], &case(args));
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let text = says(&["rel", "c", "-f", "my.yaml"]);
    assert!(
        text.contains("= my.yaml:2 sets .Values.image.tag; nothing sets .Values.image.tag.major"),
        "{text}"
    );
    let text = says(&["rel", "c", "-f", "my.yaml", "--set", "image.tag=v2"]);
    assert!(text.contains("= a --set flag sets .Values.image.tag"), "{text}");
    let text = says(&["rel", "s", "-f", "my.yaml"]);
    assert!(text.starts_with("Error: values don't meet the specifications of the schema(s)"), "{text}");
    assert!(text.contains("my.yaml:1: image: got object, want string"), "{text}");
    assert!(text.contains("values.yaml:3: port: got string, want integer"), "{text}");
    let text = says(&["rel", "c", "-f", "broken.yaml"]);
    assert!(
        text.starts_with("Error: failed to parse broken.yaml: ") && text.contains("\n\nbroken.yaml:"),
        "{text}"
    );
}
