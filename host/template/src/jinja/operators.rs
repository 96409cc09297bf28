//! What printed templates call in place of Jinja's operators, literals and built-in filters.

use minijinja::value::{Kwargs, Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error as JinjaError, ErrorKind, State};

use super::library::arguments_of;
use super::{arguments, host, output};
use crate::function::{Ctx, FnError};
use crate::functions::args::to_int;
use crate::value::{Entries, Map, Value, as_list, as_map, as_text, list_value, map_value};

type Args = Rest<ValueOrKwargs>;
type Result<T = Value, E = JinjaError> = std::result::Result<T, E>;

pub(super) const CONCAT: &str = "__concat";
pub(super) const COUNTED: &str = "__counted";
pub(super) const COMPARE: &str = "__compare";
pub(super) const LIST: &str = "__list";
pub(super) const DICT: &str = "__dict";
pub(super) const SLICE: &str = "__slice";
pub(super) const FILTER: &str = "__filter";
pub(super) const TEST: &str = "__test";
pub(super) const HELD: &str = "__held";

/// Adds them, and our versions of filters and functions whose results may be far longer than what they
/// are given.
pub(super) fn add_to(env: &mut Environment<'static>) {
    env.add_function(CONCAT, |state: &mut State<'_, '_>, args: Args| {
        let args = plain(args);
        host::call(state, "~", |ctx| concat(ctx, &args))
    });
    env.add_function(COUNTED, |state: &mut State<'_, '_>, value: Value| {
        defined(&value)?;
        host::call(state, "operator", |_| Ok(value))
    });
    env.add_function(COMPARE, |state: &mut State<'_, '_>, args: Args| {
        let args = plain(args);
        args.iter().try_for_each(defined)?;
        host::call(state, "comparison", |_| compare(&args))
    });
    env.add_function(LIST, |state: &mut State<'_, '_>, args: Args| {
        let args = plain(args);
        args.iter().try_for_each(kept)?;
        host::call(state, "list", |_| Ok(list_value(golden_all(&args)?)))
    });
    env.add_function(DICT, |state: &mut State<'_, '_>, args: Args| {
        let args = plain(args);
        args.iter().try_for_each(kept)?;
        host::call(state, "dict", |_| dict(&args))
    });
    env.add_function("dict", |state: &mut State<'_, '_>, args: Args| {
        let args = plain(args);
        host::call(state, "dict", |_| dict_by_name(&args))
    });
    env.add_function("range", |state: &mut State<'_, '_>, args: Args| {
        let args = plain(args);
        host::call(state, "range", |ctx| range(ctx, &args))
    });
    env.add_function("namespace", namespace);
    env.add_function(SLICE, |state: &mut State<'_, '_>, args: Args| {
        let args = plain(args);
        args.iter().try_for_each(defined)?;
        host::call(state, "slice", |_| slice(&args))
    });
    env.add_function(FILTER, |state: &mut State<'_, '_>, args: Args| {
        builtin(state, &plain(args), Kind::Filter)
    });
    env.add_function(TEST, |state: &mut State<'_, '_>, args: Args| builtin(state, &plain(args), Kind::Test));
    env.add_function(HELD, |value: Value| kept(&value).map(|()| value));
    add_filters(env);
}

/// Filters of Jinja's whose results we count before they are made.
fn add_filters(env: &mut Environment<'static>) {
    env.add_filter("replace", |state: &mut State<'_, '_>, args: Args| {
        let args = plain(args);
        host::call(state, "replace", |ctx| replace(ctx, &args))
    });
    env.add_filter("join", |state: &mut State<'_, '_>, args: Args| {
        let args = plain(args);
        host::call(state, "join", |ctx| join(ctx, &args))
    });
    env.add_filter("indent", |state: &mut State<'_, '_>, args: Args| {
        let args = plain(args);
        host::call(state, "indent", |ctx| indent(ctx, &args))
    });
    env.add_filter("format", |state: &mut State<'_, '_>, args: Args| {
        let args = plain(args);
        host::call(state, "format", |ctx| format(ctx, &args))
    });
    env.add_filter("string", |state: &mut State<'_, '_>, value: Value| {
        defined(&value)?;
        host::call(state, "string", |_| Ok(Value::from(output::text_of(&value)?.into_owned())))
    });
    env.add_filter(
        "tojson",
        |state: &mut State<'_, '_>, value: Value, indent: Option<Value>, named: Kwargs| {
            defined(&value)?;
            let pretty = indent.is_some() || named.get::<Option<Value>>("indent")?.is_some();
            named.assert_all_used()?;
            host::call(state, "tojson", |_| tojson(&value, pretty))
        },
    );
}

