//! Releases that wait, and what wakes them: the record of their reads is their watch set.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use pintle_api::{Answer, Facts as _, Given, Gvk, Object, ObjectRef, Read, Record, names};
use tokio::sync::Notify;

use super::{
    Caches,
    changes::{Changed, Listen},
    fetch::kind_of,
    fingerprint::{answer_fingerprint, object_fingerprint},
    interest::{Holder, Interest},
    selector::Selector,
};

/// Holders by what they read. A holder is woken when an answer differs from the one it has recorded.
pub struct WatchSet {
    caches: Weak<Caches>,
    index: Mutex<Index>,
    queue: Arc<Queue>,
}

/// Who is to be evaluated again, each once however often it was woken.
pub struct Wakes {
    queue: Arc<Queue>,
}

/// A holder whose reads have other answers now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// Who.
    pub holder: Holder,
    /// The first read whose answer differs, for logs and `pintle why`; absent after [`WatchSet::wake`].
    pub because: Option<Read>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    notify: Notify,
}

/// In the order of the first wake.
#[derive(Default)]
struct Waiting {
    order: std::collections::VecDeque<Holder>,
    because: HashMap<Holder, Option<Read>>,
}

#[derive(Default)]
struct Index {
    members: HashMap<Holder, Member>,
    /// Gets, by the object as the caches name it.
    objects: HashMap<ObjectRef, HashSet<Holder>>,
    /// Lists that ask for one owner.
    owners: HashMap<(Gvk, String), HashSet<Holder>>,
    /// Other lists.
    lists: HashMap<Gvk, HashSet<Holder>>,
    /// Anything about a kind.
    kinds: HashMap<Gvk, HashSet<Holder>>,
    /// Logs and registries.
    texts: HashMap<Read, HashSet<Holder>>,
}

/// What one holder read, and what it was told.
struct Member {
    reads: BTreeMap<Read, Told>,
}

/// An answer in numbers.
struct Told {
    fingerprint: u64,
    list: Option<ListTold>,
}

/// The answer to a list, object by object.
struct ListTold {
    namespace: Option<String>,
    selector: Selector,
    objects: HashMap<(Option<String>, String), u64>,
}

