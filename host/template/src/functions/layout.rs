//! Times written and read by Go's layouts, in which the second of January 2006 stands for all.

mod read;

use std::fmt::Write as _;

use super::times::Zone;

pub(super) use read::parse;

/// The layout of `Time.String`.
pub(super) const STRING: &str = "2006-01-02 15:04:05.999999999 -0700 MST";

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Calendar and clock of an instant in a zone.
#[derive(Clone, Debug)]
pub(super) struct Civil {
    pub(super) year: i64,
    pub(super) month: u32,
    pub(super) day: u32,
    pub(super) hour: u32,
    pub(super) minute: u32,
    pub(super) second: u32,
    nanos: u32,
    days: i64,
    offset: i32,
    zone: String,
}

impl Civil {
    /// The calendar of local seconds since 1970.
    pub(super) fn new(local: i64, nanos: u32, offset: i32, zone: String) -> Self {
        let (days, seconds) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let (year, month, day) = civil_from_days(days);
        let seconds = u32::try_from(seconds).unwrap_or(0);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        Self { year, month, day, hour, minute, second, nanos, days, offset, zone }
    }

    /// The day of the week from Sunday, 0.
    pub(super) fn weekday(&self) -> u32 {
        u32::try_from((self.days + 4).rem_euclid(7)).unwrap_or(0)
    }

    /// The day of the year, from 1.
    pub(super) fn year_day(&self) -> u32 {
        u32::try_from(self.days - days_from_civil(self.year, 1, 1) + 1).unwrap_or(0)
    }
}

pub(super) fn month_name(month: u32) -> &'static str {
    index(month).checked_sub(1).and_then(|index| MONTHS.get(index)).unwrap_or(&"")
}

pub(super) fn weekday_name(day: u32) -> &'static str {
    DAYS.get(index(day)).unwrap_or(&"")
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Days from 1970 to a date of the Gregorian calendar. Counted in years that begin in March, so
/// that the leap day is the last.
pub(super) fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = year.saturating_sub(i64::from(month <= 2));
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month = (i64::from(month) + 9) % 12;
    let of_year = (153 * month + 2) / 5 + i64::from(day) - 1;
    let days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    era.saturating_mul(146_097).saturating_add(days - 719_468)
}

fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days.saturating_add(719_468);
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, u32::try_from(month).unwrap_or(1), u32::try_from(day).unwrap_or(1))
}

/// The instant at which a zone's clocks show these local seconds.
pub(super) fn instant(local: i64, zone: &Zone) -> i64 {
    let guess = local.saturating_sub(i64::from(zone.at(local).0));
    local.saturating_sub(i64::from(zone.at(guess).0))
}

/// A part of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour24,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperPm,
    LowerPm,
    Zone,
    /// An offset: `Z` for none, colons, with minutes, with seconds.
    Offset {
        z: bool,
        colon: bool,
        minutes: bool,
        seconds: bool,
    },
    /// Digits of a second behind point or comma; trailing zeros stay or not.
    Fraction {
        digits: usize,
        zeros: bool,
        comma: bool,
    },
}

/// Longer parts stand before the shorter ones they begin with.
const PARTS: &[(&str, Part)] = &[
    ("January", Part::LongMonth),
    ("Jan", Part::Month),
    ("Monday", Part::LongWeekday),
    ("Mon", Part::Weekday),
    ("MST", Part::Zone),
    ("002", Part::ZeroYearDay),
    ("01", Part::ZeroMonth),
    ("02", Part::ZeroDay),
    ("03", Part::ZeroHour12),
    ("04", Part::ZeroMinute),
    ("05", Part::ZeroSecond),
    ("06", Part::Year),
    ("15", Part::Hour24),
    ("1", Part::NumMonth),
    ("2006", Part::LongYear),
    ("2", Part::Day),
    ("__2", Part::UnderYearDay),
    ("_2", Part::UnderDay),
    ("3", Part::Hour12),
    ("4", Part::Minute),
    ("5", Part::Second),
    ("PM", Part::UpperPm),
    ("pm", Part::LowerPm),
    ("-07:00:00", offset(false, true, true, true)),
    ("-070000", offset(false, false, true, true)),
    ("-07:00", offset(false, true, true, false)),
    ("-0700", offset(false, false, true, false)),
    ("-07", offset(false, false, false, false)),
    ("Z07:00:00", offset(true, true, true, true)),
    ("Z070000", offset(true, false, true, true)),
    ("Z07:00", offset(true, true, true, false)),
    ("Z0700", offset(true, false, true, false)),
    ("Z07", offset(true, false, false, false)),
];

const fn offset(z: bool, colon: bool, minutes: bool, seconds: bool) -> Part {
    Part::Offset { z, colon, minutes, seconds }
}

/// The text before the next part of a layout, the part with its text, and the rest.
fn next_part(layout: &str) -> Option<(&str, &str, Part, &str)> {
    for (at, _) in layout.char_indices() {
        let here = layout.get(at..)?;
        if let Some((text, part)) = part_at(here) {
            return Some((layout.get(..at)?, text, part, here.get(text.len()..)?));
        }
    }
    None
}

