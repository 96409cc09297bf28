//! What is known of one interest: objects by name, told apart by resourceVersion and uid.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use pintle_api::{Object, ObjectRef, names};
use tokio::sync::watch;

use super::{
    changes::{Changed, Seen},
    fingerprint::object_fingerprint,
    interest::Interest,
    selector::Selector,
    slot::{Slot, version_of},
};

/// The uid of a deleted object is remembered this long: an event that is older than the deletion arrives
/// well before.
const REMEMBER: Duration = Duration::from_secs(600);

/// Namespace (empty for cluster scope) and name.
type Key = (String, String);

/// How far an interest is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its first list is not complete.
    Starting,
    /// It knows every object.
    Synced,
    /// The server refuses; the text says which rule is missing, or what is wrong with the selector.
    Denied(Arc<str>),
    /// The server does not serve the kind.
    KindUnknown,
}

pub(super) struct Store {
    pub(super) interest: Arc<Interest>,
    pub(super) selector: Selector,
    state: Mutex<State>,
    stage: watch::Sender<Stage>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Key, Slot>,
    /// Keys by the owner label, since most lists ask for one owner of a thousand.
    owned: HashMap<String, BTreeSet<Key>>,
    /// uids of what was deleted, by us or as told.
    gone: HashMap<String, Instant>,
    /// Keys of the list that is under way.
    listing: Option<HashSet<Key>>,
}

// === impl Store ===

impl Store {
    pub(super) fn new(interest: Interest) -> Self {
        let selector = interest.parsed_selector();
        let (stage, _) = watch::channel(Stage::Starting);
        Self { interest: Arc::new(interest), selector, state: Mutex::default(), stage }
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage.borrow().clone()
    }

    /// True when it is another stage than before.
    pub(super) fn enter(&self, stage: Stage) -> bool {
        self.stage.send_if_modified(|now| {
            let differs = *now != stage;
            *now = stage;
            differs
        })
    }

    /// Waits until the first list is complete or it is known why there will be none.
    pub(super) async fn settled(&self) -> Stage {
        let mut stages = self.stage.subscribe();
        stages
            .wait_for(|stage| *stage != Stage::Starting)
            .await
            .map_or(Stage::Starting, |stage| stage.clone())
    }

    /// True when the interest would hold an object of this name, selectors aside.
    pub(super) fn may_hold(&self, namespace: Option<&str>, name: &str) -> bool {
        self.interest.name.as_deref().is_none_or(|own| own == name) && self.reaches(namespace)
    }

    /// True when it watches the namespace; `None` means all.
    pub(super) fn reaches(&self, namespace: Option<&str>) -> bool {
        self.interest.namespace.is_none() || self.interest.namespace.as_deref() == namespace
    }

    /// True when an object it does not know does not exist.
    pub(super) fn is_conclusive(&self) -> bool {
        self.selector.is_empty()
    }

    /// True when it knows that there is no such object.
    pub(super) fn lacks(&self, target: &ObjectRef) -> bool {
        let namespace = target.namespace.as_deref();
        self.is_conclusive()
            && *self.stage.borrow() == Stage::Synced
            && self.may_hold(namespace, &target.name)
            && self.get(namespace, &target.name).is_none()
    }

    pub(super) fn get(&self, namespace: Option<&str>, name: &str) -> Option<(Arc<Object>, u64)> {
        let key = (namespace.unwrap_or_default().to_owned(), name.to_owned());
        let mut state = self.lock();
        let slot = state.objects.get_mut(&key)?;
        Some((slot.object()?, slot.version().unwrap_or_default()))
    }

    /// Sorted by namespace and name.
    pub(super) fn list(&self, namespace: Option<&str>, selector: &Selector) -> Vec<Arc<Object>> {
        let mut state = self.lock();
        let State { objects, owned, .. } = &mut *state;
        let is_here = |(place, _): &Key| namespace.is_none_or(|namespace| place == namespace);
        let wanted = |slot: &mut Slot| slot.object().filter(|object| selector.matches(object));
        match selector.value_of(names::OWNER) {
            Some(owner) => {
                let keys = owned.get(owner).into_iter().flatten().filter(|key| is_here(key));
                keys.filter_map(|key| wanted(objects.get_mut(key)?)).collect()
            }
            None => {
                let here = objects.iter_mut().filter(|(key, _)| is_here(key));
                here.filter_map(|(_, slot)| wanted(slot)).collect()
            }
        }
    }

