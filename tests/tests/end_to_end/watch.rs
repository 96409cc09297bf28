//! A vendor's kind becomes releases through the same pipeline.

use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use pintle::scenario;
use pintle_tests::{Stage, stage::PATIENCE};
use serde_json::{Value, json};

fn memcacheds(stage: &Stage) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("cache.my.domain", "v1", "Memcached");
    let resource = ApiResource::from_gvk_with_plural(&kind, "memcacheds");
    Api::namespaced_with(stage.client.clone(), &stage.name, &resource)
}

fn file(path: &str) -> Value {
    let path = scenario::source_tree().join("deploy/example/memcached").join(path);
    serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

async fn install(stage: &Stage) {
    stage.install_chart(&scenario::chart_folder("memcached")).await.unwrap();
    let mut watch = file("watch.yaml");
    watch["metadata"] = json!({"name": stage.name, "labels": {"test": stage.name}});
    watch["spec"]["chart"]["repository"]["url"] = json!(format!("cm://{}/chart", stage.name));
    watch["spec"]["selector"] = json!({"matchLabels": {"test": stage.name}});
    stage.apply(watch).await.unwrap();
}

fn sample(stage: &Stage, size: u32) -> Value {
    let mut sample = file("sample.yaml");
    sample["metadata"] = json!({"name": "sample", "namespace": stage.name, "labels": {"test": stage.name}});
    sample["spec"]["replicaCount"] = json!(size);
    sample
}

async fn wait_for(
    api: &Api<DynamicObject>,
    what: &str,
    wanted: impl Fn(&DynamicObject) -> bool + Clone,
) -> DynamicObject {
    let is_wanted = move |object: Option<&DynamicObject>| object.is_some_and(&wanted);
    let waited = tokio::time::timeout(
        PATIENCE,
        kube::runtime::wait::await_condition(api.clone(), "sample", is_wanted),
    );
    match waited.await {
        Ok(found) => found.unwrap().unwrap(),
        Err(_) => panic!("not {what}: {:#}", serde_json::to_value(api.get("sample").await.ok()).unwrap()),
    }
}

fn condition(object: &DynamicObject, kind: &str) -> String {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
    found.and_then(|condition| condition["status"].as_str()).unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vendors_object_becomes_a_release_changes_with_it_and_goes_with_it() {
    let mut stage = Stage::new("watch-memcached").await.unwrap();
    // The kind comes after the Watch that binds it: an event makes it work, not a restart.
    install(&stage).await;
    stage.apply(file("crd.yaml")).await.unwrap();
    let api = memcacheds(&stage);
    let crd = Api::<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    >::all(stage.client.clone());
    let established = kube::runtime::conditions::is_crd_established();
    kube::runtime::wait::await_condition(crd, "memcacheds.cache.my.domain", established).await.unwrap();
    stage.apply(sample(&stage, 3)).await.unwrap();
    let ready = wait_for(&api, "Ready", |object| condition(object, "Ready") == "True").await;
    assert_eq!(ready.metadata.finalizers.unwrap(), ["pintle.dev/release"]);
    assert_eq!(ready.data["status"]["observedGeneration"], 1);

    let deployment = stage.get("apps/v1", "Deployment", "deployments", "sample-memcached").await.unwrap();
    assert_eq!(deployment.data["spec"]["replicas"], 3);
    assert_eq!(deployment.metadata.owner_references.unwrap()[0].name, "sample");
    assert!(stage.get("v1", "Secret", "secrets", "sh.helm.release.v1.sample.v1").await.is_ok());

    stage.apply(sample(&stage, 5)).await.unwrap();
    let wanted = |object: &DynamicObject| {
        object.data["status"]["observedGeneration"] == 2 && condition(object, "Ready") == "True"
    };
    wait_for(&api, "Ready again", wanted).await;
    let deployment = stage.get("apps/v1", "Deployment", "deployments", "sample-memcached").await.unwrap();
    assert_eq!(
        (&deployment.data["spec"]["replicas"], &deployment.data["status"]["availableReplicas"]),
        (&json!(5), &json!(5))
    );

    // What a vendor's controller wrote into the status survives.
    let foreign = json!({"status": {"nodes": ["a"]}});
    api.patch_status("sample", &PatchParams::default(), &Patch::Merge(&foreign)).await.unwrap();
    stage.apply(sample(&stage, 2)).await.unwrap();
    let wanted = |object: &DynamicObject| {
        object.data["status"]["observedGeneration"] == 3 && condition(object, "Ready") == "True"
    };
    let ready = wait_for(&api, "Ready a third time", wanted).await;
    assert_eq!(ready.data["status"]["nodes"], json!(["a"]));

    api.delete("sample", &DeleteParams::default()).await.unwrap();
    let uid = ready.metadata.uid.unwrap();
    let gone = kube::runtime::conditions::is_deleted(&uid);
    tokio::time::timeout(PATIENCE, kube::runtime::wait::await_condition(api, "sample", gone))
        .await
        .unwrap()
        .unwrap();
    let deployments = stage.api("apps/v1", "Deployment", "deployments");
    assert!(
        deployments
            .get_opt("sample-memcached")
            .await
            .unwrap()
            .is_none_or(|found| found.metadata.deletion_timestamp.is_some())
    );
    stage.stop_operator().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_of_a_hybrid_operator_serves_its_kind_without_a_watch_object() {
    let mut stage = Stage::without_operator("watch-file").await.unwrap();
    stage.apply(file("crd.yaml")).await.unwrap();
    let (folder, chart) = (tempfile::tempdir().unwrap(), scenario::chart_folder("memcached"));
    let path = folder.path().join("watches.yaml");
    let text = format!(
        "- group: cache.my.domain\n  version: v1\n  kind: Memcached\n  chart: {}\n  selector: {{matchLabels: {{test: watch-file}}}}\n  overrideValues: {{replicaCount: '{{{{ env \"PINTLE_NOBODY\" | default \"4\" }}}}'}}\n",
        chart.display()
    );
    std::fs::write(&path, &text).unwrap();
    let mut options = stage.options(stage.reach());
    options.watches = pintle_operator::read_watches(&path).unwrap();
    options.watches_file = Some(path.clone());
    stage.start_operator_with(options);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": stage.name}});
    stage.apply(namespace).await.unwrap();
    stage.apply(sample(&stage, 1)).await.unwrap();
    let api = memcacheds(&stage);
    wait_for(&api, "Ready", |object| condition(object, "Ready") == "True").await;
    let deployment = stage.get("apps/v1", "Deployment", "deployments", "sample-memcached").await.unwrap();
    assert_eq!(deployment.data["spec"]["replicas"], 4, "values of the file count over the owner's");

    // A file that is broken changes nothing; one that says something else counts without a restart.
    std::fs::write(&path, "- kind: Memcached\n").unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    std::fs::write(&path, text.replace("\"4\"", "\"2\"")).unwrap();
    let is_smaller = async |stage: &Stage| {
        let found = stage.get("apps/v1", "Deployment", "deployments", "sample-memcached").await?;
        Ok(found.data["spec"]["replicas"] == 2)
    };
    stage.eventually("the new value counts", is_smaller).await.unwrap();
    std::fs::write(&path, "[]\n").unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    stage.apply(sample(&stage, 1)).await.unwrap();
    let mark = stage.mark().await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let writes = stage.writes_since(mark).await.unwrap();
    assert!(writes.is_empty(), "a kind that the file does not name any more is left alone: {writes:?}");
    stage.stop_operator().await.unwrap();
}
