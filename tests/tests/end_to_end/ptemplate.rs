//! A Ptemplate becomes a Module and the pods that use it: by a chart with plugins, and by a plugin alone.

#[path = "ptemplate/both.rs"]
mod both;

use std::time::Duration;

use pintle::scenario;
use pintle_dev::simulate::kmm::Loading;
use pintle_tests::{
    Stage,
    requests::{object_of, told},
    stage::{plane, push_plugin},
};
use serde::Deserialize as _;
use serde_json::{Value, json};

/// How a Ptemplate is realised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Chart,
    Reconciler,
}

/// From the moment a node is eligible to the moment it has the module.
const LOAD: Duration = Duration::from_millis(700);
const NODES: [&str; 3] = ["worker-0", "worker-1", "worker-2"];

fn documents(path: &str) -> Vec<Value> {
    let path = scenario::source_tree().join("deploy/example/ptemplate").join(path);
    let text = std::fs::read_to_string(path).unwrap();
    serde_yaml::Deserializer::from_str(&text).map(|document| Value::deserialize(document).unwrap()).collect()
}

fn file(path: &str) -> Value {
    documents(path).remove(0)
}

/// Kinds, plugins, chart and Watch; every node has the label that the test's Ptemplates select.
async fn install(stage: &Stage, way: Way) {
    prepare(stage).await;
    watch(stage, if way == Way::Chart { "watch.yaml" } else { "watch-reconciler.yaml" }).await;
}

/// All but the Watch. A Module is loaded after [`LOAD`] in every namespace that begins with the test's name.
async fn prepare(stage: &Stage) {
    let plane = plane().await.unwrap();
    let kmm = plane.simulators().unwrap().kmm().await.unwrap();
    let namespace = stage.name.clone();
    kmm.rule(move |facts| {
        let devices = Some(("example.com/ptemplate".to_owned(), 100));
        facts.namespace.starts_with(&namespace).then_some(Loading { after: Some(LOAD), devices })
    });
    for node in NODES {
        stage.edit("Node", node, json!({"metadata": {"labels": {&*stage.name: "yes"}}})).await.unwrap();
    }
    for definition in ["crd.yaml", "crd-published.yaml"] {
        stage.apply(file(definition)).await.unwrap();
    }
    for mut plugin in documents("plugins.yaml") {
        let image = push_plugin(plane, plugin["metadata"]["name"].as_str().unwrap()).await.unwrap();
        plugin["spec"]["image"] = json!(image);
        stage.apply(plugin).await.unwrap();
    }
    stage.install_chart(&scenario::chart_folder("ptemplate")).await.unwrap();
}

async fn watch(stage: &Stage, path: &str) {
    let mut watch = file(path);
    let name = format!("{}-{}", stage.name, path.trim_end_matches(".yaml"));
    watch["metadata"] = json!({"name": name, "labels": {"test": stage.name}});
    watch["spec"]["selector"] = json!({"matchLabels": {"test": stage.name}});
    if watch["spec"]["chart"].is_object() {
        watch["spec"]["chart"]["repository"]["url"] = json!(format!("cm://{}/chart", stage.name));
    }
    stage.apply(watch).await.unwrap();
}

fn owner(stage: &Stage) -> Value {
    let mut owner = file("sample.yaml");
    owner["metadata"] = json!({"name": "pt", "namespace": stage.name, "labels": {"test": stage.name}});
    owner["spec"]["selector"] = json!({&*stage.name: "yes"});
    owner
}

async fn consumers(stage: &Stage, count: usize) {
    let told = async |stage: &Stage| {
        let owner = stage.read("Ptemplate", "pt").await?;
        Ok(owner["status"]["consumers"].as_array().is_some_and(|names| names.len() == count))
    };
    stage.eventually(&format!("{count} consumers are told"), told).await.unwrap();
}

async fn spec_of(stage: &Stage, kind: &str, name: &str, pointer: &str) -> Value {
    let found = stage.find(kind, name).await.unwrap().unwrap_or_default();
    found.pointer(pointer).cloned().unwrap_or_default()
}

async fn becomes(stage: &Stage, kind: &str, name: &str, pointer: &str, wanted: Value) {
    let what = format!("{kind} {name}{pointer} is {wanted}");
    let holds = async |stage: &Stage| Ok(spec_of(stage, kind, name, pointer).await == wanted);
    stage.eventually(&what, holds).await.unwrap();
}

