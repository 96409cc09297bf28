//! Functions over strings.

use super::args::{any, bytes, int, strings, strval, text};
use super::{ANY, INT, STRING};
use crate::function::{Ctx, Entry, FnError};
use crate::quote::quote_into;
use crate::value::print::print_value;
use crate::value::{
    Entries, MapType, Value, as_byte_slice, as_string, is_nil, string_list, string_value, typed_map,
};

pub(super) const TABLE: &[Entry] = &[
    Entry::fixed("hello", &[], |_, _| Ok(Value::from("Hello!"))),
    Entry::fixed("abbrev", &[INT, STRING], abbrev),
    Entry::fixed("abbrevboth", &[INT, INT, STRING], abbrevboth),
    Entry::filter("trunc", &[INT, STRING], trunc),
    Entry::filter("trim", &[STRING], trim),
    Entry::fixed("trimall", &[STRING, STRING], trim_all),
    Entry::fixed("trimAll", &[STRING, STRING], trim_all),
    Entry::filter("trimSuffix", &[STRING, STRING], trim_suffix),
    Entry::filter("trimPrefix", &[STRING, STRING], trim_prefix),
    Entry::fixed("substr", &[INT, INT, STRING], substr),
    Entry::fixed("repeat", &[INT, STRING], repeat),
    Entry::fixed("nospace", &[STRING], nospace),
    Entry::fixed("initials", &[STRING], initials),
    Entry::fixed("wrap", &[INT, STRING], wrap),
    Entry::fixed("wrapWith", &[INT, STRING, STRING], wrap_with),
    Entry::fixed("contains", &[STRING, STRING], contains),
    Entry::fixed("hasPrefix", &[STRING, STRING], has_prefix),
    Entry::fixed("hasSuffix", &[STRING, STRING], has_suffix),
    Entry::texts("quote", &[], ANY, quote),
    Entry::texts("squote", &[], ANY, squote),
    Entry::texts("cat", &[], ANY, cat),
    Entry::filter("indent", &[INT, STRING], indent),
    Entry::filter("nindent", &[INT, STRING], nindent),
    Entry::filter("replace", &[STRING, STRING, STRING], replace),
    Entry::fixed("plural", &[STRING, STRING, INT], plural),
    Entry::text("toString", &[ANY], to_string),
    Entry::fixed("toStrings", &[ANY], to_strings),
    Entry::fixed("join", &[STRING, ANY], join),
    Entry::fixed("sortAlpha", &[ANY], sort_alpha),
    Entry::fixed("split", &[STRING, STRING], split),
    Entry::fixed("splitList", &[STRING, STRING], split_list),
    Entry::fixed("splitn", &[STRING, INT, STRING], splitn),
];

type Result<T = Value> = std::result::Result<T, FnError>;

fn string(bytes: &[u8]) -> Value {
    string_value(bytes.to_vec())
}

/// Bytes in a range that is known to lie within.
fn part(text: &[u8], from: usize, to: usize) -> &[u8] {
    text.get(from..to).unwrap_or_default()
}

// === cutting ===

fn abbrev(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let (width, text) = (int(args, 0)?, bytes(args, 1)?);
    match usize::try_from(width) {
        Ok(width) if width >= 4 => Ok(string_value(abbreviated(text, 0, width))),
        _ => Ok(string(text)),
    }
}

fn abbrevboth(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let (left, right, text) = (int(args, 0)?, int(args, 1)?, bytes(args, 2)?);
    if right < 4 || (left > 0 && right < 7) {
        return Ok(string(text));
    }
    let (left, right) = (usize::try_from(left).unwrap_or(0), usize::try_from(right).unwrap_or(0));
    Ok(string_value(abbreviated(text, left, right)))
}

/// The text in so many bytes, with dots at the right and, when it starts later, at the left.
fn abbreviated(text: &[u8], offset: usize, width: usize) -> Vec<u8> {
    if text.len() <= width {
        return text.to_vec();
    }
    let kept = width - 3;
    let offset = offset.min(text.len()).min(text.len().saturating_sub(kept));
    if offset <= 4 {
        return [part(text, 0, kept), b"..."].concat();
    }
    if width < 7 {
        return Vec::new();
    }
    if offset + kept < text.len() {
        let tail = abbreviated(part(text, offset, text.len()), 0, kept);
        return [b"...", tail.as_slice()].concat();
    }
    [b"...", part(text, text.len() - kept, text.len())].concat()
}

fn trunc(_: &mut Ctx<'_>, args: &[Value], text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let count = int(args, 0)?;
    let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    out.extend_from_slice(match text.len().checked_sub(size) {
        Some(skipped) if count < 0 && skipped > 0 => part(text, skipped, text.len()),
        Some(_) if count >= 0 => part(text, 0, size),
        _ => text,
    });
    Ok(())
}

