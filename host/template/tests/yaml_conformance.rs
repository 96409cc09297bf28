//! `yaml::emit` against what Helm's `toYaml` makes of the same values.
//!
//! The probes belong to others and lie beside the checkout; without them the test says so.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests stop at the first surprise")]

use std::path::PathBuf;

use pintle_template::value::Value;
use pintle_template::yaml;

/// The shared folder: the variable `PINTLE_SHARED`, or `shared` beside the checkout or above it.
fn shared() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("PINTLE_SHARED") {
        return Some(PathBuf::from(path));
    }
    let crate_folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut above = crate_folder.ancestors().skip(2);
    above.find_map(|folder| Some(folder.join("shared")).filter(|path| path.is_dir()))
}

fn probes() -> Option<(Vec<Value>, Vec<String>)> {
    let folder = shared()?.join("conformance");
    let values = std::fs::read(folder.join("yvals.json")).ok()?;
    let gold = std::fs::read(folder.join("ygold.json")).ok()?;
    // The values are one JSON array, which is YAML too: the loader under test reads them.
    let values: Vec<serde_json::Value> = serde_json::from_slice(&values).unwrap();
    let values = values.iter().map(|value| yaml::json_read::from_json(value.to_string().as_bytes()).unwrap());
    Some((values.collect(), serde_json::from_slice(&gold).unwrap()))
}

#[test]
fn every_probe_is_written_as_helm_writes_it() {
    let Some((values, gold)) = probes() else {
        eprintln!("skipped: no conformance/yvals.json (folder `shared`, or PINTLE_SHARED)");
        return;
    };
    assert_eq!(values.len(), gold.len());
    let wrong: Vec<String> = values
        .iter()
        .zip(&gold)
        .filter_map(|(value, gold)| {
            let ours = yaml::emit(value);
            // Where Helm has an error there must be one; `toYaml` shows neither.
            let ours =
                ours.unwrap_or_else(|_| if gold.starts_with("ERR") { gold.clone() } else { String::new() });
            (ours != *gold).then(|| format!("{value:?}\n  helm {gold:?}\n  ours {ours:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), gold.len(), wrong.join("\n"));
}

#[test]
fn what_helm_wrote_reads_back_as_the_value() {
    let Some((values, gold)) = probes() else {
        eprintln!("skipped: no conformance/ygold.json (folder `shared`, or PINTLE_SHARED)");
        return;
    };
    let written = values
        .iter()
        .zip(&gold)
        // A key `<<` is written plain, as Go does, and then read as a merge.
        .filter(|(_, gold)| !gold.starts_with("ERR") && !gold.contains("<<:"));
    for (value, gold) in written {
        let back = yaml::load(gold, "gold").unwrap();
        let again = yaml::emit(&back).unwrap_or_default();
        assert_eq!(again, *gold, "{value:?}");
    }
}
