//! Every function of every interface without a cluster; calls written down, made again, and compared over
//! versions of a plugin.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::pintle::{guest_named, pintle_in};

fn write(folder: &Path, path: &str, json: &Value) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, json.to_string()).unwrap();
}

/// Inputs for a plugin of each interface.
fn samples() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let map = |name: &str, data: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": name, "namespace": "default"}})
    };
    write(at, "samples/target.yaml", &map("target", json!({"a": "b"})));
    write(
        at,
        "samples/owner.yaml",
        &json!({"apiVersion": "a/v1", "kind": "Greeting", "spec": {"text": "hello"},
        "metadata": {"name": "o", "namespace": "default"}}),
    );
    let nodes = ["a", "b"].map(|zone| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{zone}"),
            "labels": {"topology.kubernetes.io/zone": zone}}})
    });
    write(at, "samples/objects/nodes.yaml", &json!({"kind": "List", "items": nodes}));
    let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}});
    write(at, "samples/rendered/all.yaml", &json!({"kind": "List", "items": [map("m", json!({})), ingress]}));
    write(at, "labels.yaml", &json!({"labels": {"team": "gpu"}, "ingress": false}));
    folder
}

#[test]
fn each_interface_is_called_without_a_cluster() {
    let folder = samples();
    let run = |args: &[&str]| {
        let json = pintle_in(folder.path(), [&["run", "-o", "json"], args].concat()).json();
        assert!(json["cost"]["microseconds"].as_u64().is_some_and(|time| time > 0), "{json}");
        json
    };
    assert_eq!(run(&[guest_named("has_keys")])["verdict"], "ready");
    let mapped = run(&[guest_named("replicas")]);
    assert_eq!(
        (&mapped["verdict"], &mapped["values"]["replicas"]),
        (&json!("mapped"), &json!(2)),
        "{mapped}"
    );
    assert_eq!(mapped["pools"].as_array().map(Vec::len), Some(2), "{mapped}");
    let edited = run(&[guest_named("labels"), "--config", "labels.yaml"]);
    assert_eq!(edited["edits"][0]["object"]["metadata"]["labels"]["team"], "gpu", "{edited}");
    assert_eq!(edited["edits"][1]["drop"], "Ingress/i", "{edited}");
    let held = run(&[guest_named("backup_first"), "--operation", "upgrade"]);
    assert_eq!((&held["verdict"], &held["blockers"][0]["reason"]), (&json!("hold"), &json!("BackupRuns")));
    assert_eq!(held["want"][0]["object"]["kind"], "Job", "{held}");
    assert_eq!(run(&[guest_named("backup_first"), "--phase", "post"])["verdict"], "go");
    let desired = run(&[guest_named("greeter")]);
    assert_eq!((&desired["verdict"], &desired["objects"][0]["key"]), (&json!("pending"), &json!("greeting")));
    let last = run(&[guest_named("greeter"), "--function", "finalize"]);
    assert_eq!((&last["verdict"], last["objects"].as_array().map(Vec::len)), (&json!("ready"), Some(0)));
    let text = pintle_in(folder.path(), ["run", guest_named("greeter")]).ok();
    assert!(text.starts_with("pending\n  NotThereYet") && text.contains("text: hello"), "{text}");
}

#[test]
fn every_interface_is_timed_and_held_against_the_contract() {
    let folder = samples();
    for name in ["replicas", "labels", "backup_first", "greeter"] {
        let timed =
            pintle_in(folder.path(), ["bench", guest_named(name), "--calls", "5", "-o", "json"]).json();
        assert_eq!(timed["calls"], 5, "{name}");
        // The smallest examples have no reasons, and that is told; all else is kept or cannot be tried.
        let tested = pintle_in(folder.path(), ["test", guest_named(name), "-o", "json"]);
        let rules: Value = serde_json::from_str(&tested.out).unwrap();
        for rule in rules["rules"].as_array().unwrap() {
            let is_manifest = rule["rule"].as_str().is_some_and(|rule| rule.starts_with("the manifest"));
            assert!(rule["ended"] != "broken" || is_manifest, "{name}: {rule}");
        }
        let has_nodes = rules["rules"]
            .as_array()
            .unwrap()
            .iter()
            .any(|rule| rule["rule"] == "without nodes it has an answer" && rule["ended"] == "kept");
        assert!(has_nodes, "{name}: {rules}");
    }
}