async fn versions(stage: &Stage, kinds: [(&str, &str); 2]) -> Vec<Value> {
    let mut versions = Vec::new();
    for (kind, name) in kinds {
        versions.push(spec_of(stage, kind, name, "/metadata/resourceVersion").await);
    }
    versions
}

/// What the server and Pintle add differs; what was asked for may not.
async fn essence(stage: &Stage, kind: &str, name: &str) -> Value {
    let found = stage.read(kind, name).await.unwrap();
    let is_theirs = |key: &str| {
        !key.contains("pintle.dev/") && !key.contains("helm.sh/") && !key.contains("app.kubernetes.io/")
    };
    let labels = found["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    let labels: serde_json::Map<_, _> = labels.into_iter().filter(|(key, _)| is_theirs(key)).collect();
    let mut owner = found["metadata"]["ownerReferences"][0].clone();
    owner["uid"] = Value::Null;
    json!({"name": found["metadata"]["name"], "labels": labels, "owner": owner, "spec": found["spec"]})
}

async fn life(way: Way, name: &str) -> Vec<Value> {
    let mut stage = Stage::without_operator(name).await.unwrap();
    let begun = stage.mark_now().await.unwrap();
    stage.start();
    install(&stage, way).await;
    stage.apply(owner(&stage)).await.unwrap();
    consumers(&stage, NODES.len()).await;
    the_module_comes_first(&stage, begun).await;
    let objects =
        vec![essence(&stage, "Module", "pt").await, essence(&stage, "DaemonSet", "pt-consumer").await];
    nothing_changed_nothing_done(&stage).await;
    changes_reach_what_they_concern(&stage).await;
    edits_are_repaired(&stage).await;
    no_nodes_are_no_consumers(&stage).await;
    consumers_go_before_the_module(&stage).await;
    stage.stop_operator().await.unwrap();
    objects
}

/// T1, T18: one Module and one DaemonSet with their owner, the second once the first is loaded.
async fn the_module_comes_first(stage: &Stage, begun: pintle_dev::audit::Mark) {
    let writes = stage.writes_since(begun).await.unwrap();
    let at = |wanted: &str| {
        let mut found =
            writes.iter().filter(|write| object_of(write).starts_with(wanted) && write.code == 201);
        let first = found.next().unwrap_or_else(|| panic!("{wanted} was made:\n{}", told(&writes)));
        assert!(found.next().is_none(), "{wanted} was made once:\n{}", told(&writes));
        first.time
    };
    let between = at("daemonsets ").duration_since(at("modules "));
    assert!(between.as_millis() >= LOAD.as_millis().try_into().unwrap(), "{between:?}");
    for (kind, name) in [("Module", "pt"), ("DaemonSet", "pt-consumer")] {
        let owner = spec_of(stage, kind, name, "/metadata/ownerReferences/0").await;
        assert_eq!((&owner["kind"], &owner["controller"]), (&json!("Ptemplate"), &json!(true)));
    }
    let mut names = stage.names("Pod").await.unwrap();
    names.sort();
    assert_eq!(spec_of(stage, "Ptemplate", "pt", "/status/consumers").await, json!(names));
}

/// T2, T10: forced passes write nothing.
async fn nothing_changed_nothing_done(stage: &Stage) {
    let kinds = [("Module", "pt"), ("DaemonSet", "pt-consumer")];
    let mut before = versions(stage, kinds).await;
    // Their own controllers count meanwhile how many there are.
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = versions(stage, kinds).await;
        if std::mem::replace(&mut before, now) == before {
            break;
        }
    }
    let mark = stage.mark().await.unwrap();
    for time in 0..20 {
        let patch = json!({"metadata": {"annotations": {"pintle.dev/reconcile-at": time.to_string()}}});
        stage.edit("Ptemplate", "pt", patch).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let requests = stage.requests_since(mark).await.unwrap();
    let writes: Vec<_> =
        requests.into_iter().filter(|one| one.is_write() && one.resource != "leases").collect();
    assert!(writes.is_empty(), "{}", told(&writes));
    assert_eq!(versions(stage, kinds).await, before);
}

/// T3 to T6: each field reaches the object it is about, and no other.
async fn changes_reach_what_they_concern(stage: &Stage) {
    let spec = async |patch: Value| stage.edit("Ptemplate", "pt", json!({"spec": patch})).await.unwrap();
    let generation = async |kind: &str, name: &str| spec_of(stage, kind, name, "/metadata/generation").await;
    let set = generation("DaemonSet", "pt-consumer").await;
    spec(json!({"maxdev": 7, "defaultmsg": "hello"})).await;
    let parameters = "/spec/moduleLoader/container/modprobe/parameters";
    becomes(stage, "Module", "pt", parameters, json!(["max_dev=7", "default_msg=hello"])).await;
    assert_eq!(generation("DaemonSet", "pt-consumer").await, set, "the consumer is not concerned");

    let module = generation("Module", "pt").await;
    spec(json!({"consumer": "registry.example/consumer:2", "requiredDevices": 3})).await;
    let container = "/spec/template/spec/containers/0";
    becomes(
        stage,
        "DaemonSet",
        "pt-consumer",
        &format!("{container}/image"),
        json!("registry.example/consumer:2"),
    )
    .await;
    let devices = format!("{container}/resources/limits/example.com~1ptemplate");
    becomes(stage, "DaemonSet", "pt-consumer", &devices, json!("3")).await;
    assert_eq!(generation("Module", "pt").await, module, "the module is not concerned");

    spec(json!({"imagePullSecret": {"name": "other"}})).await;
    becomes(stage, "Module", "pt", "/spec/imageRepoSecret/name", json!("other")).await;
    let secrets = "/spec/template/spec/imagePullSecrets";
    becomes(stage, "DaemonSet", "pt-consumer", secrets, json!([{"name": "other"}])).await;
    spec(json!({"imagePullSecret": null})).await;
    becomes(stage, "Module", "pt", "/spec/imageRepoSecret", Value::Null).await;
    becomes(stage, "DaemonSet", "pt-consumer", secrets, Value::Null).await;
}

/// T7, T8, T14: what somebody edits or deletes is back.
async fn edits_are_repaired(stage: &Stage) {
    let container = "/spec/template/spec/containers/0";
    let patch = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "consumer", "image": "registry.example/other:1"}
    ]}}}});
    stage.edit("DaemonSet", "pt-consumer", patch).await.unwrap();
    becomes(
        stage,
        "DaemonSet",
        "pt-consumer",
        &format!("{container}/image"),
        json!("registry.example/consumer:2"),
    )
    .await;
    let limits = format!("{container}/resources/limits/example.com~1ptemplate");
    becomes(stage, "DaemonSet", "pt-consumer", &limits, json!("3")).await;
    let uid = spec_of(stage, "Module", "pt", "/metadata/uid").await;
    stage.delete("Module", "pt").await.unwrap();
    let is_back = async |stage: &Stage| {
        let now = spec_of(stage, "Module", "pt", "/metadata/uid").await;
        Ok(now.is_string() && now != uid)
    };
    stage.eventually("the Module is back", is_back).await.unwrap();
    consumers(stage, NODES.len()).await;
}

