//! The host's own functions, under the names that `native.rs` has too.

pub(crate) use crate::bindings::pintle::plugin::{
    images::resolve,
    inputs::{config, grants, owner, saved, values},
    kube_read::{find, get},
    log::emit,
    pod_logs::{search, tail},
    step_clock::{attempt, elapsed_ms, now_ms},
};
