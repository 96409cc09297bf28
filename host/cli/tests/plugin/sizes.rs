//! Components stay small: every cluster pulls, compiles and keeps them.

use std::fs;

use serde_json::Value;

use crate::pintle::{EXAMPLES, PLUGINS, guest_named, guests, pintle_in, root};

/// Bytes that the smallest useful plugin may have, with config, schema and panic message.
const SMALL: u64 = 96 * 1024;
/// Bytes that the larger examples and the plugins may have.
const LARGER: u64 = 200 * 1024;

#[test]
fn a_minimal_readiness_plugin_with_config_is_under_96_kib_and_the_others_under_200() {
    for (name, path) in guests() {
        let bytes = fs::metadata(path).unwrap().len();
        println!("{name}: {bytes} bytes");
        let limit = if *name == "has_keys" { SMALL } else { LARGER };
        assert!(bytes < limit, "{name} has {bytes} bytes, {limit} are the limit");
    }
}

#[test]
fn every_guest_of_this_project_loads_and_says_which_grants_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    fs::write(&config, "order: [{name: plugin}]\n").unwrap();
    for name in PLUGINS.into_iter().chain(EXAMPLES) {
        let mut args = vec!["inspect", guest_named(name), "-o", "json"];
        if name == "ordered-teardown" {
            args.extend(["--config", config.to_str().unwrap()]);
        }
        let about = pintle_in(root(), args).json();
        assert_eq!(about["name"], name.replace('_', "-"), "{about}");
        assert_eq!(about["plugin"]["metadata"]["name"], about["name"]);
        assert!(about["exports"].as_array().is_some_and(|exports| exports.len() == 1), "{about}");
        let imports: Vec<&str> =
            about["imports"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(imports.iter().all(|import| !import.starts_with("wasi:")), "{imports:?}");
    }
}

#[test]
fn a_readme_has_the_grants_that_its_plugin_asks_for() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    fs::write(&config, "order: [{name: plugin}]\n").unwrap();
    for name in PLUGINS {
        let mut args = vec!["inspect", guest_named(name), "-o", "json"];
        if name == "ordered-teardown" {
            args.extend(["--config", config.to_str().unwrap()]);
        }
        let needs = &pintle_in(root(), args).json()["needs"];
        let readme = fs::read_to_string(root().join("plugins").join(name).join("README.md")).unwrap();
        let (_, rest) = readme.split_once("kind: Plugin\n").unwrap();
        let (yaml, _) = rest.split_once("```").unwrap();
        let shown: Value = serde_yaml::from_str(yaml).unwrap();
        for (list, wanted) in needs.as_object().unwrap() {
            let granted = &shown["spec"]["grants"][list];
            let is_empty = wanted.as_array().is_none_or(Vec::is_empty);
            assert!(is_empty && granted.is_null() || granted == wanted, "{name}: {list}: {granted} {wanted}");
        }
    }
}
