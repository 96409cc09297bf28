//! Arguments of functions as Go sees them, and conversions between types as `cast` makes them.

use std::borrow::Cow;

use crate::function::FnError;
use crate::literal;
use crate::value::number::{Number, number};
use crate::value::object::Shape;
use crate::value::print::print_value;
use crate::value::{
    Map, Value, as_byte_slice, as_list, as_map, as_object, as_string, as_text, is_nil, kind_of, type_of,
};

/// What Go says when a function looks into nil.
pub(crate) const NIL_POINTER: &str = "runtime error: invalid memory address or nil pointer dereference";

/// The argument at an index.
pub(crate) fn any(args: &[Value], index: usize) -> Result<&Value, FnError> {
    args.get(index).ok_or_else(FnError::arguments)
}

/// The bytes of a `string` parameter.
pub(crate) fn bytes(args: &[Value], index: usize) -> Result<&[u8], FnError> {
    args.get(index).and_then(as_string).ok_or_else(FnError::arguments)
}

/// The text of a `string` parameter, with U+FFFD for what is not UTF-8.
pub(crate) fn text(args: &[Value], index: usize) -> Result<Cow<'_, str>, FnError> {
    args.get(index).and_then(as_text).ok_or_else(FnError::arguments)
}

/// An `int` or `int64` parameter.
pub(crate) fn int(args: &[Value], index: usize) -> Result<i64, FnError> {
    match args.get(index).and_then(number) {
        Some(Number::Int(int)) => Ok(int),
        Some(Number::Float(float)) => Ok(float_to_int(float)),
        _ => Err(FnError::arguments()),
    }
}

/// A map parameter; a nil map is `None`.
pub(crate) fn map(args: &[Value], index: usize) -> Result<Option<&Map>, FnError> {
    let value = any(args, index)?;
    if is_nil(value) {
        return Ok(None);
    }
    as_map(value).map(Some).ok_or_else(FnError::arguments)
}

/// The rest of the arguments from an index on.
pub(crate) fn rest(args: &[Value], from: usize) -> &[Value] {
    args.get(from..).unwrap_or_default()
}

/// The items of anything whose Go kind is slice; `None` for other kinds.
pub(crate) fn items(value: &Value) -> Option<Cow<'_, [Value]>> {
    if let Some(list) = as_list(value) {
        return Some(Cow::Borrowed(list.items()));
    }
    if let Some(bytes) = as_byte_slice(value) {
        return Some(Cow::Owned(bytes.iter().map(|byte| Value::from(u128::from(*byte))).collect()));
    }
    let object = as_object(value).filter(|object| object.shape() == Shape::Slice)?;
    Some(Cow::Owned(object.entries().into_iter().map(|(_, item)| item).collect()))
}

/// The items of a list argument of a function that refuses other kinds with this text before the
/// kind's name.
pub(crate) fn list<'v>(value: &'v Value, refusal: &str) -> Result<Cow<'v, [Value]>, FnError> {
    if is_nil(value) {
        return Err(FnError::new(NIL_POINTER));
    }
    items(value).ok_or_else(|| FnError::new(format!("{refusal} {}", kind_of(value))))
}

/// Go's text for a type assertion that fails.
pub(crate) fn conversion(value: &Value, wanted: &str) -> FnError {
    let found = if is_nil(value) { "nil" } else { type_of(value) };
    FnError::new(format!("interface conversion: interface {{}} is {found}, not {wanted}"))
}

/// Sprig's text of a value: `%v`, but bytes are a string.
pub(crate) fn strval(value: &Value) -> Result<Vec<u8>, FnError> {
    if let Some(bytes) = as_string(value).or_else(|| as_byte_slice(value)) {
        return Ok(bytes.to_vec());
    }
    let mut out = Vec::new();
    print_value(value, &mut out)?;
    Ok(out)
}

/// Sprig's list of texts: items that are not nil; what is no list is a list of one.
pub(crate) fn strings(value: &Value) -> Result<Vec<Vec<u8>>, FnError> {
    if is_nil(value) {
        return Ok(Vec::new());
    }
    match items(value) {
        Some(items) => items.iter().filter(|item| !is_nil(item)).map(strval).collect(),
        None => Ok(vec![strval(value)?]),
    }
}