/// T5, T9: a selector that takes no node leaves an empty list, not none.
async fn no_nodes_are_no_consumers(stage: &Stage) {
    let patch = json!({"spec": {"selector": {&*stage.name: null, "nobody": "has-this"}}});
    stage.edit("Ptemplate", "pt", patch).await.unwrap();
    becomes(stage, "Module", "pt", "/spec/selector", json!({"nobody": "has-this"})).await;
    consumers(stage, 0).await;
    assert_eq!(spec_of(stage, "Ptemplate", "pt", "/status/consumers").await, json!([]));
    let patch = json!({"spec": {"selector": {&*stage.name: "yes", "nobody": null}}});
    stage.edit("Ptemplate", "pt", patch).await.unwrap();
    consumers(stage, NODES.len()).await;
}

/// T13: consumers go first, then the module, then the owner.
async fn consumers_go_before_the_module(stage: &Stage) {
    let mark = stage.mark().await.unwrap();
    stage.delete("Ptemplate", "pt").await.unwrap();
    let is_gone = async |stage: &Stage| Ok(stage.find("Ptemplate", "pt").await?.is_none());
    stage.eventually("the Ptemplate is gone", is_gone).await.unwrap();
    assert_eq!(stage.names("Module").await.unwrap(), Vec::<String>::new());
    let writes = stage.writes_since(mark).await.unwrap();
    let deletes: Vec<_> = writes.iter().filter(|write| write.verb == "delete").map(object_of).collect();
    let at = |wanted: &str| {
        let found = deletes.iter().position(|delete| delete.starts_with(wanted));
        found.unwrap_or_else(|| panic!("{wanted} is deleted: {deletes:?}"))
    };
    assert!(at("daemonsets ") < at("modules "), "{deletes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_ways_give_the_same_objects_through_a_whole_life() {
    let chart = life(Way::Chart, "pt-chart").await;
    let reconciler = life(Way::Reconciler, "pt-plugin").await;
    let named = |objects: Vec<Value>| json!(objects).to_string().replace("pt-plugin", "pt-chart");
    assert_eq!(named(chart), named(reconciler));
}

#[tokio::test(flavor = "multi_thread")]
async fn both_published_spellings_are_taken_and_the_old_names_are_told() {
    let mut stage = Stage::new("pt-published").await.unwrap();
    install(&stage, Way::Chart).await;
    watch(&stage, "watch-published.yaml").await;
    let selector = json!({&*stage.name: "yes"});
    let metadata =
        |name: &str| json!({"name": name, "namespace": stage.name, "labels": {"test": stage.name}});
    // The version of one example, the group and the field names of the other.
    stage
        .apply(json!({
            "apiVersion": "pt.example.com/v1alpha", "kind": "Ptemplate", "metadata": metadata("one"),
            "spec": {"maxdev": 5, "defaultmsg": "ptemplate", "consumer": "registry.example/consumer:1",
                "requiredDevices": 2, "imagePullSecret": {"name": "s"}, "selector": selector},
        }))
        .await
        .unwrap();
    stage.apply(json!({
        "apiVersion": "ptemplates.pt.example.com/v1alpha", "kind": "Ptemplate", "metadata": metadata("other"),
        "spec": {"maxdev": 5, "defaultmsg": "ptemplate", "consumerimage": "registry.example/consumer:1",
            "requiredDevices": 2, "imageRepoSecret": {"name": "s"}, "selector": selector},
    })).await.unwrap();
    let are_there = async |stage: &Stage| Ok(stage.names("DaemonSet").await?.len() == 2);
    stage.eventually("both have their consumers", are_there).await.unwrap();
    for kind in ["Module", "DaemonSet"] {
        let suffix = if kind == "Module" { "" } else { "-consumer" };
        let spec = async |name: &str| {
            let found = spec_of(&stage, kind, &format!("{name}{suffix}"), "/spec").await;
            found.to_string().replace(name, "NAME")
        };
        assert_eq!(spec("one").await, spec("other").await, "{kind}");
    }
    let others = stage.api("ptemplates.pt.example.com/v1alpha", "Ptemplate", "ptemplates");
    let is_told = async |_: &Stage| {
        let found = others.get("other").await?;
        let conditions = found.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        Ok(conditions.iter().any(|one| {
            let message = one["message"].as_str().unwrap_or_default();
            one["type"] == "ptemplate/DeprecatedField"
                && message.contains("spec.consumerimage is now spec.consumer")
        }))
    };
    stage.eventually("the old names are told", is_told).await.unwrap();
    stage.stop_operator().await.unwrap();
}

/// T15: a right that is missing is named, with the line that grants it.
#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_missing_is_named_with_the_line_that_grants_it() {
    let mut stage = Stage::new("pt-poor").await.unwrap();
    install(&stage, Way::Reconciler).await;
    let mut plugin = documents("plugins.yaml").remove(0);
    plugin["metadata"]["name"] = json!("ptemplate-poor");
    plugin["spec"]["image"] = json!(push_plugin(plane().await.unwrap(), "ptemplate").await.unwrap());
    plugin["spec"]["grants"]["objects"] = json!([]);
    stage.apply(plugin).await.unwrap();
    stage.apply(file("crd-published.yaml")).await.unwrap();
    let mut watch = file("watch-published.yaml");
    watch["metadata"] = json!({"name": format!("{}-poor", stage.name), "labels": {"test": stage.name}});
    watch["spec"]["selector"] = json!({"matchLabels": {"test": stage.name}});
    watch["spec"].as_object_mut().unwrap().remove("chart");
    watch["spec"]["reconciler"] = json!({"plugin": "ptemplate-poor"});
    stage.apply(watch).await.unwrap();
    let mut poor = owner(&stage);
    poor["apiVersion"] = json!("ptemplates.pt.example.com/v1alpha");
    stage.apply(poor).await.unwrap();
    let owners = stage.api("ptemplates.pt.example.com/v1alpha", "Ptemplate", "ptemplates");
    let is_told = async |_: &Stage| {
        let status = owners.get("pt").await?.data["status"].to_string();
        Ok(status.contains("grants.objects") && status.contains("Module"))
    };
    stage.eventually("the missing grant is named", is_told).await.unwrap();
    assert!(stage.find("Module", "pt").await.unwrap().is_none());
    stage.stop_operator().await.unwrap();
}
