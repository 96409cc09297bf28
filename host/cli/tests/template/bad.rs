//! Input that nobody means well: bytes that are no text, archives that point elsewhere, links, sizes, depths.

use std::{collections::BTreeMap, fs, os::unix::fs::symlink};

use super::{Bench, Case, case};

const METADATA: &[u8] = b"apiVersion: v2\nname: c\nversion: 1.0.0\n";
const TEMPLATE: &[u8] =
    b"a: {{ .Values.a | quote }}\nfiles: {{ range $p, $_ := .Files }}{{ $p }} {{ end }}\n";

/// Cases under their names; each has a folder of its own, with a chart `c` in it.
#[derive(Default)]
struct Bad {
    files: BTreeMap<String, Vec<u8>>,
    cases: Vec<(String, Case)>,
}

impl Bad {
    /// A chart with these files over a plain one.
    fn chart(&mut self, name: &str, files: &[(&str, &[u8])], flags: &[&str]) -> String {
        let mut put = |path: &str, data: &[u8]| {
            self.files.insert(format!("{name}/{path}"), data.to_vec());
        };
        put("c/Chart.yaml", METADATA);
        put("c/templates/x.yaml", TEMPLATE);
        for (path, data) in files {
            put(path, data);
        }
        self.call(name, &[&["rel", "c"], flags].concat());
        name.to_owned()
    }

    fn call(&mut self, name: &str, args: &[&str]) {
        self.cases.push((name.to_owned(), Case { folder: name.to_owned(), ..case(args) }));
    }

    /// These fail in words of our own, which say more than Helm's.
    fn in_own_words(&mut self, names: &[&str]) {
        for (name, case) in &mut self.cases {
            case.own_words |= names.contains(&name.as_str());
        }
    }

    /// An archive whose entries have these names as they are, without anybody's care.
    fn archive(&mut self, name: &str, entries: &[(&str, &[u8])]) {
        self.files.insert(format!("{name}/c.tgz"), gzip(&tar(entries)));
        self.call(name, &["rel", "c.tgz"]);
    }
}

fn tar(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, data) in entries {
        let mut header = tar::Header::new_gnu();
        let name = &mut header.as_old_mut().name;
        name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, *data).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn bytes_that_are_no_text_end_as_in_helm() {
    let mut bad = Bad::default();
    bad.chart("values", &[("c/values.yaml", b"a: \xff\n")], &[]);
    bad.chart("values-file", &[("f.yaml", b"a: 1\nb: \xff\n")], &["-f", "f.yaml"]);
    bad.chart("trailing", &[("f.yaml", b"a: \xc3(\n")], &["-f", "f.yaml"]);
    bad.chart("cut", &[("f.yaml", b"a: \xe4\xb8")], &["-f", "f.yaml"]);
    bad.chart("metadata", &[("c/Chart.yaml", b"apiVersion: v2\nname: c\nversion: 1.0.0\nicon: \xff\n")], &[]);
    bad.chart("quoted", &[("c/templates/x.yaml", b"a: {{ \"\xff\" | quote }}\n")], &[]);
    bad.chart("action", &[("c/templates/x.yaml", b"a: {{ \xff }}\n")], &[]);
    bad.chart("nul", &[("c/values.yaml", b"a: \"x\0y\"\n")], &[]);
    bad.chart("control", &[("c/values.yaml", b"a: x\x01y\n")], &[]);
    bad.chart("sixteen", &[("f.yaml", b"\xff\xfea\0:\0 \x001\0\n\0")], &["-f", "f.yaml"]);
    bad.chart("ignore", &[("c/.helmignore", b"\xff\n*.bak\n"), ("c/x.bak", b"x")], &[]);
    bad.chart("text-set-from-file", &[("f.txt", b"ok \xc3\xa9\n")], &["--set-file", "a=f.txt"]);
    // Text of sixteen bits is none to us.
    bad.in_own_words(&["sixteen"]);
    check(bad, 3);
}

