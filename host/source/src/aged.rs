//! Answers of servers that are good for a while: one is asked again when its age is up, and by one caller
//! at a time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{access::Access, error::Error};

/// Answers that are kept; beyond that all are forgotten.
const MAX_KEPT: usize = 256;

/// Answers by what was asked, and as whom.
#[derive(Debug)]
pub(crate) struct Aged<T> {
    slots: Mutex<HashMap<(String, Access), Slot<T>>>,
}

type Slot<T> = Arc<tokio::sync::Mutex<Option<Kept<T>>>>;

/// An answer with its age.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    at: Instant,
    /// By which the server knows it.
    pub(crate) tag: Option<String>,
    value: Arc<T>,
}

/// What a server says when it is asked again.
pub(crate) enum Fresh<T> {
    /// As before.
    Same,
    /// Something else, and the tag it knows it by.
    New(T, Option<String>),
}

/// What is asked, as whom, at what time, and how old an answer may be.
pub(crate) struct Question<'a> {
    pub(crate) what: &'a str,
    pub(crate) access: &'a Access,
    pub(crate) now: Instant,
    pub(crate) max_age: Duration,
}

impl<T> Default for Aged<T> {
    fn default() -> Self {
        Self { slots: Mutex::default() }
    }
}

impl<T> Aged<T> {
    /// The answer, from the server where none is young enough. One that is too old is given once more when
    /// its server is away: what runs goes on.
    pub(crate) async fn get(
        &self,
        question: Question<'_>,
        ask: impl AsyncFnOnce(Option<&Kept<T>>) -> Result<Fresh<T>, Error>,
    ) -> Result<Arc<T>, Error> {
        let slot = self.slot(&question);
        let mut kept = slot.lock().await;
        let young = |kept: &&Kept<T>| question.now.saturating_duration_since(kept.at) < question.max_age;
        if let Some(kept) = kept.as_ref().filter(young) {
            return Ok(Arc::clone(&kept.value));
        }
        let asked = ask(kept.as_ref()).await;
        match (asked, kept.as_mut()) {
            (Ok(Fresh::New(value, tag)), _) => {
                let value = Arc::new(value);
                *kept = Some(Kept { at: question.now, tag, value: Arc::clone(&value) });
                Ok(value)
            }
            (Ok(Fresh::Same), Some(kept)) => Ok(kept.renewed(question.now)),
            (Err(error), Some(kept)) if error.is_transient() => {
                tracing::warn!(what = question.what, %error, "an older answer is used");
                Ok(kept.renewed(question.now))
            }
            (Ok(Fresh::Same), None) => Err(Error::Interrupted { place: question.what.to_owned() }),
            (Err(error), _) => Err(error),
        }
    }

    /// Asks anew the next time for all whose name starts like this: what was answered led to a fault, which
    /// may be mended by then.
    pub(crate) fn forget(&self, start: &str) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|(what, _), _| !what.starts_with(start));
    }

    fn slot(&self, question: &Question<'_>) -> Slot<T> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (question.what.to_owned(), question.access.clone());
        if slots.len() >= MAX_KEPT && !slots.contains_key(&key) {
            slots.clear();
        }
        Arc::clone(slots.entry(key).or_default())
    }
}

impl<T> Kept<T> {
    fn renewed(&mut self, now: Instant) -> Arc<T> {
        self.at = now;
        Arc::clone(&self.value)
    }
}
