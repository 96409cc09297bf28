//! Points in time: Go's `time.Time`.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::args::{any, int, text};
use super::durations::{self, GoDuration};
use super::layout::{self, Civil};
use crate::function::{Ctx, FnError, Param, Signature};
use crate::value::object::{GoObject, Shape, downcast};
use crate::value::{Value, int64, object_value};

/// Seconds of Go's zero time, year 1, before 1970.
pub(super) const ZERO: i64 = -62_135_596_800;

/// The name of the type.
pub(super) const TIME: &str = "time.Time";

/// An instant in a zone.
#[derive(Clone, Debug)]
pub(super) struct GoTime {
    /// Seconds since 1970 UTC.
    pub(super) seconds: i64,
    /// Nanoseconds within the second.
    pub(super) nanos: u32,
    pub(super) zone: Zone,
}

/// Where a time is told.
#[derive(Clone, Debug)]
pub(super) enum Zone {
    Utc,
    /// A zone of the database.
    Named(TimeZone),
    /// An offset in seconds that stood in a text, with its abbreviation.
    Fixed(i32, String),
}

impl Zone {
    /// The zone of a name, as `time.LoadLocation` knows it. A render has no local time but UTC.
    pub(super) fn load(name: &str) -> Option<Self> {
        match name {
            "" | "UTC" | "Local" => Some(Self::Utc),
            name => TimeZoneDatabase::bundled().get(name).ok().map(Self::Named),
        }
    }

    /// Offset in seconds east of UTC and abbreviation at an instant.
    pub(super) fn at(&self, seconds: i64) -> (i32, String) {
        match self {
            Self::Utc => (0, "UTC".to_owned()),
            Self::Fixed(offset, name) => (*offset, name.clone()),
            Self::Named(zone) => match Timestamp::from_second(seconds) {
                Ok(instant) => {
                    let info = zone.to_offset_info(instant);
                    (info.offset().seconds(), info.abbreviation().to_owned())
                }
                Err(_) => (0, "UTC".to_owned()),
            },
        }
    }
}

impl GoTime {
    pub(super) fn utc(seconds: i64) -> Self {
        Self { seconds, nanos: 0, zone: Zone::Utc }
    }

    pub(super) fn zero() -> Self {
        Self::utc(ZERO)
    }

    /// The clock and calendar of the time in its zone.
    pub(super) fn civil(&self) -> Civil {
        let (offset, zone) = self.zone.at(self.seconds);
        Civil::new(self.seconds.saturating_add(i64::from(offset)), self.nanos, offset, zone)
    }

    /// The time by a layout in Go's manner.
    pub(super) fn format(&self, layout: &str) -> String {
        layout::format(&self.civil(), layout)
    }

    pub(super) fn plus(&self, duration: i64) -> Self {
        const SECOND: i64 = 1_000_000_000;
        let nanos = i64::from(self.nanos) + duration.rem_euclid(SECOND);
        let carried = duration.div_euclid(SECOND) + nanos / SECOND;
        let nanos = u32::try_from(nanos % SECOND).unwrap_or(0);
        Self { seconds: self.seconds.saturating_add(carried), nanos, zone: self.zone.clone() }
    }

    /// Nanoseconds from another time to this one, at most what a duration holds.
    pub(super) fn since(&self, other: &Self) -> i64 {
        let seconds = i128::from(self.seconds) - i128::from(other.seconds);
        let nanos = i128::from(self.nanos) - i128::from(other.nanos);
        let nanos = seconds * 1_000_000_000 + nanos;
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }

    /// RFC 3339 with as many digits of a second as there are: the text in JSON.
    pub(super) fn rfc3339(&self) -> String {
        self.format("2006-01-02T15:04:05.999999999Z07:00")
    }

    fn key(&self) -> (i64, u32) {
        (self.seconds, self.nanos)
    }

    fn number(&self, name: &str) -> Option<Value> {
        let civil = self.civil();
        Some(Value::from(match name {
            "Year" => civil.year,
            "Day" => i64::from(civil.day),
            "Hour" => i64::from(civil.hour),
            "Minute" => i64::from(civil.minute),
            "Second" => i64::from(civil.second),
            "Nanosecond" => i64::from(self.nanos),
            "YearDay" => i64::from(civil.year_day()),
            _ => return None,
        }))
    }

