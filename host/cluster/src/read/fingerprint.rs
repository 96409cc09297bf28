//! Objects as one number, so that a change can be told from a new resourceVersion.

use std::{
    hash::{BuildHasher as _, Hash, Hasher},
    sync::LazyLock,
};

use pintle_api::{Answer, Given, Object};
use serde_json::Value;

/// Each kubelet writes it every few minutes, and nothing has changed.
const HEARTBEAT: &str = "lastHeartbeatTime";

/// A number that differs when the object differs in anything but `resourceVersion`, `managedFields` and the
/// times at which a node's conditions were last found to hold still. It holds within one process.
#[must_use]
pub fn object_fingerprint(object: &Object) -> u64 {
    let mut sum = 0_u64;
    for (field, value) in object.json() {
        let of_value = if field == "metadata" { hash_metadata(value) } else { hash(value) };
        sum = sum.wrapping_add(entry(field, of_value));
    }
    sum
}

/// A number that differs when the answer differs as [`object_fingerprint`] tells it; the kind of the
/// answer counts, the text of a denial does not.
#[must_use]
pub fn answer_fingerprint(given: &Given) -> u64 {
    match given {
        Given::Object(answer) => of_answer(answer, |object| object_fingerprint(object)),
        Given::Objects(answer) => of_answer(answer, |objects| {
            objects.iter().fold(0, |sum: u64, object| {
                // The name is part of the object, so the sum of all does not depend on their order.
                sum.wrapping_add(object_fingerprint(object))
            })
        }),
        Given::Text(answer) => of_answer(answer, |text| {
            let mut hasher = hasher();
            text.hash(&mut hasher);
            hasher.finish()
        }),
    }
}

/// The fingerprint of the answer to a get, from that of its object.
pub(super) fn of_lone_object(object: Option<u64>) -> u64 {
    of_answer(&object.map_or(Answer::Missing, Answer::Found), |fingerprint| *fingerprint)
}

fn of_answer<T>(answer: &Answer<T>, found: impl Fn(&T) -> u64) -> u64 {
    let (word, value) = match answer {
        Answer::Found(value) => (0_u8, found(value)),
        Answer::Missing => (1, 0),
        Answer::KindUnknown => (2, 0),
        Answer::NotYet => (3, 0),
        Answer::Denied(_) => (4, 0),
    };
    let mut hasher = hasher();
    (word, value).hash(&mut hasher);
    hasher.finish()
}

fn hash_metadata(metadata: &Value) -> u64 {
    let Value::Object(metadata) = metadata else { return hash(metadata) };
    let counts = |field: &str| field != "resourceVersion" && field != "managedFields";
    let kept = metadata.iter().filter(|(field, _)| counts(field));
    kept.fold(0, |sum, (field, value)| sum.wrapping_add(entry(field, hash(value))))
}

/// The same for the whole process, and quick: objects are hashed at each look.
fn hasher() -> impl Hasher {
    static STATE: LazyLock<foldhash::quality::RandomState> = LazyLock::new(Default::default);
    STATE.build_hasher()
}

fn entry(key: &str, value: u64) -> u64 {
    let mut hasher = hasher();
    (key, value).hash(&mut hasher);
    hasher.finish()
}

/// Keys of a mapping count in no order, since two answers of the server need not agree in it.
fn hash(value: &Value) -> u64 {
    let mut hasher = hasher();
    match value {
        Value::Null => 0_u8.hash(&mut hasher),
        Value::Bool(bool) => (1_u8, bool).hash(&mut hasher),
        Value::Number(number) => (2_u8, number).hash(&mut hasher),
        Value::String(text) => (3_u8, text).hash(&mut hasher),
        Value::Array(list) => {
            (4_u8, list.len()).hash(&mut hasher);
            list.iter().for_each(|item| hash(item).hash(&mut hasher));
        }
        Value::Object(map) => {
            let is_condition = map.contains_key("type") && map.contains_key("status");
            let counted = map.iter().filter(|(key, _)| !is_condition || *key != HEARTBEAT);
            let sum = counted.fold(0_u64, |sum, (key, value)| sum.wrapping_add(entry(key, hash(value))));
            (5_u8, map.len(), sum).hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    fn map(metadata: Value, data: Value) -> Object {
        Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
            .unwrap()
    }

    #[test]
    fn versions_and_managers_do_not_count_and_everything_else_does() {
        let one = map(json!({"name": "a", "resourceVersion": "1"}), json!({"k": "v"}));
        let same =
            map(json!({"resourceVersion": "2", "managedFields": [{}], "name": "a"}), json!({"k": "v"}));
        assert_eq!(object_fingerprint(&one), object_fingerprint(&same));
        for other in [
            map(json!({"name": "a"}), json!({"k": "w"})),
            map(json!({"name": "a"}), json!({"k": ["v"]})),
            map(json!({"name": "a", "labels": {"l": ""}}), json!({"k": "v"})),
            map(json!({"name": "a"}), json!({"v": "k"})),
        ] {
            assert_ne!(object_fingerprint(&one), object_fingerprint(&other));
        }
    }

    #[test]
    fn a_condition_that_was_found_to_hold_still_is_the_same() {
        let node = |status: &str, beat: &str| {
            let condition = json!({"type": "Ready", "status": status, "lastHeartbeatTime": beat});
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
                              "status": {"conditions": [condition]}});
            object_fingerprint(&Object::new(node).unwrap())
        };
        assert_eq!(node("True", "1"), node("True", "2"));
        assert_ne!(node("True", "1"), node("False", "1"));
        let beat = |beat: &str| object_fingerprint(&map(json!({"name": "a"}), json!({HEARTBEAT: beat})));
        assert_ne!(beat("1"), beat("2"), "elsewhere it is data as any other");
    }

    #[test]
    fn missing_is_not_unknown() {
        let missing = answer_fingerprint(&Given::Object(Answer::Missing));
        assert_ne!(missing, answer_fingerprint(&Given::Object(Answer::KindUnknown)));
    }
}
