//! The local control plane, tried as its users use it: one control plane for all tests of this binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

mod artifacts;
mod builds;
mod cluster;
mod faults;
mod kmm;
mod pods;
mod support;
