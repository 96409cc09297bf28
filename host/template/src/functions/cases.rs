//! Functions that change upper and lower case.

use super::STRING;
use super::args::text;
use crate::function::{Ctx, Entry, FnError};
use crate::value::Value;

mod words;

pub(super) const TABLE: &[Entry] = &[
    Entry::fixed("upper", &[STRING], |ctx, args| mapped(ctx, args, upper)),
    Entry::fixed("lower", &[STRING], |ctx, args| mapped(ctx, args, lower)),
    Entry::fixed("title", &[STRING], title),
    Entry::fixed("untitle", &[STRING], untitle),
    Entry::fixed("swapcase", &[STRING], swapcase),
    Entry::fixed("camelcase", &[STRING], camelcase),
    Entry::fixed("snakecase", &[STRING], |ctx, args| joined(ctx, args, '_')),
    Entry::fixed("kebabcase", &[STRING], |ctx, args| joined(ctx, args, '-')),
];

type Result = std::result::Result<Value, FnError>;

/// The upper case of one character; Go knows no letters that become two.
pub(super) fn upper(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(upper), None) => upper,
        _ => c,
    }
}

/// The lower case of one character.
pub(super) fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

fn mapped(_: &mut Ctx<'_>, args: &[Value], map: fn(char) -> char) -> Result {
    Ok(Value::from(text(args, 0)?.chars().map(map).collect::<String>()))
}

/// Letters that follow a separator become capitals: Go's `strings.Title`.
fn title(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let mut before = ' ';
    let text = text(args, 0)?;
    let titled = text.chars().map(|c| {
        let starts = is_separator(before);
        before = c;
        if starts { upper(c) } else { c }
    });
    Ok(Value::from(titled.collect::<String>()))
}

fn is_separator(c: char) -> bool {
    if c.is_ascii() {
        return !(c.is_ascii_alphanumeric() || c == '_');
    }
    !c.is_alphanumeric() && c.is_whitespace()
}

fn untitle(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let mut starts = true;
    let text = text(args, 0)?;
    let untitled = text.chars().map(|c| {
        let first = starts && !c.is_whitespace();
        starts = c.is_whitespace();
        if first { lower(c) } else { c }
    });
    Ok(Value::from(untitled.collect::<String>()))
}

fn swapcase(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let text = text(args, 0)?;
    let swapped = text.chars().map(|c| {
        if c.is_uppercase() {
            lower(c)
        } else if c.is_lowercase() {
            upper(c)
        } else {
            c
        }
    });
    Ok(Value::from(swapped.collect::<String>()))
}

fn camelcase(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(Value::from(words::pascal(&text(args, 0)?)))
}

fn joined(_: &mut Ctx<'_>, args: &[Value], connector: char) -> Result {
    Ok(Value::from(words::joined(&text(args, 0)?, connector)))
}
