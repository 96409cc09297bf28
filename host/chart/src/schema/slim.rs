//! A schema's JSON without its prose, which is half of it and decides nothing.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The JSON of a text, its descriptions empty; `None` when it is none.
pub(super) fn read(text: &[u8]) -> Option<Value> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Slim { is_prose: false }.deserialize(&mut reader).ok()?;
    reader.end().ok().map(|()| value)
}

/// A value whose texts are kept, or not if it is prose.
#[derive(Clone, Copy)]
struct Slim {
    is_prose: bool,
}

impl Slim {
    fn text(self, text: &str) -> Value {
        Value::String(if self.is_prose { String::new() } else { text.to_owned() })
    }
}

impl<'de> DeserializeSeed<'de> for Slim {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Slim {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(self.text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self { is_prose: false })? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = match key.as_str() {
                // Values are compared with these, as they are.
                "const" | "enum" => entries.next_value()?,
                "description" | "title" | "$comment" => entries.next_value_seed(Self { is_prose: true })?,
                _ => entries.next_value_seed(Self { is_prose: false })?,
            };
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
