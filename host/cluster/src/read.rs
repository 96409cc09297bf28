//! The one way to read the cluster: watches of our own that answer [`Facts`] at once.
//!
//! An [`Interest`] is a set of objects watched as one; whoever reads holds it, and it ends a while after
//! the last holder let go. What a write returned is put in at once, so that the next read sees it.

mod book;
mod changes;
mod fetch;
mod fingerprint;
mod informer;
mod interest;
mod mask;
mod polled;
mod selector;
mod slot;
mod store;
mod task;
mod watch_set;

use std::{
    collections::HashSet,
    sync::{Arc, PoisonError, RwLock, Weak},
    time::Duration,
};

use async_trait::async_trait;
use pintle_api::{Answer, Facts, Gvk, LogTail, Object, ObjectRef, Query, Read};

pub use changes::{Changed, Changes, Seen};
pub use fingerprint::{answer_fingerprint, object_fingerprint};
pub(crate) use informer::{Sink, Source, follow};
pub use interest::{Holder, Interest};
pub use mask::{Mask, Masks};
pub use store::Stage;
pub use watch_set::{Wake, Wakes, WatchSet};

use book::Book;
use changes::Listeners;
use polled::Polled;
use selector::Selector;
use store::Store;

use crate::{
    discovery::{Discovery, Served},
    link::Link,
};

/// Asks registries for the digest of an image.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// `Found` with `sha256:…`, `Missing` when the registry has no such image, `Denied` with the reason.
    async fn resolve(&self, image: &str) -> Answer<String>;
}

/// Answers reads from watches. Nothing is watched until it is asked for.
pub struct Caches {
    link: Arc<Link>,
    discovery: Arc<Discovery>,
    masks: RwLock<Masks>,
    resolver: Option<Arc<dyn Resolve>>,
    linger: Duration,
    listeners: Listeners,
    book: RwLock<Book>,
    polled: Polled,
    /// What the tasks hold: they end with the caches.
    myself: Weak<Self>,
}

/// What the caches weigh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheSize {
    /// Watches.
    pub interests: usize,
    /// Objects in them; one that is in two counts twice.
    pub objects: usize,
}

// === impl Caches ===

impl Caches {
    pub(crate) fn new(
        link: Arc<Link>,
        discovery: Arc<Discovery>,
        masks: Masks,
        resolver: Option<Arc<dyn Resolve>>,
        linger: Duration,
    ) -> Arc<Self> {
        let caches = Arc::new_cyclic(|myself| {
            let (listeners, book, polled) = Default::default();
            let masks = RwLock::new(masks);
            let myself = Weak::clone(myself);
            Self { link, discovery, masks, resolver, linger, listeners, book, polled, myself }
        });
        task::start_housekeeping(&caches);
        caches
    }

    /// From now on reads of a kind, of whatever version, see these fields as well.
    pub fn widen(&self, group: &str, kind: &str, mask: &Mask) {
        let widened = self.masks.write().unwrap_or_else(PoisonError::into_inner).widen(group, kind, mask);
        if !widened {
            return;
        }
        let kinds = self.discovery.kinds();
        let kinds =
            kinds.iter().map(|served| &served.gvk).filter(|gvk| gvk.group == group && gvk.kind == kind);
        kinds.for_each(|gvk| self.listeners.tell(&Changed::Kind(gvk.clone())));
    }

    /// What reads of a kind see.
    fn mask_of(&self, gvk: &Gvk) -> Mask {
        self.masks.read().unwrap_or_else(PoisonError::into_inner).of(gvk)
    }

    /// Starts to watch, if nobody does yet, and keeps watching while held. [`Caches::settled`] waits for
    /// the first list.
    pub fn hold(&self, interest: &Interest, holder: &Holder) {
        self.ensure(interest, holder);
    }

    /// Lets go of everything the holder holds.
    pub fn release(&self, holder: &Holder) {
        self.retain(holder, &HashSet::new());
        self.polled.retain(holder, |_| false);
    }

