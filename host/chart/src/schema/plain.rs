//! Schemas of the keywords that most charts use, held against values as they are.
//!
//! Compiling a schema takes longer than all else that is done with a chart's values. Here values are found to fit
//! without it; whatever is not sure (another keyword, a schema with a mistake, values that are refused) is left to
//! the validator, which also knows what to say.

use std::cell::Cell;

use serde_json::{Map, Value};

/// References and schemas inside each other; beyond that the validator decides.
const MAX_DEPTH: usize = 100;

/// Schemas that are looked at for one check, each as often as it is met: alternatives of alternatives multiply.
const MAX_STEPS: u32 = 200_000;

/// Items of a list that are held against each other.
const MAX_SET: usize = 200;

/// Integers from which on floats have gaps.
const EXACT: u64 = 1 << 53;

/// Meta-schemas under which the keywords here mean the same.
const DRAFTS: &[&str] = &[
    "http://json-schema.org/schema",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

/// Keywords with a meaning that is not looked into here.
const OTHERS: &[&str] = &[
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "id",
    "if",
    "maxContains",
    "maxProperties",
    "minContains",
    "minProperties",
    "multipleOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// A schema without mistakes, of known keywords alone.
#[derive(Clone, Debug)]
pub(super) struct Plain(Value);

impl Plain {
    /// The schema in a text, if it is one for this module.
    pub(super) fn of(schema: &[u8]) -> Option<Self> {
        let mut schema: Value = serde_json::from_slice(schema).ok()?;
        let root = schema.as_object_mut()?;
        if let Some(draft) = root.remove("$schema") {
            let draft = draft.as_str()?;
            let draft = draft.strip_suffix('#').unwrap_or(draft);
            DRAFTS.contains(&draft).then_some(())?;
        }
        let plain = Self(schema);
        plain.is_sound(&plain.0, 0).then_some(plain)
    }

    /// Whether values surely fit.
    pub(super) fn fits(&self, values: &Value) -> bool {
        Check { plain: self, left: Cell::new(MAX_STEPS) }.schema(&self.0, values, 0) == Some(true)
    }

    /// Whether a schema is what the meta-schemas want.
    fn is_sound(&self, schema: &Value, depth: usize) -> bool {
        let Value::Object(keywords) = schema else { return schema.is_boolean() };
        depth < MAX_DEPTH
            && keywords.iter().all(|(key, value)| self.is_sound_keyword(keywords, key, value, depth))
    }

    fn is_sound_keyword(&self, all: &Map<String, Value>, key: &str, value: &Value, depth: usize) -> bool {
        let is_schema = |schema: &Value| self.is_sound(schema, depth + 1);
        match key {
            "type" => match value {
                Value::Array(types) => is_set(types) && types.iter().all(is_type),
                one => is_type(one),
            },
            "properties" | "definitions" | "$defs" => {
                value.as_object().is_some_and(|schemas| schemas.values().all(is_schema))
            }
            "additionalProperties" | "items" | "not" => is_schema(value),
            "allOf" | "anyOf" | "oneOf" => {
                value.as_array().is_some_and(|schemas| !schemas.is_empty() && schemas.iter().all(is_schema))
            }
            "required" => {
                value.as_array().is_some_and(|names| is_set(names) && names.iter().all(Value::is_string))
            }
            "enum" => value.as_array().is_some_and(|known| !known.is_empty() && is_set(known)),
            "minimum" | "maximum" => value.is_number(),
            "minLength" | "maxLength" | "minItems" | "maxItems" => value.is_u64(),
            "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
            "title" | "description" | "$comment" => value.is_string(),
            "examples" => value.is_array(),
            // Drafts differ about what stands beside a reference.
            "$ref" => {
                let is_note =
                    |key: &String| matches!(key.as_str(), "$ref" | "title" | "description" | "default");
                all.keys().all(is_note) && value.as_str().is_some_and(|to| self.target(to).is_some())
            }
            "const" | "default" => true,
            other => !OTHERS.contains(&other),
        }
    }

    /// What a reference within the schema leads to, by keys that hold schemas.
    fn target(&self, reference: &str) -> Option<&Value> {
        let mut schema = &self.0;
        let path = reference.strip_prefix('#')?;
        let mut parts = path.split('/').skip(1);
        while let Some(part) = parts.next() {
            let holder =
                schema.get(part).filter(|_| matches!(part, "definitions" | "$defs" | "properties"))?;
            let name = parts.next().filter(|name| !name.contains(['~', '%']))?;
            schema = holder.get(name)?;
        }
        (path.is_empty() || path.starts_with('/')).then_some(schema)
    }
}

/// One check of values.
struct Check<'s> {
    plain: &'s Plain,
    left: Cell<u32>,
}

impl Check<'_> {
    /// Whether a value fits; `None` where that is not sure.
    fn schema(&self, schema: &Value, value: &Value, depth: usize) -> Option<bool> {
        let Value::Object(keywords) = schema else { return schema.as_bool() };
        self.left.set(self.left.get().checked_sub(1)?);
        if depth >= MAX_DEPTH {
            return None;
        }
        all(keywords.iter().map(|(key, rule)| self.keyword(keywords, key, rule, value, depth)))
    }

    fn keyword(
        &self,
        keywords: &Map<String, Value>,
        key: &str,
        rule: &Value,
        value: &Value,
        depth: usize,
    ) -> Option<bool> {
        let inner = |schema: &Value, value: &Value| self.schema(schema, value, depth + 1);
        let each = |rule: &Value| -> Vec<Option<bool>> {
            rule.as_array().into_iter().flatten().map(|schema| inner(schema, value)).collect()
        };
        match (key, value) {
            ("$ref", _) => inner(self.plain.target(rule.as_str()?)?, value),
            ("type", _) => Some(rule.as_array().map_or_else(
                || has_type(rule, value),
                |types| types.iter().any(|rule| has_type(rule, value)),
            )),
            ("enum", _) => any(rule.as_array()?.iter().map(|known| is_equal(known, value))),
            ("const", _) => is_equal(rule, value),
            ("allOf", _) => all(each(rule).into_iter()),
            ("anyOf", _) => any(each(rule).into_iter()),
            ("oneOf", _) => {
                let fits: Option<Vec<bool>> = each(rule).into_iter().collect();
                Some(fits?.into_iter().filter(|fits| *fits).count() == 1)
            }
            ("not", _) => inner(rule, value).map(|fits| !fits),
            ("properties", Value::Object(map)) => all(map
                .iter()
                .map(|(key, value)| rule.get(key).map_or(Some(true), |schema| inner(schema, value)))),
            ("additionalProperties", Value::Object(map)) => {
                let known = keywords.get("properties");
                let is_other = |key: &str| known.and_then(|known| known.get(key)).is_none();
                all(map.iter().filter(|(key, _)| is_other(key)).map(|(_, value)| inner(rule, value)))
            }
            ("required", Value::Object(map)) => {
                let is_there = |name: &Value| name.as_str().is_some_and(|name| map.contains_key(name));
                Some(rule.as_array()?.iter().all(is_there))
            }
            ("items", Value::Array(items)) => all(items.iter().map(|item| inner(rule, item))),
            ("minItems", Value::Array(items)) => Some(items.len() as u64 >= rule.as_u64()?),
            ("maxItems", Value::Array(items)) => Some(items.len() as u64 <= rule.as_u64()?),
            ("uniqueItems", Value::Array(items)) => {
                (rule.as_bool() == Some(false) || items.len() < 2).then_some(true)
            }
            ("minLength", Value::String(text)) => Some(text.chars().count() as u64 >= rule.as_u64()?),
            ("maxLength", Value::String(text)) => Some(text.chars().count() as u64 <= rule.as_u64()?),
            ("minimum", Value::Number(_)) => Some(exact(value)? >= exact(rule)?),
            ("maximum", Value::Number(_)) => Some(exact(value)? <= exact(rule)?),
            _ => Some(true),
        }
    }
}

