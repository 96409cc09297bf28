//! Go's numeric constants.

use crate::ast::Number;
use crate::lexer::Kind;
use crate::quote::{quote, unquote_char};

/// The number a token stands for.
///
/// # Errors
/// Go's message for what is no number.
pub(crate) fn parse_number(text: &str, kind: Kind) -> Result<Number, String> {
    match kind {
        Kind::CharConstant => char_constant(text),
        Kind::Complex => complex(text).ok_or_else(|| illegal(text)),
        _ => match text.strip_suffix('i').and_then(float) {
            Some(imaginary) => Ok(from_complex(text, 0.0, imaginary)),
            None => plain(text),
        },
    }
}

fn illegal(text: &str) -> String {
    format!("illegal number syntax: {}", quote(text.as_bytes()))
}

fn empty(text: &str) -> Number {
    Number { text: text.into(), int: None, uint: None, float: None, complex: None }
}

fn char_constant(text: &str) -> Result<Number, String> {
    let c = unquote_char(text).ok_or_else(|| format!("malformed character constant: {text}"))?;
    let code = u32::from(c);
    Ok(Number {
        int: Some(i64::from(code)),
        uint: Some(u64::from(code)),
        float: Some(f64::from(code)),
        ..empty(text)
    })
}

fn complex(text: &str) -> Option<Number> {
    let body = text.strip_suffix('i')?;
    // The sign in the middle is the last one that does not belong to an exponent.
    let split = body.char_indices().rev().find(|(index, c)| {
        let before = body.get(..*index).and_then(|b| b.chars().next_back());
        *index > 0 && matches!(c, '+' | '-') && !matches!(before, Some('e' | 'E' | 'p' | 'P'))
    })?;
    let (real, imaginary) = body.split_at_checked(split.0)?;
    Some(from_complex(text, float(real)?, float(imaginary)?))
}

/// A complex constant without imaginary part is also the real number.
fn from_complex(text: &str, real: f64, imaginary: f64) -> Number {
    let mut number = Number { complex: Some((real, imaginary)), ..empty(text) };
    if imaginary == 0.0 {
        number.float = Some(real);
        number.int = float_to_int(real);
        number.uint = float_to_uint(real);
    }
    number
}

fn plain(text: &str) -> Result<Number, String> {
    if let Some(number) = decimal(text) {
        return Ok(number);
    }
    let uint = unsigned(text);
    let int = signed(text);
    let mut number = Number { int, uint, ..empty(text) };
    if int == Some(0) {
        number.uint = Some(0);
    }
    number.float = int.map(int_to_float).or(uint.map(uint_to_float));
    if number.float.is_some() {
        return Ok(number);
    }
    let value = float(text).ok_or_else(|| illegal(text))?;
    if !text.contains(['.', 'e', 'E', 'p', 'P']) {
        return Err(format!("integer overflow: {}", quote(text.as_bytes())));
    }
    number.float = Some(value);
    number.int = float_to_int(value);
    number.uint = float_to_uint(value);
    Ok(number)
}

/// The number of a few decimal digits, which most constants are.
#[expect(clippy::cast_precision_loss, reason = "fifteen digits are exact")]
fn decimal(text: &str) -> Option<Number> {
    let plain = text == "0" || (!text.starts_with('0') && text.len() <= 15);
    if !plain || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (int, uint) = (text.parse::<i64>().ok()?, text.parse::<u64>().ok()?);
    Some(Number { int: Some(int), uint: Some(uint), float: Some(int as f64), ..empty(text) })
}

/// Digits after the prefix of their base, without underscores.
fn digits(text: &str) -> Option<(String, u32)> {
    let lower = text.to_ascii_lowercase();
    let (body, radix) = match lower.strip_prefix('0') {
        Some(rest) if rest.starts_with('x') => (rest.get(1..)?, 16),
        Some(rest) if rest.starts_with('o') => (rest.get(1..)?, 8),
        Some(rest) if rest.starts_with('b') => (rest.get(1..)?, 2),
        Some(rest) if !rest.is_empty() => (rest, 8),
        _ => (&*lower, 10),
    };
    if body.ends_with('_') || body.contains("__") || (radix == 10 && body.starts_with('_')) {
        return None;
    }
    let clean: String = body.chars().filter(|c| *c != '_').collect();
    clean.chars().next()?.is_digit(radix).then_some((clean, radix))
}

