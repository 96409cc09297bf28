//! The YAML that charts are made of, read straight into values.
//!
//! Block mappings and sequences, plain, quoted and block scalars, and simple flow collections: nearly
//! all that charts hold and render. Whatever else stands in a text (anchors, tags, tabs, directives,
//! several documents, mistakes) makes this reader give up, and the port of libyaml reads the text from
//! its start: so what is read here must be what the port reads, which a fuzz target compares.

mod flow;
mod scalar;

use std::borrow::Cow;

use super::build::Target;
use super::resolve::{Scalar, resolve};

/// Nesting at which this reader gives up.
const MAX_DEPTH: usize = 100;

/// Bytes of a key; libyaml takes 1,024 characters.
const MAX_KEY: usize = 500;

/// A text that is not in the subset.
pub(super) struct GivenUp;

pub(super) type Read<T> = Result<T, GivenUp>;

/// The one document of a text, `None` when it has none.
///
/// # Errors
/// When the other reader has to look at it.
pub(super) fn read<T: Target>(text: &str, target: &T) -> Read<Option<T::Out>> {
    if !is_plain_text(text) {
        return Err(GivenUp);
    }
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: 0,
        column: 0,
        ended: false,
        known_key: (usize::MAX, None),
        discards: false,
    };
    reader.document(target)
}

/// A text whose characters all stand for themselves, in one document.
fn is_plain_text(text: &str) -> bool {
    const CONTROL: u8 = 1;
    const HIGH: u8 = 0x80;
    let look = |byte: u8| {
        let is_control = (byte < b' ') & (byte != b'\n') & (byte != b'\t') | (byte == 0x7f);
        u8::from(is_control) | byte & HIGH
    };
    // Side by side and without an early end, so that the compiler looks at many bytes at once.
    let (blocks, rest) = text.as_bytes().as_chunks::<32>();
    let mut lanes = [0; 32];
    for block in blocks {
        for (lane, byte) in lanes.iter_mut().zip(block) {
            *lane |= look(*byte);
        }
    }
    let seen = rest.iter().map(|byte| look(*byte)).chain(lanes).fold(0, |seen, bits| seen | bits);
    let strange = |c: char| {
        matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    seen & CONTROL == 0 && (seen & HIGH == 0 || !text.contains(strange))
}

/// Bytes up to the next line break, or the end.
fn line_len(bytes: &[u8]) -> usize {
    memchr::memchr(b'\n', bytes).unwrap_or(bytes.len())
}

/// A place in the text: at the first character of a line's content, or behind a scalar.
struct Reader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    /// Column of the content that [`Reader::line`] found.
    column: usize,
    /// Whether the text has no further content.
    ended: bool,
    /// The last place a key was looked for, and where its colon is: items ask before mappings do.
    known_key: (usize, Option<usize>),
    /// Whether nobody wants what is being read: texts are not put together then.
    discards: bool,
}

impl<'t> Reader<'t> {
    fn document<T: Target>(&mut self, target: &T) -> Read<Option<T::Out>> {
        self.line()?;
        if self.ended {
            return Ok(None);
        }
        if self.starts_with(b"---") && self.column == 0 {
            self.at += 3;
            self.end_of_line()?;
            self.line()?;
        }
        let value = match self.byte() {
            b'[' | b'{' if !self.ended => self.value(target, 0, 0)?,
            _ => self.block(target, 0)?,
        };
        if self.ended { Ok(Some(value)) } else { Err(GivenUp) }
    }

    fn byte(&self) -> u8 {
        self.byte_at(self.at)
    }

    /// A byte, or a line break beyond the end.
    fn byte_at(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(b'\n')
    }

