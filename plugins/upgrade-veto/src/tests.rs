#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::{Outcome, fake::Host};
use serde_json::{Value, json};

use super::*;

fn node(name: &str, state: Option<&str>) -> Value {
    let labels = state.map(|state| json!({"vendor.example/driver-upgrade-state": state}));
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels.unwrap_or(json!({}))}})
}

fn pre(operation: Operation, states: &[Option<&str>]) -> Step {
    let nodes = states.iter().enumerate().map(|(at, state)| node(&format!("n{at}"), *state));
    let host = Host::new().operation(operation).objects(nodes);
    host.on_phase::<UpgradeVeto>(Phase::Pre, [], []).unwrap()
}

#[test]
fn nodes_under_upgrade_are_named_and_hold_upgrades_alone() {
    let states = [Some("drain-required"), Some("upgrade-done"), None, Some("")];
    let held = pre(Operation::Upgrade, &states);
    let Outcome::Hold(pending) = held.outcome() else { panic!("{:?}", held.outcome()) };
    assert_eq!(pending.blockers.len(), 1);
    let Blocker { node, message, .. } = &pending.blockers[0];
    assert_eq!(node.as_deref(), Some("n0"));
    assert_eq!(message, "its driver is still being upgraded (drain-required); the release waits for it");
    assert_ne!(*pre(Operation::Rollback, &states).outcome(), Outcome::Go);
    for operation in [Operation::Install, Operation::Steady, Operation::Delete] {
        assert_eq!(*pre(operation, &states).outcome(), Outcome::Go);
    }
    assert_eq!(*pre(Operation::Upgrade, &states[1..]).outcome(), Outcome::Go);
}

#[test]
fn what_cannot_be_read_is_not_taken_as_done() {
    let host = Host::new().operation(Operation::Upgrade).deny("Node");
    let denied = host.on_phase::<UpgradeVeto>(Phase::Pre, [], []).unwrap_err();
    assert!(denied.message().contains("Node is not granted"));
}