#[test]
fn a_recorded_call_is_made_again_to_the_byte_and_a_changed_one_is_told() {
    let folder = samples();
    let file = "recordings/one.json";
    pintle_in(folder.path(), ["run", guest_named("replicas"), "--record", file]).ok();
    // Nothing of the files is needed any more.
    fs::remove_dir_all(folder.path().join("samples")).unwrap();
    let replay = ["replay", file, "--plugin", guest_named("replicas"), "-o", "json"];
    let again = pintle_in(folder.path(), replay).json();
    assert_eq!((&again["reproduced"], &again["recordedComponent"]), (&json!(true), &json!(true)), "{again}");
    let mut transcript: Value = serde_json::from_slice(&fs::read(folder.path().join(file)).unwrap()).unwrap();
    transcript["answer"]["values"]["replicas"] = json!(3);
    write(folder.path(), "changed.json", &transcript);
    let changed = pintle_in(folder.path(), ["replay", "changed.json", "--plugin", guest_named("replicas")]);
    assert_eq!(changed.code, Some(1));
    assert!(changed.out.contains("NOT reproduced\n  values.replicas: 3 -> 2"), "{}", changed.out);
    transcript["notReplayable"] = json!("it saw a Secret");
    write(folder.path(), "secret.json", &transcript);
    let refused = pintle_in(folder.path(), ["replay", "secret.json", "--plugin", guest_named("replicas")]);
    assert!(refused.failed().contains("the call cannot be made again: it saw a Secret"));
    fs::write(folder.path().join("odd.json"), "{}").unwrap();
    let odd = pintle_in(folder.path(), ["replay", "odd.json", "--plugin", guest_named("replicas")]).failed();
    assert!(odd.contains("could not take over odd.json: it is no transcript"), "{odd}");
}

#[test]
fn an_upgrade_is_rehearsed_with_recorded_calls() {
    let folder = samples();
    let owner = |text: &str| {
        json!({"apiVersion": "a/v1", "kind": "Greeting", "spec": {"text": text},
        "metadata": {"name": "o", "namespace": "default"}})
    };
    for text in ["hello", "bye"] {
        write(folder.path(), "samples/owner.yaml", &owner(text));
        let file = format!("recordings/{text}.json");
        pintle_in(folder.path(), ["run", guest_named("greeter"), "--record", &file]).ok();
    }
    let greeter = guest_named("greeter");
    let same = pintle_in(folder.path(), ["diff", greeter, greeter, "recordings"]).ok();
    assert!(same.contains("same     recordings/bye.json: reconcile for default/sample"), "{same}");
    assert!(same.contains("0 of 2 calls end otherwise"), "{same}");
    // Another version, made of another plugin that knows nothing of greetings: it is no reconciler.
    let other =
        pintle_in(folder.path(), ["diff", greeter, guest_named("has_keys"), "recordings", "-o", "json"]);
    assert_eq!(other.code, Some(1));
    let told: Value = serde_json::from_str(&other.out).unwrap();
    assert_eq!((&told["changed"], &told["recordings"]), (&json!(2), &json!(2)), "{told}");
    let changes = told["calls"][0]["changes"].to_string();
    assert!(changes.contains("verdict: pending -> failed") && changes.contains("objects"), "{changes}");
    let none = pintle_in(folder.path(), ["diff", greeter, greeter, "labels.yaml"]).failed();
    assert!(none.contains("could not take over labels.yaml"), "{none}");
}

#[test]
fn an_operator_that_does_not_answer_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let away = pintle_in(folder.path(), ["record", "driver-loaded", "--from", "http://127.0.0.1:1"]).failed();
    assert!(away.contains("http://127.0.0.1:1 does not answer"), "{away}");
}
