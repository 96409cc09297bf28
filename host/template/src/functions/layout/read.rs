//! Times read by a layout.

use super::{DAYS, MONTHS, Part, days_from_civil, instant, next_part, part_at};
use crate::functions::times::{GoTime, Zone};

/// Reads a time by a layout; a time without a zone is UTC.
///
/// # Errors
/// Go's text.
pub(in crate::functions) fn parse(layout: &str, text: &str) -> Result<GoTime, String> {
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
