//! Custom readiness: an event of what a plugin read asks it again, and its words are those in the status.

use std::time::{Duration, Instant};

use kube::api::DeleteParams;
use pintle_dev::simulate::Line;
use pintle_tests::Stage;
use serde_json::{Value, json};

use super::play::{LABEL, Play, condition, read};

const AFTER: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: after\n";

/// A DaemonSet of the nodes with label `place`, gated by a term.
fn daemon_set(wait: &str, strategy: &str, place: &str) -> String {
    let wait = wait.replace('"', "\\\"");
    format!(
        r#"apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: agent
  annotations:
    pintle.dev/wait: "{wait}"
spec:
  updateStrategy: {{type: {strategy}}}
  selector:
    matchLabels: {{app: agent}}
  template:
    metadata:
      labels: {{app: agent}}
    spec:
      nodeSelector:
        {place}: "yes"
        {{{{- with .Values.place }}}}
        {{{{ . }}}}: "yes"
        {{{{- end }}}}
      containers:
        - {{name: main, image: "registry.example/agent:{{{{ .Values.version | default "1" }}}}"}}
"#
    )
}

async fn rollout(play: &mut Play) -> String {
    let namespaces = json!(["$release"]);
    let pod = [
        "metadata.name",
        "metadata.labels",
        "spec.nodeName",
        "metadata.deletionTimestamp",
        "status.containerStatuses",
    ];
    let revision = ["metadata.labels", "revision", "data"];
    let mut grants = [read("", "Pod", &pod), read("apps", "ControllerRevision", &revision)];
    grants.iter_mut().for_each(|grant| grant["namespaces"] = namespaces.clone());
    play.plugin("daemonset-rollout", json!({"grants": {"read": grants}})).await
}

async fn install(play: &Play, first: &str) {
    play.chart(&[], &[("templates/0000-first.yaml", first), ("templates/1000-after.yaml", AFTER)]).await;
}

