//! Which objects a read finds, and what is shown of them.

use serde_json::{Map, Value};

use crate::{ObjectQuery, ObjectRef};

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str)
}

/// `KIND/NAME`.
pub(super) fn key(object: &Value) -> String {
    let [kind, name] = ["/kind", "/metadata/name"].map(|at| text(object, at).unwrap_or_default());
    format!("{kind}/{name}")
}

pub(super) fn is_named(object: &Value, target: &ObjectRef) -> bool {
    text(object, "/apiVersion") == Some(&target.api_version)
        && text(object, "/kind") == Some(&target.kind)
        && text(object, "/metadata/namespace") == target.namespace.as_deref()
        && text(object, "/metadata/name") == Some(&target.name)
}

pub(super) fn is_found(object: &Value, query: &ObjectQuery) -> bool {
    let ObjectQuery { api_version, kind, namespace, name, label_selector } = query;
    text(object, "/apiVersion") == Some(api_version)
        && text(object, "/kind") == Some(kind)
        && (namespace.is_none() || text(object, "/metadata/namespace") == namespace.as_deref())
        && (name.is_none() || text(object, "/metadata/name") == name.as_deref())
        && label_selector.as_ref().is_none_or(|selector| is_selected(object, selector))
}

/// All that `LabelSelector::to_query` writes: `a=b,c in (d,e),f notin (g),h,!i`.
fn is_selected(object: &Value, selector: &str) -> bool {
    let labels = object.pointer("/metadata/labels");
    let label = |key: &str| labels.and_then(|labels| labels.get(key.trim())).and_then(Value::as_str);
    let is_in = |key: &str, set: &str| {
        let mut values = set.trim_matches(['(', ')', ' ']).split(',').map(str::trim);
        label(key).is_some_and(|value| values.any(|one| one == value))
    };
    terms(selector).iter().all(|term| {
        if let Some((key, set)) = term.split_once(" notin ") {
            !is_in(key, set)
        } else if let Some((key, set)) = term.split_once(" in ") {
            is_in(key, set)
        } else if let Some((key, value)) = term.split_once('=') {
            label(key) == Some(value.trim_start_matches('=').trim())
        } else if let Some(key) = term.strip_prefix('!') {
            label(key).is_none()
        } else {
            label(term).is_some()
        }
    })
}

/// Terms of a selector: a comma between brackets separates values, not terms.
fn terms(selector: &str) -> Vec<String> {
    let (mut terms, mut depth) = (vec![String::new()], 0);
    for letter in selector.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if letter == ',' && depth == 0 {
            terms.push(String::new());
        } else if let Some(term) = terms.last_mut() {
            term.push(letter);
        }
    }
    terms.iter().map(|term| term.trim().to_owned()).filter(|term| !term.is_empty()).collect()
}

/// The fields asked for, and what names the object; no field asks for all.
pub(super) fn shown(object: &Value, fields: &[String]) -> Value {
    if fields.is_empty() {
        return object.clone();
    }
    let mut kept = Value::Object(Map::new());
    let names = ["apiVersion", "kind", "metadata.name", "metadata.namespace"];
    for field in names.into_iter().chain(fields.iter().map(String::as_str)) {
        let path: Vec<String> =
            field.replace("\\.", "\0").split('.').map(|key| key.replace('\0', ".")).collect();
        copy(object, &mut kept, &path);
    }
    kept
}

/// Takes over what is at a path; a path through a list applies to each of its elements.
fn copy(from: &Value, to: &mut Value, path: &[String]) {
    let Some((key, rest)) = path.split_first() else {
        *to = from.clone();
        return;
    };
    match from {
        Value::Array(elements) => {
            if !to.is_array() {
                *to = Value::Array(vec![Value::Object(Map::new()); elements.len()]);
            }
            let slots = to.as_array_mut().into_iter().flatten();
            elements.iter().zip(slots).for_each(|(element, slot)| copy(element, slot, path));
        }
        Value::Object(object) => {
            let Some(found) = object.get(key) else { return };
            if let Value::Object(slots) = to {
                copy(found, slots.entry(key).or_insert_with(|| Value::Object(Map::new())), rest);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_select_as_those_of_kubernetes() {
        let object = json!({"metadata": {"labels": {"a": "b", "c": "d"}}});
        for (selector, expected) in [
            ("a=b", true),
            ("a=x", false),
            ("a in (x,b),c", true),
            ("a in (x)", false),
            ("a notin (x,y),!e", true),
            ("e notin (x)", true),
            ("!a", false),
            ("e", false),
            ("", true),
        ] {
            assert_eq!(is_selected(&object, selector), expected, "{selector}");
        }
    }

    #[test]
    fn only_the_fields_that_were_asked_for_are_shown_also_inside_of_lists() {
        let object = json!({"kind": "Pod", "metadata": {"name": "p", "labels": {"a.b/c": "1", "d": "2"}},
            "status": {"phase": "Running", "list": [{"x": 1, "y": 2}, {"y": 3}]}});
        let fields = ["metadata.labels.a\\.b/c", "status.list.x", "status.list.y", "spec.none"];
        let expected = json!({"kind": "Pod", "metadata": {"name": "p", "labels": {"a.b/c": "1"}},
            "status": {"list": [{"x": 1, "y": 2}, {"y": 3}]}});
        assert_eq!(shown(&object, &fields.map(str::to_owned)), expected);
        assert_eq!(shown(&object, &["status.list.x".to_owned()])["status"], json!({"list": [{"x": 1}, {}]}));
    }
}
