//! What `pintle new` and `pintle import` write works on a cluster.

use kube::{
    Api,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use pintle::scenario;
use pintle_tests::{Stage, stage::PATIENCE};
use serde_json::{Value, json};

use super::is_ready;

fn object(path: &std::path::Path) -> Value {
    serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Applies a Watch with the names of a test, so that only its operator serves it.
async fn apply_watch(stage: &Stage, path: &std::path::Path) {
    let mut watch = object(path);
    watch["metadata"] = json!({"name": stage.name, "labels": {"test": stage.name}});
    watch["spec"]["selector"] = json!({"matchLabels": {"test": stage.name}});
    stage.apply(watch).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_kind_works_with_its_rights_its_watch_and_its_sample() {
    let mut stage = Stage::new("scaffold-new").await.unwrap();
    let (folder, chart) = (tempfile::tempdir().unwrap(), scenario::chart_folder("memcached"));
    let out = folder.path().join("cache");
    let (chart, path) = (chart.display().to_string(), out.display().to_string());
    let group = "scaffold.example.com";
    pintle::scaffold(&["new", "Cache", "--chart", &chart, "--group", group, "--out", &path]).unwrap();
    let again = pintle::scaffold(&["new", "Cache", "--chart", &chart, "--out", &path]).unwrap_err();
    assert!(again.to_string().contains("is there already"), "{again}");

    let definition = object(&out.join("crd.yaml"));
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(schema["properties"]["replicaCount"], json!({"type": "integer", "minimum": 0}));
    stage.apply(definition).await.unwrap();
    stage.apply(object(&out.join("rbac.yaml"))).await.unwrap();
    apply_watch(&stage, &out.join("watch.yaml")).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": stage.name}});
    stage.apply(namespace).await.unwrap();
    let mut sample = object(&out.join("sample.yaml"));
    sample["metadata"] = json!({"name": "sample", "namespace": stage.name, "labels": {"test": stage.name}});
    stage.apply(sample).await.unwrap();

    let kind = GroupVersionKind::gvk(group, "v1alpha1", "Cache");
    let resource = ApiResource::from_gvk_with_plural(&kind, "caches");
    let api: Api<DynamicObject> = Api::namespaced_with(stage.client.clone(), &stage.name, &resource);
    let is_wanted = |found: Option<&DynamicObject>| {
        found.is_some_and(|found| is_ready(&serde_json::to_value(found).unwrap_or_default()))
    };
    let waited = kube::runtime::wait::await_condition(api.clone(), "sample", is_wanted);
    if tokio::time::timeout(PATIENCE, waited).await.is_err() {
        panic!("not Ready: {:#}", serde_json::to_value(api.get("sample").await.ok()).unwrap());
    }
    stage.stop_operator().await.unwrap();
}

#[test]
fn a_project_of_the_hybrid_operator_becomes_watches_and_rights() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "- group: cache.my.domain\n  version: v1\n  kind: Memcached\n  chart: {}\n  overrideValues: {{image.repository: \"$IMAGE\"}}\n  reconcilePeriod: 2m\n",
        scenario::chart_folder("memcached").display()
    );
    std::fs::write(folder.path().join("watches.yaml"), &text).unwrap();
    let (from, out) = (folder.path().display().to_string(), folder.path().join("out"));
    pintle::scaffold(&["import", "hybrid", &from, "--out", &out.display().to_string()]).unwrap();
    let watch = object(&out.join("watch-memcached.cache.my.domain.yaml"));
    assert_eq!(watch["spec"]["overrideValues"], json!({"image.repository": "$IMAGE"}));
    assert_eq!(
        (&watch["spec"]["kind"], &watch["spec"]["reconcilePeriod"]),
        (&json!("Memcached"), &json!("2m"))
    );
    let rights = std::fs::read_to_string(out.join("rbac.yaml")).unwrap();
    for part in ["memcacheds/status", "deployments", "services"] {
        assert!(rights.contains(part), "{part}: {rights}");
    }
    std::fs::write(folder.path().join("watches.yaml"), text.replace("$IMAGE", "{{ env `I` }}")).unwrap();
    let out = folder.path().join("other").display().to_string();
    let refused = format!("{:#}", pintle::scaffold(&["import", "hybrid", &from, "--out", &out]).unwrap_err());
    assert!(refused.contains("entry 1") && refused.contains("is a template"), "{refused}");
}
