//! Lists that an apply cannot mend. The server merges them by the keys of their items: where somebody changed a key,
//! an apply adds our item beside the changed one, and what is unique elsewhere in them is there twice.

use pintle_api::{Object, ObjectRef, names};
use serde_json::{Value, json};

use super::{ApiError, Cause, Patch, Writer, item_path};
use crate::{counters::Verb, link::Query};

impl Writer {
    /// Puts the lists of `rendered` in place of those that differ in the live object, and gives all of it to our
    /// applies; false when no list differs. Items of other names stay, and
    /// so does what only the live item of a name has.
    ///
    /// # Errors
    /// [`Cause::Stale`] when the object changed in between: again. See [`Cause`].
    ///
    /// # Cancellation
    /// The write may or may not have happened.
    pub async fn replace_lists(&self, rendered: &Object) -> Result<bool, ApiError> {
        let target = rendered.reference();
        let live = self.read_whole(&target).await?;
        let mut operations = Vec::new();
        differing(&rendered.to_value(), &live.to_value(), String::new(), &mut operations);
        if operations.is_empty() {
            return Ok(false);
        }
        let version = live.resource_version();
        operations.insert(0, json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}));
        self.patch(&target, None, &Patch::Json(operations)).await?;
        self.adopt(&target, &[names::MANAGER]).await?;
        Ok(true)
    }

    /// The object as the server has it now, whole.
    pub(super) async fn read_whole(&self, target: &ObjectRef) -> Result<Object, ApiError> {
        let served = self.served(Verb::Get, target)?;
        let request = Query::new(&item_path(&served, Verb::Get, target)?).get();
        let reply = self.send(Verb::Get, target, &served.resource(), request).await?;
        let unreadable = |failure| ApiError::new(Verb::Get, target.clone(), Cause::Unexpected(failure));
        reply.json().map_err(unreadable)
    }
}

/// A replacement for each outermost list of mappings that has other items than the live one.
fn differing(rendered: &Value, live: &Value, at: String, operations: &mut Vec<Value>) {
    match (rendered, live) {
        (Value::Object(rendered), Value::Object(live)) => {
            for (key, value) in rendered {
                if let Some(live) = live.get(key) {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    differing(value, live, format!("{at}/{key}"), operations);
                }
            }
        }
        (Value::Array(rendered), Value::Array(live)) if rendered.iter().all(Value::is_object) => {
            let mut merged: Vec<Value> = rendered.iter().map(|item| over(item, live)).collect();
            let is_of_others = |item: &&Value| {
                item.get("name").is_some_and(|name| rendered.iter().all(|own| own.get("name") != Some(name)))
            };
            merged.extend(live.iter().filter(is_of_others).cloned());
            let is_same = merged.len() == live.len() && merged.iter().all(|item| live.contains(item));
            if !rendered.is_empty() && !is_same {
                operations.push(json!({"op": "replace", "path": at, "value": merged}));
            }
        }
        _ => {}
    }
}

/// The live item of the same name with our keys; lists and mappings inside of it are the apply's to merge.
fn over(item: &Value, live: &[Value]) -> Value {
    let of_name = live.iter().find(|live| live.get("name").is_some() && live.get("name") == item.get("name"));
    let Some(Value::Object(mut merged)) = of_name.cloned() else { return item.clone() };
    for (key, value) in item.as_object().into_iter().flatten() {
        if !merged.contains_key(key) || !(value.is_array() || value.is_object()) {
            merged.insert(key.clone(), value.clone());
        }
    }
    Value::Object(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_differ_are_replaced_and_keep_what_the_server_gave_their_items() {
        let rendered = json!({"spec": {"type": "NodePort", "ports": [{"name": "http", "port": 80}], "same": [{"a": 1}],
            "texts": ["a"], "new": [{"b": 1}]}});
        let live = json!({"spec": {"type": "NodePort", "ports": [{"name": "http", "port": 1234, "nodePort": 30000}],
            "same": [{"a": 1}], "texts": ["b"]}});
        let mut operations = Vec::new();
        differing(&rendered, &live, String::new(), &mut operations);
        let ports = json!([{"name": "http", "port": 80, "nodePort": 30000}]);
        assert_eq!(operations, [json!({"op": "replace", "path": "/spec/ports", "value": ports})]);
    }

    #[test]
    fn what_others_put_into_a_list_stays() {
        let rendered =
            json!({"containers": [{"name": "a", "image": "a:1", "env": [{"name": "A"}]}], "none": []});
        let own = json!({"name": "a", "image": "a:1", "env": [{"name": "A"}, {"name": "INJECTED"}]});
        let live = json!({"containers": [{"name": "sidecar"}, own], "none": [{"name": "theirs"}]});
        let mut operations = Vec::new();
        differing(&rendered, &live, String::new(), &mut operations);
        assert!(operations.is_empty(), "{operations:?}");
        let mut edited = live;
        edited["containers"][1]["image"] = json!("a:2");
        differing(&rendered, &edited, String::new(), &mut operations);
        assert_eq!(operations[0]["value"], json!([own, {"name": "sidecar"}]));
    }
}
