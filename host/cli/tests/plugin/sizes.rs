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

/// The Plugin that a README shows.
fn shown_in_readme(name: &str) -> Value {
    let readme = fs::read_to_string(root().join("plugins").join(name).join("README.md")).unwrap();
    let (_, rest) = readme.split_once("kind: Plugin\n").unwrap();
    let end = ["```", "\n---"].into_iter().filter_map(|end| rest.find(end)).min().unwrap();
    serde_yaml::from_str(&rest[..end]).unwrap()
}

/// What `inspect` tells of a guest with this config.
fn inspected(name: &str, config: &Value) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    fs::write(&file, config.to_string()).unwrap();
    let mut args = vec!["inspect", guest_named(name), "-o", "json"];
    if !config.is_null() {
        args.extend(["--config", file.to_str().unwrap()]);
    }
    pintle_in(root(), args).json()
}

#[test]
fn every_guest_of_this_project_loads_and_says_which_grants_it_needs() {
    let own = PLUGINS.into_iter().map(|name| (name, shown_in_readme(name)["spec"]["config"].clone()));
    for (name, config) in own.chain(EXAMPLES.map(|name| (name, Value::Null))) {
        let about = inspected(name, &config);
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
    for name in PLUGINS {
        let shown = shown_in_readme(name);
        let needs = &inspected(name, &shown["spec"]["config"])["needs"];
        for (list, wanted) in needs.as_object().unwrap() {
            let granted = &shown["spec"]["grants"][list];
            // Which images are looked up values say, and a config which peers: the plugin cannot know.
            let says_more =
                matches!((name, list.as_str()), ("accelerator-values", "images") | ("peer-ready", "read"));
            let is_empty = wanted.as_array().is_none_or(Vec::is_empty) && (granted.is_null() || says_more);
            assert!(is_empty || granted == wanted, "{name}: {list}: {granted} {wanted}");
        }
    }
}
