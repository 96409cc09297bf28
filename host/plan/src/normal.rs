//! Spellings that a server-side apply cannot take or cannot keep, brought into the form the server stores.

use std::collections::HashMap;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_api::Object;
use serde_json::{Map, Value};

/// Lists that the server merges by key, and their keys; they stand where a pod or a Service has them.
const KEYED: [(&str, &[&str]); 9] = [
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("env", &["name"]),
    ("volumes", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("volumeDevices", &["devicePath"]),
    ("imagePullSecrets", &["name"]),
    ("hostAliases", &["ip"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
];

/// Brings an object into the form the server stores: `stringData` of a Secret becomes `data`, since its keys
/// would stay when a chart drops them; of two list entries with one key the last counts, as in every other
/// way of writing, since a server-side apply refuses both.
pub(crate) fn normalize(object: &mut Object) {
    if object.kind() == "Secret" && object.gvk().group.is_empty() {
        fold_string_data(object);
    }
    if let Some(path) = crate::dress::template_of(object) {
        keep_last(object.map_mut(&[&path[..], &["spec"]].concat()));
    } else if object.kind() == "Pod" {
        keep_last(object.map_mut(&["spec"]));
    }
}

/// Of entries with one key the last stays, in the place of the first.
fn keep_last(map: &mut Map<String, Value>) {
    for (field, value) in map.iter_mut() {
        match value {
            Value::Array(items) => {
                if let Some((_, keys)) = KEYED.iter().find(|(name, _)| name == field) {
                    *items = without_doubles(std::mem::take(items), keys);
                }
                items.iter_mut().filter_map(Value::as_object_mut).for_each(keep_last);
            }
            Value::Object(inner) => keep_last(inner),
            _ => {}
        }
    }
}

fn without_doubles(items: Vec<Value>, keys: &[&str]) -> Vec<Value> {
    let mut key_to_place: HashMap<String, usize> = HashMap::new();
    let mut kept: Vec<Value> = Vec::with_capacity(items.len());
    for item in items {
        let key: Option<Vec<&Value>> = keys.iter().map(|key| item.get(key)).collect();
        // An entry without its key is the server's to refuse.
        let Some(key) = key.map(|key| format!("{key:?}")) else {
            kept.push(item);
            continue;
        };
        match key_to_place.get(&key).and_then(|place| kept.get_mut(*place)) {
            Some(earlier) => *earlier = item,
            None => {
                key_to_place.insert(key, kept.len());
                kept.push(item);
            }
        }
    }
    kept
}

fn fold_string_data(object: &mut Object) {
    let Some(Value::Object(texts)) = object.at("/stringData").cloned() else { return };
    object.remove("stringData");
    let data = object.map_mut(&["data"]);
    for (key, text) in texts {
        let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
        data.insert(key, Value::from(BASE64_STANDARD.encode(text)));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    fn normal(object: Value) -> Value {
        let mut object = Object::new(object).unwrap();
        normalize(&mut object);
        object.to_value()
    }

    #[test]
    fn texts_of_a_secret_become_its_data_and_win() {
        let secret = normal(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"},
            "data": {"a": "b2xk", "b": "Yg=="}, "stringData": {"a": "new", "port": 80}
        }));
        assert_eq!(secret["data"], json!({"a": "bmV3", "b": "Yg==", "port": "ODA="}));
        assert!(secret.get("stringData").is_none());
    }

    #[test]
    fn of_two_entries_with_one_key_the_last_counts() {
        let env =
            json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "A", "value": "3"}]);
        let deployment = normal(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
            "spec": {"template": {"spec": {"containers": [{"name": "c", "env": env, "args": ["a", "a"]}]}}}
        }));
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["env"], json!([{"name": "A", "value": "3"}, {"name": "B", "value": "2"}]));
        assert_eq!(container["args"], json!(["a", "a"]));
        let pod = normal(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
            "spec": {"containers": [{"image": "x"}, {"image": "y"}]}
        }));
        assert_eq!(pod["spec"]["containers"], json!([{"image": "x"}, {"image": "y"}]));
    }
}
