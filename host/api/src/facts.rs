//! The one way to read the world: synchronous, recorded, answered from caches or from a file.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::{Object, ObjectRef};

/// What came of a read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer<T> {
    /// It is there.
    Found(T),
    /// It is known not to be there.
    Missing,
    /// The cluster does not serve this kind.
    KindUnknown,
    /// Nobody has looked yet: the step ends, the read is fetched, the step runs again.
    NotYet,
    /// A right is missing; the text names it.
    Denied(String),
}

/// Objects of one kind; no namespace means all, no selector means every one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Query {
    /// `apps/v1`, or `v1` for the core API.
    pub api_version: String,
    /// Kind in the singular.
    pub kind: String,
    /// Absent for all namespaces and for kinds of cluster scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `key=value,key2 in (a,b)`, as the API takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
}

/// The end of a container's log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogTail {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// Absent: the only container, or the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The container that ran before the last restart.
    #[serde(default)]
    pub previous: bool,
    /// At most this many lines.
    pub lines: u32,
    /// At most this many bytes.
    pub max_bytes: u32,
}

/// One question to the world; the key of a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Read {
    /// One object.
    Get(ObjectRef),
    /// Objects of one kind.
    List(Query),
    /// The end of a log.
    Tail(LogTail),
    /// The digest of an image reference.
    Resolve(String),
}

/// The answer to a [`Read`], of the type that read has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Given {
    /// To [`Read::Get`].
    Object(Answer<Arc<Object>>),
    /// To [`Read::List`], sorted by namespace and name.
    Objects(Answer<Vec<Arc<Object>>>),
    /// To [`Read::Tail`] and [`Read::Resolve`].
    Text(Answer<String>),
}

/// Read access to the world. Implementations answer at once and never block on a network.
pub trait Facts: Send + Sync {
    /// One object.
    fn get(&self, target: &ObjectRef) -> Answer<Arc<Object>>;
    /// Objects of one kind, sorted by namespace and name.
    fn list(&self, query: &Query) -> Answer<Vec<Arc<Object>>>;
    /// The end of a container's log.
    fn tail(&self, log: &LogTail) -> Answer<String>;
    /// The digest an image reference has in its registry; a media type may follow after a space.
    fn resolve(&self, image: &str) -> Answer<String>;
    /// The same world seen with the operator's own rights, where these facts are seen with those of a
    /// release's owner.
    fn as_operator(&self) -> Option<&dyn Facts> {
        None
    }
}

/// Every read of a step with its answer: the watch set, the transcript, and the file of
/// `pintle facts`. Reads that found nothing are in it too. It answers as [`Facts`] itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "Vec<(Read, Given)>", from = "Vec<(Read, Given)>")]
pub struct Record {
    reads: BTreeMap<Read, Given>,
}

/// Passes reads on and keeps them.
pub struct Recorder<'a> {
    inner: &'a dyn Facts,
    record: Mutex<Record>,
}

// === impl Answer ===

impl<T> Answer<T> {
    /// What was found, or nothing for every other answer.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(found) => Some(found),
            Self::Missing | Self::KindUnknown | Self::NotYet | Self::Denied(_) => None,
        }
    }

    /// The same answer about something made from what was found.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Answer<U> {
        match self {
            Self::Found(found) => Answer::Found(make(found)),
            Self::Missing => Answer::Missing,
            Self::KindUnknown => Answer::KindUnknown,
            Self::NotYet => Answer::NotYet,
            Self::Denied(why) => Answer::Denied(why),
        }
    }

    /// True when nobody has looked yet.
    pub fn is_not_yet(&self) -> bool {
        matches!(self, Self::NotYet)
    }
}

// === impl Read ===

impl Read {
    /// False for logs and registries: nothing tells when their answer changes.
    #[must_use]
    pub fn has_events(&self) -> bool {
        matches!(self, Self::Get(_) | Self::List(_))
    }
}

// === impl Given ===

impl Given {
    /// True when nobody has looked yet.
    #[must_use]
    pub fn is_not_yet(&self) -> bool {
        match self {
            Self::Object(answer) => answer.is_not_yet(),
            Self::Objects(answer) => answer.is_not_yet(),
            Self::Text(answer) => answer.is_not_yet(),
        }
    }
}

// === impl Record ===

impl Record {
    /// Every read with its answer, in the order of [`Read`].
    pub fn iter(&self) -> impl Iterator<Item = (&Read, &Given)> {
        self.reads.iter()
    }

