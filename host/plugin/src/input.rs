//! Objects as a guest sees them: without what changes on each write, without the values of Secrets.

mod shown;
mod texts;

use std::sync::Arc;

use pintle_api::{Blocker, Object, Read};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::{
    bindings::pintle::plugin::types,
    call::{Keyed, Ownership, Report, Save},
    grants::{Scope, is_secret},
    mask::{self, FieldPath, Mask},
    memo::Hash,
    seal::Seal,
};

use shown::Shown;
pub(crate) use texts::{Text, Texts};

/// What kubectl keeps of the last manifest: it repeats the object, Secrets included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The part of an object that a guest is shown: the fields of the mask, and always what names the
/// object. The version and the managers of the object are left out, so that a write that changes
/// nothing else changes no input; Secrets have their keys, with empty values.
pub(crate) fn shown(object: &Object, mask: &Mask) -> Map<String, Value> {
    let mut map = shown_with_values(object, mask);
    if is_secret(object.api_version(), object.kind()) {
        keep_keys(&mut map);
    }
    map
}

/// The same within grants that may show the values of a Secret; true when one was shown.
pub(crate) fn shown_within(object: &Object, mask: &Mask, scope: &Scope) -> (Map<String, Value>, bool) {
    let is_shown = is_secret(object.api_version(), object.kind())
        && scope.shows_values(object.namespace(), object.name());
    if is_shown { (shown_with_values(object, mask), true) } else { (shown(object, mask), false) }
}

/// What [`shown_within`] shows, as text and without a copy of the object; true when the values of a
/// Secret are in it.
pub(crate) fn shown_text(object: &Object, mask: &Mask, scope: &Scope) -> serde_json::Result<(String, bool)> {
    if is_secret(object.api_version(), object.kind()) {
        let (shown, is_clear) = shown_within(object, mask, scope);
        return Ok((serde_json::to_string(&shown)?, is_clear));
    }
    Ok((serde_json::to_string(&Shown(object, mask))?, false))
}

/// What [`shown_text`] gives, made once for as long as the object is the same one; Secrets are never kept. The mark
/// stands for the mask.
pub(crate) fn kept_text(
    (texts, mark): (&Texts, &Hash),
    object: &Arc<Object>,
    mask: &Mask,
    scope: &Scope,
) -> serde_json::Result<(Text, bool)> {
    if is_secret(object.api_version(), object.kind()) {
        return shown_text(object, mask, scope).map(|(text, is_clear)| (Text::new(text), is_clear));
    }
    if let Some(known) = texts.find(object, mark) {
        return Ok((known, false));
    }
    let text = Text::new(shown_text(object, mask, scope)?.0);
    texts.keep(object, mark, &text);
    Ok((text, false))
}

/// An object as text, with tokens for the values of a Secret.
pub(crate) fn sealed(object: &Object, seal: &mut Seal, scope: &Scope) -> String {
    let mut map = shown_with_values(object, &Mask::Whole);
    seal.close(&mut map, scope);
    Value::Object(map).to_string()
}

/// Live objects of a plugin as it is given them.
pub(crate) fn applied(applied: &[Keyed], seal: &mut Seal, scope: &Scope) -> Vec<types::KeyedObject> {
    let keyed = applied.iter().map(|keyed| types::KeyedObject {
        key: keyed.key.clone(),
        ownership: match keyed.ownership {
            Ownership::Whole => types::Ownership::Whole,
            Ownership::Part => types::Ownership::Part,
        },
        object: sealed(&keyed.object, seal, scope),
    });
    keyed.collect()
}

/// Mixes them into a hash.
pub(crate) fn hash_applied(applied: &[types::KeyedObject], hash: &mut Sha256) {
    hash.update(applied.len().to_le_bytes());
    for types::KeyedObject { key, ownership, object } in applied {
        hash.update([u8::from(matches!(ownership, types::Ownership::Part))]);
        for part in [key, object] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
    }
}

/// JSON with the keys of each mapping in order: equal values have equal texts.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            let entries = entries.into_iter();
            let entries =
                entries.map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(canonical).collect::<Vec<_>>().join(",")),
        scalar => scalar.to_string(),
    }
}

/// About how many bytes an answer takes, without its objects.
pub(crate) fn weight_of(blockers: &[Blocker], watch: &[Read], report: &Report) -> usize {
    let Report { conditions, events, actions, status, save } = report;
    let saved = if let Save::Set(value) = save { weight_of_value(value) } else { 0 };
    let texts = blockers.iter().map(|blocker| blocker.message.len()).sum::<usize>()
        + conditions.iter().map(|condition| condition.message.len()).sum::<usize>()
        + events.iter().map(|event| event.message.len()).sum::<usize>();
    let maps = status.iter().chain(actions.iter().map(|action| &action.arguments)).map(weight_of_map);
    // What a small answer takes, and what each entry takes besides its text.
    1_024
        + saved
        + texts
        + maps.sum::<usize>()
        + 256 * (blockers.len() + watch.len() + conditions.len() + events.len())
}

/// About how many bytes a mapping takes.
pub(crate) fn weight_of_map(map: &Map<String, Value>) -> usize {
    map.iter().map(|(key, value)| 64 + key.len() + weight_of_value(value)).sum()
}

/// About how many bytes objects take.
pub(crate) fn weight_of_keyed(keyed: &[Keyed]) -> usize {
    keyed.iter().map(|keyed| keyed.key.len() + weight_of_map(keyed.object.json())).sum()
}

fn weight_of_value(value: &Value) -> usize {
    32 + match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(weight_of_value).sum(),
        Value::Object(map) => weight_of_map(map),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn shown_with_values(object: &Object, mask: &Mask) -> Map<String, Value> {
    let mut map = match mask {
        Mask::Whole => without_metadata(object.json()),
        Mask::Part(_) => mask.keep(object.json()),
    };
    for field in ["apiVersion", "kind"] {
        copy(object.json(), &mut map, field);
    }
    map.insert("metadata".to_owned(), Value::Object(metadata(object, mask)));
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
    fn the_text_of_an_object_is_what_is_shown_of_it() {
        let pod =
            object(json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running", "ip": "1"},
            "metadata": {"name": "p", "namespace": "n", "labels": {"a": "b"}, "resourceVersion": "3"},
            "spec": {"containers": [{"name": "a", "image": "x"}, 3], "nodeName": "n"}, "odd": 7}));
        let annotated = object(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q",
            "annotations": {LAST_APPLIED: "{}", "a": "b", "c": {"d": 1}}, "managedFields": [{"manager": "m"}]}}));
        let paths = [
            vec![],
            vec!["metadata.annotations"],
            vec!["metadata.annotations.a", "metadata.annotations.c.d", "metadata.managedFields"],
            vec!["metadata.annotations.a.deeper", "metadata.name.deeper"],
            vec!["metadata.annotations.kubectl\\.kubernetes\\.io/last-applied-configuration"],
            vec!["status.phase"],
            vec!["spec.containers.name", "metadata.labels"],
            vec!["odd.deeper", "spec.nodeName.deeper", "metadata", "gone"],
            vec!["spec", "status"],
        ];
        for paths in paths {
            let parsed: Vec<_> = paths.iter().map(|path| FieldPath::parse(path).unwrap()).collect();
            let mask = Mask::of(&parsed);
            for object in [&pod, &annotated] {
                let (text, _) = shown_text(object, &mask, &Scope::nothing(&"p".into())).unwrap();
                let text: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(text, Value::Object(shown(object, &mask)), "{paths:?}");
            }
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
