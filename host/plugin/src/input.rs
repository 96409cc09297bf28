//! Objects as a guest sees them: without what changes on each write, without the values of Secrets.

use pintle_api::Object;
use serde_json::{Map, Value};

use crate::{
    grants::is_secret,
    mask::{self, FieldPath, Mask},
};

/// What kubectl keeps of the last manifest: it repeats the object, Secrets included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The part of an object that a guest is shown: the fields of the mask, and always what names the
/// object. The version and the managers of the object are left out, so that a write that changes
/// nothing else changes no input; Secrets have their keys, with empty values.
pub(crate) fn shown(object: &Object, mask: &Mask) -> Map<String, Value> {
    let mut map = match mask {
        Mask::Whole => without_metadata(object.json()),
        Mask::Part(_) => mask.keep(object.json()),
    };
    for field in ["apiVersion", "kind"] {
        copy(object.json(), &mut map, field);
    }
    map.insert("metadata".to_owned(), Value::Object(metadata(object, mask)));
    if is_secret(object.api_version(), object.kind()) {
        keep_keys(&mut map);
    }
    map
}

/// The owner as a guest sees it: also without what the host writes itself.
pub(crate) fn owner(object: &Object, host_fields: &[String]) -> Map<String, Value> {
    let mut map = shown(object, &Mask::Whole);
    let paths = host_fields.iter().filter_map(|field| FieldPath::parse(field).ok());
    paths.for_each(|path| mask::remove(&mut map, &path));
    map
}

fn without_metadata(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter()
        .filter(|(key, _)| *key != "metadata")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn metadata(object: &Object, mask: &Mask) -> Map<String, Value> {
    let Some(whole) = object.json().get("metadata").and_then(Value::as_object) else { return Map::new() };
    let mut kept = match mask {
        Mask::Whole => stable(whole),
        Mask::Part(fields) => {
            fields.get("metadata").map(|mask| stable(&mask.keep(whole))).unwrap_or_default()
        }
    };
    for field in ["name", "namespace"] {
        copy(whole, &mut kept, field);
    }
    kept
}

fn stable(metadata: &Map<String, Value>) -> Map<String, Value> {
    let is_stable = |key: &str| !matches!(key, "managedFields" | "resourceVersion");
    let kept = metadata.iter().filter(|(key, _)| is_stable(key));
    let mut kept: Map<String, Value> = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    if let Some(annotations) = kept.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    kept
}

fn copy(from: &Map<String, Value>, to: &mut Map<String, Value>, field: &str) {
    if let Some(value) = from.get(field) {
        to.insert(field.to_owned(), value.clone());
    }
}

fn keep_keys(secret: &mut Map<String, Value>) {
    for field in ["data", "stringData"] {
        if let Some(data) = secret.get_mut(field).and_then(Value::as_object_mut) {
            data.values_mut().for_each(|value| *value = Value::from(""));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    fn object(json: Value) -> Object {
        Object::new(json).unwrap()
    }

    #[test]
    fn a_write_that_changes_nothing_else_changes_no_input() {
        let seen = |version: &str| {
            let object = object(json!({"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": "n"},
                "metadata": {"name": "p", "resourceVersion": version, "managedFields": [{"manager": version}]}}));
            shown(&object, &Mask::Whole)
        };
        assert_eq!(seen("1"), seen("2"));
        assert!(seen("1").get("spec").is_some());
    }

    #[test]
    fn secrets_have_keys_and_no_values_anywhere() {
        let secret =
            object(json!({"apiVersion": "v1", "kind": "Secret", "data": {"password": "aHVudGVyMg=="},
            "stringData": {"token": "hunter2"}, "metadata": {"name": "s", "annotations": {
                LAST_APPLIED: "{\"data\":{\"password\":\"aHVudGVyMg==\"}}", "other": "kept"}}}));
        let metadata = Mask::of(&[FieldPath::parse("metadata").unwrap(), FieldPath::parse("data").unwrap()]);
        for mask in [Mask::Whole, metadata] {
            let text = serde_json::to_string(&shown(&secret, &mask)).unwrap();
            assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
            assert!(text.contains("password") && text.contains("kept"), "{text}");
        }
    }

    #[test]
    fn what_names_an_object_is_always_shown_and_nothing_else_of_its_metadata() {
        let pod = object(json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running"},
            "metadata": {"name": "p", "namespace": "n", "labels": {"a": "b"}}}));
        let mask = Mask::of(&[FieldPath::parse("status.phase").unwrap()]);
        let expected = json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running"},
            "metadata": {"name": "p", "namespace": "n"}});
        assert_eq!(Value::Object(shown(&pod, &mask)), expected);
    }

    #[test]
    fn the_owner_is_shown_without_what_the_host_writes() {
        let owner_object = object(json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "o"},
            "status": {"state": "0000", "plugins": {"p": 1}}}));
        let seen = owner(&owner_object, &["status.state".to_owned()]);
        assert_eq!(seen.get("status"), Some(&json!({"plugins": {"p": 1}})));
    }
}
