//! Values while they are laid over each other: mappings that are shared, as Go's maps are. What one chart of a
//! tree puts into a mapping is seen wherever that mapping is.

use std::sync::Arc;

use pintle_template::value::{
    Entries, Map, Number, Value, as_list, as_map, as_text, kind_of, list_value, map_value, nil, number,
};
use serde_json::{Number as JsonNumber, Value as Json};

use super::{Error, Values};
use crate::scope::to_value;

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

/// The value without the nulls in its mappings; what is in a list stays as it is.
pub(crate) fn without_nulls(value: &Json) -> Value {
    match value {
        Json::Object(table) => clean(table),
        other => to_value(other),
    }
}

/// The mapping without nulls, and without those in the mappings in it.
pub(crate) fn clean(table: &Values) -> Value {
    let kept = table.iter().filter(|(_, value)| !value.is_null());
    map_value(kept.map(|(key, value)| (Arc::from(key.as_str()), without_nulls(value))).collect())
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
        let entries = map.snapshot();
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
