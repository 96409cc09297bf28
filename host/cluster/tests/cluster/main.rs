//! Reads, writes and leases, tried on a real API server: one control plane for all tests of this binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests stop at the first surprise"
)]

mod apply;
mod leases;
mod outages;
mod reads;
mod refusals;
mod server;
mod support;
mod wire;
