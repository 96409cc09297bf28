//! Time and attempts, constant during one call. An answer that asked for them is not reused, so ask
//! only where time matters.

use std::time::Duration;

use crate::host;

/// Since the Unix epoch.
#[must_use]
pub fn now() -> Duration {
    Duration::from_millis(host::now_ms())
}

/// Since this state was entered.
#[must_use]
pub fn elapsed() -> Duration {
    Duration::from_millis(host::elapsed_ms())
}

/// The number of this attempt, from 1.
#[must_use]
pub fn attempt() -> u32 {
    host::attempt()
}