/// False where one is, else not sure where one is not.
fn all(mut fits: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let sure = fits.try_fold(Some(true), |sure, fits| match fits {
        Some(false) => Err(()),
        Some(true) => Ok(sure),
        None => Ok(None),
    });
    sure.unwrap_or(Some(false))
}

/// True where one is, else not sure where one is not.
fn any(fits: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    all(fits.map(|fits| fits.map(|fits| !fits))).map(|none| !none)
}

fn is_type(name: &Value) -> bool {
    let types = ["array", "boolean", "integer", "null", "number", "object", "string"];
    name.as_str().is_some_and(|name| types.contains(&name))
}

fn has_type(name: &Value, value: &Value) -> bool {
    match (name.as_str().unwrap_or_default(), value) {
        ("number", Value::Number(_))
        | ("array", Value::Array(_))
        | ("boolean", Value::Bool(_))
        | ("null", Value::Null)
        | ("object", Value::Object(_))
        | ("string", Value::String(_)) => true,
        ("integer", Value::Number(number)) => {
            !number.is_f64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
        }
        _ => false,
    }
}

/// Whether no two of them can be equal.
fn is_set(values: &[Value]) -> bool {
    let differs =
        |(at, one): (usize, &Value)| values.iter().take(at).all(|other| is_equal(one, other) == Some(false));
    values.len() <= MAX_SET && values.iter().enumerate().all(differs)
}

