#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

use std::collections::BTreeSet;

use crate::value::{Entries, map_value};
use crate::{NoCluster, Program, Run, Source};

fn render_in(template: &str, run: &Run<'_>) -> Result<String, String> {
    let source = Source { name: "t.yaml".into(), text: template.into() };
    let program = Program::parse(&[source]).map_err(|err| err.to_string())?;
    program.render("t.yaml", &map_value(Entries::new()), run).map_err(|err| err.to_string())
}

fn render(template: &str) -> Result<String, String> {
    let mut run = Run::new(&NoCluster);
    run.time = 1_700_000_000;
    render_in(template, &run)
}

fn check(cases: &[(&str, &str)]) {
    for (call, expected) in cases {
        let text = render(&format!("{{{{ {call} }}}}"));
        assert_eq!(text.as_deref(), Ok(*expected), "{call}");
    }
}

fn check_errors(cases: &[(&str, &str)]) {
    for (call, expected) in cases {
        let err = render(&format!("{{{{ {call} }}}}")).unwrap_err();
        assert!(err.ends_with(expected), "{call}: {err}");
    }
}

#[test]
fn strings_are_cut_and_wrapped_as_sprig_does() {
    check(&[
        (r#"abbrev 5 "hello world""#, "he..."),
        (r#"abbrevboth 5 10 "1234 5678 9123""#, "...5678..."),
        (r#"trunc -3 "hello""#, "llo"),
        (r#"substr 2 -1 "hello""#, "llo"),
        (r#"trimAll "$" "$5.00$""#, "5.00"),
        (r#"nospace " a b ""#, "ab"),
        (r#"initials "First Try""#, "FT"),
        (r#"wrapWith 5 "|" "Hello World""#, "Hello|World"),
        (r#"quote "a\"b" nil 1"#, r#""a\"b" "1""#),
        (r#"nindent 2 "a\nb""#, "\n  a\n  b"),
        (r#"replace "" "-" "ab""#, "-a-b-"),
        (r#"join "-" (list 1 nil "a")"#, "1-a"),
        (r#"splitn "/" 2 "a/b/c""#, "map[_0:a _1:b/c]"),
        (r#"title "it's a foo-bar_baz""#, "It'S A Foo-Bar_baz"),
    ]);
    check_errors(&[
        (r#"repeat -1 "a""#, "strings: negative Repeat count"),
        (r#"substr 3 2 "hello""#, "slice bounds out of range [3:2]"),
    ]);
}

#[test]
fn words_change_case_as_sprig_does() {
    check(&[
        (r#"camelcase "http_server""#, "HttpServer"),
        (r#"camelcase "_foo_bar_""#, "_FooBar_"),
        (r#"snakecase "HTTPServer""#, "http_server"),
        (r#"snakecase "HTTP20xOK""#, "http_20x_ok"),
        (r#"kebabcase "FirstName""#, "first-name"),
        (r#"swapcase "This Is""#, "tHIS iS"),
        (r#"upper "aß""#, "Aß"),
    ]);
}

#[test]
fn lists_and_maps_follow_go() {
    check(&[
        // The rest of nothing is a nil slice in Go.
        (r#"rest list | toJson"#, "null"),
        (r#"initial list"#, "[]"),
        (r#"toYaml (dict "a" (initial list))"#, "a: null"),
        (r#"rest (list 1) | toJson"#, "[]"),
        (r#"append (rest list) 1 | toJson"#, "[1]"),
        (r#"deepEqual (rest list) list"#, "false"),
        (r#"typeOf (rest list)"#, "[]interface {}"),
    ]);
    check_errors(&[("deepCopy nil", "reflect: call of reflect.Value.Type on zero Value")]);
    check(&[
        (r#"uniq (list 1 1 "1" 1.0)"#, "[1 1 1]"),
        (r#"has 1 (list 1.0)"#, "false"),
        (r#"without (list "a" "b") "a""#, "[b]"),
        (r#"chunk 2 (list 1 2 3)"#, "[[1 2] [3]]"),
        (r#"first (list) | toJson"#, "null"),
        (r#"dict "a" 1 "b""#, "map[a:1 b:]"),
        (r#"dig "a" "b" "none" (dict "a" (dict))"#, "none"),
        (r#"omit (dict "a" 1 "b" 2) "a""#, "map[b:2]"),
        (r#"get (dict) "x""#, ""),
    ]);
    check_errors(&[
        (r#"append "x" 1"#, "Cannot push on type string"),
        (r#"first nil"#, "invalid memory address or nil pointer dereference"),
        (r#"slice (list 1) 0 9"#, "slice index out of bounds"),
        (r#"dig "a" "b" nil"#, "interface {} is nil, not map[string]interface {}"),
    ]);
}

#[test]
fn merges_share_and_overwrite_as_mergo_does() {
    check(&[
        (r#"merge (dict "a" 0 "b" 1) (dict "a" 5 "b" 6 "c" nil)"#, "map[a:5 b:1]"),
        (r#"mergeOverwrite (dict "a" 1 "b" "y") (dict "a" 0 "b" nil)"#, "map[a:0 b:<nil>]"),
        (r#"mergeOverwrite (dict "a" (list 1)) (dict "a" (list))"#, "map[a:[]]"),
        (r#"mergeOverwrite (dict "a" (dict "b" 1)) (dict "a" (dict))"#, "map[a:map[b:1]]"),
    ]);
    let shared =
        r#"{{ $a := dict "x" (dict) }}{{ $b := merge (dict) $a }}{{ $_ := set $b.x "y" 1 }}{{ $a }}"#;
    assert_eq!(render(shared).as_deref(), Ok("map[x:map[y:1]]"));
}

#[test]
fn numbers_are_gos() {
    check(&[
        (r#"add 1 2.7 "3""#, "6"),
        ("div -7 2", "-3"),
        ("round 123.5555 2", "123.56"),
        ("addf 0.1 0.2", "0.3"),
        ("divf 1 3", "0.3333333333333333"),
        ("seq 6 -2 1", "6 4 2"),
        ("untilStep 10 0 -4", "[10 6 2]"),
        (r#"int "010""#, "8"),
        (r#"toDecimal "777""#, "511"),
        ("typeOf (add 1)", "int64"),
    ]);
    check_errors(&[
        ("div 1 0", "runtime error: integer divide by zero"),
        ("divf 1 0", "decimal division by 0"),
    ]);
}

#[test]
fn conversions_tell_their_errors_in_go_s_words() {
    check(&[
        (r#"toYaml (dict "a" "yes")"#, r#"a: "yes""#),
        (
            r#"fromYaml "- 1" | toJson"#,
            r#"{"Error":"error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}"}"#,
        ),
        (
            r#"(fromYaml "a: b: c").Error"#,
            "error converting YAML to JSON: yaml: mapping values are not allowed in this context",
        ),
        (r#"(fromJson "{").Error"#, "unexpected end of JSON input"),
        (r#"toJson "<a>""#, r#""\u003ca\u003e""#),
        (r#"toRawJson "<a>""#, r#""<a>""#),
        (r#"b64dec "aGVsbG8""#, "illegal base64 data at input byte 4"),
        (r#"toToml (dict "m" (dict "a" 1.0))"#, "[m]\n  a = 1.0\n"),
        (r#"toToml (dict "a" (list nil))"#, "toml: cannot encode array with nil element"),
        (r#"(fromToml "a = [1, 2.5]").a"#, "[1 2.5]"),
    ]);
}

#[test]
fn patterns_versions_paths_and_urls_are_gos() {
    check(&[
        (r#"regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W""#, "-W-xxW-"),
        (r#"regexSplit "z+" "pizza" -1"#, "[pi a]"),
        (r#"regexMatch "[" "x""#, "false"),
        (r#"semverCompare ">=1.2.0" "1.3.0-rc1""#, "false"),
        (r#"(semver "v1.2.3-rc.1").Prerelease"#, "rc.1"),
        (r#"clean "foo/../bar/.""#, "bar"),
        (r#"dir "/foo""#, "/"),
        (r#"(urlParse "http://u:p@h:80/a%20b?q#f").path"#, "/a b"),
        (r#"urlJoin (dict "scheme" "http" "host" "h" "path" "a b")"#, "http://h/a%20b"),
    ]);
    check_errors(&[
        (r#"regexFind "[" "x""#, "regexp: Compile(`[`): error parsing regexp: missing closing ]: `[`"),
        (
            r#"urlParse "http://h:x/""#,
            r#"unable to parse url: parse "http://h:x/": invalid port ":x" after host"#,
        ),
    ]);
}

#[test]
fn dates_are_written_and_read_by_layouts() {
    check(&[
        (r#"now"#, "2023-11-14 22:13:20 +0000 UTC"),
        (
            r#"dateInZone "Jan _2 3:04PM -0700 MST" (int64 1700000000) "America/New_York""#,
            "Nov 14 5:13PM -0500 EST",
        ),
        (r#"(toDate "2006-01-02" "2020-02-29").AddDate 1 0 0"#, "2021-03-01 00:00:00 +0000 UTC"),
        (r#"dateModify "-1.5h" (toDate "2006-01-02" "2020-01-01")"#, "2019-12-31 22:30:00 +0000 UTC"),
        (r#"durationRound "2h10m5s""#, "2h"),
        (r#"durationRoundTo "2h13m" "30m""#, "2h0m0s"),
        (r#"ago (toDate "2006-01-02" "2023-11-14")"#, "22h13m20s"),
    ]);
    check_errors(&[(
        r#"mustToDate "2006-01-02" "2020-02-30""#,
        r#"parsing time "2020-02-30": day out of range"#,
    )]);
}

#[test]
fn passwords_are_derived_as_sprig_derives_them() {
    check(&[
        (r#"derivePassword 1 "nope" "p" "u" "s""#, "cannot find password template nope"),
        (r#"derivePassword 1 "long" "password" "user" "example.com""#, "ZedaFaxcZaso9*"),
        (r#"decryptAES "k" (encryptAES "k" "plain")"#, "plain"),
        (r#"htpasswd "a:b" "x""#, "invalid username: a:b"),
        (r#"htpasswd "u" "p" | trunc 9"#, "u:$2a$10$"),
    ]);
}

/// Everything random in one template.
const RANDOM: &str = r#"{{ randAlphaNum 9 }} {{ randInt 0 1000000 }} {{ uuidv4 }} {{ shuffle "abcdefgh" }}
{{ bcrypt "x" }} {{ genPrivateKey "ecdsa" }} {{ genPrivateKey "ed25519" }} {{ encryptAES "k" "x" }}
{{ $ca := genCA "ca" 10 }}{{ $c := genSignedCert "c" (list "10.0.0.1") (list "a.b") 5 $ca }}{{ $c.Cert }}{{ $c.Key }}"#;

#[test]
fn one_seed_renders_the_same_bytes_and_another_other_ones() {
    let run = Run::new(&NoCluster);
    let first = render_in(RANDOM, &run).unwrap();
    assert_eq!(render_in(RANDOM, &run).unwrap(), first);
    let other = Run { seed: [1; 32], ..run };
    let second = render_in(RANDOM, &other).unwrap();
    let (first, second) = (first.lines().next().unwrap(), second.lines().next().unwrap());
    let mut pairs = first.split_whitespace().zip(second.split_whitespace());
    assert!(pairs.all(|(one, other)| one != other), "{first} {second}");
}

#[test]
fn a_signed_certificate_names_its_authority() {
    let text =
        render(r#"{{ $ca := genCA "my-ca" 10 }}{{ (genSignedCert "leaf" nil (list "a.b") 5 $ca).Cert }}"#)
            .unwrap();
    let body: String = text.lines().filter(|line| !line.starts_with("---")).collect();
    let der = super::encoding::decode_base64(body.as_bytes()).unwrap();
    for part in ["my-ca", "leaf", "a.b"] {
        assert!(der.windows(part.len()).any(|window| window == part.as_bytes()), "{part}");
    }
}

#[test]
fn limits_end_what_would_never_end() {
    check_errors(&[("until 100001", "items)"), (r#"repeat 1000000000 "abc""#, "output)")].map(
        |(call, name)| {
            let err = render(&format!("{{{{ {call} }}}}")).unwrap_err();
            assert!(err.contains(name.trim_end_matches(')')), "{err}");
            (call, "")
        },
    ));
    let err = render(r#"{{ regexMatch "((a{100}){100}){100}" "x" }}"#);
    assert!(err.is_err() || err.as_deref() == Ok("false"));
}

/// Names Helm 4.3 has and this library leaves to the engine.
const ENGINE: [&str; 5] = ["include", "tpl", "required", "fail", "lookup"];

#[test]
fn the_table_has_no_name_twice() {
    let table = super::table();
    let names: BTreeSet<&str> = table.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), super::count());
    assert!(ENGINE.iter().all(|name| !names.contains(name)));
}
