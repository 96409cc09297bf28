//! Values of Secrets, taken out of what a guest sees and put back into what it returns.
//!
//! A guest gets a token instead. A token is worth its value only where the value was: in the same
//! field of a Secret, or at the same path of the values. Anywhere else it would carry the value to
//! where others may read it, so there it is refused.

use pintle_api::Object;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::grants::{Scope, is_secret};

/// What every token begins with. Tokens are valid base64, as values in `data` must be.
const TOKEN: &str = "PintleSecretValue/";
/// Fields of a Secret that hold values.
const FIELDS: [&str; 2] = ["data", "stringData"];

/// The values behind tokens, each with where it may stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seal {
    taken: Vec<(&'static str, Value)>,
    showed_clear_text: bool,
}

/// Chart values with those from Secrets replaced by tokens.
#[derive(Clone)]
pub struct SealedValues {
    values: Value,
    taken: Vec<(Vec<String>, Value)>,
}

/// A token that stands where its value was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value of a Secret is used outside of the place it was in")]
pub struct Misplaced;

// === impl Seal ===

impl Seal {
    /// The object with tokens for the values of a Secret, unless a grant shows them.
    pub(crate) fn close(&mut self, object: &mut Map<String, Value>, scope: &Scope) {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        if !is_secret(text("apiVersion"), text("kind")) {
            return;
        }
        let metadata = object.get("metadata");
        let metadata = |field: &str| metadata.and_then(|metadata| metadata.get(field)?.as_str());
        if scope.shows_values(metadata("namespace"), metadata("name").unwrap_or_default()) {
            self.showed_clear_text = true;
            return;
        }
        for field in FIELDS {
            let Some(data) = object.get_mut(field).and_then(Value::as_object_mut) else { continue };
            for value in data.values_mut() {
                let token = Value::from(token(self.taken.len()));
                self.taken.push((field, std::mem::replace(value, token)));
            }
        }
    }

    /// The object as the guest means it: tokens in a Secret become the values they stand for.
    ///
    /// # Errors
    /// When a token stands anywhere else.
    pub(crate) fn open(&self, object: &mut Object) -> Result<(), Misplaced> {
        if self.taken.is_empty() {
            return Ok(());
        }
        if is_secret(object.api_version(), object.kind()) {
            for field in FIELDS {
                if object.json().get(field).is_some_and(Value::is_object) {
                    object.map_mut(&[field]).values_mut().for_each(|value| self.open_value(field, value));
                }
            }
        }
        if object.json().values().any(has_token) { Err(Misplaced) } else { Ok(()) }
    }

    /// True when a value was shown in clear text.
    pub(crate) fn showed_clear_text(&self) -> bool {
        self.showed_clear_text
    }

    /// Mixes the values into a hash: another value is another input, though its token is the same.
    pub(crate) fn hash_into(&self, hash: &mut Sha256) {
        for (_, value) in &self.taken {
            hash.update(value.to_string());
            hash.update([0]);
        }
    }

    fn open_value(&self, field: &str, value: &mut Value) {
        let taken = value.as_str().and_then(number).and_then(|at| self.taken.get(at));
        if let Some((_, taken)) = taken.filter(|(from, _)| *from == field) {
            *value = taken.clone();
        }
    }
}

// === impl SealedValues ===

impl SealedValues {
    /// Takes the values at these paths out: what came from Secrets.
    #[must_use]
    pub fn close(mut values: Value, secret: &[Vec<String>]) -> Self {
        let mut taken = Vec::new();
        for path in secret {
            let place = path.iter().try_fold(&mut values, |value, key| value.get_mut(key));
            if let Some(place) = place {
                let token = Value::from(token(taken.len()));
                taken.push((path.clone(), std::mem::replace(place, token)));
            }
        }
        Self { values, taken }
    }

    /// The values as plugins may see them.
    #[must_use]
    pub fn values(&self) -> &Value {
        &self.values
    }

    /// Puts the values back into what plugins made of them.
    ///
    /// # Errors
    /// When a token stands where its value was not.
    pub fn open(&self, mut values: Value) -> Result<Value, Misplaced> {
        for (at, (path, value)) in self.taken.iter().enumerate() {
            let place = path.iter().try_fold(&mut values, |value, key| value.get_mut(key));
            if let Some(place) = place.filter(|place| place.as_str().and_then(number) == Some(at)) {
                place.clone_from(value);
            }
        }
        if !self.taken.is_empty() && has_token(&values) { Err(Misplaced) } else { Ok(values) }
    }
}

fn token(at: usize) -> String {
    format!("{TOKEN}{at:06}")
}

fn number(token: &str) -> Option<usize> {
    token.strip_prefix(TOKEN)?.parse().ok()
}

fn has_token(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(TOKEN),
        Value::Array(list) => list.iter().any(has_token),
        Value::Object(map) => map.iter().any(|(key, value)| key.contains(TOKEN) || has_token(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests;
