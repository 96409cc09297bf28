//! Tells a plugin that changes its mind again and again from one that follows its inputs.
//!
//! Pure data: the time is given, nothing waits here.

use std::time::Duration;

use pintle_api::Timestamp;

use crate::limits::{CHURN_CHANGES, CHURN_WINDOW};

/// What one function of a plugin said for one release lately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Churn {
    last: Option<([u8; 32], u64)>,
    changes: Vec<Timestamp>,
}

impl Churn {
    /// Notes an answer: the fingerprint of what went into it, [`crate::CallResult::inputs`], and one of
    /// what came out. True while the answer changed more than [`CHURN_CHANGES`] times within
    /// [`CHURN_WINDOW`] although nothing that went in did: then the release is `Degraded`, and the
    /// answer is not acted on before the window is over.
    pub fn told(&mut self, inputs: [u8; 32], answer: u64, now: Timestamp) -> bool {
        let is_change = self.last.is_some_and(|(before, said)| before == inputs && said != answer);
        self.last = Some((inputs, answer));
        if is_change {
            self.changes.push(now);
        }
        self.is_restless(now)
    }

    /// True while it changed too often.
    pub fn is_restless(&mut self, now: Timestamp) -> bool {
        let recent =
            |at: &Timestamp| Duration::try_from(now.duration_since(*at)).is_ok_and(|age| age < CHURN_WINDOW);
        self.changes.retain(recent);
        self.changes.len() > CHURN_CHANGES
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn a_plugin_that_flips_without_a_reason_is_restless_until_it_rests() {
        let mut churn = Churn::default();
        let told: Vec<bool> = (0..10).map(|round| churn.told([1; 32], round % 2, at(round as i64))).collect();
        assert_eq!(told.iter().position(|restless| *restless), Some(CHURN_CHANGES + 1));
        assert!(!churn.is_restless(at(9 + CHURN_WINDOW.as_secs() as i64)));
    }

    #[test]
    fn a_plugin_that_follows_its_inputs_may_change_as_often_as_they_do() {
        let mut churn = Churn::default();
        for round in 0..100_u8 {
            assert!(!churn.told([round; 32], u64::from(round), at(0)));
            assert!(!churn.told([round; 32], u64::from(round), at(0)), "the same again is no change");
        }
    }

    #[test]
    fn what_is_kept_is_bounded_by_the_window() {
        let mut churn = Churn::default();
        for round in 0..10_000_u64 {
            churn.told([1; 32], round, at(round as i64));
        }
        assert!(churn.changes.len() <= CHURN_WINDOW.as_secs() as usize);
    }
}