    /// How far an interest is; `None` when nobody ever held it.
    #[must_use]
    pub fn stage(&self, interest: &Interest) -> Option<Stage> {
        let interest = self.normal(interest.clone());
        self.read_book().store(&interest).map(|store| store.stage())
    }

    /// Waits until the first list of an interest is complete, or it is known why there will be none.
    /// `None` when nobody holds it.
    pub async fn settled(&self, interest: &Interest) -> Option<Stage> {
        let interest = self.normal(interest.clone());
        let store = self.read_book().store(&interest)?;
        Some(store.settled().await)
    }

    /// Every object of one interest, masked as it says, sorted by namespace and name.
    #[must_use]
    pub fn objects(&self, interest: &Interest) -> Answer<Vec<Arc<Object>>> {
        self.of_interest(interest, |store| store.list(None, &Selector::default()))
    }

    /// Those objects of an interest that are in a namespace and whose names begin so, sorted by name; however many
    /// others there are.
    #[must_use]
    pub fn objects_named(
        &self,
        interest: &Interest,
        namespace: &str,
        beginning: &str,
    ) -> Answer<Vec<Arc<Object>>> {
        self.of_interest(interest, |store| store.list_named(namespace, beginning))
    }

    fn of_interest<T>(&self, interest: &Interest, read: impl FnOnce(&Store) -> T) -> Answer<T> {
        let interest = self.normal(interest.clone());
        let Some(store) = self.read_book().store(&interest) else { return Answer::NotYet };
        match store.stage() {
            Stage::Starting => Answer::NotYet,
            Stage::Synced => Answer::Found(read(&store)),
            Stage::Denied(why) => Answer::Denied(why.to_string()),
            Stage::KindUnknown => Answer::KindUnknown,
        }
    }

    /// Every change from now on, in all interests.
    #[must_use]
    pub fn subscribe(&self) -> Changes {
        self.listeners.subscribe()
    }

    /// A set of releases that are woken when what they read changes, and the queue of wakes.
    #[must_use]
    pub fn watch_set(&self) -> (Arc<WatchSet>, Wakes) {
        let (set, wakes) = WatchSet::new(Weak::clone(&self.myself));
        self.listeners.add(&set);
        (set, wakes)
    }

    /// What the caches weigh.
    #[must_use]
    pub fn size(&self) -> CacheSize {
        self.read_book().size()
    }

    /// Shows the answer of a write to every store it belongs to.
    pub(crate) fn put(&self, object: &Object) {
        let stores = self.stores_of(&object.reference());
        self.tell_all(stores.iter().filter_map(|store| store.put(object)).collect());
    }

    /// Tells every store that the object with this uid is gone.
    pub(crate) fn forget(&self, target: &ObjectRef, uid: &str) {
        let stores = self.stores_of(target);
        self.tell_all(stores.iter().filter_map(|store| store.forget(target, uid)).collect());
    }

    /// Told once all stores know: who hears of it may read any of them.
    fn tell_all(&self, changes: Vec<Changed>) {
        changes.iter().for_each(|changed| self.listeners.tell(changed));
    }

    /// Stores of many objects that may hold the object.
    fn wide_of(&self, target: &ObjectRef) -> Vec<Arc<Store>> {
        let mut stores = self.read_book().wide(&target.gvk());
        stores.retain(|store| store.reaches(target.namespace.as_deref()));
        stores
    }

    /// Every store that may hold the object.
    fn stores_of(&self, target: &ObjectRef) -> Vec<Arc<Store>> {
        let mut stores = self.wide_of(target);
        stores.extend(self.read_book().named(target));
        stores
    }

    /// The name as the caches know it: without a namespace where the kind has none.
    fn normal_ref(&self, target: &ObjectRef) -> ObjectRef {
        match self.discovery.kind(&target.gvk()) {
            Answer::Found(served) if !served.namespaced => ObjectRef { namespace: None, ..target.clone() },
            _ => target.clone(),
        }
    }

    fn normal(&self, mut interest: Interest) -> Interest {
        if let Answer::Found(served) = self.discovery.kind(&interest.gvk)
            && !served.namespaced
        {
            interest.namespace = None;
        }
        interest
    }

