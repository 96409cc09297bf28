//! Lists that an apply cannot mend. The server merges them by the keys of their items: where somebody changed a key,
//! an apply adds our item beside the changed one, and what is unique elsewhere in them is there twice.

use pintle_api::{Object, ObjectRef, names};
use serde_json::{Value, json};

use super::{ApiError, Cause, Patch, Writer, item_path};
use crate::{counters::Verb, link::Query};

impl Writer {
    /// Puts the lists of `rendered` in place of those that differ in the live object, and gives all of it to our
    /// applies; false when no list differs. Fields of an item that only the server has stay with the item of that name.
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
            let merged: Vec<Value> = rendered.iter().map(|item| over(item, live)).collect();
            if merged != *live {
                operations.push(json!({"op": "replace", "path": at, "value": merged}));
            }
        }
        _ => {}
    }
}

/// An item over the live one of the same name.
fn over(item: &Value, live: &[Value]) -> Value {
    let of_name = live.iter().find(|live| live.get("name").is_some() && live.get("name") == item.get("name"));
    let Some(Value::Object(mut merged)) = of_name.cloned() else { return item.clone() };
    for (key, value) in item.as_object().into_iter().flatten() {
        merged.insert(key.clone(), value.clone());
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
}
