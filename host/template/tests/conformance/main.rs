//! Micro-programs of Go's template language and of Helm's functions, with Helm's own answers.
//!
//! The programs belong to others and lie beside the checkout; without them the test says so. Each is
//! `templates/t.yaml` of a chart `c` 1.2.3 with two files, released as `rel` in `ns`.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests stop at the first surprise")]

mod objects;

use std::path::PathBuf;
use std::sync::Arc;

use pintle_template::value::{Entries, MapType, Value, as_map, map_value, typed_map};
use pintle_template::{NoCluster, Program, Run, Source, yaml};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    #[serde(rename = "n")]
    name: String,
    #[serde(rename = "t")]
    template: String,
    #[serde(rename = "d")]
    values: String,
}

#[derive(Deserialize)]
struct Gold {
    ok: bool,
    out: String,
    err: String,
}

/// The shared folder: the variable `PINTLE_SHARED`, or `shared` beside the checkout or above it.
fn shared() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("PINTLE_SHARED") {
        return Some(PathBuf::from(path));
    }
    let above = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut above = above.ancestors().skip(2);
    above.find_map(|folder| Some(folder.join("shared")).filter(|path| path.is_dir()))
}

fn cases() -> Option<Vec<(Case, Gold)>> {
    let folder = shared()?.join("conformance");
    let cases = std::fs::read(folder.join("template-cases.json")).ok()?;
    let gold = std::fs::read(folder.join("template-gold.json")).ok()?;
    let cases: Vec<Case> = serde_json::from_slice(&cases).unwrap();
    let gold: Vec<Gold> = serde_json::from_slice(&gold).unwrap();
    assert_eq!(cases.len(), gold.len());
    Some(cases.into_iter().zip(gold).collect())
}

const FILE: &str = "c/templates/t.yaml";

fn dot(values: &str) -> Value {
    let values = yaml::load(values, "values.yaml").unwrap();
    // As a chart's own default, a null is no value at all.
    let entries = as_map(&values).map(|map| map.read().clone());
    let mut values = entries.unwrap_or_default();
    values.retain(|_, value| !value.is_none());
    let map = |entries: &[(&str, Value)]| {
        map_value(entries.iter().map(|(k, v)| (Arc::from(*k), v.clone())).collect::<Entries>())
    };
    let chart = [("Name", "c"), ("Version", "1.2.3"), ("AppVersion", ""), ("Type", "")];
    let root: Entries = [
        ("Values", typed_map(values, MapType::Values)),
        ("Chart", map(&chart.map(|(key, value)| (key, value.into())))),
        (
            "Release",
            map(&[
                ("Name", "rel".into()),
                ("Namespace", "ns".into()),
                ("IsInstall", true.into()),
                ("IsUpgrade", false.into()),
                ("Revision", 1.into()),
                ("Service", "Helm".into()),
            ]),
        ),
        ("Capabilities", objects::capabilities()),
        ("Files", objects::files()),
        ("Subcharts", map(&[])),
        ("Template", map(&[("Name", FILE.into()), ("BasePath", "c/templates".into())])),
    ]
    .into_iter()
    .map(|(key, value)| (Arc::from(key), value))
    .collect();
    typed_map(root, MapType::Values)
}

fn render(case: &Case) -> Result<String, String> {
    let source = Source { name: FILE.into(), text: case.template.as_str().into() };
    let run = Run::new(&NoCluster);
    let program = Program::parse(&[source]).map_err(|err| err.to_string())?;
    program.render(FILE, &dot(&case.values), &run).map_err(|err| err.to_string())
}

/// What differs from Helm, if anything does.
fn difference(case: &Case, gold: &Gold) -> Option<String> {
    let (ours, helm) = match (render(case), gold.ok) {
        (Ok(out), true) => (out, gold.out.as_str()),
        (Err(err), false) => (err, gold.err.as_str()),
        (Ok(out), false) => (format!("OK {out}"), gold.err.as_str()),
        (Err(err), true) => (format!("ERROR {err}"), gold.out.as_str()),
    };
    let text = || format!("{}\n  {:?}\n  helm {helm:?}\n  ours {ours:?}", case.name, case.template);
    (ours != helm).then(text)
}

#[test]
fn every_program_prints_or_fails_as_in_helm() {
    let Some(cases) = cases() else {
        eprintln!("skipped: no conformance/template-cases.json (folder `shared`, or PINTLE_SHARED)");
        return;
    };
    let wrong: Vec<String> = cases.iter().filter_map(|(case, gold)| difference(case, gold)).collect();
    let count = wrong.len();
    assert!(wrong.is_empty(), "{count} of {} differ:\n{}", cases.len(), wrong.join("\n"));
}