    fn starts_with(&self, start: &[u8]) -> bool {
        self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(start))
    }

    fn skip_spaces(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|byte| *byte != b' ').unwrap_or(rest.len());
    }

    /// Goes to the content of the line that starts here, or of the next one that has some.
    fn line(&mut self) -> Read<()> {
        loop {
            let start = self.at;
            self.skip_spaces();
            match self.bytes.get(self.at) {
                None => {
                    self.ended = true;
                    return Ok(());
                }
                Some(b'\n') => self.at += 1,
                Some(b'#') => self.skip_line(),
                Some(b'\t') => return Err(GivenUp),
                Some(byte) => {
                    self.column = self.at - start;
                    let is_marker = self.column == 0 && matches!(byte, b'-' | b'.' | b'%');
                    return if is_marker { self.check_marker(start) } else { Ok(()) };
                }
            }
        }
    }

    /// What ends a document, or is about it, is for the other reader; the first `---` is no end.
    fn check_marker(&self, start: usize) -> Read<()> {
        let is_first = self.starts_with(b"---") && self.text.get(..start).is_some_and(is_blank);
        if (self.is_marker(start) && !is_first) || self.byte() == b'%' { Err(GivenUp) } else { Ok(()) }
    }

    /// Whether a line starts with `---` or `...`, whatever comes behind.
    fn is_marker(&self, start: usize) -> bool {
        self.bytes.get(start..start + 3).is_some_and(|bytes| bytes == b"---" || bytes == b"...")
    }

    fn skip_line(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at = (self.at + line_len(rest) + 1).min(self.bytes.len());
    }

    /// Nothing but a comment may follow on the line.
    fn end_of_line(&mut self) -> Read<()> {
        self.skip_spaces();
        match self.bytes.get(self.at) {
            None => Ok(()),
            Some(b'\n') => {
                self.at += 1;
                Ok(())
            }
            Some(b'#') if self.at.checked_sub(1).is_some_and(|before| self.byte_at(before) == b' ') => {
                self.skip_line();
                Ok(())
            }
            Some(_) => Err(GivenUp),
        }
    }

    /// The mapping or sequence whose first line this is.
    fn block<T: Target>(&mut self, target: &T, depth: usize) -> Read<T::Out> {
        if self.ended || depth > MAX_DEPTH {
            return Err(GivenUp);
        }
        if self.is_dash() { self.sequence(target, depth) } else { self.mapping(target, depth) }
    }

    fn is_dash(&self) -> bool {
        self.byte() == b'-' && matches!(self.byte_at(self.at + 1), b' ' | b'\n')
    }

    fn sequence<T: Target>(&mut self, target: &T, depth: usize) -> Read<T::Out> {
        let column = self.column;
        let mut items = Vec::new();
        while !self.ended && self.column == column && self.is_dash() {
            self.at += 1;
            let start = self.at;
            self.skip_spaces();
            let offset = 1 + self.at - start;
            items.push(self.item(target, column, offset, depth)?);
        }
        if !self.ended && self.column > column { Err(GivenUp) } else { Ok(target.list(items)) }
    }

    /// What stands behind a dash, so many columns right of it.
    fn item<T: Target>(&mut self, target: &T, column: usize, offset: usize, depth: usize) -> Read<T::Out> {
        if matches!(self.byte(), b'\n' | b'#') {
            self.end_of_line()?;
            self.line()?;
            return match !self.ended && self.column > column {
                true => self.block_or_plain(target, column, depth),
                false => Ok(target.scalar(Scalar::Null, Cow::Borrowed(""))),
            };
        }
        if self.is_dash() || self.key_end()?.is_some() {
            self.column = column + offset;
            return self.block(target, depth + 1);
        }
        self.value(target, column, depth)
    }

    /// A node that starts on a line of its own, within a block at `column`.
    fn block_or_plain<T: Target>(&mut self, target: &T, column: usize, depth: usize) -> Read<T::Out> {
        if self.is_dash() || self.key_end()?.is_some() {
            return self.block(target, depth + 1);
        }
        self.value(target, column, depth)
    }

    fn mapping<T: Target>(&mut self, target: &T, depth: usize) -> Read<T::Out> {
        let column = self.column;
        let mut entries = T::Entries::default();
        while !self.ended && self.column == column {
            if self.is_dash() {
                break;
            }
            let key = self.key()?;
            if target.wants(depth, &key) {
                let value = self.entry(target, column, depth)?;
                target.insert(&mut entries, key, value);
            } else {
                let discards = std::mem::replace(&mut self.discards, true);
                self.entry(&Nothing, column, depth)?;
                self.discards = discards;
            }
        }
        if !self.ended && self.column > column { Err(GivenUp) } else { Ok(target.map(entries)) }
    }

    /// The value behind a key and its colon.
    fn entry<T: Target>(&mut self, target: &T, column: usize, depth: usize) -> Read<T::Out> {
        self.skip_spaces();
        if !matches!(self.byte(), b'\n' | b'#') {
            return self.value(target, column, depth);
        }
        self.end_of_line()?;
        self.line()?;
        let nested = !self.ended && (self.column > column || (self.column == column && self.is_dash()));
        match nested {
            true => self.block_or_plain(target, column, depth),
            false => Ok(target.scalar(Scalar::Null, Cow::Borrowed(""))),
        }
    }

    /// Where the colon of a key is that starts here; `None` when there is no key.
    fn key_end(&mut self) -> Read<Option<usize>> {
        if self.known_key.0 != self.at {
            self.known_key = (self.at, self.find_key_end()?);
        }
        Ok(self.known_key.1)
    }

    fn find_key_end(&self) -> Read<Option<usize>> {
        let mut at = match self.byte() {
            quote @ (b'"' | b'\'') => match self.quoted_end(quote)? {
                Some(end) => end,
                None => return Ok(None),
            },
            b'[' | b'{' | b'|' | b'>' => return Ok(None),
            _ => return self.plain_key_end(),
        };
        while self.byte_at(at) == b' ' {
            at += 1;
        }
        Ok((self.byte_at(at) == b':' && matches!(self.byte_at(at + 1), b' ' | b'\n')).then_some(at))
    }

    /// Behind the closing quote, when it is on this line.
    fn quoted_end(&self, quote: u8) -> Read<Option<usize>> {
        let mut at = self.at + 1;
        loop {
            match self.byte_at(at) {
                b'\n' => return Ok(None),
                b'\\' if quote == b'"' => at += 2,
                byte if byte == quote && quote == b'\'' && self.byte_at(at + 1) == quote => at += 2,
                byte if byte == quote => return Ok(Some(at + 1)),
                _ => at += 1,
            }
        }
    }

    /// Where the colon of a plain key is. A tab before it, or in what is no key then, is for the other reader.
    fn plain_key_end(&self) -> Read<Option<usize>> {
        let mut at = self.at;
        loop {
            at = self.next_special(at);
            match self.byte_at(at) {
                b'\n' => return Ok(None),
                b'\t' => return Err(GivenUp),
                b':' if matches!(self.byte_at(at + 1), b' ' | b'\n' | b'\t') => return Ok(Some(at)),
                b'#' if at > self.at && self.byte_at(at - 1) == b' ' => return Ok(None),
                _ => at += 1,
            }
        }
    }

    /// The next place from one on with a character that may end a plain scalar, or the end.
    fn next_special(&self, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        let is_special = |byte: &u8| matches!(byte, b'\n' | b'\t' | b':' | b'#');
        from + rest.iter().position(is_special).unwrap_or(rest.len())
    }

    /// The key that starts here, as text; goes behind its colon.
    fn key(&mut self) -> Read<Cow<'t, str>> {
        let end = self.key_end()?.ok_or(GivenUp)?;
        if end - self.at > MAX_KEY || self.byte_at(end + 1) == b'\t' {
            return Err(GivenUp);
        }
        let key = match self.byte() {
            quote @ (b'"' | b'\'') => self.quoted(quote)?,
            _ => self.plain_key(end)?,
        };
        self.at = end + 1;
        Ok(key)
    }

    fn plain_key(&self, end: usize) -> Read<Cow<'t, str>> {
        let key = without_blanks(self.text.get(self.at..end).ok_or(GivenUp)?);
        if !can_start_plain(key) || key == "<<" {
            return Err(GivenUp);
        }
        match resolve(key) {
            Scalar::Str | Scalar::Timestamp => Ok(Cow::Borrowed(key)),
            Scalar::Bool(flag) => Ok(Cow::Borrowed(if flag { "true" } else { "false" })),
            Scalar::Int(int) => Ok(Cow::Owned(int.to_string())),
            Scalar::Null | Scalar::Uint(_) | Scalar::Float(_) => Err(GivenUp),
        }
    }

    /// A scalar or flow collection as a value within a block at `column`; goes to the next line.
    fn value<T: Target>(&mut self, target: &T, column: usize, depth: usize) -> Read<T::Out> {
        let value = match self.byte() {
            b'[' | b'{' => self.flow(target, depth + 1)?,
            quote @ (b'"' | b'\'') => {
                let text = self.quoted(quote)?;
                target.scalar(Scalar::Str, text)
            }
            b'|' | b'>' => {
                let text = self.block_scalar(column)?;
                self.line()?;
                return Ok(target.scalar(Scalar::Str, text));
            }
            _ => {
                let text = self.plain(column)?;
                return Ok(target.scalar(plain_scalar::<T>(&text)?, text));
            }
        };
        self.end_of_line()?;
        self.line()?;
        Ok(value)
    }
}