fn part_at(text: &str) -> Option<(&str, Part)> {
    if text.starts_with("_2006") {
        // The underscore is text, the year comes next.
        return None;
    }
    if let Some((name, part)) = PARTS.iter().find(|(name, _)| text.starts_with(name)) {
        // `Jan` in `Janet` is no month.
        let letter = text.get(name.len()..).and_then(|rest| rest.chars().next());
        let word = *part == Part::Month && letter.is_some_and(|c| c.is_ascii_lowercase());
        let weekday = *part == Part::Weekday && letter.is_some_and(|c| c.is_ascii_lowercase());
        return (!word && !weekday).then_some((text.get(..name.len())?, *part));
    }
    fraction_at(text)
}

fn fraction_at(text: &str) -> Option<(&str, Part)> {
    let comma = text.starts_with(',');
    let body = text.strip_prefix(['.', ','])?;
    let digit = body.chars().next().filter(|c| matches!(c, '0' | '9'))?;
    let digits = body.chars().take_while(|c| *c == digit).count();
    if body.get(digits..)?.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let part = Part::Fraction { digits, zeros: digit == '0', comma };
    Some((text.get(..=digits)?, part))
}

/// The time by a layout.
pub(super) fn format(time: &Civil, layout: &str) -> String {
    let mut out = String::new();
    let mut rest = layout;
    while let Some((before, _, part, after)) = next_part(rest) {
        out.push_str(before);
        write_part(&mut out, time, part);
        rest = after;
    }
    out.push_str(rest);
    out
}

fn write_part(out: &mut String, time: &Civil, part: Part) {
    let hour12 = if time.hour.is_multiple_of(12) { 12 } else { time.hour % 12 };
    let short = |name: &'static str| name.get(..3).unwrap_or(name);
    // Writing to a string cannot fail.
    let _ = match part {
        Part::LongMonth => write!(out, "{}", month_name(time.month)),
        Part::Month => write!(out, "{}", short(month_name(time.month))),
        Part::NumMonth => write!(out, "{}", time.month),
        Part::ZeroMonth => write!(out, "{:02}", time.month),
        Part::LongWeekday => write!(out, "{}", weekday_name(time.weekday())),
        Part::Weekday => write!(out, "{}", short(weekday_name(time.weekday()))),
        Part::Day => write!(out, "{}", time.day),
        Part::UnderDay => write!(out, "{:2}", time.day),
        Part::ZeroDay => write!(out, "{:02}", time.day),
        Part::UnderYearDay => write!(out, "{:3}", time.year_day()),
        Part::ZeroYearDay => write!(out, "{:03}", time.year_day()),
        Part::Hour24 => write!(out, "{:02}", time.hour),
        Part::Hour12 => write!(out, "{hour12}"),
        Part::ZeroHour12 => write!(out, "{hour12:02}"),
        Part::Minute => write!(out, "{}", time.minute),
        Part::ZeroMinute => write!(out, "{:02}", time.minute),
        Part::Second => write!(out, "{}", time.second),
        Part::ZeroSecond => write!(out, "{:02}", time.second),
        Part::LongYear => write!(out, "{:04}", time.year),
        Part::Year => write!(out, "{:02}", time.year.rem_euclid(100)),
        Part::UpperPm => write!(out, "{}", if time.hour >= 12 { "PM" } else { "AM" }),
        Part::LowerPm => write!(out, "{}", if time.hour >= 12 { "pm" } else { "am" }),
        Part::Zone => {
            out.push_str(&zone_name(time));
            Ok(())
        }
        Part::Offset { z, colon, minutes, seconds } => {
            write_offset(out, time.offset, (z, colon, minutes, seconds));
            Ok(())
        }
        Part::Fraction { digits, zeros, comma } => {
            write_fraction(out, time.nanos, digits, zeros, comma);
            Ok(())
        }
    };
}

/// The abbreviation, or the offset where a zone has none.
fn zone_name(time: &Civil) -> String {
    if !time.zone.is_empty() {
        return time.zone.clone();
    }
    let mut out = String::new();
    write_offset(&mut out, time.offset, (false, false, true, false));
    out
}

fn write_offset(out: &mut String, offset: i32, (z, colon, minutes, seconds): (bool, bool, bool, bool)) {
    if z && offset == 0 {
        out.push('Z');
        return;
    }
    let size = offset.unsigned_abs();
    let colon = if colon { ":" } else { "" };
    let _ = write!(out, "{}{:02}", if offset < 0 { '-' } else { '+' }, size / 3600);
    if minutes {
        let _ = write!(out, "{colon}{:02}", size / 60 % 60);
    }
    if seconds {
        let _ = write!(out, "{colon}{:02}", size % 60);
    }
}

fn write_fraction(out: &mut String, nanos: u32, digits: usize, zeros: bool, comma: bool) {
    let text = format!("{nanos:09}");
    let text = text.get(..digits.min(9)).unwrap_or_default();
    let text = if zeros { text } else { text.trim_end_matches('0') };
    if zeros || !text.is_empty() {
        out.push(if comma { ',' } else { '.' });
        out.push_str(text);
    }
}
