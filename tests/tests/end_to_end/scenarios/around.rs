//! Plugins around states: what they hold, own, have done and keep, each once, whatever becomes of the operator.

use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use pintle_tests::{
    Stage,
    requests::{creations, object_of, told},
};
use serde_json::{Value, json};

use super::play::{Play, read};

/// Reason and message of a line that holds.
fn hold(message: &str) -> Value {
    json!({"does": "hold", "reason": "Held", "message": message})
}

/// What the scripted hook does from now on, by phase, or by operation and phase.
pub(crate) async fn script(stage: &Stage, lines: &[(&str, Value)]) {
    let data: serde_json::Map<_, _> =
        lines.iter().map(|(phase, line)| ((*phase).to_owned(), json!(line.to_string()))).collect();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": "script", "namespace": stage.name}});
    stage.apply(map).await.unwrap();
}

/// What the operator may do besides, for its plugins.
pub(super) async fn grant_rights(stage: &Stage) {
    let verbs = ["get", "list", "watch", "create", "patch", "delete"];
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "test-around", "labels": {"pintle.dev/aggregate-to-operator": "true"}},
        "rules": [
            {"apiGroups": [""], "resources": ["pods", "configmaps"], "verbs": verbs},
            {"apiGroups": ["build.openshift.io"], "resources": ["builds", "buildconfigs"], "verbs": verbs}
        ]
    });
    stage.apply(role).await.unwrap();
}

/// What the scripted hook is granted in its scenarios.
pub(super) fn grants() -> Value {
    let here = json!(["$release"]);
    let node = ["metadata.name", "metadata.labels"];
    let mut script = read("", "ConfigMap", &["data"]);
    script["namespaces"] = here.clone();
    json!({
        "read": [script, read("", "Node", &node)],
        "objects": [{"apiGroups": [""], "kinds": ["Pod"], "namespaces": here}],
        "parts": [{"apiGroups": [""], "kinds": ["Node"],
                   "fields": ["metadata.labels.vendor\\.example/deploy"]}],
        "actions": [
            {"verbs": ["evict", "delete"], "apiGroups": [""], "kinds": ["Pod"], "namespaces": here},
            {"verbs": ["cordon", "uncordon"], "apiGroups": [""], "kinds": ["Node"]}
        ]
    })
}

async fn begin(name: &str) -> (Play, String) {
    let mut play = Play::begin(name).await;
    grant_rights(&play.stage).await;
    let plugin = play.plugin("scripted-hook", json!({"grants": grants()})).await;
    (play, plugin)
}

