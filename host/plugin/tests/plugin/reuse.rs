//! An answer is given again while all that it was made from is the same, and never otherwise.

use std::sync::Arc;

use pintle_api::{Answer, Given, ObjectRef, Read, Record};
use pintle_plugin::{Call, CallResult, Checked, Operation, Outcome, Plugin};
use serde_json::{Value, json};

use crate::setting::{call, load, object, spec, target};

fn knows(pod: Value) -> Record {
    let mut facts = Record::default();
    let read = Read::Get(ObjectRef::new("v1", "Pod", "p").within("n"));
    facts.insert(read, Given::Object(Answer::Found(Arc::new(object(pod)))));
    facts
}

fn pod(phase: &str, node: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": node}, "status": {"phase": phase},
        "metadata": {"name": "p", "namespace": "n", "resourceVersion": phase}})
}

/// A plugin that reads a pod, of which it is shown the phase; each test has its own answers.
async fn looks(name: &str) -> Plugin {
    let grants = json!({"config": {"test": name}, "grants": {"read": [{"apiGroups": [""], "kinds": ["Pod"],
        "fields": ["status.phase"]}]}});
    load("look", &grants).await.unwrap()
}

async fn check(plugin: &Plugin, call: Call) -> CallResult<Checked> {
    plugin.check(call, target()).await
}

#[tokio::test]
async fn an_answer_is_given_again_with_the_same_reads() {
    let plugin = looks("again").await;
    let first = check(&plugin, call(knows(pod("Running", "a")))).await;
    let second = check(&plugin, call(knows(pod("Running", "a")))).await;
    assert!(!first.reused && second.reused);
    assert_eq!((first.outcome, first.record, first.inputs), (second.outcome, second.record, second.inputs));
}

#[tokio::test]
async fn a_change_that_the_guest_is_not_shown_changes_nothing() {
    let plugin = looks("masked").await;
    check(&plugin, call(knows(pod("Running", "a")))).await;
    let moved = check(&plugin, call(knows(pod("Running", "b")))).await;
    assert!(moved.reused);
    assert_eq!(moved.record, knows(pod("Running", "b")), "what is watched is what is there now");
    assert!(!check(&plugin, call(knows(pod("Failed", "b")))).await.reused);
}

#[tokio::test]
async fn what_became_unknown_is_not_answered_from_before() {
    let plugin = looks("unknown").await;
    check(&plugin, call(knows(pod("Running", "a")))).await;
    let unknown = check(&plugin, call(Record::default())).await;
    assert!(matches!(unknown.outcome, Outcome::NeedsFacts(_)), "{:?}", unknown.outcome);
    let gone = Read::Get(ObjectRef::new("v1", "Pod", "p").within("n"));
    let mut missing = Record::default();
    missing.insert(gone, Given::Object(Answer::Missing));
    assert!(!check(&plugin, call(missing.clone())).await.reused);
    assert!(check(&plugin, call(missing)).await.reused, "a miss is an answer like any other");
}

#[tokio::test]
async fn another_release_state_target_or_argument_is_another_call() {
    let plugin = looks("calls").await;
    let base = || call(knows(pod("Running", "a")));
    check(&plugin, base()).await;
    let others = [
        Call { state: "2000".into(), ..base() },
        Call { pool: "k5".into(), ..base() },
        Call { operation: Operation::Upgrade, ..base() },
        Call { args: json!({"a": 1}).as_object().unwrap().clone(), ..base() },
        Call { release: pintle_plugin::Release { name: "other".into(), ..base().release }, ..base() },
        Call { release: pintle_plugin::Release { revision: 2, ..base().release }, ..base() },
        Call { own: Arc::default(), ..base() },
    ];
    for other in others {
        let what = format!("{other:?}");
        assert!(!check(&plugin, other).await.reused, "{what}");
    }
    let target = object(json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "e"}}));
    assert!(!plugin.check(base(), Arc::new(target)).await.reused);
    assert!(check(&plugin, base()).await.reused);
}

#[tokio::test]
async fn inputs_count_only_when_the_guest_read_them() {
    let plugin = looks("inputs").await;
    let with = |values: Value| Call { values: Arc::new(values), ..call(knows(pod("Running", "a"))) };
    check(&plugin, with(json!({"a": 1}))).await;
    assert!(check(&plugin, with(json!({"a": 2}))).await.reused, "it never asked for the values");
}

#[tokio::test]
async fn time_and_failures_are_never_answered_from_before() {
    let clock = load("clock", &json!({})).await.unwrap();
    for _ in 0..2 {
        assert!(!check(&clock, call(Record::default())).await.reused);
    }
    let trap = load("trap", &json!({})).await.unwrap();
    for _ in 0..2 {
        let result = check(&trap, call(Record::default())).await;
        assert!(!result.reused && matches!(result.outcome, Outcome::Failed(_)));
    }
}

#[tokio::test]
async fn changed_grants_or_config_are_another_plugin() {
    let plugin = looks("grants").await;
    let ask = || call(knows(pod("Running", "a")));
    check(&plugin, ask()).await;
    for more in [json!({}), json!({"config": {"test": "other"}}), json!({"limits": {"memory": "1Mi"}})] {
        let changed = plugin.rebind(&spec(&more)).await.unwrap();
        assert!(!check(&changed, ask()).await.reused, "{more}");
    }
}
