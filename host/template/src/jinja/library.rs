//! The functions and filters of Jinja templates: the library of Go templates under the same names,
//! beside what Jinja has of its own.

use std::sync::LazyLock;

use minijinja::value::{Rest, ValueOrKwargs};
use minijinja::{AutoEscape, Environment, Error as JinjaError, ErrorKind, State, UndefinedBehavior};

use super::{arguments, host, operators, output};
use crate::function::{Entry, FnError, Table};
use crate::program::Dialect;
use crate::value::{Value, as_map, as_text, natural};

/// Go's keywords among its functions, and names that mean a statement in Jinja.
const NO_FUNCTIONS: &[&str] = &["and", "or", "not", "call"];

/// Filters whose piped value is the first argument of the function: the mapping or list that is asked.
const SUBJECT_FIRST: &[&str] = &[
    "get",
    "set",
    "unset",
    "hasKey",
    "pick",
    "omit",
    "merge",
    "mustMerge",
    "mergeOverwrite",
    "mustMergeOverwrite",
    "append",
    "mustAppend",
    "push",
    "mustPush",
    "prepend",
    "mustPrepend",
    "concat",
    "without",
    "mustWithout",
    "index",
    "keys",
    "values",
];

/// Functions whose results come from YAML, JSON or TOML, where Go has floats for all numbers.
const READERS: &[&str] =
    &["fromYaml", "fromYamlArray", "fromJson", "fromJsonArray", "mustFromJson", "fromToml", "lookup"];

static BASE: LazyLock<Environment<'static>> = LazyLock::new(build);

/// An environment without templates. Cloning it is cheap.
pub(super) fn environment() -> Environment<'static> {
    BASE.clone()
}

/// Whether a filter of this name is one of the library's, which takes what it is given from us.
pub(super) fn is_library_filter(name: &str) -> bool {
    !is_own_filter(name) && library().get(name).is_some() && !NO_FUNCTIONS.contains(&name)
}

/// All names of filters: for "did you mean".
pub(super) fn filter_names() -> impl Iterator<Item = &'static str> {
    JINJA_FILTERS.iter().copied().chain(library().iter().map(|entry| entry.name))
}

/// All names of functions: for "did you mean".
pub(super) fn function_names() -> impl Iterator<Item = &'static str> {
    ["range", "dict", "namespace"].into_iter().chain(library().iter().map(|entry| entry.name))
}

/// Names of the tests that Jinja templates have.
pub(super) const TESTS: &[&str] = &[
    "undefined",
    "defined",
    "none",
    "boolean",
    "odd",
    "even",
    "divisibleby",
    "number",
    "integer",
    "int",
    "float",
    "string",
    "sequence",
    "iterable",
    "mapping",
    "startingwith",
    "endingwith",
    "lower",
    "upper",
    "sameas",
    "eq",
    "equalto",
    "ne",
    "lt",
    "lessthan",
    "le",
    "gt",
    "greaterthan",
    "ge",
    "in",
    "true",
    "false",
    "filter",
    "test",
];

/// Filters that are minijinja's, under the names Jinja's users know.
const JINJA_FILTERS: &[&str] = &[
    "lower",
    "upper",
    "title",
    "capitalize",
    "replace",
    "length",
    "count",
    "dictsort",
    "items",
    "reverse",
    "trim",
    "join",
    "split",
    "lines",
    "default",
    "d",
    "round",
    "abs",
    "int",
    "float",
    "attr",
    "first",
    "last",
    "min",
    "max",
    "sort",
    "list",
    "string",
    "bool",
    "batch",
    "slice",
    "sum",
    "indent",
    "select",
    "reject",
    "selectattr",
    "rejectattr",
    "map",
    "groupby",
    "unique",
    "chain",
    "zip",
    "format",
    "tojson",
];

/// Filters of minijinja's that a chart has no use for: they escape for HTML, or show how values are kept.
const NO_FILTERS: &[&str] = &["safe", "escape", "e", "pprint", "urlencode"];

fn is_own_filter(name: &str) -> bool {
    JINJA_FILTERS.contains(&name)
}

fn library() -> &'static Table {
    Dialect::Helm.functions()
}

