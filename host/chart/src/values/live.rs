//! Values while they are laid over each other: mappings that are shared, as Go's maps are. What one chart of a
//! tree puts into a mapping is seen wherever that mapping is.

use std::sync::Arc;

use pintle_template::value::{
    Entries, Frozen, Map, Number, Value, as_list, as_map, as_text, frozen_map, kind_of, list_value,
    map_value, nil, number,
};
use serde_json::{Number as JsonNumber, Value as Json};

use super::{Error, Values};
use crate::{scope::to_value, yaml};

/// Mappings and lists inside each other. A file has at most 500, and a path of `import-values` adds its own.
pub(crate) const MAX_DEPTH: usize = 600;

/// Entries and items of values that are copied, with what is shared counted as often as it is met: imports can
/// make few mappings into very many.
pub(crate) const MAX_ENTRIES: usize = 4_000_000;

/// What is left of the limits while values are walked through.
#[derive(Debug)]
pub(crate) struct Budget {
    left: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: MAX_ENTRIES }
    }
}

impl Budget {
    /// Counts what is inside one mapping or list at this depth.
    pub(crate) fn take(&mut self, entries: usize, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep);
        }
        self.left = self.left.checked_sub(entries).ok_or(Error::TooLarge)?;
        Ok(())
    }
}

/// A new mapping without entries.
pub(crate) fn empty() -> Value {
    map_value(Entries::new())
}

/// A new mapping of these values.
pub(crate) fn of(values: &Values) -> Value {
    map_value(values.iter().map(|(key, value)| (Arc::from(key.as_str()), to_value(value))).collect())
}

/// The defaults of a chart, which all renders share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Defaults {
    /// As they are written.
    pub(crate) whole: Frozen,
    /// Without the nulls in mappings; what is in a list stays as it is.
    pub(crate) clean: Frozen,
}

impl Defaults {
    pub(crate) fn of(whole: &Frozen) -> Self {
        Self { clean: without_nulls(whole), whole: Arc::clone(whole) }
    }

    /// The entries of a mapping as defaults.
    ///
    /// # Errors
    /// When it is nested too deep.
    pub(crate) fn freeze(value: &Value) -> Result<Self, Error> {
        let whole = match as_map(value) {
            Some(map) => freeze_map(map, 0, &mut Budget::default())?,
            None => Frozen::default(),
        };
        Ok(Self { clean: without_nulls(&whole), whole })
    }
}

/// The entries of a values file: all documents merged, later over earlier; every number is a float.
///
/// # Errors
/// When it is no YAML or no mapping.
pub(crate) fn load(text: &str) -> Result<Frozen, yaml::Error> {
    match pintle_template::yaml::load_frozen(text) {
        Some(entries) => Ok(entries),
        None => yaml::load_values(text).map(|values| frozen_entries(&values)),
    }
}

fn frozen_entries(values: &Values) -> Frozen {
    Arc::new(values.iter().map(|(key, value)| (Arc::from(key.as_str()), frozen_value(value))).collect())
}

fn frozen_value(json: &Json) -> Value {
    match json {
        Json::Object(map) => frozen_map(frozen_entries(map)),
        Json::Array(items) => list_value(items.iter().map(frozen_value).collect()),
        scalar => to_value(scalar),
    }
}

fn freeze_map(map: &Map, depth: usize, budget: &mut Budget) -> Result<Frozen, Error> {
    if let Some(frozen) = map.frozen() {
        return Ok(frozen);
    }
    let mut entries = map.read().clone();
    budget.take(entries.len(), depth)?;
    for value in entries.values_mut() {
        *value = freeze_value(value, depth + 1, budget)?;
    }
    Ok(Arc::new(entries))
}

fn freeze_value(value: &Value, depth: usize, budget: &mut Budget) -> Result<Value, Error> {
    if let Some(map) = as_map(value) {
        return Ok(frozen_map(freeze_map(map, depth, budget)?));
    }
    let Some(list) = as_list(value) else { return Ok(value.clone()) };
    budget.take(list.items().len(), depth)?;
    let items: Result<_, _> = list.items().iter().map(|item| freeze_value(item, depth + 1, budget)).collect();
    Ok(list_value(items?))
}

/// The same without nulls in mappings; where there are none it is the same tree.
fn without_nulls(entries: &Frozen) -> Frozen {
    if !has_nulls(entries) {
        return Arc::clone(entries);
    }
    let kept = entries.iter().filter(|(_, value)| !value.is_none());
    let clean = kept.map(|(key, value)| {
        let inner = as_map(value).and_then(Map::frozen);
        let value = inner.map_or_else(|| value.clone(), |inner| frozen_map(without_nulls(&inner)));
        (Arc::clone(key), value)
    });
    Arc::new(clean.collect())
}

