//! The reads of one call: answered once each, recorded, and counted.

use std::sync::Arc;

use pintle_api::{
    Answer, Facts, LogTail, Object, ObjectRef, Query, Read, Record, Recorder, plugin::Identity,
};

use crate::{
    ability::kube_read::Listed, bindings::pintle::plugin::types::ObjectQuery, call::failure::CallFailure,
    limits,
};

/// The reads of one call. The same read has the same answer for as long as the call lasts.
pub(crate) struct Reads {
    facts: Arc<dyn Facts>,
    record: Record,
    objects: u32,
    tails: u32,
    images: u32,
    bytes: usize,
    unavailable: bool,
    /// What the last query found that has more pages.
    listed: Option<Listed>,
}

impl Reads {
    pub(crate) fn new(facts: Arc<dyn Facts>) -> Self {
        Self {
            facts,
            record: Record::default(),
            objects: 0,
            tails: 0,
            images: 0,
            bytes: 0,
            unavailable: false,
            listed: None,
        }
    }

    /// What a query found on its pages before; nothing where this is another one, or its first page.
    pub(crate) fn take_listed(
        &mut self,
        query: &ObjectQuery,
        fields: &[String],
        is_later_page: bool,
    ) -> Option<Listed> {
        self.listed.take().filter(|listed| is_later_page && listed.is_of(query, fields))
    }

    /// Keeps what a query found for its next page: the same read has the same answer while the call lasts.
    pub(crate) fn keep_listed(&mut self, listed: Listed) {
        self.listed = Some(listed);
    }

    /// Counts one read of an object or a page.
    ///
    /// # Errors
    /// When the call has used up its reads, which ends it.
    pub(crate) fn count_object(&mut self) -> Result<(), CallFailure> {
        self.objects += 1;
        within(self.objects, limits::READS, "objects or pages")
    }

    /// Counts one read of a log.
    ///
    /// # Errors
    /// When the call has used up its reads, which ends it.
    pub(crate) fn count_tail(&mut self) -> Result<(), CallFailure> {
        self.tails += 1;
        within(self.tails, limits::TAILS, "logs")
    }

    /// Counts bytes that the guest is given.
    ///
    /// # Errors
    /// When the call has used up its bytes, which ends it.
    pub(crate) fn count_bytes(&mut self, bytes: usize) -> Result<(), CallFailure> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > limits::READ_BYTES {
            return Err(CallFailure::ReadBudget { limit: limits::READ_BYTES, unit: "bytes" });
        }
        Ok(())
    }

    pub(crate) fn get(&mut self, target: &ObjectRef, identity: Identity) -> Answer<Arc<Object>> {
        self.once(identity, |facts| facts.get(target), Answer::is_not_yet)
    }

    pub(crate) fn list(&mut self, query: &Query, identity: Identity) -> Answer<Vec<Arc<Object>>> {
        self.once(identity, |facts| facts.list(query), Answer::is_not_yet)
    }

    pub(crate) fn tail(&mut self, log: &LogTail, identity: Identity) -> Answer<String> {
        self.once(identity, |facts| facts.tail(log), Answer::is_not_yet)
    }

    pub(crate) fn resolve(&mut self, image: &str) -> Answer<String> {
        self.once(Identity::Owner, |facts| facts.resolve(image), Answer::is_not_yet)
    }

    /// Counts one lookup of an image.
    ///
    /// # Errors
    /// When the call has used up its lookups, which ends it.
    pub(crate) fn count_image(&mut self) -> Result<(), CallFailure> {
        self.images += 1;
        within(self.images, limits::IMAGES, "images")
    }

    /// Notes that the guest was told `unavailable`.
    pub(crate) fn note_unavailable(&mut self) {
        self.unavailable = true;
    }

    pub(crate) fn was_unavailable(&self) -> bool {
        self.unavailable
    }

    /// Reads that nobody had looked up.
    pub(crate) fn needs(&self) -> Vec<Read> {
        self.record.needs()
    }

    /// Reads made, and bytes given.
    pub(crate) fn spent(&self) -> (u32, usize) {
        (self.objects.saturating_add(self.tails).saturating_add(self.images), self.bytes)
    }

    pub(crate) fn into_record(self) -> Record {
        self.record
    }

    fn once<T>(
        &mut self,
        identity: Identity,
        read: impl Fn(&dyn Facts) -> T,
        is_not_yet: impl Fn(&T) -> bool,
    ) -> T {
        let known = read(&self.record);
        if !is_not_yet(&known) {
            return known;
        }
        let operator = self.facts.as_operator().filter(|_| identity == Identity::Operator);
        let recorder = Recorder::new(operator.unwrap_or(&*self.facts));
        let answer = read(&recorder);
        self.record.extend(recorder.into_record());
        answer
    }
}

fn within(used: u32, limit: u32, unit: &'static str) -> Result<(), CallFailure> {
    if used > limit {
        return Err(CallFailure::ReadBudget { limit: limit as usize, unit });
    }
    Ok(())
}
