//! Charts are untrusted: every way to make a render endless or huge ends in an error that names the
//! limit, on the stack of an ordinary thread.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests stop at the first surprise, and measure time"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pintle_template::value::{Entries, Value, list_value, map_value};
use pintle_template::{Cancel, Error, ErrorKind, Limits, NoCluster, Program, Run, Source};

fn program(text: &str) -> Result<Program, Error> {
    let source = Source { name: "t".into(), text: text.into() };
    Program::parse(&[source])
}

fn render(text: &str, dot: &Value, run: &Run<'_>) -> Result<String, Error> {
    program(text)?.render("t", dot, run)
}

/// The error of a program that sees an empty map.
fn error(text: &str, limits: Limits) -> Error {
    let run = Run { limits, ..Run::new(&NoCluster) };
    match render(text, &map_value(Entries::new()), &run) {
        Ok(out) => panic!("no error but {} bytes", out.len()),
        Err(err) => err,
    }
}

/// A map within a map, so many deep.
fn nested(depth: usize) -> Value {
    (0..depth).fold(map_value(Entries::new()), |inner, _| map_value(Entries::from([("next".into(), inner)])))
}

fn small() -> Limits {
    Limits { steps: 10_000, output: 1_000, ..Limits::default() }
}

#[test]
fn a_thousand_nested_includes_work() {
    let text =
        r#"{{ define "r" }}{{ if .next }}{{ include "r" .next }}{{ end }}x{{ end }}{{ include "r" . }}"#;
    let out = render(text, &nested(1_001), &Run::new(&NoCluster)).unwrap();
    assert_eq!(out.len(), 1_001);
    let err = render(text, &nested(1_002), &Run::new(&NoCluster)).unwrap_err();
    let text = err.to_string();
    assert!(text.contains("nested reference name: r: unable to execute template"), "{text}");
    assert!(text.contains("limit include depth 1000"), "{text}");
    assert!(text.len() < 5_000, "a chain of a thousand is cut: {}", text.len());
}

#[test]
fn endless_recursion_names_its_limit() {
    let cases = [
        (r#"{{ define "r" }}{{ include "r" . }}{{ end }}{{ include "r" . }}"#, "include depth"),
        (
            r#"{{ define "a" }}{{ include "b" . }}{{ end }}{{ define "b" }}{{ include "a" . }}{{ end }}{{ include "a" . }}"#,
            "include depth",
        ),
        (r#"{{ define "r" }}{{ template "r" . }}{{ end }}{{ template "r" . }}"#, "template depth"),
        (
            r#"{{ define "r" }}{{ tpl "{{ template \"r\" . }}" . }}{{ end }}{{ template "r" . }}"#,
            "template depth",
        ),
    ];
    for (text, limit) in cases {
        let err = error(text, Limits::default());
        assert!(err.to_string().contains(&format!("limit {limit}")), "{err}");
        assert!(format!("{err:#}").len() < 5_000);
    }
}

#[test]
fn steps_and_output_are_bounded() {
    let cases = [
        ("{{ range 1000000000 }}{{ end }}", "steps"),
        ("{{ range 1000 }}{{ range 1000 }}{{ end }}{{ end }}", "steps"),
        ("{{ range 1000000 }}0123456789{{ end }}", "output"),
        (r#"{{ $x := "xxxx" }}{{ range 64 }}{{ $x = printf "%s%s" $x $x }}{{ end }}"#, "output"),
        (r#"{{ $x := "xxxx" }}{{ range 64 }}{{ $x = print $x $x }}{{ end }}"#, "output"),
        (
            r#"{{ define "d" }}{{ . }}{{ . }}{{ end }}{{ $x := "xxxx" }}{{ range 64 }}{{ $x = include "d" $x }}{{ end }}"#,
            "output",
        ),
        (r#"{{ printf "%5000d" 1 }}"#, "output"),
    ];
    for (text, limit) in cases {
        let err = error(text, small());
        assert_eq!(err.kind(), ErrorKind::Limit(limit), "{text}: {err}");
        assert!(err.to_string().contains(&format!("limit of {limit} (")), "{err}");
    }
}

#[test]
fn text_that_is_only_nested_is_refused_by_the_parser() {
    let parens = format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000));
    let ifs = "{{ if true }}".repeat(100_000);
    let elses = format!("{{{{ if true }}}}{}", "{{ else if true }}".repeat(100_000));
    for text in [parens, ifs, elses] {
        let err = program(&text).unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Parse);
        assert!(err.message().contains("limit nesting"), "{err}");
    }
}

#[test]
fn values_nested_a_million_deep_are_freed_and_not_printed() {
    let deep = nested(1_000_000);
    let err = render("{{ . }}", &deep, &Run::new(&NoCluster)).unwrap_err();
    assert!(err.to_string().contains("limit value depth"), "{err}");
    drop(deep);
    let lists = (0..1_000_000).fold(list_value(Vec::new()), |inner, _| list_value(vec![inner]));
    drop(lists);
}

#[test]
fn a_text_that_doubles_forty_times_is_not_written() {
    let doubled = (0..40).fold(Value::from("x"), |half, _| list_value(vec![half.clone(), half]));
    for text in ["{{ . }}", "{{ print . }}", r#"{{ printf "%v" . }}"#, r#"{{ printf "%d" . }}"#] {
        let err = render(text, &doubled, &Run::new(&NoCluster)).unwrap_err();
        assert!(err.to_string().contains("limit value text"), "{text}: {err}");
    }
}

#[test]
fn a_render_can_be_cancelled() {
    let cancel = AtomicBool::new(false);
    let started = Instant::now();
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            cancel.store(true, Ordering::Relaxed);
        });
        let limits = Limits { steps: u64::MAX, ..Limits::default() };
        let run = Run { limits, cancel: Some(&cancel), ..Run::new(&NoCluster) };
        render("{{ range 1000000000000 }}{{ end }}", &Value::UNDEFINED, &run)
    });
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_render_needs_no_large_stack() {
    let text = r#"{{ define "r" }}{{ if .next }}{{ with .next }}{{ range $k, $v := . }}{{ end }}{{ (include "r" .) | print (print (print)) }}{{ end }}{{ end }}{{ end }}{{ include "r" . }}"#;
    let thread = std::thread::Builder::new().stack_size(512 << 10);
    let handle = thread
        .spawn(move || render(text, &nested(900), &Run::new(&NoCluster)).map_err(|err| err.to_string()));
    assert_eq!(handle.unwrap().join().unwrap().unwrap(), "");
}