fn plain(args: Args) -> Vec<Value> {
    args.0.into_iter().map(ValueOrKwargs::into_value).collect()
}

/// Strict: nothing is done with what is not there.
fn defined(value: &Value) -> Result<()> {
    if value.is_undefined() { Err(JinjaError::from(ErrorKind::UndefinedError)) } else { Ok(()) }
}

/// A namespace in a list or in another namespace could hold itself.
fn kept(value: &Value) -> Result<()> {
    defined(value)?;
    let is_namespace = value.kind() == ValueKind::Map && as_map(value).is_none() && is_namespace(value);
    match is_namespace {
        true => {
            Err(JinjaError::new(ErrorKind::InvalidOperation, "a namespace cannot be put into another value"))
        }
        false => Ok(()),
    }
}

fn is_namespace(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().ends_with("Namespace"))
}

fn golden_all(args: &[Value]) -> std::result::Result<Vec<Value>, FnError> {
    args.iter().map(arguments::golden).collect()
}

fn concat(ctx: &Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    let mut text = String::new();
    for arg in args {
        if arg.is_undefined() {
            return Err(FnError::new("undefined value cannot be joined with `~`"));
        }
        let part = output::text_of(arg)?;
        ctx.check_len(text.len() + part.len())?;
        text.push_str(&part);
    }
    Ok(Value::from(text))
}

/// `a < b <= c` as values and operators in turn.
fn compare(args: &[Value]) -> Result<Value, FnError> {
    let mut rest = args;
    while let [left, operator, right, ..] = rest {
        let operator = operator.as_str().unwrap_or_default();
        if !holds(left, operator, right)? {
            return Ok(Value::from(false));
        }
        rest = rest.get(2..).unwrap_or_default();
    }
    Ok(Value::from(true))
}

fn holds(left: &Value, operator: &str, right: &Value) -> Result<bool, FnError> {
    let (left, right) = (&arguments::golden(left)?, &arguments::golden(right)?);
    Ok(match operator {
        "==" => left == right,
        "!=" => left != right,
        "<" => left < right,
        "<=" => left <= right,
        ">" => left > right,
        ">=" => left >= right,
        "in" => contains(right, left)?,
        _ => !contains(right, left)?,
    })
}

fn contains(container: &Value, item: &Value) -> Result<bool, FnError> {
    if let Some(map) = as_map(container) {
        return Ok(as_text(item).is_some_and(|key| map.contains_key(&key)));
    }
    if let Some(list) = as_list(container) {
        return Ok(list.items().iter().any(|own| own == item));
    }
    match (as_text(container), as_text(item)) {
        (Some(text), Some(part)) => Ok(text.contains(&*part)),
        _ => Err(FnError::new(format!("cannot look for a {} in a {}", item.kind(), container.kind()))),
    }
}

/// Pairs of key and value, over a mapping where their number is odd.
fn dict(args: &[Value]) -> Result<Value, FnError> {
    let (base, pairs) = match args {
        [base, pairs @ ..] if pairs.len() % 2 == 0 => (Some(base), pairs),
        pairs => (None, pairs),
    };
    let mut entries: Entries = base.and_then(as_map).map(Map::snapshot).into_iter().flatten().collect();
    for pair in pairs.chunks_exact(2) {
        let [key, value] = pair else {
            continue;
        };
        entries.insert(output::text_of(key)?.into_owned().into(), arguments::golden(value)?);
    }
    Ok(map_value(entries))
}

