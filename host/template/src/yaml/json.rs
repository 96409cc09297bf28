//! JSON as Go's `encoding/json` writes it.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::Value;
use minijinja::value::ValueKind;

use crate::value::float::{format_e, plain_form, shortest, small_integer};
use crate::value::number::{Number, number};
use crate::value::object::{GoObject, Shape};
use crate::value::print::{MAX_DEPTH, MAX_TEXT};
use crate::value::{ListType, as_byte_slice, as_list, as_map, as_object, as_string};

/// A value JSON or YAML has no text for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// A number that is none.
    #[error("json: unsupported value: {0}")]
    Number(&'static str),
    /// A func or a complex number.
    #[error("json: unsupported type: {0}")]
    Type(&'static str),
    /// Nested deeper than [`MAX_DEPTH`], or a map within itself.
    #[error("json: unsupported value: encountered a cycle via map[string]interface {{}}")]
    Cycle,
    /// Longer than [`MAX_TEXT`].
    #[error("text of a value is longer than {MAX_TEXT} bytes (limit value text)")]
    TooLong,
    /// A key that JSON writes and YAML does not take for a key: too long, or with U+0085 in it.
    #[error("yaml: line 1: did not find expected ',' or '}}'")]
    Key,
    /// A control character that JSON writes as it is and YAML refuses.
    #[error("yaml: control characters are not allowed")]
    Control,
}

/// How JSON is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// `<`, `>` and `&` become `\u003c`, `\u003e` and `\u0026`.
    pub escape_html: bool,
    /// One entry a line, two spaces a level.
    pub pretty: bool,
}

/// The value as JSON, without a line break at the end.
///
/// # Errors
/// For what JSON cannot hold, and values deeper or longer than the limits.
pub fn to_json(value: &Value, layout: Layout) -> Result<String, JsonError> {
    let mut writer = Writer { out: String::new(), layout };
    writer.value(value, 0)?;
    Ok(writer.out)
}

/// Characters of a text in JSON as `json.Marshal` writes it, with its quotes.
pub(super) fn text_len(text: &str) -> usize {
    let layout = Layout { escape_html: true, pretty: false };
    let mut writer = Writer { out: String::new(), layout };
    writer.text(text.as_bytes());
    writer.out.chars().count()
}

/// What a value is for JSON.
pub(super) enum Node<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// A finite float.
    Float(f64),
    /// Text that may not be UTF-8.
    Text(Cow<'v, [u8]>),
    List(Cow<'v, [Value]>),
    /// Entries in order.
    Map(Vec<(Arc<str>, Value)>),
}

impl<'v> Node<'v> {
    /// The value at this nesting, as `encoding/json` sees it.
    pub(super) fn of(value: &'v Value, depth: usize) -> Result<Self, JsonError> {
        Ok(match value.kind() {
            ValueKind::Undefined | ValueKind::None | ValueKind::Invalid => Self::Null,
            ValueKind::Bool => Self::Bool(value.is_true()),
            ValueKind::Number => match number(value) {
                Some(Number::Int(int)) => Self::Int(int),
                Some(Number::Uint(uint)) => Self::Uint(uint),
                Some(Number::Float(float)) => Self::Float(finite(float)?),
                None => Self::Null,
            },
            ValueKind::String | ValueKind::Bytes => {
                Self::Text(Cow::Borrowed(as_string(value).unwrap_or_default()))
            }
            _ if depth >= MAX_DEPTH => return Err(JsonError::Cycle),
            _ => Self::container(value)?,
        })
    }

    fn container(value: &'v Value) -> Result<Self, JsonError> {
        if let Some(map) = as_map(value) {
            if map.is_null() {
                return Ok(Self::Null);
            }
            return Ok(Self::Map(map.glance()));
        }
        if let Some(list) = as_list(value) {
            if list.ty() == ListType::Nil {
                return Ok(Self::Null);
            }
            return Ok(Self::List(Cow::Borrowed(list.items())));
        }
        if let Some(bytes) = as_byte_slice(value) {
            return Ok(Self::Text(Cow::Owned(STANDARD.encode(bytes).into_bytes())));
        }
        match as_object(value) {
            Some(object) => Self::object(object),
            None => Err(JsonError::Type("interface {}")),
        }
    }

    fn object(object: &dyn GoObject) -> Result<Self, JsonError> {
        if let Some(text) = crate::functions::objects::json_text(object) {
            return Ok(Self::Text(Cow::Owned(text.into_bytes())));
        }
        if let Some(number) = crate::functions::objects::json_number(object) {
            return Ok(Self::Int(number));
        }
        match object.shape() {
            Shape::Struct | Shape::Pointer | Shape::Map => {
                Ok(Self::Map(object.entries().into_iter().map(named).collect()))
            }
            Shape::Slice => {
                let items: Vec<Value> = object.entries().into_iter().map(|(_, item)| item).collect();
                Ok(Self::List(Cow::Owned(items)))
            }
            Shape::Func | Shape::Complex => Err(JsonError::Type(object.type_name())),
        }
    }
}

fn named((key, value): (Value, Value)) -> (Arc<str>, Value) {
    (lossy(as_string(&key).unwrap_or_default()).into(), value)
}

fn finite(float: f64) -> Result<f64, JsonError> {
    if float.is_nan() {
        Err(JsonError::Number("NaN"))
    } else if float.is_infinite() {
        Err(JsonError::Number(if float > 0.0 { "+Inf" } else { "-Inf" }))
    } else {
        Ok(float)
    }
}

/// Text with one U+FFFD for each byte that is not UTF-8, as Go's JSON has it.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(out)
}

