//! What is told when the world differs from what it was.

use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use pintle_api::{Gvk, Object, ObjectRef, Read};
use tokio::sync::mpsc;

use super::interest::Interest;

/// A difference in what the caches hold. Two of them may overtake each other; the caches are the truth.
#[derive(Clone, Debug)]
pub enum Changed {
    /// An object came, changed in more than its resourceVersion, or went.
    Object {
        /// Who saw it; another interest may tell of the same change.
        interest: Arc<Interest>,
        /// Which.
        object: ObjectRef,
        /// As it was; absent when nobody knew it.
        old: Option<Seen>,
        /// As it is; absent when it is gone.
        new: Option<Seen>,
    },
    /// Answers about this kind may be others: it came or went, a right came or went, a watch is complete.
    Kind(Gvk),
    /// The answer to a log or a registry is another.
    Text(Read),
}

/// An object as the caches keep it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What the mask kept of it.
    pub object: Arc<Object>,
    /// See [`super::object_fingerprint`].
    pub fingerprint: u64,
}

/// Changes from the moment of subscription; none is lost, however slow the reader.
#[derive(Debug)]
pub struct Changes {
    receiver: mpsc::UnboundedReceiver<Changed>,
    // Keeps the sending half registered for as long as the reader lives.
    _listener: Arc<Channel>,
}

/// Told of each change, at once and on the thread that saw it.
pub(super) trait Listen: Send + Sync {
    fn changed(&self, changed: &Changed);
}

/// Everybody who listens.
#[derive(Default)]
pub(super) struct Listeners {
    all: RwLock<Vec<Weak<dyn Listen>>>,
}

#[derive(Debug)]
struct Channel {
    sender: Mutex<mpsc::UnboundedSender<Changed>>,
}

impl Changes {
    /// The next change; waits for it.
    pub async fn next(&mut self) -> Option<Changed> {
        self.receiver.recv().await
    }
}

impl Listen for Channel {
    fn changed(&self, changed: &Changed) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        // Fails only in the moment in which the reader goes.
        let _ = sender.send(changed.clone());
    }
}

impl Listeners {
    pub(super) fn add(&self, listener: &Arc<impl Listen + 'static>) {
        let listener: Arc<dyn Listen> = Arc::clone(listener) as Arc<dyn Listen>;
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|listener| listener.strong_count() > 0);
        all.push(Arc::downgrade(&listener));
    }

    pub(super) fn subscribe(&self) -> Changes {
        let (sender, receiver) = mpsc::unbounded_channel();
        let listener = Arc::new(Channel { sender: Mutex::new(sender) });
        self.add(&listener);
        Changes { receiver, _listener: listener }
    }

    pub(super) fn tell(&self, changed: &Changed) {
        let all: Vec<_> = self.all.read().unwrap_or_else(PoisonError::into_inner).clone();
        all.iter().filter_map(Weak::upgrade).for_each(|listener| listener.changed(changed));
    }
}
