//! Every interest with its store, who holds it, and since when nobody does.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use pintle_api::{Gvk, ObjectRef};
use tokio::task::AbortHandle;

use super::{
    CacheSize,
    interest::{Holder, Interest},
    store::Store,
};

#[derive(Default)]
pub(super) struct Book {
    entries: HashMap<Interest, Entry>,
    /// Stores by kind, but for those of one object.
    wide: HashMap<Gvk, Vec<Arc<Store>>>,
    /// Stores of one object, by its name; more than one where masks differ.
    named: HashMap<ObjectRef, Vec<Arc<Store>>>,
    /// How many there are of those, by kind and namespace.
    alone: HashMap<Gvk, HashMap<String, usize>>,
    held: HashMap<Holder, HashSet<Interest>>,
    /// What nobody holds, and since when.
    idle: HashMap<Interest, Instant>,
}

struct Entry {
    store: Arc<Store>,
    holders: HashSet<Holder>,
    task: AbortHandle,
}

impl Book {
    pub(super) fn store(&self, interest: &Interest) -> Option<Arc<Store>> {
        self.entries.get(interest).map(|entry| Arc::clone(&entry.store))
    }

    /// Stores of many objects of a kind.
    pub(super) fn wide(&self, gvk: &Gvk) -> Vec<Arc<Store>> {
        self.wide.get(gvk).cloned().unwrap_or_default()
    }

    /// Stores of this one object.
    pub(super) fn named(&self, target: &ObjectRef) -> Vec<Arc<Store>> {
        self.named.get(target).cloned().unwrap_or_default()
    }

    /// How many objects of a kind have a store of their own: in the namespace, and in all.
    pub(super) fn watched_alone(&self, gvk: &Gvk, namespace: Option<&str>) -> (usize, usize) {
        let Some(alone) = self.alone.get(gvk) else { return (0, 0) };
        let near = alone.get(namespace.unwrap_or_default()).copied().unwrap_or_default();
        (near, alone.values().sum())
    }

    pub(super) fn stores(&self) -> Vec<Arc<Store>> {
        self.entries.values().map(|entry| Arc::clone(&entry.store)).collect()
    }

    pub(super) fn size(&self) -> CacheSize {
        let objects = self.entries.values().map(|entry| entry.store.len()).sum();
        CacheSize { interests: self.entries.len(), objects }
    }

    /// The store of an interest, held; `start` begins to fill a new one.
    pub(super) fn hold(
        &mut self,
        interest: &Interest,
        holder: &Holder,
        start: impl FnOnce(Arc<Store>) -> AbortHandle,
    ) -> Arc<Store> {
        let Self { entries, wide, named, alone, held, idle } = self;
        let entry = entries.entry(interest.clone()).or_insert_with(|| {
            let store = Arc::new(Store::new(interest.clone()));
            match interest.object() {
                Some(object) => {
                    let namespace = object.namespace.clone().unwrap_or_default();
                    *alone.entry(interest.gvk.clone()).or_default().entry(namespace).or_default() += 1;
                    named.entry(object).or_default().push(Arc::clone(&store));
                }
                None => wide.entry(interest.gvk.clone()).or_default().push(Arc::clone(&store)),
            }
            Entry { task: start(Arc::clone(&store)), store, holders: HashSet::new() }
        });
        entry.holders.insert(holder.clone());
        idle.remove(interest);
        held.entry(holder.clone()).or_default().insert(interest.clone());
        Arc::clone(&entry.store)
    }

    /// Lets go of what the holder holds and `keep` does not name.
    pub(super) fn retain(&mut self, holder: &Holder, keep: &HashSet<Interest>) {
        let Some(held) = self.held.get_mut(holder) else { return };
        for interest in held.extract_if(|interest| !keep.contains(interest)) {
            let Some(entry) = self.entries.get_mut(&interest) else { continue };
            entry.holders.remove(holder);
            if entry.holders.is_empty() {
                self.idle.insert(interest, Instant::now());
            }
        }
        if held.is_empty() {
            self.held.remove(holder);
        }
    }

    /// Ends what nobody has held for so long.
    pub(super) fn close_idle(&mut self, linger: Duration) {
        let over: Vec<Interest> = self
            .idle
            .extract_if(|_, since| since.elapsed() >= linger)
            .map(|(interest, _)| interest)
            .collect();
        over.iter().for_each(|interest| self.close(interest));
    }

    fn close(&mut self, interest: &Interest) {
        let Some(entry) = self.entries.remove(interest) else { return };
        entry.task.abort();
        match interest.object() {
            Some(object) => {
                remove(&mut self.named, &object, &entry.store);
                self.one_less(&interest.gvk, object.namespace.as_deref().unwrap_or_default());
            }
            None => remove(&mut self.wide, &interest.gvk, &entry.store),
        }
    }

    fn one_less(&mut self, gvk: &Gvk, namespace: &str) {
        let Some(alone) = self.alone.get_mut(gvk) else { return };
        if let Some(count) = alone.get_mut(namespace) {
            *count -= 1;
        }
        alone.retain(|_, count| *count > 0);
        if alone.is_empty() {
            self.alone.remove(gvk);
        }
    }
}

impl Drop for Book {
    fn drop(&mut self) {
        self.entries.values().for_each(|entry| entry.task.abort());
    }
}

fn remove<K: Eq + std::hash::Hash>(from: &mut HashMap<K, Vec<Arc<Store>>>, key: &K, store: &Arc<Store>) {
    let Some(stores) = from.get_mut(key) else { return };
    stores.retain(|other| !Arc::ptr_eq(other, store));
    if stores.is_empty() {
        from.remove(key);
    }
}
