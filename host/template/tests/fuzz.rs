//! No text makes a parser, an executor, the YAML loader or emitter panic.
//!
//! Targets are plain functions of a text or value, so that another driver can run them too.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

use pintle_template::value::{Entries, Value, list_value, map_value};
use pintle_template::yaml::{self, json::Layout, json::to_json};
use pintle_template::{Dialect, Limits, NoCluster, Program, Run, Source};
use proptest::prelude::*;

/// Pieces templates are made of, so that random texts get past the lexer.
const PIECES: &[&str] = &[
    "{{",
    "}}",
    "{{-",
    "-}}",
    " ",
    "\n",
    "|",
    "(",
    ")",
    ",",
    ":=",
    "=",
    ".",
    ".a",
    ".b.c",
    "$",
    "$x",
    "$y.a",
    "if",
    "else",
    "end",
    "range",
    "with",
    "define",
    "block",
    "template",
    "break",
    "continue",
    "nil",
    "true",
    "false",
    "\"a\"",
    "\"%d\"",
    "`r`",
    "'c'",
    "0",
    "-1",
    "1.5",
    "1e9",
    "0x1F",
    "2i",
    "and",
    "or",
    "not",
    "eq",
    "lt",
    "len",
    "index",
    "slice",
    "print",
    "printf",
    "html",
    "call",
    "include",
    "tpl",
    "required",
    "/*",
    "*/",
    "text",
    "é",
    "\u{0}",
    "\\",
    "{{ if . }}",
    "{{ end }}",
    "{{ range . }}",
];

fn dot() -> Value {
    let list = list_value(vec![Value::from(1), Value::from("x"), Value::from(1.5), Value::from(())]);
    map_value(Entries::from([
        ("a".into(), list),
        ("b".into(), map_value(Entries::from([("c".into(), Value::from("deep"))]))),
    ]))
}

fn run(text: &str) {
    let source = Source { name: "t".into(), text: text.into() };
    let limits = Limits { steps: 20_000, output: 1 << 20, template_depth: 50, ..Limits::default() };
    let run = Run { limits, ..Run::new(&NoCluster) };
    for dialect in [Dialect::Helm, Dialect::Plain] {
        let result = Program::parse_in(dialect, std::slice::from_ref(&source))
            .and_then(|program| program.render("t", &dot(), &run));
        if let Err(err) = result {
            assert!(!err.to_string().is_empty());
            assert!(!format!("{err:#}").is_empty());
        }
    }
}

/// Pieces of Jinja templates.
const JINJA: &[&str] = &[
    "{{",
    "}}",
    "{%",
    "%}",
    "{%-",
    "-%}",
    "{#",
    "#}",
    " ",
    "\n",
    "|",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ".",
    "=",
    "==",
    "<",
    ">=",
    "+",
    "-",
    "*",
    "**",
    "/",
    "//",
    "%",
    "~",
    "a",
    "b",
    "c",
    "x",
    "b.c",
    "a[0]",
    "a[1:]",
    "[::2]",
    "if",
    "elif",
    "else",
    "endif",
    "for",
    "in",
    "recursive",
    "endfor",
    "set",
    "endset",
    "block",
    "endblock",
    "macro",
    "endmacro",
    "call",
    "endcall",
    "filter",
    "endfilter",
    "with",
    "endwith",
    "raw",
    "endraw",
    "include",
    "import",
    "from",
    "extends",
    "as",
    "do",
    "break",
    "continue",
    "is",
    "not",
    "and",
    "or",
    "none",
    "true",
    "1",
    "2.5",
    "\"s\"",
    "'t'",
    "loop",
    "loop.index",
    "caller()",
    "super()",
    "namespace(x=1)",
    "ns.x",
    "range(3)",
    "dict(",
    "defined",
    "upper",
    "default(1)",
    "join",
    "sort",
    "map",
    "tojson",
    "nindent(2)",
    "quote",
    "toYaml",
    "tpl",
    "include(\"t\")",
    "{{ a }}",
    "{% for x in a %}",
    "{% endfor %}",
    "{% if b %}",
    "{% endif %}",
    "{% macro m(x, y=1) %}",
    "{% endmacro %}",
    "{{ m(a) }}",
    "{% set ns = namespace(x=a) %}",
    "{% set ns.x = ns %}",
    "{{ [a, b, {\"k\": x}] }}",
    "é",
    "\u{0}",
    "\\",
];

