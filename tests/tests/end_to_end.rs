//! The end-to-end tests: real API server, controllers, scheduler and registry, simulated nodes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

#[path = "end_to_end/bad_input.rs"]
mod bad_input;
#[path = "end_to_end/choreography.rs"]
mod choreography;
#[path = "end_to_end/contract.rs"]
mod contract;
#[path = "end_to_end/example.rs"]
mod example;
#[path = "end_to_end/lifecycle.rs"]
mod lifecycle;
#[path = "end_to_end/watch.rs"]
mod watch;
// crash.rs, quiet.rs and rights.rs are written and join once they hold beside all others (see CHANGELOG).
