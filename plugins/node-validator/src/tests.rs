#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::{Outcome, fake::Host};

use super::*;

fn node(name: &str, is_closed: bool) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"gpu": "yes"}},
        "spec": {"unschedulable": is_closed}})
}

fn host() -> Host {
    let config = json!({"image": "r.example/check:1", "nodeSelector": {"gpu": "yes"}, "attempts": 2,
        "resource": "vendor.example/gpu"});
    Host::new().config(config).objects([node("a", false), node("b", false), node("c", true)])
}

/// The step after pods of these keys came to these phases.
fn after(host: Host, phases: &[(&str, &str)]) -> Step {
    let applied =
        phases.iter().map(|(key, phase)| (*key, json!({"kind": "Pod", "status": {"phase": phase}})));
    host.on_phase::<NodeValidator>(Phase::Post, [], applied).unwrap()
}

fn lines(step: &Step) -> Vec<String> {
    let Outcome::Hold(pending) = step.outcome() else { return Vec::new() };
    let line = |blocker: &Blocker| {
        format!("{} {}: {}", blocker.reason, blocker.node.as_deref().unwrap_or("-"), blocker.message)
    };
    pending.blockers.iter().map(line).collect()
}

#[test]
fn each_node_that_takes_pods_has_one_and_all_must_succeed() {
    let first = after(host(), &[]);
    assert_eq!(lines(&first).len(), 2);
    let keys: Vec<_> = first.wanted().map(|(key, _)| key.to_owned()).collect();
    assert_eq!(keys, ["a-1", "b-1"]);
    let (_, pod) = first.wanted().next().unwrap();
    let pod: Value = serde_json::from_str(pod).unwrap();
    assert_eq!((&pod["spec"]["nodeName"], &pod["spec"]["restartPolicy"]), (&json!("a"), &json!("Never")));
    assert_eq!(pod["spec"]["containers"][0]["resources"]["limits"]["vendor.example/gpu"], "1");
    let half = after(host(), &[("a-1", "Succeeded"), ("b-1", "Running")]);
    assert_eq!(lines(&half), ["Validating b: its pod has not finished"]);
    let whole = after(host(), &[("a-1", "Succeeded"), ("b-1", "Succeeded")]);
    assert_eq!(*whole.outcome(), Outcome::Go);
}

#[test]
fn a_failure_is_tried_again_with_the_end_of_its_log_and_not_for_ever() {
    let pod = "release-validate-b-1-1";
    let said = || host().log("namespace", pod, None, "one\ntwo\nno device\n");
    let again = after(said(), &[("a-1", "Succeeded"), ("b-1", "Failed")]);
    assert_eq!(lines(&again), ["Validating b: attempt 1 of 2 failed: one / two / no device"]);
    let keys: Vec<_> = again.wanted().map(|(key, _)| key.to_owned()).collect();
    assert_eq!(keys, ["a-1", "b-2"], "another pod takes the place of the one that failed");
    let saved: Value = serde_json::from_str(again.report().save.as_deref().unwrap()).unwrap();
    assert_eq!(saved, json!({"a": 1, "b": 2}));
    let last = host().saved(saved).log("namespace", "release-validate-b-1-2", None, "");
    let last = after(last, &[("a-1", "Succeeded"), ("b-2", "Failed")]);
    assert_eq!(lines(&last), ["ValidationFailed b: all 2 attempts failed"]);
}

#[test]
fn nothing_is_made_before_a_state_and_without_an_image() {
    let before = host().on_phase::<NodeValidator>(Phase::Pre, [], []).unwrap();
    assert!(*before.outcome() == Outcome::Go && before.wanted().next().is_none());
    assert!(Host::new().validate::<NodeValidator>().is_err());
    let denied = host().deny("Node").on_phase::<NodeValidator>(Phase::Post, [], []);
    assert!(denied.unwrap_err().message().contains("Node is not granted"));
}
