//! The same stories as around.rs, told by plugins that decide by themselves: what they see is the cluster, no script.

use kube::{
    Api,
    api::{DeleteParams, DynamicObject},
};
use pintle_tests::{Stage, requests::object_of};
use serde_json::{Value, json};

use super::{
    around::{ends, grant_rights, has, two_states, values},
    play::{LABEL, Play, read},
};

/// An owner of the plugin that reconciles, and the Watch that says so.
struct Reconciled {
    play: Play,
    engines: Api<DynamicObject>,
}

// === impl Reconciled ===

impl Reconciled {
    /// What the operator may do with the vendor's kind.
    async fn begin(name: &str) -> Self {
        let play = Play::begin(name).await;
        grant_rights(&play.stage).await;
        let verbs = ["get", "list", "watch", "patch", "update"];
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "test-vendors", "labels": {"pintle.dev/aggregate-to-operator": "true"}},
            "rules": [{"apiGroups": ["kinds.scenario.example"], "verbs": verbs,
                "resources": ["engines", "engines/status", "engines/finalizers"]}]
        });
        play.stage.apply(role).await.unwrap();
        let engines = play.kind("kinds.scenario.example", "v1", "Engine").await;
        Self { play, engines }
    }

    /// Has the plugin reconcile the kind, of which there is one object.
    async fn install(&mut self, package: &str, config: Value, grants: Value) {
        let plugin = self.play.plugin(package, json!({"config": config, "grants": grants})).await;
        let name = &self.play.stage.name;
        let labels = json!({"test": name});
        let watch = json!({
            "apiVersion": "pintle.dev/v1alpha1", "kind": "Watch", "metadata": {"name": name, "labels": labels},
            "spec": {"group": "kinds.scenario.example", "version": "v1", "kind": "Engine",
                "selector": {"matchLabels": labels}, "reconciler": {"plugin": plugin}}
        });
        self.play.stage.apply(watch).await.unwrap();
        let engine = json!({
            "apiVersion": "kinds.scenario.example/v1", "kind": "Engine",
            "metadata": {"name": "one", "namespace": name, "labels": labels}, "spec": {}
        });
        self.play.stage.apply(engine).await.unwrap();
    }

    /// Waits until the status of the object has all of these texts.
    async fn tells(&self, texts: &[&str]) {
        let mut last = String::new();
        let is_told = async |_: &Stage| {
            last = self.engines.get("one").await?.data["status"].to_string();
            Ok(texts.iter().all(|text| last.contains(text)))
        };
        let told = self.play.stage.eventually(&format!("it tells {texts:?}"), is_told).await;
        told.unwrap_or_else(|err| panic!("{err:#}: {last}"));
    }

    async fn end(self) {
        self.engines.delete("one", &DeleteParams::default()).await.unwrap();
        let is_gone = async |_: &Stage| Ok(self.engines.get_opt("one").await?.is_none());
        self.play.stage.eventually("the object is gone", is_gone).await.unwrap();
        let watches: Api<pintle_api::Watch> = Api::all(self.play.stage.client.clone());
        watches.delete(&self.play.stage.name, &DeleteParams::default()).await.unwrap();
        self.play.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s5_a_pod_on_each_node_validates_a_state_and_is_tried_again_so_often() {
    let mut play = Play::begin("s5v").await;
    grant_rights(&play.stage).await;
    let (one, two) = (play.node("a", "any", json!({})).await, play.node("b", "any", json!({})).await);
    let grants = json!({
        "read": [read("", "Node", &["metadata.name", "metadata.labels", "spec.unschedulable"])],
        "logs": [{"namespaces": ["$release"]}],
        "objects": [{"apiGroups": [""], "kinds": ["Pod"], "namespaces": ["$release"]}]
    });
    let config = |attempts: u32| json!({"image": "registry.test/check:1", "nodeSelector": {LABEL: "s5v"}, "attempts": attempts});
    let plugin = play.plugin("node-validator", json!({"config": config(2), "grants": grants})).await;
    two_states(&play, &format!("pintle.dev/post: {plugin}")).await;
    play.own(json!({})).await;
    for node in [&one, &two] {
        play.blocked("Validating", &[node, "its pod has not finished"]).await;
    }
    let pod = |node: &str, attempt: u32| format!("s5v-validate-{node}-1-{attempt}");
    let first = play.stage.read("Pod", &pod(&one, 1)).await.unwrap();
    assert_eq!(first["spec"]["nodeName"], json!(one));
    ends(&play.stage, &pod(&one, 1), "Succeeded").await;
    for attempt in [1, 2] {
        let is_there = async |stage: &Stage| Ok(has(stage, "Pod", &pod(&two, attempt)).await);
        play.stage.eventually("the node is tried again", is_there).await.unwrap();
        ends(&play.stage, &pod(&two, attempt), "Failed").await;
    }
    play.blocked("ValidationFailed", &[&two, "all 2 attempts failed"]).await;
    assert!(!has(&play.stage, "ConfigMap", "second").await);
    // An administrator allows one more.
    play.plugin("node-validator", json!({"config": config(3), "grants": grants})).await;
    let is_there = async |stage: &Stage| Ok(has(stage, "Pod", &pod(&two, 3)).await);
    play.stage.eventually("the node is tried once more", is_there).await.unwrap();
    ends(&play.stage, &pod(&two, 3), "Succeeded").await;
    play.ready().await;
    assert!(has(&play.stage, "ConfigMap", "second").await);
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s23_an_upgrade_waits_for_the_drivers_of_nodes_and_names_those_it_waits_for() {
    let mut play = Play::begin("s23v").await;
    let label = "s23v.example/driver-upgrade-state";
    let (one, two) = (play.node("a", "any", json!({})).await, play.node("b", "any", json!({})).await);
    let grants = json!({"read": [read("", "Node", &["metadata.name", "metadata.labels"])]});
    let plugin = play.plugin("upgrade-veto", json!({"config": {"label": label}, "grants": grants})).await;
    two_states(&play, "").await;
    play.label(&one, json!({label: "drain-required"})).await;
    // Nothing is held but an upgrade.
    play.own(json!({"plugins": {"hooks": [plugin]}})).await;
    play.ready().await;
    play.label(&two, json!({label: "pod-restart-required"})).await;
    play.own(json!({"plugins": {"hooks": [plugin]}, "set": values("second")["set"]})).await;
    play.blocked("DriverUpgradeActive", &[&one, "drain-required"]).await;
    play.blocked("DriverUpgradeActive", &[&two, "pod-restart-required"]).await;
    let text = async |name: &str| play.stage.read("ConfigMap", name).await.unwrap()["data"]["text"].clone();
    assert_eq!((text("first").await, text("second").await), (json!("first"), json!("first")));
    play.label(&one, json!({label: "upgrade-done"})).await;
    play.label(&two, json!({label: null})).await;
    play.ready().await;
    assert_eq!((text("first").await, text("second").await), (json!("second"), json!("second")));
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s17_labels_follow_what_a_node_is_for_and_those_of_others_stay() {
    let mut told = Reconciled::begin("s17v").await;
    let other = json!({"vendor.example/other": "theirs"});
    let one = told.play.node("a", "any", other).await;
    let two = told.play.node("b", "any", json!({"vendor.example/workload": "vm-passthrough"})).await;
    let operands =
        ["driver", "toolkit", "device-plugin", "exporter", "vfio-manager", "sandbox-device-plugin"];
    let fields = operands.map(|operand| format!("metadata.labels.vendor\\.example/deploy\\.{operand}"));
    let grants = json!({
        "read": [read("", "Node", &["metadata.name", "metadata.labels"])],
        "parts": [{"apiGroups": [""], "kinds": ["Node"], "fields": fields}]
    });
    told.install("deploy-labels", json!({"nodeSelector": {LABEL: "s17v"}}), grants).await;
    let shows = async |node: &str, wanted: Value| {
        let mut last = Value::Null;
        let is_so = async |stage: &Stage| {
            let node = stage.read("Node", node).await?;
            let labels = node["metadata"]["labels"].as_object().cloned().unwrap_or_default();
            let ours = labels.iter().filter_map(|(label, value)| {
                Some((label.strip_prefix("vendor.example/deploy.")?.to_owned(), value.clone()))
            });
            last = Value::Object(ours.collect());
            Ok(last == wanted)
        };
        let shown = told.play.stage.eventually(&format!("{node} has {wanted}"), is_so).await;
        shown.unwrap_or_else(|err| panic!("{err:#}: {last}"));
    };
    let all = json!({"driver": "true", "toolkit": "true", "device-plugin": "true", "exporter": "true"});
    shows(&one, all.clone()).await;
    shows(&two, json!({"vfio-manager": "true", "sandbox-device-plugin": "true"})).await;
    // Somebody pauses an operand, while the other node becomes one for containers.
    told.play.label(&one, json!({"vendor.example/deploy.driver": "paused"})).await;
    told.play.label(&two, json!({"vendor.example/workload": null})).await;
    shows(&two, all.clone()).await;
    let mut paused = all.clone();
    paused["driver"] = json!("paused");
    shows(&one, paused).await;
    told.play.label(&one, json!({"vendor.example/deploy.driver": ""})).await;
    shows(&one, all).await;
    told.engines.delete("one", &DeleteParams::default()).await.unwrap();
    for node in [&one, &two] {
        shows(node, json!({})).await;
    }
    let node = told.play.stage.read("Node", &one).await.unwrap();
    assert_eq!(node["metadata"]["labels"]["vendor.example/other"], "theirs");
    let watches: Api<pintle_api::Watch> = Api::all(told.play.stage.client.clone());
    watches.delete("s17v", &DeleteParams::default()).await.unwrap();
    told.play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s26_a_broken_node_is_closed_so_often_in_a_window_also_by_the_next_operator() {
    let mut told = Reconciled::begin("s26v").await;
    let node = told.play.node("a", "any", json!({})).await;
    let grants = json!({
        "read": [read("", "Node", &["metadata.name", "metadata.labels"])],
        "actions": [{"verbs": ["cordon"], "apiGroups": [""], "kinds": ["Node"]}]
    });
    told.install("node-recovery", json!({"nodeSelector": {LABEL: "s26v"}, "most": 2}), grants).await;
    told.tells(&["\"Ready\"", "True"]).await;
    let mark = told.play.stage.mark().await.unwrap();
    let breaks = "vendor.example/card-broken";
    for fault in ["first", "second"] {
        told.play.label(&node, json!({breaks: fault})).await;
        let is_closed = async |stage: &Stage| {
            Ok(stage.read("Node", &node).await?["spec"]["unschedulable"] == json!(true))
        };
        told.play.stage.eventually("the node is closed", is_closed).await.unwrap();
        told.tells(&[&format!("its card is broken ({fault})")]).await;
        told.play.stage.edit("Node", &node, json!({"spec": {"unschedulable": null}})).await.unwrap();
    }
    told.play.stage.stop_operator().await.unwrap();
    told.play.stage.start();
    told.play.label(&node, json!({breaks: "third"})).await;
    told.tells(&["it was recovered 2 times within 60 minutes already"]).await;
    let writes = told.play.stage.writes_since(mark).await.unwrap();
    let cordons =
        writes.iter().filter(|write| object_of(write) == format!("nodes {node}") && write.verb == "patch");
    assert_eq!(cordons.count(), 2);
    told.end().await;
}
