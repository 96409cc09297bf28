//! The type of a plain scalar by YAML 1.1, with the deviations of Go's library.

/// What a plain scalar means.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer above `int64`.
    Uint(u64),
    Float(f64),
    /// A date or a time, which stays text but is quoted when written.
    Timestamp,
    /// Text.
    Str,
}

/// What a plain scalar without a tag means.
pub(super) fn resolve(text: &str) -> Scalar {
    let Some(first) = text.bytes().next() else {
        return Scalar::Null;
    };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => {
            word(text).unwrap_or(Scalar::Str)
        }
        // Here Go asks its own parser of floats, which takes underscores between digits.
        b'.' => word(text)
            .or_else(|| float(&crate::functions::args::without_underscores(text)?))
            .unwrap_or(Scalar::Str),
        b'1'..=b'9' if text.len() < 19 && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().map_or(Scalar::Str, Scalar::Int)
        }
        b'0'..=b'9' | b'+' | b'-' => word(text).unwrap_or_else(|| number(text)),
        _ => Scalar::Str,
    }
}

fn word(text: &str) -> Option<Scalar> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

fn number(text: &str) -> Scalar {
    if is_timestamp(text) {
        return Scalar::Timestamp;
    }
    let plain = text.replace('_', "");
    integer(&plain).map(Scalar::from).or_else(|| float(&plain)).unwrap_or(Scalar::Str)
}

/// An integer with Go's prefixes: `0x`, `0o`, `0b`, and `0` for octal too.
pub(crate) fn integer(text: &str) -> Option<IntegerScalar> {
    let (negative, signed, digits) = match text.as_bytes().first()? {
        b'-' => (true, true, text.get(1..)?),
        b'+' => (false, true, text.get(1..)?),
        _ => (false, false, text),
    };
    let (radix, digits) = radix(digits);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        return 0i64.checked_sub_unsigned(magnitude).map(IntegerScalar::Int);
    }
    match i64::try_from(magnitude) {
        Ok(int) => Some(IntegerScalar::Int(int)),
        Err(_) if signed => None,
        Err(_) => Some(IntegerScalar::Uint(magnitude)),
    }
}

/// An integer in the widest type that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntegerScalar {
    /// `int64`
    Int(i64),
    /// `uint64`
    Uint(u64),
}

impl From<IntegerScalar> for Scalar {
    fn from(integer: IntegerScalar) -> Self {
        match integer {
            IntegerScalar::Int(int) => Self::Int(int),
            IntegerScalar::Uint(uint) => Self::Uint(uint),
        }
    }
}

fn radix(digits: &str) -> (u32, &str) {
    let bytes = digits.as_bytes();
    match (bytes.first(), bytes.get(1)) {
        (Some(b'0'), Some(b'x' | b'X')) => (16, digits.get(2..).unwrap_or_default()),
        (Some(b'0'), Some(b'o' | b'O')) => (8, digits.get(2..).unwrap_or_default()),
        (Some(b'0'), Some(b'b' | b'B')) => (2, digits.get(2..).unwrap_or_default()),
        (Some(b'0'), Some(_)) => (8, digits.get(1..).unwrap_or_default()),
        _ => (10, digits),
    }
}

fn float(text: &str) -> Option<Scalar> {
    if !is_float(text) {
        return None;
    }
    // Go refuses what overflows, and such a scalar is text.
    text.parse().ok().filter(|float: &f64| float.is_finite()).map(Scalar::Float)
}

/// `[-+]? (digits [. digits*] | . digits) ([eE] [-+]? digits)?`
fn is_float(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let some = !(whole.is_empty() && fraction.is_empty());
    exponent_fits && some && digits(whole) && digits(fraction)
}

/// A base 60 number of YAML 1.1 (`12:30:45`), which is read as text but written in quotes.
pub(super) fn is_base60(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = text.split(':');
    let Some(first) = parts.next() else {
        return false;
    };
    let starts_well = first.starts_with(|c: char| c.is_ascii_digit())
        && first.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else {
        return false;
    };
    let (last, fraction) = last.split_once('.').unwrap_or((last, ""));
    starts_well
        && middle.iter().all(|part| is_sixtieth(part))
        && is_sixtieth(last)
        && fraction.bytes().all(|b| b.is_ascii_digit() || b == b'_')
}

fn is_sixtieth(part: &str) -> bool {
    match part.as_bytes() {
        [one] => one.is_ascii_digit(),
        [ten, one] => (b'0'..=b'5').contains(ten) && one.is_ascii_digit(),
        _ => false,
    }
}

