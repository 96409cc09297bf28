//! Who is to be looked at next: each key once, never twice at the same time.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

/// A queue of keys with times. A key that is asked for again keeps its earlier time; one that is
/// asked for while it is worked on comes again afterwards.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    inner: Mutex<Inner<K>>,
    changed: Notify,
}

#[derive(Debug)]
struct Inner<K> {
    due: BTreeSet<(Instant, u64)>,
    ticket_to_key: HashMap<u64, K>,
    slots: HashMap<K, Slot>,
    next_ticket: u64,
    is_closed: bool,
}

#[derive(Debug, Default)]
struct Slot {
    waiting: Option<(Instant, u64)>,
    is_running: bool,
    again_at: Option<Instant>,
}

// === impl Queue ===

impl<K: Clone + Eq + Hash> Queue<K> {
    pub(crate) fn new() -> Self {
        let inner = Inner {
            due: BTreeSet::new(),
            ticket_to_key: HashMap::new(),
            slots: HashMap::new(),
            next_ticket: 0,
            is_closed: false,
        };
        Self { inner: Mutex::new(inner), changed: Notify::new() }
    }

    /// Asks for a key at once.
    pub(crate) fn wake(&self, key: K) {
        self.wake_after(key, Duration::ZERO);
    }

    /// Asks for a key after a time; an earlier time that was asked for stays.
    pub(crate) fn wake_after(&self, key: K, delay: Duration) {
        let at = Instant::now() + delay;
        self.lock().schedule(key, at);
        self.changed.notify_one();
    }

    /// The next key that is due; nothing once the queue is closed. The key counts as worked on until
    /// [`Queue::done`].
    pub(crate) async fn next(&self) -> Option<K> {
        loop {
            let notified = self.changed.notified();
            let wait = match self.lock().take_due(Instant::now()) {
                Taken::Closed => {
                    self.changed.notify_one();
                    return None;
                }
                Taken::Key(key) => {
                    self.changed.notify_one();
                    return Some(key);
                }
                Taken::Wait(at) => at,
            };
            match wait {
                None => notified.await,
                Some(at) => {
                    let _ = tokio::time::timeout_at(at, notified).await;
                }
            }
        }
    }

    /// Ends the work on a key; it comes again when it was asked for meanwhile, or after `again`.
    pub(crate) fn done(&self, key: &K, again: Option<Duration>) {
        self.lock().finish(key, again.map(|delay| Instant::now() + delay));
        self.changed.notify_one();
    }

    /// Lets nobody take a key any more.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Waits until the queue is closed.
    pub(crate) async fn closed(&self) {
        // Only waited for while a chart is rendered, so that a signal of its own would cost more than this.
        while !self.lock().is_closed {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Keys that wait for their time or are worked on.
    pub(crate) fn len(&self) -> usize {
        self.lock().slots.len()
    }

    fn lock(&self) -> MutexGuard<'_, Inner<K>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Taken<K> {
    Closed,
    Key(K),
    Wait(Option<Instant>),
}

// === impl Inner ===

impl<K: Clone + Eq + Hash> Inner<K> {
    fn schedule(&mut self, key: K, at: Instant) {
        let ticket = self.next_ticket;
        let slot = self.slots.entry(key.clone()).or_default();
        if slot.is_running {
            slot.again_at = Some(slot.again_at.map_or(at, |earlier| earlier.min(at)));
            return;
        }
        if let Some(waiting) = slot.waiting {
            if waiting.0 <= at {
                return;
            }
            self.due.remove(&waiting);
            self.ticket_to_key.remove(&waiting.1);
        }
        slot.waiting = Some((at, ticket));
        self.next_ticket += 1;
        self.due.insert((at, ticket));
        self.ticket_to_key.insert(ticket, key);
    }

    fn take_due(&mut self, now: Instant) -> Taken<K> {
        if self.is_closed {
            return Taken::Closed;
        }
        let Some(first) = self.due.first().copied() else { return Taken::Wait(None) };
        if first.0 > now {
            return Taken::Wait(Some(first.0));
        }
        self.due.remove(&first);
        let Some(key) = self.ticket_to_key.remove(&first.1) else { return Taken::Wait(Some(now)) };
        let slot = self.slots.entry(key.clone()).or_default();
        slot.waiting = None;
        slot.is_running = true;
        Taken::Key(key)
    }

    fn finish(&mut self, key: &K, again: Option<Instant>) {
        let Some(slot) = self.slots.remove(key) else { return };
        let at = match (slot.again_at, again) {
            (Some(asked), Some(again)) => Some(asked.min(again)),
            (asked, again) => asked.or(again),
        };
        if let Some(at) = at {
            self.schedule(key.clone(), at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_earlier_time_wins_and_a_key_is_given_once() {
        let queue = Queue::new();
        queue.wake_after("a", Duration::from_secs(9));
        queue.wake_after("a", Duration::from_secs(1));
        queue.wake_after("a", Duration::from_secs(5));
        let start = Instant::now();
        assert_eq!(queue.next().await, Some("a"));
        assert_eq!(start.elapsed(), Duration::from_secs(1));
        queue.done(&"a", None);
        assert_eq!(queue.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_asked_for_while_it_runs_comes_again_and_never_beside_itself() {
        let queue = Queue::new();
        queue.wake("a");
        assert_eq!(queue.next().await, Some("a"));
        queue.wake("a");
        let beside = tokio::time::timeout(Duration::from_secs(60), queue.next()).await;
        assert!(beside.is_err());
        queue.done(&"a", Some(Duration::from_secs(30)));
        let start = Instant::now();
        assert_eq!(queue.next().await, Some("a"));
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn closing_ends_all_who_wait() {
        let queue = std::sync::Arc::new(Queue::<u8>::new());
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let queue = std::sync::Arc::clone(&queue);
                tokio::spawn(async move { queue.next().await })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.close();
        for waiter in waiters {
            assert_eq!(waiter.await.ok().flatten(), None);
        }
    }
}
