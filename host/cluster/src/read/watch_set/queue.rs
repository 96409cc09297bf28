//! Who waits to be evaluated again: each once, in the order of the first wake.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pintle_api::Read;
use tokio::sync::Notify;

use crate::read::interest::Holder;

/// Who is to be evaluated again, each once however often it was woken.
pub struct Wakes {
    pub(super) queue: Arc<Queue>,
}

/// A holder whose reads have other answers now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// Who.
    pub holder: Holder,
    /// The first read whose answer differs, for logs and `pintle why`; absent after
    /// [`super::WatchSet::wake`].
    pub because: Option<Read>,
}

#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    notify: Notify,
}

#[derive(Default)]
struct Waiting {
    order: VecDeque<Holder>,
    because: HashMap<Holder, Option<Read>>,
}

// === impl Wakes ===

impl Wakes {
    /// The next holder to be evaluated; waits for it.
    pub async fn next(&mut self) -> Wake {
        loop {
            let notified = self.queue.notify.notified();
            if let Some(wake) = self.queue.pop() {
                return wake;
            }
            notified.await;
        }
    }

    /// The next holder, when there is one now.
    pub fn try_next(&mut self) -> Option<Wake> {
        self.queue.pop()
    }
}

impl Queue {
    pub(super) fn push(&self, holder: Holder, because: Option<Read>) {
        let mut waiting = self.lock();
        match waiting.because.get_mut(&holder) {
            // A wake without a read is never withdrawn.
            Some(known) if because.is_none() => *known = None,
            Some(_) => {}
            None => {
                waiting.order.push_back(holder.clone());
                waiting.because.insert(holder, because);
            }
        }
        drop(waiting);
        self.notify.notify_one();
    }

    fn pop(&self) -> Option<Wake> {
        let mut waiting = self.lock();
        let holder = waiting.order.pop_front()?;
        let because = waiting.because.remove(&holder)?;
        Some(Wake { holder, because })
    }

    /// Takes back a wake for a read.
    pub(super) fn withdraw(&self, holder: &Holder) {
        if matches!(self.lock().because.get(holder), Some(Some(_))) {
            self.remove(holder);
        }
    }

    pub(super) fn remove(&self, holder: &Holder) {
        let mut waiting = self.lock();
        if waiting.because.remove(holder).is_some() {
            waiting.order.retain(|other| other != holder);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
