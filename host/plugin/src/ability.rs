//! What the host can do for a guest: one file for each interface that a plugin may import.
//!
//! Every interface is linked for every plugin, because guests of some languages import all of their
//! world whether they use it or not. What was not granted answers `denied` with the line that would
//! grant it.

pub(crate) mod images;
pub(crate) mod inputs;
pub(crate) mod kube_read;
pub(crate) mod log;
pub(crate) mod pod_logs;
pub(crate) mod step_clock;
pub(crate) mod wasi;

use wasmtime::component::Linker;

use crate::state::State;

/// Interfaces of `pintle:plugin` that this host offers.
pub(crate) const INTERFACES: [&str; 7] =
    ["types", "inputs", "log", "kube-read", "pod-logs", "images", "step-clock"];

/// Offers every ability but WASI.
pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    inputs::link(linker)?;
    log::link(linker)?;
    kube_read::link(linker)?;
    pod_logs::link(linker)?;
    images::link(linker)?;
    step_clock::link(linker)
}
