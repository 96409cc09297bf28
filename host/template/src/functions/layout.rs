//! Times written and read by Go's layouts, in which the second of January 2006 stands for all.

use std::fmt::Write as _;

use super::times::{GoTime, Zone};

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

/// Reads a time by a layout; a time without a zone is UTC.
///
/// # Errors
/// Go's text.
pub(super) fn parse(layout: &str, text: &str) -> Result<GoTime, String> {
    Reader { layout, text, rest: text, found: Found::default() }.run()
}

#[derive(Debug, Default)]
struct Found {
    year: Option<i64>,
    month: Option<u32>,
    day: Option<u32>,
    year_day: Option<u32>,
    hour: u32,
    minute: u32,
    second: u32,
    nanos: u32,
    pm: Option<bool>,
    offset: Option<i32>,
    zone: Option<String>,
}

struct Reader<'t> {
    layout: &'t str,
    text: &'t str,
    rest: &'t str,
    found: Found,
}

/// Why a part was not read: it is not there, or out of its range.
enum Fault {
    Missing,
    Range(&'static str),
}

impl<'t> Reader<'t> {
    fn run(mut self) -> Result<GoTime, String> {
        let mut layout = self.layout;
        while let Some((before, part_text, part, after)) = next_part(layout) {
            self.literal(before)?;
            let value = self.rest;
            self.part(part, after).map_err(|fault| self.message(&fault, part_text, value))?;
            layout = after;
        }
        self.literal(layout)?;
        if !self.rest.is_empty() {
            let extra = crate::quote::quote(self.rest.as_bytes());
            return Err(format!("{}: extra text: {extra}", self.parsing()));
        }
        self.time()
    }

    fn parsing(&self) -> String {
        format!("parsing time {}", crate::quote::quote(self.text.as_bytes()))
    }

    fn message(&self, fault: &Fault, part: &str, value: &str) -> String {
        match fault {
            Fault::Range(what) => format!("{}: {what} out of range", self.parsing()),
            Fault::Missing => {
                let quote = |text: &str| crate::quote::quote(text.as_bytes());
                let (layout, value) = (quote(self.layout), quote(value));
                format!("{} as {layout}: cannot parse {value} as {}", self.parsing(), quote(part))
            }
        }
    }

    /// Text of the layout; a space stands for any number of them.
    fn literal(&mut self, literal: &str) -> Result<(), String> {
        let mut expected = literal;
        while let Some(c) = expected.chars().next() {
            if c == ' ' {
                if !self.rest.is_empty() && !self.rest.starts_with(' ') {
                    return Err(self.message(&Fault::Missing, literal, self.rest));
                }
                expected = expected.trim_start_matches(' ');
                self.rest = self.rest.trim_start_matches(' ');
                continue;
            }
            let Some(rest) = self.rest.strip_prefix(c) else {
                return Err(self.message(&Fault::Missing, literal, self.rest));
            };
            self.rest = rest;
            expected = expected.get(c.len_utf8()..).unwrap_or_default();
        }
        Ok(())
    }

