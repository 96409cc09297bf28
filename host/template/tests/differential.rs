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
fn ours(text: &str) -> Option<String> {
    let values = yaml::load(VALUES, "values").unwrap();
    let values = pintle_template::value::as_map(&values)?.snapshot().into_iter().collect::<Entries>();
    let dot = map_value(Entries::from([("Values".into(), typed_map(values, MapType::Values))]));
    let source = Source { name: "c/templates/t.yaml".into(), text: text.into() };
    let rendered = Program::parse(&[source])
        .and_then(|program| program.render("c/templates/t.yaml", &dot, &Run::new(&NoCluster)));
    rendered.ok()
}

fn helms(oracle: &str, programs: &[String]) -> Vec<Option<String>> {
    let mut child = Command::new(oracle)
        .arg("-micro")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|err| panic!("{oracle}: {err}"));
    let mut stdin = child.stdin.take().unwrap();
    let lines: String =
        programs.iter().map(|text| format!("{}\n", json!({"n": "", "t": text, "d": VALUES}))).collect();
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

#[test]
fn generated_programs_print_or_fail_as_in_helm() {
    let Ok(oracle) = std::env::var("PINTLE_ORACLE") else {
        eprintln!("skipped: PINTLE_ORACLE does not name helm-oracle");
        return;
    };
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (rounds, seed) = (number("PINTLE_ROUNDS", 2_000), number("PINTLE_SEED", 1));
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (seed * 0x1234_5679));
    let count = usize::try_from(rounds).unwrap();
    let programs: Vec<String> = (0..count).map(|_| random.body(2)).filter(|text| !is_known(text)).collect();
    let answers = helms(&oracle, &programs);
    assert_eq!(answers.len(), programs.len());
    let differ = programs.iter().zip(&answers).filter_map(|(text, helm)| {
        let ours = ours(text);
        (ours != *helm).then(|| format!("{text}\n  helm {helm:?}\n  ours {ours:?}"))
    });
    let differ: Vec<String> = differ.collect();
    let shown: Vec<&str> = differ.iter().take(20).map(String::as_str).collect();
    assert!(differ.is_empty(), "{} of {} differ:\n{}", differ.len(), programs.len(), shown.join("\n"));
}
