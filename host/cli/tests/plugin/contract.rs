//! Plugins without a cluster: one call, the contract, many calls.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::pintle::{Ended, guest_named, pintle_in};

/// A DaemonSet whose two nodes both show that the driver is loaded.
fn good() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let target = json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "driver", "namespace": "default", "generation": 2},
        "spec": {"selector": {"matchLabels": {"app": "driver"}}},
        "status": {"observedGeneration": 2, "desiredNumberScheduled": 2}});
    write(folder.path(), "samples/target.yaml", &target.to_string());
    let pods = ["a", "b"].map(|node| {
        json!({"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": node},
            "metadata": {"name": format!("driver-{node}"), "namespace": "default", "labels": {"app": "driver"}},
            "status": {"phase": "Running", "containerStatuses": [{"name": "c", "state": {"running": {}}}]}})
    });
    write(folder.path(), "samples/objects/pods.yaml", &json!({"kind": "List", "items": pods}).to_string());
    for node in ["a", "b"] {
        write(folder.path(), &format!("samples/logs/default/driver-{node}.log"), "insmod simple-kmod.ko\n");
    }
    folder
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn run(folder: &Path, plugin: &str, more: &[&str]) -> Ended {
    pintle_in(folder, [&["run", guest_named(plugin), "-o", "json"], more].concat())
}

#[test]
fn a_call_reads_objects_and_logs_from_files() {
    let folder = good();
    let ready = run(folder.path(), "driver-loaded", &[]).json();
    assert_eq!(ready["verdict"], "ready", "{ready}");
    let reads: Vec<&str> = ready["reads"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(
        reads,
        ["list v1 Pod in default with app=driver", "log default/driver-a", "log default/driver-b"]
    );
    fs::remove_file(folder.path().join("samples/logs/default/driver-b.log")).unwrap();
    let waiting = run(folder.path(), "driver-loaded", &[]).json();
    assert_eq!(waiting["blockers"][0]["reason"], "LogNotReadable", "{waiting}");
    assert_eq!(waiting["blockers"][0]["node"], "b");
}

#[test]
fn a_plugin_object_decides_about_config_and_grants() {
    let folder = good();
    write(
        folder.path(),
        "plugin.yaml",
        "spec: {image: 'oci://r/n:1', config: {loaded: [other]}, grants: {}}\n",
    );
    let denied = run(folder.path(), "driver-loaded", &["--object", "plugin.yaml"]);
    assert_eq!(denied.code, Some(1));
    assert!(denied.out.contains("spec.grants.read of Plugin driver-loaded would"), "{}", denied.out);
    write(folder.path(), "config.yaml", "loaded: [other]\n");
    let other = run(folder.path(), "driver-loaded", &["--config", "config.yaml"]).json();
    assert_eq!(other["blockers"][0]["reason"], "DriverNotLoaded", "{other}");
}

#[test]
fn a_good_plugin_keeps_every_rule_of_the_contract() {
    let folder = good();
    let tested = pintle_in(folder.path(), ["test", guest_named("driver-loaded"), "-o", "json"]).json();
    let ended: Vec<&str> =
        tested["rules"].as_array().unwrap().iter().filter_map(|rule| rule["ended"].as_str()).collect();
    let (kept, skipped): (Vec<&str>, Vec<&str>) = ended.into_iter().partition(|ended| *ended == "kept");
    assert_eq!((kept.len(), skipped), (9, vec!["skipped"]), "it reads no nodes: {tested}");
}

#[test]
fn a_plugin_that_never_looks_at_the_status_breaks_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    // has-keys with no keys in its config says ready to everything.
    let target = json!({"apiVersion": "v1", "kind": "ConfigMap", "status": {"observedGeneration": 1},
        "metadata": {"name": "m", "generation": 1}});
    write(folder.path(), "target.yaml", &target.to_string());
    let ended = pintle_in(folder.path(), ["test", guest_named("has_keys"), "--target", "target.yaml"]);
    assert_eq!(ended.code, Some(1));
    for rule in ["an empty status is not ready", "a status of an old generation is not ready"] {
        assert!(ended.out.contains(&format!("BROKEN   {rule}\n           it says ready")), "{}", ended.out);
    }
    assert!(
        ended.out.contains("skipped  a read that is denied is not ready: it reads nothing"),
        "{}",
        ended.out
    );
    assert!(ended.err.contains("2 of 10 rules are broken"), "{}", ended.err);
}

#[test]
fn what_is_missing_is_named_with_what_would_help() {
    let folder = tempfile::tempdir().unwrap();
    let no_target = pintle_in(folder.path(), ["run", guest_named("has_keys")]).failed();
    assert!(no_target.contains("name one with --target FILE, or write samples/target.yaml"), "{no_target}");
    let mapper = pintle_in(folder.path(), ["run", guest_named("node-pools"), "--function", "check"]).failed();
    assert!(mapper.contains("node-pools offers value-mapper, not readiness"), "{mapper}");
    let renderer = pintle_in(folder.path(), ["run", guest_named("cluster-proxy")]).failed();
    assert!(renderer.contains("or write them to samples/rendered"), "{renderer}");
    write(folder.path(), "core.wasm", "\0asm\u{1}\0\0\0");
    let core = pintle_in(folder.path(), ["inspect", "core.wasm"]).failed();
    assert!(core.contains("core module"), "{core}");
    let gone = pintle_in(folder.path(), ["inspect", "gone.wasm"]).failed();
    assert!(gone.contains("could not read gone.wasm: No such file"), "{gone}");
    let config = pintle_in(folder.path(), ["inspect", guest_named("ordered-teardown")]).failed();
    assert!(
        config.contains("with --config FILE: the plugin does not accept spec.config: order is empty"),
        "{config}"
    );
    assert_eq!(pintle_in(folder.path(), ["run"]).code, Some(2));
}

#[test]
fn a_bench_says_how_long_a_call_takes() {
    let folder = good();
    let args = ["bench", guest_named("driver-loaded"), "--calls", "50", "-o", "json"];
    let figures = pintle_in(folder.path(), args).json();
    let of = |key: &str| figures[key].as_u64().unwrap();
    assert!(of("calls") == 50 && of("p50Microseconds") > 0 && of("p99Microseconds") >= of("p50Microseconds"));
}
