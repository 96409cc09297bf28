//! Generated programs, rendered by Helm's own library and by us.
//!
//! `PINTLE_ORACLE` names the program that answers for Helm (JSON lines of `{n, t, d}` to its standard input
//! with `-micro`); without it the test says so. `PINTLE_ROUNDS` is the number of programs, `PINTLE_SEED`
//! where they start. The objects of the oracle's chart (`.Release`, `.Files`) are left out: this crate has
//! none.

#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::panic,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "tests stop at the first surprise"
)]

use std::io::Write as _;
use std::process::{Command, Stdio};

use pintle_template::value::{Entries, MapType, map_value, typed_map};
use pintle_template::{NoCluster, Program, Run, Source, yaml};
use serde_json::json;

const VALUES: &str = r#"
a: 1
f: 1.5
big: 1000000
neg: -4
s: hello
empty: ""
t: true
fl: false
nul: null
list: [a, b, c]
nlist: [3, 1, 2]
mixed: [1, a, null, true, {k: v}, [x]]
el: []
em: {}
m: {z: 1, b: 2, a: {x: {k: deep}}}
lom: [{name: n1, v: 1}, {name: n2, v: 2}]
html: "<a href=\"x\">T&'J</a>"
long: "a long text with many words that goes on and on until it must be folded at eighty columns or so"
lines: "one\n  two\n\nthree\n"
"#;

const TERMS: &[&str] = &[
    ".Values.a",
    ".Values.f",
    ".Values.big",
    ".Values.neg",
    ".Values.s",
    ".Values.empty",
    ".Values.t",
    ".Values.fl",
    ".Values.nul",
    ".Values.list",
    ".Values.nlist",
    ".Values.mixed",
    ".Values.el",
    ".Values.em",
    ".Values.m",
    ".Values.m.a",
    ".Values.m.a.x.k",
    ".Values.lom",
    ".Values.html",
    ".Values.long",
    ".Values.lines",
    ".Values.missing",
    ".Values.missing.deep",
    ".Values.s.foo",
    "1",
    "0",
    "-3",
    "1.5",
    "1e6",
    "0x1F",
    "\"x\"",
    "\"\"",
    "\"a b-c_d\"",
    "\"1.2.3\"",
    "\"%d|%v\"",
    "\"3\"",
    "`a.b.c`",
    "true",
    "false",
    "nil",
    "\"2h30m\"",
    "\"name\"",
    "\"k\"",
    "(list 1 2 3)",
    "(dict \"a\" 1 \"b\" (list 1))",
    "(int 5)",
    "(int64 7)",
    "(list)",
    "(dict)",
    "(list \"b\" \"a\" \"b\")",
];

const UNARY: &[&str] = &[
    "quote",
    "squote",
    "toString",
    "toYaml",
    "toJson",
    "toPrettyJson",
    "toRawJson",
    "toToml",
    "int",
    "int64",
    "float64",
    "kindOf",
    "typeOf",
    "len",
    "not",
    "empty",
    "title",
    "untitle",
    "upper",
    "lower",
    "trim",
    "nospace",
    "initials",
    "snakecase",
    "camelcase",
    "kebabcase",
    "swapcase",
    "b64enc",
    "b32enc",
    "sha1sum",
    "sha256sum",
    "adler32sum",
    "first",
    "last",
    "rest",
    "initial",
    "reverse",
    "uniq",
    "compact",
    "sortAlpha",
    "keys",
    "values",
    "toStrings",
    "floor",
    "ceil",
    "add1",
    "html",
    "js",
    "urlquery",
    "print",
    "println",
    "fromYaml",
    "fromJson",
    "semver",
    "base",
    "dir",
    "ext",
    "clean",
    "isAbs",
    "toDecimal",
    "atoi",
    "durationSeconds",
    "deepCopy",
    "toYamlPretty",
    "fromYamlArray",
    "regexQuoteMeta",
    "default 1",
    "default \"d\"",
    "nindent 2",
    "indent 4",
    "trunc 3",
    "trunc -2",
    "join \"-\"",
    "splitList \"b\"",
    "contains \"a\"",
    "hasPrefix \"h\"",
    "trimSuffix \"o\"",
    "replace \"l\" \"L\"",
    "repeat 2",
    "has 1",
    "has \"a\"",
    "round 1",
    "printf \"%v\"",
    "printf \"%d\"",
    "printf \"%s|%q\" \"x\"",
    "printf \"%5.2f\"",
    "printf \"%T\"",
    "printf \"%#v\"",
    "printf \"%08.3f\"",
    "kindIs \"string\"",
    "ternary 1 2",
    "coalesce nil \"\"",
    "cat \"x\"",
    "wrap 10",
    "abbrev 5",
    "substr 1 3",
    "plural \"one\" \"many\"",
    "semverCompare \">=1.2\"",
    "regexMatch \"^h.*o$\"",
    "regexFind \"[a-c]+\"",
    "regexReplaceAll \"([a-z])\" \"x\"",
    "splitn \"-\" 2",
];

