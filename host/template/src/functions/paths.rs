//! Paths with slashes; those of the operating system are the same.

use super::STRING;
use super::args::text;
use crate::function::{Ctx, Entry, FnError};
use crate::value::Value;

pub(super) const TABLE: &[Entry] = &[
    Entry::fixed("base", &[STRING], base),
    Entry::fixed("dir", &[STRING], dir),
    Entry::fixed("clean", &[STRING], clean),
    Entry::fixed("ext", &[STRING], ext),
    Entry::fixed("isAbs", &[STRING], is_abs),
    Entry::fixed("osBase", &[STRING], base),
    Entry::fixed("osDir", &[STRING], dir),
    Entry::fixed("osClean", &[STRING], clean),
    Entry::fixed("osExt", &[STRING], ext),
    Entry::fixed("osIsAbs", &[STRING], is_abs),
];

type Result = std::result::Result<Value, FnError>;

fn base(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let path = text(args, 0)?;
    let trimmed = path.trim_end_matches('/');
    Ok(Value::from(match (path.is_empty(), trimmed) {
        (true, _) => ".",
        (false, "") => "/",
        (false, trimmed) => trimmed.rsplit('/').next().unwrap_or(trimmed),
    }))
}

fn dir(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let path = text(args, 0)?;
    let folder = path.rfind('/').and_then(|at| path.get(..=at));
    Ok(Value::from(cleaned(folder.unwrap_or_default())))
}

fn clean(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(Value::from(cleaned(&text(args, 0)?)))
}

fn ext(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let path = text(args, 0)?;
    let name = path.rsplit('/').next().unwrap_or_default();
    let dot = name.rfind('.').and_then(|at| name.get(at..));
    Ok(Value::from(dot.unwrap_or_default()))
}

fn is_abs(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(Value::from(text(args, 0)?.starts_with('/')))
}

/// The shortest path that names the same place, without looking at any.
pub(super) fn cleaned(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    match (rooted, parts.join("/")) {
        (true, joined) => format!("/{joined}"),
        (false, joined) if joined.is_empty() => ".".to_owned(),
        (false, joined) => joined,
    }
}
