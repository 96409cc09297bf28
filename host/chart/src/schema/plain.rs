//! Schemas of the keywords that most charts use, held against values as they are.
//!
//! Compiling a schema takes longer than all else that is done with a chart's values. Here values are found to fit
//! without it; whatever is not sure (another keyword, a schema with a mistake, values that are refused) is left to
//! the validator, which also knows what to say.

use std::cell::{Cell, RefCell};

use serde_json::{Map, Value};

use super::{pattern::Pattern, slim};

/// References and schemas inside each other; beyond that the validator decides.
const MAX_DEPTH: usize = 100;

/// Schemas that are looked at for one check, each as often as it is met: alternatives of alternatives multiply.
const MAX_STEPS: u32 = 200_000;

/// Items of a list that are held against each other.
const MAX_SET: usize = 200;

/// References to places that are no keyword's, which are followed when a schema is read.
const MAX_ODD: usize = 50;

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
    "id",
    "if",
    "maxContains",
    "maxProperties",
    "minContains",
    "minProperties",
    "multipleOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Formats of OpenAPI that JSON Schema does not know, and which so refuse nothing.
const UNKNOWN_FORMATS: &[&str] = &["int32", "int64", "float", "double", "byte", "int-or-string"];

/// Keywords that refuse nothing, whatever the draft says about what stands beside a reference.
const NOTES: &[&str] = &["$comment", "$defs", "default", "definitions", "description", "examples", "title"];

/// A schema without mistakes, of known keywords alone.
#[derive(Debug)]
pub(super) struct Plain(Value);

/// A schema while it is looked through for mistakes.
struct Sound<'s> {
    root: &'s Value,
    /// Schemas that references lead to, and which no keyword leads to: to be looked through too.
    odd: RefCell<Vec<&'s Value>>,
}

impl Plain {
    /// The schema in a text, if it is one for this module.
    pub(super) fn of(schema: &[u8]) -> Option<Self> {
        let mut schema: Value = slim::read(schema)?;
        let root = schema.as_object_mut()?;
        if let Some(draft) = root.remove("$schema") {
            let draft = draft.as_str()?;
            let draft = draft.strip_suffix('#').unwrap_or(draft);
            DRAFTS.contains(&draft).then_some(())?;
        }
        if let Some(id) = root.remove("$id") {
            is_plain_id(id.as_str()?).then_some(())?;
        }
        Sound { root: &schema, odd: RefCell::default() }.is_whole().then_some(Self(schema))
    }

    /// Whether values surely fit.
    pub(super) fn fits(&self, values: &Value) -> bool {
        Check { root: &self.0, left: Cell::new(MAX_STEPS) }.schema(&self.0, values, 0) == Some(true)
    }
}

/// Whether a name of the whole schema is an address that means no other schema: references within it stay what
/// they are.
fn is_plain_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'/');
    let address = id.strip_prefix("https://").or_else(|| id.strip_prefix("http://"));
    address.is_some_and(|address| {
        address.starts_with(|first: char| first.is_ascii_lowercase())
            && address.bytes().all(is_plain)
            && !address.starts_with("json-schema.org")
    })
}

// === impl Sound ===

impl<'s> Sound<'s> {
    /// Whether the schema and all that its references lead to is what the meta-schemas want.
    fn is_whole(&self) -> bool {
        if !self.is_sound(self.root, 0) {
            return false;
        }
        let mut seen = 0;
        loop {
            let next = self.odd.borrow().get(seen).copied();
            match next {
                None => return true,
                Some(schema) if seen < MAX_ODD && self.is_sound(schema, 0) => seen += 1,
                Some(_) => return false,
            }
        }
    }

    fn is_sound(&self, schema: &'s Value, depth: usize) -> bool {
        let Value::Object(keywords) = schema else { return schema.is_boolean() };
        depth < MAX_DEPTH && keywords.iter().all(|(key, value)| self.is_sound_keyword(key, value, depth))
    }

