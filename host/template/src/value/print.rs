//! What Go's `%v` prints: the text of a value in `{{ }}`, `print`, `toString`, `quote` and `cat`.

use std::io::Write as _;

use minijinja::Value;
use minijinja::value::ValueKind;

use super::float::float_text;
use super::number::{Number, number};
use super::object::{GoObject, Shape, as_object};
use super::{as_byte_slice, as_list, as_map, is_nil};

/// Nesting at which printing gives up: `set $d "self" $d` has no end. YAML's loader stops earlier.
pub const MAX_DEPTH: usize = 1_000;

/// Bytes at which printing gives up: thirty nested `list $x $x` are a gigabyte. The default of
/// [`crate::Limits::output`] is the same.
pub const MAX_TEXT: usize = 32 << 20;

/// A value that cannot be written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrintError {
    /// Deeper than [`MAX_DEPTH`], or a map within itself.
    #[error("value is nested deeper than {MAX_DEPTH} levels (limit value depth)")]
    TooDeep,
    /// Longer than [`MAX_TEXT`].
    #[error("text of a value is longer than {MAX_TEXT} bytes (limit value text)")]
    TooLong,
}

/// The text of a value as a new Go string.
///
/// # Errors
/// For values deeper or longer than the limits.
pub fn print(value: &Value) -> Result<Value, PrintError> {
    if super::is_string(value) {
        return Ok(value.clone());
    }
    let mut out = Vec::new();
    print_value(value, &mut out)?;
    Ok(super::string_value(out))
}

/// Appends the text of a value; nil and absent are `<nil>`.
///
/// # Errors
/// For values deeper or longer than the limits; what was appended by then stays.
pub fn print_value(value: &Value, out: &mut Vec<u8>) -> Result<(), PrintError> {
    print_at(value, out, 0)
}

/// The text of a value with U+FFFD for what is not UTF-8: for messages.
pub fn display(value: &Value) -> String {
    let mut out = Vec::new();
    match print_value(value, &mut out) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(err) => format!("({err})"),
    }
}

fn print_at(value: &Value, out: &mut Vec<u8>, depth: usize) -> Result<(), PrintError> {
    if out.len() > MAX_TEXT {
        return Err(PrintError::TooLong);
    }
    match value.kind() {
        ValueKind::Undefined | ValueKind::None | ValueKind::Invalid => out.extend(b"<nil>"),
        ValueKind::Bool => out.extend(if value.is_true() { &b"true"[..] } else { b"false" }),
        ValueKind::Number => print_number(value, out),
        ValueKind::String | ValueKind::Bytes => {
            out.extend_from_slice(value.as_bytes().unwrap_or_default());
        }
        _ => return print_container(value, out, depth),
    }
    Ok(())
}

fn print_number(value: &Value, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    let _ = match number(value) {
        Some(Number::Int(int)) => write!(out, "{int}"),
        Some(Number::Uint(uint)) => write!(out, "{uint}"),
        Some(Number::Float(float)) => out.write_all(float_text(float).as_bytes()),
        None => Ok(()),
    };
}

fn print_container(value: &Value, out: &mut Vec<u8>, depth: usize) -> Result<(), PrintError> {
    if depth >= MAX_DEPTH {
        return Err(PrintError::TooDeep);
    }
    if let Some(map) = as_map(value) {
        let entries = map.glance();
        let entries = entries.iter().map(|(key, value)| (key.as_bytes(), value));
        return print_map(entries, out, depth);
    }
    if let Some(list) = as_list(value) {
        return print_list(list.items(), out, depth);
    }
    if let Some(bytes) = as_byte_slice(value) {
        let numbers: Vec<Value> = bytes.iter().map(|b| super::number::byte(*b)).collect();
        return print_list(&numbers, out, depth);
    }
    match as_object(value) {
        Some(object) => print_object(object, out, depth),
        None => {
            out.extend(value.to_string().bytes());
            Ok(())
        }
    }
}

fn print_map<'v>(
    entries: impl Iterator<Item = (&'v [u8], &'v Value)>,
    out: &mut Vec<u8>,
    depth: usize,
) -> Result<(), PrintError> {
    out.extend(b"map[");
    for (index, (key, value)) in entries.enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        out.extend(key);
        out.push(b':');
        print_at(value, out, depth + 1)?;
    }
    out.push(b']');
    Ok(())
}

fn print_list(items: &[Value], out: &mut Vec<u8>, depth: usize) -> Result<(), PrintError> {
    out.push(b'[');
    print_items(items, out, depth)?;
    out.push(b']');
    Ok(())
}

fn print_items(items: &[Value], out: &mut Vec<u8>, depth: usize) -> Result<(), PrintError> {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        print_at(item, out, depth + 1)?;
    }
    Ok(())
}

fn print_object(object: &dyn GoObject, out: &mut Vec<u8>, depth: usize) -> Result<(), PrintError> {
    if let Some(text) = object.text() {
        out.extend(text.bytes());
        return Ok(());
    }
    let entries = object.entries();
    match object.shape() {
        Shape::Map => {
            let entries = entries.iter().map(|(key, value)| (key.as_bytes().unwrap_or_default(), value));
            print_map(entries, out, depth)
        }
        Shape::Slice => print_list(&values_of(entries), out, depth),
        Shape::Struct | Shape::Pointer | Shape::Func | Shape::Complex => {
            if object.shape() == Shape::Pointer {
                out.push(b'&');
            }
            out.push(b'{');
            print_items(&values_of(entries), out, depth)?;
            out.push(b'}');
            Ok(())
        }
    }
}

fn values_of(entries: Vec<(Value, Value)>) -> Vec<Value> {
    entries.into_iter().map(|(_, value)| value).collect()
}

/// Whether `print` puts no space before or after this value: Go's rule for strings.
pub(crate) fn is_print_string(value: &Value) -> bool {
    !is_nil(value) && super::is_string(value)
}
