//! Values as a Jinja template wants them: Go has floats for all numbers of a YAML file.

use super::print::MAX_DEPTH;
use super::{Value, as_list, as_map, number, typed_list, typed_map};

/// A copy whose numbers without a fraction are integers, all the way down, so that a template counts and
/// prints with them. Objects stay shared; below [`MAX_DEPTH`] levels all does.
pub fn natural(value: &Value) -> Value {
    at(value, 0)
}

fn at(value: &Value, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return value.clone();
    }
    if let Some(map) = as_map(value) {
        let entries = map.snapshot().into_iter().map(|(key, value)| (key, at(&value, depth + 1)));
        return typed_map(entries.collect(), map.ty());
    }
    if let Some(list) = as_list(value) {
        let items = list.items().iter().map(|item| at(item, depth + 1));
        return typed_list(items.collect(), list.ty());
    }
    match number::whole(value) {
        Some(int) if value.is_number() && !value.is_integer() => Value::from(int),
        _ => value.clone(),
    }
}
