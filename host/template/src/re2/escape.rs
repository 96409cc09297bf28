//! What follows a backslash.

use super::{Error, syntax};

/// The escape at the start of a text in the crate's notation, and what follows it.
pub(super) fn rewrite(text: &str) -> Result<(String, &str), Error> {
    let after = text.get(1..).unwrap_or_default();
    let Some(c) = after.chars().next() else {
        return Err(syntax("trailing backslash at end of expression", ""));
    };
    let rest = after.get(c.len_utf8()..).unwrap_or_default();
    let written = match c {
        'A' | 'z' | 'B' => format!("\\{c}"),
        'b' => r"(?-u:\b)".to_owned(),
        'p' | 'P' => return property(text),
        _ => match perl_class(c) {
            Some(class) => class.to_owned(),
            None => {
                let (c, rest) = character(text)?;
                return Ok((regex::escape(c.encode_utf8(&mut [0; 4])), rest));
            }
        },
    };
    Ok((written, rest))
}

/// `\d` and its kin, which are ASCII; as classes they can stand within classes.
pub(super) fn perl_class(c: char) -> Option<&'static str> {
    Some(match c {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        's' => r"[\t\n\f\r ]",
        'S' => r"[^\t\n\f\r ]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        _ => return None,
    })
}

/// `\pL`, `\p{Greek}`, `\p{^Greek}` and their opposites.
pub(super) fn property(text: &str) -> Result<(String, &str), Error> {
    let mut chars = text.chars();
    let (_, kind, first) = (chars.next(), chars.next(), chars.next());
    let end = match first {
        Some('{') => text.find('}').map(|at| at + 1),
        Some(c) => Some(2 + c.len_utf8()),
        None => None,
    };
    let whole = end.and_then(|end| text.get(..end));
    let Some(whole) = whole else {
        return Err(syntax("invalid character class range", text));
    };
    let name = whole.get(2..).unwrap_or_default();
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    let (negated, name) = match name.strip_prefix('^') {
        Some(name) => (kind == Some('p'), name),
        None => (kind == Some('P'), name),
    };
    // Go knows the short names of categories and the names of scripts, nothing else.
    let known = name == "Any" || regex::Regex::new(&format!(r"\p{{{name}}}")).is_ok();
    if !known || name.is_empty() || name.contains(['=', ':', ' ']) {
        return Err(syntax("invalid character class range", whole));
    }
    let rest = text.get(whole.len()..).unwrap_or_default();
    let letter = if negated { 'P' } else { 'p' };
    Ok((format!("\\{letter}{{{name}}}"), rest))
}

/// The one character an escape stands for, and what follows.
pub(super) fn character(text: &str) -> Result<(char, &str), Error> {
    let after = text.get(1..).unwrap_or_default();
    let Some(c) = after.chars().next() else {
        return Err(syntax("trailing backslash at end of expression", ""));
    };
    let rest = after.get(c.len_utf8()..).unwrap_or_default();
    let invalid = || syntax("invalid escape sequence", text.get(..1 + c.len_utf8()).unwrap_or(text));
    let simple = match c {
        'a' => '\u{7}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '0'..='7' => return octal(after).ok_or_else(invalid),
        'x' => return hexadecimal(rest).ok_or_else(|| hexadecimal_fault(text)),
        _ if c.is_ascii() && !c.is_ascii_alphanumeric() => c,
        _ => return Err(invalid()),
    };
    Ok((simple, rest))
}

/// Up to three digits; one digit but zero would be a reference, which RE2 has not.
fn octal(text: &str) -> Option<(char, &str)> {
    let len = text.bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
    if len == 1 && !text.starts_with('0') {
        return None;
    }
    let (digits, rest) = text.split_at(len);
    Some((char::from_u32(u32::from_str_radix(digits, 8).ok()?)?, rest))
}

fn hexadecimal(text: &str) -> Option<(char, &str)> {
    let (digits, rest) = match text.strip_prefix('{') {
        Some(braced) => braced.split_once('}')?,
        None => (text.get(..2)?, text.get(2..)?),
    };
    let clean = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let code = u32::from_str_radix(digits, 16).ok().filter(|_| clean)?;
    Some((char::from_u32(code)?, rest))
}

fn hexadecimal_fault(text: &str) -> Error {
    let end = text.char_indices().nth(4).map_or(text.len(), |(at, _)| at);
    syntax("invalid escape sequence", text.get(..end).unwrap_or(text))
}
