//! Functions over lists.

use super::args::{any, int, items, list, rest, to_int};
use super::equal::deep_equal;
use super::{ANY, INT};
use crate::function::{Ctx, Entry, FnError};
use crate::value::{ListType, Value, as_list, is_empty, is_nil, kind_of, list_value, nil, typed_list};

pub(super) const TABLE: &[Entry] = &[
    Entry::variadic("list", &[], ANY, tuple),
    Entry::variadic("tuple", &[], ANY, tuple),
    Entry::fixed("append", &[ANY, ANY], push),
    Entry::fixed("push", &[ANY, ANY], push),
    Entry::fixed("mustAppend", &[ANY, ANY], push),
    Entry::fixed("mustPush", &[ANY, ANY], push),
    Entry::fixed("prepend", &[ANY, ANY], prepend),
    Entry::fixed("mustPrepend", &[ANY, ANY], prepend),
    Entry::fixed("first", &[ANY], first),
    Entry::fixed("mustFirst", &[ANY], first),
    Entry::fixed("rest", &[ANY], tail),
    Entry::fixed("mustRest", &[ANY], tail),
    Entry::fixed("last", &[ANY], last),
    Entry::fixed("mustLast", &[ANY], last),
    Entry::fixed("initial", &[ANY], initial),
    Entry::fixed("mustInitial", &[ANY], initial),
    Entry::fixed("reverse", &[ANY], reverse),
    Entry::fixed("mustReverse", &[ANY], reverse),
    Entry::fixed("uniq", &[ANY], uniq),
    Entry::fixed("mustUniq", &[ANY], uniq),
    Entry::fixed("compact", &[ANY], compact),
    Entry::fixed("mustCompact", &[ANY], compact),
    Entry::variadic("without", &[ANY], ANY, without),
    Entry::variadic("mustWithout", &[ANY], ANY, without),
    Entry::fixed("has", &[ANY, ANY], has),
    Entry::fixed("mustHas", &[ANY, ANY], has),
    Entry::variadic("slice", &[ANY], ANY, slice),
    Entry::variadic("mustSlice", &[ANY], ANY, slice),
    Entry::variadic("concat", &[], ANY, concat),
    Entry::fixed("chunk", &[INT, ANY], chunk),
    Entry::fixed("mustChunk", &[INT, ANY], chunk),
];

type Result<T = Value> = std::result::Result<T, FnError>;

fn tuple(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(list_value(args.to_vec()))
}

fn push(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let mut items = list(any(args, 0)?, "Cannot push on type")?.into_owned();
    ctx.charge(items.len() as u64 / 16)?;
    items.push(any(args, 1)?.clone());
    Ok(list_value(items))
}

fn prepend(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let items = list(any(args, 0)?, "Cannot prepend on type")?;
    ctx.charge(items.len() as u64 / 16)?;
    let first = std::iter::once(any(args, 1)?.clone());
    Ok(list_value(first.chain(items.iter().cloned()).collect()))
}

fn first(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let items = list(any(args, 0)?, "Cannot find first on type")?;
    Ok(items.first().cloned().unwrap_or_else(nil))
}

fn last(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let items = list(any(args, 0)?, "Cannot find last on type")?;
    Ok(items.last().cloned().unwrap_or_else(nil))
}

fn tail(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let items = list(any(args, 0)?, "Cannot find rest on type")?;
    Ok(cut(&items, rest(&items, 1)))
}

/// The rest of a list. Of an empty one Go's library has a nil slice.
fn cut(whole: &[Value], part: &[Value]) -> Value {
    let ty = if whole.is_empty() { ListType::Nil } else { ListType::Any };
    typed_list(part.to_vec(), ty)
}

fn initial(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let items = list(any(args, 0)?, "Cannot find initial on type")?;
    let initial = items.split_last().map_or(&[][..], |(_, initial)| initial);
    Ok(cut(&items, initial))
}

fn reverse(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let items = list(any(args, 0)?, "Cannot find reverse on type")?;
    Ok(list_value(items.iter().rev().cloned().collect()))
}

fn uniq(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let items = list(any(args, 0)?, "Cannot find uniq on type")?;
    let mut kept: Vec<Value> = Vec::new();
    for item in items.iter() {
        ctx.charge(1 + kept.len() as u64 / 16)?;
        if !kept.iter().any(|known| deep_equal(item, known)) {
            kept.push(item.clone());
        }
    }
    Ok(list_value(kept))
}

fn compact(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let items = list(any(args, 0)?, "Cannot compact on type")?;
    Ok(list_value(items.iter().filter(|item| !is_empty(item)).cloned().collect()))
}

fn without(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let items = list(any(args, 0)?, "Cannot find without on type")?;
    let omitted = rest(args, 1);
    ctx.charge((items.len() * omitted.len()) as u64 / 16)?;
    let kept = items.iter().filter(|item| !omitted.iter().any(|out| deep_equal(item, out)));
    Ok(list_value(kept.cloned().collect()))
}

fn has(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let (needle, haystack) = (any(args, 0)?, any(args, 1)?);
    if is_nil(haystack) {
        return Ok(Value::from(false));
    }
    let items = list(haystack, "Cannot find has on type")?;
    ctx.charge(items.len() as u64 / 16)?;
    Ok(Value::from(items.iter().any(|item| deep_equal(needle, item))))
}

fn slice(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let source = any(args, 0)?;
    let items = list(source, "list should be type of slice or array but")?;
    if items.is_empty() {
        return Ok(nil());
    }
    let start = args.get(1).map_or(0, to_int);
    let end = args.get(2).map_or(i64::try_from(items.len()).unwrap_or(i64::MAX), to_int);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let Some(part) = range.and_then(|(start, end)| items.get(start..end)) else {
        return Err(FnError::new("reflect.Value.Slice: slice index out of bounds"));
    };
    let ty = as_list(source).map_or(ListType::Any, |list| list.ty());
    Ok(typed_list(part.to_vec(), ty))
}

fn concat(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let mut all = Vec::new();
    for arg in args {
        if is_nil(arg) {
            return Err(FnError::new(super::args::NIL_POINTER));
        }
        let Some(items) = items(arg) else {
            let kind = kind_of(arg);
            return Err(FnError::new(format!("Cannot concat type {kind} as list")));
        };
        ctx.charge(items.len() as u64 / 16)?;
        all.extend(items.iter().cloned());
    }
    Ok(list_value(all))
}

fn chunk(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let items = list(any(args, 1)?, "Cannot chunk type")?;
    let size = usize::try_from(int(args, 0)?).unwrap_or(0);
    if size == 0 {
        return Err(FnError::new("runtime error: makeslice: len out of range"));
    }
    let chunks = items.chunks(size).map(|chunk| list_value(chunk.to_vec()));
    Ok(typed_list(chunks.collect(), ListType::Lists))
}