    fn is_sound_keyword(&self, key: &str, value: &'s Value, depth: usize) -> bool {
        let is_schema = |schema: &'s Value| self.is_sound(schema, depth + 1);
        let is_pattern = |pattern: &str| Pattern::parse(pattern).is_some();
        match key {
            "type" => match value {
                Value::Array(types) => is_set(types) && types.iter().all(is_type),
                one => is_type(one),
            },
            "properties" | "definitions" | "$defs" => {
                value.as_object().is_some_and(|schemas| schemas.values().all(is_schema))
            }
            "patternProperties" => value.as_object().is_some_and(|schemas| {
                schemas.iter().all(|(pattern, schema)| is_pattern(pattern) && is_schema(schema))
            }),
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
            "title" | "description" | "$comment" | "format" => value.is_string(),
            "pattern" => value.as_str().is_some_and(is_pattern),
            "examples" => value.is_array(),
            "$ref" => value.as_str().is_some_and(|to| self.is_sound_reference(to)),
            "const" | "default" => true,
            other => !OTHERS.contains(&other),
        }
    }

    fn is_sound_reference(&self, reference: &str) -> bool {
        let Some((schema, is_known)) = target(self.root, reference) else { return false };
        let mut odd = self.odd.borrow_mut();
        if !is_known && !odd.iter().any(|known| std::ptr::eq(*known, schema)) {
            odd.push(schema);
        }
        true
    }
}

/// What a reference within the schema leads to, and whether it does so by keys that hold schemas alone.
fn target<'s>(root: &'s Value, reference: &str) -> Option<(&'s Value, bool)> {
    let (mut schema, mut is_known) = (root, true);
    let path = reference.strip_prefix('#')?;
    let mut parts = path.split('/').skip(1);
    while let Some(part) = parts.next() {
        is_known &= matches!(part, "definitions" | "$defs" | "properties");
        schema = member(schema, part)?;
        match parts.next() {
            Some(name) => schema = member(schema, name)?,
            None => is_known = false,
        }
    }
    (path.is_empty() || path.starts_with('/')).then_some((schema, is_known))
}

fn member<'s>(of: &'s Value, name: &str) -> Option<&'s Value> {
    let object = of.as_object().filter(|object| !object.contains_key("$id"))?;
    object.get(name).filter(|_| !name.contains(['~', '%']))
}

/// One check of values.
struct Check<'s> {
    root: &'s Value,
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
        let keyword = |(key, rule): (&String, &Value)| self.keyword(keywords, key, rule, value, depth);
        let Some(reference) = keywords.get("$ref") else { return all(keywords.iter().map(keyword)) };
        let beside = keywords.iter().filter(|(key, _)| *key != "$ref" && !NOTES.contains(&key.as_str()));
        match (self.keyword(keywords, "$ref", reference, value, depth)?, all(beside.map(keyword))) {
            // Drafts differ about what stands beside a reference: it counts, or is nothing.
            (true, Some(false)) => None,
            (false, _) => Some(false),
            (true, beside) => beside,
        }
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
            ("$ref", _) => inner(target(self.root, rule.as_str()?)?.0, value),
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
                let patterns = keywords.get("patternProperties").and_then(Value::as_object);
                let is_named = |key: &str| known.and_then(|known| known.get(key)).is_some();
                all(map.iter().filter(|(key, _)| !is_named(key)).map(|(key, value)| {
                    let by = any(patterns.into_iter().flat_map(Map::keys).map(|pattern| is_in(pattern, key)));
                    if by? { Some(true) } else { inner(rule, value) }
                }))
            }
            ("patternProperties", Value::Object(map)) => {
                let pairs = map
                    .iter()
                    .flat_map(|entry| rule.as_object().into_iter().flatten().map(move |it| (entry, it)));
                all(pairs.map(|((key, value), (pattern, schema))| match is_in(pattern, key)? {
                    true => inner(schema, value),
                    false => Some(true),
                }))
            }
            ("required", Value::Object(map)) => {
                let is_there = |name: &Value| name.as_str().is_some_and(|name| map.contains_key(name));
                Some(rule.as_array()?.iter().all(is_there))
            }
            ("items", Value::Array(items)) => all(items.iter().map(|item| inner(rule, item))),
            ("minItems", Value::Array(items)) => Some(items.len() as u64 >= rule.as_u64()?),
            ("maxItems", Value::Array(items)) => Some(items.len() as u64 <= rule.as_u64()?),
            ("uniqueItems", Value::Array(items)) => {
                (rule.as_bool() == Some(false) || is_set(items)).then_some(true)
            }
            ("minLength", Value::String(text)) => Some(text.chars().count() as u64 >= rule.as_u64()?),
            ("maxLength", Value::String(text)) => Some(text.chars().count() as u64 <= rule.as_u64()?),
            ("pattern", Value::String(text)) => is_in(rule.as_str()?, text),
            ("format", Value::String(_)) => UNKNOWN_FORMATS.contains(&rule.as_str()?).then_some(true),
            ("minimum", Value::Number(_)) => Some(exact(value)? >= exact(rule)?),
            ("maximum", Value::Number(_)) => Some(exact(value)? <= exact(rule)?),
            _ => Some(true),
        }
    }
}