fn substr(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let (start, end, text) = (int(args, 0)?, int(args, 1)?, bytes(args, 2)?);
    let len = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let fail = |range: String| Err(FnError::new(format!("runtime error: slice bounds out of range {range}")));
    let (from, to) = match (start, end) {
        (..0, ..0) => return fail(format!("[:{end}]")),
        (..0, _) if end > len => return fail(format!("[:{end}] with length {len}")),
        (..0, _) => (0, end),
        _ if end < 0 || end > len => (start, len),
        _ => (start, end),
    };
    if from > to {
        return fail(format!("[{from}:{to}]"));
    }
    let index = |at: i64| usize::try_from(at).unwrap_or(0);
    Ok(string(part(text, index(from), index(to))))
}

fn trim(_: &mut Ctx<'_>, _: &[Value], bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(match std::str::from_utf8(bytes) {
        Ok(text) => text.trim().as_bytes(),
        Err(_) => bytes.trim_ascii(),
    });
    Ok(())
}

fn trim_all(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let (cutset, text) = (text(args, 0)?, text(args, 1)?);
    Ok(Value::from(text.trim_matches(|c| cutset.contains(c))))
}

fn trim_suffix(_: &mut Ctx<'_>, args: &[Value], text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(text.strip_suffix(bytes(args, 0)?).unwrap_or(text));
    Ok(())
}

fn trim_prefix(_: &mut Ctx<'_>, args: &[Value], text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(text.strip_prefix(bytes(args, 0)?).unwrap_or(text));
    Ok(())
}

fn nospace(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let text = bytes(args, 0)?;
    // Bytes count as characters here, which shows only when there is a space to remove.
    if !text.iter().any(|byte| char::from(*byte).is_whitespace()) {
        return Ok(string(text));
    }
    let chars = text.iter().map(|byte| char::from(*byte));
    Ok(Value::from(chars.filter(|c| !c.is_whitespace()).collect::<String>()))
}

fn initials(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let mut gap = true;
    let chars = bytes(args, 0)?.iter().map(|byte| char::from(*byte));
    let first = chars.filter(|c| {
        let starts = gap && !c.is_whitespace();
        gap = c.is_whitespace();
        starts
    });
    Ok(Value::from(first.collect::<String>()))
}

// === wrapping and indenting ===

fn wrap(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let wrapped = wrapped(bytes(args, 1)?, int(args, 0)?, b"\n", false);
    ctx.text(wrapped)
}

fn wrap_with(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let (width, separator, text) = (int(args, 0)?, bytes(args, 1)?, bytes(args, 2)?);
    ctx.check_len(text.len().saturating_mul(separator.len().max(1)))?;
    let separator = if separator.is_empty() { b"\n" } else { separator };
    ctx.text(wrapped(text, width, separator, true))
}

/// The text in lines of at most so many bytes, broken at spaces; longer words are cut or kept.
fn wrapped(text: &[u8], width: i64, separator: &[u8], cut: bool) -> Vec<u8> {
    let width = usize::try_from(width).unwrap_or(1).max(1);
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while rest.len() > width {
        if let [b' ', after @ ..] = rest {
            rest = after;
            continue;
        }
        let space = part(rest, 0, width + 1).iter().rposition(|byte| *byte == b' ');
        let later = || part(rest, width, rest.len()).iter().position(|byte| *byte == b' ');
        let (line, next) = match space {
            Some(space) => (space, space + 1),
            None if cut => (width, width),
            None => match later() {
                Some(space) => (width + space, width + space + 1),
                None => break,
            },
        };
        out.extend(part(rest, 0, line));
        out.extend(separator);
        rest = part(rest, next, rest.len());
    }
    out.extend(rest);
    out
}

fn indent(ctx: &mut Ctx<'_>, args: &[Value], text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let spaces = count(int(args, 0)?)?;
    let lines = 1 + memchr::memchr_iter(b'\n', text).count();
    let len = lines.saturating_mul(spaces).saturating_add(text.len() + 1);
    ctx.check_len(len)?;
    out.reserve(len);
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', text).map(|at| at + 1).chain([text.len()]) {
        out.resize(out.len() + spaces, b' ');
        out.extend_from_slice(part(text, start, end));
        start = end;
    }
    Ok(())
}

fn nindent(ctx: &mut Ctx<'_>, args: &[Value], text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.push(b'\n');
    indent(ctx, args, text, out)
}

/// How often a text is repeated.
fn count(count: i64) -> Result<usize> {
    usize::try_from(count).map_err(|_| FnError::new("strings: negative Repeat count"))
}

fn repeat(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let (count, text) = (count(int(args, 0)?)?, bytes(args, 1)?);
    ctx.check_len(count.saturating_mul(text.len()))?;
    Ok(string_value(text.repeat(count)))
}

// === asking ===

fn contains(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(Value::from(find(bytes(args, 1)?, bytes(args, 0)?).is_some()))
}

/// Where a part first stands in a text.
fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, part)
}

fn has_prefix(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(Value::from(bytes(args, 1)?.starts_with(bytes(args, 0)?)))
}

fn has_suffix(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(Value::from(bytes(args, 1)?.ends_with(bytes(args, 0)?)))
}

fn plural(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(any(args, usize::from(int(args, 2)? != 1))?.clone())
}