/// Whether text is nothing but blanks and comments.
fn is_blank(text: &str) -> bool {
    text.lines()
        .all(|line| line.trim_start_matches(' ').is_empty() || line.trim_start_matches(' ').starts_with('#'))
}

/// Whether a plain scalar may start so.
fn can_start_plain(text: &str) -> bool {
    match text.as_bytes() {
        [] => false,
        [b'-' | b'?' | b':', next, ..] => *next != b' ',
        [b'-' | b'?' | b':'] => false,
        [first, ..] => !b",[]{}#&*!|>'\"%@`".contains(first),
    }
}

/// The text without the blanks at its end.
fn without_blanks(text: &str) -> &str {
    let len = text.bytes().rposition(|byte| byte != b' ').map_or(0, |last| last + 1);
    text.get(..len).unwrap_or_default()
}

/// The type of a plain scalar that JSON can hold.
fn plain_scalar<T: Target>(text: &str) -> Read<Scalar> {
    // All numbers that JSON cannot hold start so.
    if !T::IS_TYPED && !text.starts_with(['.', '+', '-']) {
        return Ok(Scalar::Str);
    }
    match resolve(text) {
        Scalar::Float(float) if !float.is_finite() => Err(GivenUp),
        scalar => Ok(scalar),
    }
}

/// Values that nobody wants: they are only checked.
pub(super) struct Nothing;

impl Target for Nothing {
    type Out = ();
    type Entries = ();
    const IS_TYPED: bool = false;

    fn scalar(&self, _: Scalar, _: Cow<'_, str>) {}

    fn list(&self, _: Vec<()>) {}

    fn insert(&self, (): &mut (), _: Cow<'_, str>, (): ()) {}

    fn map(&self, (): ()) {}
}
