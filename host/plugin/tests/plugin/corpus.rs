//! Guests that were built against each published version of the interfaces run on this host.
//!
//! Files in `tests/corpus` are frozen: one that no longer runs means that an interface changed in a way
//! that breaks plugins in the field. A new version adds a folder: `PINTLE_WRITE_CORPUS=1 cargo test -p
//! pintle-plugin --test plugin corpus` writes what is missing and never overwrites.

use std::{fs, path::PathBuf, sync::Arc};

use pintle_api::{Answer, Given, ObjectRef, Read, Record};
use pintle_plugin::{Outcome, Phase, Plugin};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    canned::canned,
    encode,
    setting::{call, chain, line, load_bytes, object, target},
};

/// The version of the folder that is written to.
const NOW: &str = "0.1.0";

/// One file: what it is made of, and the start of its SHA-256.
struct Frozen {
    name: &'static str,
    source: Source,
    sha: &'static str,
}

enum Source {
    /// A file of `tests/guests`.
    Guest,
    /// An answer to a function of an interface.
    Canned(&'static str, &'static str, fn() -> Value),
}

const CORPUS: [Frozen; 10] = [
    Frozen { name: "ready", source: Source::Guest, sha: "02e1a79f161388d7" },
    Frozen { name: "pending", source: Source::Guest, sha: "d8032f05b5fdc819" },
    Frozen { name: "panic", source: Source::Guest, sha: "cd740b47678eba51" },
    Frozen { name: "read", source: Source::Guest, sha: "55a5c6b0849c0f2d" },
    Frozen { name: "clock", source: Source::Guest, sha: "d97a4f3cafe17f1f" },
    Frozen { name: "wasi", source: Source::Guest, sha: "26849f3eabda3826" },
    Frozen {
        name: "maps",
        source: Source::Canned(
            "value-mapper",
            "map-values",
            || json!({"ok": {"values": {"a": 1}, "pools": [{"key": "p", "values": "{}"}], "report": full_report()}}),
        ),
        sha: "b251ef43de1ad9e1",
    },
    Frozen {
        name: "renders",
        source: Source::Canned(
            "post-renderer",
            "post-render",
            || json!({"ok": {"edits": [], "report": full_report()}}),
        ),
        sha: "f73ef4619e27f96a",
    },
    Frozen {
        name: "hooks",
        source: Source::Canned(
            "hooks",
            "on-phase",
            || json!({"ok": {"outcome": {"hold": full_pending()}, "report": full_report()}}),
        ),
        sha: "9552ed66caa8df09",
    },
    Frozen {
        name: "reconciles",
        source: Source::Canned(
            "reconciler",
            "reconcile",
            || json!({"ok": {"verdict": {"pending": full_pending()}, "report": full_report()}}),
        ),
        sha: "17e0f8543661e930",
    },
];

/// Every field of a report that needs no grant.
fn full_report() -> Value {
    json!({"conditions": [{"name": "C", "status": "unmet", "reason": "R", "message": "m"}],
        "events": [{"kind": "warning", "reason": "R", "message": "m", "regarding":
            {"api-version": "apps/v1", "kind": "DaemonSet", "namespace": "n", "name": "d"}}],
        "status": {"s": 1}, "save": {"k": 1}, "extra": {}})
}

fn full_pending() -> Value {
    json!({"blockers": [{"object": {"api-version": "v1", "kind": "Pod", "namespace": "n", "name": "p"},
        "node": "a", "reason": "R", "message": "m"}], "watch": [{"api-version": "apps/v1", "kind": "DaemonSet",
        "namespace": "n", "name": "d"}], "recheck-after-ms": 2000, "progress": 50})
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(NOW)
}

