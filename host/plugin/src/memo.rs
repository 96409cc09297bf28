//! Answers that may be given again: of calls that asked for nothing but what can be asked again.
//!
//! An answer is kept under all that went into the call, and with every question the guest asked the
//! host. It is given again when the same questions, asked anew within the same grants, have the same
//! answers. A change that the guest could not see changes nothing.

use std::{
    any::Any,
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use pintle_api::ObjectRef;
use sha2::{Digest, Sha256};

use crate::bindings::pintle::plugin::types::{ObjectQuery, ReadError};

/// A SHA-256.
pub(crate) type Hash = [u8; 32];

/// One question of a guest.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// An input of the call.
    Owner,
    /// An input of the call.
    Values,
    /// An input of the call.
    Saved,
    /// An object, with the fields asked for.
    Get(ObjectRef, Vec<String>),
    /// A page of a list: query, fields, most items, token.
    Find(ObjectQuery, Vec<String>, u32, Option<String>),
}

/// The questions of one call, each with the hash of its answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked(pub(crate) Vec<(Question, Hash)>);

/// Kept answers of all plugins of an engine.
pub(crate) struct Memo(Mutex<Kept>);

/// An answer that is kept.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) asked: Arc<Asked>,
    pub(crate) answer: Arc<dyn Any + Send + Sync>,
    weight: usize,
    used: u64,
}

#[derive(Default)]
struct Kept {
    most: usize,
    weight: usize,
    clock: u64,
    entries: HashMap<Hash, Entry>,
    by_use: BTreeMap<u64, Hash>,
}

// === impl Memo ===

impl Memo {
    /// Keeps answers that weigh at most so many bytes together; 0 keeps none.
    pub(crate) fn new(most: usize) -> Self {
        Self(Mutex::new(Kept { most, ..Kept::default() }))
    }

    /// What was last answered under this key.
    pub(crate) fn find(&self, key: &Hash) -> Option<Entry> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.touch(key);
        kept.entries.get(key).cloned()
    }

    /// Keeps an answer in place of an earlier one, and forgets those that were not used for longest.
    pub(crate) fn keep(&self, key: Hash, asked: Asked, answer: Arc<dyn Any + Send + Sync>, weight: usize) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let weight = weight + asked.weight();
        kept.forget(&key);
        // One answer does not push out all others.
        if weight > kept.most / 8 {
            return;
        }
        kept.clock += 1;
        let used = kept.clock;
        kept.weight += weight;
        kept.by_use.insert(used, key);
        kept.entries.insert(key, Entry { asked: Arc::new(asked), answer, weight, used });
        while kept.weight > kept.most {
            let Some(oldest) = kept.by_use.first_key_value().map(|(_, key)| *key) else { return };
            kept.forget(&oldest);
        }
    }
}

// === impl Kept ===

impl Kept {
    fn touch(&mut self, key: &Hash) {
        self.clock += 1;
        if let Some(entry) = self.entries.get_mut(key) {
            self.by_use.remove(&entry.used);
            entry.used = self.clock;
            self.by_use.insert(self.clock, *key);
        }
    }

    fn forget(&mut self, key: &Hash) {
        if let Some(entry) = self.entries.remove(key) {
            self.by_use.remove(&entry.used);
            self.weight -= entry.weight;
        }
    }
}

// === impl Asked ===

impl Asked {
    /// Notes a question with its answer.
    pub(crate) fn note(&mut self, question: Question, answer: Hash) {
        self.0.push((question, answer));
    }

    /// A hash of the call's key and of what was answered, but for what the plugin kept itself; the key where it was
    /// told nothing else.
    pub(crate) fn fingerprint(&self, key: &Hash) -> Hash {
        let answers = self.0.iter().filter(|(question, _)| !matches!(question, Question::Saved));
        let mut answers = answers.map(|(_, answer)| answer).peekable();
        if answers.peek().is_none() {
            return *key;
        }
        let mut hash = Sha256::new();
        hash.update(key);
        answers.for_each(|answer| hash.update(answer));
        hash.finalize().into()
    }

    fn weight(&self) -> usize {
        let fields = |fields: &[String]| fields.iter().map(String::len).sum::<usize>();
        let questions = self.0.iter().map(|(question, _)| match question {
            Question::Owner | Question::Values | Question::Saved => 0,
            Question::Get(target, asked) => target.name.len() + fields(asked),
            Question::Find(_, asked, ..) => fields(asked),
        });
        questions.map(|bytes| bytes + 256).sum()
    }
}

/// The hash of a text that a guest was given.
pub(crate) fn hash_text(text: &str) -> Hash {
    Sha256::digest(text.as_bytes()).into()
}

/// The hash of an answer to a read, errors included: a guest that was told `not-found` was told that.
pub(crate) fn hash_read(answer: Result<Vec<&str>, &ReadError>) -> Hash {
    let mut hash = Sha256::new();
    match answer {
        Ok(parts) => {
            for part in parts {
                hash.update(part.len().to_le_bytes());
                hash.update(part);
            }
        }
        Err(error) => hash.update(format!("{error:?}")),
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    fn key(number: u8) -> Hash {
        [number; 32]
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first_and_the_whole_stays_within_its_bound() {
        let memo = Memo::new(8_000);
        for number in 0..8 {
            memo.keep(key(number), Asked::default(), Arc::new(number), 1_000);
        }
        assert!(memo.find(&key(0)).is_some());
        memo.keep(key(8), Asked::default(), Arc::new(8_u8), 1_000);
        assert!(memo.find(&key(0)).is_some(), "it was just used");
        assert!(memo.find(&key(1)).is_none());
        memo.keep(key(9), Asked::default(), Arc::new(9_u8), 1_001);
        assert!(memo.find(&key(9)).is_none(), "one answer takes no more than an eighth");
        let kept = memo.0.lock().unwrap();
        assert_eq!((kept.weight, kept.entries.len(), kept.by_use.len()), (8_000, 8, 8));
    }

    #[test]
    fn a_later_answer_replaces_the_one_before() {
        let memo = Memo::new(80_000);
        (0..100_u8).for_each(|number| memo.keep(key(1), Asked::default(), Arc::new(number), 100));
        assert_eq!(memo.find(&key(1)).unwrap().answer.downcast_ref(), Some(&99_u8));
        assert_eq!(memo.0.lock().unwrap().weight, 100);
    }
}