#[test]
fn functions_that_make_much_of_little_name_their_limit() {
    for (text, name) in [
        ("{{ until 2000000000 }}", "items"),
        ("{{ untilStep 0 2000000000 1 }}", "items"),
        ("{{ seq 2000000000 }}", "items"),
        (r#"{{ repeat 2000000000 "x" }}"#, "output"),
        (r#"{{ repeat 1000000 (repeat 1000000 "x") }}"#, "output"),
        (r#"{{ indent 2000000000 "x" }}"#, "output"),
        (r#"{{ nindent 2000000000 "x\ny" }}"#, "output"),
        (r#"{{ regexMatch "(((a{100}){100}){100})" "a" }}"#, ""),
        (r#"{{ regexReplaceAll "" (repeat 100000 "x") (repeat 100000 "y") }}"#, "output"),
        (r#"{{ replace "" (repeat 100000 "y") (repeat 100000 "x") }}"#, "output"),
        (r#"{{ randAlphaNum 2000000000 }}"#, ""),
        (r#"{{ join (repeat 100000 "y") (until 100000) }}"#, "output"),
        (r#"{{ wrapWith 1 (repeat 100000 "y") (repeat 100000 "x ") }}"#, "output"),
        (r#"{{ $x := list }}{{ range 100000 }}{{ $x = list $x $x }}{{ end }}{{ toJson $x | len }}"#, ""),
    ] {
        let start = Instant::now();
        let outcome = program(text).unwrap().render("t", &map_value(Entries::new()), &Run::new(&NoCluster));
        assert!(start.elapsed() < Duration::from_secs(20), "{text}");
        match outcome {
            // `toJson` answers what cannot be written with nothing.
            Ok(out) => assert!(name.is_empty() && out.len() < 100, "{text}: {} bytes", out.len()),
            Err(err) => match err.kind() {
                ErrorKind::Limit(limit) => assert!(name.is_empty() || limit == name, "{text}: {err}"),
                _ => assert!(name.is_empty(), "{text}: {err}"),
            },
        }
    }
}

#[test]
fn a_handle_cancels_from_another_thread() {
    let cancel = Cancel::new();
    let run = Run { cancel: Some(cancel.flag()), ..Run::new(&NoCluster) };
    let text = "{{ range 1000000000 }}{{ end }}";
    let err = std::thread::scope(|scope| {
        let handle = cancel.clone();
        scope.spawn(move || handle.cancel());
        render(text, &map_value(Entries::new()), &run).unwrap_err()
    });
    assert!(cancel.is_cancelled());
    assert!(matches!(err.kind(), ErrorKind::Cancelled | ErrorKind::Limit("steps")), "{err}");
    let err = render("{{ 1 }}", &map_value(Entries::new()), &run).unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Cancelled);
}
