//! Which interest answers a read, who holds it, and when it ends.

use std::{collections::HashSet, sync::Arc, time::Duration};

use pintle_api::{Answer, Gvk, ObjectRef, Query, Read, names};

use super::{
    Caches,
    interest::{Holder, Interest},
    mask::Mask,
    selector::Selector,
    store::{Stage, Store},
    task,
};

/// How long a fetch waits for the first list of a new interest; what is not there then stays `NotYet`.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// From so many objects of a kind that are watched one by one in a namespace, the names of all are watched.
const CROWD: usize = 4;
/// The same over all namespaces.
const CROWD_OF_ALL: usize = 32;

impl Caches {
    /// Sees to it that the reads are answered: starts the watches they need, asks for logs and digests,
    /// and waits until each is answered or known to have no answer, at most 10 s. The holder holds them
    /// from here on; [`super::WatchSet::register`] lets go of those a later pass does not read.
    pub async fn fetch(&self, reads: &[Read], holder: &Holder) {
        if reads.iter().any(|read| self.is_of_unknown_kind(read)) {
            self.discovery.look_again().await;
        }
        // Lists come first: what they show needs no watch of its own.
        let (gets, others): (Vec<&Read>, Vec<&Read>) =
            reads.iter().partition(|read| matches!(read, Read::Get(_)));
        let all = async {
            self.fetch_together(&others, holder).await;
            self.fetch_together(&gets, holder).await;
        };
        if tokio::time::timeout(FETCH_TIMEOUT, all).await.is_err() {
            tracing::warn!(?holder, "some reads have no answer yet");
        }
    }

    async fn fetch_together(&self, reads: &[&Read], holder: &Holder) {
        let answered = reads.iter().map(|read| async {
            match read {
                Read::Get(target) => self.fetch_object(read, &self.normal_ref(target), holder).await,
                Read::List(_) => {
                    if let Some(store) = self.hold_for(read, holder) {
                        store.settled().await;
                    }
                }
                Read::Tail(_) | Read::Resolve(_) => self.poll(read, holder).await,
            }
        });
        futures::future::join_all(answered).await;
    }

    async fn fetch_object(&self, read: &Read, target: &ObjectRef, holder: &Holder) {
        while let Some(store) = self.hold_for(read, holder) {
            store.settled().await;
            // Names answer for what is not there; what is there, or may not be listed, is asked for alone.
            if store.interest.mask != Mask::Names || store.lacks(target) {
                return;
            }
        }
    }

    fn is_of_unknown_kind(&self, read: &Read) -> bool {
        kind_of(read).is_some_and(|gvk| !matches!(self.discovery.kind(&gvk), Answer::Found(_)))
    }

    /// The store that answers a read, held; made when there is none. `None` when the kind is not served.
    pub(super) fn hold_for(&self, read: &Read, holder: &Holder) -> Option<Arc<Store>> {
        if self.is_of_unknown_kind(read) {
            return None;
        }
        let interest = self.interest_for(read)?;
        Some(self.ensure(&interest, holder))
    }

    /// One that exists where one answers, else the narrowest that does.
    pub(super) fn interest_for(&self, read: &Read) -> Option<Interest> {
        match read {
            Read::Get(target) => Some(self.interest_for_get(&self.normal_ref(target))),
            Read::List(query) => self.interest_for_list(query),
            Read::Tail(_) | Read::Resolve(_) => None,
        }
    }

    fn interest_for_get(&self, target: &ObjectRef) -> Interest {
        let mask = self.mask_of(&target.gvk());
        let wide = self.read_book().wide(&target.gvk());
        let answers = |store: &&Arc<Store>| {
            let knows = store.is_conclusive()
                || (store.stage() == Stage::Synced
                    && store.get(target.namespace.as_deref(), &target.name).is_some());
            store.interest.mask.covers(&mask) && store.reaches(target.namespace.as_deref()) && knows
        };
        let existing = wide.iter().filter(|store| !is_denied(store)).find(answers);
        let existing = existing.map(|store| (*store.interest).clone());
        let known = existing.or_else(|| self.names_around(target));
        known.unwrap_or_else(|| Interest::of_object(target).masked(mask))
    }

    /// The names of the object's kind, where so many objects of it are asked for one by one that a watch for
    /// each would cost more.
    fn names_around(&self, target: &ObjectRef) -> Option<Interest> {
        let book = self.read_book();
        if !book.named(target).is_empty() {
            return None;
        }
        let all = Interest::all(target.gvk()).masked(Mask::Names);
        let around = target.namespace.as_deref().map_or_else(|| all.clone(), |near| all.clone().within(near));
        let (near, everywhere) = book.watched_alone(&target.gvk(), target.namespace.as_deref());
        let candidates = [(all, everywhere >= CROWD_OF_ALL), (around, near >= CROWD)];
        let is_there =
            |(interest, is_crowded): &(Interest, bool)| *is_crowded || book.store(interest).is_some();
        let (interest, _) = candidates.into_iter().find(is_there)?;
        let answers = |store: Arc<Store>| store.stage() == Stage::Starting || store.lacks(target);
        book.store(&interest).is_none_or(answers).then_some(interest)
    }

    fn interest_for_list(&self, query: &Query) -> Option<Interest> {
        let selector = Selector::parse(query.label_selector.as_deref().unwrap_or_default())?;
        let interest = self.normal(Interest::of_query(query));
        let covering = self.covering(&interest.gvk, interest.namespace.as_deref(), &selector);
        if let Some(store) = covering.iter().find(|store| !is_denied(store)) {
            return Some((*store.interest).clone());
        }
        let mask = self.mask_of(&interest.gvk);
        // Objects of one owner: one watch serves all owners.
        if selector.asks_for(names::OWNER) {
            return Some(Interest::all(interest.gvk).selecting(names::OWNER).masked(mask));
        }
        Some(interest.masked(mask))
    }

    /// Stores that hold everything the selector selects in the namespace.
    pub(super) fn covering(
        &self,
        gvk: &Gvk,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Vec<Arc<Store>> {
        let mask = self.mask_of(gvk);
        let mut wide = self.read_book().wide(gvk);
        wide.retain(|store| {
            store.reaches(namespace) && store.interest.mask.covers(&mask) && store.selector.contains(selector)
        });
        wide
    }

    pub(super) fn ensure(&self, interest: &Interest, holder: &Holder) -> Arc<Store> {
        let interest = self.normal(interest.clone());
        self.write_book().hold(&interest, holder, |store| task::start(self, store))
    }

    /// Lets go of what the holder holds and `keep` does not name.
    pub(super) fn retain(&self, holder: &Holder, keep: &HashSet<Interest>) {
        self.write_book().retain(holder, keep);
    }

    /// Lets what nobody reads take little room.
    pub(super) fn rest(&self) {
        let stores = self.read_book().stores();
        stores.iter().for_each(|store| store.rest());
    }

    /// Ends what nobody has held for the time of the linger.
    pub(super) fn close_idle(&self) {
        self.write_book().close_idle(self.linger);
    }
}

/// A narrower interest may be allowed where a wider one is denied.
fn is_denied(store: &Store) -> bool {
    matches!(store.stage(), Stage::Denied(_))
}

pub(super) fn kind_of(read: &Read) -> Option<Gvk> {
    match read {
        Read::Get(target) => Some(target.gvk()),
        Read::List(query) => Some(Gvk::new(&query.api_version, &query.kind)),
        Read::Tail(_) | Read::Resolve(_) => None,
    }
}