    fn epoch(&self, name: &str) -> Option<Value> {
        let nanos = i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos);
        let number = match name {
            "Unix" => i128::from(self.seconds),
            "UnixMilli" => nanos.div_euclid(1_000_000),
            "UnixMicro" => nanos.div_euclid(1_000),
            "UnixNano" => nanos,
            _ => return None,
        };
        i64::try_from(number).ok().map(int64)
    }

    fn moved(&self, name: &str, args: &[Value]) -> Result<Option<Self>, FnError> {
        Ok(Some(match name {
            "UTC" | "Local" => Self { zone: Zone::Utc, ..self.clone() },
            "Add" => self.plus(durations::of(any(args, 0)?)?),
            "AddDate" => self.add_date(int(args, 0)?, int(args, 1)?, int(args, 2)?),
            _ => return Ok(None),
        }))
    }

    fn add_date(&self, years: i64, months: i64, days: i64) -> Self {
        let civil = self.civil();
        let month = i64::from(civil.month) - 1 + months;
        let year = civil.year.saturating_add(years).saturating_add(month.div_euclid(12));
        let month = u32::try_from(month.rem_euclid(12)).unwrap_or(0) + 1;
        let first = layout::days_from_civil(year, month, 1);
        let day = first.saturating_add(i64::from(civil.day) - 1).saturating_add(days);
        let clock = i64::from(civil.hour) * 3600 + i64::from(civil.minute) * 60;
        let local = day.saturating_mul(86_400).saturating_add(clock + i64::from(civil.second));
        let zone = self.zone.clone();
        let seconds = layout::instant(local, &zone);
        Self { seconds, nanos: self.nanos, zone }
    }

    fn compared(&self, name: &str, args: &[Value]) -> Result<Option<Value>, FnError> {
        let other = || downcast::<Self>(any(args, 0)?).ok_or_else(FnError::arguments);
        Ok(Some(match name {
            "Before" => Value::from(self.key() < other()?.key()),
            "After" => Value::from(self.key() > other()?.key()),
            "Equal" => Value::from(self.key() == other()?.key()),
            "Compare" => Value::from(self.key().cmp(&other()?.key()) as i64),
            "Sub" => object_value(GoDuration(self.since(other()?))),
            "IsZero" => Value::from(self.key() == (ZERO, 0)),
            _ => return Ok(None),
        }))
    }
}

const NOTHING: Signature = Signature::fixed(&[]);

impl GoObject for GoTime {
    fn type_name(&self) -> &'static str {
        TIME
    }

    fn shape(&self) -> Shape {
        Shape::Struct
    }

    fn method(&self, name: &str) -> Option<Signature> {
        Some(match name {
            "Year" | "Month" | "Day" | "Hour" | "Minute" | "Second" | "Nanosecond" | "YearDay"
            | "Weekday" | "Unix" | "UnixMilli" | "UnixMicro" | "UnixNano" | "UTC" | "Local" | "IsZero"
            | "String" => NOTHING,
            "Format" => Signature::fixed(&[Param::String]),
            "AddDate" => Signature::fixed(&[Param::Int, Param::Int, Param::Int]),
            "Add" => Signature::fixed(&[Param::Object(durations::DURATION)]),
            "Before" | "After" | "Equal" | "Compare" | "Sub" => Signature::fixed(&[Param::Object(TIME)]),
            _ => return None,
        })
    }

    fn call(&self, name: &str, _: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
        if let Some(number) = self.number(name).or_else(|| self.epoch(name)) {
            return Ok(number);
        }
        if let Some(time) = self.moved(name, args)? {
            return Ok(object_value(time));
        }
        if let Some(value) = self.compared(name, args)? {
            return Ok(value);
        }
        match name {
            "Month" => Ok(object_value(Named::month(self.civil().month))),
            "Weekday" => Ok(object_value(Named::weekday(self.civil().weekday()))),
            "Format" => Ok(Value::from(self.format(&text(args, 0)?))),
            "String" => Ok(Value::from(self.format(layout::STRING))),
            _ => Err(FnError::arguments()),
        }
    }

    fn text(&self) -> Option<String> {
        Some(self.format(layout::STRING))
    }
}

/// A month or a weekday, which prints as its name.
#[derive(Debug)]
struct Named {
    type_name: &'static str,
    name: &'static str,
}

impl Named {
    fn month(month: u32) -> Self {
        Self { type_name: "time.Month", name: layout::month_name(month) }
    }

    fn weekday(day: u32) -> Self {
        Self { type_name: "time.Weekday", name: layout::weekday_name(day) }
    }
}

impl GoObject for Named {
    fn type_name(&self) -> &'static str {
        self.type_name
    }

    fn text(&self) -> Option<String> {
        Some(self.name.to_owned())
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "String").then_some(NOTHING)
    }

    fn call(&self, _: &str, _: &mut Ctx<'_>, _: &[Value]) -> Result<Value, FnError> {
        Ok(Value::from(self.name))
    }
}