/// The digits of a float that YAML reads as an integer of 64 bits.
pub(super) fn float_is_integer(float: f64) -> Option<String> {
    if float == 0.0 {
        return Some("0".to_owned());
    }
    if let Some(int) = small_integer(float) {
        return Some(int.to_string());
    }
    if float.fract() != 0.0 || float.abs() >= 1e21 {
        return None;
    }
    let text = plain_form(&shortest(float));
    (text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok()).then_some(text)
}

/// A float in JSON: an exponent only below 1e-6 and from 1e21 on, without leading zeros.
fn float_json(float: f64) -> String {
    let size = float.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return plain_form(&shortest(float));
    }
    format_e(float, None).replace("e-0", "e-")
}

struct Writer {
    out: String,
    layout: Layout,
}

impl Writer {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), JsonError> {
        if self.out.len() > MAX_TEXT {
            return Err(JsonError::TooLong);
        }
        match Node::of(value, depth)? {
            Node::Null => self.out.push_str("null"),
            Node::Bool(bool) => self.out.push_str(if bool { "true" } else { "false" }),
            Node::Int(int) => self.display(int),
            Node::Uint(uint) => self.display(uint),
            Node::Float(float) => self.out.push_str(&float_json(float)),
            Node::Text(bytes) => self.text(&bytes),
            Node::List(items) => return self.list(&items, depth),
            Node::Map(entries) => return self.map(&entries, depth),
        }
        Ok(())
    }

    fn display(&mut self, value: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.out, "{value}");
    }

    fn list(&mut self, items: &[Value], depth: usize) -> Result<(), JsonError> {
        self.out.push('[');
        for (index, item) in items.iter().enumerate() {
            self.separate(index, depth + 1);
            self.value(item, depth + 1)?;
        }
        self.close(items.is_empty(), depth, ']');
        Ok(())
    }

    fn map(&mut self, entries: &[(Arc<str>, Value)], depth: usize) -> Result<(), JsonError> {
        self.out.push('{');
        for (index, (key, value)) in entries.iter().enumerate() {
            self.separate(index, depth + 1);
            self.text(key.as_bytes());
            self.out.push_str(if self.layout.pretty { ": " } else { ":" });
            self.value(value, depth + 1)?;
        }
        self.close(entries.is_empty(), depth, '}');
        Ok(())
    }

    fn separate(&mut self, index: usize, depth: usize) {
        if index > 0 {
            self.out.push(',');
        }
        self.line(depth);
    }

    fn close(&mut self, empty: bool, depth: usize, bracket: char) {
        if !empty {
            self.line(depth);
        }
        self.out.push(bracket);
    }

    fn line(&mut self, depth: usize) {
        if self.layout.pretty {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n("  ", depth));
        }
    }

    fn text(&mut self, bytes: &[u8]) {
        self.out.push('"');
        for chunk in bytes.utf8_chunks() {
            chunk.valid().chars().for_each(|c| self.character(c));
            self.out.extend(chunk.invalid().iter().map(|_| "\\ufffd"));
        }
        self.out.push('"');
    }

    fn character(&mut self, c: char) {
        match c {
            '"' => self.out.push_str("\\\""),
            '\\' => self.out.push_str("\\\\"),
            '\n' => self.out.push_str("\\n"),
            '\r' => self.out.push_str("\\r"),
            '\t' => self.out.push_str("\\t"),
            '\u{8}' => self.out.push_str("\\b"),
            '\u{c}' => self.out.push_str("\\f"),
            '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => self.escape(c),
            '<' | '>' | '&' if self.layout.escape_html => self.escape(c),
            _ => self.out.push(c),
        }
    }

    fn escape(&mut self, c: char) {
        let _ = write!(self.out, "\\u{:04x}", u32::from(c));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

    use super::*;
    use crate::value::{bytes_value, list_value, map_value, string_value};

    fn json(value: &Value) -> String {
        to_json(value, Layout { escape_html: true, pretty: false }).unwrap()
    }

    #[test]
    fn numbers_are_written_by_gos_rule() {
        let cases: &[(f64, &str)] = &[
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.5e-10, "1.5e-10"),
            (-0.0, "-0"),
            (3.0, "3"),
            (0.1, "0.1"),
        ];
        for (float, text) in cases {
            assert_eq!(json(&Value::from(*float)), *text);
        }
    }

    #[test]
    fn text_is_escaped_by_gos_rule() {
        let text = "<a> & \"q\" \\ \u{8}\u{c}\n\r\t\u{1} \u{2028} é \u{7f}";
        let expected = "\"\\u003ca\\u003e \\u0026 \\\"q\\\" \\\\ \\b\\f\\n\\r\\t\\u0001 \\u2028 é \u{7f}\"";
        assert_eq!(json(&Value::from(text)), expected);
        assert_eq!(json(&string_value(b"a\xe2\x82z".to_vec())), "\"a\\ufffd\\ufffdz\"");
        assert_eq!(json(&bytes_value(b"hi".to_vec())), "\"aGk=\"");
    }

    #[test]
    fn the_pretty_layout_leaves_empty_containers_alone() {
        let map = map_value(
            [("a".into(), list_value(vec![1.into(), list_value(vec![])])), ("b".into(), ().into())].into(),
        );
        let text = to_json(&map, Layout { escape_html: false, pretty: true }).unwrap();
        assert_eq!(text, "{\n  \"a\": [\n    1,\n    []\n  ],\n  \"b\": null\n}");
    }

    #[test]
    fn a_map_within_itself_is_an_error() {
        let map = map_value([].into());
        crate::value::as_map(&map).unwrap().insert("self", map.clone());
        assert_eq!(to_json(&map, Layout::default()), Err(JsonError::Cycle));
        crate::value::as_map(&map).unwrap().remove("self");
    }
}
