//! One question to a plugin, whatever function answers it: when it is asked, what its failures mean, and
//! for how long an answer holds.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError},
    time::Duration,
};

use pintle_api::{
    Answer, Blocker, Facts, Given, Object, ObjectRef, Read, Record, Timestamp, Verdict, plugin::PluginSpec,
};
use pintle_cluster::object_fingerprint;
use pintle_plan::{Call, Saved};
use pintle_plugin::{
    Admission, CallFailure, CallResult, Operation, Outcome, Plugin, Release, Retry, StepClock,
    transcript::Kept,
};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    Loaded, Named, Unready, component,
    question::{Answered, Check, Function, NoAnswer, Question, Reply},
};
use crate::{
    context::{Context, Key},
    images::{self, ReleaseFacts},
    ledger::{Keeping, Marks},
    metrics::CallLabels,
};

/// Rounds in which a plugin may find reads nobody had looked up.
const ROUNDS: usize = 16;
/// First pause before a question without an answer is asked again; doubles up to [`LONGEST`].
const PAUSE: Duration = Duration::from_secs(2);
/// Reason of the blocker while a Plugin is being pulled and compiled.
pub(crate) const LOADING: &str = "PluginLoading";
/// Longest pause before a question without an answer is asked again.
const LONGEST: Duration = Duration::from_secs(30);

/// What all calls of one pass have in common.
pub(crate) struct Caller<'a> {
    pub(crate) ctx: &'a Context,
    pub(crate) key: &'a Key,
    pub(crate) owner: Arc<Object>,
    pub(crate) release: Release,
    pub(crate) operation: Operation,
    pub(crate) own: Arc<BTreeSet<ObjectRef>>,
    pub(crate) values: Arc<Value>,
    /// What plugins asked to be kept.
    pub(crate) saved: Arc<BTreeMap<String, Saved>>,
    pub(crate) now: Timestamp,
}

/// What a question is about, besides its name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct About {
    /// Mark of the inputs that are not read through facts; another mark asks again.
    pub(crate) mark: u64,
    /// Seconds since the state was entered.
    pub(crate) elapsed_seconds: i64,
}

// === impl Caller ===

