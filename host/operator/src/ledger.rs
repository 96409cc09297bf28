//! What this process remembers between passes; lost at its end without harm.

use std::{
    any::Any,
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pintle_api::{Facts, Given, ObjectRef, Read, Record, Timestamp};
use pintle_cluster::answer_fingerprint;
use pintle_plan::Memory;
use pintle_plugin::Churn;
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    context::Key,
    metrics::KindLabels,
    plugins::question::{Answered, NoAnswer, Question, Reply},
    render::{Raw, kept::Rendition},
};

/// What this process remembers between passes.
#[derive(Default)]
pub(crate) struct Ledger {
    entries: Mutex<HashMap<Key, Entry>>,
    /// Keys by their text, as the caches name who reads.
    text_to_key: Mutex<HashMap<String, Key>>,
    plugin_to_callers: Mutex<HashMap<String, BTreeSet<Key>>>,
    /// Owners by namespace and name of their releases.
    release_to_owner: Mutex<HashMap<(String, String), Key>>,
}

/// A status of which a kind's schema has no place for parts: it is what the next one is compared with.
#[derive(Clone)]
pub(crate) struct Told {
    /// As it was sent.
    pub(crate) status: Arc<Value>,
    /// Mark of what the server kept.
    pub(crate) kept: u64,
}

/// An object, and what somebody had done to it.
pub(crate) type Repair = (ObjectRef, String);

/// How long the same repair of the same object is not told again.
const SILENT: Duration = Duration::from_secs(600);

/// What is remembered of one key.
#[derive(Default)]
pub(crate) struct Entry {
    /// Passes in a row that failed in a way a retry may mend.
    pub(crate) tries: u32,
    /// Calls of each plugin that did not end the waiting.
    attempts: HashMap<Question, u32>,
    /// How the last call of each plugin failed, for as long as it does.
    failures: HashMap<Question, String>,
    /// Answers of plugins, for as long as they hold.
    answers: HashMap<Question, Kept>,
    /// The status that was last sent, where the server kept less of it.
    pub(crate) told: Option<Told>,
    /// What plugins wanted lately, to tell those that change their mind without a reason.
    churns: HashMap<Question, Churn>,
    /// When a status was last written.
    pub(crate) status_at: Option<Instant>,
    /// When the first object of the release was written by this process.
    pub(crate) first_write_at: Option<Instant>,
    /// What was last rendered, and from what.
    pub(crate) rendered: Option<Rendition>,
    /// The same before post-renderers changed it, where there are any.
    pub(crate) raw: Option<(String, Raw)>,
    /// Series of metrics that go with the owner.
    pub(crate) series: Vec<KindLabels>,
    /// States whose metrics go with the owner.
    pub(crate) states: Vec<String>,
    /// The memory with marks of objects that are yet to be stored.
    pub(crate) memory: Option<Memory>,
    /// Mark of the Helm release record that was last written.
    pub(crate) recorded: String,
    /// The record does not fit into one Secret: Helm cannot go back to it.
    pub(crate) is_split: bool,
    /// Objects that were repaired, what was done to them, and when that was told.
    repairs: HashMap<Repair, Instant>,
    /// What others did to the release, where it is left as it is.
    pub(crate) outside: Option<String>,
}

/// An answer, or why there is none, that holds until something that went into it changes.
struct Kept {
    marks: Marks,
    keeping: Keeping,
    /// `Result<T, NoAnswer>` of the function's answer.
    answer: Arc<dyn Any + Send + Sync>,
    reads: Record,
}

/// Marks of what goes into an answer besides what is read for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    /// The plugin, its config, the revision and its values.
    pub(crate) operation: u64,
    /// The other inputs of the call.
    pub(crate) inputs: u64,
}

/// For how long an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// It is asked for again in the next pass.
    Never,
    /// Until an input or a read differs.
    WhileInputsHold,
    /// The same, and no longer than this.
    Until(Instant),
    /// Until the plugin or the operation is another one, whatever else changes.
    WholeOperation,
}

