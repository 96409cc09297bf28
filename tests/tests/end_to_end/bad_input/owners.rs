//! Faults of the owner itself, and of objects that are there already.

use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{case::Case, chart::Chart};

#[tokio::test(flavor = "multi_thread")]
async fn spec_unreadable() {
    let case = Case::begin("spec-unreadable").await;
    case.install(Chart::steps()).await;
    case.own(json!({"timeout": "soon"})).await;
    case.fails().await;
    case.lacks(&["first"]).await;
    case.own(json!({"timeout": "10m"})).await;
    case.ready().await;
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn field_not_served() {
    let case = Case::begin("field-not-served").await;
    case.start(Chart::steps()).await;
    case.ready().await;
    let version = case.is_applied("first").await;
    case.own(json!({"serviceAccountName": "tenant"})).await;
    case.fails().await;
    case.is_untouched("first", &version).await;
    case.own(json!({})).await;
    case.ready().await;
    case.is_untouched("first", &version).await;
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn owned_by_other() {
    let case = Case::begin("owned-by-other").await;
    let theirs = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "second", "namespace": "owned-by-other", "labels": {"app.kubernetes.io/managed-by": "somebody"}},
        "data": {"text": "theirs"}
    });
    case.stage.apply(theirs).await.unwrap();
    let version = case.is_applied("second").await;
    case.start(Chart::steps()).await;
    case.fails().await;
    case.is_untouched("second", &version).await;
    case.is_applied("first").await;
    case.lacks(&["third"]).await;
    case.own(json!({"adopt": "Force"})).await;
    case.ready().await;
    assert_eq!(case.config_map("second").await.data["data"]["text"], "hello");
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn immutable_field() {
    let case = Case::begin("immutable-field").await;
    case.start(Chart::with_fault("immutable-field")).await;
    case.ready().await;
    let version = case.is_applied("second").await;
    case.own(json!({"set": {"text": "other"}})).await;
    case.fails().await;
    case.is_untouched("second", &version).await;
    case.delete("second").await;
    case.ready().await;
    assert_eq!(case.config_map("second").await.data["data"]["text"], "other");
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn namespace_terminating() {
    let case = Case::begin("namespace-terminating").await;
    case.install(Chart::steps()).await;
    let held = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "held", "namespace": "going-away", "finalizers": ["bad-input.example/held"]}
    });
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going-away"}});
    case.stage.apply(namespace).await.unwrap();
    case.stage.apply(held).await.unwrap();
    let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> =
        kube::Api::all(case.stage.client.clone());
    namespaces.delete("going-away", &Default::default()).await.unwrap();
    case.own(json!({"namespace": "going-away"})).await;
    case.fails().await;
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
        kube::Api::namespaced(case.stage.client.clone(), "going-away");
    assert!(maps.get_opt("first").await.unwrap().is_none());
    let freed = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    maps.patch("held", &PatchParams::default(), &freed).await.unwrap();
    case.ready().await;
    maps.get("third").await.unwrap();
    case.end().await;
}
