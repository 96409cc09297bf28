//! `step-clock`: time and attempts, constant during a call.

use wasmtime::component::{HasData, Linker};

use crate::{
    bindings::pintle::plugin::step_clock,
    call::{Called, StepClock},
    state::State,
};

/// What a call of this ability works on.
pub(crate) struct Clock<'a> {
    clock: StepClock,
    called: &'a mut Called,
}

impl HasData for Clock<'static> {
    type Data<'a> = Clock<'a>;
}

pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    step_clock::add_to_linker::<State, Clock<'static>>(linker, |state| Clock {
        clock: state.clock,
        called: &mut state.called,
    })
}

impl step_clock::Host for Clock<'_> {
    async fn now_ms(&mut self) -> wasmtime::Result<u64> {
        self.called.clock = true;
        Ok(u64::try_from(self.clock.now.as_millisecond()).unwrap_or_default())
    }

    async fn elapsed_ms(&mut self) -> wasmtime::Result<u64> {
        self.called.clock = true;
        Ok(u64::try_from(self.clock.elapsed.as_millis()).unwrap_or(u64::MAX))
    }

    async fn attempt(&mut self) -> wasmtime::Result<u32> {
        self.called.clock = true;
        Ok(self.clock.attempt)
    }
}
