//! Slots for calls, given in turn: a release with many calls does not keep another one waiting.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

/// A number of slots. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Slots(Arc<Mutex<Queue>>);

/// The right to run, given to the next in turn when it is dropped.
pub(crate) struct Slot(Option<Slots>);

struct Queue {
    free: usize,
    /// Releases that wait, each once, in the order of their turns.
    turns: VecDeque<Arc<str>>,
    waiting: HashMap<Arc<str>, VecDeque<oneshot::Sender<Slot>>>,
}

// === impl Slots ===

impl Slots {
    pub(crate) fn new(count: usize) -> Self {
        Self(Arc::new(Mutex::new(Queue { free: count, turns: VecDeque::new(), waiting: HashMap::new() })))
    }

    /// Waits for a slot. Among releases the turns go round; within one the first comes first.
    pub(crate) async fn take(&self, release: &str) -> Slot {
        let asked = {
            let mut queue = self.lock();
            if queue.free > 0 {
                queue.free -= 1;
                return Slot(Some(self.clone()));
            }
            queue.wait(release)
        };
        // The sender lives in the queue until a slot goes through it, so this does not fail; if it
        // did, running is better than never running.
        asked.await.unwrap_or(Slot(None))
    }

    /// Gives a slot to the next that still waits.
    fn give(&self) {
        loop {
            let next = {
                let mut queue = self.lock();
                let next = queue.next();
                queue.free += usize::from(next.is_none());
                next
            };
            let Some(next) = next else { return };
            match next.send(Slot(Some(self.clone()))) {
                Ok(()) => return,
                // It gave up waiting. Its slot must not come back here through its own end.
                Err(mut back) => drop(back.0.take()),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(slots) = self.0.take() {
            slots.give();
        }
    }
}

// === impl Queue ===

impl Queue {
    fn wait(&mut self, release: &str) -> oneshot::Receiver<Slot> {
        let (give, asked) = oneshot::channel();
        match self.waiting.get_mut(release) {
            Some(waiting) => waiting.push_back(give),
            None => {
                let release: Arc<str> = release.into();
                self.turns.push_back(Arc::clone(&release));
                self.waiting.insert(release, VecDeque::from([give]));
            }
        }
        asked
    }

    fn next(&mut self) -> Option<oneshot::Sender<Slot>> {
        let release = self.turns.pop_front()?;
        let waiting = self.waiting.get_mut(&release)?;
        let next = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&release);
        } else {
            self.turns.push_back(release);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests stop at the first surprise")]
    use std::{future::Future, pin::Pin, task::Context};

    use super::*;

    type Waiting = Pin<Box<dyn Future<Output = Slot>>>;

    fn wait(slots: &Slots, release: &'static str) -> Waiting {
        let slots = slots.clone();
        let mut waiting: Waiting = Box::pin(async move { slots.take(release).await });
        assert!(got(&mut waiting).is_none(), "there is no slot for {release} yet");
        waiting
    }

    fn got(waiting: &mut Waiting) -> Option<Slot> {
        let mut context = Context::from_waker(std::task::Waker::noop());
        match waiting.as_mut().poll(&mut context) {
            std::task::Poll::Ready(slot) => Some(slot),
            std::task::Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn a_release_with_many_calls_lets_others_have_their_turn() {
        let slots = Slots::new(1);
        let first = slots.take("greedy").await;
        let mut greedy: Vec<_> = (0..3).map(|_| wait(&slots, "greedy")).collect();
        let mut modest = wait(&slots, "modest");
        drop(first);
        let second = got(&mut greedy[0]).expect("it came first");
        assert!(got(&mut modest).is_none());
        drop(second);
        let third = got(&mut modest).expect("its turn comes before the second of the other");
        assert!(got(&mut greedy[1]).is_none());
        drop(third);
        drop(got(&mut greedy[1]).unwrap());
        drop(got(&mut greedy[2]).unwrap());
        assert_eq!(slots.lock().free, 1);
        assert!(slots.lock().waiting.is_empty() && slots.lock().turns.is_empty());
    }

    #[tokio::test]
    async fn who_gave_up_waiting_does_not_keep_a_slot() {
        let slots = Slots::new(2);
        let held = [slots.take("a").await, slots.take("a").await];
        let gone = wait(&slots, "b");
        let mut stays = wait(&slots, "c");
        drop(gone);
        drop(held);
        let slot = got(&mut stays).unwrap();
        assert_eq!(slots.lock().free, 1);
        drop(slot);
        let held = [slots.take("a").await, slots.take("a").await];
        let given_but_never_taken = wait(&slots, "b");
        drop(held);
        drop(given_but_never_taken);
        assert_eq!(slots.lock().free, 2, "a slot that was given comes back with its future");
    }
}