/// `dict("a", 1)` as in Go templates, `dict(a=1)` and `dict(other, a=1)` as in Jinja.
fn dict_by_name(args: &[Value]) -> Result<Value, FnError> {
    let (named, plain) = match args.split_last() {
        Some((last, rest)) if last.is_kwargs() => (Some(last), rest),
        _ => (None, args),
    };
    if plain.len() == 1 && plain.first().is_some_and(|base| base.kind() != ValueKind::Map) {
        return Err(arguments_of("dict"));
    }
    let base = golden_all(plain)?;
    let made = dict(&base)?;
    let Some(named) = named.map(arguments::golden).transpose()? else {
        return Ok(made);
    };
    if let (Some(made), Some(named)) = (as_map(&made), as_map(&named)) {
        named.snapshot().into_iter().for_each(|(key, value)| drop(made.insert(key, value)));
    }
    Ok(made)
}

fn namespace(entries: Option<ValueOrKwargs>) -> Result {
    let object = entries.as_deref().and_then(Value::as_object);
    for (_, value) in object.and_then(|object| object.try_iter_pairs()).into_iter().flatten() {
        kept(&value)?;
    }
    minijinja::functions::namespace(entries)
}

/// Like Python's: from, to (without it) and step.
fn range(ctx: &Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    let numbers: Option<Vec<i64>> = args.iter().map(|arg| arg.is_number().then(|| to_int(arg))).collect();
    let (from, to, step) = match numbers.as_deref() {
        Some([to]) => (0, *to, 1),
        Some([from, to]) => (*from, *to, 1),
        Some([from, to, step]) if *step != 0 => (*from, *to, *step),
        _ => return Err(arguments_of("range")),
    };
    let span = if step > 0 { i128::from(to) - i128::from(from) } else { i128::from(from) - i128::from(to) };
    let count = (span.max(0) as u128).div_ceil(u128::from(step.unsigned_abs()));
    ctx.check_items(usize::try_from(count).unwrap_or(usize::MAX))?;
    let items = (0..count).map(|i| Value::from(from + step * i64::try_from(i).unwrap_or_default()));
    Ok(list_value(items.collect()))
}

/// Python's slices of lists and texts; a text is cut by characters.
fn slice(args: &[Value]) -> Result<Value, FnError> {
    let [value, from, to, step] = args else {
        return Err(arguments_of("slice"));
    };
    let step = if step.is_none() { 1 } else { to_int(step) };
    if step < 1 {
        return Err(FnError::new("the step of a slice must be 1 or more"));
    }
    let value = arguments::golden(value)?;
    if let Some(list) = as_list(&value) {
        return Ok(list_value(cut(list.items(), from, to, step)));
    }
    match as_text(&value) {
        Some(text) => {
            let letters: Vec<char> = text.chars().collect();
            Ok(Value::from(cut(&letters, from, to, step).into_iter().collect::<String>()))
        }
        None => Err(FnError::new(format!("cannot slice a {}", value.kind()))),
    }
}

fn cut<T: Clone>(items: &[T], from: &Value, to: &Value, step: i64) -> Vec<T> {
    let len = items.len();
    let place = |value: &Value, otherwise: usize| match to_int(value) {
        _ if value.is_none() => otherwise,
        place if place < 0 => len.saturating_sub(usize::try_from(place.unsigned_abs()).unwrap_or(len)),
        place => usize::try_from(place).unwrap_or(len).min(len),
    };
    let (from, to) = (place(from, 0), place(to, len));
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    items.get(from..to.max(from)).unwrap_or_default().iter().step_by(step).cloned().collect()
}

enum Kind {
    Filter,
    Test,
}