/// Whether a pattern is found in a text; `None` where that is not sure.
fn is_in(pattern: &str, text: &str) -> Option<bool> {
    Pattern::parse(pattern)?.is_in(text)
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
            json!({"pattern": "^ab?c$"}),
            json!({"format": "int32"}),
            json!({"patternProperties": {"^[ab]$": {"type": ["array", "integer"]}}}),
            json!({"properties": {"a": {}}, "patternProperties": {"b": {"minItems": 2}},
                "additionalProperties": {"type": "integer"}}),
            json!({"$ref": "#/definitions/two", "definitions": {"two": {"type": "object"}}, "examples": []}),
            json!({"$ref": "#/$defs/two", "type": "object", "$defs": {"two": {"required": ["b"]}}}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/two",
                "type": "array", "definitions": {"two": {"minItems": 1}}}),
            json!({"$id": "https://charts.example/values.json", "$ref": "#/odd/two",
                "odd": {"two": {"items": {"$ref": "#/odd/one"}}, "one": {"type": "integer"}}}),
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

    #[test]
    fn formats_are_left_to_the_validator_where_they_may_refuse() {
        let plain = Plain::of(json!({"format": "uri"}).to_string().as_bytes()).unwrap();
        assert!(plain.fits(&json!(7)) && !plain.fits(&json!("https://charts.example")));
    }

    #[test]
    fn prose_is_left_out_where_it_is_prose() {
        let schema = json!({"description": "text", "properties": {"title": {"title": "text", "type": "string"}},
            "enum": [{"title": "kept"}, 1], "default": null, "minimum": -1.5});
        let read = slim::read(schema.to_string().as_bytes()).unwrap();
        let wanted = json!({"description": "", "properties": {"title": {"title": "", "type": "string"}},
            "enum": [{"title": "kept"}, 1], "default": null, "minimum": -1.5});
        assert_eq!(read, wanted);
        assert_eq!(slim::read(b"{} {}"), None);
        assert_eq!(slim::read(b"{\"a\": }"), None);
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
                let check = Check { root: &plain.0, left: Cell::new(MAX_STEPS) };
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
            json!({"$ref": "#/odd/a", "odd": {"a": {"type": "text"}}}),
            json!({"$ref": "#/odd/a", "odd": {"a": {"$ref": "#/odd/b"}}}),
            json!({"$ref": "#/odd/a", "odd": {"$id": "https://charts.example/a", "a": {}}}),
            json!({"properties": {"a": {"pattern": "^(a"}}}),
            json!({"patternProperties": {"(?i)a": {}}}),
            json!({"format": 1}),
            json!({"$id": "https://json-schema.org/draft/2020-12/schema"}),
            json!({"$id": "other.json"}),
            json!({"properties": {"a": {"$id": "https://charts.example/a"}}}),
            json!({"$schema": "http://json-schema.org/draft-04/schema#"}),
        ] {
            assert!(Plain::of(schema.to_string().as_bytes()).is_none(), "{schema}");
        }
    }
}
