#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::{Retry, fake::Host};
use serde_json::{Value, json};

use super::*;

const LOADED: &str = "starting\n+ insmod /lib/modules/4.18.0/extra/simple-kmod.ko\n";

fn set(desired: u32) -> Value {
    json!({"metadata": {"name": "driver", "namespace": "n", "generation": 2},
        "spec": {"selector": {"matchLabels": {"app": "driver"}}},
        "status": {"observedGeneration": 2, "desiredNumberScheduled": desired}})
}

fn pod(node: &str, status: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("driver-{node}"), "namespace": "n",
        "labels": {"app": "driver"}}, "spec": {"nodeName": node}, "status": status})
}

fn running() -> Value {
    json!({"phase": "Running", "containerStatuses": [{"name": "driver", "state": {"running": {}}}]})
}

fn three() -> Host {
    ["a", "b", "c"].into_iter().fold(Host::new(), |host, node| host.object(pod(node, running())))
}

/// Every blocker as `reason node: message`, or `ready`.
fn lines(host: Host, target: Value) -> Vec<String> {
    let answer = host.check::<DriverLoaded>(target).unwrap();
    if answer.is_ready() {
        return vec!["ready".to_owned()];
    }
    let line = |blocker: &Blocker| {
        format!("{} {}: {}", blocker.reason, blocker.node.as_deref().unwrap_or("-"), blocker.message)
    };
    answer.blockers().iter().map(line).collect()
}

#[track_caller]
fn check(host: Host, target: Value, expected: &[&str]) {
    assert_eq!(lines(host, target), expected);
}

#[test]
fn it_is_ready_when_each_log_proves_it() {
    let host = ["a", "b", "c"]
        .iter()
        .fold(three(), |host, node| host.log("n", &format!("driver-{node}"), None, LOADED));
    check(host, set(3), &["ready"]);
}

#[test]
fn each_node_that_is_not_there_yet_is_named() {
    let host = three()
        .log("n", "driver-a", None, LOADED)
        .log("n", "driver-b", None, "building\nlinking\n\n")
        .log("n", "driver-c", None, "");
    let expected = [
        "DriverNotLoaded b: not loaded yet, the log ends with: linking",
        "DriverNotLoaded c: not loaded yet, the log is empty",
    ];
    check(host, set(3), &expected);
}

#[test]
fn a_failure_counts_until_a_later_line_says_otherwise() {
    let failed =
        format!("{LOADED}modprobe: ERROR: could not insert 'simple_kmod': Required key not available\n");
    let mended = format!("{failed}{LOADED}");
    let host = Host::new()
        .object(pod("a", running()))
        .object(pod("b", running()))
        .log("n", "driver-a", None, &failed)
        .log("n", "driver-b", None, &mended);
    let expected = "DriverFailed a: loading failed: modprobe: ERROR: could not insert 'simple_kmod': Required key not available";
    check(host, set(2), &[expected]);
}

#[test]
fn a_pod_that_does_not_run_says_why() {
    let waiting = json!({"phase": "Pending", "containerStatuses": [{"name": "driver",
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}]});
    let ended = json!({"phase": "Running", "containerStatuses": [{"name": "driver",
        "state": {"terminated": {"reason": "Error"}}}]});
    let host = Host::new()
        .object(pod("a", waiting))
        .object(pod("b", ended))
        .object(pod("c", json!({"phase": "Pending"})))
        .object(pod("", json!({})));
    let expected = [
        "PodNotRunning a: container driver waits: ImagePullBackOff: not found",
        "PodNotRunning b: container driver has ended: Error",
        "PodNotRunning c: the pod is Pending",
        "PodNotScheduled -: the pod has no node yet",
    ];
    check(host, set(3), &expected);
}

#[test]
fn nodes_without_a_pod_are_counted_and_pods_of_others_are_not() {
    let other = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "n",
        "labels": {"app": "other"}}, "spec": {"nodeName": "z"}});
    let host = Host::new().object(pod("a", running())).object(other).log("n", "driver-a", None, LOADED);
    check(host, set(3), &["PodMissing -: 2 of 3 nodes have no pod yet"]);
}

#[test]
fn a_status_of_an_old_generation_proves_nothing() {
    let mut target = set(0);
    target["status"]["observedGeneration"] = json!(1);
    check(Host::new(), target.clone(), &["StatusOutdated -: the status is not of generation 2 yet"]);
    target.as_object_mut().unwrap().remove("status");
    check(Host::new(), target, &["StatusOutdated -: the status is not of generation 2 yet"]);
}

#[test]
fn no_nodes_are_ready_or_not_as_the_config_says() {
    check(Host::new(), set(0), &["ready"]);
    let host = Host::new().config(json!({"emptyIsReady": false}));
    check(host, set(0), &["NoNodes -: no node matches the DaemonSet, and emptyIsReady is false"]);
}

#[test]
fn a_log_that_is_out_of_reach_holds_only_its_node() {
    let host = Host::new()
        .object(pod("a", running()))
        .object(pod("b", running()))
        .log_unavailable("n", "driver-a", "node is down")
        .log("n", "driver-b", None, LOADED);
    let expected = "LogNotReadable a: the log cannot be read: unavailable: node is down";
    check(host, set(2), &[expected]);
}

#[test]
fn a_missing_grant_is_a_failure_that_a_person_ends() {
    for kind in ["Pod", "Log"] {
        let failure = three().deny(kind).check::<DriverLoaded>(set(3)).unwrap_err();
        assert_eq!(failure.retry(), Retry::WhenInputsChange);
        assert_eq!(failure.message(), format!("denied: {kind} is not granted"));
    }
}

#[test]
fn lines_container_and_patterns_come_from_the_config() {
    let host = |config: Value| {
        let host = Host::new().config(config).object(pod("a", running()));
        host.log("n", "driver-a", Some("kmod"), "ready: gpu\nx\ny\n")
    };
    check(host(json!({"loaded": ["ready: *"], "container": "kmod"})), set(1), &["ready"]);
    let cut = host(json!({"loaded": ["ready: *"], "container": "kmod", "lines": 2}));
    check(cut, set(1), &["DriverNotLoaded a: not loaded yet, the log ends with: y"]);
    let elsewhere = lines(host(json!({"container": "other"})), set(1));
    assert_eq!(elsewhere, ["LogNotReadable a: the log cannot be read: not found"]);
}

#[test]
fn a_config_that_proves_nothing_is_refused() {
    let config = |json: Value| serde_json::from_value::<Config>(json);
    for odd in [json!({"loaded": []}), json!({"loaded": ["*"]}), json!({"lines": 0})] {
        assert!(DriverLoaded::validate(&config(odd).unwrap()).is_err());
    }
    assert!(DriverLoaded::validate(&Config::default()).is_ok());
    let typed = config(json!({"loded": ["x"]})).unwrap_err().to_string();
    assert!(typed.contains("unknown field `loded`"), "{typed}");
}

#[test]
fn a_long_line_is_cut_between_letters() {
    let cut = shown(&"ä".repeat(SHOWN));
    assert!(cut.ends_with("ä…") && cut.len() <= SHOWN + 4, "{}", cut.len());
}
