#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::fake::Host;
use serde_json::json;

use super::*;

fn set(strategy: &str, status: Value) -> Value {
    json!({"metadata": {"name": "d", "namespace": "n", "generation": 2}, "status": status,
        "spec": {"selector": {"matchLabels": {"app": "d"}}, "updateStrategy": {"type": strategy}}})
}

fn on_delete(wanted: u32) -> Value {
    set("OnDelete", json!({"observedGeneration": 2, "desiredNumberScheduled": wanted}))
}

fn revision(number: i64, hash: &str, template: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": number,
        "metadata": {"name": format!("d-{hash}"), "namespace": "n", "labels": {"app": "d", HASH: hash}},
        "data": {"spec": {"template": {"spec": template}}}})
}

fn pod(node: &str, hash: &str, ready: bool) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": node},
        "metadata": {"name": format!("d-{node}"), "namespace": "n", "labels": {"app": "d", HASH: hash}},
        "status": {"containerStatuses": [{"name": "c", "ready": ready}]}})
}

#[track_caller]
fn check(host: Host, target: Value, expected: &[&str]) {
    let answer = host.check::<Rollout>(target).unwrap();
    let line = |blocker: &Blocker| {
        format!("{} {}: {}", blocker.reason, blocker.node.as_deref().unwrap_or("-"), blocker.message)
    };
    assert_eq!(answer.blockers().iter().map(line).collect::<Vec<_>>(), expected);
}

#[test]
fn on_delete_is_ready_when_every_pod_is_of_the_newest_revision() {
    let two = Host::new().object(revision(1, "old", json!({"image": "1"}))).object(revision(
        2,
        "new",
        json!({"image": "2"}),
    ));
    let half = two.clone().objects([pod("a", "new", true), pod("b", "old", true)]);
    check(half, on_delete(2), &["PodOutdated b: it runs an older template; delete pod d-b to update it"]);
    let waiting = two.clone().objects([pod("a", "new", true), pod("b", "new", false)]);
    check(waiting, on_delete(2), &["PodNotReady b: container c is not ready"]);
    let missing = two.clone().object(pod("a", "new", true));
    check(missing, on_delete(2), &["PodMissing -: 1 of 2 nodes have no pod yet"]);
    check(two.objects([pod("a", "new", true), pod("b", "new", true)]), on_delete(2), &[]);
}

#[test]
fn a_pod_that_goes_is_no_pod() {
    let mut going = pod("a", "new", true);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let host = Host::new().object(revision(1, "new", json!({}))).object(going);
    check(host, on_delete(1), &["PodMissing -: 1 of 1 nodes have no pod yet"]);
}

#[test]
fn a_changed_node_selector_over_the_same_nodes_does_not_hang() {
    let host = Host::new()
        .object(revision(1, "old", json!({"image": "1"})))
        .object(revision(2, "new", json!({"image": "1", "nodeSelector": {"gpu": "yes"}, "tolerations": []})))
        .objects([pod("a", "old", true), pod("b", "old", true)]);
    check(host, on_delete(2), &[]);
}

#[test]
fn no_nodes_are_ready_or_not_as_the_annotation_or_the_config_says() {
    let none = || on_delete(0);
    check(Host::new(), none(), &[]);
    let not = ["NoNodes -: no node matches the DaemonSet, and emptyIsReady is false"];
    let strict = Host::new().config(json!({"emptyIsReady": false}));
    check(strict.clone(), none(), &not);
    check(strict.args(json!({"emptyIsReady": true})), none(), &[]);
    check(Host::new().args(json!({"emptyIsReady": false})), none(), &not);
}

#[test]
fn rolling_updates_are_counted_by_their_controller() {
    let status = |updated: u32, available: u32, generation: i64| {
        json!({"observedGeneration": generation, "desiredNumberScheduled": 3,
            "updatedNumberScheduled": updated, "numberAvailable": available})
    };
    check(Host::new(), set("RollingUpdate", status(3, 3, 2)), &[]);
    let half = ["RolloutRuns -: 2 of 3 pods are of the newest template, 3 available"];
    check(Host::new(), set("RollingUpdate", status(2, 3, 2)), &half);
    let old = ["StatusOutdated -: the status is not of generation 2 yet"];
    check(Host::new(), set("RollingUpdate", status(3, 3, 1)), &old);
}

#[test]
fn a_missing_grant_is_a_failure_that_a_person_ends() {
    let failure = Host::new().deny("ControllerRevision").check::<Rollout>(on_delete(1)).unwrap_err();
    assert!(failure.message().contains("ControllerRevision is not granted"), "{failure}");
}
