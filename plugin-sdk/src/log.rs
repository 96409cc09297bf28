//! Lines for people who look into what a plugin does. They never change a result.

use crate::{bindings::pintle::plugin::log::Level, host};

/// What happened, in detail.
pub fn debug(message: &str) {
    host::emit(Level::Debug, message, &[]);
}

/// What happened, in detail, with named values.
pub fn debug_with(message: &str, fields: &[(String, String)]) {
    host::emit(Level::Debug, message, fields);
}

/// What happened.
pub fn info(message: &str) {
    host::emit(Level::Info, message, &[]);
}

/// What should not have happened.
pub fn warn(message: &str) {
    host::emit(Level::Warn, message, &[]);
}

/// What went wrong; the last one of a call that traps becomes part of its failure.
pub fn error(message: &str) {
    host::emit(Level::Error, message, &[]);
}

/// What happened, with named values.
pub fn info_with(message: &str, fields: &[(String, String)]) {
    host::emit(Level::Info, message, fields);
}

/// Brings the message of a panic out before it becomes a trap without one.
#[cfg(target_arch = "wasm32")]
pub(crate) fn on_panic() {
    std::panic::set_hook(Box::new(|panic| error(&panic.to_string())));
}
