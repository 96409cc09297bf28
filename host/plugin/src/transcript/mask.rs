//! Objects as a transcript may show them: without values of Secrets, and without what no guest sees.
//!
//! A guest is shown tokens or empty texts for values of Secrets, which depend on their place alone: so
//! a call with masked Secrets shows it the same.

use std::sync::Arc;

use pintle_api::{Given, Object, Record};
use serde_json::Value;

use super::Ask;
use crate::{Keyed, Rendered, grants::is_secret};

/// What kubectl keeps of the last manifest: it repeats the object, Secrets included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The object as it may be written to a file.
pub(super) fn object(object: &Object) -> Object {
    let mut masked = object.clone();
    if masked.at("/metadata").is_some() {
        let metadata = masked.map_mut(&["metadata"]);
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(LAST_APPLIED);
        }
    }
    if is_secret(object.api_version(), object.kind()) {
        for field in ["data", "stringData"] {
            if object.json().get(field).is_some_and(Value::is_object) {
                masked.map_mut(&[field]).values_mut().for_each(|value| *value = Value::from(""));
            }
        }
    }
    masked
}

/// The same reads with such objects.
pub(super) fn record(record: &Record) -> Record {
    let mut masked = Record::default();
    for (read, given) in record.iter() {
        let given = match given {
            Given::Object(answer) => Given::Object(answer.clone().map(|found| Arc::new(object(&found)))),
            Given::Objects(answer) => Given::Objects(answer.clone().map(|found| objects(&found))),
            Given::Text(answer) => Given::Text(answer.clone()),
        };
        masked.insert(read.clone(), given);
    }
    masked
}

/// The same question with such objects.
pub(super) fn ask(ask: &Ask) -> Ask {
    match ask {
        Ask::MapValues => Ask::MapValues,
        Ask::PostRender { objects } => {
            let masked =
                objects.iter().map(|one| Rendered { object: Arc::new(object(&one.object)), ..one.clone() });
            Ask::PostRender { objects: masked.collect() }
        }
        Ask::Check { target } => Ask::Check { target: Arc::new(object(target)) },
        Ask::OnPhase { phase, rendered, applied } => {
            Ask::OnPhase { phase: *phase, rendered: objects(rendered), applied: keyed(applied) }
        }
        Ask::Reconcile { applied } => Ask::Reconcile { applied: keyed(applied) },
        Ask::Finalize { applied } => Ask::Finalize { applied: keyed(applied) },
    }
}

fn objects(objects: &[Arc<Object>]) -> Vec<Arc<Object>> {
    objects.iter().map(|one| Arc::new(object(one))).collect()
}

fn keyed(keyed: &[Keyed]) -> Vec<Keyed> {
    keyed.iter().map(|one| Keyed { object: Arc::new(object(&one.object)), ..one.clone() }).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_keeps_its_keys_and_nothing_of_its_values_wherever_they_are() {
        let secret = Object::new(json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "aHVudGVyMg=="},
            "stringData": {"b": "hunter2"}, "metadata": {"name": "s", "managedFields": [{"f": "hunter2"}],
            "annotations": {LAST_APPLIED: "{\"stringData\":{\"b\":\"hunter2\"}}", "kept": "yes"}}}))
        .unwrap();
        let text = object(&secret).to_value().to_string();
        assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
        assert!(
            text.contains("\"a\":\"\"") && text.contains("\"b\":\"\"") && text.contains("kept"),
            "{text}"
        );
        let map = Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
            "metadata": {"name": "m"}}))
        .unwrap();
        assert_eq!(object(&map), map);
    }
}
