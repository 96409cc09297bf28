//! Values on their way between minijinja and the function library.

use std::sync::Arc;

use minijinja::value::{ObjectRepr, ValueKind};

use crate::function::{Ctx, FnError, Param, Signature};
use crate::value::number::{self, IntegerType, as_float, integer_type};
use crate::value::{
    Entries, ListType, MapType, Value, as_byte_slice, as_list, as_map, as_object, int64, is_string,
    list_value, map_value, nil, type_of,
};

/// Nesting at which a Jinja template's values end: minijinja compares and drops them by recursion.
const MAX_DEPTH: usize = 500;

/// Bytes of text that cost as much as one step, as in Go templates.
const BYTES_PER_STEP: u64 = 16;

/// A value with our maps and lists in place of minijinja's own, so that functions may change it.
///
/// # Errors
/// For what templates cannot hand on (macros, loops), and for values nested too deep.
pub(super) fn golden(value: &Value) -> Result<Value, FnError> {
    golden_at(value, 0)
}

fn golden_at(value: &Value, depth: usize) -> Result<Value, FnError> {
    if depth > MAX_DEPTH {
        return Err(FnError::limit("value depth", MAX_DEPTH));
    }
    let Some(object) = value.as_object() else {
        return match value.kind() {
            ValueKind::Invalid => Err(FnError::new(value.to_string())),
            _ => Ok(value.clone()),
        };
    };
    if is_ours(value) {
        return Ok(value.clone());
    }
    let refusal = || FnError::new(format!("{} is no value", describe(value)));
    match object.repr() {
        ObjectRepr::Map => {
            let pairs = object.try_iter_pairs().ok_or_else(refusal)?;
            let entry = |(key, value): (Value, Value)| {
                let key = super::output::text_of(&key)?.into_owned();
                Ok((Arc::from(key), golden_at(&value, depth + 1)?))
            };
            Ok(map_value(pairs.map(entry).collect::<Result<Entries, FnError>>()?))
        }
        ObjectRepr::Seq | ObjectRepr::Iterable => {
            let items = object.try_iter().ok_or_else(refusal)?;
            let items = items.map(|item| golden_at(&item, depth + 1));
            Ok(list_value(items.collect::<Result<_, _>>()?))
        }
        _ => Err(refusal()),
    }
}

fn is_ours(value: &Value) -> bool {
    as_map(value).is_some()
        || as_list(value).is_some()
        || as_object(value).is_some()
        || as_byte_slice(value).is_some()
}

fn describe(value: &Value) -> String {
    let text = value.to_string();
    text.chars().take(60).collect()
}

/// What a function or operator gave, after it was paid for; see [`golden`].
pub(super) fn counted(ctx: &mut Ctx<'_>, value: Value) -> Result<Value, FnError> {
    if let Some(bytes) = value.as_bytes() {
        ctx.check_len(bytes.len())?;
        ctx.charge(bytes.len() as u64 / BYTES_PER_STEP)?;
        return Ok(value);
    }
    if value.as_object().is_none() {
        return Ok(value);
    }
    let known = is_ours(&value);
    let value = match as_list(&value) {
        // Go's nil slice is an empty list here.
        Some(list) if list.ty() == ListType::Nil => list_value(Vec::new()),
        _ => golden(&value)?,
    };
    let items = as_list(&value).map_or(0, |list| list.items().len());
    if !known {
        ctx.check_items(items)?;
        ctx.charge(items as u64)?;
    }
    check_depth(&value)?;
    Ok(value)
}

/// Refuses maps and lists nested too deep, without recursion.
fn check_depth(value: &Value) -> Result<(), FnError> {
    let mut level = inner(value);
    for _ in 0..MAX_DEPTH {
        if level.is_empty() {
            return Ok(());
        }
        level = level.iter().flat_map(inner).collect();
        // A map within itself, or a lattice of lists, has more paths than values.
        if level.len() > MAX_LEVEL {
            return Err(FnError::limit("value size", MAX_LEVEL));
        }
    }
    Err(FnError::limit("value depth", MAX_DEPTH))
}

/// Maps and lists at one level of a value.
const MAX_LEVEL: usize = 100_000;

fn inner(value: &Value) -> Vec<Value> {
    let container = |value: &&Value| as_map(value).is_some() || as_list(value).is_some();
    if let Some(map) = as_map(value) {
        map.read().values().filter(container).cloned().collect()
    } else if let Some(list) = as_list(value) {
        list.items().iter().filter(container).cloned().collect()
    } else {
        Vec::new()
    }
}

/// The arguments of a function, converted where a Jinja template need not see the difference: an
/// integer where a float is wanted, any list where a list is wanted.
///
/// # Errors
/// When number or types do not fit; the text names the argument.
pub(super) fn fitted(name: &str, signature: Signature, args: &[Value]) -> Result<Vec<Value>, FnError> {
    if args.last().is_some_and(Value::is_kwargs) {
        return Err(FnError::new(format!("{name} takes no arguments by name")));
    }
    let (given, wanted) = (args.len(), signature.fixed.len());
    if given < wanted || (given > wanted && signature.rest.is_none()) {
        let least = if signature.rest.is_some() { "at least " } else { "" };
        return Err(FnError::new(format!("{name} takes {least}{wanted} arguments and was given {given}")));
    }
    let fit = |(index, arg): (usize, &Value)| {
        let arg = golden(arg)?;
        if arg.is_undefined() && !LENIENT.contains(&name) {
            return Err(FnError::new(format!("argument {} of {name} is undefined", index + 1)));
        }
        let param = signature.param(index).unwrap_or(Param::Any);
        let found = type_of(&arg);
        convert(arg, param).ok_or_else(|| {
            let place = index + 1;
            FnError::new(format!("argument {place} of {name} must be {}, not {found}", wanted_name(param)))
        })
    };
    args.iter().enumerate().map(fit).collect()
}

/// Functions that are asked what to do about a value that is not there.
const LENIENT: &[&str] =
    &["default", "coalesce", "empty", "required", "ternary", "any", "all", "kindIs", "kindOf"];

fn convert(value: Value, param: Param) -> Option<Value> {
    match param {
        Param::Any => Some(if value.is_undefined() { nil() } else { value }),
        Param::String => is_string(&value).then_some(value),
        Param::Int if integer_type(&value) == Some(IntegerType::Int) => Some(value),
        Param::Int => number::whole(&value).map(Value::from),
        Param::Int64 => number::whole(&value).map(int64),
        Param::Float => as_float(&value).filter(|_| value.is_number()).map(Value::from),
        Param::Bool => (value.kind() == ValueKind::Bool).then_some(value),
        Param::Map => match as_map(&value) {
            Some(map) if map.ty() == MapType::Strings => {
                Some(map_value(map.snapshot().into_iter().collect()))
            }
            Some(_) => Some(value),
            None => value.is_none().then_some(value),
        },
        Param::List => match as_list(&value) {
            Some(list) if matches!(list.ty(), ListType::Any | ListType::Nil) => Some(value),
            Some(list) => Some(list_value(list.items().to_vec())),
            None => value.is_none().then_some(value),
        },
        Param::Object(name) => {
            as_object(&value).is_some_and(|object| object.type_name() == name).then_some(value)
        }
    }
}

fn wanted_name(param: Param) -> &'static str {
    match param {
        Param::Any => "a value",
        Param::String => "a string",
        Param::Int | Param::Int64 => "an integer",
        Param::Float => "a number",
        Param::Bool => "true or false",
        Param::Map => "a mapping",
        Param::List => "a list",
        Param::Object(name) => name,
    }
}