// === impl WatchSet ===

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
        let mut keep: HashSet<Interest> = HashSet::new();
        for (read, _) in record.iter() {
            if let Some(store) = caches.hold_for(read, holder) {
                keep.insert(store.interest.clone());
            }
        }
        caches.retain(holder, &keep);
        let texts: HashSet<&Read> =
            record.iter().map(|(read, _)| read).filter(|read| !read.has_events()).collect();
        caches.polled.retain(holder, |read| texts.contains(read));
        let member = Member::new(&caches, record);
        // What woke it during this pass is in the record, or is found by the comparison below.
        self.queue.withdraw(holder);
        let mut index = self.lock();
        index.remove(holder);
        index.insert(holder, member);
        drop(index);
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
        let told: Vec<(Read, u64)> = {
            let index = self.lock();
            let Some(member) = index.members.get(holder) else { return };
            let reads = member.reads.iter().filter(|(read, _)| concerns(read));
            reads.map(|(read, told)| (read.clone(), told.fingerprint)).collect()
        };
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

    fn object_changed(&self, object: &ObjectRef, old: Option<&Object>, new: Option<&Object>) {
        let index = self.lock();
        let mut woken: Vec<(Holder, Read)> = Vec::new();
        for holder in index.concerned_by(object, old, new) {
            let Some(member) = index.members.get(holder) else { continue };
            woken.extend(member.differs(object, new).map(|read| (holder.clone(), read.clone())));
        }
        drop(index);
        woken.into_iter().for_each(|(holder, read)| self.queue.push(holder, Some(read)));
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listen for WatchSet {
    fn changed(&self, changed: &Changed) {
        match changed {
            Changed::Object { object, old, new } => {
                let of =
                    |seen: &Option<super::changes::Seen>| seen.as_ref().map(|seen| Arc::clone(&seen.object));
                self.object_changed(object, of(old).as_deref(), of(new).as_deref());
            }
            Changed::Kind(gvk) => {
                let Some(caches) = self.caches.upgrade() else { return };
                let holders: Vec<Holder> =
                    self.lock().kinds.get(gvk).into_iter().flatten().cloned().collect();
                for holder in holders {
                    self.compare(&caches, &holder, |read| kind_of(read).as_ref() == Some(gvk));
                }
            }
            Changed::Text(read) => {
                let holders: Vec<Holder> =
                    self.lock().texts.get(read).into_iter().flatten().cloned().collect();
                holders.into_iter().for_each(|holder| self.queue.push(holder, Some(read.clone())));
            }
        }
    }
}

// === impl Index ===

impl Index {
    fn insert(&mut self, holder: &Holder, member: Member) {
        self.each_place(&member, |set| {
            set.insert(holder.clone());
        });
        self.members.insert(holder.clone(), member);
    }

    fn remove(&mut self, holder: &Holder) {
        let Some(member) = self.members.remove(holder) else { return };
        self.each_place(&member, |set| {
            set.remove(holder);
        });
        self.objects.retain(|_, holders| !holders.is_empty());
        self.owners.retain(|_, holders| !holders.is_empty());
        self.lists.retain(|_, holders| !holders.is_empty());
        self.kinds.retain(|_, holders| !holders.is_empty());
        self.texts.retain(|_, holders| !holders.is_empty());
    }

    /// Every place that leads to a member.
    fn each_place(&mut self, member: &Member, mut change: impl FnMut(&mut HashSet<Holder>)) {
        for (read, told) in &member.reads {
            match (read, kind_of(read)) {
                (Read::Get(target), Some(gvk)) => {
                    change(self.objects.entry(target.clone()).or_default());
                    change(self.kinds.entry(gvk).or_default());
                }
                (_, Some(gvk)) => {
                    let owner = told.list.as_ref().and_then(|list| list.selector.value_of(names::OWNER));
                    match owner {
                        Some(owner) => {
                            change(self.owners.entry((gvk.clone(), owner.to_owned())).or_default())
                        }
                        None => change(self.lists.entry(gvk.clone()).or_default()),
                    }
                    change(self.kinds.entry(gvk).or_default());
                }
                (_, None) => change(self.texts.entry(read.clone()).or_default()),
            }
        }
    }

    fn concerned_by(
        &self,
        object: &ObjectRef,
        old: Option<&Object>,
        new: Option<&Object>,
    ) -> HashSet<&Holder> {
        let gvk = object.gvk();
        let mut holders: HashSet<&Holder> = HashSet::new();
        holders.extend(self.objects.get(object).into_iter().flatten());
        holders.extend(self.lists.get(&gvk).into_iter().flatten());
        let owners = [old, new].into_iter().flatten().filter_map(|object| object.label(names::OWNER));
        for owner in owners {
            holders.extend(self.owners.get(&(gvk.clone(), owner.to_owned())).into_iter().flatten());
        }
        holders
    }
}

// === impl Member ===

impl Member {
    fn new(caches: &Caches, record: &Record) -> Self {
        let told = |(read, given): (&Read, &Given)| {
            let read = match read {
                Read::Get(target) => Read::Get(caches.normal_ref(target)),
                other => other.clone(),
            };
            let told = Told { fingerprint: answer_fingerprint(given), list: ListTold::new(&read, given) };
            (read, told)
        };
        Self { reads: record.iter().map(told).collect() }
    }

    /// The first read whose recorded answer is another with the object as it is now.
    fn differs(&self, object: &ObjectRef, new: Option<&Object>) -> Option<&Read> {
        let get = Read::Get(object.clone());
        if let Some((read, told)) = self.reads.get_key_value(&get) {
            let now = new.map_or(Answer::Missing, |object| Answer::Found(Arc::new(object.clone())));
            if answer_fingerprint(&Given::Object(now)) != told.fingerprint {
                return Some(read);
            }
        }
        let gvk = object.gvk();
        let lists = self.reads.iter().filter(|(read, _)| kind_of(read).as_ref() == Some(&gvk));
        let mut lists = lists.filter_map(|(read, told)| Some((read, told.list.as_ref()?)));
        lists.find(|(_, list)| list.differs(object, new)).map(|(read, _)| read)
    }
}

impl ListTold {
    fn new(read: &Read, given: &Given) -> Option<Self> {
        let Read::List(query) = read else { return None };
        let selector = Selector::parse(query.label_selector.as_deref().unwrap_or_default())?;
        let objects = match given {
            Given::Objects(Answer::Found(objects)) => objects.iter().map(|object| entry(object)).collect(),
            _ => HashMap::new(),
        };
        Some(Self { namespace: query.namespace.clone(), selector, objects })
    }

    fn differs(&self, object: &ObjectRef, new: Option<&Object>) -> bool {
        if self.namespace.is_some() && object.namespace.is_some() && self.namespace != object.namespace {
            return false;
        }
        let now = new.filter(|object| self.selector.matches(object)).map(object_fingerprint);
        self.objects.get(&(object.namespace.clone(), object.name.clone())).copied() != now
    }
}

fn entry(object: &Object) -> ((Option<String>, String), u64) {
    ((object.namespace().map(str::to_owned), object.name().to_owned()), object_fingerprint(object))
}

fn answer(caches: &Caches, read: &Read) -> Given {
    match read {
        Read::Get(target) => Given::Object(caches.get(target)),
        Read::List(query) => Given::Objects(caches.list(query)),
        Read::Tail(log) => Given::Text(caches.tail(log)),
        Read::Resolve(image) => Given::Text(caches.resolve(image)),
    }
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
    fn push(&self, holder: Holder, because: Option<Read>) {
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
    fn withdraw(&self, holder: &Holder) {
        if matches!(self.lock().because.get(holder), Some(Some(_))) {
            self.remove(holder);
        }
    }

    fn remove(&self, holder: &Holder) {
        let mut waiting = self.lock();
        if waiting.because.remove(holder).is_some() {
            waiting.order.retain(|other| other != holder);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