#[test]
fn line_ends_and_marks_of_other_systems_are_read_as_by_helm() {
    let mut bad = Bad::default();
    let crlf = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap().replace('\n', "\r\n").into_bytes();
    let bom = |text: &[u8]| [b"\xef\xbb\xbf", text].concat();
    let values = b"a: one\nb: |\n  two\n  three\nc: >\n  x\n  y\n".as_slice();
    let template = b"{{- with .Values }}\na: {{ .a }}\nb: {{ .b | toJson }}\nc: {{ .c | toJson }}\n{{- end }}\n---\nkind: B\n".as_slice();
    let both = [("c/values.yaml", values), ("c/templates/x.yaml", template), ("c/Chart.yaml", METADATA)];
    for (name, change) in [("crlf", &crlf as &dyn Fn(&[u8]) -> Vec<u8>), ("bom", &bom)] {
        let files: Vec<(&str, Vec<u8>)> = both.iter().map(|(path, text)| (*path, change(text))).collect();
        let files: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (*path, text.as_slice())).collect();
        bad.chart(name, &files, &[]);
        bad.chart(&format!("{name}-f"), &[("f.yaml", &change(values))], &["-f", "f.yaml"]);
        bad.chart(
            &format!("{name}-ignore"),
            &[("c/.helmignore", &change(b"*.bak\n")), ("c/x.bak", b"x")],
            &[],
        );
        bad.chart(
            &format!("{name}-schema"),
            &[("c/values.schema.json", &change(b"{\"required\":\n[\"q\"]}"))],
            &[],
        );
        bad.chart(
            &format!("{name}-file"),
            &[
                ("c/t.txt", &change(b"one\ntwo\n")),
                (
                    "c/templates/x.yaml",
                    b"a: {{ .Files.Get \"t.txt\" | toJson }}\nb: {{ .Files.Lines \"t.txt\" | toJson }}\n",
                ),
            ],
            &[],
        );
    }
    bad.chart("cr", &[("c/values.yaml", b"a: 1\rb: 2\r")], &[]);
    check(bad, 8);
}

#[test]
fn archives_that_point_elsewhere_or_are_none_end_as_in_helm() {
    let mut bad = Bad::default();
    let metadata = ("c/Chart.yaml", METADATA);
    let template = ("c/templates/x.yaml", TEMPLATE);
    bad.archive("plain", &[metadata, template]);
    bad.archive("dots", &[("./c/Chart.yaml", METADATA), ("./c/templates/x.yaml", TEMPLATE)]);
    bad.archive("absolute-inside", &[metadata, ("c//etc/x", b"x"), template]);
    bad.archive("parent-inside", &[metadata, ("c/../../x", b"x")]);
    bad.archive("parent-back", &[metadata, ("c/a/../b", b"x"), template]);
    bad.archive("backslash", &[("c\\Chart.yaml", METADATA), ("c\\templates\\x.yaml", TEMPLATE)]);
    bad.archive("drive-inside", &[metadata, ("c/c:/x", b"x")]);
    bad.archive("flat", &[("Chart.yaml", METADATA)]);
    bad.archive("two-folders", &[metadata, ("d/templates/x.yaml", TEMPLATE)]);
    bad.archive("late", &[template, metadata]);
    bad.archive("twice", &[metadata, ("c/values.yaml", b"a: 1\n"), ("c/values.yaml", b"a: 2\n"), template]);
    bad.archive("nothing", &[]);
    bad.archive("without", &[template]);
    bad.archive(
        "inner",
        &[
            metadata,
            template,
            (
                "c/charts/d.tgz",
                &gzip(&tar(&[
                    ("d/Chart.yaml", b"name: d\nversion: 1.0.0\n"),
                    ("d/templates/y.yaml", b"d: 1\n"),
                ])),
            ),
        ],
    );
    bad.archive("inner-broken", &[metadata, template, ("c/charts/d.tgz", b"no archive")]);
    for (name, bytes) in [
        ("empty", Vec::new()),
        ("text", b"apiVersion: v2\nname: c\nversion: 1.0.0\n".to_vec()),
        ("no-gzip", tar(&[metadata])),
        ("no-tar", gzip(b"something else")),
        ("cut", gzip(&tar(&[metadata, template]))[..60].to_vec()),
    ] {
        bad.files.insert(format!("{name}/c.tgz"), bytes);
        bad.call(name, &["rel", "c.tgz"]);
    }
    let own = [
        "dots",
        "absolute-inside",
        "parent-inside",
        "drive-inside",
        "flat",
        "nothing",
        "without",
        "inner-broken",
        "empty",
        "text",
        "no-gzip",
        "no-tar",
        "cut",
    ];
    bad.in_own_words(&own);
    check(bad, 6);
}

