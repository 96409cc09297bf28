//! Pools that a mapper makes: a state is rendered once for each, and goes with the last node.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_api::SpecialResource;
use pintle_tests::{
    Stage,
    stage::{plane, push},
};
use serde_json::{Value, json};

use crate::bad_input::{chart::fixture, encode};

use super::play::{OS_ID, OS_VERSION, Play, blockers, read};

const DRIVER: &str = r#"apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: driver
  annotations:
    pintle.dev/per-pool: "true"
    specialresource.openshift.io/wait: "true"
spec:
  selector:
    matchLabels: {app: driver}
  template:
    metadata:
      labels: {app: driver}
    spec:
      containers:
        - name: driver
          image: registry.example/driver:{{ .Values.pool.osId }}{{ .Values.pool.osVersion }}
"#;
const AFTER: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: after\n";
/// Only nodes with this label are in pools; the workers of all tests have it not.
const MARK: &str = "s13-pool";

fn os(id: &str, version: &str) -> Value {
    json!({MARK: "yes", OS_ID: id, OS_VERSION: version})
}

async fn unmark(play: &Play) {
    for node in ["worker-0", "worker-1", "worker-2"] {
        play.label(node, json!({MARK: null, OS_ID: null, OS_VERSION: null})).await;
    }
}

async fn mapper(play: &mut Play) -> String {
    let config = json!({"by": ["os"], "nodeSelector": {MARK: "yes"}});
    let grants = json!({"read": [read("", "Node", &["metadata.name", "metadata.labels"])]});
    play.plugin("node-pools", json!({"config": config, "grants": grants})).await
}

async fn image_of(stage: &Stage, set: &str) -> anyhow::Result<Option<Value>> {
    let found = stage.find("DaemonSet", set).await?;
    Ok(found.map(|set| set["spec"]["template"]["spec"]["containers"][0]["image"].clone()))
}

/// Makes it so that a pool has been away for longer than it may, as far as the release remembers.
async fn age_left_pools(stage: &Stage) {
    let secret = format!("pintle.{}", stage.name);
    let found = stage.read("Secret", &secret).await.unwrap();
    let text = BASE64_STANDARD.decode(found["data"]["memory"].as_str().unwrap()).unwrap();
    let mut memory: Value = serde_json::from_slice(&text).unwrap();
    let left = memory["leftPools"].as_object_mut().unwrap();
    assert!(!left.is_empty(), "a pool has left");
    left.values_mut().for_each(|since| *since = json!("2020-01-01T00:00:00Z"));
    let text = BASE64_STANDARD.encode(memory.to_string());
    stage.edit("Secret", &secret, json!({"data": {"memory": text}})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn s13_a_state_is_rendered_per_pool_and_a_pool_that_vanished_goes() {
    let mut play = Play::begin("s13").await;
    unmark(&play).await;
    let mark = play.stage.mark_now().await.unwrap();
    play.label("worker-0", os("rhel", "9.4")).await;
    play.label("worker-1", os("ubuntu", "24.04")).await;
    let mapper = mapper(&mut play).await;
    play.chart(
        &[("pintle.dev/value-mapper", &mapper)],
        &[("templates/0000-driver.yaml", DRIVER), ("templates/1000-after.yaml", AFTER)],
    )
    .await;
    play.own(json!({})).await;
    play.ready().await;
    let mut sets = play.stage.names("DaemonSet").await.unwrap();
    assert_eq!(sets.len(), 2, "{sets:?}");
    let mut images = Vec::new();
    for name in &sets {
        let set = play.stage.read("DaemonSet", name).await.unwrap();
        let selector = &set["spec"]["template"]["spec"]["nodeSelector"];
        let image = &set["spec"]["template"]["spec"]["containers"][0]["image"];
        let own = format!("{}{}", selector[OS_ID].as_str().unwrap(), selector[OS_VERSION].as_str().unwrap());
        assert_eq!(*image, format!("registry.example/driver:{own}"));
        assert_eq!(set["status"]["desiredNumberScheduled"], 1, "{name} runs on the nodes of its pool");
        images.push(own);
    }
    images.sort();
    assert_eq!(images, ["rhel9.4", "ubuntu24.04"]);

    // The last node of a pool changes sides: its objects stay for a while, then they go.
    play.label("worker-1", os("rhel", "9.4")).await;
    let both_on_one = async |stage: &Stage| {
        let mut wanted = Vec::new();
        for set in stage.list("DaemonSet").await? {
            wanted.push(set["status"]["desiredNumberScheduled"].as_i64());
        }
        wanted.sort();
        Ok(wanted == [Some(0), Some(2)])
    };
    play.stage.eventually("the node runs the driver of its new pool", both_on_one).await.unwrap();
    let is_remembered = async |stage: &Stage| {
        let secret = stage.read("Secret", "pintle.s13").await?;
        let text = BASE64_STANDARD.decode(secret["data"]["memory"].as_str().unwrap_or_default())?;
        Ok(String::from_utf8_lossy(&text).contains("leftPools"))
    };
    play.stage.eventually("the pool that left is remembered", is_remembered).await.unwrap();
    assert_eq!(play.stage.names("DaemonSet").await.unwrap(), sets, "it may come back");
    play.stage.stop_operator().await.unwrap();
    age_left_pools(&play.stage).await;
    play.stage.start();
    let mut gone = String::new();
    for name in sets.drain(..) {
        if image_of(&play.stage, &name).await.unwrap().unwrap().as_str().unwrap().contains("ubuntu") {
            gone = name;
        }
    }
    let is_pruned = async |stage: &Stage| Ok(stage.find("DaemonSet", &gone).await?.is_none());
    play.stage.eventually("the objects of the pool are pruned", is_pruned).await.unwrap();
    assert_eq!(play.stage.names("DaemonSet").await.unwrap().len(), 1);

    // Whatever pools come and go, a Node is never deleted.
    let writes = play.stage.writes_since(mark).await.unwrap();
    assert!(writes.iter().all(|write| write.resource != "nodes" || write.verb != "delete"));
    unmark(&play).await;
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_in_two_pools_is_named_and_nothing_is_rendered_for_it() {
    let mut play = Play::begin("two-pools").await;
    let first = play.node("a", "any", json!({"left": "yes", "right": "yes"})).await;
    let guest = encode::encode("two-pools", &fixture("guests/two-pools.wat"), &encode::wit());
    let image = push(plane().await.unwrap(), "two-pools", guest).await.unwrap();
    let mapper = play.plugin_of("overlap", &image, json!({})).await;
    let templates = [("templates/0000-driver.yaml", DRIVER), ("templates/1000-after.yaml", AFTER)];
    play.chart(&[("pintle.dev/value-mapper", &mapper)], &templates).await;
    play.own(json!({})).await;
    let owner: SpecialResource =
        play.blocked("PoolsOverlap", &[&format!("node {first} is in the pools left and right")]).await;
    assert_eq!(blockers(&owner).len(), 1);
    assert_eq!(play.stage.names("DaemonSet").await.unwrap(), [""; 0]);
    play.label(&first, json!({"right": null})).await;
    play.blocked("NoMatchingNodes", &[]).await;
    play.end().await;
}
