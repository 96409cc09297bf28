//! An object as a guest sees it, written as it is read: a list may have thousands.

use pintle_api::Object;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::LAST_APPLIED;
use crate::mask::{Mask, Masked};

/// An object, no Secret, that is written as [`super::shown`] shows it.
pub(super) struct Shown<'a>(pub(super) &'a Object, pub(super) &'a Mask);

/// A part of it.
enum Part<'a> {
    Metadata(Metadata<'a>),
    Annotations(Masked<'a>),
    Other(Masked<'a>),
}

/// The metadata, with what names the object whether it is in the mask or not.
struct Metadata<'a>(&'a Value, Option<&'a Mask>);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(object, mask) = self;
        let parts = object.json().iter().filter_map(|(key, value)| match key.as_str() {
            "metadata" => Some((key, Part::Metadata(Metadata(value, below(mask, key))))),
            "apiVersion" | "kind" => Some((key, Part::Other(Masked(value, &Mask::Whole)))),
            _ => Some((key, Part::Other(Masked(value, below(mask, key)?)))),
        });
        serializer.collect_map(parts.filter(|(_, part)| !part.is_left_out()))
    }
}

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = self.0.as_object().into_iter().flatten().filter_map(|(key, value)| match key.as_str() {
            "name" | "namespace" => Some((key, Part::Other(Masked(value, &Mask::Whole)))),
            "managedFields" | "resourceVersion" => None,
            "annotations" => Some((key, Part::Annotations(Masked(value, below(self.1?, key)?)))),
            _ => Some((key, Part::Other(Masked(value, below(self.1?, key)?)))),
        });
        serializer.collect_map(parts.filter(|(_, part)| !part.is_left_out()))
    }
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Metadata(metadata) => metadata.serialize(serializer),
            Self::Annotations(Masked(Value::Object(map), mask)) => {
                let kept = map.iter().filter(|(key, _)| *key != LAST_APPLIED);
                let kept = kept.filter_map(|(key, value)| Some((key, Masked(value, below(mask, key)?))));
                serializer.collect_map(kept.filter(|(_, value)| !value.is_left_out()))
            }
            Self::Annotations(masked) | Self::Other(masked) => masked.serialize(serializer),
        }
    }
}

// === impl Part ===

impl Part<'_> {
    fn is_left_out(&self) -> bool {
        match self {
            Self::Metadata(_) => false,
            Self::Annotations(masked) | Self::Other(masked) => masked.is_left_out(),
        }
    }
}

/// What of a set is below a key.
fn below<'a>(mask: &'a Mask, key: &str) -> Option<&'a Mask> {
    match mask {
        Mask::Whole => Some(mask),
        Mask::Part(fields) => fields.get(key),
    }
}
