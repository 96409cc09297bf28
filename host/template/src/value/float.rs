//! Go's text for floats: shortest digits with Go's rule for the exponent, and fixed precision.

use std::fmt::Write as _;

/// Decimal digits of a finite float: `0.d1d2d3… × 10^point`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// Whether there is a minus sign.
    pub negative: bool,
    /// Digits without leading or trailing zeros; empty for zero.
    pub digits: String,
    /// Position of the decimal point relative to the first digit.
    pub point: i32,
}

/// The text `%v` prints: exponent form below 1e-4 and from 1e6 on (at 1e21 with many digits too).
pub fn float_text(value: f64) -> String {
    match small_integer(value).filter(|int| int.unsigned_abs() < 1_000_000) {
        Some(int) => int.to_string(),
        None => format_g(value, None),
    }
}

/// The integer that a float is, when it has at most 15 digits: most numbers of charts. Minus zero is none.
#[expect(clippy::cast_possible_truncation, reason = "the value was checked to be whole and small")]
pub(crate) fn small_integer(value: f64) -> Option<i64> {
    let is_small = value.fract() == 0.0 && value.abs() < 1e15 && !(value == 0.0 && value.is_sign_negative());
    is_small.then_some(value as i64)
}

/// The fewest digits that read back as the same float.
pub fn shortest(value: f64) -> Decimal {
    let mut buffer = zmij::Buffer::new();
    parse(buffer.format_finite(value))
}

/// The float rounded to `digits` significant digits (at least one), half to even.
pub fn rounded(value: f64, digits: usize) -> Decimal {
    parse(&format!("{value:.*e}", digits.max(1) - 1))
}

fn parse(text: &str) -> Decimal {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let negative = mantissa.starts_with('-');
    let mantissa = mantissa.trim_start_matches('-');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [whole, fraction].concat();
    let leading = all.len() - all.trim_start_matches('0').len();
    let digits = all.trim_matches('0').to_owned();
    let shift = i32::try_from(whole.len()).unwrap_or(0) - i32::try_from(leading).unwrap_or(0);
    let point = if digits.is_empty() { 0 } else { shift + exponent.parse().unwrap_or(0) };
    Decimal { negative, digits, point }
}

/// `NaN`, `+Inf` or `-Inf`, for what has no digits.
fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "+Inf" } else { "-Inf" })
    } else {
        None
    }
}

/// `%e`: one digit, point, digits, two-digit exponent; `None` is as many digits as needed.
pub fn format_e(value: f64, precision: Option<usize>) -> String {
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    let decimal = match precision {
        Some(precision) => rounded(value, precision + 1),
        None => shortest(value),
    };
    let places = precision.unwrap_or(decimal.digits.len().saturating_sub(1));
    exponent_form(&decimal, places)
}

/// `%f`: digits, point, digits; `None` is as many as needed.
pub fn format_f(value: f64, precision: Option<usize>) -> String {
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    match precision {
        Some(precision) => format!("{value:.precision$}"),
        None => plain_form(&shortest(value)),
    }
}

/// `%g`: the shorter of the two; `None` is as many digits as needed.
pub fn format_g(value: f64, precision: Option<usize>) -> String {
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    let decimal = match precision {
        Some(precision) => rounded(value, precision),
        None => shortest(value),
    };
    let len = i32::try_from(decimal.digits.len()).unwrap_or(i32::MAX);
    let limit = match precision.map(|p| i32::try_from(p.max(1)).unwrap_or(i32::MAX)) {
        None => 6,
        Some(p) if p > len && len >= decimal.point => len,
        Some(p) => p,
    };
    let exponent = if decimal.digits.is_empty() { 0 } else { decimal.point - 1 };
    if exponent < -4 || exponent >= limit.max(1) {
        exponent_form(&decimal, decimal.digits.len().saturating_sub(1))
    } else {
        plain_form(&decimal)
    }
}