    /// Reads that nobody had looked up: to be fetched before the step runs again.
    #[must_use]
    pub fn needs(&self) -> Vec<Read> {
        let unanswered = self.reads.iter().filter(|(_, given)| given.is_not_yet());
        unanswered.map(|(read, _)| read.clone()).collect()
    }

    /// Keeps an answer; a later answer to the same read replaces it.
    pub fn insert(&mut self, read: Read, given: Given) {
        self.reads.insert(read, given);
    }

    /// Takes over all reads of another record.
    pub fn extend(&mut self, other: Self) {
        self.reads.extend(other.reads);
    }

    /// The same record without logs and registries, which nothing tells the changes of.
    #[must_use]
    pub fn without_texts(mut self) -> Self {
        self.reads.retain(|read, _| read.has_events());
        self
    }

    /// True when nothing was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }
}

impl From<Vec<(Read, Given)>> for Record {
    fn from(reads: Vec<(Read, Given)>) -> Self {
        Self { reads: reads.into_iter().collect() }
    }
}

impl From<Record> for Vec<(Read, Given)> {
    fn from(record: Record) -> Self {
        record.reads.into_iter().collect()
    }
}

impl Facts for Record {
    fn get(&self, target: &ObjectRef) -> Answer<Arc<Object>> {
        match self.reads.get(&Read::Get(target.clone())) {
            Some(Given::Object(answer)) => answer.clone(),
            _ => Answer::NotYet,
        }
    }

    fn list(&self, query: &Query) -> Answer<Vec<Arc<Object>>> {
        match self.reads.get(&Read::List(query.clone())) {
            Some(Given::Objects(answer)) => answer.clone(),
            _ => Answer::NotYet,
        }
    }

    fn tail(&self, log: &LogTail) -> Answer<String> {
        match self.reads.get(&Read::Tail(log.clone())) {
            Some(Given::Text(answer)) => answer.clone(),
            _ => Answer::NotYet,
        }
    }

    fn resolve(&self, image: &str) -> Answer<String> {
        match self.reads.get(&Read::Resolve(image.to_owned())) {
            Some(Given::Text(answer)) => answer.clone(),
            _ => Answer::NotYet,
        }
    }
}

// === impl Recorder ===

impl<'a> Recorder<'a> {
    /// Starts an empty record over `inner`.
    #[must_use]
    pub fn new(inner: &'a dyn Facts) -> Self {
        Self { inner, record: Mutex::new(Record::default()) }
    }

    /// What was read so far.
    #[must_use]
    pub fn record(&self) -> Record {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was read.
    #[must_use]
    pub fn into_record(self) -> Record {
        self.record.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, read: Read, given: Given) {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).insert(read, given);
    }
}

impl Facts for Recorder<'_> {
    fn get(&self, target: &ObjectRef) -> Answer<Arc<Object>> {
        let answer = self.inner.get(target);
        self.keep(Read::Get(target.clone()), Given::Object(answer.clone()));
        answer
    }

    fn list(&self, query: &Query) -> Answer<Vec<Arc<Object>>> {
        let answer = self.inner.list(query);
        self.keep(Read::List(query.clone()), Given::Objects(answer.clone()));
        answer
    }

    fn tail(&self, log: &LogTail) -> Answer<String> {
        let answer = self.inner.tail(log);
        self.keep(Read::Tail(log.clone()), Given::Text(answer.clone()));
        answer
    }

    fn resolve(&self, image: &str) -> Answer<String> {
        let answer = self.inner.resolve(image);
        self.keep(Read::Resolve(image.to_owned()), Given::Text(answer.clone()));
        answer
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn a_record_answers_what_was_asked_and_lists_what_nobody_looked_up() {
        let pod = ObjectRef::new("v1", "Pod", "p").within("ns");
        let mut known = Record::default();
        known.insert(Read::Get(pod.clone()), Given::Object(Answer::Missing));
        let recorder = Recorder::new(&known);
        assert_eq!(recorder.get(&pod), Answer::Missing);
        assert_eq!(recorder.resolve("image"), Answer::NotYet);
        assert_eq!(recorder.record().needs(), vec![Read::Resolve("image".to_owned())]);
    }

    #[test]
    fn a_record_survives_its_file() {
        let mut record = Record::default();
        record.insert(Read::Resolve("a".into()), Given::Text(Answer::Found("sha256:1".into())));
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
    }
}