fn jinja(text: &str) {
    let source = Source { name: "c/templates/t".into(), text: text.into() };
    let limits = Limits { steps: 20_000, output: 1 << 20, template_depth: 50, ..Limits::default() };
    let run = Run { limits, ..Run::new(&NoCluster) };
    let program = Program::parse(&[]).unwrap().with_jinja(std::slice::from_ref(&source));
    if let Err(err) = program.and_then(|program| program.render("c/templates/t", &dot(), &run)) {
        assert!(!err.to_string().is_empty(), "{text:?}");
        assert!(!format!("{err:#}").is_empty());
    }
}

/// Reading may fail; what was read can be written, and reading that gives the same value and text.
fn yaml_text(text: &str) {
    same_reading(text);
    let _ = yaml::load_json_all(text, "t");
    let _ = yaml::line_of(text, &["a", "b", "0"]);
    for value in yaml::load_all(text, "t").into_iter().flatten() {
        round_trip(&value);
    }
}

/// The quick reader and the port of libyaml read the same, or both nothing.
fn same_reading(text: &str) {
    let (quick, slow) = (yaml::load_json(text), yaml::load_json_slowly(text));
    match (&quick, &slow) {
        (Ok(quick), Ok(slow)) => assert_eq!(quick, slow, "{text:?}"),
        (Err(_), Err(_)) => {}
        _ => panic!("{text:?}: {quick:?} {slow:?}"),
    }
    let head = yaml::load_head(text);
    assert_eq!(head.is_ok(), slow.is_ok(), "{text:?}: {head:?}");
    if let (Ok(head), Ok(slow)) = (head, slow) {
        for path in ["/kind", "/apiVersion"] {
            let text_at =
                |value: &serde_json::Value| value.pointer(path).and_then(|at| at.as_str().map(str::to_owned));
            assert_eq!(text_at(&head), text_at(&slow), "{text:?}");
        }
        let annotations = "/metadata/annotations";
        assert_eq!(head.pointer(annotations), slow.pointer(annotations), "{text:?}");
    }
}

fn json(value: &Value) -> Option<String> {
    to_json(value, Layout::default()).ok()
}

fn round_trip(value: &Value) {
    let Ok(written) = yaml::emit(value) else {
        return;
    };
    same_reading(&written);
    if let Some(wanted) = json(value).filter(|_| !has_quirk(value)) {
        let back = yaml::load(&written, "t").unwrap_or_else(|err| panic!("{wanted}\n{written}\n{err}"));
        assert_eq!(json(&back).as_deref(), Some(wanted.as_str()), "{written:?}");
    }
    if let Ok(pretty) = yaml::emit_pretty(value) {
        same_reading(&pretty);
    }
}

/// What Go's writer itself does not read back: a key `<<` is a merge; line breaks of Unicode become
/// blanks on the way through JSON.
fn has_quirk(value: &Value) -> bool {
    let odd = |text: &str| {
        text == "<<" || text.contains(['\u{85}', '\u{feff}', '\u{2028}', '\u{2029}', '\u{fffd}'])
    };
    if let Some(map) = pintle_template::value::as_map(value) {
        return map.snapshot().iter().any(|(key, value)| odd(key) || has_quirk(value));
    }
    if let Some(list) = pintle_template::value::as_list(value) {
        return list.items().iter().any(has_quirk);
    }
    value.as_str().is_some_and(odd)
}

/// Values as charts have them, and worse.
fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[ -~]{0,12}",
        "[a-z0-9 :#'\"\\-\\[\\]{},&*!|>%@`\n\t]{0,40}",
        "\\PC{0,20}",
        "(y|yes|on|null|~|0x1F|0o17|1_000|1e3|\\.5|-0|2001-01-01|1:30|<<|=|\\.inf)",
        "[a-z]{60,100} [a-z ]{0,80}",
        any::<String>(),
    ];
    let leaf = prop_oneof![
        Just(Value::from(())),
        any::<bool>().prop_map(Value::from),
        // Numbers are floats when they are read, and minus zero is written without its sign, as in Go.
        (-(1_i64 << 53)..1 << 53).prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has no others", |float| float.is_finite())
            .prop_map(|f| Value::from(f + 0.0)),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        let entries = prop::collection::vec((text.clone(), inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(list_value),
            entries.prop_map(|entries| {
                let entries = entries.into_iter().map(|(key, value)| (key.into(), value));
                map_value(entries.collect::<Entries>())
            }),
        ]
    })
}

