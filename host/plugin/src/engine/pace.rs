//! Whether the calls of a plugin end soon, told from the last ones.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use crate::limits::{QUICK, QUICK_IN_A_ROW};

/// The pace of one plugin. A new one has to show that it is quick.
pub(crate) struct Pace {
    /// Quick calls that are still wanted.
    wanted: AtomicU32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { wanted: AtomicU32::new(QUICK_IN_A_ROW) }
    }
}

// === impl Pace ===

impl Pace {
    /// True when the last calls were over soon.
    pub(crate) fn is_quick(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) == 0
    }

    /// Notes how long a call took. One that is lost between two threads costs or spares a call on another thread.
    pub(crate) fn note(&self, took: Duration) {
        let wanted =
            if took > QUICK { QUICK_IN_A_ROW } else { self.wanted.load(Ordering::Relaxed).saturating_sub(1) };
        self.wanted.store(wanted, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_quick_calls_in_a_row_are_wanted_and_one_slow_call_ends_it() {
        let pace = Pace::default();
        for _ in 0..QUICK_IN_A_ROW {
            assert!(!pace.is_quick());
            pace.note(QUICK);
        }
        assert!(pace.is_quick());
        pace.note(QUICK * 2);
        assert!(!pace.is_quick());
    }
}