// === making text of values ===

fn quote(_: &mut Ctx<'_>, args: &[Value], out: &mut Vec<u8>) -> Result<()> {
    each(args, out, |arg, out| {
        match as_string(arg).or_else(|| as_byte_slice(arg)) {
            Some(text) => quote_into(text, out),
            None => quote_into(&strval(arg)?, out),
        }
        Ok(())
    })
}

fn squote(_: &mut Ctx<'_>, args: &[Value], out: &mut Vec<u8>) -> Result<()> {
    each(args, out, |arg, out| {
        out.push(b'\'');
        print_value(arg, out)?;
        out.push(b'\'');
        Ok(())
    })
}

fn cat(_: &mut Ctx<'_>, args: &[Value], out: &mut Vec<u8>) -> Result<()> {
    each(args, out, |arg, out| Ok(print_value(arg, out)?))
}

/// Writes the arguments that are not nil, with blanks between them.
fn each(args: &[Value], out: &mut Vec<u8>, write: impl Fn(&Value, &mut Vec<u8>) -> Result<()>) -> Result<()> {
    for (index, arg) in args.iter().filter(|arg| !is_nil(arg)).enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        write(arg, out)?;
    }
    Ok(())
}

fn to_string(_: &mut Ctx<'_>, args: &[Value], out: &mut Vec<u8>) -> Result<()> {
    let value = any(args, 0)?;
    match as_byte_slice(value) {
        Some(bytes) => out.extend_from_slice(bytes),
        None => print_value(value, out)?,
    }
    Ok(())
}

fn to_strings(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(string_list(strings(any(args, 0)?)?.into_iter().map(string_value)))
}

fn join(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let (separator, parts) = (bytes(args, 0)?, strings(any(args, 1)?)?);
    ctx.check_len(separator.len().saturating_mul(parts.len()))?;
    ctx.text(parts.join(separator))
}

fn sort_alpha(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let mut parts = match any(args, 0)? {
        nothing if is_nil(nothing) => vec![b"<nil>".to_vec()],
        list => strings(list)?,
    };
    parts.sort();
    Ok(string_list(parts.into_iter().map(string_value)))
}

// === splitting and replacing ===

fn replace(ctx: &mut Ctx<'_>, args: &[Value], source: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (old, new) = (bytes(args, 0)?, bytes(args, 1)?);
    ctx.charge(source.len() as u64 / 64)?;
    if old.is_empty() {
        let source = String::from_utf8_lossy(source);
        ctx.check_len(source.len().saturating_mul(new.len() + 1))?;
        out.extend_from_slice(source.replace("", &text(args, 1)?).as_bytes());
        return Ok(());
    }
    let count = memchr::memmem::find_iter(source, old).count();
    ctx.check_len(source.len().saturating_add((count + 1).saturating_mul(new.len())))?;
    let mut start = 0;
    for at in memchr::memmem::find_iter(source, old) {
        out.extend_from_slice(part(source, start, at));
        out.extend_from_slice(new);
        start = at + old.len();
    }
    out.extend_from_slice(part(source, start, source.len()));
    Ok(())
}

/// The parts between separators, at most `limit`; an empty separator splits into characters.
fn parts<'t>(text: &'t [u8], separator: &[u8], limit: Option<usize>) -> Vec<&'t [u8]> {
    let limit = limit.unwrap_or(usize::MAX);
    let mut out = Vec::new();
    let mut rest = text;
    while out.len() + 1 < limit {
        let cut = match separator {
            [] => Some(first_char(rest)).filter(|len| *len < rest.len()),
            _ => find(rest, separator),
        };
        let Some(at) = cut else { break };
        out.push(part(rest, 0, at));
        rest = part(rest, at + separator.len(), rest.len());
    }
    if limit > 0 && !(separator.is_empty() && text.is_empty()) {
        out.push(rest);
    }
    out
}

/// Bytes of the first character.
fn first_char(text: &[u8]) -> usize {
    let chunk = text.utf8_chunks().next();
    chunk.and_then(|chunk| chunk.valid().chars().next()).map_or(1, char::len_utf8)
}

fn numbered(parts: Vec<&[u8]>) -> Value {
    let parts = parts.into_iter().enumerate();
    let entries = parts.map(|(index, part)| (format!("_{index}").into(), string(part)));
    typed_map(entries.collect::<Entries>(), MapType::Strings)
}

fn split(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let parts = parts(bytes(args, 1)?, bytes(args, 0)?, None);
    ctx.charge(parts.len() as u64)?;
    Ok(numbered(parts))
}

fn splitn(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let limit = usize::try_from(int(args, 1)?).ok();
    let parts = parts(bytes(args, 2)?, bytes(args, 0)?, limit);
    ctx.charge(parts.len() as u64)?;
    Ok(numbered(parts))
}

fn split_list(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let parts = parts(bytes(args, 1)?, bytes(args, 0)?, None);
    ctx.charge(parts.len() as u64)?;
    Ok(string_list(parts.into_iter().map(string)))
}