impl Caller<'_> {
    /// Asks whether an object is ready.
    pub(crate) async fn check(&self, call: &Call) -> (Question, Reply<pintle_plugin::Checked>) {
        let question = Question { function: Check::EXPORT, key: call.key.clone() };
        let about = About { mark: object_fingerprint(&call.target), elapsed_seconds: call.elapsed_seconds };
        let named = Named::plain(&call.key.plugin);
        let reply = self.ask(&named, &question, about, &Check(Arc::clone(&call.target))).await;
        (question, reply)
    }

    /// Asks a plugin. Whatever happens is an answer, and everything that was read is in the reply.
    pub(crate) async fn ask<F: Function>(
        &self,
        named: &Named,
        question: &Question,
        about: About,
        function: &F,
    ) -> Reply<F::Answer> {
        let plugin = match self.find(named, &question.key.target).await {
            Ok(plugin) => plugin,
            Err(no_answer) => return Reply { answer: Err(no_answer), reads: Record::default() },
        };
        let marks = self.marks(named, about);
        if let Some(kept) = self.ctx.ledger.kept_answer(self.key, question, marks, &*self.ctx.caches) {
            return kept;
        }
        if let Some(paused) = self.paused(question) {
            return Reply { answer: Err(paused), reads: Record::default() };
        }
        let result = self.run(&plugin, question, about, function).await;
        self.conclude(question, marks, result).await
    }

    /// The plugin of a name; the owner is woken once one that is on its way is there.
    async fn find(&self, named: &Named, target: &ObjectRef) -> Result<Plugin, NoAnswer> {
        let name = &named.name;
        self.ctx.ledger.note_caller(name, self.key);
        let blocker = |reason: &str, message: String| Blocker::new(reason, message).on(target.clone());
        let not_ready = |unready: Unready| {
            let message = format!("Plugin {name} is not ready: {}", unready.message);
            let blocker = blocker(&unready.reason, message);
            let word = if unready.may_pass { Verdict::transient } else { Verdict::fatal };
            NoAnswer::of(word(blocker))
        };
        match self.ctx.plugins.find(name) {
            Some(Loaded { generation, plugin: Ok(plugin) }) => {
                let spec = || self.spec_of(name, generation);
                self.ctx.plugins.configured(&plugin, generation, named, spec).await.map_err(not_ready)
            }
            Some(Loaded { plugin: Err(unready), .. }) => Err(not_ready(unready)),
            None if component::is_reference(name) => {
                self.ctx.queue.wake(Key::Component(name.clone()));
                let message = format!("{name} is being pulled and compiled");
                Err(NoAnswer::of(Verdict::pending(blocker(LOADING, message))))
            }
            None => {
                let (reason, message) = self.why_not_there(name);
                Err(NoAnswer::of(Verdict::pending(blocker(reason, message))))
            }
        }
    }

    /// Spec of the Plugin that was loaded; nothing when it has changed since.
    fn spec_of(&self, name: &str, generation: i64) -> Option<PluginSpec> {
        let object = self.ctx.caches.get(&ObjectRef::new("pintle.dev/v1alpha1", "Plugin", name)).found()?;
        let spec = object.at("/spec").filter(|_| object.generation() == generation)?;
        serde_json::from_value(spec.clone()).ok()
    }

    /// A Plugin that has just been seen is on its way; its end wakes the release.
    fn why_not_there(&self, name: &str) -> (&'static str, String) {
        let target = ObjectRef::new("pintle.dev/v1alpha1", "Plugin", name);
        match self.ctx.caches.get(&target) {
            Answer::Missing | Answer::KindUnknown => {
                ("PluginMissing", format!("Plugin {name} is not installed; create a Plugin of that name"))
            }
            Answer::Denied(why) => ("Forbidden", format!("Plugin {name} cannot be read: {why}")),
            _ => (LOADING, format!("Plugin {name} is being pulled and compiled")),
        }
    }

    /// Marks of what a question is about; its reads are compared one by one. What the plugin keeps itself
    /// is not among them: an answer that keeps something would ask for itself again.
    fn marks(&self, named: &Named, about: About) -> Marks {
        let loaded = self.ctx.plugins.find(&named.name);
        let digest = |plugin: Plugin| plugin.digest().to_owned();
        let generation =
            loaded.map(|loaded| (loaded.generation, loaded.plugin.ok().map(digest).unwrap_or_default()));
        let config = named.config.as_ref().map(|config| Value::Object(config.clone()).to_string());
        let text = format!("{generation:?}|{config:?}|{}|{}", self.release.revision, self.values);
        Marks { operation: pintle_plan::fnv1a(text.as_bytes()), inputs: about.mark }
    }

    /// Why a plugin that failed again and again is not called now.
    fn paused(&self, question: &Question) -> Option<NoAnswer> {
        let name = &question.key.plugin;
        let Admission::Wait { until, .. } =
            self.breakers(|breakers| breakers.admit(name, &self.key.to_string(), self.now))
        else {
            return None;
        };
        let last = self.ctx.ledger.last_failure(self.key, question);
        let message = format!(
            "Plugin {name} failed again and again for this release{}; it is tried again at {until}, or \
             once its Plugin changes",
            last.map(|last| format!(", at last: {last}")).unwrap_or_default()
        );
        let blocker = Blocker::new("PluginPaused", message).on(question.key.target.clone());
        let recheck = Duration::try_from(until.duration_since(self.now)).unwrap_or(PAUSE);
        Some(NoAnswer { verdict: Verdict::transient(blocker), recheck: Some(recheck), report: None })
    }

    fn breakers<T>(&self, work: impl FnOnce(&mut pintle_plugin::Breakers) -> T) -> T {
        work(&mut self.ctx.plugins.breakers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls until the plugin finds everything it reads.
    async fn run<F: Function>(
        &self,
        plugin: &Plugin,
        question: &Question,
        about: About,
        function: &F,
    ) -> CallResult<F::Answer> {
        let mut rounds = 0;
        loop {
            let input = self.input(question, about);
            let result = function.call(plugin, input.clone()).await;
            rounds += 1;
            match &result.outcome {
                Outcome::NeedsFacts(reads) if rounds < ROUNDS => {
                    let reads = images::reads_within(reads, &self.release.namespace);
                    self.ctx.caches.fetch(&reads, &self.key.holder()).await;
                }
                _ => {
                    if let Some(ask) = function.recorded() {
                        self.ctx.plugins.calls.keep(Kept::new(plugin, &input, ask, &result));
                    }
                    let record = images::record_within(&result.record, &self.release.namespace);
                    return CallResult { record, ..result };
                }
            }
        }
    }

    fn input(&self, question: &Question, about: About) -> pintle_plugin::Call {
        let caches = Arc::clone(&self.ctx.caches);
        let facts = Arc::new(ReleaseFacts { caches, namespace: self.release.namespace.clone() });
        let key = &question.key;
        pintle_plugin::Call {
            facts,
            operation: self.operation,
            release: self.release.clone(),
            state: key.state.chars().take_while(char::is_ascii_digit).collect(),
            pool: key.pool.clone(),
            args: key.arguments(),
            owner: Arc::clone(&self.owner),
            host_fields: Arc::from(vec!["status".to_owned()]),
            values: Arc::clone(&self.values),
            saved: self.saved.get(&question.text()).map(|saved| Arc::new(saved.value.clone())),
            own: Arc::clone(&self.own),
            clock: StepClock {
                now: self.now,
                elapsed: Duration::from_secs(u64::try_from(about.elapsed_seconds).unwrap_or_default()),
                attempt: self.ctx.ledger.attempts(self.key, question) + 1,
            },
        }
    }

    async fn conclude<T: Answered>(
        &self,
        question: &Question,
        marks: Marks,
        result: CallResult<T>,
    ) -> Reply<T> {
        let attempts = self.ctx.ledger.count_attempt(self.key, question);
        self.count(question, &result);
        let again = PAUSE.saturating_mul(1 << attempts.min(4)).min(LONGEST);
        let CallResult { outcome, record, called, .. } = result;
        let (reply, keeping) = match outcome {
            Outcome::Answered(answer) => {
                let mut reads = record;
                reads.extend(self.watched(answer.watch()).await);
                if answer.is_settled() {
                    reads = reads.without_texts();
                }
                let keeping = keeping_of(&answer, called.is_pure());
                (Reply { answer: Ok(answer), reads }, keeping)
            }
            Outcome::NeedsFacts(needs) => {
                let no_answer = asks_for_more(question, needs.len(), again);
                (Reply { answer: Err(no_answer), reads: record }, Keeping::Never)
            }
            Outcome::Failed(failure) => {
                let keeping = match failure.retry() {
                    Retry::Never => Keeping::WholeOperation,
                    Retry::WhenInputsChange if called.is_pure() => Keeping::WhileInputsHold,
                    Retry::WhenInputsChange | Retry::WithBackOff => Keeping::Never,
                };
                (Reply { answer: Err(failed(question, failure, again)), reads: record }, keeping)
            }
        };
        self.ctx.ledger.keep_answer(self.key, question, marks, &reply, keeping);
        reply
    }

    /// Breaker, metrics and the last failure.
    fn count<T>(&self, question: &Question, result: &CallResult<T>) {
        let failure = match &result.outcome {
            Outcome::Failed(failure) => Some(failure),
            Outcome::Answered(_) | Outcome::NeedsFacts(_) => None,
        };
        self.ctx.ledger.note_failure(self.key, question, failure.map(CallFailure::to_string));
        let tripped = failure.is_some_and(CallFailure::trips_breaker);
        let (plugin, release) = (&question.key.plugin, self.key.to_string());
        self.breakers(|breakers| breakers.tell(plugin, &release, self.now, tripped));
        let label = match &result.outcome {
            Outcome::Answered(_) => "ok",
            Outcome::NeedsFacts(_) => "needs_facts",
            Outcome::Failed(failure) => failure.label(),
        };
        let labels = CallLabels { plugin: plugin.clone(), result: label };
        self.ctx.metrics.calls.get_or_create(&labels).inc();
        self.ctx.metrics.call_seconds.observe(result.stats.duration.as_secs_f64());
    }

    /// What a plugin wants to be watched besides what it read.
    async fn watched(&self, watch: &[Read]) -> Record {
        if watch.is_empty() {
            return Record::default();
        }
        let look = |facts: &dyn Facts| {
            for read in watch {
                look_at(facts, read);
            }
        };
        self.ctx.know(self.key, look).await.1
    }
}

/// Reads it, so that the record has it.
fn look_at(facts: &dyn Facts, read: &Read) -> Given {
    match read {
        Read::Get(target) => Given::Object(facts.get(target)),
        Read::List(query) => Given::Objects(facts.list(query)),
        Read::Tail(log) => Given::Text(facts.tail(log)),
        Read::Resolve(image) => Given::Text(facts.resolve(image)),
    }
}

/// For how long an answer holds: one that nobody waits for, or that was made from nothing but objects,
/// until one of these differs.
fn keeping_of<T: Answered>(answer: &T, is_pure: bool) -> Keeping {
    match answer.recheck() {
        _ if !answer.is_settled() && !is_pure => Keeping::Never,
        Some(recheck) if !answer.is_settled() => Keeping::Until(Instant::now() + recheck),
        _ => Keeping::WhileInputsHold,
    }
}

fn asks_for_more(question: &Question, needs: usize, again: Duration) -> NoAnswer {
    let message =
        format!("Plugin {} asks for more and more: {needs} reads are still unknown", question.key.plugin);
    let blocker = Blocker::new("FactsUnknown", message).on(question.key.target.clone());
    NoAnswer { verdict: Verdict::pending(blocker), recheck: Some(again), report: None }
}

fn failed(question: &Question, failure: CallFailure, again: Duration) -> NoAnswer {
    let verdict = failure.verdict(&question.key.plugin, &question.key.target);
    let recheck = matches!(verdict, Verdict::Transient(_)).then_some(again);
    let report = match failure {
        CallFailure::Guest { report, .. } => Some(report),
        _ => None,
    };
    NoAnswer { verdict, recheck, report }
}