    fn part(&mut self, part: Part, after: &str) -> Result<(), Fault> {
        match part {
            Part::LongYear => self.found.year = Some(i64::from(self.digits(4, 4)?)),
            Part::Year => {
                let year = i64::from(self.digits(2, 2)?);
                self.found.year = Some(year + if year >= 69 { 1900 } else { 2000 });
            }
            Part::LongMonth => self.found.month = Some(self.name(&MONTHS, 0)? + 1),
            Part::Month => self.found.month = Some(self.name(&MONTHS, 3)? + 1),
            Part::NumMonth => self.found.month = Some(self.ranged(1, 1, 12, "month")?),
            Part::ZeroMonth => self.found.month = Some(self.ranged(2, 1, 12, "month")?),
            Part::LongWeekday => drop(self.name(&DAYS, 0)?),
            Part::Weekday => drop(self.name(&DAYS, 3)?),
            Part::Day | Part::UnderDay => {
                if part == Part::UnderDay {
                    self.rest = self.rest.strip_prefix(' ').unwrap_or(self.rest);
                }
                self.found.day = Some(self.digits(1, 2)?);
            }
            Part::ZeroDay => self.found.day = Some(self.digits(2, 2)?),
            Part::UnderYearDay | Part::ZeroYearDay => {
                self.rest = self.rest.trim_start_matches(' ');
                self.found.year_day = Some(self.digits(1, 3)?);
            }
            Part::Hour24 => self.found.hour = self.ranged(1, 0, 23, "hour")?,
            Part::Hour12 => self.found.hour = self.ranged(1, 0, 12, "hour")?,
            Part::ZeroHour12 => self.found.hour = self.ranged(2, 0, 12, "hour")?,
            Part::Minute => self.found.minute = self.ranged(1, 0, 59, "minute")?,
            Part::ZeroMinute => self.found.minute = self.ranged(2, 0, 59, "minute")?,
            Part::Second => self.second(1, after)?,
            Part::ZeroSecond => self.second(2, after)?,
            Part::UpperPm => self.found.pm = Some(self.word(["AM", "PM"])?),
            Part::LowerPm => self.found.pm = Some(self.word(["am", "pm"])?),
            Part::Zone => self.zone()?,
            Part::Offset { z, colon, minutes, seconds } => {
                self.found.offset = Some(self.offset(z, colon, minutes, seconds)?);
            }
            Part::Fraction { digits, zeros, .. } => self.fraction(digits, zeros)?,
        }
        Ok(())
    }

    fn digits(&mut self, min: usize, max: usize) -> Result<u32, Fault> {
        let len = self.rest.bytes().take(max).take_while(u8::is_ascii_digit).count();
        if len < min {
            return Err(Fault::Missing);
        }
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        digits.parse().map_err(|_| Fault::Missing)
    }

    fn ranged(&mut self, min_len: usize, min: u32, max: u32, what: &'static str) -> Result<u32, Fault> {
        let number = self.digits(min_len, 2)?;
        if (min..=max).contains(&number) { Ok(number) } else { Err(Fault::Range(what)) }
    }

    /// A fraction may follow a second that the layout has without one.
    fn second(&mut self, len: usize, after: &str) -> Result<(), Fault> {
        self.found.second = self.ranged(len, 0, 59, "second")?;
        let planned = part_at(after).is_some_and(|(_, part)| matches!(part, Part::Fraction { .. }));
        let digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        if !planned && self.rest.strip_prefix(['.', ',']).is_some_and(digit) {
            let len = self.rest.bytes().skip(1).take_while(u8::is_ascii_digit).count();
            self.take_fraction(len)?;
        }
        Ok(())
    }

    fn fraction(&mut self, digits: usize, zeros: bool) -> Result<(), Fault> {
        let found = match self.rest.strip_prefix(['.', ',']) {
            Some(rest) => rest.bytes().take_while(u8::is_ascii_digit).count(),
            None if zeros => return Err(Fault::Missing),
            None => return Ok(()),
        };
        match zeros {
            true if found < digits => Err(Fault::Missing),
            true => self.take_fraction(digits),
            false if found == 0 => Ok(()),
            false => self.take_fraction(found),
        }
    }

    fn take_fraction(&mut self, digits: usize) -> Result<(), Fault> {
        let text = self.rest.get(1..=digits).ok_or(Fault::Missing)?;
        let nanos: String = text.chars().chain("000000000".chars()).take(9).collect();
        self.found.nanos = nanos.parse().map_err(|_| Fault::Missing)?;
        self.rest = self.rest.get(1 + digits..).unwrap_or_default();
        Ok(())
    }

    /// The index of a name, of which the first `len` letters count (all for 0), in any case.
    fn name(&mut self, names: &[&str], len: usize) -> Result<u32, Fault> {
        let short = |name: &str| name.get(..if len == 0 { name.len() } else { len }).map(str::len);
        let matches = |name: &str| {
            let len = short(name).unwrap_or(0);
            let text = self.rest.get(..len);
            text.is_some_and(|text| text.eq_ignore_ascii_case(name.get(..len).unwrap_or_default()))
        };
        let index = names.iter().position(|name| matches(name)).ok_or(Fault::Missing)?;
        let len = names.get(index).and_then(|name| short(name)).unwrap_or(0);
        self.rest = self.rest.get(len..).unwrap_or_default();
        u32::try_from(index).map_err(|_| Fault::Missing)
    }