    /// Those of a namespace whose names begin so, by name.
    pub(super) fn list_named(&self, namespace: &str, beginning: &str) -> Vec<Arc<Object>> {
        let mut state = self.lock();
        let from = (namespace.to_owned(), beginning.to_owned());
        let named = state
            .objects
            .range_mut(from..)
            .take_while(|((place, name), _)| place == namespace && name.starts_with(beginning));
        named.filter_map(|(_, slot)| slot.object()).collect()
    }

    /// Lets what nobody reads take little room.
    pub(super) fn rest(&self) {
        self.lock().objects.values_mut().for_each(Slot::rest);
    }

    pub(super) fn len(&self) -> usize {
        self.lock().objects.len()
    }

    /// Takes an object over unless something newer is known. One that does not match the selector (any
    /// more) is dropped.
    pub(super) fn put(&self, object: &Object) -> Option<Changed> {
        if !self.may_hold(object.namespace(), object.name()) {
            return None;
        }
        let mut state = self.lock();
        let key = key_of(object);
        if object.uid().is_some_and(|uid| state.gone.contains_key(uid)) {
            return None;
        }
        if let Some(listing) = &mut state.listing {
            listing.insert(key.clone());
        }
        let version = version_of(object);
        if let Some(old) = state.objects.get(&key)
            && old.is_newer_than(version)
        {
            return None;
        }
        if !self.selector.matches(object) {
            let old = state.remove(&key)?;
            let new = self.seen(object);
            return Some(self.changed(object.reference(), Some(old), Some(new)));
        }
        let new = self.seen(object);
        let old = state.insert(key, &new);
        let same = old.as_ref().is_some_and(|old| old.fingerprint == new.fingerprint);
        (!same).then(|| self.changed(object.reference(), old, Some(new)))
    }

    /// Drops the object with this uid and does not take it over again from an older event.
    pub(super) fn forget(&self, target: &ObjectRef, uid: &str) -> Option<Changed> {
        if !self.may_hold(target.namespace.as_deref(), &target.name) {
            return None;
        }
        let mut state = self.lock();
        state.gone.insert(uid.to_owned(), Instant::now());
        let key = (target.namespace.clone().unwrap_or_default(), target.name.clone());
        let known = state.objects.get_mut(&key).and_then(Slot::object);
        let is_it = known.is_some_and(|object| object.uid() == Some(uid));
        let old = if is_it { state.remove(&key) } else { None };
        old.map(|old| self.changed(target.clone(), Some(old), None))
    }

    /// Drops what left the selector, unless it came back by now; `live` is how it was seen last.
    pub(super) fn leave(&self, live: &Object) -> Option<Changed> {
        let mut state = self.lock();
        let key = key_of(live);
        if state.objects.get(&key).is_some_and(|slot| slot.is_newer_than(version_of(live))) {
            return None;
        }
        let old = state.remove(&key)?;
        Some(self.changed(live.reference(), Some(old), Some(self.seen(live))))
    }

    /// True when it is known as alive: an event of its deletion is news.
    pub(super) fn knows(&self, object: &Object) -> bool {
        let known = self.lock().objects.get_mut(&key_of(object)).and_then(Slot::object);
        known.is_some_and(|known| known.uid() == object.uid())
    }

    pub(super) fn begin(&self) {
        self.lock().listing = Some(HashSet::new());
    }

    /// What the list of this version does not name although it would; our own later writes are not among it.
    pub(super) fn unlisted(&self, version: &str) -> Vec<Arc<Object>> {
        let version = version.parse().ok();
        let mut state = self.lock();
        state.gone.retain(|_, at| at.elapsed() < REMEMBER);
        let Some(listing) = state.listing.take() else { return Vec::new() };
        let absent = state
            .objects
            .iter_mut()
            .filter(|(key, slot)| !listing.contains(*key) && !slot.is_newer_than(version));
        absent.filter_map(|(_, slot)| slot.object()).collect()
    }

    fn changed(&self, object: ObjectRef, old: Option<Seen>, new: Option<Seen>) -> Changed {
        Changed::Object { interest: Arc::clone(&self.interest), object, old, new }
    }

