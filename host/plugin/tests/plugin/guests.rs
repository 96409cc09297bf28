//! The plugins of this project as components, from the folder in `PINTLE_GUESTS` if there is one.

use std::{fs, path::PathBuf, sync::Arc};

use pintle_api::{Answer, Given, Object, ObjectRef, Query, Read, Record};
use pintle_plugin::{Outcome, limits};
use serde_json::{Value, json};

use crate::setting::{call, chain, line, load_bytes, object};

/// Bytes that the smallest useful plugin may have, with config and panic message.
const SMALL: usize = 96 * limits::KIB;
/// Bytes that driver-loaded may have: nine types of objects are parsed.
const LARGER: usize = 160 * limits::KIB;

fn built(name: &str) -> Option<Vec<u8>> {
    let Some(folder) = std::env::var_os("PINTLE_GUESTS") else {
        println!("skipped: PINTLE_GUESTS names no folder with {name}.wasm");
        return None;
    };
    let path = PathBuf::from(folder).join(name).with_extension("wasm");
    Some(fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn daemon_set() -> Arc<Object> {
    Arc::new(object(json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "driver", "namespace": "n", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "driver"}}},
        "status": {"observedGeneration": 1, "desiredNumberScheduled": 3}})))
}

fn pod(node: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("driver-{node}"), "namespace": "n",
        "labels": {"app": "driver"}}, "spec": {"nodeName": node}, "status": {"phase": "Running",
        "containerStatuses": [{"name": "driver", "ready": true, "state": {"running": {}}}]}})
}

fn pods() -> (Read, Given) {
    let query = Query {
        api_version: "v1".into(),
        kind: "Pod".into(),
        namespace: Some("n".into()),
        label_selector: Some("app=driver".into()),
    };
    let pods = ["a", "b", "c"].map(|node| Arc::new(object(pod(node))));
    (Read::List(query), Given::Objects(Answer::Found(pods.to_vec())))
}

#[tokio::test]
async fn driver_loaded_asks_for_all_logs_in_one_round_and_names_the_nodes_that_wait() {
    let Some(bytes) = built("driver_loaded") else { return };
    assert!(bytes.len() < LARGER, "{} bytes", bytes.len());
    let grants = json!({"grants": {"read": [{"apiGroups": [""], "kinds": ["Pod"], "namespaces": ["$release"],
        "fields": ["metadata.name", "spec.nodeName", "status"]}], "logs": [{"namespaces": ["$release"]}]}});
    let plugin = load_bytes("driver-loaded", bytes, &grants).await.unwrap();
    assert_eq!(plugin.missing(), Vec::<String>::new());
    let mut facts: Record = vec![pods()].into();
    let first = plugin.check(call(facts.clone()), daemon_set()).await;
    let Outcome::NeedsFacts(reads) = &first.outcome else { panic!("{}", line(&first)) };
    assert_eq!(reads.len(), 3, "{reads:?}");
    for (read, log) in reads.iter().zip(["insmod simple-kmod.ko\n", "starting\n", "insmod simple-kmod.ko\n"])
    {
        facts.insert(read.clone(), Given::Text(Answer::Found(log.into())));
    }
    let second = plugin.check(call(facts), daemon_set()).await;
    let Outcome::Answered(checked) = &second.outcome else { panic!("{}", line(&second)) };
    let nodes: Vec<_> = checked.verdict.blockers().iter().map(|blocker| blocker.node.clone()).collect();
    assert_eq!(nodes, [Some("b".to_owned())]);
    assert_eq!(
        checked.verdict.blockers()[0].object,
        Some(ObjectRef::new("v1", "Pod", "driver-b").within("n"))
    );
}

#[tokio::test]
async fn driver_loaded_without_grants_says_which_it_needs() {
    let Some(bytes) = built("driver_loaded") else { return };
    let plugin = load_bytes("driver-loaded", bytes, &json!({})).await.unwrap();
    assert_eq!(plugin.missing().len(), 2, "{:?}", plugin.missing());
    let result = plugin.check(call(Record::default()), daemon_set()).await;
    assert!(line(&result).contains("spec.grants.read of Plugin driver-loaded would"), "{}", line(&result));
}

#[tokio::test]
async fn a_small_plugin_is_small_and_a_config_with_a_typing_error_is_refused_at_load() {
    let Some(bytes) = built("has_keys") else { return };
    assert!(bytes.len() < SMALL, "{} bytes", bytes.len());
    let wrong = load_bytes("has-keys", bytes.clone(), &json!({"config": {"kys": ["a"]}})).await.unwrap_err();
    assert!(
        chain(&wrong).contains("spec.config is not as expected: unknown field `kys`"),
        "{}",
        chain(&wrong)
    );
    let plugin = load_bytes("has-keys", bytes, &json!({"config": {"keys": ["a"]}})).await.unwrap();
    assert!(plugin.imports().iter().all(|import| ["inputs", "log"].contains(&import.as_str())));
    let map = |data: Value| {
        Arc::new(object(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}),
        ))
    };
    let missing = plugin.check(call(Record::default()), map(json!({}))).await;
    assert!(line(&missing).contains("has-keys: the key a is not there"), "{}", line(&missing));
    assert_eq!(line(&plugin.check(call(Record::default()), map(json!({"a": "1"}))).await), "Ready");
    let odd = plugin.check(call(Record::default()), map(json!({"a": 1}))).await;
    assert!(line(&odd).contains("the target is not as expected: invalid type"), "{}", line(&odd));
}
