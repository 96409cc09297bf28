//! `log`: lines of a guest, kept until the call ends, then written where ours go.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde_json::{Map, Value};
use wasmtime::component::{HasSelf, Linker};

use crate::{
    bindings::pintle::plugin::log::{self, Level},
    call::failure::CallFailure,
    limits,
    state::State,
    text::clean,
};

/// The lines of one call, within its budget.
#[derive(Default)]
pub(crate) struct Lines {
    lines: Vec<Line>,
    bytes: usize,
    dropped: u32,
}

struct Line {
    level: Level,
    message: String,
    fields: Map<String, Value>,
}

/// The budget of one plugin over all its calls.
#[derive(Default)]
pub(crate) struct Quota(Mutex<Option<Minute>>);

struct Minute {
    began: Instant,
    lines: u32,
}

pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    log::add_to_linker::<State, HasSelf<Lines>>(linker, |state| &mut state.lines)
}

impl log::Host for Lines {
    async fn emit(
        &mut self,
        level: Level,
        message: String,
        fields: Vec<(String, String)>,
    ) -> wasmtime::Result<()> {
        Ok(self.add(level, &message, &fields)?)
    }
}

// === impl Lines ===

impl Lines {
    /// Takes a line, or drops and counts it when the budget is used up.
    ///
    /// # Errors
    /// When so many were dropped that it is a flood, which ends the call.
    pub(crate) fn add(
        &mut self,
        level: Level,
        message: &str,
        fields: &[(String, String)],
    ) -> Result<(), CallFailure> {
        let fields = fields.iter().take(limits::LOG_FIELDS);
        let size = message.len().min(limits::LOG_MESSAGE)
            + fields
                .clone()
                .map(|(key, value)| (key.len() + value.len()).min(2 * limits::KIB))
                .sum::<usize>();
        if self.lines.len() >= limits::LOG_LINES as usize || self.bytes + size > limits::LOG_BYTES {
            self.dropped += 1;
            let is_flood = self.dropped > limits::LOG_FLOOD;
            return if is_flood { Err(CallFailure::LogFlood { limit: limits::LOG_FLOOD }) } else { Ok(()) };
        }
        self.bytes += size;
        let fields =
            fields.map(|(key, value)| (clean(key, limits::KIB), Value::from(clean(value, limits::KIB))));
        let fields = fields.collect();
        self.lines.push(Line { level, message: clean(message, limits::LOG_MESSAGE), fields });
        Ok(())
    }

    /// The last error that was logged, which in Rust guests is the message of a panic.
    pub(crate) fn last_error(&self) -> Option<String> {
        let last = self.lines.iter().rev().find(|line| matches!(line.level, Level::Error))?;
        Some(clean(&last.message, limits::MESSAGE / 2))
    }

    /// Writes the lines, as far as the plugin's budget goes; returns how many were dropped in all.
    pub(crate) fn write(self, plugin: &str, release: &str, quota: &Quota) -> u32 {
        let wanted = u32::try_from(self.lines.len()).unwrap_or(u32::MAX);
        let given = if wanted == 0 { 0 } else { quota.take(wanted, Instant::now()) };
        self.lines.iter().take(given as usize).for_each(|line| line.write(plugin, release));
        self.dropped.saturating_add(wanted - given)
    }
}

// === impl Line ===

impl Line {
    fn write(&self, plugin: &str, release: &str) {
        let Self { level, message, fields } = self;
        let fields =
            if fields.is_empty() { String::new() } else { Value::Object(fields.clone()).to_string() };
        // The level of an event is part of its static data, so each has its own.
        macro_rules! write_as {
            ($level:ident) => {
                tracing::$level!(target: "plugin", plugin, release, fields, "{message}")
            };
        }
        match level {
            Level::Trace => write_as!(trace),
            Level::Debug => write_as!(debug),
            Level::Info => write_as!(info),
            Level::Warn => write_as!(warn),
            Level::Error => write_as!(error),
        }
    }
}

// === impl Quota ===

impl Quota {
    /// How many of the lines may be written in this minute.
    fn take(&self, wanted: u32, now: Instant) -> u32 {
        let mut minute = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Minute { began: now, lines: 0 };
        let current = minute.get_or_insert_with(fresh);
        if now.duration_since(current.began) >= Duration::from_secs(60) {
            *current = fresh();
        }
        let given = wanted.min(limits::LOG_LINES_A_MINUTE.saturating_sub(current.lines));
        current.lines += given;
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_that_logs_in_every_call_is_cut_at_its_minute() {
        let (quota, now) = (Quota::default(), Instant::now());
        assert_eq!(quota.take(500, now), 500);
        assert_eq!(quota.take(500, now + Duration::from_secs(59)), 100);
        assert_eq!(quota.take(500, now + Duration::from_secs(60)), 500);
    }

    #[test]
    fn fields_over_the_budget_are_dropped_with_their_line() {
        let mut lines = Lines::default();
        let large = vec![("k".to_owned(), "v".repeat(limits::MIB)); limits::LOG_FIELDS + 5];
        for _ in 0..10 {
            assert_eq!(lines.add(Level::Info, "m", &large), Ok(()));
        }
        assert!(lines.bytes <= limits::LOG_BYTES);
        assert!(lines.dropped >= 7, "{}", lines.dropped);
    }
}
