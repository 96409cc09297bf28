//! What one holder read and was told, as numbers, and the places that lead to it.

use std::collections::{BTreeMap, HashMap, HashSet};

use pintle_api::{Answer, Given, Gvk, Object, ObjectRef, Read, Record, names};

use crate::read::{
    Caches,
    fetch::kind_of,
    fingerprint::{answer_fingerprint, object_fingerprint, of_lone_object},
    interest::Holder,
    selector::Selector,
};

/// Holders by what they read.
#[derive(Default)]
pub(super) struct Index {
    members: HashMap<Holder, Member>,
    places: HashMap<Place, HashSet<Holder>>,
}

/// Where a change is looked up.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// One object, as the caches name it.
    Object(ObjectRef),
    /// Objects of a kind with one owner, since most lists ask for one owner of a thousand.
    Owned(Gvk, String),
    /// Other objects of a kind.
    List(Gvk),
    /// Anything about a kind.
    Kind(Gvk),
    /// A log or a registry.
    Text(Read),
}

/// What one holder read, and what it was told.
pub(super) struct Member {
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

/// An object as it is now, masked as reads are.
pub(super) struct Now<'a> {
    pub(super) target: &'a ObjectRef,
    /// Absent when it is gone.
    pub(super) object: Option<(&'a Object, u64)>,
}

// === impl Index ===

impl Index {
    pub(super) fn insert(&mut self, holder: &Holder, member: Member) {
        self.remove(holder);
        for place in member.places() {
            self.places.entry(place).or_default().insert(holder.clone());
        }
        self.members.insert(holder.clone(), member);
    }

    pub(super) fn remove(&mut self, holder: &Holder) {
        let Some(member) = self.members.remove(holder) else { return };
        for place in member.places() {
            if let Some(holders) = self.places.get_mut(&place) {
                holders.remove(holder);
                if holders.is_empty() {
                    self.places.remove(&place);
                }
            }
        }
    }

    pub(super) fn at(&self, place: &Place) -> Vec<Holder> {
        self.places.get(place).into_iter().flatten().cloned().collect()
    }

    /// The reads of a holder that concern, with the fingerprints of their answers.
    pub(super) fn told(&self, holder: &Holder, concerns: impl Fn(&Read) -> bool) -> Vec<(Read, u64)> {
        let reads = self.members.get(holder).into_iter().flat_map(|member| &member.reads);
        reads
            .filter(|(read, _)| concerns(read))
            .map(|(read, told)| (read.clone(), told.fingerprint))
            .collect()
    }

    /// Holders with a read whose answer is another with the object as it is now. `owners` are the values
    /// its owner label had and has.
    pub(super) fn woken_by(&self, now: &Now<'_>, owners: &[&str]) -> Vec<(Holder, Read)> {
        let gvk = now.target.gvk();
        let mut places = vec![Place::Object(now.target.clone()), Place::List(gvk.clone())];
        places.extend(owners.iter().map(|owner| Place::Owned(gvk.clone(), (*owner).to_owned())));
        let holders: HashSet<&Holder> =
            places.iter().filter_map(|place| self.places.get(place)).flatten().collect();
        let woken = holders.into_iter().filter_map(|holder| {
            let read = self.members.get(holder)?.differs(now, &gvk)?;
            Some((holder.clone(), read.clone()))
        });
        woken.collect()
    }
}

// === impl Member ===

impl Member {
    pub(super) fn new(caches: &Caches, record: &Record) -> Self {
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

    fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for (read, told) in &self.reads {
            let Some(gvk) = kind_of(read) else {
                places.push(Place::Text(read.clone()));
                continue;
            };
            places.push(Place::Kind(gvk.clone()));
            let owner = told.list.as_ref().and_then(|list| list.selector.value_of(names::OWNER));
            places.push(match (read, owner) {
                (Read::Get(target), _) => Place::Object(target.clone()),
                (_, Some(owner)) => Place::Owned(gvk, owner.to_owned()),
                (_, None) => Place::List(gvk),
            });
        }
        places
    }

    /// The first read whose recorded answer is another with the object as it is now.
    fn differs(&self, now: &Now<'_>, gvk: &Gvk) -> Option<&Read> {
        let get = Read::Get(now.target.clone());
        if let Some((read, told)) = self.reads.get_key_value(&get) {
            let fingerprint = of_lone_object(now.object.map(|(_, fingerprint)| fingerprint));
            if fingerprint != told.fingerprint {
                return Some(read);
            }
        }
        let lists = self.reads.iter().filter(|(read, _)| kind_of(read).as_ref() == Some(gvk));
        let mut lists = lists.filter_map(|(read, told)| Some((read, told.list.as_ref()?)));
        lists.find(|(_, list)| list.differs(now)).map(|(read, _)| read)
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

    fn differs(&self, now: &Now<'_>) -> bool {
        let target = now.target;
        if self.namespace.is_some() && target.namespace.is_some() && self.namespace != target.namespace {
            return false;
        }
        let listed = now.object.filter(|(object, _)| self.selector.matches(object));
        let told = self.objects.get(&(target.namespace.clone(), target.name.clone())).copied();
        told != listed.map(|(_, fingerprint)| fingerprint)
    }
}

fn entry(object: &Object) -> ((Option<String>, String), u64) {
    ((object.namespace().map(str::to_owned), object.name().to_owned()), object_fingerprint(object))
}
