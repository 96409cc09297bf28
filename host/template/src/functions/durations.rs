//! Spans of time: Go's `time.Duration`, in nanoseconds.

use super::ANY;
use super::args::{any, parse_float};
use crate::function::{Ctx, Entry, FnError, Param, Signature};
use crate::quote::quote;
use crate::value::number::{Number, number};
use crate::value::object::{GoObject, downcast};
use crate::value::{Value, as_text, int64, is_nil, object_value, type_of};

pub(super) const TABLE: &[Entry] = &[
    Entry::fixed("mustToDuration", &[ANY], must_to_duration),
    Entry::fixed("durationSeconds", &[ANY], |_, args| part(args, SECOND)),
    Entry::fixed("durationMinutes", &[ANY], |_, args| part(args, MINUTE)),
    Entry::fixed("durationHours", &[ANY], |_, args| part(args, HOUR)),
    Entry::fixed("durationDays", &[ANY], |_, args| hours(args, &[24.0])),
    Entry::fixed("durationWeeks", &[ANY], |_, args| hours(args, &[24.0, 7.0])),
    Entry::fixed("durationMilliseconds", &[ANY], |_, args| whole(args, 1_000_000)),
    Entry::fixed("durationMicroseconds", &[ANY], |_, args| whole(args, 1_000)),
    Entry::fixed("durationNanoseconds", &[ANY], |_, args| whole(args, 1)),
    Entry::fixed("durationRoundTo", &[ANY, ANY], |_, args| to_multiple(args, round)),
    Entry::fixed("durationTruncateTo", &[ANY, ANY], |_, args| to_multiple(args, truncate)),
];

pub(super) const SECOND: i64 = 1_000_000_000;
pub(super) const MINUTE: i64 = 60 * SECOND;
pub(super) const HOUR: i64 = 60 * MINUTE;

/// The name of the type.
pub(super) const DURATION: &str = "time.Duration";

type Result<T = Value> = std::result::Result<T, FnError>;

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct GoDuration(pub(super) i64);

/// The nanoseconds of a `time.Duration` argument.
pub(super) fn of(value: &Value) -> Result<i64> {
    downcast::<GoDuration>(value).map(|duration| duration.0).ok_or_else(FnError::arguments)
}

fn must_to_duration(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let nanos = nanos(any(args, 0)?).map_err(FnError::new)?;
    Ok(object_value(GoDuration(nanos)))
}

/// Nanoseconds of a duration, a text, or a number of seconds.
fn nanos(value: &Value) -> std::result::Result<i64, String> {
    if let Some(duration) = downcast::<GoDuration>(value) {
        return Ok(duration.0);
    }
    if is_nil(value) {
        return Err("invalid duration".to_owned());
    }
    if let Some(text) = as_text(value) {
        return text_nanos(&text);
    }
    let overflow = |seconds: &dyn std::fmt::Display| format!("duration seconds overflow: {seconds}");
    match number(value) {
        Some(Number::Int(seconds)) => seconds.checked_mul(SECOND).ok_or_else(|| overflow(&seconds)),
        Some(Number::Uint(seconds)) => Err(overflow(&seconds)),
        Some(Number::Float(seconds)) => float_nanos(seconds),
        None => Err(format!("unsupported duration type {}", type_of(value))),
    }
}