// === impl Ledger ===

impl Ledger {
    /// Works on what is remembered of a key.
    pub(crate) fn with<T>(&self, key: &Key, work: impl FnOnce(&mut Entry) -> T) -> T {
        let mut entries = self.lock();
        if !entries.contains_key(key) {
            self.texts().insert(key.to_string(), key.clone());
        }
        work(entries.entry(key.clone()).or_default())
    }

    /// Every owner that was looked at.
    pub(crate) fn owners(&self) -> Vec<Key> {
        self.lock().keys().filter(|key| matches!(key, Key::Owner(_))).cloned().collect()
    }

    /// The key of this text.
    pub(crate) fn key_of(&self, text: &str) -> Option<Key> {
        self.texts().get(text).cloned()
    }

    /// Forgets a key.
    pub(crate) fn forget(&self, key: &Key) -> Option<Entry> {
        self.callers().values_mut().for_each(|callers| {
            callers.remove(key);
        });
        self.releases().retain(|_, owner| owner != key);
        let mut entries = self.lock();
        self.texts().remove(&key.to_string());
        entries.remove(key)
    }

    /// Counts a try, or starts again at none; gives the tries before this one.
    pub(crate) fn count_try(&self, key: &Key, failed: bool) -> u32 {
        self.with(key, |entry| {
            let before = entry.tries;
            entry.tries = if failed { before.saturating_add(1) } else { 0 };
            before
        })
    }

    /// True for a repair that was not told lately; it counts as told from now on.
    pub(crate) fn is_news(&self, key: &Key, repair: &Repair) -> bool {
        self.with(key, |entry| {
            entry.repairs.retain(|_, at| at.elapsed() < SILENT);
            let is_news = !entry.repairs.contains_key(repair);
            if is_news {
                entry.repairs.insert(repair.clone(), Instant::now());
            }
            is_news
        })
    }

    /// How often a plugin was asked this without an end of the waiting.
    pub(crate) fn attempts(&self, key: &Key, question: &Question) -> u32 {
        self.with(key, |entry| entry.attempts.get(question).copied().unwrap_or_default())
    }

    /// Counts a call; gives how many there were before.
    pub(crate) fn count_attempt(&self, key: &Key, question: &Question) -> u32 {
        self.with(key, |entry| {
            let count = entry.attempts.entry(question.clone()).or_default();
            *count = count.saturating_add(1);
            *count - 1
        })
    }

    /// Keeps how a call failed; nothing when it did not.
    pub(crate) fn note_failure(&self, key: &Key, question: &Question, failure: Option<String>) {
        self.with(key, |entry| match failure {
            Some(failure) => drop(entry.failures.insert(question.clone(), failure)),
            None => drop(entry.failures.remove(question)),
        });
    }

    /// How the last call failed, where it did.
    pub(crate) fn last_failure(&self, key: &Key, question: &Question) -> Option<String> {
        self.with(key, |entry| entry.failures.get(question).cloned())
    }

    /// Keeps an answer for as long as it holds.
    pub(crate) fn keep_answer<T: Answered>(
        &self,
        key: &Key,
        question: &Question,
        marks: Marks,
        reply: &Reply<T>,
        keeping: Keeping,
    ) {
        self.with(key, |entry| {
            if reply.answer.as_ref().is_ok_and(Answered::is_settled) {
                entry.attempts.remove(question);
            }
            if keeping == Keeping::Never {
                entry.answers.remove(question);
                return;
            }
            let (answer, reads) = (Arc::new(reply.answer.clone()), reply.reads.clone());
            entry.answers.insert(question.clone(), Kept { marks, keeping, answer, reads });
        });
    }

