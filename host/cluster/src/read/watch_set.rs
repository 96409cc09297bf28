//! Releases that wait, and what wakes them: the record of their reads is their watch set.

mod member;
mod queue;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use pintle_api::{Facts as _, Given, Object, ObjectRef, Read, Record, names};

pub use queue::{Wake, Wakes};

use super::{
    Caches,
    changes::{Changed, Listen, Seen},
    fetch::kind_of,
    fingerprint::{answer_fingerprint, object_fingerprint},
    interest::{Holder, Interest},
};
use member::{Index, Member, Now, Place};
use queue::Queue;

/// Holders by what they read. A holder is woken when an answer differs from the one it has recorded.
pub struct WatchSet {
    caches: Weak<Caches>,
    index: Mutex<Index>,
    queue: Arc<Queue>,
}

impl WatchSet {
    pub(super) fn new(caches: Weak<Caches>) -> (Arc<Self>, Wakes) {
        let queue = Arc::new(Queue::default());
        let set = Arc::new(Self { caches, index: Mutex::default(), queue: Arc::clone(&queue) });
        (set, Wakes { queue })
    }

    /// Replaces what wakes the holder with the reads of a record, and lets go of every interest the record
    /// does not need. What has changed since the record was made wakes the holder at once (D26).
    pub fn register(&self, holder: &Holder, record: &Record) {
        let Some(caches) = self.caches.upgrade() else { return };
        let reads = record.iter().map(|(read, _)| read);
        let held = reads.filter_map(|read| caches.hold_for(read, holder));
        let keep: HashSet<Interest> = held.map(|store| (*store.interest).clone()).collect();
        caches.retain(holder, &keep);
        let texts: HashSet<&Read> =
            record.iter().map(|(read, _)| read).filter(|read| !read.has_events()).collect();
        caches.polled.retain(holder, |read| texts.contains(read));
        texts.iter().for_each(|read| caches.keep_polling(read, holder));
        let member = Member::new(&caches, record);
        // What woke it during this pass is in the record, or is found by the comparison below.
        self.queue.withdraw(holder);
        self.lock().insert(holder, member);
        self.compare(&caches, holder, |_| true);
    }

    /// Forgets the holder; its interests are let go.
    pub fn remove(&self, holder: &Holder) {
        self.lock().remove(holder);
        self.queue.remove(holder);
        if let Some(caches) = self.caches.upgrade() {
            caches.release(holder);
        }
    }

    /// Wakes the holder for a reason the caches do not know: a deadline, a new spec, an annotation.
    pub fn wake(&self, holder: &Holder) {
        self.queue.push(holder.clone(), None);
    }

    /// Wakes the holder when one of its answers differs from what it was told.
    fn compare(&self, caches: &Caches, holder: &Holder, concerns: impl Fn(&Read) -> bool) {
        let told = self.lock().told(holder, concerns);
        let differs = |(read, fingerprint): &(Read, u64)| {
            let now = answer(caches, read);
            if now.is_not_yet() {
                // No news yet. A kind that was unknown has no watch; its first list is told of.
                caches.hold_for(read, holder);
                return false;
            }
            answer_fingerprint(&now) != *fingerprint
        };
        if let Some((read, _)) = told.into_iter().find(differs) {
            self.queue.push(holder.clone(), Some(read));
        }
    }

    fn object_changed(&self, changed: &Changed) {
        let Changed::Object { interest, object: target, old, new } = changed else { return };
        let Some(caches) = self.caches.upgrade() else { return };
        let mask = caches.mask_of(&interest.gvk);
        if !interest.mask.covers(&mask) {
            if old.is_some() != new.is_some() {
                self.existence_changed(&caches, target, new.as_ref().map(|seen| &*seen.object));
            }
            return;
        }
        // Reads see what the mask of the kind keeps, whatever this interest keeps.
        let narrowed = new.as_ref().filter(|_| interest.mask != mask).map(|seen| {
            let object = Arc::new(mask.apply((*seen.object).clone()));
            Seen { fingerprint: object_fingerprint(&object), object }
        });
        let seen = narrowed.as_ref().or(new.as_ref());
        let now = Now { target, object: seen.map(|seen| (&*seen.object, seen.fingerprint)) };
        let owner = |seen: &'_ Option<Seen>| -> Option<String> {
            seen.as_ref()?.object.label(names::OWNER).map(str::to_owned)
        };
        let owners: Vec<String> = [owner(old), owner(new)].into_iter().flatten().collect();
        let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
        let woken = self.lock().woken_by(&now, &owners);
        woken.into_iter().for_each(|(holder, read)| self.queue.push(holder, Some(read)));
    }

    /// Of an object that came or went no more is known than that. Whether that is another answer, the caches tell.
    fn existence_changed(&self, caches: &Caches, target: &ObjectRef, new: Option<&Object>) {
        let mask = caches.mask_of(&target.gvk());
        // What is ours comes by the watch of what is ours, or by our own write.
        let is_told_of = |object: &Object| {
            let stores = caches.wide_of(target);
            stores.iter().any(|store| store.interest.mask.covers(&mask) && store.selector.matches(object))
        };
        if new.is_some_and(is_told_of) {
            return;
        }
        let get = Read::Get(target.clone());
        let holders = self.lock().at(&Place::Object(target.clone()));
        holders.iter().for_each(|holder| self.compare(caches, holder, |read| *read == get));
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listen for WatchSet {
    fn changed(&self, changed: &Changed) {
        match changed {
            Changed::Object { .. } => self.object_changed(changed),
            Changed::Kind(gvk) => {
                let Some(caches) = self.caches.upgrade() else { return };
                let holders = self.lock().at(&Place::Kind(gvk.clone()));
                for holder in holders {
                    self.compare(&caches, &holder, |read| kind_of(read).as_ref() == Some(gvk));
                }
            }
            Changed::Text(read) => {
                let holders = self.lock().at(&Place::Text(read.clone()));
                holders.into_iter().for_each(|holder| self.queue.push(holder, Some(read.clone())));
            }
        }
    }
}

fn answer(caches: &Caches, read: &Read) -> Given {
    match read {
        Read::Get(target) => Given::Object(caches.get(target)),
        Read::List(query) => Given::Objects(caches.list(query)),
        Read::Tail(log) => Given::Text(caches.tail(log)),
        Read::Resolve(image) => Given::Text(caches.resolve(image)),
    }
}
