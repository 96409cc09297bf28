//! One object of a store: as it was read, or as a text once nobody has looked at it for a while.
//!
//! Of a thousand releases nearly all are at rest, and a tree of JSON weighs ten times its text.

use std::sync::Arc;

use pintle_api::Object;

use super::changes::Seen;

pub(super) struct Slot {
    form: Form,
    fingerprint: u64,
    /// Its resourceVersion; absent where that is no number.
    version: Option<u64>,
    /// Since it was last asked whether it may rest.
    was_read: bool,
}

enum Form {
    Live(Arc<Object>),
    Resting(Box<[u8]>),
}

// === impl Slot ===

impl Slot {
    pub(super) fn new(seen: Seen) -> Self {
        let version = version_of(&seen.object);
        Self { form: Form::Live(seen.object), fingerprint: seen.fingerprint, version, was_read: true }
    }

    pub(super) fn version(&self) -> Option<u64> {
        self.version
    }

    /// Versions that are no numbers cannot be compared: what comes later counts.
    pub(super) fn is_newer_than(&self, version: Option<u64>) -> bool {
        matches!((self.version, version), (Some(own), Some(other)) if own > other)
    }

    /// The object; it is live again. Nothing where its text cannot be read, which we wrote ourselves.
    pub(super) fn object(&mut self) -> Option<Arc<Object>> {
        self.was_read = true;
        if let Form::Resting(text) = &self.form {
            self.form = Form::Live(Arc::new(serde_json::from_slice(text).ok()?));
        }
        match &self.form {
            Form::Live(object) => Some(Arc::clone(object)),
            Form::Resting(_) => None,
        }
    }

    pub(super) fn seen(&mut self) -> Option<Seen> {
        Some(Seen { object: self.object()?, fingerprint: self.fingerprint })
    }

    /// Becomes a text when nobody has read it since the last time, and nobody has it.
    pub(super) fn rest(&mut self) {
        if std::mem::take(&mut self.was_read) {
            return;
        }
        if let Form::Live(object) = &self.form
            && Arc::strong_count(object) == 1
            && let Ok(text) = serde_json::to_vec(&**object)
        {
            self.form = Form::Resting(text.into());
        }
    }
}

pub(super) fn version_of(object: &Object) -> Option<u64> {
    object.resource_version()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;
    use crate::read::fingerprint::object_fingerprint;

    #[test]
    fn what_nobody_reads_rests_and_is_the_same_when_it_is_read_again() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "7"},
                            "data": {"text": "\u{1F980}\n"}, "numbers": [1, -1, u64::MAX, 0.25]});
        let object = Arc::new(Object::new(object).unwrap());
        let seen = Seen { fingerprint: object_fingerprint(&object), object: Arc::clone(&object) };
        let mut slot = Slot::new(seen);
        let rests = |slot: &Slot| matches!(slot.form, Form::Resting(_));
        slot.rest();
        assert!(!rests(&slot), "it has only just come");
        slot.rest();
        assert!(!rests(&slot), "somebody has it");
        let before = (*object).clone();
        drop(object);
        slot.rest();
        assert!(rests(&slot) && slot.version() == Some(7));
        let again = slot.seen().unwrap();
        assert_eq!((&*again.object, again.fingerprint), (&before, object_fingerprint(&before)));
        assert!(!rests(&slot), "it is live while it is read");
    }
}