    /// The answer to the same question, where nothing that went into it has changed since.
    pub(crate) fn kept_answer<T: Answered>(
        &self,
        key: &Key,
        question: &Question,
        marks: Marks,
        facts: &dyn Facts,
    ) -> Option<Reply<T>> {
        self.with(key, |entry| {
            let kept = entry.answers.get(question).filter(|kept| kept.holds(marks, facts))?;
            let answer = kept.answer.downcast_ref::<Result<T, NoAnswer>>()?.clone();
            Some(Reply { answer, reads: kept.reads.clone() })
        })
    }

    /// Remembers whose release this is.
    pub(crate) fn note_release(&self, namespace: &str, name: &str, key: &Key) {
        let release = (namespace.to_owned(), name.to_owned());
        self.releases().insert(release, key.clone());
    }

    /// Whose release this is.
    pub(crate) fn owner_of(&self, release: &(String, String)) -> Option<Key> {
        self.releases().get(release).cloned()
    }

    /// Notes what a plugin wants, by a mark, and what it had read for it. True while that changes again and
    /// again although nothing it read does.
    pub(crate) fn is_restless(
        &self,
        key: &Key,
        question: &Question,
        (reads, mark): (&Record, u64),
        now: Timestamp,
    ) -> bool {
        let texts = reads.iter().map(|(read, given)| format!("{read:?}{}", answer_fingerprint(given)));
        let mut inputs = [0; 32];
        let hash = pintle_plan::fnv1a(texts.collect::<Vec<_>>().join("|").as_bytes()).to_le_bytes();
        inputs.iter_mut().zip(hash).for_each(|(slot, byte)| *slot = byte);
        self.with(key, |entry| entry.churns.entry(question.clone()).or_default().told(inputs, mark, now))
    }

    /// Remembers who calls a plugin.
    pub(crate) fn note_caller(&self, plugin: &str, key: &Key) {
        self.callers().entry(plugin.to_owned()).or_default().insert(key.clone());
    }

    /// Who called a plugin.
    pub(crate) fn callers_of(&self, plugin: &str) -> Vec<Key> {
        self.callers().get(plugin).into_iter().flatten().cloned().collect()
    }

    fn releases(&self) -> MutexGuard<'_, HashMap<(String, String), Key>> {
        self.release_to_owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn texts(&self) -> MutexGuard<'_, HashMap<String, Key>> {
        self.text_to_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<String, BTreeSet<Key>>> {
        self.plugin_to_callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Kept ===

impl Kept {
    fn holds(&self, marks: Marks, facts: &dyn Facts) -> bool {
        if self.marks.operation != marks.operation {
            return false;
        }
        match self.keeping {
            Keeping::Never => false,
            Keeping::WholeOperation => true,
            Keeping::WhileInputsHold => self.is_of(marks, facts),
            Keeping::Until(until) => Instant::now() < until && self.is_of(marks, facts),
        }
    }

    fn is_of(&self, marks: Marks, facts: &dyn Facts) -> bool {
        self.marks == marks
            && self.reads.iter().all(|(read, given)| {
                let now = match read {
                    Read::Get(target) => Given::Object(facts.get(target)),
                    Read::List(query) => Given::Objects(facts.list(query)),
                    Read::Tail(_) | Read::Resolve(_) => return false,
                };
                answer_fingerprint(&now) == answer_fingerprint(given)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_repair_is_told_once_until_it_was_quiet_for_a_while() {
        let ledger = Ledger::default();
        let key = Key::Owner(ObjectRef::new("a.b/v1", "Cache", "a").within("shop"));
        let repair = |how: &str| (ObjectRef::new("v1", "ConfigMap", "a").within("shop"), how.to_owned());
        assert!(ledger.is_news(&key, &repair("argocd changed fields of it")));
        assert!(!ledger.is_news(&key, &repair("argocd changed fields of it")), "a war is told once");
        assert!(ledger.is_news(&key, &repair("it was deleted")));
        tokio::time::advance(SILENT).await;
        assert!(ledger.is_news(&key, &repair("argocd changed fields of it")), "and again while it goes on");
    }
}
