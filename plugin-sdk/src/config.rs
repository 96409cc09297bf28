//! Config as a type, and its JSON Schema made from the same lines.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::manifest::{put_letter, put_quoted};

/// A type that may stand in a config: it has a schema, and a value of it can be written as JSON.
pub trait Field {
    /// Appends the inside of its JSON Schema object, as `"type":"string"`.
    fn schema(json: &mut String);

    /// Appends the value as JSON; `null` is not shown as a default.
    fn json(&self, json: &mut String);
}

/// The config of a plugin that has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoConfig {}

/// The whole JSON Schema (2020-12) of a config.
#[must_use]
pub fn schema<C: Field>() -> String {
    let mut json = String::from("{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",");
    C::schema(&mut json);
    json.push('}');
    json
}

/// Makes a config: a struct whose fields have defaults and sentences, read from JSON with `camelCase`
/// names and without room for typing errors, and the schema that an administrator is shown.
///
/// After a default may stand what else the schema shall say; the plugin's `validate` has to check it,
/// since the schema is advice. An enum of words has its first one as default.
///
/// ```
/// use pintle_plugin_sdk::config::{config, schema};
///
/// config! {
///     /// `spec.config` of the Plugin.
///     pub struct Config {
///         /// Lines that prove it.
///         lines: Vec<String> = vec!["loaded".to_owned()] => {"minItems": 1},
///         /// Whether none is enough.
///         empty_is_ready: bool = true,
///         /// How much it is told.
///         detail: Detail = Detail::default(),
///     }
/// }
/// config! {
///     /// Much or little.
///     pub enum Detail { Little, Much }
/// }
///
/// let config: Config = serde_json::from_str(r#"{"emptyIsReady": false, "detail": "much"}"#).unwrap();
/// assert_eq!(config, Config { empty_is_ready: false, detail: Detail::Much, ..Config::default() });
/// let typing_error = serde_json::from_str::<Config>(r#"{"emptyIsRaedy": false}"#).unwrap_err();
/// assert!(typing_error.to_string().contains("expected one of `lines`, `emptyIsReady`, `detail`"));
/// assert!(schema::<Config>().contains(
///     r#""emptyIsReady":{"description":"Whether none is enough.","type":"boolean","default":true}"#
/// ));
/// ```
#[macro_export]
macro_rules! config {
    (
        $(#[doc = $about:literal])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $says:literal])*
                $field_vis:vis $field:ident: $type:ty = $default:expr $(=> {$($key:literal: $value:literal),+})?
            ),* $(,)?
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, $crate::serde::Deserialize)]
        #[serde(crate = "pintle_plugin_sdk::serde", default, deny_unknown_fields, rename_all = "camelCase")]
        $vis struct $name {
            $($(#[doc = $says])* $field_vis $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default),* }
            }
        }

        impl $crate::config::Field for $name {
            fn schema(json: &mut String) {
                let default = Self::default();
                $crate::config::begin_schema(json);
                $(
                    $crate::config::begin_property(json, stringify!($field), concat!($($says),*));
                    $crate::config::comma(json);
                    <$type as $crate::config::Field>::schema(json);
                    $($(
                        $crate::config::comma(json);
                        json.push_str(concat!("\"", $key, "\":", stringify!($value)));
                    )+)?
                    $crate::config::comma(json);
                    $crate::config::put_value(json, "default", &default.$field);
                    json.push('}');
                )*
                json.push('}');
            }

            fn json(&self, json: &mut String) {
                json.push('{');
                $(
                    $crate::config::comma(json);
                    $crate::config::put_value(json, stringify!($field), &self.$field);
                )*
                json.push('}');
            }
        }
    };
    (
        $(#[doc = $about:literal])*
        $vis:vis enum $name:ident {
            $first:ident $(, $word:ident)* $(,)?
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, $crate::serde::Deserialize)]
        #[serde(crate = "pintle_plugin_sdk::serde", rename_all = "camelCase")]
        $vis enum $name {
            #[default]
            #[doc = concat!("`", stringify!($first), "`, the default.")]
            $first,
            $(
                #[doc = concat!("`", stringify!($word), "`.")]
                $word,
            )*
        }

        impl $crate::config::Field for $name {
            fn schema(json: &mut String) {
                $crate::config::put_words(json, &[stringify!($first) $(, stringify!($word))*]);
            }

            fn json(&self, json: &mut String) {
                let word = match self {
                    Self::$first => stringify!($first),
                    $(Self::$word => stringify!($word),)*
                };
                $crate::config::put_word(json, word);
            }
        }
    };
}
pub use crate::config;

