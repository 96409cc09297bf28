//! `reflect.DeepEqual`, and copies.

use crate::function::FnError;
use crate::value::number::{Number, number};
use crate::value::object::GoObject;
use crate::value::print::MAX_DEPTH;
use crate::value::{
    Entries, List, ListType, MapType, Value, as_byte_slice, as_list, as_map, as_object, as_string,
    frozen_map, is_nil, same_object, type_of, typed_list, typed_map,
};

/// Whether two values have the same type and, all the way down, the same content.
pub(crate) fn deep_equal(a: &Value, b: &Value) -> bool {
    equal_at(a, b, 0)
}

fn equal_at(a: &Value, b: &Value, depth: usize) -> bool {
    if is_nil(a) || is_nil(b) {
        return is_nil(a) && is_nil(b);
    }
    if type_of(a) != type_of(b) {
        return false;
    }
    // Go takes what it is already comparing for equal; depth stands for that.
    if depth > MAX_DEPTH || same_object(a, b) {
        return true;
    }
    if let (Some(a), Some(b)) = (as_map(a), as_map(b)) {
        let (a, b) = (a.glance(), b.glance());
        let pairs = a.iter().zip(&b);
        return a.len() == b.len() && { pairs }.all(|((k, a), (l, b))| k == l && equal_at(a, b, depth + 1));
    }
    if let (Some(a), Some(b)) = (as_list(a), as_list(b)) {
        let is_nil = |list: &List| list.ty() == ListType::Nil;
        if is_nil(a) != is_nil(b) {
            return false;
        }
        let (a, b) = (a.items(), b.items());
        return a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal_at(a, b, depth + 1));
    }
    scalars_equal(a, b, depth)
}

fn scalars_equal(a: &Value, b: &Value, depth: usize) -> bool {
    if let (Some(a), Some(b)) = (number(a), number(b)) {
        return numbers_equal(a, b);
    }
    if let (Some(a), Some(b)) = (as_string(a), as_string(b)) {
        return a == b;
    }
    if let (Some(a), Some(b)) = (as_byte_slice(a), as_byte_slice(b)) {
        return a == b;
    }
    match (as_object(a), as_object(b)) {
        (Some(a), Some(b)) => objects_equal(a, b, depth),
        _ => a.is_true() == b.is_true(),
    }
}

fn numbers_equal(a: Number, b: Number) -> bool {
    match (a, b) {
        (Number::Float(a), Number::Float(b)) => a == b,
        (a, b) => a == b,
    }
}

fn objects_equal(a: &dyn GoObject, b: &dyn GoObject, depth: usize) -> bool {
    let (left, right) = (a.entries(), b.entries());
    let same = |((k, a), (l, b)): (&(Value, Value), &(Value, Value))| {
        equal_at(k, l, depth + 1) && equal_at(a, b, depth + 1)
    };
    a.text() == b.text() && left.len() == right.len() && left.iter().zip(&right).all(same)
}

/// A copy that shares no map or list with the original.
pub(crate) fn deep_copy(value: &Value) -> Result<Value, FnError> {
    copy_at(value, 0)
}

fn copy_at(value: &Value, depth: usize) -> Result<Value, FnError> {
    if depth > MAX_DEPTH {
        return Err(FnError::limit("value depth", MAX_DEPTH));
    }
    if let Some(map) = as_map(value) {
        if let Some(frozen) = map.frozen().filter(|_| map.ty() == MapType::Any) {
            return Ok(frozen_map(frozen));
        }
        let copy = |(key, value)| Ok((key, copy_at(&value, depth + 1)?));
        let entries = map.snapshot().into_iter().map(copy).collect::<Result<Entries, FnError>>()?;
        return Ok(typed_map(entries, map.ty()));
    }
    if let Some(list) = as_list(value) {
        let items = list.items().iter().map(|item| copy_at(item, depth + 1));
        return Ok(typed_list(items.collect::<Result<_, FnError>>()?, list.ty()));
    }
    Ok(value.clone())
}
