//! Runs one function of a guest: a slot, a fresh store, limits, and an account of what happened.

use std::{future::Future, time::Instant};

use tokio::sync::OwnedSemaphorePermit;
use wasmtime::{
    Store, Trap,
    component::{Instance, InstancePre},
};

use super::{Call, CallResult, Called, Operation, Outcome, Stats, failure::CallFailure};
use crate::{
    Engine,
    bindings::pintle::plugin::types,
    grants::Scope,
    limits::{self, CallLimits},
    load::Plugin,
    state::State,
    text::clean,
};

/// One exported function with its arguments.
pub(crate) trait Function: Send + Sync + 'static {
    /// What the guest returns.
    type Raw: Send + 'static;
    /// What becomes of it once it was checked.
    type Answer: Send + 'static;

    /// Calls the guest.
    fn call(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
    ) -> impl Future<Output = wasmtime::Result<Self::Raw>> + Send;

    /// Checks what the guest returned.
    fn accept(self, raw: Self::Raw, scope: &Scope) -> Result<Self::Answer, CallFailure>;
}

/// A function with everything it needs to run.
pub(crate) struct Job<F> {
    pub(crate) engine: Engine,
    pub(crate) guest: InstancePre<State>,
    pub(crate) limits: CallLimits,
    pub(crate) state: State,
    pub(crate) function: F,
}

/// How a job ended.
pub(crate) struct Done<T> {
    pub(crate) outcome: Outcome<T>,
    pub(crate) state: State,
    pub(crate) stats: Stats,
}

impl Plugin {
    /// Waits for a slot of this plugin and one of the engine, in that order, then runs the function
    /// on the threads for plugins.
    pub(crate) async fn run<F: Function>(&self, function: F, call: Call) -> CallResult<F::Answer> {
        let waiting = Instant::now();
        let Some(slots) = self.slots().await else { return CallResult::refused(CallFailure::Stopped) };
        let queued = waiting.elapsed();
        let release = call.release.name.clone();
        let job = self.job(function, call);
        let engine = job.engine.clone();
        let ended = engine.lanes().run(async move { (job.run().await, slots) }).await;
        let Ok((Done { outcome, state, mut stats }, slots)) = ended else {
            return CallResult::refused(CallFailure::Stopped);
        };
        drop(slots);
        stats.queued = queued;
        self.finish(outcome, state, stats, &release)
    }

    fn finish<T>(&self, outcome: Outcome<T>, state: State, stats: Stats, release: &str) -> CallResult<T> {
        let mut called = state.called;
        called.unavailable = state.reads.was_unavailable();
        // A call that is made again with more facts says the same again: once is enough.
        let log_lines_dropped = match &outcome {
            Outcome::NeedsFacts(_) => 0,
            Outcome::Answered(_) | Outcome::Failed(_) => {
                state.lines.write(self.name(), release, self.quota())
            }
        };
        CallResult { outcome, record: state.reads.into_record(), called, stats, log_lines_dropped }
    }

    async fn slots(&self) -> Option<[OwnedSemaphorePermit; 2]> {
        let own = self.calls().clone().acquire_owned().await.ok()?;
        let shared = self.engine().calls().clone().acquire_owned().await.ok()?;
        Some([own, shared])
    }
}

// === impl CallResult ===

impl<T> CallResult<T> {
    /// The result of a call that was not made.
    pub(crate) fn refused(failure: CallFailure) -> Self {
        Self {
            outcome: Outcome::Failed(failure),
            record: Default::default(),
            called: Called::default(),
            stats: Stats::default(),
            log_lines_dropped: 0,
        }
    }
}

// === impl Job ===

impl<F: Function> Job<F> {
    /// Runs the function in a store of its own, which is gone afterwards.
    pub(crate) async fn run(self) -> Done<F::Answer> {
        let Self { engine, guest, limits, state, function } = self;
        let began = Instant::now();
        let mut store = fresh_store(&engine, state);
        let ticking = engine.ticker().start();
        let call = async {
            let instance = guest.instantiate_async(&mut store).await?;
            function.call(&mut store, &instance).await
        };
        let ended = tokio::time::timeout(limits.timeout, call).await;
        drop(ticking);
        let mut state = store.into_data();
        state.take_printed();
        let outcome = match ended {
            Err(_) => Outcome::Failed(CallFailure::TimedOut { limit: limits.timeout }),
            Ok(ended) => settle(ended, function, &state),
        };
        let (reads, read_bytes) = state.reads.spent();
        let memory = state.memory.used();
        let stats = Stats { duration: began.elapsed(), memory, reads, read_bytes, ..Stats::default() };
        Done { outcome, state, stats }
    }
}

fn fresh_store(engine: &Engine, state: State) -> Store<State> {
    let mut store = Store::new(engine.wasm(), state);
    store.limiter(|state| &mut state.memory);
    store.set_hostcall_fuel(limits::HOSTCALL);
    store.set_max_component_handles(limits::HANDLES);
    store.epoch_deadline_async_yield_and_update(1);
    store.set_epoch_deadline(1);
    store
}

/// What the end of a call means. A guest that was told `unavailable` may say or do anything: first
/// the facts are fetched, then what it says counts.
fn settle<F: Function>(ended: wasmtime::Result<F::Raw>, function: F, state: &State) -> Outcome<F::Answer> {
    let needs = state.reads.needs();
    if !needs.is_empty() {
        return Outcome::NeedsFacts(needs);
    }
    let answer = ended.map_err(|error| classify(error, state));
    match answer.and_then(|raw| function.accept(raw, &state.scope)) {
        Ok(answer) => Outcome::Answered(answer),
        Err(failure) => Outcome::Failed(failure),
    }
}

/// Why a guest ended without an answer, told from what it did last rather than from any text.
fn classify(error: wasmtime::Error, state: &State) -> CallFailure {
    let error = match error.downcast::<CallFailure>() {
        Ok(ours) => return ours,
        Err(error) => error,
    };
    let (memory, limit) = (&state.memory, state.memory.limit());
    if let Some(wanted) = memory.refused_bytes {
        return CallFailure::OutOfMemory { wanted, limit };
    }
    if let Some(wanted) = memory.refused_elements {
        return CallFailure::OutOfTables { wanted, limit: limits::TABLE_ELEMENTS };
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => CallFailure::OutOfStack { limit: limits::STACK },
        Some(trap) => CallFailure::Trap { what: trap.to_string(), said: state.lines.last_error() },
        None => CallFailure::Unreadable(clean(&format!("{error:#}"), limits::MESSAGE)),
    }
}

/// The small facts that each call is told.
pub(crate) fn context(call: &Call) -> types::Context {
    let Call { operation, release, state, pool, args, .. } = call;
    types::Context {
        operation: match operation {
            Operation::Install => types::Operation::Install,
            Operation::Upgrade => types::Operation::Upgrade,
            Operation::Rollback => types::Operation::Rollback,
            Operation::Steady => types::Operation::Steady,
            Operation::Delete => types::Operation::Delete,
        },
        release: types::Release {
            name: release.name.clone(),
            namespace: release.namespace.clone(),
            chart: release.chart.clone(),
            chart_version: release.chart_version.clone(),
            revision: release.revision,
        },
        state: state.clone(),
        pool: pool.clone(),
        args: serde_json::Value::Object(args.clone()).to_string(),
    }
}