async fn has_after(stage: &Stage) -> bool {
    stage.find("ConfigMap", "after").await.unwrap().is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn s1_a_module_is_waited_for_on_every_node_with_a_mapping_and_the_other_is_named() {
    let mut play = Play::begin("s1").await;
    let modules = play.kind("kmm.sigs.x-k8s.io", "v1beta1", "Module").await;
    let (one, two) = (play.node("a", "any", json!({})).await, play.node("b", "any", json!({})).await);
    let other = play.node("c", "any", json!({})).await;
    let kernel = json!({"nodeInfo": {"kernelVersion": "6.1.0-odd"}});
    play.tell(&play.stage.of_kind("Node"), &other, kernel).await;
    let fields = ["metadata.name", "metadata.labels", "status.nodeInfo.kernelVersion"];
    let grants = json!({"read": [read("", "Node", &fields)]});
    let plugin = play.plugin("kmm-module-loaded", json!({"grants": grants})).await;
    let module = format!(
        "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata:\n  name: gpu\n  annotations:\n    pintle.dev/wait: {plugin}\nspec:\n  selector: {{{LABEL}: s1}}\n  moduleLoader:\n    container:\n      version: \"2\"\n      kernelMappings:\n        - {{regexp: '^5\\.14\\..*$', containerImage: registry.example/gpu}}\n"
    );
    install(&play, &module).await;
    play.own(json!({})).await;
    play.blocked("KernelNotMapped", &[&other, "kernel 6.1.0-odd has no mapping"]).await;
    let owner = play.blocked("ModuleNotLoaded", &[&two, "gpu is not loaded yet"]).await;
    let loaded = condition(&owner, &format!("{plugin}/Loaded")).unwrap();
    assert_eq!(
        (loaded.status.as_str(), loaded.message.as_str()),
        ("False", "0/2 nodes, 1 without a mapping for their kernel")
    );
    assert!(!has_after(&play.stage).await);

    let label = |version: &str| json!({"kmm.node.kubernetes.io/s1.gpu.ready": "", "kmm.node.kubernetes.io/s1.gpu.version.ready": version});
    play.label(&one, label("2")).await;
    play.label(&two, label("1")).await;
    play.blocked("OtherVersionLoaded", &[&two, "version 1 of gpu is loaded, 2 is wanted"]).await;
    play.label(&two, label("2")).await;
    let began = Instant::now();
    let owner = play.ready().await;
    assert!(began.elapsed() < Duration::from_secs(2), "an event, not a pause: {:?}", began.elapsed());
    let loaded = condition(&owner, &format!("{plugin}/Loaded")).unwrap();
    assert_eq!(
        (loaded.status.as_str(), loaded.message.as_str()),
        ("True", "2/2 nodes, 1 without a mapping for their kernel")
    );
    assert!(has_after(&play.stage).await);
    drop(modules);
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s2_s4_an_on_delete_rollout_is_waited_for_and_another_selector_for_the_same_nodes_does_not_hang() {
    let mut play = Play::begin("s2").await;
    play.label("worker-2", json!({"s2-place": "yes", "s2-other": "yes"})).await;
    let plugin = rollout(&mut play).await;
    install(&play, &daemon_set(&plugin, "OnDelete", "s2-place")).await;
    play.own(json!({"set": {"version": "1"}})).await;
    play.ready().await;
    assert!(has_after(&play.stage).await);

    // A new template: whoever deletes the old pod is who it waits for.
    play.own(json!({"set": {"version": "2"}})).await;
    let pod = play.stage.names("Pod").await.unwrap().remove(0);
    play.blocked("PodOutdated", &["worker-2", &format!("delete pod {pod} to update it")]).await;
    let pods = play.stage.of_kind("Pod");
    pods.delete(&pod, &DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() })
        .await
        .unwrap();
    play.ready().await;

    // The same node with another selector: nobody deletes a pod for that.
    play.own(json!({"set": {"version": "2", "place": "s2-other"}})).await;
    let is_selected = async |stage: &Stage| {
        let set = stage.read("DaemonSet", "agent").await?;
        Ok(set["spec"]["template"]["spec"]["nodeSelector"]["s2-other"] == "yes")
    };
    play.stage.eventually("the selector is applied", is_selected).await.unwrap();
    play.ready().await;
    play.label("worker-2", json!({"s2-place": null, "s2-other": null})).await;
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_a_daemon_set_without_nodes_is_ready_or_not_as_its_annotation_says() {
    let mut play = Play::begin("s3").await;
    let plugin = rollout(&mut play).await;
    install(&play, &daemon_set(&format!("builtin && {plugin}(emptyIsReady=false)"), "OnDelete", "s3-place"))
        .await;
    play.own(json!({})).await;
    play.blocked("NoNodes", &["no node matches the DaemonSet, and emptyIsReady is false"]).await;
    assert!(!has_after(&play.stage).await);
    // What the annotation says is no config: the same plugin takes another object as ready.
    install(&play, &daemon_set(&plugin, "OnDelete", "s3-place")).await;
    play.ready().await;
    assert!(has_after(&play.stage).await);
    // An argument that the plugin does not take is refused by its path.
    install(&play, &daemon_set(&format!("{plugin}(emptyIsReady=3)"), "OnDelete", "s3-place")).await;
    play.blocked("InvalidArguments", &["/emptyIsReady: "]).await;
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s6_a_device_plugin_is_registered_once_each_of_its_nodes_offers_devices() {
    let mut play = Play::begin("s6").await;
    let nodes = [play.node("a", "any", json!({})).await, play.node("b", "any", json!({})).await];
    let fields = ["metadata.labels", "spec.unschedulable", "status.allocatable"];
    let grants = json!({"read": [read("", "Node", &fields)]});
    let config = json!({"nodeSelector": {LABEL: "s6"}});
    let plugin = play.plugin("device-plugin-registered", json!({"config": config, "grants": grants})).await;
    let wait = format!(r#"{plugin}(resource="scenario.example/card")"#);
    install(&play, &daemon_set(&wait, "RollingUpdate", "s6-place")).await;
    play.own(json!({})).await;
    for node in &nodes {
        play.blocked("NotRegistered", &[node, "the node offers no scenario.example/card"]).await;
    }
    let api = play.stage.of_kind("Node");
    let offer = |count: &str| json!({"allocatable": {"scenario.example/card": count}, "capacity": {"scenario.example/card": count}});
    play.tell(&api, &nodes[0], offer("2")).await;
    play.tell(&api, &nodes[1], offer("0")).await;
    play.blocked("NotRegistered", &[&nodes[1]]).await;
    play.tell(&api, &nodes[1], offer("1")).await;
    play.ready().await;
    assert!(has_after(&play.stage).await);
    play.end().await;
}

/// `peer-ready` with these peers, which it may read.
async fn peer_ready(play: &mut Play, peers: Value, kinds: &[&str]) -> String {
    let grants = json!({"read": [
        {"apiGroups": ["scenario.example"], "kinds": kinds},
        read("", "Node", &["metadata.name"]),
        {"apiGroups": ["apps"], "kinds": ["DaemonSet"]}
    ]});
    play.plugin("peer-ready", json!({"config": {"peers": peers}, "grants": grants})).await
}

fn gated_map(wait: &str) -> String {
    let wait = wait.replace('"', "\\\"");
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: gate\n  annotations:\n    pintle.dev/wait: \"{wait}\"\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_the_network_driver_is_waited_for_only_where_a_node_has_such_a_card() {
    let mut play = Play::begin("s7").await;
    let card = "feature.node.kubernetes.io/pci-15b3.present-s7";
    let peers = json!({"mofed": {
        "apiVersion": "scenario.example/v1", "kind": "NicClusterPolicy", "name": "policy",
        "fields": {"status.state": "ready"}, "nodeLabels": {card: "true"}, "daemonSet": "mofed"
    }});
    let plugin = peer_ready(&mut play, peers, &["NicClusterPolicy"]).await;
    install(&play, &gated_map(&format!(r#"{plugin}(peer="mofed")"#))).await;
    // No node has the card, and nobody installed the operator for it: not applicable.
    play.own(json!({})).await;
    play.ready().await;
    let policies = play.kind("scenario.example", "v1", "NicClusterPolicy").await;
    play.node("a", "any", json!({card: "true"})).await;
    play.blocked("PeerMissing", &["mofed: it is not there yet"]).await;
    let policy = json!({"apiVersion": "scenario.example/v1", "kind": "NicClusterPolicy",
        "metadata": {"name": "policy", "namespace": "s7"}});
    play.stage.apply(policy).await.unwrap();
    play.blocked("PeerNotReady", &[r#"\"ready\" is wanted"#]).await;
    // The DaemonSet is looked at where it is present.
    let set = daemon_set("none", "RollingUpdate", "s7-place").replace("name: agent\n", "name: mofed\n");
    let set =
        set.replace("        {{- with .Values.place }}\n        {{ . }}: \"yes\"\n        {{- end }}\n", "");
    let mut set: Value =
        serde_yaml::from_str(&set.replace("{{ .Values.version | default \"1\" }}", "1")).unwrap();
    set["metadata"]["namespace"] = json!("s7");
    set["metadata"]["annotations"] = Value::Null;
    play.stage.apply(set).await.unwrap();
    play.tell(&policies, "policy", json!({"state": "ready"})).await;
    play.ready().await;
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s8_the_line_is_found_in_the_whole_log_of_the_container_on_every_pod() {
    let mut play = Play::begin("s8").await;
    let simulators = pintle_tests::stage::plane().await.unwrap().simulators().unwrap();
    simulators.logs().rule(|container| {
        if container.namespace != "s8" {
            return None;
        }
        // Thousands of bytes follow what is waited for; the other container never says it.
        let mut lines = vec![Line::now("begin")];
        if container.name == "driver" {
            lines.push(Line::now("insmod gpu.ko"));
        }
        lines.extend((0..150).map(|n| Line::now(format!("{n}: a line of noise that says nothing at all"))));
        Some(lines)
    });
    for node in ["worker-0", "worker-1"] {
        play.label(node, json!({"s8-place": "yes"})).await;
    }
    let mut pods = read("", "Pod", &["metadata.name", "spec.nodeName", "status"]);
    pods["namespaces"] = json!(["$release"]);
    let grants = json!({"read": [pods], "logs": [{"namespaces": ["$release"]}]});
    let config = |container: &str| json!({"container": container, "lines": 1000, "loaded": ["insmod *.ko"]});
    let plugin = play.plugin("driver-loaded", json!({"config": config("main"), "grants": grants})).await;
    let set = daemon_set(&plugin, "RollingUpdate", "s8-place");
    let other = "        - {name: driver, image: registry.example/driver:1}\n";
    install(&play, &format!("{set}{other}")).await;
    play.own(json!({})).await;
    let owner = play.blocked("DriverNotLoaded", &["worker-0"]).await;
    let nodes = super::play::blockers(&owner).into_iter().filter_map(|blocker| blocker.node);
    let mut nodes: Vec<_> = nodes.collect();
    nodes.sort();
    assert_eq!(nodes, ["worker-0", "worker-1"], "every pod is waited for");
    play.plugin("driver-loaded", json!({"config": config("driver"), "grants": grants})).await;
    play.ready().await;
    for node in ["worker-0", "worker-1"] {
        play.label(node, json!({"s8-place": null})).await;
    }
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s27_the_next_daemon_waits_until_storage_is_healthy_and_says_why_it_is_not() {
    let mut play = Play::begin("s27").await;
    let clusters = play.kind("scenario.example", "v1", "CephCluster").await;
    let peers = json!({"storage": {
        "apiVersion": "scenario.example/v1", "kind": "CephCluster", "name": "main",
        "fields": {"status.health": "HEALTH_OK", "status.monQuorum": "3/3"}, "says": "status.details"
    }});
    let plugin = peer_ready(&mut play, peers, &["CephCluster"]).await;
    install(&play, &gated_map(&format!(r#"{plugin}(peer="storage")"#))).await;
    let cluster = json!({"apiVersion": "scenario.example/v1", "kind": "CephCluster",
        "metadata": {"name": "main", "namespace": "s27"}});
    play.stage.apply(cluster).await.unwrap();
    let ill = json!({"health": "HEALTH_WARN", "monQuorum": "3/3", "details": "12 pgs degraded"});
    play.tell(&clusters, "main", ill).await;
    play.own(json!({})).await;
    play.blocked("PeerNotReady", &["status.health is", "HEALTH_WARN", "it says: 12 pgs degraded"]).await;
    assert!(!has_after(&play.stage).await);
    play.tell(&clusters, "main", json!({"health": "HEALTH_OK", "details": ""})).await;
    play.ready().await;
    assert!(has_after(&play.stage).await);
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_is_revoked_while_somebody_waits_is_named_and_ends_the_reading() {
    let mut play = Play::begin("revoked").await;
    let node = play.node("a", "any", json!({})).await;
    let fields = ["metadata.labels", "spec.unschedulable", "status.allocatable"];
    let config = json!({"nodeSelector": {LABEL: "revoked"}, "resources": ["scenario.example/card"]});
    let spec = |grants: Value| json!({"config": config, "grants": grants});
    let granted = json!({"read": [read("", "Node", &fields)]});
    let plugin = play.plugin("device-plugin-registered", spec(granted.clone())).await;
    install(&play, &daemon_set(&plugin, "RollingUpdate", "revoked-place")).await;
    play.own(json!({})).await;
    play.blocked("NotRegistered", &[&node]).await;
    play.plugin("device-plugin-registered", spec(json!({"read": []}))).await;
    play.blocked("PluginFailed", &["spec.grants.read of Plugin", &plugin]).await;
    assert!(!has_after(&play.stage).await);
    play.plugin("device-plugin-registered", spec(granted)).await;
    play.blocked("NotRegistered", &[&node]).await;
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_config_of_a_plugin_is_held_against_its_schema() {
    let mut play = Play::begin("config-schema").await;
    let config = json!({"resources": ["a"], "least": 0});
    let plugin = play.plugin("device-plugin-registered", json!({"config": config})).await;
    let refused = async |stage: &Stage| {
        let plugin = stage.read("Plugin", &plugin).await?;
        let ready = plugin["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = ready.into_iter().find(|condition| condition["type"] == "Ready").unwrap_or_default();
        let text = ready["message"].as_str().unwrap_or_default();
        Ok(ready["reason"] == "InvalidConfig" && text.contains("/least: "))
    };
    play.stage.eventually("the Plugin says InvalidConfig with the path", refused).await.unwrap();
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_is_kept_for_nobody_else_is_there_for_the_plugin_it_is_granted_to() {
    let mut play = Play::begin("granted-field").await;
    let node = play.node("a", "any", json!({})).await;
    let fields = ["metadata.generation", "status.observedGeneration", "status.conditions"];
    let grants = json!({"read": [read("", "Node", &fields)]});
    let plugin = play.plugin("wait-for", json!({"grants": grants})).await;
    let wait = format!(
        "{plugin}(apiVersion=\"v1\", kind=\"Node\", name=\"{node}\", namespace=\"\", condition=\"Racked\")"
    );
    let first = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: first\n  annotations:\n    pintle.dev/wait: '{wait}'\n"
    );
    install(&play, &first).await;
    play.own(json!({})).await;
    play.blocked("ConditionMissing", &["has no condition Racked yet"]).await;
    let nodes = play.stage.of_kind("Node");
    let racked = |status: &str| json!({"type": "Racked", "status": status, "message": "on a pallet"});
    play.tell(&nodes, &node, json!({"conditions": [racked("False")]})).await;
    play.blocked("ConditionNotMet", &["on a pallet"]).await;
    play.tell(&nodes, &node, json!({"conditions": [racked("True")]})).await;
    play.ready().await;
    assert!(has_after(&play.stage).await);
    play.end().await;
}
