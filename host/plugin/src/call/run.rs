//! Runs one function of a guest: a slot, a fresh store, limits, and an account of what happened.

use std::{borrow::Cow, future::Future, pin::pin, sync::Arc, time::Instant};

use sha2::{Digest, Sha256};
use wasmtime::{
    Store, Trap,
    component::{Instance, InstancePre, ResourceTableError},
};

use super::{Call, CallResult, Called, Operation, Outcome, Stats, failure::CallFailure};
use crate::{
    Engine, Export,
    ability::kube_read::KubeRead,
    bindings::pintle::plugin::types,
    engine::{Boxed, Lost},
    grants::Scope,
    input,
    limits::{self, CallLimits},
    load::Plugin,
    memo::{self, Hash, Question},
    reads::Reads,
    slots::Slot,
    state::State,
    text::clean,
};

/// The hash that arguments are mixed into.
pub(crate) type Arguments = Sha256;

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

/// A function of one of the interfaces, whose answer may be given again.
pub(crate) trait Asked: Function<Answer: Clone + Sync> {
    /// The interface it is of.
    const EXPORT: Export;

    /// Mixes the arguments into a hash: what the guest is given besides the context.
    fn arguments(&self, hash: &mut Arguments);

    /// About how many bytes an answer takes.
    fn weight(answer: &Self::Answer) -> usize;

    /// True when the arguments have values of Secrets in clear text.
    fn showed_clear_text(&self) -> bool {
        false
    }
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
    /// Checks the arguments of the annotation, gives an earlier answer again if it still holds, and
    /// else runs the function.
    pub(crate) async fn ask<F: Asked>(&self, function: F, call: Call) -> CallResult<F::Answer> {
        if let Err(refused) = self.check_args(&call.args).await {
            return CallResult::refused(refused);
        }
        let key = self.memo_key(&function, &call);
        if let Some(again) = self.answer_again(&key, &call) {
            return again;
        }
        let showed_clear_text = function.showed_clear_text();
        let (mut result, asked) = self.run(function, call).await;
        result.inputs = asked.fingerprint(&key);
        result.called.secret_values |= showed_clear_text;
        if let (Outcome::Answered(answer), true) = (&result.outcome, result.called.is_pure()) {
            let weight = F::weight(answer);
            self.engine().memo().keep(key, asked, Arc::new((answer.clone(), result.called)), weight);
        }
        result
    }

    /// Everything a call is made of but what it reads.
    fn memo_key<F: Asked>(&self, function: &F, call: &Call) -> Hash {
        let mut hash = Sha256::new();
        hash.update(self.binding());
        let Call { operation, release, state, pool, .. } = call;
        let crate::Release { name, namespace, chart, chart_version, revision } = release;
        let (owner, args) = (&call.owner, args_text(call));
        let owner_texts = [owner.api_version(), owner.kind(), owner.name()];
        let texts = [name, namespace, chart, chart_version, state, pool].map(String::as_str);
        for text in texts.into_iter().chain([&*args]).chain(owner_texts).chain(owner.namespace()) {
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        }
        hash.update([F::EXPORT as u8, *operation as u8]);
        hash.update(revision.to_le_bytes());
        for own in call.own.iter() {
            for text in [&own.api_version, &own.kind, &own.name].into_iter().chain(&own.namespace) {
                hash.update(text);
                hash.update([0]);
            }
        }
        function.arguments(&mut hash);
        hash.finalize().into()
    }

