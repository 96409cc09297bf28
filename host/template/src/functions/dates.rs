//! Dates: the time of the run is now, and its zone UTC, so that one revision renders the same.

use super::args::{any, text};
use super::durations::{self, SECOND};
use super::layout;
use super::times::{GoTime, TIME, Zone};
use super::{ANY, STRING};
use crate::function::{Ctx, Entry, FnError, Param};
use crate::value::number::{Number, as_int, number};
use crate::value::object::downcast;
use crate::value::{Value, as_text, object_value};

const DATE: Param = Param::Object(TIME);

pub(super) const TABLE: &[Entry] = &[
    Entry::fixed("now", &[], |ctx, _| Ok(object_value(now(ctx)))),
    Entry::fixed("date", &[STRING, ANY], date),
    Entry::fixed("dateInZone", &[STRING, ANY, STRING], date_in_zone),
    Entry::fixed("date_in_zone", &[STRING, ANY, STRING], date_in_zone),
    Entry::fixed("htmlDate", &[ANY], html_date),
    Entry::fixed("htmlDateInZone", &[ANY, STRING], html_date_in_zone),
    Entry::fixed("dateModify", &[STRING, DATE], date_modify),
    Entry::fixed("date_modify", &[STRING, DATE], date_modify),
    Entry::fixed("mustDateModify", &[STRING, DATE], must_date_modify),
    Entry::fixed("must_date_modify", &[STRING, DATE], must_date_modify),
    Entry::fixed("ago", &[ANY], ago),
    Entry::fixed("duration", &[ANY], duration),
    Entry::fixed("durationRound", &[ANY], duration_round),
    Entry::fixed("toDate", &[STRING, STRING], to_date),
    Entry::fixed("mustToDate", &[STRING, STRING], must_to_date),
    Entry::fixed("unixEpoch", &[DATE], unix_epoch),
];

const HTML: &str = "2006-01-02";

type Result<T = Value> = std::result::Result<T, FnError>;

fn now(ctx: &Ctx<'_>) -> GoTime {
    GoTime::utc(ctx.run().time)
}

/// A time, or seconds since 1970; for anything else it is now.
fn time_of(ctx: &Ctx<'_>, value: &Value) -> GoTime {
    match (downcast::<GoTime>(value), as_int(value)) {
        (Some(time), _) => time.clone(),
        (None, Some(seconds)) => GoTime::utc(seconds),
        (None, None) => now(ctx),
    }
}

fn time(args: &[Value], index: usize) -> Result<&GoTime> {
    downcast(any(args, index)?).ok_or_else(FnError::arguments)
}

fn formatted(ctx: &Ctx<'_>, layout: &str, value: &Value, zone: &str) -> Value {
    let zone = Zone::load(zone).unwrap_or(Zone::Utc);
    Value::from(GoTime { zone, ..time_of(ctx, value) }.format(layout))
}

fn date(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(formatted(ctx, &text(args, 0)?, any(args, 1)?, "Local"))
}

fn date_in_zone(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(formatted(ctx, &text(args, 0)?, any(args, 1)?, &text(args, 2)?))
}

fn html_date(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(formatted(ctx, HTML, any(args, 0)?, "Local"))
}

fn html_date_in_zone(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(formatted(ctx, HTML, any(args, 0)?, &text(args, 1)?))
}

fn date_modify(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let date = time(args, 1)?;
    let duration = durations::parse(&text(args, 0)?);
    Ok(object_value(duration.map_or_else(|_| date.clone(), |nanos| date.plus(nanos))))
}

fn must_date_modify(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let nanos = durations::parse(&text(args, 0)?).map_err(FnError::new)?;
    Ok(object_value(time(args, 1)?.plus(nanos)))
}

fn ago(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let nanos = now(ctx).since(&time_of(ctx, any(args, 0)?));
    Ok(Value::from(durations::text_of(durations::round(nanos, SECOND))))
}

/// Seconds as an `int64` or a text; anything else counts for nothing.
fn duration(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let value = any(args, 0)?;
    let seconds = match as_text(value) {
        Some(text) => text.parse().unwrap_or(0),
        None if crate::value::kind_of(value) == "int64" => as_int(value).unwrap_or(0),
        None => 0,
    };
    Ok(Value::from(durations::text_of(seconds.wrapping_mul(SECOND))))
}

/// The largest unit the duration has more than one of.
fn duration_round(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    const UNITS: [(u64, &str); 6] =
        [(31_536_000, "y"), (2_592_000, "mo"), (86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let value = any(args, 0)?;
    let nanos = match (as_text(value), number(value), downcast::<GoTime>(value)) {
        (Some(text), _, _) => durations::parse(&text).unwrap_or(0),
        (_, Some(Number::Int(nanos)), _) if crate::value::kind_of(value) == "int64" => nanos,
        (_, _, Some(time)) => now(ctx).since(time),
        _ => 0,
    };
    let size = nanos.unsigned_abs();
    let unit = UNITS.iter().map(|(seconds, name)| (seconds * 1_000_000_000, name));
    let largest = { unit }.find(|(unit, _)| size > *unit);
    Ok(Value::from(match largest {
        Some((unit, name)) => format!("{}{name}", size / unit),
        None => "0s".to_owned(),
    }))
}

fn to_date(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let time = layout::parse(&text(args, 0)?, &text(args, 1)?);
    Ok(object_value(time.unwrap_or_else(|_| GoTime::zero())))
}

fn must_to_date(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let time = layout::parse(&text(args, 0)?, &text(args, 1)?).map_err(FnError::new)?;
    Ok(object_value(time))
}

fn unix_epoch(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(Value::from(time(args, 0)?.seconds.to_string()))
}