/// Whether two values are equal, where that is simple.
fn is_equal(one: &Value, other: &Value) -> Option<bool> {
    match (one, other) {
        (Value::Number(_), Value::Number(_)) => Some(exact(one)? == exact(other)?),
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => None,
        (one, other) => Some(one == other),
    }
}

/// The number as a float, where none is lost.
fn exact(value: &Value) -> Option<f64> {
    let is_exact = value.is_f64() || value.as_i64().is_some_and(|int| int.unsigned_abs() < EXACT);
    value.as_f64().filter(|_| is_exact)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    fn values() -> Vec<Value> {
        vec![
            json!(null),
            json!(true),
            json!(0),
            json!(7),
            json!(1.5),
            json!(""),
            json!("abc"),
            json!("ü"),
            json!([]),
            json!([1, 1]),
            json!(["abc", 7]),
            json!({}),
            json!({"a": 1}),
            json!({"a": "abc", "b": [7]}),
            json!({"b": {"a": null}, "c": 2}),
        ]
    }

    fn schemas() -> Vec<Value> {
        let mut schemas = vec![
            json!({}),
            json!({"type": "integer"}),
            json!({"type": ["string", "null"]}),
            json!({"enum": ["abc", 7, null]}),
            json!({"const": 7}),
            json!({"minimum": 1, "maximum": 7}),
            json!({"minLength": 1, "maxLength": 2}),
            json!({"minItems": 1, "maxItems": 1}),
            json!({"uniqueItems": true}),
            json!({"required": ["a"]}),
            json!({"properties": {"a": {"type": "integer"}}, "additionalProperties": false}),
            json!({"properties": {"b": {"$ref": "#/definitions/list"}}, "definitions": {"list": {"type": "array"}}}),
            json!({"additionalProperties": {"type": ["integer", "array"]}}),
            json!({"items": {"type": "integer"}}),
        ];
        let pairs: Vec<Value> = schemas.windows(2).map(|pair| json!(pair)).collect();
        for pair in pairs {
            for key in ["allOf", "anyOf", "oneOf"] {
                schemas.push(json!({key: pair}));
            }
        }
        let negated: Vec<Value> = schemas.iter().map(|schema| json!({"not": schema})).collect();
        schemas.extend(negated);
        schemas
    }

    /// The schema for both; none where definitions are not where their references look for them.
    fn both(schema: &Value) -> Option<(Plain, jsonschema::Validator)> {
        let plain = Plain::of(schema.to_string().as_bytes())?;
        Some((plain, jsonschema::validator_for(schema).unwrap()))
    }

    #[test]
    fn what_fits_here_fits_for_the_validator_and_what_does_not_does_not() {
        let mut sure = 0;
        for schema in schemas() {
            let Some((plain, validator)) = both(&schema) else { continue };
            for value in values() {
                let check = Check { plain: &plain, left: Cell::new(MAX_STEPS) };
                if let Some(fits) = check.schema(&plain.0, &value, 0) {
                    assert_eq!(fits, validator.is_valid(&value), "{value} by {schema}");
                    sure += 1;
                }
            }
        }
        assert!(sure > 1_000, "only {sure} answers were sure");
    }

    #[test]
    fn alternatives_that_multiply_are_left_to_the_validator() {
        let mut definitions = Map::new();
        for at in 0..60 {
            let next = json!({"$ref": format!("#/definitions/d{}", at + 1)});
            definitions.insert(format!("d{at}"), json!({"allOf": [next, next]}));
        }
        definitions.insert("d60".to_owned(), json!({}));
        let schema = json!({"definitions": definitions, "items": {"$ref": "#/definitions/d0"}});
        let plain = Plain::of(schema.to_string().as_bytes()).unwrap();
        assert!(plain.fits(&json!([])) && !plain.fits(&json!([1])));
    }

    #[test]
    fn a_schema_with_a_mistake_or_a_keyword_of_another_kind_is_left_alone() {
        for schema in [
            json!([]),
            json!({"type": "text"}),
            json!({"type": ["string", "string"]}),
            json!({"properties": {"a": {"minLength": -1}}}),
            json!({"properties": []}),
            json!({"required": "a"}),
            json!({"required": ["a", "a"]}),
            json!({"anyOf": []}),
            json!({"items": [{}]}),
            json!({"title": 1}),
            json!({"$ref": "#/definitions/none"}),
            json!({"$ref": "other.json"}),
            json!({"$ref": "#/definitions/a", "type": "object", "definitions": {"a": {}}}),
            json!({"properties": {"a": {"pattern": "^a"}}}),
            json!({"format": "uri"}),
            json!({"$schema": "http://json-schema.org/draft-04/schema#"}),
        ] {
            assert!(Plain::of(schema.to_string().as_bytes()).is_none(), "{schema}");
        }
    }
}