    /// The answer that was kept under the key, if each question has the answer it had then.
    fn answer_again<T: Clone + Send + Sync + 'static>(
        &self,
        key: &Hash,
        call: &Call,
    ) -> Option<CallResult<T>> {
        let began = Instant::now();
        let entry = self.engine().memo().find(key)?;
        let scope = self.scope(call);
        let inputs = self.inputs(call);
        let (mut reads, mut called) = (Reads::new(Arc::clone(&call.facts)), Called::default());
        for (question, before) in &entry.asked.0 {
            let now = match question {
                Question::Owner => memo::hash_text(&inputs.owner_text().ok()?),
                Question::Values => memo::hash_text(&inputs.values_text().ok()?),
                Question::Saved => memo::hash_text(inputs.saved_text().ok()?.as_deref().unwrap_or_default()),
                Question::Get(..) | Question::Find(..) => {
                    let asked = &mut memo::Asked::default();
                    let mut read = KubeRead { reads: &mut reads, scope: &scope, called: &mut called, asked };
                    read.answer_now(question)?
                }
            };
            if now != *before {
                return None;
            }
        }
        let (answer, called) = entry.answer.downcast_ref::<(T, Called)>()?.clone();
        Some(CallResult {
            outcome: Outcome::Answered(answer),
            record: reads.into_record(),
            called,
            stats: Stats { duration: began.elapsed(), ..Stats::default() },
            log_lines_dropped: 0,
            inputs: entry.asked.fingerprint(key),
            reused: true,
        })
    }

    /// Waits for a slot of this plugin and one of the engine, in that order, then runs the function
    /// on the threads for plugins.
    async fn run<F: Function>(&self, function: F, call: Call) -> (CallResult<F::Answer>, memo::Asked) {
        let waiting = Instant::now();
        let release = call.release.name.clone();
        let slots = self.slots(&format!("{}/{release}", call.release.namespace)).await;
        let queued = waiting.elapsed();
        let job = self.job(function, call);
        let lanes = self.engine().lanes();
        let ended = lanes.run(job.run_with(slots), self.pace().is_quick()).await;
        let Ok((Done { outcome, mut state, mut stats }, slots)) = ended else {
            return (CallResult::refused(CallFailure::Stopped), memo::Asked::default());
        };
        drop(slots);
        self.pace().note(stats.duration);
        stats.queued = queued;
        let asked = std::mem::take(&mut state.asked);
        (self.finish(outcome, state, stats, &release), asked)
    }

    /// Runs a function that is asked for no release: it can read nothing.
    pub(crate) async fn run_bare<F: Function>(&self, function: F) -> Result<F::Answer, CallFailure> {
        let slots = self.slots("").await;
        let job = self.bare_job(function);
        let lanes = self.engine().lanes();
        let ended = lanes.run(job.run_with(slots), false).await;
        let Ok((Done { outcome, state, .. }, _slots)) = ended else { return Err(CallFailure::Stopped) };
        state.lines.write(self.name(), "", self.quota());
        match outcome {
            Outcome::Answered(answer) => Ok(answer),
            Outcome::Failed(failure) => Err(failure),
            // There are no facts in such a call, so there is none to fetch either.
            Outcome::NeedsFacts(_) => Err(CallFailure::Stopped),
        }
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
        let record = state.reads.into_record();
        CallResult { outcome, record, called, stats, log_lines_dropped, inputs: [0; 32], reused: false }
    }

    async fn slots(&self, release: &str) -> [Slot; 2] {
        let own = self.calls().take(release).await;
        [own, self.engine().calls().take(release).await]
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
            inputs: [0; 32],
            reused: false,
        }
    }
}

// === impl Job ===

impl<F: Function> Job<F> {
    /// Runs the function; gives back what is kept for as long as it runs.
    pub(crate) fn run_with<K: Send + 'static>(self, kept: K) -> Boxed<(Done<F::Answer>, K)> {
        Box::pin(async move { (self.run().await, kept) })
    }

    /// Runs the function in a store of its own, which is gone afterwards.
    async fn run(self) -> Done<F::Answer> {
        let Self { engine, guest, limits, state, function } = self;
        let began = Instant::now();
        let mut store = fresh_store(&engine, state);
        let ticking = engine.ticker().start();
        let ended = {
            let call = pin!(async {
                let instance = guest.instantiate_async(&mut store).await?;
                function.call(&mut store, &instance).await
            });
            match engine.lanes().limited(began + limits.timeout, call) {
                Ok(limited) => limited.await.map_err(|_| CallFailure::TimedOut { limit: limits.timeout }),
                Err(Lost) => Err(CallFailure::Stopped),
            }
        };
        drop(ticking);
        let mut state = store.into_data();
        state.take_printed();
        let outcome = match ended {
            Err(failure) => Outcome::Failed(failure),
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
    if let Some(ResourceTableError::Full) = error.downcast_ref::<ResourceTableError>() {
        return CallFailure::OutOfHandles { limit: limits::HANDLES };
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => CallFailure::OutOfStack { limit: limits::STACK },
        Some(trap) => CallFailure::Trap { what: trap.to_string(), said: state.lines.last_error() },
        None => CallFailure::Unreadable(clean(&format!("{error:#}"), limits::MESSAGE)),
    }
}

/// The small facts that each call is told.
pub(crate) fn context(call: &Call) -> types::Context {
    let Call { operation, release, state, pool, .. } = call;
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
        args: args_text(call).into_owned(),
    }
}

/// The arguments of an annotation as a guest is given them.
fn args_text(call: &Call) -> Cow<'static, str> {
    match call.args.is_empty() {
        true => "{}".into(),
        false => input::canonical(&serde_json::Value::Object(call.args.clone())).into(),
    }
}
