//! Which crate may use which: the fences of the house, held against `cargo metadata`.
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests stop at the first surprise")]

use std::{collections::BTreeMap, process::Command};

use serde_json::Value;

/// Crates of ours that a crate may use.
const ARROWS: [(&str, &[&str]); 11] = [
    ("pintle-api", &[]),
    ("pintle-template", &[]),
    ("pintle-chart", &["api", "template"]),
    ("pintle-plan", &["api", "template", "chart"]),
    ("pintle-plugin", &["api"]),
    ("pintle-source", &["api", "chart"]),
    ("pintle-cluster", &["api"]),
    ("pintle-dev", &["api"]),
    ("pintle-operator", &["api", "template", "chart", "plan", "plugin", "source", "cluster"]),
    ("pintle", &["api", "template", "chart", "plugin", "source", "dev", "operator"]),
    ("pintle-plugin-sdk", &[]),
];

/// Libraries that only some crates may name.
const FENCES: [(&str, &[&str]); 7] = [
    ("wasmtime", &["pintle-plugin"]),
    ("wasmtime-wasi", &["pintle-plugin"]),
    ("kube", &["pintle-cluster", "pintle-dev", "pintle", "pintle-tests"]),
    ("oci-client", &["pintle-source", "pintle-dev"]),
    ("minijinja", &["pintle-template", "pintle-chart"]),
    ("libyaml-safer", &["pintle-template"]),
    ("jsonschema", &["pintle-chart"]),
];

/// Crates without input, output and clock.
const PURE: [&str; 4] = ["pintle-api", "pintle-template", "pintle-chart", "pintle-plan"];
/// Libraries that no pure crate may name.
const IMPURE: [&str; 4] = ["tokio", "reqwest", "kube-client", "futures"];

/// Dependencies of each crate of ours, those of its tests left out.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    packages.iter().map(|package| (package["name"].as_str().unwrap().to_owned(), names(package))).collect()
}

fn names(package: &Value) -> Vec<String> {
    let all = package["dependencies"].as_array().expect("dependencies");
    let normal = all.iter().filter(|dependency| dependency["kind"] != "dev");
    normal.map(|dependency| dependency["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_arrow_between_our_crates_is_one_of_the_house() {
    let dependencies = dependencies();
    for (name, allowed) in ARROWS {
        let used = dependencies.get(name).expect("a crate of the table is gone: change the table");
        let ours = used.iter().filter_map(|name| name.strip_prefix("pintle-"));
        let wrong: Vec<_> = ours.filter(|used| !allowed.contains(used)).collect();
        assert!(wrong.is_empty(), "{name} uses {wrong:?}, which the house does not allow");
    }
}

#[test]
fn fenced_libraries_are_named_only_behind_their_fence() {
    for (name, used) in dependencies() {
        for (library, allowed) in FENCES {
            assert!(
                !used.iter().any(|used| used == library) || allowed.contains(&name.as_str()),
                "{name} names {library}"
            );
        }
    }
}

#[test]
fn pure_crates_have_no_input_output_or_clock() {
    let dependencies = dependencies();
    for name in PURE {
        let wrong: Vec<_> =
            dependencies[name].iter().filter(|used| IMPURE.contains(&used.as_str())).collect();
        assert!(wrong.is_empty(), "{name} names {wrong:?}");
    }
}

#[test]
fn host_and_guests_share_nothing_but_the_interfaces() {
    for (name, used) in dependencies() {
        let is_guest = used.iter().any(|used| used == "pintle-plugin-sdk") || name == "pintle-plugin-sdk";
        let ours: Vec<_> =
            used.iter().filter(|used| used.starts_with("pintle-") && *used != "pintle-plugin-sdk").collect();
        assert!(!is_guest || ours.is_empty(), "the guest {name} uses {ours:?} of the host");
    }
}
