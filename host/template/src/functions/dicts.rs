//! Functions over maps.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::args::{any, conversion, map, rest, strval, text};
use super::equal::deep_copy;
use super::merge::merge_into;
use super::{ANY, MAP, STRING};
use crate::function::{Ctx, Entry, FnError};
use crate::value::{Entries, MapType, Value, as_map, as_text, is_nil, list_value, map_value, string_list};

pub(super) const TABLE: &[Entry] = &[
    Entry::variadic("dict", &[], ANY, dict),
    Entry::fixed("get", &[MAP, STRING], get),
    Entry::fixed("set", &[MAP, STRING, ANY], set),
    Entry::fixed("unset", &[MAP, STRING], unset),
    Entry::fixed("hasKey", &[MAP, STRING], has_key),
    Entry::variadic("pluck", &[STRING], MAP, pluck),
    Entry::variadic("keys", &[], MAP, keys),
    Entry::fixed("values", &[MAP], values),
    Entry::variadic("pick", &[MAP], STRING, pick),
    Entry::variadic("omit", &[MAP], STRING, omit),
    Entry::variadic("dig", &[], ANY, dig),
    Entry::fixed("deepCopy", &[ANY], copy),
    Entry::fixed("mustDeepCopy", &[ANY], copy),
    Entry::variadic("merge", &[MAP], MAP, |ctx, args| merged(ctx, args, false)),
    Entry::variadic("mustMerge", &[MAP], MAP, |ctx, args| merged(ctx, args, false)),
    Entry::variadic("mergeOverwrite", &[MAP], MAP, |ctx, args| merged(ctx, args, true)),
    Entry::variadic("mustMergeOverwrite", &[MAP], MAP, |ctx, args| merged(ctx, args, true)),
];

type Result<T = Value> = std::result::Result<T, FnError>;

fn key(bytes: Vec<u8>) -> Arc<str> {
    crate::yaml::json::lossy(&bytes).into()
}

fn dict(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let mut entries = Entries::new();
    for pair in args.chunks(2) {
        let value = pair.get(1).cloned().unwrap_or_else(|| Value::from(""));
        let name = any(pair, 0)?;
        let name = name.as_str().map_or_else(|| strval(name).map(key), |text| Ok(Arc::from(text)))?;
        entries.insert(name, value);
    }
    Ok(map_value(entries))
}

fn get(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let found = map(args, 0)?.and_then(|map| map.get(&text(args, 1).ok()?));
    Ok(found.unwrap_or_else(|| Value::from("")))
}

fn set(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let Some(map) = map(args, 0)? else {
        return Err(FnError::new("assignment to entry in nil map"));
    };
    let (target, value) = (any(args, 0)?, any(args, 2)?);
    map.insert(text(args, 1)?, value.clone());
    ctx.entangle(target, value);
    Ok(target.clone())
}

fn unset(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    if let Some(map) = map(args, 0)? {
        map.remove(&text(args, 1)?);
    }
    Ok(any(args, 0)?.clone())
}

fn has_key(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let name = text(args, 1)?;
    Ok(Value::from(map(args, 0)?.is_some_and(|map| map.contains_key(&name))))
}

fn pluck(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let name = text(args, 0)?;
    let maps = rest(args, 1).iter().filter_map(as_map);
    Ok(list_value(maps.filter_map(|map| map.get(&name)).collect()))
}

/// Go gives keys and values in no order; here the order is the keys'.
fn keys(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let keys = args.iter().filter_map(as_map).flat_map(|map| map.keys());
    Ok(string_list(keys.map(Value::from)))
}

fn values(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let entries = map(args, 0)?.map(|map| map.snapshot()).unwrap_or_default();
    Ok(list_value(entries.into_iter().map(|(_, value)| value).collect()))
}

fn pick(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let mut picked = Entries::new();
    if let Some(map) = map(args, 0)? {
        for name in rest(args, 1).iter().filter_map(as_text) {
            if let Some(value) = map.get(&name) {
                picked.insert(name.into(), value);
            }
        }
    }
    Ok(map_value(picked))
}

fn omit(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let omitted: BTreeSet<_> = rest(args, 1).iter().filter_map(as_text).collect();
    let entries = map(args, 0)?.map(|map| map.snapshot()).unwrap_or_default();
    let kept = entries.into_iter().filter(|(key, _)| !omitted.contains(&**key));
    Ok(map_value(kept.collect()))
}

fn dig(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let [path @ .., default, root] = args else {
        return Err(FnError::new("dig needs at least three arguments"));
    };
    if path.is_empty() {
        return Err(FnError::new("dig needs at least three arguments"));
    }
    plain_map(root)?;
    let names = path.iter().map(|name| as_text(name).ok_or_else(|| conversion(name, "string")));
    let names = names.collect::<Result<Vec<_>>>()?;
    let mut value = root.clone();
    for name in names {
        let Some(next) = plain_map(&value)?.get(&name) else {
            return Ok(default.clone());
        };
        value = next;
    }
    Ok(value)
}

/// The map in a value whose Go type is exactly `map[string]interface {}`.
fn plain_map(value: &Value) -> Result<&crate::value::Map> {
    let map = as_map(value).filter(|map| map.ty() == MapType::Any);
    map.ok_or_else(|| conversion(value, "map[string]interface {}"))
}

fn copy(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    ctx.charge(1)?;
    let value = any(args, 0)?;
    if is_nil(value) {
        return Err(FnError::new("reflect: call of reflect.Value.Type on zero Value"));
    }
    deep_copy(value)
}

fn merged(ctx: &mut Ctx<'_>, args: &[Value], overwrite: bool) -> Result {
    let target = match any(args, 0)? {
        nothing if is_nil(nothing) => map_value(Entries::new()),
        map => map.clone(),
    };
    for source in rest(args, 1) {
        merge_into(ctx, &target, source, overwrite)?;
    }
    Ok(target)
}
