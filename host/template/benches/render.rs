//! How long parsing and rendering take: minimum and median of many runs, on one thread.
//!
//! `cargo bench -p pintle-template`; the program is the mix of actions charts have.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a bench prints and stops at the first surprise"
)]

use std::time::{Duration, Instant};

use pintle_template::value::{Entries, Value, list_value, map_value};
use pintle_template::{NoCluster, Program, Run, Source};

const RUNS: usize = 200;

const TEXT: &str = r#"
{{- define "labels" }}app: {{ .app }}
tier: {{ .tier | printf "%s-%s" "t" }}{{ end }}
{{- range $i, $item := .items }}
- name: {{ $item.name }}
  {{- template "labels" $item.labels }}
  {{- if eq $item.kind "a" }}
  kind: first
  {{- else if and $item.kind (not $item.off) }}
  kind: {{ $item.kind }}
  {{- end }}
  {{- with $item.labels }}
  text: {{ include "labels" . | print $i }}
  {{- end }}
  id: {{ printf "%s-%d" $item.name $i }}
{{- end }}
"#;

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    map_value(entries.map(|(key, value)| (key.into(), value)).into_iter().collect::<Entries>())
}

fn items() -> Value {
    let item = |i: usize| {
        let labels = map([("app", "web".into()), ("tier", "front".into())]);
        let kind = if i.is_multiple_of(2) { "a" } else { "b" };
        map([("name", format!("item-{i}").into()), ("kind", kind.into()), ("labels", labels)])
    };
    map([("items", list_value((0..1_000).map(item).collect()))])
}

fn measure(name: &str, mut work: impl FnMut()) {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort();
    println!("{name}: min {:?}, median {:?}", times[0], times[RUNS / 2]);
}

fn main() {
    let source = Source { name: "bench".into(), text: TEXT.into() };
    let long = Source { name: "long".into(), text: TEXT.into() };
    let sources = vec![long; 100];
    measure("parse 100 files", || {
        Program::parse(&sources).unwrap();
    });
    let program = Program::parse(&[source]).unwrap();
    let (dot, run) = (items(), Run::new(&NoCluster));
    let bytes = program.render("bench", &dot, &run).unwrap().len();
    measure(&format!("render 1,000 items, {bytes} bytes"), || {
        program.render("bench", &dot, &run).unwrap();
    });
}
