#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests stop at the first surprise")]

use proptest::prelude::*;

use super::json::{Layout, to_json};
use super::*;
use crate::value::{as_map, list_value, map_value};

fn as_json(text: &str) -> String {
    let value = load(text, "values.yaml").unwrap();
    to_json(&value, Layout::default()).unwrap()
}

#[test]
fn yaml_1_1_is_read_as_kubernetes_reads_it() {
    let cases = [
        ("", "null"),
        (
            "a: yes\nb: \"yes\"\nc: 0755\nd: 1_000\ne: 1e3",
            r#"{"a":true,"b":"yes","c":493,"d":1000,"e":1000}"#,
        ),
        ("y: 1\n1: 2\n1.5: 3\n1e6: 4", r#"{"1":2,"1.5":3,"1e+06":4,"true":1}"#),
        ("a: 1\na: 2", r#"{"a":2}"#),
        ("b: &b {x: 1, z: 2}\nc: {<<: *b, z: 3}", r#"{"b":{"x":1,"z":2},"c":{"x":1,"z":3}}"#),
        ("a: {z: 3, <<: {z: 4}}", r#"{"a":{"z":4}}"#),
        ("a: -0\nb: -0.0", r#"{"a":0,"b":-0}"#),
        ("a: {z: 3, <<: [{z: 4}, {z: 5, w: 6}]}", r#"{"a":{"w":6,"z":4}}"#),
        ("a: !!str 1\nb: !!binary aGk=\nc: !foo x\nd: !!float 3", r#"{"a":"1","b":"hi","c":"x","d":3}"#),
        ("a: 9223372036854775808", r#"{"a":9223372036854776000}"#),
        ("a: 2001-01-01\nb: 12:30:45", r#"{"a":"2001-01-01","b":"12:30:45"}"#),
        ("a: |\n  x\n   y\nb: >-\n  x\n  y", r#"{"a":"x\n y\n","b":"x y"}"#),
        ("--- a\n--- b", r#""a""#),
        ("a: |\n  x", r#"{"a":"x"}"#),
        ("a: |+\n  x\n  ", r#"{"a":"x\n"}"#),
        ("a: |\n  x\n  ", r#"{"a":"x\n"}"#),
        ("a: |\n  x\n    ", r#"{"a":"x\n  "}"#),
        ("a: >+\n\n  ", r#"{"a":"\n"}"#),
        ("a: |-\n  x", r#"{"a":"x"}"#),
    ];
    for (text, json) in cases {
        assert_eq!(as_json(text), json, "{text}");
    }
}

#[test]
fn json_keeps_integers_and_values_do_not() {
    let text = "a: 9007199254740993\nb: 18446744073709551615\nc: 1.0";
    let json = load_json(text).unwrap();
    assert_eq!(json.to_string(), r#"{"a":9007199254740993,"b":18446744073709551615,"c":1.0}"#);
    let value = load(text, "").unwrap();
    assert!(!as_map(&value).unwrap().get("a").unwrap().is_integer());
}

#[test]
fn errors_name_the_place_and_speak_as_go_does() {
    let cases = [
        (
            "a: b: c",
            "v.yaml:1:5: mapping values are not allowed in this context",
            "yaml: mapping values are not allowed in this context",
        ),
        (
            "a: 1\nb: [",
            "v.yaml:3:1: did not find expected node content",
            "yaml: line 2: did not find expected node content",
        ),
        ("a: *x", "v.yaml:1:4: unknown anchor 'x' referenced", "yaml: unknown anchor 'x' referenced"),
        (
            "a: &x [*x]",
            "v.yaml:1:8: anchor 'x' value contains itself",
            "yaml: anchor 'x' value contains itself",
        ),
        ("a: .inf", "v.yaml:1:4: json: unsupported value: +Inf", "json: unsupported value: +Inf"),
        (
            "a: !!int x",
            "v.yaml:1:4: cannot decode !!str `x` as a !!int",
            "yaml: cannot decode !!str `x` as a !!int",
        ),
        (
            "a: {<<: 1}",
            "v.yaml:1:9: map merge requires map or sequence of maps as the value",
            "yaml: map merge requires map or sequence of maps as the value",
        ),
    ];
    for (text, display, go) in cases {
        let err = load(text, "v.yaml").unwrap_err();
        assert_eq!(err.to_string(), display, "{text}");
        assert_eq!(err.go_text(), format!("error converting YAML to JSON: {go}"), "{text}");
    }
}

#[test]
fn aliases_and_nesting_have_limits() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..9 {
        let items = vec![format!("*a{}", n - 1); 10].join(", ");
        bomb.push_str(&format!("a{n}: &a{n} [{items}]\n"));
    }
    assert_eq!(*load(&bomb, "").unwrap_err().problem(), Problem::Aliases);
    let deep = "[".repeat(2_000);
    assert!(matches!(load(&deep, "").unwrap_err().problem(), Problem::Depth(_)));
    let wide = format!("a: [{}]", "1, ".repeat(20_000));
    assert!(load(&wide, "").is_ok());
}

#[test]
fn all_documents_are_read_with_their_lines() {
    let all = load_json_all("# top\na: 1\n---\n\nb: 2\n---\n", "m.yaml").unwrap();
    let lines: Vec<u64> = all.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 5, 7]);
    assert_eq!(load_all("a\n---\nb", "").unwrap().len(), 2);
    assert!(load_all("a\n---\nb: [", "").is_err());
}

#[test]
fn the_line_of_a_path_is_found() {
    let text = "a:\n  b:\n    - c: 1\n    - c: 2\n      d: &x {e: 3}\nf:\n  <<: *x\na2: {g: 1}\n";
    let line = |path: &[&str]| line_of(text, path);
    assert_eq!(line(&[]), Some(1));
    assert_eq!(line(&["a", "b"]), Some(2));
    assert_eq!(line(&["a", "b", "1", "d", "e"]), Some(5));
    assert_eq!(line(&["f", "e"]), Some(5));
    assert_eq!(line(&["a2", "g"]), Some(8));
    assert_eq!(line(&["a", "nope"]), None);
}

fn emitted(value: Value) -> String {
    emit(&value).unwrap()
}

#[test]
fn text_is_quoted_only_where_it_must_be() {
    let double = [
        "yes",
        "y",
        "on",
        "null",
        "~",
        "1",
        "1.0",
        "0x1f",
        "0o17",
        "1e3",
        "1_000",
        "12:30:45",
        "2001-01-01",
        "",
        ".inf",
        "+1",
    ];
    for text in double {
        assert_eq!(emitted(text.into()), format!("\"{text}\"\n"));
    }
    let single = [
        " lead", "trail ", "a: b", "a #b", "#x", "- x", "*a", "&a", "!t", "%x", "@x", "{a", "[a", "-", "?",
        ":", "a:",
    ];
    for text in single {
        assert_eq!(emitted(text.into()), format!("'{text}'\n"));
    }
    let plain = ["it's", "a\"b", "=", "<<", ".", "1,000", "1.2.3", "é", "a:b", "tRue", "2001-2-30"];
    for text in plain {
        assert_eq!(emitted(text.into()), format!("{text}\n"));
    }
    assert_eq!(emitted("\u{1f642}".into()), "\"\\U0001F642\"\n");
    assert_eq!(emitted("a\tb".into()), "\"a\\tb\"\n");
}

#[test]
fn blocks_and_folds_are_gos() {
    let map = |value: &str| emitted(map_value([("k".into(), value.into())].into()));
    assert_eq!(map("a\nb"), "k: |-\n  a\n  b\n");
    assert_eq!(map("a\nb\n"), "k: |\n  a\n  b\n");
    assert_eq!(map("a\n\n"), "k: |+\n  a\n\n");
    assert_eq!(map("  a\nb"), "k: |2-\n    a\n  b\n");
    assert_eq!(map("a \nb"), "k: \"a \\nb\"\n");
    let long = format!("{} {} end", "x".repeat(50), "y".repeat(40));
    assert_eq!(map(&long), format!("k: {} {}\n  end\n", "x".repeat(50), "y".repeat(40)));
}

#[test]
fn numbers_and_containers_are_written_through_json() {
    assert_eq!(emitted(Value::from(1_000_000.0)), "1000000\n");
    assert_eq!(emitted(Value::from(1e20)), "1e+20\n");
    assert_eq!(emitted(Value::from(1_234_567.5)), "1.2345675e+06\n");
    assert_eq!(emitted(Value::from(-0.0)), "0\n");
    let inner = list_value(vec![list_value(vec![1.into(), list_value(vec![])]), map_value([].into())]);
    assert_eq!(emitted(map_value([("a".into(), inner)].into())), "a:\n- - 1\n  - []\n- {}\n");
    assert_eq!(emitted("a\u{85}b".into()), "a b\n");
    assert!(emit(&"\u{7f}".into()).is_err());
    assert!(emit(&Value::from(f64::NAN)).is_err());
}

fn any_value() -> impl Strategy<Value = serde_json::Value> {
    let text = prop_oneof![
        "[ -~]{0,12}",
        "[a-z:#'\" \n\r\t\u{85}\u{a0}\u{2028}-]{0,100}",
        "\\PC{0,20}",
        Just("\u{feff}x".to_owned()),
        "[0-9_.:e+-]{1,8}",
    ];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_filter_map("finite", |f| serde_json::Number::from_f64(f + 0.0).map(Into::into)),
        text.clone().prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            prop::collection::btree_map(text.clone(), inner, 0..5)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The value as `load` would give it: through JSON text.
fn go_value(json: &serde_json::Value) -> Value {
    super::json_read::from_json(json.to_string().as_bytes()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_reads_back(json in any_value()) {
        let value = go_value(&json);
        if let Ok(text) = emit(&value) {
            let back = load(&text, "").map_err(|err| TestCaseError::fail(format!("{err}\n{text}")))?;
            // Lines ended by U+0085 do not survive Go's way either.
            if !json.to_string().contains('\u{85}') {
                let expected = to_json(&value, Layout::default()).unwrap();
                prop_assert_eq!(to_json(&back, Layout::default()).unwrap(), expected, "{}", text);
            }
            prop_assert_eq!(emit(&back).unwrap(), text);
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[ -~\n\t\u{85}\u{feff}é]{0,200}") {
        let _ = load_all(&text, "");
        let _ = line_of(&text, &["a", "0"]);
        let _ = super::json_read::from_json(text.as_bytes());
    }

    #[test]
    fn no_punctuation_makes_the_reader_panic(text in "[]\\[{}:,?&*!|>'\"%@`#~<a \n-]{0,60}") {
        let _ = load_all(&text, "");
        let _ = load_json_all(&text, "");
    }
}

/// Texts that charts are full of are read quickly, and as the port of libyaml reads them.
#[test]
fn what_charts_are_made_of_needs_no_second_reader() {
    for text in [
        "",
        "\n# only words\n",
        "{}",
        "[a, \"b\"]\n",
        "{\"a\": {\"b\": [1, true]}}\n",
        "a: # words\n  b: 1\n",
        "a: # words\nb: 1\n",
        "- # words\n  a: 1\n",
        "a: |\n\n  # words\nb: 1\n",
        "a: |\nb: 1\n",
        "a: >-\n",
        "a: |\n  x\n  y",
        "a: |+\n  x",
        "a: \"b\\t\n  c\\ \n  d\"\n",
        "a: \"b\\n\\n\\t\n  \\  c\"\n",
    ] {
        let quick = super::quick::read(text, &super::JsonValues).ok();
        let slow = super::slowly(text, "", &super::JsonValues).unwrap();
        assert_eq!(quick, Some(slow), "{text:?}");
    }
}
