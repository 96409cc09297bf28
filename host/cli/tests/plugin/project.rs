//! From nothing to a component.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use crate::pintle::{pintle_in, root};

/// What a project compiles is compiled already, and no network is needed for its lock file.
fn build(folder: &Path, name: &str) -> Value {
    let project = folder.join(name);
    fs::copy(root().join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
    let target = root().join("target/guest");
    pintle_in(folder, ["build", name, "-o", "json", "--target-dir", target.to_str().unwrap()]).json()
}

#[test]
fn a_new_project_builds_describes_itself_and_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let made = pintle_in(folder.path(), ["new", "map-ready"]).ok();
    assert!(made.contains("next: pintle plugin build map-ready"), "{made}");
    let built = build(folder.path(), "map-ready");
    let component = folder.path().join("map-ready/map-ready.wasm");
    assert_eq!(fs::metadata(&component).unwrap().len(), built["bytes"].as_u64().unwrap());
    let about = pintle_in(&folder.path().join("map-ready"), ["inspect", "map-ready.wasm"]).ok();
    for line in
        ["map-ready 0.1.0", "exports   readiness", "in the component, as the plugin gives it", "kind: Plugin"]
    {
        assert!(about.contains(line), "{about}");
    }
    assert!(made.contains("then: pintle plugin test map-ready/map-ready.wasm"), "{made}");
    // Its samples lie beside it, wherever it is called from.
    let tested = pintle_in(folder.path(), ["test", "map-ready/map-ready.wasm"]).ok();
    assert!(tested.contains("kept     a known good state is ready"), "{tested}");
}

#[test]
fn projects_of_the_other_interfaces_build_too_and_their_test_passes() {
    let folder = tempfile::tempdir().unwrap();
    for interface in ["value-mapper", "post-renderer", "hooks", "reconciler"] {
        let name = format!("my-{interface}");
        pintle_in(folder.path(), ["new", &name, "--interface", interface]).ok();
        build(folder.path(), &name);
        let component = format!("{name}/{name}.wasm");
        let about = pintle_in(folder.path(), ["inspect", &component, "-o", "json"]).json();
        assert_eq!(about["exports"], serde_json::json!([interface]), "{about}");
        let test = Command::new("cargo")
            .args(["test", "--quiet", "--offline", "--target-dir"])
            .arg(root().join("target/guest"))
            .current_dir(folder.path().join(&name))
            .env_remove("RUSTFLAGS")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&test.stdout);
        assert!(
            test.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&test.stderr)
        );
    }
}

#[test]
fn what_cannot_be_made_or_built_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let name = pintle_in(folder.path(), ["new", "Map_Ready"]).failed();
    assert!(name.contains("use lower case letters, digits and dashes"), "{name}");
    fs::create_dir(folder.path().join("taken")).unwrap();
    let taken = pintle_in(folder.path(), ["new", "taken"]).failed();
    assert!(taken.contains("taken is there already; name another folder with --dir"), "{taken}");
    let empty = pintle_in(folder.path(), ["build", "taken"]).failed();
    assert!(
        empty.contains("taken has no Cargo.toml, nor one of plugin.c, go.mod, package.json, pyproject.toml"),
        "{empty}"
    );
    let sdk = pintle_in(folder.path(), ["new", "a", "--sdk", "nowhere"]).failed();
    assert!(sdk.contains("there is no SDK in nowhere"), "{sdk}");
}
