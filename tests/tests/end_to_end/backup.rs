//! A kind that a plugin reconciles alone, beside one that a chart serves, in one operator.

use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject},
    core::GroupVersionKind,
};
use pintle::scenario;
use pintle_tests::{
    Stage,
    requests::told,
    stage::{plane, push_plugin},
};
use serde_json::{Value, json};

fn file(path: &str) -> Value {
    let path = scenario::source_tree().join("deploy/example").join(path);
    serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn backups(stage: &Stage) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("cache.my.domain", "v1", "MemcachedBackup");
    let resource = ApiResource::from_gvk_with_plural(&kind, "memcachedbackups");
    Api::namespaced_with(stage.client.clone(), &stage.name, &resource)
}

fn deployments(stage: &Stage) -> Api<DynamicObject> {
    stage.api("apps/v1", "Deployment", "deployments")
}

fn own(stage: &Stage, file: Value) -> Value {
    let mut own = file;
    own["metadata"] = json!({"name": "sample", "namespace": stage.name, "labels": {"test": stage.name}});
    own
}

async fn watch(stage: &Stage, path: &str, name: &str) {
    let mut watch = file(path);
    watch["metadata"] = json!({"name": format!("{}-{name}", stage.name), "labels": {"test": stage.name}});
    watch["spec"]["selector"] = json!({"matchLabels": {"test": stage.name}});
    if watch["spec"]["chart"].is_object() {
        watch["spec"]["chart"]["repository"]["url"] = json!(format!("cm://{}/chart", stage.name));
    }
    stage.apply(watch).await.unwrap();
}

async fn install(stage: &Stage) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": stage.name}});
    stage.apply(namespace).await.unwrap();
    let mut plugin = file("memcached-backup/plugin.yaml");
    plugin["spec"]["image"] = json!(push_plugin(plane().await.unwrap(), "memcached-backup").await.unwrap());
    stage.apply(plugin).await.unwrap();
    stage.install_chart(&scenario::chart_folder("memcached")).await.unwrap();
    for kind in ["memcached", "memcached-backup"] {
        stage.apply(file(&format!("{kind}/crd.yaml"))).await.unwrap();
        watch(stage, &format!("{kind}/watch.yaml"), kind).await;
    }
}

async fn backup(stage: &Stage, size: u32) {
    let mut backup = own(stage, file("memcached-backup/sample.yaml"));
    backup["spec"]["size"] = json!(size);
    stage.apply(backup).await.unwrap();
}

/// Ready at the present generation, with the names of its pods.
async fn is_backed_up(stage: &Stage, size: usize) {
    let mut last = Value::Null;
    let is_so = async |stage: &Stage| {
        let found = backups(stage).get("sample").await?;
        last = found.data["status"].clone();
        let conditions = last["conditions"].as_array().cloned().unwrap_or_default();
        let is_ready = conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True");
        let is_present = last["observedGeneration"] == json!(found.metadata.generation);
        let pods = stage.names("Pod").await?;
        let pods: Vec<_> = pods.into_iter().filter(|pod| !pod.starts_with("sample-memcached-")).collect();
        Ok(is_ready && is_present && pods.len() == size && last["nodes"] == json!(pods))
    };
    if let Err(err) = stage.eventually(&format!("backed up by {size}"), is_so).await {
        panic!("{err:#}: {last:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memcached_backup_is_what_its_plugin_says_beside_the_chart_of_memcached() {
    let mut stage = Stage::new("backup").await.unwrap();
    install(&stage).await;
    // The same name for both: neither takes the other's memory or objects.
    stage.apply(own(&stage, file("memcached/sample.yaml"))).await.unwrap();
    backup(&stage, 2).await;
    is_backed_up(&stage, 2).await;
    let owner = deployments(&stage).get("sample").await.unwrap().metadata.owner_references.unwrap();
    assert_eq!((&*owner[0].kind, &*owner[0].name), ("MemcachedBackup", "sample"));
    backup(&stage, 3).await;
    is_backed_up(&stage, 3).await;

    // By hand: deleted, scaled, back.
    deployments(&stage).delete("sample", &DeleteParams::default()).await.unwrap();
    let is_back = async |stage: &Stage| {
        let found = deployments(stage).get_opt("sample").await?;
        Ok(found.is_some_and(|found| found.metadata.deletion_timestamp.is_none()))
    };
    stage.eventually("the Deployment is back", is_back).await.unwrap();
    is_backed_up(&stage, 3).await;
    let api = deployments(&stage);
    let patch = kube::api::Patch::Merge(json!({"spec": {"replicas": 1}}));
    api.patch("sample", &kube::api::PatchParams::default(), &patch).await.unwrap();
    let is_repaired = async |_: &Stage| Ok(api.get("sample").await?.data["spec"]["replicas"] == 3);
    stage.eventually("the size is repaired", is_repaired).await.unwrap();
    is_backed_up(&stage, 3).await;

    // Nothing changed, nothing done; also by the next operator.
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    let mark = stage.mark().await.unwrap();
    stage.stop_operator().await.unwrap();
    stage.start();
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let mut writes = stage.writes_since(mark).await.unwrap();
    // A Watch counts its owners when it is bound, and tells the count then.
    writes.retain(|write| write.resource != "watches");
    assert!(writes.is_empty(), "{}", told(&writes));

    backups(&stage).delete("sample", &DeleteParams::default()).await.unwrap();
    let is_gone = async |stage: &Stage| {
        Ok(backups(stage).get_opt("sample").await?.is_none()
            && deployments(stage).get_opt("sample").await?.is_none())
    };
    stage.eventually("it is gone with what it had", is_gone).await.unwrap();
    assert!(deployments(&stage).get("sample-memcached").await.is_ok(), "the chart's release stays");
    assert!(stage.find("Secret", "pintle.sample").await.unwrap().is_some(), "and so does its memory");
    assert!(stage.find("Secret", "pintle.sample-memcachedbackup").await.unwrap().is_none());
    stage.stop_operator().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_names_a_chart_or_a_reconciler_and_not_both_or_neither() {
    let mut stage = Stage::new("backup-both").await.unwrap();
    let kind = json!({"group": "cache.my.domain", "version": "v1", "kind": "Nothing"});
    let cases = [
        (json!({}), "neither spec.chart nor spec.reconciler is there"),
        (
            json!({"reconciler": {"plugin": "p"}, "chart": {"name": "c", "repository": {"url": "cm://a/b"}}}),
            "both spec.chart and spec.reconciler are there",
        ),
        (json!({"reconciler": {"plugin": "p"}, "hooks": [{"plugin": "q"}]}), "take them away"),
    ];
    for (at, (more, wanted)) in cases.into_iter().enumerate() {
        let mut spec = kind.clone();
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec["selector"] = json!({"matchLabels": {"test": stage.name}});
        let name = format!("backup-both-{at}");
        let watch = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Watch",
            "metadata": {"name": name, "labels": {"test": stage.name}}, "spec": spec});
        stage.apply(watch).await.unwrap();
        let kind = GroupVersionKind::gvk("pintle.dev", "v1alpha1", "Watch");
        let api: Api<DynamicObject> =
            Api::all_with(stage.client.clone(), &ApiResource::from_gvk_with_plural(&kind, "watches"));
        let is_told = async |_: &Stage| Ok(api.get(&name).await?.data["status"].to_string().contains(wanted));
        stage.eventually(wanted, is_told).await.unwrap();
        api.delete(&name, &DeleteParams::default()).await.unwrap();
    }
    stage.stop_operator().await.unwrap();
}