const BINARY: &[&str] = &[
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "and",
    "or",
    "add",
    "sub",
    "mul",
    "div",
    "mod",
    "max",
    "min",
    "addf",
    "index",
    "get",
    "hasKey",
    "pick",
    "omit",
    "append",
    "prepend",
    "without",
    "concat",
    "merge",
    "mergeOverwrite",
    "dict",
    "list",
    "tuple",
    "set",
    "unset",
    "deepEqual",
    "pluck",
    "chunk",
    "until",
    "untilStep 1",
    "seq",
    "slice",
    "dig \"a\" \"d\"",
    "trimAll",
    "split",
    "print",
    "printf",
    "coalesce",
    "any",
    "all",
    "typeIs",
    "date",
    "round",
    "substr 0",
    "has",
    "join",
    "cat",
    "ternary true",
];

/// Numbers from a seed: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).unwrap()
    }

    fn of<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }

    fn term(&mut self, depth: usize) -> String {
        if depth == 0 || self.below(3) > 0 {
            return self.of(TERMS).to_owned();
        }
        format!("({})", self.pipe(depth - 1))
    }

    fn pipe(&mut self, depth: usize) -> String {
        let mut text = match self.below(4) {
            0 => format!("{} {} {}", self.of(BINARY), self.term(depth), self.term(depth)),
            1 => format!("{} {}", self.of(UNARY), self.term(depth)),
            _ => self.term(depth),
        };
        while self.below(2) == 0 {
            text = format!("{text} | {}", self.of(UNARY));
        }
        text
    }

    fn body(&mut self, depth: usize) -> String {
        let (open, close) = ([" {{ ", "{{- ", "{{ "][self.below(3)], [" }}", " -}}", " }}\n"][self.below(3)]);
        let tag = |text: &str| format!("{open}{text}{close}");
        if depth == 0 {
            return tag(&self.pipe(2));
        }
        let (pipe, one, two) = (self.pipe(1), self.body(depth - 1), self.body(depth - 1));
        match self.below(6) {
            0 => tag(&format!("if {pipe}")) + &one + &tag("else") + &two + &tag("end"),
            1 => {
                tag(&format!("range $i, $x := {pipe}"))
                    + &tag("$i")
                    + &tag("$x")
                    + &one
                    + &tag("else")
                    + &two
                    + &tag("end")
            }
            2 => tag(&format!("with {pipe}")) + &tag(".") + &tag("end") + &two,
            3 => tag(&format!("$v := {pipe}")) + &tag("$v") + &tag("$v | toYaml"),
            _ => one + " text " + &two,
        }
    }
}

/// The text, or `None` where it fails.
fn ours(text: &str, values: &str) -> Option<String> {
    let values = yaml::load(values, "values").ok()?;
    let values = pintle_template::value::as_map(&values)?.snapshot().into_iter().collect::<Entries>();
    let dot = map_value(Entries::from([("Values".into(), typed_map(values, MapType::Values))]));
    let source = Source { name: "c/templates/t.yaml".into(), text: text.into() };
    let rendered = Program::parse(&[source])
        .and_then(|program| program.render("c/templates/t.yaml", &dot, &Run::new(&NoCluster)));
    rendered.ok()
}

/// Programs with the values they see.
type Case = (String, String);