/// A filter or test of minijinja's, by name, on a stack with room: they walk values by recursion.
fn builtin(state: &mut State<'_, '_>, args: &[Value], kind: Kind) -> Result {
    let Some((name, args)) = args.split_first() else {
        return Err(JinjaError::new(ErrorKind::MissingArgument, "no name"));
    };
    let name = name.as_str().unwrap_or_default();
    if matches!(name, "batch" | "slice") && args.get(1).and_then(Value::as_i64).is_some_and(|n| n > 100_000) {
        return Err(JinjaError::new(ErrorKind::InvalidOperation, "more than 100000 items (limit items)"));
    }
    let value = crate::stack::grown(|| match kind {
        Kind::Filter => state.apply_filter(name, args),
        Kind::Test => state.perform_test(name, args).map(Value::from),
    })?;
    host::call(state, name, |_| Ok(value))
}

fn replace(ctx: &Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    let texts: Vec<_> = args.iter().filter_map(as_text).collect();
    let [text, from, to] = texts.as_slice() else {
        return Err(arguments_of("replace"));
    };
    let found = if from.is_empty() { text.chars().count() + 1 } else { text.matches(&**from).count() };
    ctx.check_len(text.len().saturating_add(found.saturating_mul(to.len())))?;
    Ok(Value::from(text.replace(&**from, to)))
}

fn join(ctx: &Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    let (list, by) = match args {
        [list] => (list, ""),
        [list, by] => (list, by.as_str().ok_or_else(|| arguments_of("join"))?),
        _ => return Err(arguments_of("join")),
    };
    let list = arguments::golden(list)?;
    let Some(list) = as_list(&list) else {
        return Err(FnError::new(format!("cannot join a {}", list.kind())));
    };
    let mut out = String::new();
    for (index, item) in list.items().iter().enumerate() {
        let item = output::text_of(item)?;
        ctx.check_len(out.len() + by.len() + item.len())?;
        out.push_str(if index == 0 { "" } else { by });
        out.push_str(&item);
    }
    Ok(Value::from(out))
}

/// Jinja's: not the first line and not blank ones, unless asked to.
fn indent(ctx: &Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    let (named, plain) = match args.split_last() {
        Some((last, rest)) if last.is_kwargs() => (arguments::golden(last)?, rest),
        _ => (map_value(Entries::new()), args),
    };
    let option = |index: usize, name: &str| {
        plain.get(index).cloned().or_else(|| as_map(&named).and_then(|named| named.get(name)))
    };
    let Some(text) = plain.first().and_then(as_text) else {
        return Err(arguments_of("indent"));
    };
    let width = option(1, "width").map_or(4, |width| usize::try_from(to_int(&width)).unwrap_or(0));
    let first = option(2, "first").is_some_and(|flag| flag.is_true());
    let blank = option(3, "blank").is_some_and(|flag| flag.is_true());
    let lines = text.matches('\n').count() + 1;
    ctx.check_len(text.len().saturating_add(lines.saturating_mul(width)))?;
    let pad = " ".repeat(width);
    let mut out = String::new();
    for (index, line) in text.split('\n').enumerate() {
        out.push_str(if index == 0 { "" } else { "\n" });
        let padded = if index == 0 { first } else { blank || !line.trim().is_empty() };
        out.push_str(if padded { &pad } else { "" });
        out.push_str(line);
    }
    Ok(Value::from(out))
}

fn format(ctx: &Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    let args = golden_all(args)?;
    match args.split_first() {
        Some((format, args)) if format.as_bytes().is_some() => {
            ctx.text(crate::printf::sprintf(format.as_bytes().unwrap_or_default(), args)?)
        }
        _ => Err(arguments_of("format")),
    }
}

fn tojson(value: &Value, pretty: bool) -> Result<Value, FnError> {
    let layout = crate::yaml::json::Layout { escape_html: false, pretty };
    let value = arguments::golden(value)?;
    let text = crate::yaml::json::to_json(&value, layout).map_err(|err| FnError::new(err.to_string()))?;
    Ok(Value::from(text))
}
