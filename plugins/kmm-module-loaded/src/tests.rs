#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::fake::Host;
use serde_json::{Value, json};

use super::*;

fn module(version: &str) -> Value {
    json!({"metadata": {"name": "kmod", "namespace": "n"}, "spec": {"selector": {"gpu": "yes"},
        "moduleLoader": {"container": {"version": version, "kernelMappings": [
            {"regexp": "^5\\.14\\..+\\.x86_64$", "containerImage": "i"}, {"literal": "6.1.0+x"}]}}}})
}

/// A node, its kernel, and the version loaded on it: none, empty, or one.
fn node(name: &str, kernel: &str, version: Option<&str>) -> Value {
    let mut labels = json!({"gpu": "yes"});
    if let Some(version) = version {
        labels["kmm.node.kubernetes.io/n.kmod.ready"] = json!("");
        labels["kmm.node.kubernetes.io/n.kmod.version.ready"] = json!(version);
    }
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": {"nodeInfo": {"kernelVersion": kernel}}})
}

const KERNEL: &str = "5.14.0-284.x86_64";

#[track_caller]
fn check(host: Host, target: Value, expected: &[&str], told: &str) {
    let answer = host.check::<Loaded>(target).unwrap();
    let line = |blocker: &Blocker| {
        format!("{} {}: {}", blocker.reason, blocker.node.as_deref().unwrap_or("-"), blocker.message)
    };
    assert_eq!(answer.blockers().iter().map(line).collect::<Vec<_>>(), expected);
    assert_eq!(answer.report().conditions[0].message, told);
}

#[test]
fn it_is_ready_when_every_node_with_a_mapped_kernel_carries_the_label() {
    let host = Host::new()
        .object(node("a", KERNEL, Some("")))
        .object(node("b", "6.1.0+x", Some("")))
        .object(node("c", "6.1.0-x", None));
    check(host, module(""), &[], "2/2 nodes, 1 without a mapping for their kernel");
}

#[test]
fn who_is_waited_for_is_named_and_who_has_no_mapping_too() {
    let host = Host::new()
        .object(node("a", KERNEL, Some("")))
        .object(node("b", KERNEL, None))
        .object(node("c", "4.18.0", None));
    let expected =
        ["ModuleNotLoaded b: kmod is not loaded yet", "KernelNotMapped c: kernel 4.18.0 has no mapping"];
    check(host, module(""), &expected, "1/2 nodes, 1 without a mapping for their kernel");
}

#[test]
fn an_older_version_is_not_the_wanted_one() {
    let host = Host::new().object(node("a", KERNEL, Some("1"))).object(node("b", KERNEL, Some("2")));
    let expected = ["OtherVersionLoaded a: version 1 of kmod is loaded, 2 is wanted"];
    check(host, module("2"), &expected, "1/2 nodes, 0 without a mapping for their kernel");
}

#[test]
fn nodes_without_mapping_hold_where_the_config_says_so() {
    let host = Host::new().object(node("c", "4.18.0", None));
    let told = "0/0 nodes, 1 without a mapping for their kernel";
    check(host.clone(), module(""), &[], told);
    let strict = host.clone().config(json!({"everyKernelIsMapped": true}));
    check(strict, module(""), &["KernelNotMapped c: kernel 4.18.0 has no mapping"], told);
    let some = host.config(json!({"emptyIsReady": false}));
    let expected = [
        "NoNodes -: no node with a mapped kernel matches the selector",
        "KernelNotMapped c: kernel 4.18.0 has no mapping",
    ];
    check(some, module(""), &expected, told);
}

#[test]
fn a_mapping_that_is_no_expression_waits_for_an_edit() {
    let mut broken = module("");
    broken["spec"]["moduleLoader"]["container"]["kernelMappings"][0]["regexp"] = json!("(");
    let failure = Host::new().check::<Loaded>(broken).unwrap_err();
    assert_eq!(failure.retry(), pintle_plugin_sdk::Retry::WhenInputsChange);
    assert!(failure.message().starts_with("kernel mapping (:"), "{failure}");
}
