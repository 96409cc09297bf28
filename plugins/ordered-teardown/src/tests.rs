#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::{Outcome, fake::Host};
use serde_json::Value;

use super::*;

fn host() -> Host {
    let order = json!([{"name": "$release-exporter"}, {"name": "plugin"}]);
    Host::new().operation(Operation::Delete).config(json!({"order": order}))
}

fn workload(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "namespace", "uid": "u1"},
        "spec": {"selector": {"matchLabels": {"app": name}}}})
}

fn pod(app: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": "a"},
        "metadata": {"name": format!("{app}-a"), "namespace": "namespace", "labels": {"app": app}}})
}

fn pre(host: Host) -> Step {
    host.on_phase::<OrderedTeardown>(Phase::Pre, [], []).unwrap()
}

#[track_caller]
fn check(step: &Step, blocker: &str, actions: &[&str]) {
    let Outcome::Hold(pending) = step.outcome() else { panic!("{:?}", step.outcome()) };
    let first = &pending.blockers[0];
    let name = first.object.as_ref().map_or("-", |object| &object.name);
    assert_eq!(format!("{} {name}: {}", first.reason, first.message), blocker);
    let keys: Vec<&str> = step.report().actions.iter().map(|action| action.key.as_str()).collect();
    assert_eq!(keys, actions);
}

#[test]
fn workloads_go_in_order_and_each_waits_for_the_pods_of_the_one_before() {
    let all = host().objects([workload("release-exporter"), pod("release-exporter"), workload("plugin")]);
    let first = pre(all);
    let expected = "WorkloadGoes release-exporter: it goes before plugin";
    check(&first, expected, &["delete-release-exporter-u1"]);
    let saved: Value = serde_json::from_str(first.report().save.as_deref().unwrap()).unwrap();
    let pods = host().saved(saved.clone()).objects([pod("release-exporter"), workload("plugin")]);
    check(&pre(pods), "PodGoes release-exporter-a: it may still hold the driver", &[]);
    let next = pre(host().saved(saved).objects([workload("plugin"), pod("plugin")]));
    check(&next, "WorkloadGoes plugin: it goes last", &["delete-plugin-u1"]);
    let saved: Value = serde_json::from_str(next.report().save.as_deref().unwrap()).unwrap();
    assert_eq!(saved, json!({"0": "app=release-exporter", "1": "app=plugin"}));
    assert_eq!(*pre(host().saved(saved)).outcome(), Outcome::Go);
}

#[test]
fn nothing_is_held_or_deleted_but_before_a_deletion() {
    let installs = host().operation(Operation::Install).object(workload("plugin"));
    assert_eq!(*pre(installs).outcome(), Outcome::Go);
    let after = host().object(workload("plugin")).on_phase::<OrderedTeardown>(Phase::Post, [], []).unwrap();
    assert_eq!(*after.outcome(), Outcome::Go);
}

#[test]
fn a_read_that_is_denied_does_not_pass_as_gone() {
    let denied = host().deny("DaemonSet").on_phase::<OrderedTeardown>(Phase::Pre, [], []);
    assert!(denied.unwrap_err().message().contains("DaemonSet is not granted"));
}

#[test]
fn an_order_without_names_is_refused() {
    let refused = Host::new().config(json!({"order": [{"name": "a"}, {}]})).validate::<OrderedTeardown>();
    assert_eq!(refused.unwrap_err().message(), "order[1].name is empty");
    assert!(Host::new().validate::<OrderedTeardown>().is_err());
}