fn map(name: &str, annotations: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  annotations: {{{annotations}}}\n\
         data: {{text: {{{{ .Values.text | default \"first\" | quote }}}}}}\n"
    )
}

/// Two states; the first has the annotations.
pub(super) async fn two_states(play: &Play, annotations: &str) {
    let (first, second) = (map("first", annotations), map("second", ""));
    let files = [("templates/0000-first.yaml", &*first), ("templates/1000-second.yaml", &*second)];
    play.chart(&[], &files).await;
}

pub(super) fn values(text: &str) -> Value {
    json!({"set": {"kind": "Values", "apiVersion": "sro.openshift.io/v1beta1", "text": text}})
}

fn pod(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.test/check:1"}]}})
}

pub(super) async fn has(stage: &Stage, kind: &str, name: &str) -> bool {
    let found = stage.find(kind, name).await.unwrap();
    found.is_some_and(|object| object["metadata"]["deletionTimestamp"].is_null())
}

/// Ends a pod as its kubelet would, once it runs.
pub(super) async fn ends(stage: &Stage, pod: &str, phase: &str) {
    let has_begun = async |stage: &Stage| {
        let pod = stage.read("Pod", pod).await?;
        Ok(pod["status"]["phase"].as_str().is_some_and(|phase| phase != "Pending"))
    };
    stage.eventually("the pod runs", has_begun).await.unwrap();
    let patch = Patch::Merge(json!({"status": {"phase": phase}}));
    stage.of_kind("Pod").patch_status(pod, &PatchParams::default(), &patch).await.unwrap();
}

async fn gone(stage: &Stage) {
    let is_gone = async |stage: &Stage| Ok(stage.find("SpecialResource", &stage.name).await?.is_none());
    if let Err(err) = stage.eventually("the owner is gone", is_gone).await {
        panic!("{err:#}: {:#}", stage.read("SpecialResource", &stage.name).await.unwrap()["status"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s5_pods_validate_a_state_once_also_when_another_operator_takes_over() {
    let (mut play, plugin) = begin("s5").await;
    let mark = play.stage.mark().await.unwrap();
    let line = json!({"does": "validated", "want": {
        "a": pod("s5", "validator-a"), "b": pod("s5", "validator-b")}});
    script(&play.stage, &[("post", line)]).await;
    two_states(&play, &format!("pintle.dev/post: {plugin}")).await;
    play.own(json!({})).await;
    play.blocked("Validating", &["b has not finished"]).await;
    assert!(has(&play.stage, "Pod", "validator-a").await && has(&play.stage, "Pod", "validator-b").await);
    assert!(!has(&play.stage, "ConfigMap", "second").await);
    let validator = play.stage.read("Pod", "validator-a").await.unwrap();
    assert_eq!(validator["metadata"]["ownerReferences"][0]["name"], "s5");

    play.stage.kill_operator().await;
    play.stage.start();
    ends(&play.stage, "validator-a", "Succeeded").await;
    ends(&play.stage, "validator-b", "Failed").await;
    play.blocked("ValidationFailed", &["b has failed"]).await;
    ends(&play.stage, "validator-b", "Succeeded").await;
    play.ready().await;
    assert!(has(&play.stage, "ConfigMap", "second").await);
    let are_gone = async |stage: &Stage| {
        Ok(!has(stage, "Pod", "validator-a").await && !has(stage, "Pod", "validator-b").await)
    };
    play.stage.eventually("what the hook owned goes with its go", are_gone).await.unwrap();
    let writes = play.stage.writes_since(mark).await.unwrap();
    let twice: Vec<_> = creations(&writes).into_iter().filter(|(_, count)| *count != 1).collect();
    assert!(twice.is_empty(), "{twice:?}\n{}", told(&writes));
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s23_an_upgrade_is_vetoed_with_a_reason_a_person_can_read_and_goes_on_by_an_event() {
    let (play, plugin) = begin("s23").await;
    two_states(&play, "").await;
    let veto = "node worker-1 is still upgrading its driver; wait until it is done";
    script(&play.stage, &[("upgrade-pre", hold(veto))]).await;
    play.own(json!({"plugins": {"hooks": [plugin]}})).await;
    play.ready().await;
    play.own(json!({"plugins": {"hooks": [plugin]}, "set": values("second")["set"]})).await;
    let held = play.blocked("Held", &[veto]).await;
    assert!(held.status.unwrap().state.contains(veto));
    let text = async |name: &str| play.stage.read("ConfigMap", name).await.unwrap()["data"]["text"].clone();
    assert_eq!((text("first").await, text("second").await), (json!("first"), json!("first")));
    script(&play.stage, &[]).await;
    play.ready().await;
    assert_eq!((text("first").await, text("second").await), (json!("second"), json!("second")));
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_is_left_out_for_one_revision_and_the_others_go_on() {
    let (play, plugin) = begin("leaves-out").await;
    let line = json!({"does": "leave-out", "message": "no such card in this cluster"});
    script(&play.stage, &[("pre", line)]).await;
    two_states(&play, &format!("pintle.dev/pre: {plugin}")).await;
    play.own(json!({})).await;
    let owner = play.ready().await;
    assert!(!has(&play.stage, "ConfigMap", "first").await && has(&play.stage, "ConfigMap", "second").await);
    assert_eq!(owner.status.unwrap().states[0].deferred, 1);
    let is_told = async |stage: &Stage| {
        let events = stage.of_kind_in("Event", "default").list(&ListParams::default()).await?;
        Ok(events.iter().any(|event| {
            event.data["reason"] == "StateLeftOut"
                && event.data["regarding"]["name"] == "leaves-out"
                && event.data["note"].as_str().is_some_and(|note| note.contains("no such card"))
        }))
    };
    play.stage.eventually("an event says why", is_told).await.unwrap();
    script(&play.stage, &[]).await;
    play.own(values("second")).await;
    let is_there = async |stage: &Stage| Ok(has(stage, "ConfigMap", "first").await);
    play.stage.eventually("the next revision has the state", is_there).await.unwrap();
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s17_labels_of_nodes_are_set_and_given_up_and_the_node_is_never_deleted() {
    let (mut play, plugin) = begin("s17").await;
    let node = play.node("a", "any", json!({"vendor.example/other": "theirs"})).await;
    let part = |value: &str| {
        json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": node, "labels": {"vendor.example/deploy": value}}})
    };
    let line = |value: &str| {
        let mut line = hold("labels are on");
        line["parts"] = json!({"a": part(value)});
        line
    };
    script(&play.stage, &[("post", line("true"))]).await;
    two_states(&play, &format!("pintle.dev/post: {plugin}")).await;
    play.own(json!({})).await;
    let labels = async |stage: &Stage| {
        let node = stage.read("Node", &node).await.unwrap();
        [
            &node["metadata"]["labels"]["vendor.example/deploy"],
            &node["metadata"]["labels"]["vendor.example/other"],
        ]
        .map(Clone::clone)
    };
    let has_label = async |stage: &Stage, value: &Value| {
        let value = value.clone();
        let holds = async |stage: &Stage| Ok(labels(stage).await == [value.clone(), json!("theirs")]);
        stage.eventually(&format!("the label is {value}"), holds).await.unwrap();
    };
    has_label(&play.stage, &json!("true")).await;
    script(&play.stage, &[("post", line("paused"))]).await;
    has_label(&play.stage, &json!("paused")).await;
    let wrong = json!({"does": "hold", "reason": "Held", "message": "m", "parts": {"a": {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": {"vendor.example/other": "ours"}}}}});
    script(&play.stage, &[("post", wrong)]).await;
    play.blocked("PluginAnswerInvalid", &["vendor\\\\.example/other"]).await;
    script(&play.stage, &[]).await;
    play.ready().await;
    has_label(&play.stage, &Value::Null).await;
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s26_a_node_is_recovered_a_bounded_number_of_times_also_by_the_next_operator() {
    let (mut play, plugin) = begin("s26").await;
    let node = play.node("a", "any", json!({})).await;
    let line = json!({"does": "remediate", "most": 2, "reason": "Held", "message": "watching"});
    script(&play.stage, &[("post", line)]).await;
    two_states(&play, &format!("pintle.dev/post: {plugin}")).await;
    play.own(json!({})).await;
    play.blocked("Held", &["watching"]).await;
    let mark = play.stage.mark().await.unwrap();
    let cordoned = async |wanted: bool| {
        let is_so = async |stage: &Stage| {
            Ok((stage.read("Node", &node).await?["spec"]["unschedulable"] == json!(true)) == wanted)
        };
        play.stage.eventually(&format!("cordoned: {wanted}"), is_so).await.unwrap();
    };
    let uncordon = async || {
        play.stage.edit("Node", &node, json!({"spec": {"unschedulable": null}})).await.unwrap();
    };
    play.label(&node, json!({"needs-recovery": "one"})).await;
    cordoned(true).await;
    uncordon().await;
    play.label(&node, json!({"needs-recovery": "two"})).await;
    cordoned(true).await;
    uncordon().await;
    let cordons = async |stage: &Stage| {
        let writes = stage.writes_since(mark).await.unwrap();
        writes.iter().filter(|write| object_of(write).starts_with("nodes ") && write.verb == "patch").count()
    };
    assert_eq!(cordons(&play.stage).await, 2);
    play.stage.stop_operator().await.unwrap();
    play.stage.start();
    play.label(&node, json!({"needs-recovery": "three"})).await;
    play.blocked("RecoveryDenied", &[&node, "was recovered 2 times already"]).await;
    assert_eq!(cordons(&play.stage).await, 2);
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eviction_waits_for_its_right_and_for_its_budget_and_is_done_once() {
    let (play, plugin) = begin("evicts").await;
    let stage = &play.stage;
    let mut user = pod("evicts", "user");
    user["metadata"]["labels"] = json!({"app": "user"});
    stage.apply(user).await.unwrap();
    let is_running =
        async |stage: &Stage| Ok(stage.read("Pod", "user").await?["status"]["phase"] == "Running");
    stage.eventually("the pod runs", is_running).await.unwrap();
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "budget", "namespace": "evicts"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "user"}}}});
    stage.apply(budget).await.unwrap();
    let action = json!({"key": "evict-user", "verb": "evict", "apiVersion": "v1", "kind": "Pod",
        "namespace": "evicts", "name": "user"});
    script(stage, &[("pre", json!({"does": "go", "actions": [action]}))]).await;
    two_states(&play, &format!("pintle.dev/pre: {plugin}")).await;
    play.own(json!({})).await;
    play.blocked("Forbidden", &["pods/eviction", "create"]).await;
    assert!(!has(stage, "ConfigMap", "first").await, "the hook said go, and its deed is not done");
    let role = include_str!("../../../../deploy/example/evictions/rbac.yaml");
    stage.apply(serde_yaml::from_str(role).unwrap()).await.unwrap();
    play.blocked("DisruptionBudget", &["user"]).await;
    assert!(has(stage, "Pod", "user").await && !has(stage, "ConfigMap", "first").await);
    let budgets = stage.api("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets");
    let mark = stage.mark().await.unwrap();
    budgets.delete("budget", &DeleteParams::default()).await.unwrap();
    play.ready().await;
    assert!(!has(stage, "Pod", "user").await);
    let evictions = stage.writes_since(mark).await.unwrap();
    let done = evictions.iter().filter(|write| write.code == 201 && write.resource == "pods").count();
    assert_eq!(done, 1, "{}", told(&evictions));
    play.end().await;
}

fn daemon_set(name: &str, image: &str, annotations: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {name}
  annotations: {{{annotations}}}
spec:
  selector:
    matchLabels: {{app: {name}}}
  template:
    metadata:
      labels: {{app: {name}}}
    spec:
      containers: [{{name: main, image: {image}}}]
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn s22_workloads_go_one_after_another_and_each_waits_for_the_pods_of_the_one_before() {
    let mut play = Play::begin("s22").await;
    let order = json!([{"name": "$release-exporter"}, {"name": "$release-plugin"}]);
    let mut pods = read("", "Pod", &["metadata.name", "spec.nodeName"]);
    pods["namespaces"] = json!(["$release"]);
    let actions = json!([{"verbs": ["delete"], "apiGroups": ["apps"], "kinds": ["DaemonSet"],
        "namespaces": ["$release"]}]);
    let more = json!({"config": {"order": order}, "grants": {"read": [pods], "actions": actions}});
    let plugin = play.plugin("ordered-teardown", more).await;
    let wait = "pintle.dev/wait: builtin";
    // The reverse order of the states alone would let the exporter go last.
    let sets = ["s22-exporter", "s22-plugin"].map(|name| daemon_set(name, "registry.example/a:1", wait));
    let files = [("templates/0000-exporter.yaml", &*sets[0]), ("templates/1000-plugin.yaml", &*sets[1])];
    play.chart(&[("pintle.dev/hooks", &plugin)], &files).await;
    play.own(json!({})).await;
    play.ready().await;
    let mark = play.stage.mark().await.unwrap();
    play.stage.delete("SpecialResource", "s22").await.unwrap();
    gone(&play.stage).await;
    let writes = play.stage.writes_since(mark).await.unwrap();
    let deletes: Vec<_> = writes.iter().filter(|write| write.verb == "delete").map(object_of).collect();
    let at = |name: &str| deletes.iter().position(|delete| delete == &format!("daemonsets s22/{name}"));
    assert!(at("s22-exporter").unwrap() < at("s22-plugin").unwrap(), "{deletes:?}");
    let of_sets = deletes.iter().filter(|delete| delete.starts_with("daemonsets")).count();
    assert_eq!(of_sets, 2, "each is deleted once: {deletes:?}");
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s9_an_image_that_cannot_be_pulled_is_built_and_its_pods_start_again() {
    let mut play = Play::begin("s9").await;
    grant_rights(&play.stage).await;
    let mut pods = read("", "Pod", &["metadata.name", "metadata.labels", "status.containerStatuses"]);
    pods["namespaces"] = json!(["$release"]);
    let grants = json!({
        "read": [pods],
        "objects": [{"apiGroups": ["build.openshift.io"], "kinds": ["Build"], "namespaces": ["$release"]}],
        "actions": [{"verbs": ["delete"], "apiGroups": [""], "kinds": ["Pod"], "namespaces": ["$release"]}]
    });
    let plugin = play.plugin("build-on-pull-failure", json!({"grants": grants})).await;
    let stream = "apiVersion: image.openshift.io/v1\nkind: ImageStream\nmetadata:\n  name: driver\n";
    let config = "apiVersion: build.openshift.io/v1
kind: BuildConfig
metadata:
  name: driver-build
spec:
  triggers: []
  source: {dockerfile: FROM scratch}
  strategy: {dockerStrategy: {}}
  output: {to: {kind: ImageStreamTag, name: 'driver:1'}}
";
    let image = "image-registry.openshift-image-registry.svc:5000/s9/driver:1";
    let annotations = format!("pintle.dev/wait: builtin, pintle.dev/post: {plugin}");
    let state = format!("{config}---\n{}", daemon_set("driver", image, &annotations));
    let files = [("templates/0000-stream.yaml", stream), ("templates/1000-driver.yaml", &*state)];
    play.chart(&[], &files).await;
    let mark = play.stage.mark().await.unwrap();
    play.own(json!({})).await;
    play.ready().await;
    let writes = play.stage.writes_since(mark).await.unwrap();
    let builds = writes.iter().filter(|write| write.resource == "builds" && write.code == 201).count();
    assert_eq!(builds, 1, "{}", told(&writes));
    let is_tidy = async |stage: &Stage| Ok(stage.names("Build").await?.is_empty());
    play.stage.eventually("the Build goes once it is done", is_tidy).await.unwrap();
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_is_missing_at_deletion_is_waited_for_by_name_and_force_goes_without_it() {
    let (play, plugin) = begin("misses").await;
    let line = json!({"does": "hold", "reason": "Held", "message": "cleaning", "want": {
        "cleaner": pod("misses", "cleaner")}});
    script(&play.stage, &[("delete-pre", line)]).await;
    two_states(&play, "").await;
    play.own(json!({"plugins": {"hooks": [plugin]}})).await;
    play.ready().await;
    play.stage.delete("SpecialResource", "misses").await.unwrap();
    play.blocked("Held", &["cleaning"]).await;
    assert!(has(&play.stage, "Pod", "cleaner").await && has(&play.stage, "ConfigMap", "second").await);
    play.stage.delete("Plugin", &plugin).await.unwrap();
    play.blocked("PluginMissing", &[&plugin, "create a Plugin of that name"]).await;
    assert!(has(&play.stage, "ConfigMap", "second").await, "nothing goes before its hook said so");
    let force = json!({"metadata": {"annotations": {"pintle.dev/force-delete": "true"}}});
    play.stage.edit("SpecialResource", "misses", force).await.unwrap();
    gone(&play.stage).await;
    for (kind, name) in [("Pod", "cleaner"), ("ConfigMap", "first"), ("ConfigMap", "second")] {
        assert!(!has(&play.stage, kind, name).await, "{kind} {name}");
    }
    play.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_cannot_be_read_is_a_fault_of_the_chart_and_nothing_is_applied() {
    let (play, plugin) = begin("unread").await;
    two_states(&play, "pintle.dev/pre: Not A Plugin").await;
    play.own(json!({})).await;
    play.blocked("HookInvalid", &["pintle.dev/pre", "Not A Plugin"]).await;
    assert!(!has(&play.stage, "ConfigMap", "first").await);
    let files =
        [("templates/0000-first.yaml", &*map("first", ""))].map(|(path, text)| (path, text.to_owned()));
    play.chart(&[("pintle.dev/hooks", &format!("{plugin}("))], &[(files[0].0, &files[0].1)]).await;
    play.blocked("HookInvalid", &["Chart.yaml", "closing parenthesis"]).await;
    play.end().await;
}