fn helms(oracle: &str, programs: &[Case]) -> Vec<Option<String>> {
    let mut child = Command::new(oracle)
        .arg("-micro")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|err| panic!("{oracle}: {err}"));
    let mut stdin = child.stdin.take().unwrap();
    let lines: String = programs
        .iter()
        .map(|(text, values)| format!("{}\n", json!({"n": "", "t": text, "d": values})))
        .collect();
    let writer = std::thread::spawn(move || drop(stdin.write_all(lines.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let answers = String::from_utf8_lossy(&output.stdout).into_owned();
    let answer = |line: &str| {
        let answer: serde_json::Value = serde_json::from_str(line).unwrap();
        answer["ok"]
            .as_bool()
            .unwrap_or_default()
            .then(|| answer["out"].as_str().unwrap_or_default().to_owned())
    };
    answers.lines().map(answer).collect()
}

/// Disagreements that are known, with their reasons in the README.
fn is_known(text: &str) -> bool {
    // Addresses and times of the machine that renders, and Go's random order of keys.
    ["%p", "date", "keys", "values "].iter().any(|part| text.contains(part))
}

/// Runs all of them in Helm and here, and stops at what differs.
#[track_caller]
fn compare(programs: &[Case]) {
    let Ok(oracle) = std::env::var("PINTLE_ORACLE") else {
        eprintln!("skipped: PINTLE_ORACLE does not name helm-oracle");
        return;
    };
    let answers = helms(&oracle, programs);
    assert_eq!(answers.len(), programs.len());
    let differ = programs.iter().zip(&answers).filter_map(|((text, values), helm)| {
        let ours = ours(text, values);
        let values = if values == VALUES { "" } else { values };
        (ours != *helm).then(|| format!("{text} {values}\n  helm {helm:?}\n  ours {ours:?}"))
    });
    let differ: Vec<String> = differ.collect();
    let shown: Vec<&str> = differ.iter().take(20).map(String::as_str).collect();
    assert!(differ.is_empty(), "{} of {} differ:\n{}", differ.len(), programs.len(), shown.join("\n"));
}

fn rounds() -> (usize, Random) {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (rounds, seed) = (number("PINTLE_ROUNDS", 2_000), number("PINTLE_SEED", 1));
    (usize::try_from(rounds).unwrap(), Random(0x9e37_79b9_7f4a_7c15 ^ (seed * 0x1234_5679)))
}

#[test]
fn generated_programs_print_or_fail_as_in_helm() {
    let (count, mut random) = rounds();
    let programs = (0..count).map(|_| random.body(2)).filter(|text| !is_known(text));
    compare(&programs.map(|text| (text, VALUES.to_owned())).collect::<Vec<_>>());
}

/// Pieces of YAML: scalars that look like something else, marks, white space.
const PLAIN: &[&str] = &[
    "a",
    "b c",
    "1",
    "-1",
    "1.5",
    "0x1F",
    "0o17",
    "017",
    "1_000",
    "1e3",
    "1e400",
    ".5",
    "+1",
    "1.",
    "0b11",
    "08",
    "12:30",
    "12:30:45",
    "2001-01-01",
    "2001-01-01T00:00:00Z",
    "true",
    "True",
    "yes",
    "no",
    "on",
    "off",
    "y",
    "n",
    "~",
    "null",
    "Null",
    ".inf",
    ".nan",
    "-.inf",
    "-",
    "--",
    "?",
    ":",
    "a:",
    "a:b",
    ":a",
    "a#b",
    "a #b",
    "'q'",
    "'it''s'",
    "\"d\"",
    "\"\\t\\u00e9\\x41\\n\"",
    "\"a\\\n  b\"",
    "'a\n  b'",
    "é",
    "世界",
    "*x",
    "&x v",
    "!!str 1",
    "!!int 2",
    "!!float 1",
    "!foo z",
    "!!binary aGk=",
    "!!null x",
    "!!bool yes",
    "!!set {a}",
    "|",
    ">",
    "|-\n   t\n   u",
    ">-\n   t\n   u\n\n   v",
    "|+\n   t\n\n",
    "|2\n    t",
    "[a, 1, ]",
    "[]",
    "{}",
    "{a: 1, b}",
    "{a: [x, {y: z}]}",
    "[a: 1]",
    "{a: b: c}",
    "[",
    "{",
    "]",
    "}",
    ",",
    "@a",
    "`a",
    "%a",
    "a\tb",
    "= ",
    "<<",
    "\u{feff}a",
    "\u{85}",
    "\u{a0}",
    "\u{2028}x",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "-9223372036854775809",
    "0.1e-7",
    "1e21",
    "123456789012345678901234567890",
    "-0",
    "-0.0",
    "0",
    "00",
    "1__0",
    "_1",
    "1_",
    "0x",
    "0b",
    "0xg",
    "1e",
    "e1",
    ".",
    "..",
    "...",
    "---",
    "--- a",
    "# c",
    "",
];

const KEYS: &[&str] = &[
    "a",
    "b",
    "k",
    "\"q\"",
    "'s'",
    "1",
    "1.5",
    "true",
    "yes",
    "null",
    "~",
    "? k",
    "<<",
    "a b",
    "é",
    "-",
    "x:y",
    "[k]",
    "{k: v}",
    "!!str t",
    "&x k",
    "*x",
    "0x10",
    "2001-01-01",
    "",
    "on",
    "\"a\\nb\"",
    "1e3",
    "a.b",
    "a/b",
];

impl Random {
    fn yaml(&mut self, indent: usize, depth: usize) -> String {
        let pad = " ".repeat(indent);
        let mut out = String::new();
        let is_list = self.below(3) == 0;
        for _ in 0..=self.below(3) {
            let head = if is_list { "-".to_owned() } else { format!("{}:", self.of(KEYS)) };
            let anchor = ["", "", "", "", "", " &x", " !!map", " # c"][self.below(8)];
            match self.below(if depth == 0 { 3 } else { 5 }) {
                0..=2 => out.push_str(&format!("{pad}{head} {}\n", self.of(PLAIN))),
                3 => {
                    let deeper = indent + [0, 1, 2, 2, 2, 4][self.below(6)];
                    out.push_str(&format!("{pad}{head}{anchor}\n{}", self.yaml(deeper, depth - 1)));
                }
                _ => {
                    let inner = self.yaml(indent + 2, depth - 1);
                    out.push_str(&format!("{pad}{head} {}", inner.trim_start()));
                }
            }
            if self.below(12) == 0 {
                out.push_str(
                    ["\n", "\r\n", "  \n", "# c\n", "---\n", "...\n", "\t\n", "%YAML 1.1\n"][self.below(8)],
                );
            }
        }
        out
    }
}

/// What is read of a text as a map and as a list; that it is an error, and not in which words.
const READ: &str = r#"{{ $m := fromYaml .Values.x }}{{ if and (hasKey $m "Error") (eq (len $m) 1) }}ERROR{{ else }}{{ toJson $m }}{{ end }}|{{ $l := fromYamlArray .Values.x }}{{ range $l }}{{ if and (kindIs "string" .) (regexMatch "error|unmarshal|yaml:" .) }}ERROR{{ else }}{{ toJson . }}{{ end }},{{ end }}"#;

#[test]
fn generated_yaml_is_read_as_helm_reads_it() {
    let (count, mut random) = rounds();
    // An infinity under a key that comes again is no error in Go: the later value has replaced it.
    let texts = (0..count)
        .map(|_| random.yaml(0, 2))
        .filter(|text| ![".inf", ".nan"].iter().any(|odd| text.contains(odd)));
    let cases = texts.map(|text| (READ.to_owned(), json!({ "x": text }).to_string()));
    compare(&cases.collect::<Vec<_>>());
}

impl Random {
    fn text(&mut self) -> String {
        let parts = (0..=self.below(4)).map(|_| match self.below(4) {
            0 => [
                " ", "\n", "\t", "  ", "\n\n", "\r", "\r\n", ": ", " #", "- ", "\u{7f}", "\u{85}",
                "\u{2028}", "🙂", "\u{0}",
            ][self.below(15)]
            .to_owned(),
            1 => "word ".repeat(self.below(20)),
            _ => self.of(PLAIN).to_owned(),
        });
        parts.collect()
    }

    fn json(&mut self, depth: usize) -> serde_json::Value {
        const FLOATS: &[f64] =
            &[0.0, 1.0, -1.5, 1e6, 1e20, 1e21, 1e22, 1e-6, 1e-7, 0.1, 123_456_789.123, 5e-324, 1.797e308];
        match self.below(if depth == 0 { 5 } else { 8 }) {
            0 => json!(null),
            1 => json!(self.below(2) == 0),
            2 => json!(FLOATS[self.below(FLOATS.len())]),
            3 | 4 => json!(self.text()),
            5 => (0..self.below(4)).map(|_| self.json(depth - 1)).collect(),
            _ => {
                let entries = (0..self.below(5)).map(|_| (self.text(), self.json(depth - 1)));
                serde_json::Value::Object(entries.collect())
            }
        }
    }
}

#[test]
fn generated_values_are_written_as_helm_writes_them() {
    const WRITE: &str = "{{ toYaml .Values.v }}\n=\n{{ toYamlPretty .Values.v }}\n=\n{{ toJson .Values.v }}\n=\n{{ toPrettyJson .Values.v }}\n=\n{{ .Values.v }}\n=\n{{ printf \"%#v\" .Values.v }}";
    let (count, mut random) = rounds();
    let values = (0..count).map(|_| random.json(3));
    let cases = values.map(|value| (WRITE.to_owned(), json!({ "v": [value] }).to_string()));
    compare(&cases.collect::<Vec<_>>());
}
