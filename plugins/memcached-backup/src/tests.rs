#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::fake::Host;

use super::*;

fn host(size: u32) -> Host {
    Host::new().owner(json!({"metadata": {"name": "sample"}, "spec": {"size": size}}))
}

fn pod(name: &str, instance: &str) -> Value {
    let mut all = labels(instance);
    all.insert("pod-template-hash".to_owned(), "x".to_owned());
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "namespace", "labels": all}})
}

fn live(generation: u64, observed: u64, ready: u32) -> [(&'static str, Value); 1] {
    let status = json!({"observedGeneration": observed, "replicas": ready, "updatedReplicas": ready,
        "readyReplicas": ready});
    [(DEPLOYMENT, json!({"metadata": {"generation": generation}, "status": status}))]
}

fn wanted(desired: &Desired) -> Value {
    let (_, text) = desired.objects().next().unwrap();
    serde_json::from_str(text).unwrap()
}

fn blocker(desired: &Desired) -> String {
    let pending = desired.pending().unwrap();
    format!("{}: {}", pending.blockers()[0].reason, pending.blockers()[0].message)
}

#[test]
fn a_deployment_of_its_size_is_wanted_from_the_first_call_on() {
    let desired = host(3).reconcile::<MemcachedBackup>([]).unwrap();
    let object = wanted(&desired);
    assert_eq!((&object["metadata"]["name"], &object["spec"]["replicas"]), (&json!("sample"), &json!(3)));
    let selector = &object["spec"]["selector"]["matchLabels"];
    assert_eq!(*selector, object["spec"]["template"]["metadata"]["labels"]);
    assert_eq!(blocker(&desired), "NotThereYet: the Deployment is being made");
}

#[test]
fn it_is_ready_once_all_pods_of_the_present_generation_are() {
    let ready = host(2).reconcile::<MemcachedBackup>(live(1, 1, 2)).unwrap();
    assert!(ready.is_ready());
    let old = host(2).reconcile::<MemcachedBackup>(live(2, 1, 2)).unwrap();
    assert_eq!(blocker(&old), "NotReady: 2 of 2 pods are ready");
    let few = host(2).reconcile::<MemcachedBackup>(live(1, 1, 1)).unwrap();
    assert_eq!(blocker(&few), "NotReady: 1 of 2 pods are ready");
    assert!(host(0).reconcile::<MemcachedBackup>(live(1, 1, 0)).unwrap().is_ready());
}

#[test]
fn the_status_names_its_own_pods_in_order() {
    let pods = [pod("b", "sample"), pod("a", "sample"), pod("c", "other")];
    let desired = host(2).objects(pods).reconcile::<MemcachedBackup>(live(1, 1, 2)).unwrap();
    let status: Value = serde_json::from_str(desired.report().status.as_deref().unwrap()).unwrap();
    assert_eq!(status, json!({"nodes": ["a", "b"]}));
    let none = host(0).reconcile::<MemcachedBackup>([]).unwrap();
    assert!(none.report().status.as_deref().unwrap().contains(r#""nodes":[]"#));
}

#[test]
fn a_read_that_is_denied_is_told_and_nothing_is_wanted() {
    let denied = host(1).deny("Pod").reconcile::<MemcachedBackup>([]).unwrap_err();
    assert!(denied.message().contains("Pod is not granted"), "{}", denied.message());
}

#[test]
fn nothing_is_wanted_any_more_while_the_owner_goes() {
    let desired = host(2).finalize::<MemcachedBackup>(live(1, 1, 2)).unwrap();
    assert!(desired.is_ready() && desired.objects().count() == 0);
}
