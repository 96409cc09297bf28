//! Rendering held against Helm's own engine: the same charts, the same values, in one run on one machine.
//!
//! `cargo bench -p pintle-tests --bench render` writes `tests/RENDER.md`. The charts are generated and, where
//! they are present, the public ones of `conformance/charts` in the folder that `PINTLE_SHARED` names or in
//! `shared` beside the checkout. Helm answers through the program of `tools/helm-oracle` there, which is built
//! with Go. Without it our own times stand alone, and nothing is written.
#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::expect_used,
    reason = "a bench stops at the first surprise"
)]

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use pintle_chart::{
    Capabilities, Chart, Compiled, File, Files, Order, Release, RenderInput, Values,
    capabilities::KubeVersion, values,
};
use pintle_template::{NoCluster, Run};
use serde_json::{Value, json};

#[path = "../../host/cli/tests/template/generate.rs"]
#[allow(dead_code, reason = "of the command line's tests, of which a part is used here")]
mod generate;

/// Timed runs of each case, after one that is not counted; the quickest are compared.
const RUNS: usize = 5;
/// Generated charts.
const GENERATED: u64 = 40;
/// How often `tpl` is called in its own comparison.
const CALLS: usize = 400;

/// One call of `helm template`, in the words of the oracle.
struct Case {
    folder: PathBuf,
    json: Value,
}

/// The quickest run of one case, in microseconds: what else the machine does only ever adds.
#[derive(Clone, Copy, Default)]
struct Times {
    /// Load, values, render, sort.
    whole: f64,
    /// Values, render, sort, of a chart that was loaded and parsed before.
    parsed: f64,
}

/// Helm's engine, which answers a case a line.
struct Oracle {
    child: Child,
    ask: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

fn main() {
    if std::env::args().any(|argument| argument == "--peak") {
        return peak_of_all();
    }
    let charts = tempfile::tempdir().unwrap();
    let generated = generated_cases(charts.path());
    let public = shared().map(|folder| public_cases(&folder)).unwrap_or_default();
    if public.is_empty() {
        println!("skipped: the public charts are in conformance/charts of PINTLE_SHARED, which is absent");
    }
    let oracle = shared().and_then(|folder| build_oracle(&folder.join("tools/helm-oracle")));
    let mut report = String::new();
    for (name, cases) in [("generated charts", &generated), ("public charts", &public)] {
        if !cases.is_empty() {
            section(name, cases, oracle.as_deref(), &mut report);
        }
    }
    report.push_str(&tpl());
    println!("{report}");
    match oracle {
        Some(_) => {
            fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("RENDER.md"), document(&report)).unwrap()
        }
        None => println!("nothing is written: there is no Helm to compare with"),
    }
}

fn document(report: &str) -> String {
    format!(
        "# Rendering, compared with Helm\n\nWritten by `cargo bench -p pintle-tests --bench render`: Helm 4.3.1 as a \
         library and Pintle take turns over the same packed charts, in one run on one machine. The quickest of {RUNS} \
         runs after one that is not counted; ratios carry over to other machines, times do not. Peak memory is that \
         of a process that renders every case once. Whole: load the archive, settle values and check schemas, \
         render, split and sort. Parsed once: the same without the load.\n\n{report}"
    )
}

// === The cases ===

fn shared() -> Option<PathBuf> {
    let beside = || {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().ok()?;
        checkout.ancestors().map(|folder| folder.join("shared")).find(|shared| shared.is_dir())
    };
    std::env::var_os("PINTLE_SHARED").map(PathBuf::from).or_else(beside)
}

fn public_cases(shared: &Path) -> Vec<Case> {
    let folder = shared.join("conformance/charts");
    let Ok(text) = fs::read_to_string(folder.join("cases.jsonl")) else { return Vec::new() };
    let read = |line: &str| Case { folder: folder.clone(), json: serde_json::from_str(line).unwrap() };
    text.lines().map(read).collect()
}

fn generated_cases(folder: &Path) -> Vec<Case> {
    let case = |seed: u64| {
        fs::write(folder.join(format!("chart{seed}.tgz")), tgz(generate::packed(seed))).unwrap();
        let json = json!({"id": format!("generated-{seed}"), "chart": format!("chart{seed}.tgz"), "release": "rel",
            "namespace": "ns", "kubeVersion": "v1.36.0", "apiVersions": []});
        Case { folder: folder.to_owned(), json }
    };
    (0..GENERATED).map(case).collect()
}

