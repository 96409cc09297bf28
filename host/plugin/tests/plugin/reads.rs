//! What a guest is given: within the grants, masked, recorded, and stable.

use std::sync::Arc;

use pintle_api::{Answer, Given, LogTail, ObjectRef, Read, Record};
use pintle_plugin::{Call, Outcome};
use serde_json::{Value, json};

use crate::setting::{call, line, load, object, target};

fn pod() -> ObjectRef {
    ObjectRef::new("v1", "Pod", "p").within("n")
}

fn knows_pod(answer: Answer<Value>) -> Record {
    let mut facts = Record::default();
    facts.insert(Read::Get(pod()), Given::Object(answer.map(|json| Arc::new(object(json)))));
    facts
}

fn running() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": "node-a"}, "status": {"phase": "Running"},
        "metadata": {"name": "p", "namespace": "n", "labels": {"app": "d"}, "resourceVersion": "3"}})
}

async fn check(grant: Value, facts: Record, expected: &str) {
    let grants = json!({"grants": {"read": [grant]}});
    let grants = if grants["grants"]["read"][0].is_null() { json!({}) } else { grants };
    let plugin = load("read", &grants).await.unwrap();
    let result = plugin.check(call(facts), target()).await;
    let line = line(&result);
    assert!(line.contains(expected), "expected {expected:?} in {line:?}");
}

#[tokio::test]
async fn a_read_without_a_grant_names_the_line_that_would_grant_it() {
    let line = "Plugin read would: - {apiGroups: [\"\"], kinds: [Pod], namespaces: [$release]}";
    check(Value::Null, knows_pod(Answer::Found(running())), line).await;
    let elsewhere = json!({"apiGroups": [""], "kinds": ["Pod"], "namespaces": ["other"]});
    check(elsewhere, knows_pod(Answer::Found(running())), line).await;
    let other_kind = json!({"apiGroups": [""], "kinds": ["Node"]});
    check(other_kind, knows_pod(Answer::Found(running())), line).await;
}

#[tokio::test]
async fn a_grant_shows_its_fields_and_nothing_else() {
    let grant =
        json!({"apiGroups": [""], "kinds": ["Pod"], "namespaces": ["$release"], "fields": ["status.phase"]});
    let shown = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n"},"status":{"phase":"Running"}}"#;
    check(grant, knows_pod(Answer::Found(running())), shown).await;
    let whole = json!({"apiGroups": [""], "kinds": ["Pod"]});
    let shown =
        r#""metadata":{"labels":{"app":"d"},"name":"p","namespace":"n"},"spec":{"nodeName":"node-a"}"#;
    check(whole, knows_pod(Answer::Found(running())), shown).await;
}

#[tokio::test]
async fn a_label_selector_of_a_grant_holds_for_single_objects_too() {
    let grant = |selector: &str| json!({"apiGroups": [""], "kinds": ["Pod"], "labelSelector": selector});
    check(grant("app=d"), knows_pod(Answer::Found(running())), "Running").await;
    check(grant("app=x"), knows_pod(Answer::Found(running())), "outside of the label selectors").await;
}

#[tokio::test]
async fn what_is_not_there_is_told_apart_from_what_is_not_known() {
    let grant = json!({"apiGroups": [""], "kinds": ["Pod"]});
    check(grant.clone(), knows_pod(Answer::Missing), "failed: not-found").await;
    check(grant.clone(), knows_pod(Answer::KindUnknown), "failed: kind-unknown").await;
    check(grant.clone(), knows_pod(Answer::Denied("RBAC says no".into())), "failed: RBAC says no").await;
    check(grant, Record::default(), "needs [Get(ObjectRef").await;
}

#[tokio::test]
async fn a_call_ends_with_the_facts_it_needs_and_records_misses() {
    let plugin =
        load("read", &json!({"grants": {"read": [{"apiGroups": [""], "kinds": ["Pod"]}]}})).await.unwrap();
    let first = plugin.check(call(Record::default()), target()).await;
    assert_eq!(first.outcome, Outcome::NeedsFacts(vec![Read::Get(pod())]));
    assert!(first.called.unavailable);
    let second = plugin.check(call(knows_pod(Answer::Missing)), target()).await;
    assert_eq!(second.record, knows_pod(Answer::Missing), "a miss is watched as well");
    assert!(second.called.is_pure());
}

#[tokio::test]
async fn objects_of_the_release_need_no_grant() {
    let own = Call { own: Arc::new([pod()].into()), ..call(knows_pod(Answer::Found(running()))) };
    let result = load("read", &json!({})).await.unwrap().check(own, target()).await;
    assert!(line(&result).contains("node-a"), "{}", line(&result));
}

#[tokio::test]
async fn logs_need_a_grant_of_their_own_and_are_read_at_most_once() {
    let plugin = load("tail", &json!({})).await.unwrap();
    let refused = plugin.check(call(Record::default()), target()).await;
    assert!(line(&refused).contains("spec.grants.logs of Plugin tail would: - {namespaces: [$release]}"));
    let granted = json!({"grants": {"logs": [{"namespaces": ["$release"], "labelSelector": "app=d"}]}});
    let plugin = load("tail", &granted).await.unwrap();
    let mut facts = knows_pod(Answer::Found(running()));
    let needs = plugin.check(call(facts.clone()), target()).await;
    let Outcome::NeedsFacts(reads) = &needs.outcome else { panic!("{}", line(&needs)) };
    let [Read::Tail(LogTail { lines: 10, max_bytes: 262_144, .. })] = reads.as_slice() else {
        panic!("{reads:?}")
    };
    facts.insert(reads[0].clone(), Given::Text(Answer::Found("loaded".into())));
    let read = plugin.check(call(facts), target()).await;
    assert!(line(&read).ends_with("failed: loaded"), "{}", line(&read));
    assert!(read.called.logs && !read.called.is_pure());
}

#[tokio::test]
async fn inputs_do_not_change_with_writes_that_change_nothing_else() {
    let target_seen = load("echo", &json!({})).await.unwrap().check(call(Record::default()), target()).await;
    let expected =
        r#"failed: {"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"d","namespace":"n"}}"#;
    assert!(line(&target_seen).ends_with(expected), "{}", line(&target_seen));
    let owner = load("owner", &json!({})).await.unwrap().check(call(Record::default()), target()).await;
    let line = line(&owner);
    assert!(line.starts_with("fatal WhenInputsChange"), "{line}");
    assert!(
        line.ends_with(r#""spec":{"a":1},"status":{"plugins":{}}}"#) && !line.contains("resourceVersion"),
        "{line}"
    );
}

#[tokio::test]
async fn who_asks_for_the_time_says_so() {
    let result = load("clock", &json!({})).await.unwrap().check(call(Record::default()), target()).await;
    assert!(result.called.clock && line(&result).starts_with("Pending"), "{}", line(&result));
}
