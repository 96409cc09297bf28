//! Programs of several files: which definition wins, what runs depend on, what callers can ask.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

use pintle_template::value::{Entries, Value, as_map, list_value, map_value};
use pintle_template::{Dialect, ErrorKind, Lookup, LookupError, NoCluster, Program, Run, Source};

fn sources(files: &[(&str, &str)]) -> Vec<Source> {
    let source = |(name, text): &(&str, &str)| Source { name: (*name).into(), text: (*text).into() };
    files.iter().map(source).collect()
}

fn program(files: &[(&str, &str)]) -> Program {
    Program::parse(&sources(files)).unwrap()
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    map_value(entries.map(|(key, value)| (key.into(), value)).into_iter().collect::<Entries>())
}

fn render(program: &Program, name: &str, dot: &Value) -> String {
    program.render(name, dot, &Run::new(&NoCluster)).unwrap()
}

#[test]
fn of_two_definitions_the_later_file_s_wins_unless_it_is_blank() {
    let child = r#"{{ define "name" }}child{{ end }}{{ define "kept" }}kept{{ end }}"#;
    let parent = r#"{{ define "name" }}parent{{ end }}{{ define "kept" }} {{/* none */}} {{ end }}"#;
    let user = r#"{{ include "name" . }} {{ include "kept" . }}"#;
    let program = program(&[("child", child), ("user", user), ("parent", parent)]);
    assert_eq!(render(&program, "user", &map([])), "parent kept");
}

