//! The end-to-end tests: real API server, controllers, scheduler and registry, simulated nodes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

#[path = "end_to_end/bad_input.rs"]
mod bad_input;
#[path = "end_to_end/example.rs"]
mod example;
#[path = "end_to_end/watch.rs"]
mod watch;
