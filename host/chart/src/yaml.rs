//! YAML as Helm reads it, as JSON values.

use pintle_template::yaml;
use serde_json::{Map, Number, Value};

/// What is wrong with a YAML text, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Counted from 1; 0 where the reader cannot say.
    pub line: usize,
    /// In the words of Helm's reader.
    pub message: String,
}

/// The text of bytes, or what Helm's reader says where they are none.
///
/// # Errors
/// When they are not UTF-8.
pub fn text_of(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|error| {
        let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let problem = match bytes.get(error.valid_up_to()) {
            // A line end is put behind the text before Helm reads it.
            Some(0xc2..=0xf4) => "invalid trailing UTF-8 octet",
            _ => "invalid leading UTF-8 octet",
        };
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        Error { line, message: format!("error converting YAML to JSON: yaml: {problem}") }
    })
}

/// The first document, numbers kept as they are written: for manifests and metadata.
pub(crate) fn load(text: &str) -> Result<Value, Error> {
    yaml::load_json(text).map_err(Error::from)
}

/// What sorting needs of a document, which is checked as a whole: kind and annotations.
pub(crate) fn load_head(text: &str) -> Result<Value, Error> {
    yaml::load_head(text).map_err(Error::from)
}

/// All documents of a values file, merged, later over earlier; every number is a float, as Helm has them.
pub(crate) fn load_values(text: &str) -> Result<Map<String, Value>, Error> {
    let mut values = Map::new();
    for (line, document) in yaml::load_json_all(text, "")? {
        match document {
            Value::Null => {}
            Value::Object(map) => merge(&mut values, map),
            other => {
                let line = usize::try_from(line).unwrap_or(0);
                return Err(Error { line, message: no_mapping(&other) });
            }
        }
    }
    values.values_mut().for_each(make_floats);
    Ok(values)
}

/// Helm's words for a values file that is no mapping.
fn no_mapping(value: &Value) -> String {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go value of type \
         map[string]interface {{}}"
    )
}

/// Helm's MergeMaps: mappings into each other, all else replaced, nulls too.
fn merge(under: &mut Map<String, Value>, over: Map<String, Value>) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Object(under)), Value::Object(over)) => merge(under, over),
            (_, value) => drop(under.insert(key, value)),
        }
    }
}

/// The same value with every number a float.
pub(crate) fn floats(mut value: Value) -> Value {
    make_floats(&mut value);
    value
}

fn make_floats(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().and_then(Number::from_f64) {
                *number = float;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_floats),
        Value::Object(map) => map.values_mut().for_each(make_floats),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The same value with every float that is an integer written as one: as Go writes JSON.
pub(crate) fn integers(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(integer(number)),
        Value::Array(items) => items.iter().map(integers).collect(),
        Value::Object(map) => Value::Object(integers_of(map)),
        other => other.clone(),
    }
}

/// [`integers`] of a mapping.
pub(crate) fn integers_of(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter().map(|(key, value)| (key.clone(), integers(value))).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked before the cast")]
fn integer(number: &Number) -> Number {
    /// 2^63, the first float that is no i64.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && (-LIMIT..LIMIT).contains(&float) => {
            Number::from(float as i64)
        }
        _ => number.clone(),
    }
}

impl From<yaml::Error> for Error {
    fn from(error: yaml::Error) -> Self {
        let line = error.place().and_then(|place| usize::try_from(place.line).ok()).unwrap_or(0);
        Self { line, message: error.go_text() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    #[test]
    fn values_files_may_have_many_documents_and_their_numbers_are_floats() {
        let values =
            load_values("a: {x: 1, k: 1}\nl: [1]\n---\na: {k: null, z: 0x10}\nl: [2]\n---\n").unwrap();
        assert!(values["a"]["x"].is_f64());
        assert_eq!(integers(&Value::Object(values)), json!({"a": {"x": 1, "k": null, "z": 16}, "l": [2]}));
        assert_eq!(load_values("").unwrap(), Map::new());
        assert_eq!(load_values("a: 1\n---\n- x\n").unwrap_err().line, 3);
    }

    #[test]
    fn manifests_keep_their_integers() {
        assert_eq!(
            load("a: 12345678901234567\nb: 1.5\n").unwrap(),
            json!({"a": 12_345_678_901_234_567_i64, "b": 1.5})
        );
    }
}
