//! The kit for plugins, as its users have it: the program itself, projects in folders, a real registry.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

mod contract;
mod languages;
mod pintle;
mod project;
mod recordings;
mod registry;
mod scaffold;
mod sizes;
mod words;
