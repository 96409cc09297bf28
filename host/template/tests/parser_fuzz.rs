//! No text makes the lexer, the parser or the executor panic.

use pintle_template::value::{Entries, Value, list_value, map_value};
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

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
        let mut text = String::new();
        for (piece, space) in pieces {
            text.push_str(piece);
            text.push_str(if space { " " } else { "" });
        }
        run(&text);
    }

    #[test]
    fn no_format_makes_printf_panic(format in "(%[-+# 0]{0,3}[0-9*]{0,3}(\\.[0-9*]{0,2})?(\\[[0-9]\\])?[a-zA-Z%é]|.){0,8}") {
        let quoted = format.replace('\\', "\\\\").replace('"', "\\\"");
        run(&format!("{{{{ printf \"{quoted}\" .a 1 \"x\" 2.5 nil .b true }}}}"));
    }
}