/// The first lines of an object's schema.
#[doc(hidden)]
pub fn begin_schema(json: &mut String) {
    json.push_str("\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
}

/// The name of a property, and what is said about it.
#[doc(hidden)]
#[inline(never)]
pub fn begin_property(json: &mut String, field: &str, says: &str) {
    comma(json);
    put_camel(json, field);
    json.push('{');
    if !says.is_empty() {
        json.push_str("\"description\":");
        put_quoted(json, says.trim());
    }
}

/// Separates from what is before, if anything is.
#[doc(hidden)]
#[inline(never)]
pub fn comma(json: &mut String) {
    if !json.ends_with(['{', '[', ',']) {
        json.push(',');
    }
}

/// A named value; nothing, also no comma before it, when it is `null`.
#[doc(hidden)]
pub fn put_value<T: Field>(json: &mut String, field: &str, value: &T) {
    let begin = json.len();
    put_camel(json, field);
    let end = json.len();
    value.json(json);
    take_back_null(json, begin, end);
}

#[inline(never)]
fn take_back_null(json: &mut String, begin: usize, end: usize) {
    if json.get(end..) == Some("null") {
        json.truncate(begin);
        if json.ends_with(',') {
            json.pop();
        }
    }
}

/// The schema of an enum.
#[doc(hidden)]
pub fn put_words(json: &mut String, all: &[&str]) {
    json.push_str("\"enum\":[");
    for word in all {
        comma(json);
        put_word(json, word);
    }
    json.push(']');
}

/// The JSON of an enum: its word begins in lower case.
#[doc(hidden)]
#[inline(never)]
pub fn put_word(json: &mut String, variant: &str) {
    json.push('"');
    for (at, letter) in variant.chars().enumerate() {
        put_letter(json, if at == 0 { letter.to_ascii_lowercase() } else { letter });
    }
    json.push('"');
}

/// The name of a property: `empty_is_ready` as `"emptyIsReady":`.
#[inline(never)]
fn put_camel(json: &mut String, field: &str) {
    json.push('"');
    let mut is_next = false;
    for letter in field.chars() {
        if letter != '_' {
            put_letter(json, if is_next { letter.to_ascii_uppercase() } else { letter });
        }
        is_next = letter == '_';
    }
    json.push_str("\":");
}

impl Field for NoConfig {
    fn schema(json: &mut String) {
        begin_schema(json);
        json.push('}');
    }

    fn json(&self, json: &mut String) {
        json.push_str("{}");
    }
}

macro_rules! is_plain {
    ($($type:ty: $schema:literal),+) => {$(
        impl Field for $type {
            fn schema(json: &mut String) {
                json.push_str($schema);
            }

            fn json(&self, json: &mut String) {
                json.push_str(&self.to_string());
            }
        }
    )+};
}
is_plain!(
    u8: "\"type\":\"integer\"",
    u32: "\"type\":\"integer\"",
    u64: "\"type\":\"integer\"",
    i64: "\"type\":\"integer\"",
    Value: "\"type\":[\"object\",\"array\",\"string\",\"number\",\"boolean\",\"null\"]"
);

impl Field for bool {
    fn schema(json: &mut String) {
        json.push_str("\"type\":\"boolean\"");
    }

    fn json(&self, json: &mut String) {
        json.push_str(if *self { "true" } else { "false" });
    }
}

impl Field for String {
    fn schema(json: &mut String) {
        json.push_str("\"type\":\"string\"");
    }

    fn json(&self, json: &mut String) {
        put_quoted(json, self);
    }
}

impl<T: Field> Field for Option<T> {
    fn schema(json: &mut String) {
        T::schema(json);
    }

    fn json(&self, json: &mut String) {
        match self {
            Some(value) => value.json(json),
            None => json.push_str("null"),
        }
    }
}

impl<T: Field> Field for Vec<T> {
    fn schema(json: &mut String) {
        json.push_str("\"type\":\"array\",\"items\":{");
        T::schema(json);
        json.push('}');
    }

    fn json(&self, json: &mut String) {
        json.push('[');
        for item in self {
            comma(json);
            item.json(json);
        }
        json.push(']');
    }
}

impl<T: Field> Field for BTreeMap<String, T> {
    fn schema(json: &mut String) {
        json.push_str("\"type\":\"object\",\"additionalProperties\":{");
        T::schema(json);
        json.push('}');
    }

    fn json(&self, json: &mut String) {
        json.push('{');
        for (key, value) in self {
            comma(json);
            put_quoted(json, key);
            json.push(':');
            value.json(json);
        }
        json.push('}');
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    config! {
        /// A config with one of each.
        struct Config {
            /// First line,
            /// and second.
            names: Vec<String> = vec!["a\"b".to_owned()] => {"minItems": 1, "uniqueItems": true},
            how_many_times: u32 = 3 => {"minimum": 1},
            container: Option<String> = None,
            labels: BTreeMap<String, String> = BTreeMap::new(),
            inner: Inner = Inner::default(),
            template: Value = json!({"kind": "Job"}),
        }
    }

    config! {
        struct Inner {
            mode: Mode = Mode::default(),
        }
    }

    config! {
        enum Mode { FirstOne, Other }
    }

    #[test]
    fn the_schema_says_what_the_type_takes() {
        let schema: Value = serde_json::from_str(&schema::<Config>()).unwrap();
        let expected = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object", "additionalProperties": false, "properties": {
                "names": {"description": "First line, and second.", "type": "array",
                    "items": {"type": "string"}, "minItems": 1, "uniqueItems": true, "default": ["a\"b"]},
                "howManyTimes": {"type": "integer", "minimum": 1, "default": 3},
                "container": {"type": "string"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}, "default": {}},
                "inner": {"type": "object", "additionalProperties": false,
                    "properties": {"mode": {"enum": ["firstOne", "other"], "default": "firstOne"}},
                    "default": {"mode": "firstOne"}},
                "template": {"type": ["object", "array", "string", "number", "boolean", "null"],
                    "default": {"kind": "Job"}}}});
        assert_eq!(schema, expected);
    }

    #[test]
    fn what_the_schema_gives_as_defaults_is_what_an_empty_config_is() {
        let schema: Value = serde_json::from_str(&schema::<Config>()).unwrap();
        let properties = schema["properties"].as_object().unwrap();
        let defaults =
            properties.iter().filter_map(|(name, of)| Some((name.clone(), of.get("default")?.clone())));
        let defaults: serde_json::Map<String, Value> = defaults.collect();
        let read: Config = serde_json::from_value(Value::Object(defaults)).unwrap();
        assert_eq!(read, serde_json::from_str("{}").unwrap());
        assert_eq!(read, Config::default());
    }

    #[test]
    fn a_typing_error_is_found() {
        let error = serde_json::from_str::<Config>(r#"{"inner": {"mode": "third"}}"#).unwrap_err();
        assert!(error.to_string().contains("expected `firstOne` or `other`"), "{error}");
        assert!(serde_json::from_str::<NoConfig>(r#"{"a": 1}"#).is_err());
    }
}