/// The value as `int64`, 0 where it has no such meaning. Texts have Go's prefixes: `010` is 8.
pub(crate) fn to_int(value: &Value) -> i64 {
    match number(value) {
        Some(Number::Int(int)) => return int,
        Some(Number::Uint(uint)) => return uint.cast_signed(),
        Some(Number::Float(float)) => return float_to_int(float),
        None => {}
    }
    match as_text(value) {
        Some(text) => literal::signed(without_zero_decimals(&text)).unwrap_or(0),
        None => i64::from(is_bool(value) && value.is_true()),
    }
}

/// The value as `float64`, 0 where it has no such meaning.
pub(crate) fn to_float(value: &Value) -> f64 {
    if let Some(number) = number(value) {
        return number.to_f64();
    }
    match as_text(value) {
        Some(text) => parse_float(&text).unwrap_or(0.0),
        None => f64::from(u8::from(is_bool(value) && value.is_true())),
    }
}

fn is_bool(value: &Value) -> bool {
    value.kind() == minijinja::value::ValueKind::Bool
}

/// `strconv.ParseFloat`: decimal and hexadecimal floats, `inf`, `nan`; `None` when out of range.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let negative = text.starts_with('-');
    let special = match unsigned.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => Some(f64::INFINITY),
        "nan" if unsigned.len() == text.len() => Some(f64::NAN),
        _ => None,
    };
    match special {
        Some(float) => Some(if negative { -float } else { float }),
        None => literal::float(&without_underscores(text)?).filter(|float| float.is_finite()),
    }
}

/// The text without the underscores that stand between digits; `None` when one stands elsewhere.
pub(crate) fn without_underscores(text: &str) -> Option<Cow<'_, str>> {
    let hexadecimal = text.contains(['x', 'X']);
    if !text.contains('_') || hexadecimal {
        return Some(Cow::Borrowed(text));
    }
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let mut marks = text.match_indices('_');
    let fit = marks.all(|(at, _)| digit(at.checked_sub(1)) && digit(Some(at + 1)));
    fit.then(|| Cow::Owned(text.replace('_', "")))
}

/// `80.00` is 80 for an integer.
fn without_zero_decimals(text: &str) -> &str {
    let trimmed = text.trim_end_matches('0');
    match trimmed.strip_suffix('.') {
        Some(whole) if trimmed.len() < text.len() => whole,
        _ => text,
    }
}

/// Go's conversion on amd64: towards zero, and the smallest integer for what does not fit.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(crate) fn float_to_int(float: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&float) { float as i64 } else { i64::MIN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::nil;

    #[test]
    fn texts_become_integers_with_gos_prefixes() {
        let cases: &[(&str, i64)] = &[
            ("010", 8),
            ("0x10", 16),
            ("08", 0),
            ("1_000", 1000),
            ("80.00", 80),
            ("80.", 0),
            ("3.7", 0),
            ("-5", -5),
            ("+5", 5),
            ("x", 0),
            ("", 0),
            ("9223372036854775808", 0),
        ];
        for (text, int) in cases {
            assert_eq!(to_int(&Value::from(*text)), *int, "{text}");
        }
        assert_eq!(to_int(&Value::from(3.7)), 3);
        assert_eq!(to_int(&Value::from(1e30)), i64::MIN);
        assert_eq!(to_int(&Value::from(true)), 1);
        assert_eq!(to_int(&nil()), 0);
    }

    #[test]
    fn texts_become_floats_as_strconv_reads_them() {
        let cases: &[(&str, Option<f64>)] = &[
            ("1.5", Some(1.5)),
            ("-Inf", Some(f64::NEG_INFINITY)),
            ("0x1p-2", Some(0.25)),
            ("1e400", None),
            (" 1", None),
            ("", None),
        ];
        for (text, float) in cases {
            assert_eq!(parse_float(text), *float, "{text}");
        }
    }
}