    fn word(&mut self, [am, pm]: [&str; 2]) -> Result<bool, Fault> {
        for (word, is_pm) in [(am, false), (pm, true)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(is_pm);
            }
        }
        Err(Fault::Missing)
    }

    fn zone(&mut self) -> Result<(), Fault> {
        if let Some(rest) = self.rest.strip_prefix("UTC") {
            (self.rest, self.found.offset) = (rest, Some(0));
            return Ok(());
        }
        let len = self.rest.bytes().take(6).take_while(u8::is_ascii_uppercase).count();
        let fits = match len {
            3 => true,
            4 => self.rest.get(..4).is_some_and(|zone| zone.ends_with('T') || zone == "WITA"),
            5 => self.rest.get(..5).is_some_and(|zone| zone.ends_with('T')),
            _ => false,
        };
        if !fits {
            return Err(Fault::Missing);
        }
        let (zone, rest) = self.rest.split_at(len);
        self.found.zone = Some(zone.to_owned());
        self.rest = rest;
        Ok(())
    }

    fn offset(&mut self, z: bool, colon: bool, minutes: bool, seconds: bool) -> Result<i32, Fault> {
        if z && let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let negative = self.rest.starts_with('-');
        self.rest = self.rest.strip_prefix(['+', '-']).ok_or(Fault::Missing)?;
        let mut size = self.digits(2, 2)? * 3600;
        for (wanted, factor) in [(minutes, 60), (seconds, 1)] {
            if wanted {
                if colon {
                    self.rest = self.rest.strip_prefix(':').ok_or(Fault::Missing)?;
                }
                size += self.digits(2, 2)? * factor;
            }
        }
        let size = i32::try_from(size).map_err(|_| Fault::Missing)?;
        Ok(if negative { -size } else { size })
    }

    fn time(&self) -> Result<GoTime, String> {
        let found = &self.found;
        let range = |what| self.message(&Fault::Range(what), "", "");
        // Without a year it is year 0, as in Go.
        let year = found.year.unwrap_or(0);
        let hour = match found.pm {
            Some(true) if found.hour < 12 => found.hour + 12,
            Some(false) if found.hour == 12 => 0,
            _ => found.hour,
        };
        let (month, day) = match found.year_day {
            Some(day) => {
                return self.year_day(year, day, hour).ok_or_else(|| range("day-of-year"));
            }
            None => (found.month.unwrap_or(1), found.day.unwrap_or(1)),
        };
        let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        let first = days_from_civil(year, month, 1);
        let len = days_from_civil(next.0, next.1, 1) - first;
        if day < 1 || i64::from(day) > len {
            return Err(range("day"));
        }
        Ok(self.instant(first + i64::from(day) - 1, hour))
    }

    fn year_day(&self, year: i64, day: u32, hour: u32) -> Option<GoTime> {
        let first = days_from_civil(year, 1, 1);
        let len = days_from_civil(year + 1, 1, 1) - first;
        (day >= 1 && i64::from(day) <= len).then(|| self.instant(first + i64::from(day) - 1, hour))
    }

    fn instant(&self, days: i64, hour: u32) -> GoTime {
        let found = &self.found;
        let clock = hour * 3600 + found.minute * 60 + found.second;
        let local = days * 86_400 + i64::from(clock);
        let name = found.zone.clone().unwrap_or_default();
        let zone = match found.offset {
            Some(0) => Zone::Utc,
            Some(offset) => Zone::Fixed(offset, name),
            // An abbreviation that is not known has no offset.
            None if !name.is_empty() => Zone::Fixed(0, name),
            None => Zone::Utc,
        };
        GoTime { seconds: instant(local, &zone), nanos: found.nanos, zone }
    }
}