    /// The kind, or the answer there is without it.
    fn kind<T>(&self, gvk: &Gvk) -> Result<Arc<Served>, Answer<T>> {
        match self.discovery.kind(gvk) {
            Answer::Found(served) => Ok(served),
            Answer::KindUnknown => Err(Answer::KindUnknown),
            _ => Err(Answer::NotYet),
        }
    }

    fn read_book(&self) -> std::sync::RwLockReadGuard<'_, Book> {
        self.book.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_book(&self) -> std::sync::RwLockWriteGuard<'_, Book> {
        self.book.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Facts for Caches {
    fn get(&self, target: &ObjectRef) -> Answer<Arc<Object>> {
        match self.kind(&target.gvk()) {
            Err(answer) => return answer,
            Ok(served) if served.namespaced && target.namespace.is_none() => {
                return Answer::Denied(format!("{target} is read without a namespace, and its kind has one"));
            }
            Ok(_) => {}
        }
        let target = self.normal_ref(target);
        let mask = self.mask_of(&target.gvk());
        let mut newest: Option<(Arc<Object>, u64)> = None;
        let mut otherwise = Answer::NotYet;
        for store in self.stores_of(&target) {
            let shows = store.interest.mask.covers(&mask);
            match store.stage() {
                Stage::Synced => match store.get(target.namespace.as_deref(), &target.name) {
                    Some(_) if !shows => {}
                    Some((object, version))
                        if newest.as_ref().is_none_or(|(_, newest)| version > *newest) =>
                    {
                        newest = Some((narrowed(&store, &mask, object), version));
                    }
                    Some(_) => {}
                    None if store.is_conclusive() => otherwise = Answer::Missing,
                    None => {}
                },
                Stage::Denied(why) if shows && store.is_conclusive() && otherwise.is_not_yet() => {
                    otherwise = Answer::Denied(why.to_string());
                }
                _ => {}
            }
        }
        newest.map_or(otherwise, |(object, _)| Answer::Found(object))
    }

    fn list(&self, query: &Query) -> Answer<Vec<Arc<Object>>> {
        let gvk = Gvk::new(&query.api_version, &query.kind);
        let served = match self.kind(&gvk) {
            Ok(served) => served,
            Err(answer) => return answer,
        };
        let Some(selector) = Selector::parse(query.label_selector.as_deref().unwrap_or_default()) else {
            return Answer::Denied(no_selector(query));
        };
        let namespace = query.namespace.as_deref().filter(|_| served.namespaced);
        let mut otherwise = Answer::NotYet;
        for store in self.covering(&gvk, namespace, &selector) {
            match store.stage() {
                Stage::Synced => {
                    let objects = store.list(namespace, &selector).into_iter();
                    let mask = self.mask_of(&gvk);
                    return Answer::Found(objects.map(|object| narrowed(&store, &mask, object)).collect());
                }
                Stage::Denied(why) => otherwise = Answer::Denied(why.to_string()),
                Stage::Starting | Stage::KindUnknown => {}
            }
        }
        otherwise
    }

    fn tail(&self, log: &LogTail) -> Answer<String> {
        self.polled.answer(&Read::Tail(log.clone()))
    }

    fn resolve(&self, image: &str) -> Answer<String> {
        if self.resolver.is_none() {
            return Answer::Denied(no_resolver(image));
        }
        self.polled.answer(&Read::Resolve(image.to_owned()))
    }
}

/// The object as reads of its kind see it, where the store keeps more.
fn narrowed(store: &Store, mask: &Mask, object: Arc<Object>) -> Arc<Object> {
    if store.interest.mask == *mask { object } else { Arc::new(mask.apply((*object).clone())) }
}

fn no_selector(query: &Query) -> String {
    format!("{:?} is no label selector", query.label_selector.as_deref().unwrap_or_default())
}

fn no_resolver(image: &str) -> String {
    format!("no registry is asked for {image}: this process has no registry credentials")
}
