#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::fake::Host;
use serde_json::json;

use super::*;

fn host() -> Host {
    let config = json!({"peers": {"storage": {
        "apiVersion": "ceph.example/v1", "kind": "Cluster", "name": "main", "namespace": "ceph",
        "fields": {"status.health": "HEALTH_OK", "status.mons": "3"}, "says": "status.details"
    }, "network": {
        "apiVersion": "net.example/v1", "kind": "Policy", "name": "p", "namespace": "net",
        "fields": {"status.state": "ready"}, "nodeLabels": {"nic": "true"}, "daemonSet": "mofed"
    }}});
    Host::new().config(config)
}

fn cluster(status: Value) -> Value {
    json!({"apiVersion": "ceph.example/v1", "kind": "Cluster", "status": status,
        "metadata": {"name": "main", "namespace": "ceph"}})
}

fn messages(answer: &Answer) -> Vec<&str> {
    answer.blockers().iter().map(|blocker| blocker.message.as_str()).collect()
}

#[test]
fn each_field_that_is_not_as_it_shall_be_is_named_with_what_the_object_says() {
    let check = |host: Host| host.args(json!({"peer": "storage"})).check::<PeerReady>(json!({})).unwrap();
    let well = json!({"health": "HEALTH_OK", "mons": 3});
    assert!(check(host().object(cluster(well))).is_ready());
    let ill = json!({"health": "HEALTH_WARN", "mons": 2, "details": "1 pg degraded"});
    let answer = check(host().object(cluster(ill)));
    let expected = [
        "storage: status.health is \"HEALTH_WARN\", \"HEALTH_OK\" is wanted; it says: 1 pg degraded",
        "storage: status.mons is \"2\", \"3\" is wanted; it says: 1 pg degraded",
    ];
    assert_eq!(messages(&answer), expected);
    assert_eq!(messages(&check(host())), ["storage: it is not there yet"]);
}

#[test]
fn what_no_node_asks_for_is_not_waited_for() {
    let check = |host: Host| host.args(json!({"peer": "network"})).check::<PeerReady>(json!({})).unwrap();
    assert!(check(host()).is_ready());
    let node =
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {"nic": "true"}}});
    let policy = json!({"apiVersion": "net.example/v1", "kind": "Policy", "status": {"state": "ready"},
        "metadata": {"name": "p", "namespace": "net"}});
    let set = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "mofed", "namespace": "net",
        "generation": 2}, "status": {"observedGeneration": 1, "desiredNumberScheduled": 1}});
    assert_eq!(messages(&check(host().object(node.clone()))), ["network: it is not there yet"]);
    assert!(check(host().object(node.clone()).object(policy.clone())).is_ready(), "no DaemonSet, no rollout");
    let rolls = check(host().objects([node, policy, set]));
    assert_eq!(messages(&rolls), ["network: 0 of 1 pods are of the newest template and available"]);
}

#[test]
fn a_peer_that_nobody_described_is_a_failure_that_says_so() {
    let refused = host().args(json!({"peer": "gone"})).check::<PeerReady>(json!({})).unwrap_err();
    assert_eq!(refused.message(), "config has no peer \"gone\"");
    let broken = Host::new().config(json!({"peers": {"a": {"kind": "X"}}})).validate::<PeerReady>();
    assert_eq!(broken.unwrap_err().message(), "peers.a needs kind and fields");
}