#[test]
fn the_corpus_is_complete_and_frozen() {
    let is_writing = std::env::var_os("PINTLE_WRITE_CORPUS").is_some();
    for Frozen { name, source, sha } in &CORPUS {
        let path = folder().join(name).with_extension("wasm");
        if is_writing && !path.exists() {
            let bytes = match source {
                Source::Guest => encode::guest(name),
                Source::Canned(interface, function, answer) => canned(interface, function, &answer()),
            };
            fs::create_dir_all(folder()).unwrap();
            fs::write(&path, bytes).unwrap();
        }
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let digest: String =
            Sha256::digest(&bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        println!("{name} {digest}");
        assert!(is_writing || digest == *sha, "{name}.wasm was changed: it is {digest}, it was {sha}");
    }
    let files = fs::read_dir(folder()).unwrap().count();
    assert_eq!(files, CORPUS.len(), "each file is in the table");
}

async fn load(name: &str, more: &Value) -> Plugin {
    let bytes = fs::read(folder().join(name).with_extension("wasm")).unwrap();
    load_bytes("p", bytes, more).await.unwrap_or_else(|error| panic!("{name}: {}", chain(&error)))
}

#[tokio::test]
async fn plugins_of_0_1_0_check_readiness() {
    let read = Read::Get(ObjectRef::new("v1", "Pod", "p").within("n"));
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}});
    let mut facts = Record::default();
    facts.insert(read, Given::Object(Answer::Found(Arc::new(object(pod)))));
    let more = json!({"wasi": true, "grants": {"read": [{"apiGroups": [""], "kinds": ["Pod"]}]}});
    for (name, expected) in [
        ("ready", "Ready"),
        ("pending", "Pending([Blocker { object: None, node: Some(\"node-a\"), reason: \"DriverNotLoaded\""),
        ("panic", "trap WithBackOff: the plugin trapped: wasm trap: wasm `unreachable`"),
        ("read", "fatal Never: the plugin failed: {\"apiVersion\":\"v1\""),
        ("clock", "Pending"),
        ("wasi", "Ready"),
    ] {
        let line = line(&load(name, &more).await.check(call(facts.clone()), target()).await);
        assert!(line.starts_with(expected), "{name}: {line}");
    }
}

#[tokio::test]
async fn plugins_of_0_1_0_map_render_hook_and_reconcile() {
    let none = json!({});
    let asked = || call(Record::default());
    let Outcome::Answered(mapped) = load("maps", &none).await.map_values(asked()).await.outcome else {
        panic!()
    };
    assert_eq!((mapped.values["a"].clone(), mapped.pools.len()), (json!(1), 1));
    let Outcome::Answered(rendered) = load("renders", &none).await.post_render(asked(), vec![]).await.outcome
    else {
        panic!()
    };
    let hooked = load("hooks", &none).await.on_phase(asked(), Phase::Waiting, &[], &[]).await;
    let Outcome::Answered(stepped) = hooked.outcome else { panic!("{:?}", hooked.outcome) };
    let Outcome::Answered(desired) = load("reconciles", &none).await.reconcile(asked(), &[]).await.outcome
    else {
        panic!()
    };
    for report in [&mapped.report, &rendered.report, &stepped.report, &desired.report] {
        assert_eq!(report.conditions[0].kind, "p/C");
        assert_eq!(report.events[0].regarding.as_ref().unwrap().name, "d");
        assert_eq!(report.status.as_ref().unwrap()["s"], 1);
    }
    assert_eq!(desired.progress, Some(50));
}

fn guest_of_version(name: &str, version: &str, wit: &str) -> Vec<u8> {
    let at = |text: &str| text.replace("@0.1.0", &format!("@{version}"));
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/guests/{name}.wat"));
    let text = at(&fs::read_to_string(file).unwrap());
    encode::encode_version(name, &text, &at(wit), version)
}

#[tokio::test]
async fn a_later_patch_version_runs_and_a_later_minor_version_is_another_interface() {
    let wit = encode::wit();
    let patch = load_bytes("p", guest_of_version("ready", "0.1.9", &wit), &json!({})).await.unwrap();
    assert_eq!(line(&patch.check(call(Record::default()), target()).await), "Ready");
    let minor = load_bytes("p", guest_of_version("ready", "0.2.0", &wit), &json!({})).await.unwrap_err();
    assert_eq!(minor.reason(), "NotAPlugin", "{}", chain(&minor));
}

#[tokio::test]
async fn a_guest_may_know_functions_and_interfaces_that_this_host_lacks_if_it_does_not_call_them() {
    let newer = encode::wit().replace("interface log {", "interface log {\n  flush: func();")
        + "\ninterface later { use types.{json}; ask: func() -> json; }";
    let unused = load_bytes("p", encode::guest_for("read", &newer), &json!({})).await.unwrap();
    assert_eq!(unused.imports(), ["kube-read"]);
    let calls = encode::guest("ready");
    let calls = load_bytes("p", calls, &json!({})).await.unwrap();
    assert_eq!(calls.imports(), Vec::<String>::new());
    let wat = ";; world: include pintle:plugin/readiness-plugin@0.1.0; import pintle:plugin/later@0.1.0;\n\
        (import \"pintle:plugin/later@0.1.0\" \"ask\" (func $ask (param i32)))\n\
        (func (export \"pintle:plugin/readiness@0.1.0#check\") (param i32) (result i32)\n\
        (call $ask (i32.const 640)) (i32.const 256))";
    let refused = load_bytes("p", encode::encode("later", wat, &newer), &json!({})).await.unwrap_err();
    assert!(
        chain(&refused).contains("pintle:plugin/later@0.1.0, which this host does not offer"),
        "{}",
        chain(&refused)
    );
}