fn tgz(files: impl Iterator<Item = (String, Vec<u8>)>) -> Vec<u8> {
    let mut builder =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best()));
    for (path, data) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, data.as_slice()).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

// === impl Case ===

impl Case {
    fn text(&self, key: &str) -> &str {
        self.json[key].as_str().unwrap_or_default()
    }

    fn load(&self) -> Compiled {
        let bytes = fs::read(self.folder.join(self.text("chart"))).unwrap();
        Compiled::new(Arc::new(Chart::from_archive(&bytes).unwrap())).unwrap()
    }

    fn values(&self) -> Values {
        let file = self.json["valuesFile"].as_str();
        let file = file.map(|file| fs::read_to_string(self.folder.join(file)).unwrap());
        let file = file.map(|text| values::parse(&text).unwrap()).unwrap_or_default();
        match self.json["values"].as_object() {
            Some(inline) if !inline.is_empty() => {
                let inline = values::parse(&Value::Object(inline.clone()).to_string()).unwrap();
                values::overlay([&file, &inline])
            }
            _ => file,
        }
    }

    /// Values, render, sort; gives the bytes of what came out.
    fn render(&self, chart: &Compiled) -> usize {
        let more = self.json["apiVersions"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let kube_version = KubeVersion::parse(self.text("kubeVersion")).unwrap();
        let release = Release {
            name: self.text("release").to_owned(),
            namespace: self.text("namespace").to_owned(),
            revision: 1,
            is_upgrade: self.json["isUpgrade"].as_bool().unwrap_or_default(),
        };
        let input = RenderInput {
            release: &release,
            values: &self.values(),
            capabilities: &Capabilities::assumed(kube_version).with(more),
            files: Files::All,
            order: Order::Install,
            run: Run::new(&NoCluster),
        };
        let printed = chart.print(&input).unwrap();
        printed.manifest.len() + printed.hooks.len() + printed.notes.len()
    }

    fn times(&self) -> Times {
        let kept = self.load();
        self.render(&kept);
        let whole = quickest(|| _ = std::hint::black_box(self.render(&self.load())));
        let parsed = quickest(|| _ = std::hint::black_box(self.render(&kept)));
        Times { whole, parsed }
    }
}

/// The quickest of the runs, in microseconds.
fn quickest(mut run: impl FnMut()) -> f64 {
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let begun = Instant::now();
        run();
        best = best.min(begun.elapsed());
    }
    best.as_secs_f64() * 1e6
}

// === impl Oracle ===

/// The program, built outside of the folder it comes from.
fn build_oracle(source: &Path) -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("PINTLE_HELM_ORACLE") {
        return Some(given.into());
    }
    let program = pintle_dev::cache::root().ok()?.join("helm-oracle");
    let built = Command::new("go").args(["build", "-o"]).arg(&program).arg(".").current_dir(source).status();
    let built = built.is_ok_and(|status| status.success());
    if !built {
        println!("skipped: what is compared with Helm, since Go cannot build tools/helm-oracle");
    }
    built.then_some(program)
}

impl Oracle {
    fn start(program: &Path, folder: &Path) -> Self {
        let mut child = Command::new(program)
            .args(["-bench", &RUNS.to_string(), "-C"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (ask, answers) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, ask, answers }
    }

    fn times(&mut self, case: &Case) -> Option<Times> {
        writeln!(self.ask.as_mut().unwrap(), "{}", case.json).unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        let best = |phase: &str| answer[phase]["min"].as_f64().unwrap();
        if !answer["error"].as_str().unwrap_or_default().is_empty() {
            return None;
        }
        let whole = best("total_us");
        Some(Times { whole, parsed: whole - best("load_us") })
    }

    /// Peak of its resident memory, in MiB; it ends after that.
    fn peak(mut self) -> f64 {
        let peak = peak_of(&self.child.id().to_string());
        drop(self.ask.take());
        drop(self.child.wait());
        peak
    }
}

/// Peak of a process's resident memory so far, in MiB.
fn peak_of(process: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0.0_f64) / 1024.0
}

/// `--peak`: renders every public case once, as a process of its own.
fn peak_of_all() {
    for case in shared().map(|folder| public_cases(&folder)).unwrap_or_default() {
        case.render(&case.load());
    }
    println!("{}", peak_of("self"));
}

// === The report ===