#[test]
fn links_and_what_is_no_file_end_as_in_helm() {
    let mut bad = Bad::default();
    for name in ["out", "file", "dangling", "folder"] {
        bad.chart(name, &[], &[]);
    }
    bad.chart("chart-is-a-folder", &[("d/x", b"x")], &[]);
    bad.chart("templates-is-a-file", &[], &[]);
    bad.files.insert("outside/secret.txt".to_owned(), b"outside".to_vec());
    bad.files.insert("outside/more/y.txt".to_owned(), b"y".to_vec());
    bad.in_own_words(&["dangling", "chart-is-a-folder"]);
    let bench = bad.write();
    let at = |name: &str| bench.path(name);
    symlink(at("outside/secret.txt"), at("out/c/linked.txt")).unwrap();
    symlink("templates/x.yaml", at("file/c/copy.yaml")).unwrap();
    symlink("nowhere", at("dangling/c/x.txt")).unwrap();
    symlink("../../outside", at("folder/c/linked")).unwrap();
    fs::remove_file(at("chart-is-a-folder/c/Chart.yaml")).unwrap();
    fs::create_dir(at("chart-is-a-folder/c/Chart.yaml")).unwrap();
    fs::remove_dir_all(at("templates-is-a-file/c/templates")).unwrap();
    fs::write(at("templates-is-a-file/c/templates"), "x").unwrap();
    bench.compare_named(&bad.cases, 3);
}

#[test]
fn what_is_too_large_or_too_deep_ends_as_in_helm() {
    let mut bad = Bad::default();
    let lists = |depth: usize| format!("a: {}{}\n", "[".repeat(depth), "]".repeat(depth));
    bad.chart("large", &[("c/large.bin", &vec![0; 20_000_000])], &[]);
    bad.chart("deep", &[("f.yaml", lists(400).as_bytes())], &["-f", "f.yaml"]);
    let mut bomb = "x0: &x0 [a, a, a, a, a, a, a, a, a]\n".to_owned();
    for level in 1..9 {
        let inner = format!("*x{}, ", level - 1).repeat(9);
        bomb.push_str(&format!("x{level}: &x{level} [{inner}]\n"));
    }
    bad.chart("bomb", &[("f.yaml", bomb.as_bytes())], &["-f", "f.yaml"]);
    bad.chart("bomb-rendered", &[("c/templates/x.yaml", bomb.as_bytes())], &[]);
    let long = "x".repeat(1_000_000);
    bad.chart("long-line", &[("f.yaml", format!("a: {long}\n").as_bytes())], &["-f", "f.yaml"]);
    bad.chart("long-key", &[("f.yaml", format!("{long}: 1\n").as_bytes())], &["-f", "f.yaml"]);
    bad.chart(
        "many-keys",
        &[("f.yaml", (0..20_000).map(|n| format!("k{n}: {n}\n")).collect::<String>().as_bytes())],
        &["-f", "f.yaml"],
    );
    check(bad, 4);
}

/// What Helm takes and we do not, because it may come from anybody: each ends in a sentence that names the limit.
#[test]
fn limits_of_our_own_are_named() {
    let mut bad = Bad::default();
    let deep = format!("a: {}{}\n", "[".repeat(5_000), "]".repeat(5_000));
    bad.chart("depth", &[("f.yaml", deep.as_bytes())], &["-f", "f.yaml"]);
    bad.chart("bytes", &[("f.txt", b"\xff\xfe")], &["--set-file", "a=f.txt"]);
    bad.chart("size", &[("c/large.bin", &vec![0; 40_000_000])], &[]);
    bad.chart("loop", &[], &[]);
    bad.chart(
        "steps",
        &[("c/templates/x.yaml", b"a: {{ range until 90000 }}{{ range until 90000 }}{{ end }}{{ end }}\n")],
        &[],
    );
    for (name, path) in [("absolute", "/etc/x"), ("parent", "../x"), ("drive", "c:/x")] {
        bad.archive(name, &[("c/Chart.yaml", METADATA), (path, b"x")]);
    }
    let bench = bad.write();
    symlink("..", bench.path("loop/c/up")).unwrap();
    let says = [
        ("depth", "depth"),
        ("bytes", "f.txt is not UTF-8, which a value must be"),
        ("size", "maximum file size"),
        ("loop", "too many files or folders"),
        ("steps", "steps"),
        ("absolute", "\"/etc/x\" is not inside the chart's folder"),
        ("parent", "\"../x\" is not inside the chart's folder"),
        ("drive", "\"c:/x\" is not inside the chart's folder"),
    ];
    for (name, said) in says {
        let (_, case) = bad.cases.iter().find(|(known, _)| known == name).unwrap();
        let output = bench.run(std::path::Path::new(env!("CARGO_BIN_EXE_pintle")), &["template"], case);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {text}");
        assert!(text.starts_with("Error: ") && text.contains(said), "{name}: {text}");
    }
}

impl Bad {
    fn write(&self) -> Bench {
        let bench = Bench::new();
        bench.write(&self.files);
        bench
    }
}

#[track_caller]
fn check(bad: Bad, least: usize) {
    bad.write().compare_named(&bad.cases, least);
}
