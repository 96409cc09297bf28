//! Faults of what a chart renders: the states before stand, the faulty one and those after are not written.

use serde_json::{Value, json};

use super::{case::Case, chart::Chart};

/// Runs a row whose fault is the second state of the chart, and whose end is a mended chart.
async fn second_state_breaks(name: &str) {
    let case = Case::begin(name).await;
    case.start(Chart::with_fault(name)).await;
    case.fails().await;
    let version = case.is_applied("first").await;
    case.lacks(&["second", "third"]).await;
    case.install(Chart::steps()).await;
    case.ready().await;
    case.is_untouched("first", &version).await;
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn template_error() {
    second_state_breaks("template-error").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn function_unknown() {
    second_state_breaks("function-unknown").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kind_absent() {
    second_state_breaks("kind-absent").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gate_broken() {
    second_state_breaks("gate-broken").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn annotation_unknown() {
    second_state_breaks("annotation-unknown").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn annotation_not_served() {
    second_state_breaks("annotation-not-served").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chart_hook() {
    let case = Case::begin("chart-hook").await;
    case.start(Chart::with_fault("chart-hook")).await;
    case.fails().await;
    case.lacks(&["first", "second", "third"]).await;
    case.install(Chart::steps()).await;
    case.ready().await;
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn own_group() {
    second_state_breaks("own-group").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kind_unknown() {
    let case = Case::begin("kind-unknown").await;
    case.start(Chart::with_fault("kind-unknown")).await;
    case.fails().await;
    let version = case.is_applied("second").await;
    case.lacks(&["third"]).await;
    case.stage.apply(definition("Gadget", "gadgets")).await.unwrap();
    case.ready().await;
    case.stage.get("bad-input.example/v1", "Gadget", "gadgets", "second").await.unwrap();
    case.is_untouched("second", &version).await;
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gate_not_judgeable() {
    let case = Case::begin("gate-not-judgeable").await;
    case.stage.apply(definition("Widget", "widgets")).await.unwrap();
    case.start(Chart::with_fault("gate-not-judgeable")).await;
    case.fails().await;
    case.stage.get("bad-input.example/v1", "Widget", "widgets", "second").await.unwrap();
    case.lacks(&["third"]).await;
    case.own(json!({"set": {"wait": "none"}})).await;
    case.ready().await;
    case.end().await;
}

/// A kind without conditions.
fn definition(kind: &str, plural: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.bad-input.example")},
        "spec": {
            "group": "bad-input.example", "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
            }]
        }
    })
}