    fn seen(&self, object: &Object) -> Seen {
        let object = Arc::new(self.interest.mask.apply(object.clone()));
        Seen { fingerprint: object_fingerprint(&object), object }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    fn insert(&mut self, key: Key, seen: &Seen) -> Option<Seen> {
        let old = self.remove(&key);
        if let Some(owner) = seen.object.label(names::OWNER) {
            self.owned.entry(owner.to_owned()).or_default().insert(key.clone());
        }
        self.objects.insert(key, Slot::new(seen.clone()));
        old
    }

    fn remove(&mut self, key: &Key) -> Option<Seen> {
        let old = self.objects.remove(key)?.seen()?;
        if let Some(owner) = old.object.label(names::OWNER)
            && let Some(keys) = self.owned.get_mut(owner)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.owned.remove(owner);
            }
        }
        Some(old)
    }
}

fn key_of(object: &Object) -> Key {
    (object.namespace().unwrap_or_default().to_owned(), object.name().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use pintle_api::Gvk;
    use serde_json::json;

    use super::*;

    fn map(name: &str, uid: &str, version: u64, owner: &str) -> Object {
        let metadata = json!({"name": name, "namespace": "n", "uid": uid, "resourceVersion": version.to_string(),
                              "labels": {"pintle.dev/owner": owner}});
        Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).unwrap()
    }

    fn store(selector: &str) -> Store {
        Store::new(Interest::all(Gvk::new("v1", "ConfigMap")).selecting(selector))
    }

    #[test]
    fn an_older_event_never_replaces_what_our_write_returned() {
        let store = store("pintle.dev/owner");
        assert!(store.put(&map("a", "1", 7, "x")).is_some());
        assert!(store.put(&map("a", "1", 5, "y")).is_none());
        assert_eq!(store.get(Some("n"), "a").unwrap().1, 7);
    }

    #[test]
    fn a_new_version_alone_is_no_change() {
        let store = store("pintle.dev/owner");
        store.put(&map("a", "1", 7, "x"));
        assert!(store.put(&map("a", "1", 8, "x")).is_none());
        assert_eq!(store.get(Some("n"), "a").unwrap().1, 8);
    }

    #[test]
    fn a_deleted_object_does_not_come_back_from_an_older_event_and_its_successor_does() {
        let store = store("pintle.dev/owner");
        let object = map("a", "1", 7, "x");
        store.put(&object);
        assert!(store.forget(&object.reference(), "1").is_some());
        assert!(store.put(&map("a", "1", 9, "x")).is_none());
        assert!(store.put(&map("a", "2", 10, "x")).is_some());
    }

    #[test]
    fn a_list_drops_what_it_does_not_name_but_not_what_was_written_since() {
        let store = store("pintle.dev/owner");
        store.put(&map("old", "1", 5, "x"));
        store.begin();
        store.put(&map("listed", "2", 6, "x"));
        store.put(&map("written", "3", 12, "x"));
        let written_before_the_list_began = map("early", "4", 11, "x");
        store.begin();
        store.put(&map("listed", "2", 6, "x"));
        store.put(&written_before_the_list_began);
        let unlisted: Vec<String> =
            store.unlisted("10").iter().map(|object| object.name().to_owned()).collect();
        assert_eq!(unlisted, ["old"]);
    }

    #[test]
    fn names_that_begin_so_are_listed_of_one_namespace_without_the_others() {
        let store = store("");
        for name in ["a.v1", "a.v2", "a", "ab.v1", "b.v1"] {
            store.put(&map(name, name, 5, "x"));
        }
        let names = |namespace: &str, beginning: &str| -> Vec<String> {
            let listed = store.list_named(namespace, beginning);
            listed.iter().map(|object| object.name().to_owned()).collect()
        };
        assert_eq!(names("n", "a.v"), ["a.v1", "a.v2"]);
        assert!(names("m", "a.v").is_empty() && names("n", "c").is_empty());
    }

    #[test]
    fn one_owner_is_listed_without_the_others() {
        let store = store("pintle.dev/owner");
        store.put(&map("a", "1", 5, "x"));
        store.put(&map("b", "2", 6, "y"));
        let selector = Selector::parse("pintle.dev/owner=y").unwrap();
        assert_eq!(store.list(None, &selector).len(), 1);
        store.put(&map("b", "2", 7, "x"));
        assert!(store.list(None, &selector).is_empty());
    }
}
