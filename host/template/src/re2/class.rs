//! Character classes, which have no operators in RE2 and many in the crate.

use super::escape::{character, perl_class, property};
use super::{Error, syntax};

const NAMES: &[&str] = &[
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// The class at the start of a text in the crate's notation, and what follows it.
pub(super) fn rewrite(text: &str) -> Result<(String, &str), Error> {
    let mut out = "[".to_owned();
    let mut rest = text.get(1..).unwrap_or_default();
    if let Some(negated) = rest.strip_prefix('^') {
        out.push('^');
        rest = negated;
    }
    let mut first = true;
    loop {
        match rest.chars().next() {
            None => return Err(syntax("missing closing ]", text)),
            Some(']') if !first => break,
            Some(_) => {}
        }
        rest = match set(rest)? {
            Some((set, rest)) => {
                out.push_str(&set);
                rest
            }
            None => range(text, rest, &mut out)?,
        };
        first = false;
    }
    out.push(']');
    Ok((out, rest.get(1..).unwrap_or_default()))
}

/// `[:alpha:]`, `\d` or `\pL` at the start.
fn set(text: &str) -> Result<Option<(String, &str)>, Error> {
    if let Some(named) = text.strip_prefix("[:")
        && let Some(end) = named.find(":]")
    {
        let (name, rest) = named.split_at(end);
        let plain = name.strip_prefix('^').unwrap_or(name);
        let whole = text.get(..end + 4).unwrap_or(text);
        if !NAMES.contains(&plain) {
            return Err(syntax("invalid character class range", whole));
        }
        return Ok(Some((whole.to_owned(), rest.get(2..).unwrap_or_default())));
    }
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some('\\'), Some('p' | 'P')) => property(text).map(Some),
        (Some('\\'), Some(c)) => Ok(perl_class(c).map(|class| (class.to_owned(), chars.as_str()))),
        _ => Ok(None),
    }
}

/// A character, or a range of them.
fn range<'t>(whole: &str, text: &'t str, out: &mut String) -> Result<&'t str, Error> {
    let (low, rest) = single(whole, text)?;
    push(out, low);
    let Some(after) = rest.strip_prefix('-').filter(|after| !after.starts_with(']')) else {
        return Ok(rest);
    };
    if after.is_empty() {
        return Ok(rest);
    }
    let (high, rest) = single(whole, after)?;
    if high < low {
        let part = text.get(..text.len() - rest.len()).unwrap_or(text);
        return Err(syntax("invalid character class range", part));
    }
    out.push('-');
    push(out, high);
    Ok(rest)
}

fn single<'t>(whole: &str, text: &'t str) -> Result<(char, &'t str), Error> {
    match text.chars().next() {
        None => Err(syntax("missing closing ]", whole)),
        Some('\\') => character(text),
        Some(c) => Ok((c, text.get(c.len_utf8()..).unwrap_or_default())),
    }
}

fn push(out: &mut String, c: char) {
    if c.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(c);
}
