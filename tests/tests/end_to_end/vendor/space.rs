//! Namespaces that are made for releases: they go with them, and nothing of anybody else's goes with them.

use std::time::Duration;

use kube::api::DeleteParams;
use pintle_tests::{Account, Stage, stage::plane};
use serde_json::{Value, json};

use super::{GROUP, SHOWN, Vendor};

const CHART: [(&str, &str); 1] = [("templates/shown.yaml", SHOWN)];

/// A vendor whose releases are in a namespace of their own, and whose operator may look into it or not.
async fn vendor(name: &str, may_look: bool) -> (Vendor, String) {
    let plane = plane().await.unwrap();
    let account = Account::like_the_operators(plane, name).await.unwrap();
    let user = account.name.clone();
    let stage = Stage::with_account(name, account.clone()).await.unwrap();
    if may_look {
        let text = include_str!("../../../../deploy/example/namespaces/rbac.yaml");
        let mut role: Value = serde_yaml::from_str(text).unwrap();
        // Of this test alone: the operator's own role gathers what has the label.
        role["metadata"] = json!({"name": format!("test-{name}-looks")});
        stage.apply(role).await.unwrap();
        stage
            .apply(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": format!("test-{name}-looks")},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": format!("test-{name}-looks")},
                "subjects": [{"kind": "ServiceAccount", "name": user, "namespace": pintle::scenario::SYSTEM}]
            }))
            .await
            .unwrap();
        while !account.may("list", "storage.k8s.io", "csistoragecapacities").await.unwrap() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let space = format!("{name}-made");
    let mut vendor = Vendor { stage, group: GROUP };
    vendor.prepare(&json!({"targetNamespace": space, "createNamespace": true}), &CHART).await;
    vendor.stage.start();
    (vendor, space)
}

/// Begins to delete an owner.
async fn begin_to_delete(vendor: &Vendor, name: &str) {
    vendor.api().delete(name, &DeleteParams::default()).await.unwrap();
}

async fn namespace(stage: &Stage, name: &str) -> Option<Value> {
    stage.find("Namespace", name).await.unwrap()
}

fn theirs(space: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": space}})
}

fn blockers(owner: &Value) -> String {
    owner["status"]["states"].to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_made_for_a_release_goes_with_it_once_nobody_else_is_in_it() {
    let (vendor, space) = vendor("space-goes", true).await;
    let stage = &vendor.stage;
    vendor.apply("one", json!({"text": "a"})).await;
    vendor.ready("one").await;
    let made = namespace(stage, &space).await.unwrap();
    assert!(made["metadata"]["annotations"]["pintle.dev/created-by"].is_string(), "{made}");
    stage.apply(theirs(&space)).await.unwrap();
    begin_to_delete(&vendor, "one").await;
    let told = format!("holds ConfigMap {space}/theirs, which the release did not make");
    vendor
        .wait("one", "held by what is in the namespace", move |owner| {
            blockers(owner).contains("NamespaceNotEmpty") && blockers(owner).contains(&told)
        })
        .await;
    let held = namespace(stage, &space).await.unwrap();
    assert_eq!(held["metadata"]["deletionTimestamp"], Value::Null);
    stage.of_kind_in("ConfigMap", &space).delete("theirs", &DeleteParams::default()).await.unwrap();
    vendor.gone("one").await;
    let is_gone = async |stage: &Stage| Ok(stage.find("Namespace", &space).await?.is_none());
    stage.eventually("the namespace is gone", is_gone).await.unwrap();
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_is_left_to_those_who_made_it_or_whose_objects_are_in_it() {
    let (vendor, space) = vendor("space-stays", true).await;
    let stage = &vendor.stage;
    vendor.apply("one", json!({"text": "a"})).await;
    vendor.ready("one").await;
    vendor.apply("two", json!({"text": "b"})).await;
    vendor.ready("two").await;
    vendor.delete("one").await;
    assert!(vendor.told("NamespaceLeft").await.contains("is of another release"));
    stage.apply(theirs(&space)).await.unwrap();
    vendor.delete("two").await;
    let left = namespace(stage, &space).await.unwrap();
    assert_eq!(left["metadata"]["deletionTimestamp"], Value::Null, "it was made for another owner");
    assert!(stage.of_kind_in("ConfigMap", &space).get_opt("theirs").await.unwrap().is_some());
    vendor.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_nobody_may_look_into_stays_and_an_event_says_why() {
    let (vendor, space) = vendor("space-unseen", false).await;
    vendor.apply("one", json!({"text": "a"})).await;
    vendor.ready("one").await;
    vendor.delete("one").await;
    let told = vendor.told("NamespaceLeft").await;
    assert!(
        told.contains("it cannot be seen whether it is empty") && told.contains("cannot list resource"),
        "{told}"
    );
    let left = namespace(&vendor.stage, &space).await.unwrap();
    assert_eq!(left["metadata"]["deletionTimestamp"], Value::Null);
    vendor.end().await;
}
