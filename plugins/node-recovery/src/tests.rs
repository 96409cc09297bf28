#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::fake::Host;
use serde_json::Value;

use super::*;

const MINUTE: u64 = 60_000;

fn node(fault: Option<&str>) -> Value {
    let labels = json!({"vendor.example/card-broken": fault.unwrap_or_default()});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": labels}})
}

/// What is waited for, keys of the actions, and what is kept, at a minute.
fn at(minute: u64, fault: Option<&str>, saved: &Value) -> (String, Vec<String>, Value) {
    let host = Host::new().clock(minute * MINUTE, 0, 1).saved(saved.clone()).object(node(fault));
    let desired = host.reconcile::<NodeRecovery>([]).unwrap();
    let reason = desired.pending().map(|pending| pending.blockers()[0].reason.clone()).unwrap_or_default();
    let actions = desired.report().actions.iter().map(|action| action.key.clone()).collect();
    let kept = desired.report().save.as_deref().map(|text| serde_json::from_str(text).unwrap());
    (reason, actions, kept.unwrap_or_else(|| saved.clone()))
}

#[test]
fn a_node_is_recovered_so_often_in_a_window_and_again_after_it() {
    let (reason, actions, saved) = at(1_000, Some("one"), &json!({}));
    assert_eq!((reason.as_str(), actions), ("Recovering", vec!["cordon-a-one".to_owned()]));
    let (reason, actions, saved) = at(1_001, Some("one"), &saved);
    assert_eq!((reason.as_str(), actions.len()), ("Recovering", 0), "once for each break");
    let (reason, _, saved) = at(1_010, None, &saved);
    assert_eq!(reason, "", "mended");
    let (_, actions, saved) = at(1_020, Some("two"), &saved);
    assert_eq!(actions, ["cordon-a-two"]);
    let (reason, actions, saved) = at(1_030, Some("three"), &saved);
    assert_eq!((reason.as_str(), actions.len()), ("RecoveryDenied", 0));
    let (reason, actions, _) = at(1_061, Some("three"), &saved);
    assert_eq!(
        (reason.as_str(), actions),
        ("Recovering", vec!["cordon-a-three".to_owned()]),
        "the first is long ago"
    );
}

#[test]
fn what_cannot_be_read_is_not_taken_as_whole() {
    assert!(Host::new().deny("Node").reconcile::<NodeRecovery>([]).is_err());
}
