//! One question to a plugin, as a verdict.

use std::{collections::BTreeSet, sync::Arc, sync::PoisonError, time::Duration};

use pintle_api::{Answer, Blocker, Facts, Object, ObjectRef, Record, Timestamp, Verdict};
use pintle_cluster::object_fingerprint;
use pintle_plan::{Call, CallAnswer};
use pintle_plugin::{Admission, CallResult, Checked, Operation, Outcome, Plugin, Release, StepClock};
use serde_json::Value;

use crate::{
    context::{Context, Key},
    metrics::CallLabels,
};

/// Rounds in which a plugin may find reads nobody had looked up.
const ROUNDS: usize = 16;
/// First pause before an answer that read logs is asked for again; doubles up to [`LONGEST`].
const PAUSE: Duration = Duration::from_secs(2);
/// Reason of the blocker while a Plugin is being pulled and compiled.
pub(crate) const LOADING: &str = "PluginLoading";
/// Longest pause before an answer that read logs is asked for again.
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
    pub(crate) now: Timestamp,
}

// === impl Caller ===

impl Caller<'_> {
    /// Asks a plugin. Whatever happens is an answer, and everything that was read is in the record.
    pub(crate) async fn ask(&self, call: &Call) -> (CallAnswer, Record) {
        let name = &call.key.plugin;
        self.ctx.ledger.note_caller(name, self.key);
        let plugin = match self.ctx.plugins.find(name).map(|loaded| loaded.plugin) {
            Some(Ok(plugin)) => plugin,
            Some(Err(unready)) => {
                let message = format!("Plugin {name} is not ready: {}", unready.message);
                let blocker = blocker(call, &unready.reason, message);
                return (
                    waiting(if unready.may_pass {
                        Verdict::transient(blocker)
                    } else {
                        Verdict::fatal(blocker)
                    }),
                    Record::default(),
                );
            }
            None => {
                let (reason, message) = self.why_not_there(name);
                return (waiting(Verdict::pending(blocker(call, reason, message))), Record::default());
            }
        };
        if let Some(kept) =
            self.ctx.ledger.kept_answer(self.key, &call.key, self.mark(call), &*self.ctx.caches)
        {
            return kept;
        }
        let release = self.key.to_string();
        if let Admission::Wait { until, .. } = self.admit(name, &release) {
            let last = self.ctx.ledger.last_failure(self.key, &call.key);
            let message = format!(
                "Plugin {name} failed again and again for this release{}; it is tried again at {until}, or \
                 once its Plugin changes",
                last.map(|last| format!(", at last: {last}")).unwrap_or_default()
            );
            let recheck = Duration::try_from(until.duration_since(self.now)).unwrap_or(PAUSE);
            let verdict = Verdict::transient(blocker(call, "PluginPaused", message));
            return (CallAnswer { verdict, recheck: Some(recheck) }, Record::default());
        }
        let result = self.run(&plugin, call).await;
        self.conclude(call, &release, result)
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

    /// Mark of what a call is about; its reads are compared one by one.
    fn mark(&self, call: &Call) -> u64 {
        let target = object_fingerprint(&call.target);
        let plugin =
            self.ctx.plugins.find(&call.key.plugin).map(|loaded| loaded.generation).unwrap_or_default();
        pintle_plan::fnv1a(format!("{target}|{plugin}|{}|{}", self.release.revision, self.values).as_bytes())
    }

    fn admit(&self, plugin: &str, release: &str) -> Admission {
        let mut breakers = self.ctx.plugins.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        breakers.admit(plugin, release, self.now)
    }

    /// Calls until the plugin finds everything it reads.
    async fn run(&self, plugin: &Plugin, call: &Call) -> CallResult<Checked> {
        let mut rounds = 0;
        loop {
            let result = plugin.check(self.input(call), Arc::clone(&call.target)).await;
            rounds += 1;
            match &result.outcome {
                Outcome::NeedsFacts(reads) if rounds < ROUNDS => {
                    self.ctx.caches.fetch(reads, &self.key.holder()).await;
                }
                _ => return result,
            }
        }
    }

    fn input(&self, call: &Call) -> pintle_plugin::Call {
        let facts: Arc<dyn Facts> = Arc::clone(&self.ctx.caches) as Arc<dyn Facts>;
        pintle_plugin::Call {
            facts,
            operation: self.operation,
            release: self.release.clone(),
            state: call.key.state.chars().take_while(char::is_ascii_digit).collect(),
            pool: call.key.pool.clone(),
            args: call.key.arguments(),
            owner: Arc::clone(&self.owner),
            host_fields: Arc::from(vec!["status".to_owned()]),
            values: Arc::clone(&self.values),
            saved: None,
            own: Arc::clone(&self.own),
            clock: StepClock {
                now: self.now,
                elapsed: Duration::from_secs(u64::try_from(call.elapsed_seconds).unwrap_or_default()),
                attempt: self.ctx.ledger.attempts(self.key, &call.key) + 1,
            },
        }
    }

    fn conclude(&self, call: &Call, release: &str, result: CallResult<Checked>) -> (CallAnswer, Record) {
        let plugin = &call.key.plugin;
        let attempts = self.ctx.ledger.count_attempt(self.key, &call.key);
        let tripped = matches!(&result.outcome, Outcome::Failed(failure) if failure.trips_breaker());
        let failure = match &result.outcome {
            Outcome::Failed(failure) => Some(failure.to_string()),
            Outcome::Answered(_) | Outcome::NeedsFacts(_) => None,
        };
        self.ctx.ledger.note_failure(self.key, &call.key, failure);
        self.ctx
            .plugins
            .breakers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .tell(plugin, release, self.now, tripped);
        let label = match &result.outcome {
            Outcome::Answered(_) => "ok",
            Outcome::NeedsFacts(_) => "needs_facts",
            Outcome::Failed(failure) => failure.label(),
        };
        let labels = CallLabels { plugin: plugin.clone(), result: label };
        self.ctx.metrics.calls.get_or_create(&labels).inc();
        self.ctx.metrics.call_seconds.observe(result.stats.duration.as_secs_f64());
        let again = PAUSE.saturating_mul(1 << attempts.min(4)).min(LONGEST);
        let mut record = result.record;
        let answer = match result.outcome {
            // Logs are followed while somebody waits for them; who is ready does not.
            Outcome::Answered(checked) if checked.verdict.is_ready() => {
                record = record.without_texts();
                waiting(Verdict::Ready)
            }
            Outcome::Answered(checked) => CallAnswer { verdict: checked.verdict, recheck: checked.recheck },
            Outcome::NeedsFacts(reads) => {
                let message = format!(
                    "Plugin {plugin} asks for more and more: {} reads are still unknown",
                    reads.len()
                );
                CallAnswer {
                    verdict: Verdict::pending(blocker(call, "FactsUnknown", message)),
                    recheck: Some(again),
                }
            }
            Outcome::Failed(failure) => {
                let verdict = failure.verdict(plugin, &call.target.reference());
                let recheck = matches!(verdict, Verdict::Transient(_)).then_some(again);
                CallAnswer { verdict, recheck }
            }
        };
        self.ctx.ledger.keep_answer(self.key, &call.key, self.mark(call), &answer, &record);
        (answer, record)
    }
}

fn waiting(verdict: Verdict) -> CallAnswer {
    CallAnswer { verdict, recheck: None }
}

fn blocker(call: &Call, reason: &str, message: String) -> Blocker {
    Blocker::new(reason, message).on(call.target.reference())
}
