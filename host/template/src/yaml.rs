//! YAML as Helm reads and writes it: YAML 1.1 through JSON, the way Kubernetes tools do.
//!
//! Reading goes from the events of a libyaml port ([`events`]) to a tree of nodes ([`node`]), whose scalars are
//! resolved by YAML 1.1's rules ([`resolve`]) into Go values or JSON ([`build`]). Writing has its
//! own emitter ([`emit`](mod@emit)), because no crate folds and quotes as Go's does, and Helm's
//! answers are compared byte for byte.

pub mod emit;
pub mod error;
pub mod json;
pub mod json_read;

mod build;
mod events;
mod keys;
mod node;
mod quick;
mod resolve;
mod scalar;

use minijinja::Value;

pub(crate) use emit::emit_into;
pub use emit::{emit, emit_pretty};
pub use error::{Error, Problem};

use crate::value::{Frozen, as_map};
use build::{FrozenValues, GoValues, Heads, JsonValues, Target, build};
use node::{Document, Documents};

/// The first document as Go values; nil when the text has none. All numbers are `float64`, as
/// Helm's values are, and `name` (a file) stands in errors.
///
/// # Errors
/// When the text is not YAML, cannot be JSON (`.inf`, a list as a key) or exceeds a limit.
pub fn load(text: &str, name: &str) -> Result<Value, Error> {
    first(text, name, &GoValues).map(|value| value.unwrap_or_else(crate::value::nil))
}

/// The entries of a text whose one document is a mapping, or of one without a document; numbers as in [`load`].
/// `None` for all other texts, and for some that are read more slowly: [`load_json_all`] reads them.
pub fn load_frozen(text: &str) -> Option<Frozen> {
    match quick::read(text, &FrozenValues).ok()? {
        Some(value) => as_map(&value)?.frozen(),
        None => Some(Frozen::default()),
    }
}

/// The first document, by the quick reader if that can read it.
fn first<T: Target>(text: &str, name: &str, target: &T) -> Result<Option<T::Out>, Error> {
    if let Ok(value) = quick::read(text, target) {
        return Ok(value);
    }
    slowly(text, name, target)
}

fn slowly<T: Target>(text: &str, name: &str, target: &T) -> Result<Option<T::Out>, Error> {
    match Documents::new(text, name).next() {
        Some(document) => build(&document?, target, name).map(Some),
        None => Ok(None),
    }
}

/// All documents as Go values; numbers as in [`load`].
///
/// # Errors
/// As [`load`], for the first document that fails.
pub fn load_all(text: &str, name: &str) -> Result<Vec<Value>, Error> {
    Documents::new(text, name).map(|document| build(&document?, &GoValues, name)).collect()
}

/// The first document as JSON, integers kept: for manifests. `null` when the text has none.
///
/// # Errors
/// As [`load`].
pub fn load_json(text: &str) -> Result<serde_json::Value, Error> {
    first(text, "", &JsonValues).map(Option::unwrap_or_default)
}

/// What Helm reads of the first document of a manifest: at least `apiVersion`, `kind` and
/// `metadata.annotations`. The whole text is checked.
///
/// # Errors
/// As [`load`].
pub fn load_head(text: &str) -> Result<serde_json::Value, Error> {
    first(text, "", &Heads).map(Option::unwrap_or_default)
}

/// [`load_json`] without the quick reader, to compare the two.
///
/// # Errors
/// As [`load`].
#[doc(hidden)]
pub fn load_json_slowly(text: &str) -> Result<serde_json::Value, Error> {
    slowly(text, "", &JsonValues).map(Option::unwrap_or_default)
}

/// All documents as JSON, integers kept, each with the line it starts on (from 1).
///
/// # Errors
/// As [`load`], for the first document that fails.
pub fn load_json_all(text: &str, name: &str) -> Result<Vec<(u64, serde_json::Value)>, Error> {
    if let Ok(value) = quick::read(text, &JsonValues) {
        return Ok(value.into_iter().map(|value| (first_line(text), value)).collect());
    }
    let documents = Documents::new(text, name);
    documents.map(|document| json_at_line(&document?, name)).collect()
}

/// The line (from 1) the first content stands on.
fn first_line(text: &str) -> u64 {
    let is_content = |line: &&str| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#') && !line.starts_with("---")
    };
    let before = text.lines().take_while(|line| !is_content(line)).count();
    before as u64 + 1
}

fn json_at_line(document: &Document, name: &str) -> Result<(u64, serde_json::Value), Error> {
    Ok((document.line(), build(document, &JsonValues, name)?))
}

/// The line (from 1) where the value at a path of keys and indexes stands in the first document:
/// its key's line in a mapping. `None` when the path is not written there.
pub fn line_of(text: &str, path: &[&str]) -> Option<u64> {
    Documents::new(text, "").next()?.ok()?.line_of(path)
}

#[cfg(test)]
mod tests;