fn text_nanos(text: &str) -> std::result::Result<i64, String> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err("empty duration".to_owned());
    }
    if let Ok(nanos) = parse(trimmed) {
        return Ok(nanos);
    }
    match parse_float(trimmed) {
        Some(seconds) => float_nanos(seconds),
        None => Err(format!("could not parse duration {}", quote(text.as_bytes()))),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn float_nanos(seconds: f64) -> std::result::Result<i64, String> {
    const MOST: f64 = 9_223_372_036.854_775;
    let shown = crate::value::float::float_text(seconds);
    if !seconds.is_finite() {
        return Err(format!("invalid duration seconds: {shown}"));
    }
    if seconds.abs() > MOST {
        return Err(format!("duration seconds overflow: {shown}"));
    }
    Ok((seconds * 1e9) as i64)
}

/// The duration in units, as Go divides: whole units and the rest apart. 0 for what is none.
#[expect(clippy::cast_precision_loss, reason = "Go converts the same way")]
fn units(args: &[Value], unit: i64) -> Result<f64> {
    let nanos = nanos(any(args, 0)?).unwrap_or(0);
    Ok((nanos / unit) as f64 + (nanos % unit) as f64 / unit as f64)
}

fn part(args: &[Value], unit: i64) -> Result {
    Ok(Value::from(units(args, unit)?))
}

fn hours(args: &[Value], divisors: &[f64]) -> Result {
    let hours = units(args, HOUR)?;
    Ok(Value::from(divisors.iter().fold(hours, |hours, divisor| hours / divisor)))
}

fn whole(args: &[Value], unit: i64) -> Result {
    Ok(int64(nanos(any(args, 0)?).unwrap_or(0) / unit))
}

fn to_multiple(args: &[Value], adjust: fn(i64, i64) -> i64) -> Result {
    let adjusted = match (nanos(any(args, 0)?), nanos(any(args, 1)?)) {
        (Err(_), _) => 0,
        (Ok(nanos), Err(_)) => nanos,
        (Ok(nanos), Ok(multiple)) => adjust(nanos, multiple),
    };
    Ok(object_value(GoDuration(adjusted)))
}

/// The multiple towards zero.
pub(super) fn truncate(nanos: i64, multiple: i64) -> i64 {
    if multiple <= 0 { nanos } else { nanos - nanos % multiple }
}

/// The nearest multiple, halves away from zero.
pub(super) fn round(nanos: i64, multiple: i64) -> i64 {
    if multiple <= 0 {
        return nanos;
    }
    let rest = (nanos % multiple).abs();
    let down = nanos - nanos % multiple;
    if rest < multiple - rest {
        down
    } else if nanos < 0 {
        down.checked_sub(multiple).unwrap_or(i64::MIN)
    } else {
        down.checked_add(multiple).unwrap_or(i64::MAX)
    }
}

/// `time.ParseDuration`: `1h2m3.5s`.
///
/// # Errors
/// Go's text.
pub(super) fn parse(text: &str) -> std::result::Result<i64, String> {
    let invalid = || format!("time: invalid duration {}", quote(text.as_bytes()));
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(number);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(invalid());
        }
        let unit = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        let size = unit_size(unit, text)?;
        let part = amount(whole, fraction, size).ok_or_else(invalid)?;
        sum = sum.checked_add(part).filter(|sum| *sum <= 1 << 63).ok_or_else(invalid)?;
        rest = after;
    }
    let limit = 1u64 << 63;
    match (negative, i64::try_from(sum)) {
        (false, Ok(nanos)) => Ok(nanos),
        (true, Ok(nanos)) => Ok(-nanos),
        (true, Err(_)) if sum == limit => Ok(i64::MIN),
        _ => Err(invalid()),
    }
}

fn unit_size(unit: &str, text: &str) -> std::result::Result<u64, String> {
    let quoted = || quote(text.as_bytes());
    Ok(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" => return Err(format!("time: missing unit in duration {}", quoted())),
        unit => {
            let unit = quote(unit.as_bytes());
            return Err(format!("time: unknown unit {unit} in duration {}", quoted()));
        }
    })
}

fn amount(whole: &str, fraction: &str, unit: u64) -> Option<u64> {
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let digits = fraction.get(..fraction.len().min(18))?;
    let scale = 10u128.pow(u32::try_from(digits.len()).ok()?);
    let fraction: u128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let fraction = u64::try_from(fraction * u128::from(unit) / scale).ok()?;
    whole.checked_mul(unit)?.checked_add(fraction)
}

/// `1h2m3.5s`, as `Duration.String` writes it.
pub(super) fn text_of(nanos: i64) -> String {
    let size = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    let decimals = |number: u64, unit: u64, digits: usize| {
        let fraction = format!("{:0digits$}", number % unit);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{}{point}{fraction}", number / unit)
    };
    match size {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{size}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", decimals(size, 1_000, 3)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", decimals(size, 1_000_000, 6)),
        _ => {
            let minutes = size / 60_000_000_000;
            let seconds = decimals(size % 60_000_000_000, 1_000_000_000, 9);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

impl GoObject for GoDuration {
    fn type_name(&self) -> &'static str {
        DURATION
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Hours" | "Minutes" | "Seconds" | "Milliseconds" | "Microseconds" | "Nanoseconds" | "String"
            | "Abs" => Some(Signature::fixed(&[])),
            "Round" | "Truncate" => Some(Signature::fixed(&[Param::Object(DURATION)])),
            _ => None,
        }
    }

    fn call(&self, name: &str, _: &mut Ctx<'_>, args: &[Value]) -> Result {
        let this = [object_value(*self)];
        match name {
            "Hours" => part(&this, HOUR),
            "Minutes" => part(&this, MINUTE),
            "Seconds" => part(&this, SECOND),
            "Milliseconds" => whole(&this, 1_000_000),
            "Microseconds" => whole(&this, 1_000),
            "Nanoseconds" => whole(&this, 1),
            "String" => Ok(Value::from(text_of(self.0))),
            "Abs" => Ok(object_value(Self(self.0.saturating_abs()))),
            "Round" => Ok(object_value(Self(round(self.0, of(any(args, 0)?)?)))),
            "Truncate" => Ok(object_value(Self(truncate(self.0, of(any(args, 0)?)?)))),
            _ => Err(FnError::arguments()),
        }
    }

    fn text(&self) -> Option<String> {
        Some(text_of(self.0))
    }

    fn is_true(&self) -> bool {
        self.0 != 0
    }
}