/// Go's `ParseUint(text, 0, 64)`.
pub(crate) fn unsigned(text: &str) -> Option<u64> {
    let (digits, radix) = digits(text)?;
    u64::from_str_radix(&digits, radix).ok()
}

/// Go's `ParseInt(text, 0, 64)`.
pub(crate) fn signed(text: &str) -> Option<i64> {
    let negative = text.starts_with('-');
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    let magnitude = i128::from(unsigned(body)?);
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// Go's `ParseFloat(text, 64)` for the literals of templates.
pub(crate) fn float(text: &str) -> Option<f64> {
    let negative = text.starts_with('-');
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    let magnitude = match body.strip_prefix("0x").or_else(|| body.strip_prefix("0X")) {
        Some(hex) => hex_float(hex)?,
        None if body.starts_with(|c: char| c.is_ascii_digit() || c == '.') => decimal_float(body)?,
        None => return None,
    };
    Some(if negative { -magnitude } else { magnitude })
}

fn decimal_float(text: &str) -> Option<f64> {
    // Underscores need a base prefix in Go; only then do they separate digits.
    if text.contains('_') {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

fn hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: String = [whole, fraction].concat().chars().filter(|c| *c != '_').collect();
    // Fifteen hexadecimal digits are 60 bits: enough to round a float correctly by one multiplication.
    if digits.is_empty() || digits.len() > 15 {
        return None;
    }
    let bits = u64::from_str_radix(&digits, 16).ok()?;
    let places = i32::try_from(fraction.chars().filter(|c| *c != '_').count()).ok()?;
    let exponent: i32 = exponent.parse().ok()?;
    let value = uint_to_float(bits) * 2f64.powi(exponent.checked_sub(4 * places)?);
    value.is_finite().then_some(value)
}

#[expect(clippy::cast_precision_loss, reason = "Go's conversion rounds the same way")]
fn int_to_float(int: i64) -> f64 {
    int as f64
}

#[expect(clippy::cast_precision_loss, reason = "Go's conversion rounds the same way")]
fn uint_to_float(uint: u64) -> f64 {
    uint as f64
}

#[expect(clippy::cast_possible_truncation, reason = "compared with the original right after")]
fn float_to_int(value: f64) -> Option<i64> {
    let int = value as i64;
    (int_to_float(int) == value && int != i64::MAX).then_some(int)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "compared with the original right after"
)]
fn float_to_uint(value: f64) -> Option<u64> {
    let uint = value as u64;
    (uint_to_float(uint) == value && uint != u64::MAX).then_some(uint)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    fn int(text: &str) -> Option<i64> {
        parse_number(text, Kind::Number).unwrap().int
    }

    #[test]
    fn integers_have_every_base_of_go() {
        let cases = [
            ("42", 42),
            ("-7", -7),
            ("+3", 3),
            ("0x1F", 31),
            ("0o17", 15),
            ("017", 15),
            ("0b101", 5),
            ("1_000", 1000),
            ("1e3", 1000),
            ("0x1.8p1", 3),
            ("-0", 0),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ];
        for (text, value) in cases {
            assert_eq!(int(text), Some(value), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_unsigned_float_or_an_error() {
        let big = parse_number("9223372036854775808", Kind::Number).unwrap();
        assert_eq!((big.int, big.uint), (None, Some(1 << 63)));
        let huge = parse_number("18446744073709551616", Kind::Number).unwrap_err();
        assert_eq!(huge, r#"integer overflow: "18446744073709551616""#);
        assert_eq!(int("1.5"), None);
        for text in ["1__0", "08", "0x", "1_", "."] {
            assert!(parse_number(text, Kind::Number).is_err(), "{text}");
        }
        let complex = parse_number("1+2i", Kind::Complex).unwrap();
        assert_eq!(complex.complex, Some((1.0, 2.0)));
    }
}