fn has_nulls(entries: &Entries) -> bool {
    entries.values().any(|value| {
        value.is_none() || as_map(value).and_then(Map::frozen).is_some_and(|inner| has_nulls(&inner))
    })
}

/// A copy that shares no mapping with the value, nor within itself.
///
/// # Errors
/// When it is nested too deep, as a mapping that contains itself is.
pub(crate) fn copy(value: &Value) -> Result<Value, Error> {
    copy_at(value, 0, &mut Budget::default())
}

fn copy_at(value: &Value, depth: usize, budget: &mut Budget) -> Result<Value, Error> {
    if let Some(map) = as_map(value) {
        if let Some(frozen) = map.frozen() {
            return Ok(frozen_map(frozen));
        }
        let mut copied = map.read().clone();
        budget.take(copied.len(), depth)?;
        for value in copied.values_mut() {
            *value = copy_at(value, depth + 1, budget)?;
        }
        return Ok(map_value(copied));
    }
    if let Some(list) = as_list(value) {
        let mut copied = list.items().to_vec();
        budget.take(copied.len(), depth)?;
        for item in &mut copied {
            *item = copy_at(item, depth + 1, budget)?;
        }
        return Ok(list_value(copied));
    }
    Ok(value.clone())
}

/// The mapping as JSON: what [`of`] makes values of.
///
/// # Errors
/// When it is nested too deep.
pub(crate) fn to_values(value: &Value) -> Result<Values, Error> {
    match to_json(value)? {
        Json::Object(values) => Ok(values),
        _ => Ok(Values::new()),
    }
}

/// The value as JSON.
///
/// # Errors
/// When it is nested too deep.
pub(crate) fn to_json(value: &Value) -> Result<Json, Error> {
    json_at(value, 0, &mut Budget::default())
}

fn json_at(value: &Value, depth: usize, budget: &mut Budget) -> Result<Json, Error> {
    if let Some(map) = as_map(value) {
        let entries = map.glance();
        budget.take(entries.len(), depth)?;
        let mut values = Values::new();
        for (key, value) in entries {
            values.insert(key.to_string(), json_at(&value, depth + 1, budget)?);
        }
        return Ok(Json::Object(values));
    }
    if let Some(list) = as_list(value) {
        budget.take(list.items().len(), depth)?;
        let mut items = Vec::with_capacity(list.items().len());
        for item in list.items() {
            items.push(json_at(item, depth + 1, budget)?);
        }
        return Ok(Json::Array(items));
    }
    Ok(json_scalar(value))
}

fn json_scalar(value: &Value) -> Json {
    match (number::number(value), as_text(value)) {
        (Some(Number::Int(int)), _) => Json::from(int),
        (Some(Number::Uint(int)), _) => Json::from(int),
        (Some(Number::Float(float)), _) => JsonNumber::from_f64(float).map_or(Json::Null, Json::Number),
        (None, Some(text)) => Json::from(text),
        (None, None) => as_bool(value).map_or(Json::Null, Json::Bool),
    }
}

/// The mapping at a dotted path.
pub(crate) fn table(values: &Value, path: &str) -> Option<Value> {
    path.split('.').try_fold(values.clone(), |table, key| {
        let inner = as_map(&table)?.get(key)?;
        as_map(&inner).is_some().then_some(inner)
    })
}

/// The bool at a dotted path.
pub(crate) fn flag(values: &Value, path: &str) -> Option<bool> {
    let (parent, key) = match path.rsplit_once('.') {
        Some((parent, key)) => (table(values, parent)?, key),
        None => (values.clone(), path),
    };
    as_bool(&as_map(&parent)?.get(key)?)
}

/// The bool in a value.
pub(crate) fn as_bool(value: &Value) -> Option<bool> {
    (kind_of(value) == "bool").then(|| value.is_true())
}

/// The mapping under a dotted path; `.` is no path.
pub(crate) fn under(path: &str, table: Value) -> Value {
    if path == "." {
        return table;
    }
    path.rsplit('.').fold(table, |inner, key| map_value(Entries::from([(Arc::from(key), inner)])))
}

/// Another mapping with the same entries, whose values are shared.
pub(crate) fn shallow(table: &Map) -> Value {
    map_value(table.read().clone())
}

/// Sets a key to null.
pub(crate) fn set_null(table: &Map, key: Arc<str>) {
    table.insert(key, nil());
}
