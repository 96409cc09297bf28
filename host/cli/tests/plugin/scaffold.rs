//! A new kind for a chart: its project passes its own test, and what breaks it is named.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::pintle::root;

fn pintle(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pintle")).args(args).current_dir(folder).output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The project `cache` of memcached's chart.
fn new(folder: &Path, more: &[&str]) -> PathBuf {
    let chart = root().join("charts/memcached");
    let args = [&["new", "Cache", "--chart", chart.to_str().unwrap()], more].concat();
    let made = pintle(folder, &args);
    assert!(made.status.success(), "{}", said(&made));
    assert!(said(&made).contains("next: sh cache/test.sh"), "{}", said(&made));
    folder.join("cache")
}

/// Its own test; what it compiles is compiled already, and no network is needed.
fn test(project: &Path) -> Output {
    Command::new("sh")
        .arg(project.join("test.sh"))
        .env("PINTLE", env!("CARGO_BIN_EXE_pintle"))
        .env("CARGO_TARGET_DIR", root().join("target/guest"))
        .env("CARGO_NET_OFFLINE", "true")
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap()
}

#[test]
fn a_new_kind_passes_its_own_test_and_its_plugin_is_a_project() {
    let folder = tempfile::tempdir().unwrap();
    let project = new(folder.path(), &[]);
    fs::copy(root().join("Cargo.lock"), project.join("plugin/Cargo.lock")).unwrap();
    let tested = test(&project);
    let told = said(&tested);
    assert!(tested.status.success(), "{told}");
    for line in [
        "ok      sample.yaml: the definition takes it",
        "ok      sample.yaml: the chart renders 3 objects with it",
        "ok      rbac.yaml: the operator may do what it must",
        "1 passed",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    let watch = fs::read_to_string(project.join("watch.yaml")).unwrap();
    assert!(watch.ends_with("  #valueMapper:\n  #  plugin: cache-values\n"), "{watch}");
    let readme = fs::read_to_string(project.join("README.md")).unwrap();
    for part in ["sh test.sh", "pintle plugin build plugin", "plugin/cache-values.wasm"] {
        assert!(readme.contains(part), "{part}: {readme}");
    }
}

#[test]
fn a_plugin_in_another_language_is_tested_by_that_languages_tools() {
    let folder = tempfile::tempdir().unwrap();
    let project = new(folder.path(), &["--plugin", "python"]);
    let tested = test(&project);
    assert!(tested.status.success() && said(&tested).contains("OK"), "{}", said(&tested));
    let watch = fs::read_to_string(project.join("watch.yaml")).unwrap();
    assert!(watch.contains("pintle.dev/wait: builtin && cache-ready"), "{watch}");
}

#[test]
fn a_project_that_does_not_fit_says_what_and_where() {
    let folder = tempfile::tempdir().unwrap();
    let project = new(folder.path(), &["--plugin", "none"]);
    assert!(!project.join("plugin").exists());
    assert!(test(&project).status.success());

    let edit = |file: &str, from: &str, to: &str| {
        let path = project.join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} has no {from}: {text}");
        fs::write(path, text.replace(from, to)).unwrap();
    };
    let check = |said_of: &[&str]| {
        let checked = pintle(folder.path(), &["check", "cache"]);
        assert_eq!(checked.status.code(), Some(1), "{}", said(&checked));
        for part in said_of {
            assert!(said(&checked).contains(part), "{part}: {}", said(&checked));
        }
    };
    edit("sample.yaml", "replicaCount: ", "replicaCount: -");
    check(&["failed  sample.yaml: the definition takes it\n         /spec/replicaCount: "]);
    edit("sample.yaml", "replicaCount: -", "replicaCount: ");
    edit("rbac.yaml", "- deployments", "- others");
    check(&[
        "failed  rbac.yaml",
        "no rule gives get, list, watch, create, patch, delete on deployments.apps",
    ]);
    edit("watch.yaml", "  kind: Cache", "  kind: Other");
    check(&[
        "failed  watch.yaml: has an object to test with",
        "holds a Other of charts.example.com/v1alpha1",
    ]);
    edit("watch.yaml", "url: file://", "url: oci://");
    check(&["watch.yaml: the chart is in \"oci://", "--chart"]);
}
