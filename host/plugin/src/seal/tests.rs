#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::grants::Granted;

fn secret(name: &str, data: Value) -> Map<String, Value> {
    let json = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data});
    json.as_object().unwrap().clone()
}

fn scope(secrets: Value) -> Scope {
    let grants = serde_json::from_value(json!({"secretValues": secrets})).unwrap();
    let granted = Arc::new(Granted::new(&grants).unwrap());
    Scope { plugin: "p".into(), granted, namespace: "n".into(), own: Arc::default() }
}

fn closed(seal: &mut Seal, mut object: Map<String, Value>) -> Map<String, Value> {
    seal.close(&mut object, &scope(json!([])));
    object
}

#[test]
fn a_secret_that_is_returned_as_it_was_seen_is_as_it_was() {
    let mut seal = Seal::default();
    let before = secret("a", json!({"password": "aHVudGVyMg==", "user": "bWU="}));
    let seen = closed(&mut seal, before.clone());
    assert!(!Value::Object(seen.clone()).to_string().contains("aHVudGVyMg"));
    let mut after = Object::new(Value::Object(seen)).unwrap();
    assert_eq!(seal.open(&mut after), Ok(()));
    assert_eq!(after.json(), &before);
}

#[test]
fn a_value_may_go_to_another_secret_and_nowhere_else() {
    let mut seal = Seal::default();
    let seen = closed(&mut seal, secret("a", json!({"password": "aHVudGVyMg=="})));
    let token = seen["data"]["password"].clone();
    let mut copy = Object::new(Value::Object(secret("b", json!({"p": token, "plain": "eA=="})))).unwrap();
    assert_eq!(seal.open(&mut copy), Ok(()));
    assert_eq!(copy.at("/data/p"), Some(&json!("aHVudGVyMg==")));
    let text = format!("password={}", token.as_str().unwrap());
    let elsewhere = [
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": token}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": text}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"annotations": {"a": token}}}),
        json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"a": token}}),
        json!({"apiVersion": "x/v1", "kind": "Secret", "data": {"a": token}}),
    ];
    for odd in elsewhere {
        assert_eq!(seal.open(&mut Object::new(odd.clone()).unwrap()), Err(Misplaced), "{odd}");
    }
}

#[test]
fn a_named_secret_is_shown_in_clear_text_and_the_call_says_so() {
    let mut seal = Seal::default();
    let named = scope(json!([{"namespaces": ["$release"], "names": ["a"]}]));
    let mut shown = secret("a", json!({"password": "aHVudGVyMg=="}));
    seal.close(&mut shown, &named);
    assert_eq!(shown["data"]["password"], "aHVudGVyMg==");
    assert!(seal.showed_clear_text());
    let mut other = secret("b", json!({"password": "aHVudGVyMg=="}));
    seal.close(&mut other, &named);
    assert_ne!(other["data"]["password"], "aHVudGVyMg==");
}

#[test]
fn values_come_back_at_their_path_alone() {
    let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
    let values = json!({"db": {"password": "hunter2", "user": "me"}});
    let sealed = SealedValues::close(values.clone(), &[path("db.password"), path("db.gone")]);
    assert!(!sealed.values().to_string().contains("hunter2"));
    assert_eq!(sealed.open(sealed.values().clone()), Ok(values));
    let token = sealed.values()["db"]["password"].clone();
    assert_eq!(sealed.open(json!({"banner": token})), Err(Misplaced));
    assert_eq!(sealed.open(json!({"db": {"password": "new"}})), Ok(json!({"db": {"password": "new"}})));
}