fn build() -> Environment<'static> {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_formatter(output::emit);
    env.set_debug(true);
    env.set_auto_reload(false);
    env.remove_global("debug");
    for name in NO_FILTERS {
        env.remove_filter(name);
    }
    for entry in library().iter().filter(|entry| !NO_FUNCTIONS.contains(&entry.name)) {
        let entry = *entry;
        if entry.name != "dict" {
            env.add_function(entry.name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
                library_call(entry, state, plain(args))
            });
        }
        if !is_own_filter(entry.name) {
            env.add_filter(entry.name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
                library_call(entry, state, piped(entry.name, plain(args)))
            });
        }
    }
    operators::add_to(&mut env);
    env.set_unknown_method_callback(method);
    env
}

fn plain(args: Rest<ValueOrKwargs>) -> Vec<Value> {
    args.0.into_iter().map(ValueOrKwargs::into_value).collect()
}

/// The arguments of a filter as the function takes them: the piped value comes first in Jinja, and last
/// in Go.
fn piped(name: &str, mut args: Vec<Value>) -> Vec<Value> {
    if !SUBJECT_FIRST.contains(&name) && !args.is_empty() {
        args.rotate_left(1);
    }
    args
}

fn library_call(entry: Entry, state: &mut State<'_, '_>, mut args: Vec<Value>) -> Result<Value, JinjaError> {
    let file = state.name().to_owned();
    host::call(state, entry.name, |ctx| {
        if matches!(entry.name, "include" | "tpl") {
            ctx.jinja.file = file.into();
            if args.len() == 1 {
                args.push(ctx.jinja.data.clone());
            }
        }
        let args = arguments::fitted(entry.name, entry.signature, &args)?;
        let value = entry.call(ctx, &args)?;
        Ok(if READERS.contains(&entry.name) { natural(&value) } else { value })
    })
}

/// Methods as Python has them, for the few that templates use.
fn method(state: &mut State<'_, '_>, value: &Value, name: &str, args: &[Value]) -> Result<Value, JinjaError> {
    let unknown =
        || JinjaError::new(ErrorKind::UnknownMethod, format!("{} has no method {name}", value.kind()));
    if let Some(map) = as_map(value) {
        return match (name, args) {
            ("items", []) => state.apply_filter("items", std::slice::from_ref(value)),
            ("keys" | "values", []) => {
                let entries = map.snapshot().into_iter();
                Ok(entries
                    .map(|(key, value)| if name == "keys" { Value::from(key) } else { value })
                    .collect())
            }
            ("get", [key]) => Ok(map.get(&key_text(key)).unwrap_or_default()),
            ("get", [key, otherwise]) => Ok(map.get(&key_text(key)).unwrap_or_else(|| otherwise.clone())),
            _ => Err(unknown()),
        };
    }
    let Some((function, order)) = string_method(name).filter(|_| as_text(value).is_some()) else {
        return Err(unknown());
    };
    let Some(entry) = library().get(function) else {
        return Err(unknown());
    };
    let mut all = args.to_vec();
    match order {
        Order::First => all.insert(0, value.clone()),
        Order::Last => all.push(value.clone()),
    }
    library_call(*entry, state, all)
}

fn key_text(key: &Value) -> String {
    as_text(key).map_or_else(|| key.to_string(), std::borrow::Cow::into_owned)
}

/// Where the text itself goes among the arguments.
#[derive(Clone, Copy)]
enum Order {
    First,
    Last,
}

fn string_method(name: &str) -> Option<(&'static str, Order)> {
    Some(match name {
        "upper" => ("upper", Order::Last),
        "lower" => ("lower", Order::Last),
        "title" => ("title", Order::Last),
        "strip" => ("trim", Order::Last),
        "startswith" => ("hasPrefix", Order::Last),
        "endswith" => ("hasSuffix", Order::Last),
        "replace" => ("replace", Order::Last),
        "split" => ("splitList", Order::Last),
        "join" => ("join", Order::First),
        _ => return None,
    })
}

/// The failure of a function that got what it cannot use.
pub(super) fn arguments_of(name: &str) -> FnError {
    FnError::new(format!("{name} was given arguments it does not take"))
}
