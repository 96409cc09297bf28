//! `eq`, `ne`, `lt`, `le`, `gt`, `ge`: Go compares values of one basic kind, and nothing else.

use std::cmp::Ordering;

use minijinja::value::ValueKind;

use super::Complex;
use crate::function::{Ctx, FnError};
use crate::printf;
use crate::value::number::{Number, number};
use crate::value::{Value, is_nil, is_string, kind_of, object, same_object, type_of};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Basic<'v> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Complex(Complex),
    Str(&'v [u8]),
}

fn basic(value: &Value) -> Option<Basic<'_>> {
    if value.kind() == ValueKind::Bool {
        return Some(Basic::Bool(value.is_true()));
    }
    if is_string(value) {
        return value.as_bytes().map(Basic::Str);
    }
    if let Some(complex) = object::downcast::<Complex>(value) {
        return Some(Basic::Complex(*complex));
    }
    Some(match number(value)? {
        Number::Int(int) => Basic::Int(int),
        Number::Uint(uint) => Basic::Uint(uint),
        Number::Float(float) => Basic::Float(float),
    })
}

/// Whether two basics are of one kind; integers are, signed or not.
fn same_kind(a: Basic<'_>, b: Basic<'_>) -> bool {
    let integer = |basic| matches!(basic, Basic::Int(_) | Basic::Uint(_));
    (integer(a) && integer(b)) || std::mem::discriminant(&a) == std::mem::discriminant(&b)
}

/// The order of two basics of one kind; `None` also for NaN.
fn order(a: Basic<'_>, b: Basic<'_>) -> Option<Ordering> {
    match (a, b) {
        (Basic::Bool(a), Basic::Bool(b)) => Some(a.cmp(&b)),
        (Basic::Int(a), Basic::Int(b)) => Some(a.cmp(&b)),
        (Basic::Uint(a), Basic::Uint(b)) => Some(a.cmp(&b)),
        // An unsigned value is one here only above the range of the signed ones.
        (Basic::Int(_), Basic::Uint(_)) => Some(Ordering::Less),
        (Basic::Uint(_), Basic::Int(_)) => Some(Ordering::Greater),
        (Basic::Float(a), Basic::Float(b)) => a.partial_cmp(&b),
        (Basic::Str(a), Basic::Str(b)) => Some(a.cmp(b)),
        (Basic::Complex(a), Basic::Complex(b)) => (a == b).then_some(Ordering::Equal),
        _ => None,
    }
}

fn incompatible(a: &Value, b: &Value) -> FnError {
    let (a, b) = (type_of(a), type_of(b));
    FnError::new(format!("incompatible types for comparison: {a} and {b}"))
}

/// Whether the first value equals any of the others.
pub(super) fn eq(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    equals_any(args).map(Value::from)
}

/// The opposite of `eq`.
pub(super) fn ne(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    equals_any(args).map(|equal| Value::from(!equal))
}

fn equals_any(args: &[Value]) -> Result<bool, FnError> {
    let (first, others) = match args.split_first() {
        Some((first, others)) if !others.is_empty() => (first, others),
        _ => return Err(FnError::new("missing argument for comparison")),
    };
    for other in others {
        if equal(first, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn equal(a: &Value, b: &Value) -> Result<bool, FnError> {
    match (basic(a), basic(b)) {
        (Some(x), Some(y)) if same_kind(x, y) => Ok(order(x, y) == Some(Ordering::Equal)),
        (None, None) => equal_others(a, b),
        _ if is_nil(a) || is_nil(b) => Ok(false),
        _ => Err(incompatible(a, b)),
    }
}

/// Values of no basic kind: nil equals nil, objects themselves; maps and lists are not compared.
fn equal_others(a: &Value, b: &Value) -> Result<bool, FnError> {
    if is_nil(a) || is_nil(b) {
        return Ok(is_nil(a) && is_nil(b));
    }
    let text = |format: &[u8], value| {
        let text = printf::sprintf(format, std::slice::from_ref(value));
        text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    if kind_of(a) != kind_of(b) {
        let (ta, tb) = (type_of(a), type_of(b));
        return Err(FnError::new(format!(
            "non-comparable types {}: {ta}, {tb}: {}",
            text(b"%s", a)?,
            text(b"%v", b)?
        )));
    }
    if !comparable(b) {
        return Err(FnError::new(format!("non-comparable type {}: {}", text(b"%s", b)?, type_of(b))));
    }
    Ok(same_object(a, b))
}

fn comparable(value: &Value) -> bool {
    matches!(kind_of(value), "struct" | "ptr")
}

/// Whether the first value is before the second.
pub(super) fn lt(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    compare(args).map(|order| Value::from(order == Some(Ordering::Less)))
}

/// Whether the first value is before the second or equal.
pub(super) fn le(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    compare(args).map(|order| Value::from(at_most(order)))
}

/// Whether the first value is after the second: Go's opposite of `le`, for NaN too.
pub(super) fn gt(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    compare(args).map(|order| Value::from(!at_most(order)))
}

/// Whether the first value is not before the second: Go's opposite of `lt`, for NaN too.
pub(super) fn ge(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    compare(args).map(|order| Value::from(order != Some(Ordering::Less)))
}

fn at_most(order: Option<Ordering>) -> bool {
    matches!(order, Some(Ordering::Less | Ordering::Equal))
}

fn compare(args: &[Value]) -> Result<Option<Ordering>, FnError> {
    let [a, b] = args else {
        return Err(FnError::arguments());
    };
    let bad = || FnError::new("invalid type for comparison");
    let (x, y) = (basic(a).ok_or_else(bad)?, basic(b).ok_or_else(bad)?);
    if !same_kind(x, y) {
        return Err(incompatible(a, b));
    }
    match x {
        Basic::Bool(_) | Basic::Complex(_) => Err(bad()),
        _ => Ok(order(x, y)),
    }
}