#[test]
fn a_file_is_a_template_under_its_own_name() {
    let program = program(&[("c/a.yaml", "A{{ . }}"), ("c/b.yaml", r#"{{ include "c/a.yaml" 1 }}"#)]);
    assert!(program.contains("c/a.yaml") && !program.contains("a.yaml"));
    assert_eq!(render(&program, "c/b.yaml", &map([])), "A1");
}

#[test]
fn the_first_mistake_stops_parsing_and_a_linter_gets_all() {
    let files = sources(&[("a", "{{ end }}"), ("b", "fine"), ("c", "\n{{ nosuch }}")]);
    let err = Program::parse(&files).unwrap_err();
    assert_eq!(err.to_string(), "parse error at (a:1): unexpected {{end}}");
    let (program, errors) = Program::parse_all(Dialect::Helm, &files);
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts[1..], [r#"parse error at (c:2): function "nosuch" not defined"#]);
    assert_eq!(render(&program, "b", &map([])), "fine");
}

#[test]
fn an_unknown_name_is_an_error_without_a_place() {
    let err = program(&[]).render("x", &map([]), &Run::new(&NoCluster)).unwrap_err();
    assert_eq!(err.kind(), ErrorKind::NoTemplate);
    assert!(err.place().is_none());
    assert_eq!(format!("{err:#}"), err.to_string());
}

#[test]
fn the_plain_dialect_is_go_s_own() {
    let text = "{{ .missing }} {{ .missing.deeper }} {{ .known }} {{ print (index . `x`) }}";
    let files = sources(&[("t", text)]);
    let program = Program::parse_in(Dialect::Plain, &files).unwrap();
    assert_eq!(render(&program, "t", &map([("known", 1.into())])), "<no value> <no value> 1 <nil>");
    let helm = sources(&[("t", r#"{{ include "x" . }}"#)]);
    let err = Program::parse_in(Dialect::Plain, &helm).unwrap_err();
    assert_eq!(err.to_string(), r#"parse error at (t:1): function "include" not defined"#);
}

#[test]
fn strict_runs_refuse_missing_keys() {
    let program = program(&[("t", "{{ .port }} {{ .prot }}")]);
    let run = Run { strict: true, ..Run::new(&NoCluster) };
    let err = program.render("t", &map([("port", 1.into())]), &run).unwrap_err();
    assert_eq!(err.message(), r#"map has no entry for key "prot""#);
    assert_eq!(err.hints(), ["did you mean port?"]);
}

#[test]
fn a_lint_run_goes_on_after_required_and_fail() {
    let program = program(&[("t", r#"[{{ required "need" .x }}][{{ fail "no" }}]"#)]);
    let run = Run { lint: true, ..Run::new(&NoCluster) };
    assert_eq!(program.render("t", &map([]), &run).unwrap(), "[][]");
}

#[test]
fn an_error_tells_which_values_it_read() {
    let cases = [
        ("{{ .Values.image.pul.policy }}", &["image", "pul", "policy"][..]),
        ("{{ with 1 }}{{ $.Values.image.pul.policy }}{{ end }}", &["image", "pul", "policy"]),
        ("{{ eq 1 .Values.port }}", &["port"]),
        (r#"{{ required "need" .Values.image.tag }}"#, &["image", "tag"]),
        ("{{ len 3 }}", &[]),
    ];
    let image = map([("pull", map([("policy", "Always".into())]))]);
    let dot = map([("Values", map([("image", image), ("port", Value::from(80.0))]))]);
    for (text, path) in cases {
        let program = program(&[("t", text)]);
        let err = program.render("t", &dot, &Run::new(&NoCluster)).unwrap_err();
        let read: Vec<&str> = err.values_path().iter().map(|key| &**key).collect();
        assert_eq!(read, path, "{text}: {err}");
    }
}

#[test]
fn a_caller_adds_help_to_the_drawing_and_not_to_the_line() {
    let program = program(&[("t", "{{ .a.b }}")]);
    let err = program.render("t", &map([]), &Run::new(&NoCluster)).unwrap_err();
    let line = err.to_string();
    let err = err.hint("values.yaml:3 sets it to nothing");
    assert_eq!(err.to_string(), line);
    assert!(format!("{err:#}").ends_with("= values.yaml:3 sets it to nothing"));
}

/// A cluster with one object, and one kind nobody has fetched.
struct Cluster;

impl Lookup for Cluster {
    fn lookup(&self, version: &str, kind: &str, ns: &str, name: &str) -> Result<Value, LookupError> {
        match (kind, name) {
            ("Secret", "known") => Ok(map([("data", map([("at", format!("{version} {ns}").into())]))])),
            ("Node", _) => Err(LookupError::NotYet("v1 Node".to_owned())),
            ("Pod", _) => Err(LookupError::Denied("v1 Pod".to_owned())),
            _ => Ok(map([])),
        }
    }
}

#[test]
fn lookup_asks_the_caller_s_cluster() {
    let text =
        r#"{{ (lookup "v1" "Secret" "ns" "known").data.at }}{{ (lookup "v1" "Secret" "ns" "x").data }}"#;
    let program = program(&[
        ("t", text),
        ("n", r#"{{ lookup "v1" "Node" "" "" }}"#),
        ("p", r#"{{ lookup "v1" "Pod" "" "" }}"#),
    ]);
    let run = Run::new(&Cluster);
    assert_eq!(program.render("t", &map([]), &run).unwrap(), "v1 ns");
    let err = program.render("n", &map([]), &run).unwrap_err();
    assert_eq!(err.kind(), ErrorKind::NotYet);
    let err = program.render("p", &map([]), &run).unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Function);
    assert!(err.to_string().ends_with("error calling lookup: not allowed to read v1 Pod"), "{err}");
}

#[test]
fn renders_run_side_by_side_and_tpl_texts_are_parsed_once() {
    let program = program(&[("t", r#"{{ range 50 }}{{ tpl "{{ . }}," . }}{{ end }}"#)]);
    let expected: String = (0..50).map(|i| format!("{i},")).collect();
    std::thread::scope(|scope| {
        let render = || assert_eq!(render(&program, "t", &map([])), expected);
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(render)).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn the_dot_is_the_caller_s_own_map() {
    let program = program(&[("t", "{{ .n }}")]);
    let dot = map([("n", 1.into())]);
    assert_eq!(render(&program, "t", &dot), "1");
    as_map(&dot).unwrap().insert("n", 2.into());
    assert_eq!(render(&program, "t", &dot), "2");
}

#[test]
fn text_that_is_not_utf8_is_rendered_with_replacements() {
    let program = program(&[("t", r#"{{ printf "%s" "\xff" }}|{{ len "\xff\xfe" }}"#)]);
    assert_eq!(render(&program, "t", &map([])), "\u{fffd}|2");
}

#[test]
fn text_that_is_printed_is_the_text_a_variable_holds() {
    let named = "{{ define \"n\" }}{{ .a }}\n  <no value>{{ .none }}ü{{ end }}";
    for pipeline in [
        r#"include "n" ."#,
        r#"include "n" . | nindent 4"#,
        r#"include "n" . | trim | indent 2 | quote"#,
        r#"include "n" . | replace "a" "bb" | trunc 5 | trimSuffix "\n""#,
        r#".list | toYaml | nindent 2"#,
        r#"toYaml . | trimPrefix "a: " | upper"#,
        r#"tpl "{{ .a }} {{ include \"n\" . }}" . | squote"#,
        r#"printf "%s-%v" (include "n" . | trim) .list | b64enc | trunc 9"#,
        r#"print .a (.list | toJson) | replace "" "-""#,
        r#"quote .a nil 1.0 true | cat "x" nil"#,
        r#"toString .list | trunc -3"#,
        r#"mustToYaml .list | fromYamlArray | toYaml"#,
    ] {
        let text = format!("{named}{{{{ {pipeline} }}}}@@{{{{ $v := {pipeline} }}}}{{{{ $v }}}}");
        let program = program(&[("t", &text)]);
        let dot = map([("a", "a\nb".into()), ("list", list_value(vec![1.5.into(), "x: y".into()]))]);
        let out = render(&program, "t", &dot);
        let (printed, held) = out.split_once("@@").unwrap();
        assert_eq!(printed, held, "{pipeline}");
        assert!(!printed.is_empty() && !printed.contains("<no value>"), "{pipeline}: {printed}");
    }
}
