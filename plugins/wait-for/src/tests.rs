#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::fake::Host;
use serde_json::{Value, json};

use super::*;

fn deployment(generation: i64, status: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "status": status,
        "metadata": {"name": "web", "namespace": "shop", "generation": generation}})
}

fn host() -> Host {
    Host::new()
        .args(json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "shop",
        "condition": "Available"}))
}

#[track_caller]
fn waits_for(host: Host, expected: Option<&str>) {
    let answer = host.check::<WaitFor>(json!({"metadata": {"name": "target"}})).unwrap();
    let said = answer.blockers().first().map(|blocker| format!("{}: {}", blocker.reason, blocker.message));
    assert_eq!(said.as_deref(), expected);
}

#[test]
fn a_met_condition_of_the_current_generation_is_ready() {
    let met = json!([{"type": "Progressing", "status": "False"}, {"type": "Available", "status": "True"}]);
    waits_for(host().object(deployment(2, json!({"observedGeneration": 2, "conditions": met}))), None);
    let old = deployment(3, json!({"observedGeneration": 2, "conditions": met}));
    let expected = "StatusIsOld: the status of Deployment shop/web is of generation 2, not 3";
    waits_for(host().object(old), Some(expected));
}

#[test]
fn what_is_not_there_or_not_met_is_named() {
    waits_for(host(), Some("ObjectMissing: Deployment shop/web does not exist yet"));
    let none = deployment(1, json!({}));
    waits_for(
        host().object(none),
        Some("ConditionMissing: Deployment shop/web has no condition Available yet"),
    );
    let unmet = json!({"conditions": [{"type": "Available", "status": "False", "message": "no pods"}]});
    let expected = "ConditionNotMet: Available of Deployment shop/web is False: no pods";
    waits_for(host().object(deployment(1, unmet)), Some(expected));
}

#[test]
fn a_denied_read_and_an_empty_condition_are_failures() {
    let denied = host().deny("Deployment").check::<WaitFor>(json!({"metadata": {"name": "t"}})).unwrap_err();
    assert!(denied.message().starts_with("Deployment shop/web cannot be read: "), "{denied}");
    let refused = Host::new().config(json!({"condition": ""})).validate::<WaitFor>().unwrap_err();
    assert_eq!(refused.message(), "spec.config.condition is empty");
}