/// Whether Go's parser takes it for a date: `2001-1-2`, with `T15:4:5.9Z` or ` 15:4:5` behind.
pub(super) fn is_timestamp(text: &str) -> bool {
    let Some((year, rest)) = text.split_once('-') else {
        return false;
    };
    if year.len() != 4 || !year.bytes().all(|b| b.is_ascii_digit()) {
        return false;
    }
    let Some((month, rest)) = rest.split_once('-') else {
        return false;
    };
    let day_len = rest.bytes().take_while(u8::is_ascii_digit).count().min(2);
    let (day, rest) = rest.split_at(day_len);
    let (Some(month), Some(day)) = (small(month, 1, 12), small(day, 1, 31)) else {
        return false;
    };
    let leap = year.parse().is_ok_and(|year: u32| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    });
    day <= days(month, leap) && is_time_part(rest)
}

fn is_time_part(rest: &str) -> bool {
    match rest.as_bytes().first() {
        None => true,
        Some(b'T' | b't') => clock(rest.get(1..).unwrap_or_default()).is_some_and(is_zone),
        // Go's layout has one space here, which stands for any number of them.
        Some(b' ') => clock(rest.trim_start_matches(' ')).is_some_and(str::is_empty),
        Some(_) => false,
    }
}

fn days(month: u32, leap: bool) -> u32 {
    match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// What follows `15:4:5` and its fraction.
fn clock(text: &str) -> Option<&str> {
    let (hour, rest) = text.split_once(':')?;
    let (minute, rest) = rest.split_once(':')?;
    let len = rest.bytes().take_while(u8::is_ascii_digit).count().min(2);
    let (second, rest) = rest.split_at(len);
    small(hour, 0, 23)?;
    small(minute, 0, 59)?;
    small(second, 0, 59)?;
    Some(match rest.strip_prefix(['.', ',']) {
        Some(fraction) if fraction.starts_with(|c: char| c.is_ascii_digit()) => {
            fraction.trim_start_matches(|c: char| c.is_ascii_digit())
        }
        _ => rest,
    })
}

fn is_zone(text: &str) -> bool {
    if text == "Z" {
        return true;
    }
    let Some(rest) = text.strip_prefix(['+', '-']) else {
        return false;
    };
    let Some((hours, minutes)) = rest.split_once(':') else {
        return false;
    };
    let two = |text: &str, max| text.len() == 2 && small(text, 0, max).is_some();
    two(hours, 24) && two(minutes, 60)
}

/// A number of one or two digits in a range.
fn small(text: &str, min: u32, max: u32) -> Option<u32> {
    let fits = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|number| fits && (min..=max).contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_are_what_yaml_1_1_says() {
        let cases: &[(&str, Scalar)] = &[
            ("", Scalar::Null),
            ("~", Scalar::Null),
            ("yes", Scalar::Bool(true)),
            ("tRue", Scalar::Str),
            ("off", Scalar::Bool(false)),
            ("0644", Scalar::Int(420)),
            ("0o17", Scalar::Int(15)),
            ("-0b11", Scalar::Int(-3)),
            ("+0x1F", Scalar::Int(31)),
            ("08", Scalar::Float(8.0)),
            ("1_000", Scalar::Int(1000)),
            ("1_0.5", Scalar::Float(10.5)),
            ("1.", Scalar::Float(1.0)),
            (".5", Scalar::Float(0.5)),
            (".5_0", Scalar::Float(0.5)),
            ("._5", Scalar::Str),
            (".", Scalar::Str),
            ("-", Scalar::Str),
            ("1e3", Scalar::Float(1000.0)),
            ("1E400", Scalar::Str),
            ("0x", Scalar::Str),
            ("18446744073709551615", Scalar::Uint(u64::MAX)),
            ("18446744073709551616", Scalar::Float(18_446_744_073_709_551_616.0)),
            ("-9223372036854775808", Scalar::Int(i64::MIN)),
            ("12:30:45", Scalar::Str),
            ("2001-01-01", Scalar::Timestamp),
            ("2001-2-29", Scalar::Str),
            ("2001-12-14t21:59:43.10-05:00", Scalar::Timestamp),
            ("2001-12-14 21:59:43.10", Scalar::Timestamp),
            ("2001-12-14T21:59", Scalar::Str),
            ("<<", Scalar::Str),
            ("=", Scalar::Str),
        ];
        for (text, scalar) in cases {
            assert_eq!(resolve(text), *scalar, "{text}");
        }
    }

    #[test]
    fn sixtieths_are_known_so_that_they_can_be_quoted() {
        for text in ["1:30", "12:30:45", "-1:2", "1_0:59.5", "190:20:30"] {
            assert!(is_base60(text), "{text}");
        }
        for text in ["1:60", "a:30", "1:", ":30", "1", "1:2:3:"] {
            assert!(!is_base60(text), "{text}");
        }
    }
}
