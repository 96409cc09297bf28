//! Objects of a plugin's own: those it wants, and as they are in the cluster.

use serde_json::Value;

use crate::{Json, Ownership, bindings::pintle::plugin::types::KeyedObject};

/// An object that a plugin wanted, as it is in the cluster now.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// The plugin's key for it.
    pub key: String,
    /// Whether all of it is the plugin's, or some fields.
    pub ownership: Ownership,
    /// The object.
    pub object: Json,
}

// === impl Live ===

impl Live {
    pub(crate) fn all(objects: Vec<KeyedObject>) -> Vec<Self> {
        let live = |KeyedObject { key, ownership, object }| Self {
            key,
            ownership,
            object: Json::new("an object of the plugin", object),
        };
        objects.into_iter().map(live).collect()
    }

    /// The one with a key.
    #[must_use]
    pub fn find<'a>(all: &'a [Self], key: &str) -> Option<&'a Self> {
        all.iter().find(|live| live.key == key)
    }
}

/// An object with its key, as the host takes it.
pub(crate) fn keyed(key: impl Into<String>, ownership: Ownership, object: &Value) -> KeyedObject {
    KeyedObject { key: key.into(), ownership, object: object.to_string() }
}