fn section(name: &str, cases: &[Case], oracle: Option<&Path>, report: &mut String) {
    let mut helm = oracle.map(|program| Oracle::start(program, &cases[0].folder));
    let mut rows = Vec::new();
    for case in cases {
        // Turn by turn: what else the machine does meets both.
        let theirs = helm.as_mut().and_then(|helm| helm.times(case));
        rows.push((case.text("id").to_owned(), case.times(), theirs));
    }
    let sum = |pick: fn(&Times) -> f64| {
        let both = rows.iter().filter_map(|(_, ours, theirs)| Some((pick(ours), pick(theirs.as_ref()?))));
        both.fold((0.0, 0.0), |(ours, theirs), (one, other)| (ours + one, theirs + other))
    };
    let compared = rows.iter().filter(|(_, _, theirs)| theirs.is_some()).count();
    writeln!(report, "## {} {name}\n", cases.len()).unwrap();
    if compared == 0 {
        let whole: f64 = rows.iter().map(|(_, ours, _)| ours.whole).sum();
        writeln!(report, "Whole: {:.1} ms in total; nothing to compare with.\n", whole / 1e3).unwrap();
        return;
    }
    writeln!(report, "| {compared} compared | Helm, ms | Pintle, ms | times faster |\n|---|---|---|---|")
        .unwrap();
    for (what, (ours, theirs)) in
        [("whole", sum(|times| times.whole)), ("parsed once", sum(|times| times.parsed))]
    {
        writeln!(report, "| {what} | {:.1} | {:.1} | {:.1} |", theirs / 1e3, ours / 1e3, theirs / ours)
            .unwrap();
    }
    if name.starts_with("public") {
        let theirs = helm.take().map(Oracle::peak).unwrap_or_default();
        writeln!(report, "| peak memory, MiB | {theirs:.0} | {:.0} | |", own_peak()).unwrap();
    }
    slowest(&rows, report);
    let _ended = helm.map(Oracle::peak);
}

/// The cases where we gain least.
fn slowest(rows: &[(String, Times, Option<Times>)], report: &mut String) {
    let ratio = |(name, ours, theirs): &(String, Times, Option<Times>)| {
        let theirs = (*theirs)?;
        Some((theirs.whole / ours.whole, theirs.parsed / ours.parsed, name.clone()))
    };
    let mut ratios: Vec<_> = rows.iter().filter_map(ratio).collect();
    ratios.sort_by(|one, other| one.0.total_cmp(&other.0));
    let middle = ratios[ratios.len() / 2].0;
    writeln!(report, "\nMedian of the cases, whole: {middle:.1} times. The cases where least is gained:\n")
        .unwrap();
    writeln!(report, "| case | whole | parsed once |\n|---|---|---|").unwrap();
    for (whole, parsed, name) in ratios.iter().take(8) {
        writeln!(report, "| {name} | {whole:.1} | {parsed:.1} |").unwrap();
    }
    report.push('\n');
}

fn own_peak() -> f64 {
    let output = Command::new(std::env::current_exe().unwrap()).arg("--peak").output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or_default()
}

/// `tpl` in a chart of few and of many templates.
fn tpl() -> String {
    let time = |templates: usize| {
        let mut files = BTreeMap::from([
            ("Chart.yaml".to_owned(), "apiVersion: v2\nname: c\nversion: 1.0.0\n".to_owned()),
            ("values.yaml".to_owned(), "text: '{{ .Release.Name }}-{{ include \"n1\" . }}'\n".to_owned()),
            (
                "templates/x.yaml".to_owned(),
                format!("{{{{ range until {CALLS} }}}}# {{{{ tpl $.Values.text $ }}}}\n{{{{ end }}}}"),
            ),
        ]);
        for number in 0..templates {
            let text = format!("{{{{ define \"n{number}\" }}}}of {number}{{{{ end }}}}");
            files.insert(format!("templates/_{number}.tpl"), text);
        }
        let files = files.iter().map(|(path, text)| File::new(path.as_str(), text.as_bytes())).collect();
        let chart = Compiled::new(Arc::new(Chart::from_folder(files).unwrap())).unwrap();
        let json = json!({"kubeVersion": "v1.36.0", "release": "rel", "namespace": "ns"});
        let case = Case { folder: PathBuf::new(), json };
        case.render(&chart);
        quickest(|| _ = std::hint::black_box(case.render(&chart))) / CALLS as f64
    };
    let (few, many) = (time(10), time(2_000));
    format!("## tpl\n\nOne call in a chart of 10 templates: {few:.1} us; of 2,000 templates: {many:.1} us.\n")
}