/// `%x`: a hexadecimal mantissa of 1 to 2 and a power of two; `None` is as many digits as needed.
pub fn format_x(value: f64, precision: Option<usize>) -> String {
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let (mut mantissa, mut exponent) = binary(value);
    if mantissa == 0 {
        exponent = 0;
    }
    // Subnormal numbers get their leading one, too.
    while mantissa != 0 && mantissa < 1 << 52 {
        mantissa <<= 1;
        exponent -= 1;
    }
    if let Some(shift) = precision.filter(|p| *p < 13).map(|p| 52 - 4 * p) {
        let rest = mantissa & ((1 << shift) - 1);
        let half = 1 << (shift - 1);
        mantissa >>= shift;
        mantissa += u64::from(rest > half || (rest == half && mantissa & 1 == 1));
        mantissa <<= shift;
        if mantissa >= 1 << 53 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let digits = format!("{:013x}", mantissa & ((1 << 52) - 1));
    let digits = match precision {
        None => digits.trim_end_matches('0').to_owned(),
        Some(precision) => digits.chars().chain(std::iter::repeat('0')).take(precision).collect(),
    };
    let point = if digits.is_empty() { "" } else { "." };
    let mark = if exponent < 0 { '-' } else { '+' };
    format!("{sign}0x{}{point}{digits}p{mark}{:02}", mantissa >> 52, exponent.unsigned_abs())
}

/// `%b`: the integer mantissa and its power of two.
pub fn format_b(value: f64) -> String {
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let (mantissa, exponent) = binary(value);
    format!("{sign}{mantissa}p{:+}", exponent - 52)
}

/// Mantissa with 52 bits after the point, and the exponent.
fn binary(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match i32::try_from(bits >> 52 & 0x7ff).unwrap_or(0) {
        0 => (fraction, -1022),
        biased => (fraction | 1 << 52, biased - 1023),
    }
}

fn exponent_form(decimal: &Decimal, places: usize) -> String {
    let mut out = sign(decimal);
    let mut digits = decimal.digits.chars();
    out.push(digits.next().unwrap_or('0'));
    if places > 0 {
        out.push('.');
        let fraction: String = digits.collect();
        let _ = write!(out, "{fraction:0<places$}");
    }
    let exponent = if decimal.digits.is_empty() { 0 } else { decimal.point - 1 };
    let mark = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "e{mark}{:02}", exponent.unsigned_abs());
    out
}

/// The digits without exponent and without trailing zeros.
pub fn plain_form(decimal: &Decimal) -> String {
    let mut out = sign(decimal);
    let digits = &decimal.digits;
    let Ok(whole) = usize::try_from(decimal.point) else {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', decimal.point.unsigned_abs() as usize));
        out.push_str(digits);
        return out;
    };
    if whole == 0 {
        out.push('0');
    }
    let (before, after) = digits.split_at(whole.min(digits.len()));
    let _ = write!(out, "{before:0<whole$}");
    if !after.is_empty() {
        out.push('.');
        out.push_str(after);
    }
    out
}

fn sign(decimal: &Decimal) -> String {
    if decimal.negative { "-".to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_text_is_what_go_prints() {
        let cases: &[(f64, &str)] = &[
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (1.5, "1.5"),
            (123_456.0, "123456"),
            (1_000_000.0, "1e+06"),
            (1_234_567.0, "1.234567e+06"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e20, "1e+20"),
            (1e100, "1e+100"),
            (12_345_678_901_234_567.0, "1.2345678901234568e+16"),
            (1_185_378_440_889_122.2, "1.1853784408891222e+15"),
            (f64::INFINITY, "+Inf"),
            (f64::NAN, "NaN"),
        ];
        for (value, text) in cases {
            assert_eq!(float_text(*value), *text);
        }
    }

    #[test]
    fn a_precision_rounds_half_to_even() {
        assert_eq!(format_f(1.25, Some(1)), "1.2");
        assert_eq!(format_f(2.5, Some(0)), "2");
        assert_eq!(format_f(1e6, Some(0)), "1000000");
        assert_eq!(format_e(1.5, Some(6)), "1.500000e+00");
        assert_eq!(format_e(0.0, Some(2)), "0.00e+00");
        assert_eq!(format_e(1_234_567.0, None), "1.234567e+06");
        assert_eq!(format_g(1.5, Some(3)), "1.5");
        assert_eq!(format_g(1234.0, Some(2)), "1.2e+03");
        assert_eq!(format_g(100_000.0, Some(3)), "1e+05");
        assert_eq!(format_g(100.0, Some(3)), "100");
        assert_eq!(format_f(0.001_25, None), "0.00125");
    }

    #[test]
    fn powers_of_two_are_go_s() {
        assert_eq!(format_x(1.0, None), "0x1p+00");
        assert_eq!(format_x(1.5, None), "0x1.8p+00");
        assert_eq!(format_x(-1000.0, Some(2)), "-0x1.f4p+09");
        assert_eq!(format_x(1.999, Some(1)), "0x1.0p+01");
        assert_eq!(format_x(1.0, Some(15)), "0x1.000000000000000p+00");
        assert_eq!(format_x(0.0, None), "0x0p+00");
        assert_eq!(format_b(1.0), "4503599627370496p-52");
    }
}