/// Pieces of YAML, so that random texts get past the scanner.
const YAML: &[&str] = &[
    "a",
    "b: ",
    "- ",
    ": ",
    "? ",
    "  ",
    "\n",
    "\n  ",
    "\n- ",
    "&x ",
    "*x",
    "<<: *x\n",
    "!!str ",
    "!!binary ",
    "!foo ",
    "|\n",
    "|2-\n",
    ">+\n",
    "\"q\\n\"",
    "'s'",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "# c\n",
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "0644",
    "1_000",
    "1e400",
    ".inf",
    "yes",
    "null",
    "~",
    "\t",
    "\r\n",
    "\u{feff}",
    "\u{85}",
    "é",
    "\\",
    "=",
    "2001-01-01",
];

/// Pieces of the YAML that the quick reader takes, so that it gets far.
const QUICK: &[&str] = &[
    "a",
    "kind",
    "metadata:",
    "annotations:",
    "b: ",
    "c:",
    "- ",
    "-",
    "\n",
    "\n",
    "\n  ",
    "\n    ",
    "\n\n",
    "\n- ",
    "\n  - ",
    "k: v",
    "k: \"q\"",
    "k: 'it''s'",
    "k: \"a\\n\\u00e9\\\\\"",
    "k: \"a\n  b\"",
    "k: 'a\n\n  b'",
    "k: |\n",
    "k: |-\n    x",
    "k: >-\n    x\n    y",
    "k: |2\n",
    "k: >+\n",
    "[]",
    "{}",
    "[a, b]",
    "{a: 1, \"b\":2}",
    "[1,\n2]",
    "{",
    "}",
    ",",
    "plain text",
    "more: text",
    " # c",
    "#",
    ": ",
    ":",
    "1",
    "-1.5",
    "true",
    "null",
    "~",
    "1e3",
    "0x1F",
    "2001-01-01",
    "...",
    "---",
    "  ",
    "    ",
    "é",
    "\"",
    "'",
    "\\",
    "x:y",
    "http://x",
    "<<: a",
];

/// One text after the other, with a blank after some.
fn joined(pieces: Vec<(&str, bool)>) -> String {
    pieces.into_iter().flat_map(|(piece, space)| [piece, if space { " " } else { "" }]).collect()
}

/// A second or two for each target; `PROPTEST_CASES` says otherwise.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(500);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*") {
        run(&text);
    }

    #[test]
    fn no_action_makes_the_parser_panic(text in "[ -~\n]{0,60}") {
        run(&format!("a {{{{ {text} }}}} b"));
    }

    #[test]
    fn no_arrangement_of_words_makes_the_engine_panic(
        pieces in proptest::collection::vec((proptest::sample::select(PIECES), any::<bool>()), 0..60)
    ) {
        run(&joined(pieces));
    }

    #[test]
    fn no_format_makes_printf_panic(format in "(%[-+# 0]{0,3}[0-9*]{0,3}(\\.[0-9*]{0,2})?(\\[[0-9]\\])?[a-zA-Z%é]|.){0,8}") {
        let quoted = format.replace('\\', "\\\\").replace('"', "\\\"");
        run(&format!("{{{{ printf \"{quoted}\" .a 1 \"x\" 2.5 nil .b true }}}}"));
    }

    #[test]
    fn no_text_makes_jinja_panic(text in "(\\{\\{|\\{%|%\\}|\\}\\}|\\PC){0,30}") {
        jinja(&text);
    }

    #[test]
    fn no_arrangement_of_words_makes_jinja_panic(
        pieces in proptest::collection::vec((proptest::sample::select(JINJA), any::<bool>()), 0..40)
    ) {
        jinja(&joined(pieces));
    }

    #[test]
    fn what_is_written_as_yaml_reads_back_as_the_same_value(value in value()) {
        round_trip(&value);
    }

    #[test]
    fn no_text_makes_the_yaml_loader_panic(text in "\\PC{0,40}|[ -~\n\t]{0,60}") {
        yaml_text(&text);
    }

    #[test]
    fn no_arrangement_of_pieces_makes_the_yaml_loader_panic(
        pieces in proptest::collection::vec((proptest::sample::select(YAML), any::<bool>()), 0..40)
    ) {
        yaml_text(&joined(pieces));
    }

    #[test]
    fn no_bytes_make_the_yaml_loader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        yaml_text(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn the_quick_reader_of_yaml_reads_what_the_other_reads(
        pieces in proptest::collection::vec((proptest::sample::select(QUICK), any::<bool>()), 0..30)
    ) {
        yaml_text(&joined(pieces));
    }
}
