//! The end-to-end tests: real API server, controllers, scheduler and registry, simulated nodes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

#[path = "end_to_end/backup.rs"]
mod backup;
#[path = "end_to_end/bad_input.rs"]
mod bad_input;
#[path = "end_to_end/choreography.rs"]
mod choreography;
#[path = "end_to_end/contract.rs"]
mod contract;
#[path = "end_to_end/crash.rs"]
mod crash;
#[path = "end_to_end/dependencies.rs"]
mod dependencies;
#[path = "end_to_end/example.rs"]
mod example;
#[path = "end_to_end/hooks.rs"]
mod hooks;
#[path = "end_to_end/lifecycle.rs"]
mod lifecycle;
#[path = "end_to_end/many.rs"]
mod many;
#[path = "end_to_end/plugins.rs"]
mod plugins;
#[path = "end_to_end/ptemplate.rs"]
mod ptemplate;
#[path = "end_to_end/quiet.rs"]
mod quiet;
#[path = "end_to_end/recordings.rs"]
mod recordings;
#[path = "end_to_end/rights.rs"]
mod rights;
#[path = "end_to_end/scenarios.rs"]
mod scenarios;
#[path = "end_to_end/sources.rs"]
mod sources;
#[path = "end_to_end/template.rs"]
mod template;
#[path = "end_to_end/values.rs"]
mod values;
#[path = "end_to_end/vendor.rs"]
mod vendor;
#[path = "end_to_end/watch.rs"]
mod watch;
