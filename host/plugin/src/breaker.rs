//! Keeps a plugin that traps or hangs from being called again and again.
//!
//! Pure data: the time is given, nothing waits here.

use std::{collections::BTreeMap, time::Duration};

use pintle_api::Timestamp;

use crate::limits::{BREAKER_FAILURES, BREAKER_OPEN, BREAKER_OPEN_MAX, BREAKER_RELEASES};

/// Whether a call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Call it.
    Call,
    /// Do not call it before this time.
    Wait {
        /// When one call is tried.
        until: Timestamp,
        /// True when the plugin fails for several releases, so that none may call it.
        whole_plugin: bool,
    },
}

/// The failures of one plugin for one release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breaker {
    failures: u32,
    opened: u32,
    open_until: Option<Timestamp>,
}

/// The breakers of every plugin and release; only those that saw a failure take room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breakers {
    plugins: BTreeMap<String, BTreeMap<String, Breaker>>,
}

// === impl Breaker ===

impl Breaker {
    /// When a call may be tried again, while this is open.
    #[must_use]
    pub fn open_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.open_until.filter(|until| *until > now)
    }

    /// Says whether a call may be made. After the pause one call is admitted as a trial: until its
    /// end is told, or another pause has gone by, further calls wait.
    pub fn admit(&mut self, now: Timestamp) -> Admission {
        match self.open_until {
            None => Admission::Call,
            Some(until) if until > now => Admission::Wait { until, whole_plugin: false },
            Some(_) => {
                self.open_until = Some(later(now, pause(self.opened)));
                Admission::Call
            }
        }
    }

    /// Forgets all failures: a call ended by itself.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Counts a failure, and opens after [`BREAKER_FAILURES`] in a row or a failed trial.
    pub fn failed(&mut self, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= BREAKER_FAILURES {
            self.open_until = Some(later(now, pause(self.opened)));
            self.opened = self.opened.saturating_add(1);
        }
    }
}

// === impl Breakers ===

impl Breakers {
    /// Says whether a plugin may be called for a release.
    pub fn admit(&mut self, plugin: &str, release: &str, now: Timestamp) -> Admission {
        let Some(releases) = self.plugins.get_mut(plugin) else { return Admission::Call };
        let mut open: Vec<Timestamp> =
            releases.values().filter_map(|breaker| breaker.open_until(now)).collect();
        open.sort_unstable();
        if let Some(own) = releases.get_mut(release) {
            return own.admit(now);
        }
        match open.first() {
            Some(first) if open.len() >= BREAKER_RELEASES => {
                Admission::Wait { until: *first, whole_plugin: true }
            }
            _ => Admission::Call,
        }
    }

    /// Tells how a call ended; see [`crate::CallFailure::trips_breaker`].
    pub fn tell(&mut self, plugin: &str, release: &str, now: Timestamp, tripped: bool) {
        if tripped {
            let releases = self.plugins.entry(plugin.to_owned()).or_default();
            releases.entry(release.to_owned()).or_default().failed(now);
        } else if let Some(releases) = self.plugins.get_mut(plugin) {
            releases.remove(release);
            self.plugins.retain(|_, releases| !releases.is_empty());
        }
    }

    /// Forgets a plugin: it was changed or removed.
    pub fn forget_plugin(&mut self, plugin: &str) {
        self.plugins.remove(plugin);
    }

    /// Forgets a release: it was removed.
    pub fn forget_release(&mut self, release: &str) {
        self.plugins.retain(|_, releases| {
            releases.remove(release);
            !releases.is_empty()
        });
    }
}

fn pause(opened: u32) -> Duration {
    BREAKER_OPEN.saturating_mul(1_u32.checked_shl(opened).unwrap_or(u32::MAX)).min(BREAKER_OPEN_MAX)
}

fn later(now: Timestamp, pause: Duration) -> Timestamp {
    now.checked_add(pause).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn wait(seconds: i64) -> Admission {
        Admission::Wait { until: at(seconds), whole_plugin: false }
    }

    fn failed(breakers: &mut Breakers, release: &str, second: i64) {
        for _ in 0..BREAKER_FAILURES {
            breakers.tell("p", release, at(second), true);
        }
    }

    #[test]
    fn three_failures_in_a_row_open_it_for_thirty_seconds() {
        let mut breaker = Breaker::default();
        breaker.failed(at(0));
        breaker.failed(at(0));
        assert_eq!(breaker.admit(at(0)), Admission::Call);
        breaker.failed(at(0));
        assert_eq!(breaker.admit(at(29)), wait(30));
        assert_eq!(breaker.admit(at(30)), Admission::Call);
    }

    #[test]
    fn one_trial_at_a_time_and_each_failed_one_doubles_the_pause() {
        let mut breaker = Breaker::default();
        (0..3).for_each(|_| breaker.failed(at(0)));
        assert_eq!(breaker.admit(at(30)), Admission::Call);
        assert_eq!(breaker.admit(at(30)), wait(90), "the trial is still running");
        breaker.failed(at(31));
        assert_eq!(breaker.admit(at(40)), wait(91));
        for round in 1..20_i64 {
            breaker.failed(at(round * 1_000));
        }
        assert_eq!(breaker.admit(at(19_000)), wait(19_600), "never longer than ten minutes");
    }

    #[test]
    fn a_call_that_ends_by_itself_closes_it() {
        let mut breakers = Breakers::default();
        failed(&mut breakers, "r", 0);
        breakers.tell("p", "r", at(40), false);
        assert_eq!(breakers, Breakers::default());
    }

    #[test]
    fn one_release_does_not_stop_a_plugin_for_others_but_three_do() {
        let mut breakers = Breakers::default();
        failed(&mut breakers, "a", 0);
        failed(&mut breakers, "b", 1);
        assert_eq!(breakers.admit("p", "healthy", at(2)), Admission::Call);
        failed(&mut breakers, "c", 2);
        let stopped = Admission::Wait { until: at(30), whole_plugin: true };
        assert_eq!(breakers.admit("p", "healthy", at(2)), stopped);
        assert_eq!(breakers.admit("other", "healthy", at(2)), Admission::Call);
        breakers.forget_release("c");
        assert_eq!(breakers.admit("p", "healthy", at(2)), Admission::Call);
        breakers.forget_plugin("p");
        assert_eq!(breakers.admit("p", "a", at(2)), Admission::Call);
    }
}
