//! What lives as long as one call: the data of its store.

use wasmtime::ResourceLimiter;

use crate::{
    ability::{inputs::Inputs, log::Lines, wasi::Wasi},
    call::{Called, StepClock},
    grants::Scope,
    limits,
    memo::Asked,
    reads::Reads,
};

/// The data of one call's store: one part for each ability, and the memory's account.
pub(crate) struct State {
    pub(crate) inputs: Inputs,
    pub(crate) scope: Scope,
    pub(crate) reads: Reads,
    pub(crate) lines: Lines,
    pub(crate) clock: StepClock,
    pub(crate) called: Called,
    pub(crate) asked: Asked,
    pub(crate) memory: Memory,
    /// Made when the guest first asks WASI for something.
    pub(crate) wasi: Option<Box<Wasi>>,
}

/// The account of linear memory and tables, over all instances of a component.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    limit: usize,
    bytes: usize,
    elements: usize,
    /// Bytes that were asked for and refused.
    pub(crate) refused_bytes: Option<usize>,
    /// Table elements that were asked for and refused.
    pub(crate) refused_elements: Option<usize>,
}

// === impl Memory ===

impl Memory {
    /// An account with nothing used.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, bytes: 0, elements: 0, refused_bytes: None, refused_elements: None }
    }

    /// Bytes that may be used.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes in use; memory never shrinks, so this is also the high water.
    pub(crate) fn used(&self) -> usize {
        self.bytes
    }
}

impl ResourceLimiter for Memory {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let wanted = self.bytes.saturating_add(desired.saturating_sub(current));
        if wanted > self.limit {
            self.refused_bytes = Some(wanted);
            return Ok(false);
        }
        self.bytes = wanted;
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let wanted = self.elements.saturating_add(desired.saturating_sub(current));
        if wanted > limits::TABLE_ELEMENTS {
            self.refused_elements = Some(wanted);
            return Ok(false);
        }
        self.elements = wanted;
        Ok(true)
    }

    fn instances(&self) -> usize {
        limits::CORE_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        limits::TABLES as usize
    }

    fn memories(&self) -> usize {
        limits::MEMORIES as usize
    }
}
