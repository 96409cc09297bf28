//! Regular expressions.

use regex::{NoExpand, Regex};

use super::args::{int, text};
use super::{INT, STRING};
use crate::function::{Ctx, Entry, FnError};
use crate::quote::quote;
use crate::re2;
use crate::value::{Value, string_list};

pub(super) const TABLE: &[Entry] = &[
    Entry::fixed("regexMatch", &[STRING, STRING], regex_match),
    Entry::fixed("mustRegexMatch", &[STRING, STRING], must_match),
    Entry::fixed("regexFind", &[STRING, STRING], |ctx, args| find(ctx, args, sure)),
    Entry::fixed("mustRegexFind", &[STRING, STRING], |ctx, args| find(ctx, args, must)),
    Entry::fixed("regexFindAll", &[STRING, STRING, INT], |ctx, args| find_all(ctx, args, sure)),
    Entry::fixed("mustRegexFindAll", &[STRING, STRING, INT], |ctx, args| find_all(ctx, args, must)),
    Entry::fixed("regexReplaceAll", REPLACE, |ctx, args| replace(ctx, args, sure)),
    Entry::fixed("mustRegexReplaceAll", REPLACE, |ctx, args| replace(ctx, args, must)),
    Entry::fixed("regexReplaceAllLiteral", REPLACE, |ctx, args| replace_literal(ctx, args, sure)),
    Entry::fixed("mustRegexReplaceAllLiteral", REPLACE, |ctx, args| replace_literal(ctx, args, must)),
    Entry::fixed("regexSplit", &[STRING, STRING, INT], |ctx, args| split(ctx, args, sure)),
    Entry::fixed("mustRegexSplit", &[STRING, STRING, INT], |ctx, args| split(ctx, args, must)),
    Entry::fixed("regexQuoteMeta", &[STRING], quote_meta),
];

const REPLACE: &[crate::function::Param] = &[STRING, STRING, STRING];

type Result<T = Value> = std::result::Result<T, FnError>;

/// Compiles a pattern; the two kinds differ in what they say of a bad one.
type Compile = fn(&mut Ctx<'_>, &str) -> Result<Regex>;

fn compile(ctx: &mut Ctx<'_>, pattern: &str) -> Result<std::result::Result<Regex, String>> {
    ctx.charge(1 + pattern.len() as u64 / 16)?;
    let limit = ctx.limits().regex;
    match re2::compile(pattern, limit) {
        Ok(regex) => Ok(Ok(regex)),
        Err(re2::Error::TooLarge(limit)) => Err(FnError::limit("regex", limit)),
        Err(err) => Ok(Err(err.to_string())),
    }
}

fn must(ctx: &mut Ctx<'_>, pattern: &str) -> Result<Regex> {
    compile(ctx, pattern)?.map_err(FnError::new)
}

/// Go's `MustCompile`, whose panic names the pattern.
fn sure(ctx: &mut Ctx<'_>, pattern: &str) -> Result<Regex> {
    compile(ctx, pattern)?.map_err(|err| {
        let raw = !pattern.contains(|c: char| c == '`' || (c.is_control() && c != '\t'));
        let quoted = if raw { format!("`{pattern}`") } else { quote(pattern.as_bytes()) };
        FnError::new(format!("regexp: Compile({quoted}): {err}"))
    })
}

fn regex_match(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let regex = compile(ctx, &text(args, 0)?)?;
    let text = text(args, 1)?;
    Ok(Value::from(regex.is_ok_and(|regex| regex.is_match(&text))))
}

fn must_match(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(Value::from(must(ctx, &text(args, 0)?)?.is_match(&text(args, 1)?)))
}

fn find(ctx: &mut Ctx<'_>, args: &[Value], compile: Compile) -> Result {
    let text = text(args, 1)?;
    let found = compile(ctx, &super::args::text(args, 0)?)?.find(&text).map(|found| found.as_str());
    Ok(Value::from(found.unwrap_or_default()))
}

fn find_all(ctx: &mut Ctx<'_>, args: &[Value], compile: Compile) -> Result {
    let (text, limit) = (text(args, 1)?, count(int(args, 2)?));
    let regex = compile(ctx, &super::args::text(args, 0)?)?;
    ctx.charge(text.len() as u64 / 16)?;
    Ok(string_list(regex.find_iter(&text).take(limit).map(|found| found.as_str())))
}

/// A negative count is no limit.
fn count(count: i64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn replace(ctx: &mut Ctx<'_>, args: &[Value], compile: Compile) -> Result {
    let (text, new) = (text(args, 1)?, text(args, 2)?);
    let regex = compile(ctx, &super::args::text(args, 0)?)?;
    guard(ctx, &regex, &text, &new)?;
    ctx.text(regex.replace_all(&text, &*new).into_owned())
}

fn replace_literal(ctx: &mut Ctx<'_>, args: &[Value], compile: Compile) -> Result {
    let (text, new) = (text(args, 1)?, text(args, 2)?);
    let regex = compile(ctx, &super::args::text(args, 0)?)?;
    guard(ctx, &regex, &text, &new)?;
    ctx.text(regex.replace_all(&text, NoExpand(&new)).into_owned())
}

/// Refuses a replacement that could grow beyond the longest text before it is made.
fn guard(ctx: &mut Ctx<'_>, regex: &Regex, text: &str, new: &str) -> Result<()> {
    ctx.charge(text.len() as u64 / 16)?;
    // A reference takes two bytes at least and brings at most the whole match.
    let references = new.matches('$').count();
    let most = (text.len() + 1).saturating_mul(new.len() + 1);
    let most = most.saturating_add(references.saturating_mul(text.len()));
    if ctx.check_len(most).is_ok() {
        return Ok(());
    }
    let found = regex.find_iter(text).count();
    let made = found.saturating_mul(new.len()).saturating_add(references.saturating_mul(text.len()));
    ctx.check_len(made.saturating_add(text.len()))
}

/// Go's `Split`: an empty match at the start makes no empty part.
fn split(ctx: &mut Ctx<'_>, args: &[Value], compile: Compile) -> Result {
    let (text, limit) = (text(args, 1)?, count(int(args, 2)?));
    let pattern = super::args::text(args, 0)?;
    let regex = compile(ctx, &pattern)?;
    ctx.charge(text.len() as u64 / 16)?;
    if limit == 0 {
        return Ok(string_list(Vec::<Value>::new()));
    }
    if !pattern.is_empty() && text.is_empty() {
        return Ok(string_list([""]));
    }
    let mut parts = Vec::new();
    let (mut from, mut end) = (0, 0);
    for found in regex.find_iter(&text).take(limit) {
        if parts.len() + 1 >= limit {
            break;
        }
        end = found.start();
        if found.end() != 0 {
            parts.push(text.get(from..end).unwrap_or_default());
        }
        from = found.end();
    }
    if end != text.len() {
        parts.push(text.get(from..).unwrap_or_default());
    }
    Ok(string_list(parts))
}

fn quote_meta(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let mut out = String::new();
    for c in text(args, 0)?.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    Ok(Value::from(out))
}
