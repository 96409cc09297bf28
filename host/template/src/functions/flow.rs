//! Defaults, choices, and what a value is.

use super::args::{any, text};
use super::equal::deep_equal;
use super::{ANY, BOOL, STRING};
use crate::function::{Ctx, Entry, FnError};
use crate::value::{Value, is_empty, kind_of, nil, type_of};

pub(super) const TABLE: &[Entry] = &[
    Entry::variadic("default", &[ANY], ANY, default),
    Entry::fixed("empty", &[ANY], empty),
    Entry::variadic("coalesce", &[], ANY, coalesce),
    Entry::variadic("all", &[], ANY, all),
    Entry::variadic("any", &[], ANY, some),
    Entry::fixed("ternary", &[ANY, ANY, BOOL], ternary),
    Entry::fixed("typeOf", &[ANY], type_name),
    Entry::fixed("typeIs", &[STRING, ANY], type_is),
    Entry::fixed("typeIsLike", &[STRING, ANY], type_is_like),
    Entry::fixed("kindOf", &[ANY], kind_name),
    Entry::fixed("kindIs", &[STRING, ANY], kind_is),
    Entry::fixed("deepEqual", &[ANY, ANY], equal),
];

type Result = std::result::Result<Value, FnError>;

fn default(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let given = args.get(1).filter(|given| !is_empty(given));
    Ok(given.map_or_else(|| any(args, 0), Ok)?.clone())
}

fn empty(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(Value::from(is_empty(any(args, 0)?)))
}

fn coalesce(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(args.iter().find(|arg| !is_empty(arg)).cloned().unwrap_or_else(nil))
}

fn all(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(Value::from(!args.iter().any(is_empty)))
}

fn some(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(Value::from(!args.iter().all(is_empty)))
}

fn ternary(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let chosen = usize::from(!any(args, 2)?.is_true());
    Ok(any(args, chosen)?.clone())
}

fn type_name(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(Value::from(type_of(any(args, 0)?)))
}

fn type_is(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(Value::from(text(args, 0)? == type_of(any(args, 1)?)))
}

fn type_is_like(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let (wanted, found) = (text(args, 0)?, type_of(any(args, 1)?));
    Ok(Value::from(wanted == found || found.strip_prefix('*') == Some(&wanted)))
}

fn kind_name(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(Value::from(kind_of(any(args, 0)?)))
}

fn kind_is(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(Value::from(text(args, 0)? == kind_of(any(args, 1)?)))
}

fn equal(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(Value::from(deep_equal(any(args, 0)?, any(args, 1)?)))
}
