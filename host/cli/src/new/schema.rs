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
        Some(schema) => structural(&schema),
        None => of_value(&super::defaults(chart)),
    }
}

fn open() -> Value {
    json!({"x-kubernetes-preserve-unknown-fields": true})
}

fn structural(schema: &Value) -> Value {
    let Some(kind) = schema["type"].as_str().filter(|kind| TYPES.contains(kind)) else { return open() };
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
            of_value(&json!({"a": null, "b": 1.5}))["properties"],
            json!({"a": open(), "b": {"type": "number"}})
        );
    }
}
