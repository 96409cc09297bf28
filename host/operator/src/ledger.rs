//! What this process remembers between passes; lost at its end without harm.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use pintle_api::{Facts, Given, Read, Record};
use pintle_cluster::answer_fingerprint;
use pintle_plan::{CallAnswer, CallKey};
use tokio::time::Instant;

use crate::{context::Key, metrics::KindLabels, render::Objects};

/// What this process remembers between passes.
#[derive(Default)]
pub(crate) struct Ledger {
    entries: Mutex<HashMap<Key, Entry>>,
    plugin_to_callers: Mutex<HashMap<String, BTreeSet<Key>>>,
    /// Owners by namespace and name of their releases.
    release_to_owner: Mutex<HashMap<(String, String), Key>>,
}

/// What is remembered of one key.
#[derive(Default)]
pub(crate) struct Entry {
    /// Passes in a row that failed in a way a retry may mend.
    pub(crate) tries: u32,
    /// Calls of each plugin that did not end the waiting.
    attempts: HashMap<CallKey, u32>,
    /// How the last call of each plugin failed, for as long as it does.
    failures: HashMap<CallKey, String>,
    /// Answers of plugins that say ready, for as long as nothing they read changes.
    answers: HashMap<CallKey, Kept>,
    /// Marks of the status that was last sent, and of what the server kept of it.
    pub(crate) told: Option<(u64, u64)>,
    /// When a status was last written.
    pub(crate) status_at: Option<Instant>,
    /// When the first object of the release was written by this process.
    pub(crate) first_write_at: Option<Instant>,
    /// What was last rendered, and from what.
    pub(crate) rendered: Option<(String, Objects)>,
    /// Series of metrics that go with the owner.
    pub(crate) series: Vec<KindLabels>,
    /// States whose metrics go with the owner.
    pub(crate) states: Vec<String>,
    /// Mark of the Helm release record that was last written.
    pub(crate) recorded: String,
    /// The record does not fit into one Secret: Helm cannot go back to it.
    pub(crate) is_split: bool,
    /// What others did to the release, where it is left as it is.
    pub(crate) outside: Option<String>,
}

/// An answer that holds until something that went into it changes.
struct Kept {
    mark: u64,
    answer: CallAnswer,
    record: Record,
}

// === impl Ledger ===

impl Ledger {
    /// Works on what is remembered of a key.
    pub(crate) fn with<T>(&self, key: &Key, work: impl FnOnce(&mut Entry) -> T) -> T {
        work(self.lock().entry(key.clone()).or_default())
    }

    /// Every owner that was looked at.
    pub(crate) fn owners(&self) -> Vec<Key> {
        self.lock().keys().filter(|key| matches!(key, Key::Owner(_))).cloned().collect()
    }

    /// The key of this text.
    pub(crate) fn key_of(&self, text: &str) -> Option<Key> {
        self.lock().keys().find(|key| key.to_string() == text).cloned()
    }

    /// Forgets a key.
    pub(crate) fn forget(&self, key: &Key) -> Option<Entry> {
        self.callers().values_mut().for_each(|callers| {
            callers.remove(key);
        });
        self.releases().retain(|_, owner| owner != key);
        self.lock().remove(key)
    }

    /// Counts a try, or starts again at none; gives the tries before this one.
    pub(crate) fn count_try(&self, key: &Key, failed: bool) -> u32 {
        self.with(key, |entry| {
            let before = entry.tries;
            entry.tries = if failed { before.saturating_add(1) } else { 0 };
            before
        })
    }

    /// How often a plugin was asked this without an end of the waiting.
    pub(crate) fn attempts(&self, key: &Key, call: &CallKey) -> u32 {
        self.with(key, |entry| entry.attempts.get(call).copied().unwrap_or_default())
    }

    /// Counts a call; gives how many there were before.
    pub(crate) fn count_attempt(&self, key: &Key, call: &CallKey) -> u32 {
        self.with(key, |entry| {
            let count = entry.attempts.entry(call.clone()).or_default();
            *count = count.saturating_add(1);
            *count - 1
        })
    }

    /// Keeps how a call failed; nothing when it did not.
    pub(crate) fn note_failure(&self, key: &Key, call: &CallKey, failure: Option<String>) {
        self.with(key, |entry| match failure {
            Some(failure) => drop(entry.failures.insert(call.clone(), failure)),
            None => drop(entry.failures.remove(call)),
        });
    }

    /// How the last call failed, where it did.
    pub(crate) fn last_failure(&self, key: &Key, call: &CallKey) -> Option<String> {
        self.with(key, |entry| entry.failures.get(call).cloned())
    }

    /// Keeps an answer that says ready; any other is asked for again.
    pub(crate) fn keep_answer(
        &self,
        key: &Key,
        call: &CallKey,
        mark: u64,
        answer: &CallAnswer,
        record: &Record,
    ) {
        self.with(key, |entry| {
            if answer.verdict.is_ready() {
                entry.attempts.remove(call);
                let kept = Kept { mark, answer: answer.clone(), record: record.clone() };
                entry.answers.insert(call.clone(), kept);
            } else {
                entry.answers.remove(call);
            }
        });
    }

    /// The answer to the same question, where nothing that was read for it has changed since.
    pub(crate) fn kept_answer(
        &self,
        key: &Key,
        call: &CallKey,
        mark: u64,
        facts: &dyn Facts,
    ) -> Option<(CallAnswer, Record)> {
        self.with(key, |entry| {
            let kept = entry.answers.get(call).filter(|kept| kept.mark == mark)?;
            let holds = kept.record.iter().all(|(read, given)| {
                let now = match read {
                    Read::Get(target) => Given::Object(facts.get(target)),
                    Read::List(query) => Given::Objects(facts.list(query)),
                    Read::Tail(_) | Read::Resolve(_) => return false,
                };
                answer_fingerprint(&now) == answer_fingerprint(given)
            });
            holds.then(|| (kept.answer.clone(), kept.record.clone()))
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

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<String, BTreeSet<Key>>> {
        self.plugin_to_callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
