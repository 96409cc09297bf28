//! Taking over what other tools applied (D7).

use pintle_api::{ObjectRef, names};
use serde_json::{Map, Value, json};

use super::{ApiError, Applied, Patch, Writer};

impl Writer {
    /// Moves the managedFields entries of `managers` to ours, so that a key the next apply leaves out
    /// goes. Reads the object first, as the caches do not keep the fields of others. `None` when none of
    /// them holds anything.
    ///
    /// # Errors
    /// [`super::Cause::Stale`] when it changed in between: again. See [`super::Cause`].
    ///
    /// # Cancellation
    /// The write may or may not have happened.
    pub async fn adopt(&self, target: &ObjectRef, managers: &[&str]) -> Result<Option<Applied>, ApiError> {
        let live = self.read_whole(target).await?;
        let Some(entries) = live.at("/metadata/managedFields").and_then(Value::as_array) else {
            return Ok(None);
        };
        let Some(moved) = moved_to_us(entries, managers) else { return Ok(None) };
        let patch = Patch::Json(vec![
            json!({"op": "test", "path": "/metadata/resourceVersion", "value": live.resource_version()}),
            json!({"op": "replace", "path": "/metadata/managedFields", "value": moved}),
        ]);
        self.patch(target, None, &patch).await.map(Some)
    }
}

/// The entries with those of `managers` united under ours; entries of subresources stay, since a status
/// is never ours to take.
fn moved_to_us(entries: &[Value], managers: &[&str]) -> Option<Vec<Value>> {
    let text =
        |entry: &Value, field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_taken = |entry: &Value| {
        managers.contains(&text(entry, "manager").as_str()) && text(entry, "subresource").is_empty()
    };
    let is_own = |entry: &Value| {
        text(entry, "manager") == names::MANAGER
            && text(entry, "operation") == "Apply"
            && text(entry, "subresource").is_empty()
    };
    if !entries.iter().any(is_taken) {
        return None;
    }
    let (ours, mut rest): (Vec<&Value>, Vec<&Value>) =
        entries.iter().partition(|entry| is_taken(entry) || is_own(entry));
    let mut united: Vec<Value> = Vec::new();
    for entry in ours {
        // One manager has one entry for each version of the API.
        let same = united.iter_mut().find(|own| text(own, "apiVersion") == text(entry, "apiVersion"));
        match same {
            Some(own) => unite(own, entry),
            None => united.push(as_ours(entry)),
        }
    }
    united.extend(rest.drain(..).cloned());
    Some(united)
}

fn as_ours(entry: &Value) -> Value {
    let mut own = entry.clone();
    if let Value::Object(own) = &mut own {
        own.insert("manager".to_owned(), Value::from(names::MANAGER));
        own.insert("operation".to_owned(), Value::from("Apply"));
    }
    own
}

fn unite(own: &mut Value, entry: &Value) {
    let Some(fields) = entry.get("fieldsV1").and_then(Value::as_object) else { return };
    let Value::Object(own) = own else { return };
    let slot = own.entry("fieldsV1").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(slot) = slot {
        unite_fields(slot, fields);
    }
}

fn unite_fields(own: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (key, value) in other {
        match (own.get_mut(key), value) {
            (Some(Value::Object(own)), Value::Object(value)) => unite_fields(own, value),
            (Some(_), _) => {}
            (None, value) => {
                own.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn entries_are_united_under_ours_and_a_status_stays_where_it_is() {
        let entry = |manager: &str, fields: Value| json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsV1": fields});
        let mut status = entry("helm", json!({"f:status": {}}));
        status.as_object_mut().unwrap().insert("subresource".into(), json!("status"));
        let entries = [
            entry("helm", json!({"f:data": {"f:a": {}}})),
            entry("kubectl", json!({"f:data": {"f:x": {}}})),
            entry("manager", json!({"f:data": {"f:b": {}}})),
            status.clone(),
        ];
        let moved = moved_to_us(&entries, &["helm", "manager"]).unwrap();
        assert_eq!(moved.len(), 3);
        assert_eq!(moved[0]["manager"], "pintle");
        assert_eq!(moved[0]["operation"], "Apply");
        assert_eq!(moved[0]["fieldsV1"], json!({"f:data": {"f:a": {}, "f:b": {}}}));
        assert_eq!(moved[2], status);
        assert_eq!(moved_to_us(&entries, &["flux"]), None);
    }
}
