//! Plugins as the operator meets them: loaded, refused, called, cut off.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

mod canned;
mod compiler;
mod corpus;
mod encode;
mod guests;
mod hostile;
mod interfaces;
mod isolation;
mod load;
mod logging;
mod reads;
mod reuse;
mod setting;
mod threats;
mod transcript;
