//! Flow collections, as far as they are simple: `[a, "b"]`, `{a: 1}`, JSON.

use std::borrow::Cow;

use super::{GivenUp, MAX_DEPTH, Read, Reader, can_start_plain, plain_scalar};
use crate::yaml::build::Target;
use crate::yaml::resolve::{Scalar, resolve};

impl<'t> Reader<'t> {
    /// The collection that starts here; goes behind its end.
    pub(super) fn flow<T: Target>(&mut self, target: &T, depth: usize) -> Read<T::Out> {
        if depth > MAX_DEPTH {
            return Err(GivenUp);
        }
        let is_list = self.byte() == b'[';
        self.at += 1;
        if is_list { self.flow_list(target, depth) } else { self.flow_map(target, depth) }
    }

    fn flow_list<T: Target>(&mut self, target: &T, depth: usize) -> Read<T::Out> {
        let mut items = Vec::new();
        self.flow_blanks()?;
        if self.byte() != b']' {
            loop {
                items.push(self.flow_value(target, depth)?);
                if self.flow_end(b']')? {
                    break;
                }
            }
        }
        self.at += 1;
        Ok(target.list(items))
    }

    fn flow_map<T: Target>(&mut self, target: &T, depth: usize) -> Read<T::Out> {
        let mut entries = T::Entries::default();
        self.flow_blanks()?;
        if self.byte() != b'}' {
            loop {
                let key = self.flow_key()?;
                self.flow_blanks()?;
                let value = self.flow_value(target, depth)?;
                target.insert(&mut entries, key, value);
                if self.flow_end(b'}')? {
                    break;
                }
            }
        }
        self.at += 1;
        Ok(target.map(entries))
    }

    /// Goes to the next entry, or says that the collection ends here.
    fn flow_end(&mut self, end: u8) -> Read<bool> {
        self.flow_blanks()?;
        match self.byte() {
            b',' => {
                self.at += 1;
                self.flow_blanks()?;
                if self.byte() == end { Err(GivenUp) } else { Ok(false) }
            }
            byte if byte == end => Ok(true),
            _ => Err(GivenUp),
        }
    }

    /// Blanks and breaks; lines within a collection may stand at any column.
    fn flow_blanks(&mut self) -> Read<()> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ') => self.at += 1,
                Some(b'\n') => {
                    self.at += 1;
                    if self.is_marker(self.at) {
                        return Err(GivenUp);
                    }
                }
                Some(b'\t' | b'#') | None => return Err(GivenUp),
                Some(_) => return Ok(()),
            }
        }
    }

    fn flow_value<T: Target>(&mut self, target: &T, depth: usize) -> Read<T::Out> {
        match self.byte() {
            b'[' | b'{' => self.flow(target, depth + 1),
            quote @ (b'"' | b'\'') => {
                let text = self.quoted(quote)?;
                Ok(target.scalar(Scalar::Str, text))
            }
            _ => {
                let text = self.flow_plain()?;
                Ok(target.scalar(plain_scalar::<T>(text)?, Cow::Borrowed(text)))
            }
        }
    }

    /// A key up to and with its colon, all on one line.
    fn flow_key(&mut self) -> Read<Cow<'t, str>> {
        let start = self.at;
        let key = match self.byte() {
            quote @ (b'"' | b'\'') => self.quoted(quote)?,
            _ => {
                let key = self.flow_plain()?;
                match resolve(key) {
                    Scalar::Str if key != "<<" => Cow::Borrowed(key),
                    _ => return Err(GivenUp),
                }
            }
        };
        let written = self.text.get(start..self.at).ok_or(GivenUp)?;
        if written.contains('\n') || written.len() > super::MAX_KEY || self.byte() != b':' {
            return Err(GivenUp);
        }
        let quoted = written.starts_with(['"', '\'']);
        self.at += 1;
        if quoted || matches!(self.byte(), b' ' | b'\n') { Ok(key) } else { Err(GivenUp) }
    }

    /// A plain scalar of characters that mean nothing in a collection; goes behind it.
    fn flow_plain(&mut self) -> Read<&'t str> {
        let start = self.at;
        loop {
            match self.bytes.get(self.at) {
                Some(b',' | b']' | b'}' | b'\n') => break,
                Some(b':') if matches!(self.byte_at(self.at + 1), b' ' | b'\n') => break,
                Some(b':' | b'#' | b'[' | b'{' | b'?' | b'\t' | b'"' | b'\'') | None => return Err(GivenUp),
                Some(_) => self.at += 1,
            }
        }
        let text = self.text.get(start..self.at).ok_or(GivenUp)?;
        let trimmed = text.trim_end_matches(' ');
        // A plain scalar may go on over several lines, which is for the other reader.
        if self.byte() == b'\n' && self.byte_at_next_content() != b',' && !self.closes_next() {
            return Err(GivenUp);
        }
        if self.byte() == b':' && trimmed.len() != text.len() {
            return Err(GivenUp);
        }
        if can_start_plain(trimmed) { Ok(trimmed) } else { Err(GivenUp) }
    }

    fn byte_at_next_content(&self) -> u8 {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        rest.iter().copied().find(|byte| !matches!(byte, b' ' | b'\n')).unwrap_or(b'\n')
    }

    fn closes_next(&self) -> bool {
        matches!(self.byte_at_next_content(), b']' | b'}')
    }
}
