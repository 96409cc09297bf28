//! What the API server would say of an object, by the definition of its kind.

use pintle_chart::violations_of;
use serde_json::{Map, Value, json};

/// What the definition refuses of an object, and what of it would be dropped; nothing where it takes all.
pub(super) fn problems(definition: &Value, object: &Value) -> Vec<String> {
    let version = object["apiVersion"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let versions = definition["spec"]["versions"].as_array();
    let served = versions.into_iter().flatten().find(|one| one["name"] == version && one["served"] == true);
    let Some(served) = served else {
        return vec![format!("version {version} is none that the definition serves")];
    };
    let schema = &served["schema"]["openAPIV3Schema"];
    let mut found: Vec<String> = match violations_of(&judged(schema), object) {
        Ok(violations) => {
            violations.iter().map(|one| format!("{}: {}", place(&one.at), one.problem)).collect()
        }
        Err(problem) => vec![format!("the schema of the definition cannot be used: {problem}")],
    };
    // The server knows these of every kind.
    let mut own = object.clone();
    if let Some(map) = own.as_object_mut() {
        ["apiVersion", "kind", "metadata"].iter().for_each(|field| drop(map.remove(*field)));
    }
    let mut dropped = Vec::new();
    find_dropped(schema, &own, "", &mut dropped);
    found.extend(
        dropped.iter().map(|at| format!("{at}: the definition has no such field, it would be dropped")),
    );
    found
}

fn place(at: &str) -> &str {
    if at.is_empty() { "/" } else { at }
}

/// The schema as JSON Schema has it: limits that are flags are those of its fourth draft, and what may be null is
/// said otherwise there.
fn judged(schema: &Value) -> Value {
    let mut judged = nullable(schema);
    if let Some(map) = judged.as_object_mut() {
        map.insert("$schema".to_owned(), json!("http://json-schema.org/draft-04/schema#"));
    }
    judged
}

fn nullable(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let mut out: Map<String, Value> =
                map.iter().map(|(key, value)| (key.clone(), nullable(value))).collect();
            if map.get("nullable") == Some(&Value::Bool(true))
                && let Some(Value::String(kind)) = map.get("type")
            {
                out.insert("type".to_owned(), json!([kind, "null"]));
            }
            Value::Object(out)
        }
        Value::Array(all) => all.iter().map(nullable).collect(),
        other => other.clone(),
    }
}

/// Fields that a schema neither names nor keeps.
fn find_dropped(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let keeps = schema["x-kubernetes-preserve-unknown-fields"] == true;
            for (key, inner) in map {
                let at = format!("{at}/{key}");
                let of_all = schema.get("additionalProperties").filter(|others| **others != false);
                match schema["properties"].get(key).or(of_all) {
                    Some(schema) => find_dropped(schema, inner, &at, found),
                    None if keeps => {}
                    None => found.push(at),
                }
            }
        }
        Value::Array(all) => {
            for (index, inner) in all.iter().enumerate() {
                find_dropped(&schema["items"], inner, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(spec: &Value) -> Vec<String> {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 0, "exclusiveMinimum": true},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "maybe": {"type": "string", "nullable": true},
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}}
        }}}});
        let definition = json!({"spec": {"versions": [
            {"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}, {"name": "v2", "served": false}]}});
        let object = |version: &str| json!({"apiVersion": format!("a.b/{version}"), "kind": "A", "metadata": {"name": "a"}, "spec": spec});
        assert_eq!(problems(&definition, &object("v2")), ["version v2 is none that the definition serves"]);
        problems(&definition, &object("v1"))
    }

    #[test]
    fn what_the_server_would_refuse_or_drop_is_named_with_its_place() {
        let good = json!({"size": 1, "open": {"x": {"y": 1}}, "labels": {"a": "b"}, "maybe": null, "list": [{"a": "b"}]});
        assert_eq!(found(&good), Vec::<String>::new());
        for (spec, said) in [
            (json!({"size": 0}), "/spec/size: "),
            (json!({"size": "1"}), "/spec/size: got string, want integer"),
            (json!({}), "/spec: missing property 'size'"),
            (json!({"size": 1, "more": 1}), "/spec/more: the definition has no such field"),
            (
                json!({"size": 1, "list": [{"a": "b", "c": 1}]}),
                "/spec/list/0/c: the definition has no such field",
            ),
        ] {
            let found = found(&spec);
            assert!(found.len() == 1 && found.iter().all(|problem| problem.starts_with(said)), "{found:?}");
        }
    }
}
