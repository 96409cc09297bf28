//! Go's quoted strings and character constants, both ways.

use std::fmt::Write as _;

/// A double-quoted Go string of these bytes, as `%q` prints it.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len() + 2);
    quote_into(bytes, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// Appends what [`quote`] gives.
pub(crate) fn quote_into(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    if bytes.iter().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')) {
        out.extend_from_slice(bytes);
        out.push(b'"');
        return;
    }
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|c| escape(c, '"', &mut text));
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// A double-quoted Go string in ASCII, as `%+q` prints it.
pub(crate) fn quote_ascii(bytes: &[u8]) -> String {
    ascii(&quote(bytes))
}

/// As [`quote_char`], with all that is not ASCII escaped.
pub(crate) fn quote_char_ascii(c: char) -> String {
    ascii(&quote_char(c))
}

fn ascii(quoted: &str) -> String {
    let mut out = String::with_capacity(quoted.len());
    for c in quoted.chars() {
        match u32::from(c) {
            0..0x80 => out.push(c),
            code @ 0..0x1_0000 => out.push_str(&format!("\\u{code:04x}")),
            code => out.push_str(&format!("\\U{code:08x}")),
        }
    }
    out
}

/// A single-quoted Go character constant.
pub(crate) fn quote_char(c: char) -> String {
    let mut out = String::from("'");
    escape(c, '\'', &mut out);
    out.push('\'');
    out
}

fn escape(c: char, mark: char, out: &mut String) {
    let short = match c {
        '\u{7}' => Some('a'),
        '\u{8}' => Some('b'),
        '\u{c}' => Some('f'),
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        '\u{b}' => Some('v'),
        '\\' => Some('\\'),
        c if c == mark => Some(mark),
        _ => None,
    };
    let code = u32::from(c);
    // Writing to a string cannot fail.
    let _ = match short {
        Some(short) => write!(out, "\\{short}"),
        None if is_print(c) => out.write_char(c),
        None if code < 0x80 => write!(out, "\\x{code:02x}"),
        None if code < 0x1_0000 => write!(out, "\\u{code:04x}"),
        None => write!(out, "\\U{code:08x}"),
    };
}

/// Whether Go's `strconv.IsPrint` holds: letters, marks, numbers, punctuation, symbols, ASCII space.
pub(crate) fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // `str::escape_debug` has the same table; it only treats a combining mark at the start specially.
    let mut buffer = [0; 4];
    let mut text = String::from("a");
    text.push_str(c.encode_utf8(&mut buffer));
    text.escape_debug().nth(1) != Some('\\')
}

/// Go's `%#U`: `U+0021 '!'`.
pub(crate) fn unicode(c: char) -> String {
    let code = u32::from(c);
    if is_print(c) { format!("U+{code:04X} '{c}'") } else { format!("U+{code:04X}") }
}

/// The bytes a Go string literal stands for; `None` where Go says `invalid syntax`.
pub(crate) fn unquote(literal: &str) -> Option<Vec<u8>> {
    if let Some(raw) = literal.strip_prefix('`') {
        let raw = raw.strip_suffix('`').filter(|raw| !raw.contains('`'))?;
        return Some(raw.bytes().filter(|b| *b != b'\r').collect());
    }
    let mut rest = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let plain = rest.find(['\\', '"', '\n']).unwrap_or(rest.len());
        let (text, other) = rest.split_at(plain);
        out.extend_from_slice(text.as_bytes());
        rest = if other.is_empty() { other } else { unquote_one(other, '"', &mut out)? };
    }
    Some(out)
}

/// The character of a Go character constant; `None` where it is malformed.
pub(crate) fn unquote_char(literal: &str) -> Option<char> {
    let inner = literal.strip_prefix('\'')?;
    let mut out = Vec::new();
    let tail = unquote_one(inner, '\'', &mut out)?;
    if tail != "'" {
        return None;
    }
    match std::str::from_utf8(&out) {
        Ok(text) => text.chars().next(),
        // '\xff' is the number 255.
        Err(_) => out.first().map(|byte| char::from(*byte)),
    }
}

/// Decodes one character or escape and returns what follows it.
fn unquote_one<'s>(text: &'s str, mark: char, out: &mut Vec<u8>) -> Option<&'s str> {
    let mut chars = text.chars();
    match chars.next()? {
        '\n' => None,
        c if c == mark => None,
        '\\' => unescape(chars.as_str(), mark, out),
        c => {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            Some(chars.as_str())
        }
    }
}

fn unescape<'s>(text: &'s str, mark: char, out: &mut Vec<u8>) -> Option<&'s str> {
    let mut chars = text.chars();
    let c = chars.next()?;
    let rest = chars.as_str();
    match c {
        'x' => number(rest, 2, 16).and_then(|(code, rest)| push_byte(code, out).map(|()| rest)),
        '0'..='7' => number(text, 3, 8).and_then(|(code, rest)| push_byte(code, out).map(|()| rest)),
        'u' => number(rest, 4, 16).and_then(|(code, rest)| push_char(code, out).map(|()| rest)),
        'U' => number(rest, 8, 16).and_then(|(code, rest)| push_char(code, out).map(|()| rest)),
        _ => {
            out.push(simple_escape(c, mark)?);
            Some(rest)
        }
    }
}

fn simple_escape(c: char, mark: char) -> Option<u8> {
    Some(match c {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' => b'\\',
        c if c == mark => u8::try_from(c).ok()?,
        _ => return None,
    })
}

fn number(text: &str, len: usize, radix: u32) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(len)?;
    if !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    Some((u32::from_str_radix(digits, radix).ok()?, rest))
}

fn push_byte(code: u32, out: &mut Vec<u8>) -> Option<()> {
    out.push(u8::try_from(code).ok()?);
    Some(())
}

fn push_char(code: u32, out: &mut Vec<u8>) -> Option<()> {
    let c = char::from_u32(code)?;
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn quoting_is_go_s() {
        let cases: &[(&[u8], &str)] = &[
            (b"plain", r#""plain""#),
            (b"a\"b\n\t\\", r#""a\"b\n\t\\""#),
            ("é世🙂".as_bytes(), r#""é世🙂""#),
            (b"\x00\x7f\xff", r#""\x00\x7f\xff""#),
            ("\u{feff}\u{200b}".as_bytes(), r#""\ufeff\u200b""#),
        ];
        for (bytes, text) in cases {
            assert_eq!(quote(bytes), *text);
            assert_eq!(unquote(text).unwrap(), *bytes);
        }
        assert_eq!(quote_char('\''), r"'\''");
        assert_eq!(quote_char('A'), "'A'");
    }

    #[test]
    fn bad_literals_are_refused() {
        for literal in [r#""\q""#, r#""\x4""#, r#""\'""#, r#""a"b""#, "\"\n\"", r#""\ud800""#, "`a`b`"] {
            assert_eq!(unquote(literal), None, "{literal}");
        }
        assert_eq!(unquote_char("'ab'"), None);
        assert_eq!(unquote_char(r"'\n'"), Some('\n'));
        assert_eq!(unquote_char(r"'\''"), Some('\''));
    }
}
