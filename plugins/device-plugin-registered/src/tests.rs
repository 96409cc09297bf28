#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::fake::Host;
use serde_json::{Value, json};

use super::*;

fn set() -> Value {
    json!({"spec": {"template": {"spec": {"nodeSelector": {"gpu": "yes"}}}}})
}

fn node(name: &str, allocatable: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"gpu": "yes"}},
        "status": {"allocatable": allocatable}})
}

#[track_caller]
fn check(host: Host, expected: &[&str]) {
    let answer = host.check::<Registered>(set()).unwrap();
    let line = |blocker: &Blocker| {
        format!("{} {}: {}", blocker.reason, blocker.node.as_deref().unwrap_or("-"), blocker.message)
    };
    assert_eq!(answer.blockers().iter().map(line).collect::<Vec<_>>(), expected);
}

#[test]
fn every_node_that_offers_none_is_named() {
    let host = Host::new()
        .object(node("a", json!({"nvidia.com/gpu": "2", "cpu": "4"})))
        .object(node("b", json!({"nvidia.com/gpu": "0"})))
        .object(node("c", json!({"cpu": "3920m"})))
        .object(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "other"}}));
    let none = "the node offers no nvidia.com/gpu or nvidia.com/mig-*";
    check(host, &[&format!("NotRegistered b: {none}"), &format!("NotRegistered c: {none}")]);
}

#[test]
fn parts_of_a_card_count_as_devices() {
    check(Host::new().object(node("a", json!({"nvidia.com/mig-1g.5gb": "7"}))), &[]);
}

#[test]
fn config_and_annotation_choose_resource_number_and_nodes() {
    let two = json!({"vendor.example/card": "2"});
    let few = Host::new().object(node("a", two.clone())).args(json!({"resource": "vendor.example/card"}));
    check(few.clone(), &[]);
    check(
        few.clone().config(json!({"least": 3})),
        &["TooFewDevices a: the node offers 2 vendor.example/card, 3 are wanted"],
    );
    let elsewhere = few.config(json!({"nodeSelector": {"gpu": "no"}, "emptyIsReady": false}));
    check(elsewhere, &["NoNodes -: no node has the labels gpu=no"]);
}

#[test]
fn a_config_that_proves_nothing_is_refused() {
    assert!(Host::new().config(json!({"resources": ["*"]})).validate::<Registered>().is_err());
    assert!(Host::new().validate::<Registered>().is_ok());
}

#[test]
fn no_nodes_are_ready_where_the_config_does_not_say_otherwise() {
    check(Host::new(), &[]);
}
