//! Config as a type, and its JSON Schema made from the same lines.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::manifest::quoted;

/// A type that may stand in a config: it has a schema, and a value of it can be written as JSON.
pub trait Field {
    /// The inside of its JSON Schema object, as `"type":"string"`.
    fn schema() -> String;

    /// The value as JSON; `null` is not shown as a default.
    fn json(&self) -> String;
}

/// The config of a plugin that has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoConfig {}

/// The whole JSON Schema (2020-12) of a config.
#[must_use]
pub fn schema<C: Field>() -> String {
    format!("{{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",{}}}", C::schema())
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
            fn schema() -> String {
                let default = Self::default();
                let fields = [$(
                    $crate::config::property(
                        stringify!($field),
                        concat!($($says),*),
                        <$type as $crate::config::Field>::schema(),
                        concat!($($(",\"", $key, "\":", stringify!($value)),+)?),
                        $crate::config::Field::json(&default.$field),
                    ),
                )*];
                $crate::config::object(&fields)
            }

            fn json(&self) -> String {
                let fields = [$(
                    (stringify!($field), $crate::config::Field::json(&self.$field)),
                )*];
                $crate::config::values(&fields)
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
            fn schema() -> String {
                $crate::config::words(&[stringify!($first) $(, stringify!($word))*])
            }

            fn json(&self) -> String {
                let word = match self {
                    Self::$first => stringify!($first),
                    $(Self::$word => stringify!($word),)*
                };
                $crate::config::word(word)
            }
        }
    };
}
pub use crate::config;

/// One property of an object's schema.
#[doc(hidden)]
#[must_use]
pub fn property(field: &str, says: &str, schema: String, more: &str, default: String) -> String {
    let mut parts = Vec::new();
    if !says.is_empty() {
        parts.push(format!("\"description\":{}", quoted(says.trim())));
    }
    if !schema.is_empty() {
        parts.push(schema);
    }
    if !more.is_empty() {
        parts.push(more.trim_start_matches(',').to_owned());
    }
    if default != "null" {
        parts.push(format!("\"default\":{default}"));
    }
    format!("{}:{{{}}}", quoted(&camel(field)), parts.join(","))
}

/// The schema of an object.
#[doc(hidden)]
#[must_use]
pub fn object(properties: &[String]) -> String {
    let properties = properties.join(",");
    format!("\"type\":\"object\",\"additionalProperties\":false,\"properties\":{{{properties}}}")
}

/// The JSON of an object; what has no default is left out.
#[doc(hidden)]
#[must_use]
pub fn values(fields: &[(&str, String)]) -> String {
    let known = fields.iter().filter(|(_, json)| json != "null");
    let fields: Vec<String> = known.map(|(field, json)| format!("\"{}\":{json}", camel(field))).collect();
    format!("{{{}}}", fields.join(","))
}

/// The schema of an enum.
#[doc(hidden)]
#[must_use]
pub fn words(all: &[&str]) -> String {
    let all: Vec<String> = all.iter().map(|one| word(one)).collect();
    format!("\"enum\":[{}]", all.join(","))
}

/// The JSON of an enum: its word begins in lower case.
#[doc(hidden)]
#[must_use]
pub fn word(variant: &str) -> String {
    let mut letters = variant.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    quoted(&first.into_iter().chain(letters).collect::<String>())
}

/// `empty_is_ready` as `emptyIsReady`.
fn camel(field: &str) -> String {
    let mut camel = String::new();
    let mut is_next = false;
    for letter in field.chars() {
        match (letter, is_next) {
            ('_', _) => is_next = true,
            (letter, true) => {
                camel.push(letter.to_ascii_uppercase());
                is_next = false;
            }
            (letter, false) => camel.push(letter),
        }
    }
    camel
}

impl Field for NoConfig {
    fn schema() -> String {
        object(&[])
    }

    fn json(&self) -> String {
        values(&[])
    }
}

macro_rules! is_plain {
    ($($type:ty: $schema:literal),+) => {$(
        impl Field for $type {
            fn schema() -> String {
                $schema.to_owned()
            }

            fn json(&self) -> String {
                self.to_string()
            }
        }
    )+};
}
is_plain!(
    bool: "\"type\":\"boolean\"",
    u8: "\"type\":\"integer\"",
    u32: "\"type\":\"integer\"",
    u64: "\"type\":\"integer\"",
    i64: "\"type\":\"integer\"",
    Value: ""
);

impl Field for String {
    fn schema() -> String {
        "\"type\":\"string\"".to_owned()
    }

    fn json(&self) -> String {
        quoted(self)
    }
}

impl<T: Field> Field for Option<T> {
    fn schema() -> String {
        T::schema()
    }

    fn json(&self) -> String {
        self.as_ref().map_or_else(|| "null".to_owned(), Field::json)
    }
}

impl<T: Field> Field for Vec<T> {
    fn schema() -> String {
        format!("\"type\":\"array\",\"items\":{{{}}}", T::schema())
    }

    fn json(&self) -> String {
        let items: Vec<String> = self.iter().map(Field::json).collect();
        format!("[{}]", items.join(","))
    }
}

impl<T: Field> Field for BTreeMap<String, T> {
    fn schema() -> String {
        format!("\"type\":\"object\",\"additionalProperties\":{{{}}}", T::schema())
    }

    fn json(&self) -> String {
        let items: Vec<String> =
            self.iter().map(|(key, value)| format!("{}:{}", quoted(key), value.json())).collect();
        format!("{{{}}}", items.join(","))
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
                "template": {"default": {"kind": "Job"}}}});
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
