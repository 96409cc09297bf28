//! A structural schema for the values of a chart.

use pintle_chart::Chart;
use serde_json::{Map, Value, json};

/// Keys of a schema that a CustomResourceDefinition takes as they are.
const KEPT: [&str; 15] = [
    "description",
    "enum",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "pattern",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "format",
    "required",
    "title",
    "multipleOf",
];
/// Types that a CustomResourceDefinition knows.
const TYPES: [&str; 6] = ["object", "array", "string", "integer", "number", "boolean"];

/// The schema that the chart brings, or one that its values fit. What a definition cannot say is left open.
pub(super) fn of_chart(chart: &Chart) -> Value {
    let own = chart.schema.as_ref().and_then(|text| serde_json::from_slice::<Value>(text.bytes()).ok());
    match own {
        Some(schema) => with_values(structural(&schema), &schema, &super::defaults(chart)),
        None => of_value(&super::defaults(chart)),
    }
}

fn open() -> Value {
    json!({"x-kubernetes-preserve-unknown-fields": true})
}

fn structural(schema: &Value) -> Value {
    let Some(kind) = type_of(schema) else { return open() };
    if ["$ref", "oneOf", "anyOf", "allOf", "not", "if"].iter().any(|word| schema.get(*word).is_some()) {
        return open();
    }
    let kept = KEPT.iter().filter_map(|key| Some(((*key).to_owned(), schema.get(*key)?.clone())));
    // In later drafts a limit is a number where a definition has a flag.
    let mut out: Map<String, Value> =
        kept.filter(|(key, value)| !key.starts_with("exclusive") || value.is_boolean()).collect();
    out.insert("type".to_owned(), Value::from(kind));
    match kind {
        "object" => add_properties(schema, &mut out),
        "array" => {
            let items = schema.get("items").map_or_else(open, structural);
            out.insert("items".to_owned(), items);
        }
        _ => {}
    }
    Value::Object(out)
}

/// The type that a schema says, or that of all values it allows, or of its default.
fn type_of(schema: &Value) -> Option<&'static str> {
    if let Some(said) = schema.get("type") {
        return TYPES.into_iter().find(|kind| said == kind);
    }
    let mut kinds = match schema.get("enum").and_then(Value::as_array) {
        Some(all) => all.iter().map(type_of_value).collect::<Vec<_>>(),
        None if schema.get("properties").is_some() => vec![Some("object")],
        None => vec![schema.get("default").and_then(type_of_value)],
    };
    kinds.dedup();
    match kinds.as_slice() {
        [kind] => *kind,
        _ => None,
    }
}

fn type_of_value(value: &Value) -> Option<&'static str> {
    Some(match value {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Null => return None,
    })
}

/// The same with the values that the schema does not name, where it allows others.
fn with_values(mut made: Value, schema: &Value, values: &Value) -> Value {
    let (Some(out), Some(values)) = (made.as_object_mut(), values.as_object()) else { return made };
    // What is left open has no type; a map of anything has a schema for all of its values.
    if out.get("type").is_none_or(|kind| kind != "object") || schema["additionalProperties"].is_object() {
        return made;
    }
    let is_closed = schema["additionalProperties"] == false;
    let properties = out.entry("properties").or_insert_with(|| json!({}));
    let Some(properties) = properties.as_object_mut() else { return made };
    for (key, value) in values {
        match properties.get_mut(key) {
            Some(known) => *known = with_values(known.take(), &schema["properties"][key], value),
            None if is_closed => {}
            None => drop(properties.insert(key.clone(), of_value(value))),
        }
    }
    made
}

fn add_properties(schema: &Value, out: &mut Map<String, Value>) {
    if let Some(properties) = schema["properties"].as_object() {
        let properties: Map<String, Value> =
            properties.iter().map(|(key, value)| (key.clone(), structural(value))).collect();
        out.insert("properties".to_owned(), Value::Object(properties));
    }
    if schema["additionalProperties"] != false {
        out.insert("x-kubernetes-preserve-unknown-fields".to_owned(), Value::Bool(true));
    }
}

/// A schema that a value fits, and others like it.
fn of_value(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let properties: Map<String, Value> =
                map.iter().map(|(key, value)| (key.clone(), of_value(value))).collect();
            json!({"type": "object", "properties": properties, "x-kubernetes-preserve-unknown-fields": true})
        }
        Value::Array(_) => json!({"type": "array", "items": open()}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(number) if number.is_f64() => json!({"type": "number"}),
        Value::Number(_) => json!({"type": "integer"}),
        Value::String(_) => json!({"type": "string"}),
        Value::Null => open(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_definition_cannot_say_is_left_open() {
        let schema = json!({"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 0, "exclusiveMinimum": 1},
            "either": {"oneOf": [{"type": "string"}]}, "many": {"type": ["string", "null"]},
            "list": {"type": "array"}, "closed": {"type": "object", "additionalProperties": false}
        }});
        let found = structural(&schema);
        assert_eq!(found["properties"]["size"], json!({"type": "integer", "minimum": 0}));
        assert_eq!(found["properties"]["either"], open());
        assert_eq!(found["properties"]["many"], open());
        assert_eq!(found["properties"]["list"], json!({"type": "array", "items": open()}));
        assert_eq!(found["properties"]["closed"], json!({"type": "object"}));
        assert_eq!(found["required"], json!(["size"]));
        assert_eq!(
            structural(&json!({"properties": {"a": {"enum": ["x", "y"]}, "b": {"default": true},
                "c": {"enum": [1, "x"]}, "d": {}}}))["properties"],
            json!({"a": {"type": "string", "enum": ["x", "y"]}, "b": {"type": "boolean"}, "c": open(), "d": open()})
        );
        assert_eq!(
            of_value(&json!({"a": null, "b": 1.5}))["properties"],
            json!({"a": open(), "b": {"type": "number"}})
        );
    }

    #[test]
    fn values_that_the_schema_does_not_name_are_added_unless_it_is_closed() {
        let schema = json!({"type": "object", "properties": {
            "size": {"type": "integer"},
            "open": {"type": "object", "properties": {}},
            "closed": {"type": "object", "additionalProperties": false},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}}
        }});
        let values =
            json!({"size": "1", "more": true, "open": {"a": "x"}, "closed": {"a": 1}, "labels": {"a": "b"}});
        let made = with_values(structural(&schema), &schema, &values);
        let found = |pointer: &str| made.pointer(pointer).cloned();
        assert_eq!(found("/properties/size"), Some(json!({"type": "integer"})));
        assert_eq!(found("/properties/more"), Some(json!({"type": "boolean"})));
        assert_eq!(found("/properties/open/properties/a"), Some(json!({"type": "string"})));
        assert_eq!(found("/properties/closed/properties/a"), None);
        assert_eq!(found("/properties/labels/properties"), None);
    }
}
