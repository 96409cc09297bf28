//! Plain, quoted and block scalars.

use std::borrow::Cow;

use super::{GivenUp, Read, Reader, can_start_plain, line_len, without_blanks};

impl<'t> Reader<'t> {
    /// A plain scalar within a block at `column`, with the lines that continue it; goes to the next line.
    pub(super) fn plain(&mut self, column: usize) -> Read<Cow<'t, str>> {
        let (first, commented) = self.plain_line()?;
        if !can_start_plain(first) {
            return Err(GivenUp);
        }
        let mut text = Cow::Borrowed(first);
        let mut behind = self.at;
        self.line()?;
        if commented {
            return if !self.ended && self.column > column { Err(GivenUp) } else { Ok(text) };
        }
        while !self.ended && self.column > column {
            let breaks = self.breaks(behind);
            let (line, commented) = self.plain_line()?;
            if !self.discards {
                fold(text.to_mut(), breaks.count);
                text.to_mut().push_str(line);
            }
            behind = self.at;
            self.line()?;
            // A comment behind or between the lines ends the scalar, and what follows is a mistake.
            if breaks.commented || (commented && !self.ended && self.column > column) {
                return Err(GivenUp);
            }
        }
        Ok(text)
    }

    /// The rest of a line up to a comment, and whether there is one; goes behind the line.
    fn plain_line(&mut self) -> Read<(&'t str, bool)> {
        let start = self.at;
        let end = self.plain_end(start)?;
        let line = without_blanks(self.text.get(start..end).ok_or(GivenUp)?);
        let commented = self.byte_at(end) == b'#';
        self.at = end;
        match commented {
            true => self.skip_line(),
            false => self.at = (end + 1).min(self.bytes.len()),
        }
        Ok((line, commented))
    }

    /// Where a plain scalar ends on its line: at the break, or at a comment.
    fn plain_end(&self, start: usize) -> Read<usize> {
        let mut end = start;
        loop {
            end = self.next_special(end);
            match self.byte_at(end) {
                b'\n' => return Ok(end),
                b'\t' => return Err(GivenUp),
                b':' if matches!(self.byte_at(end + 1), b' ' | b'\n') => return Err(GivenUp),
                b'#' if end > start && self.byte_at(end - 1) == b' ' => return Ok(end),
                _ => end += 1,
            }
        }
    }

    /// The empty lines from a place, and whether a comment follows them.
    fn breaks(&self, mut at: usize) -> Breaks {
        let mut count = 0;
        loop {
            while self.byte_at(at) == b' ' {
                at += 1;
            }
            if self.bytes.get(at) != Some(&b'\n') {
                return Breaks { count, commented: self.byte_at(at) == b'#' };
            }
            count += 1;
            at += 1;
        }
    }

    /// A quoted scalar; goes behind its closing quote.
    pub(super) fn quoted(&mut self, quote: u8) -> Read<Cow<'t, str>> {
        self.at += 1;
        let start = self.at;
        let rest = self.bytes.get(start..).unwrap_or_default();
        let plain = rest.iter().position(|byte| matches!(byte, b'\n' | b'\\') || *byte == quote);
        let end = start + plain.ok_or(GivenUp)?;
        let simple = match self.byte_at(end) {
            byte if byte == quote => quote == b'"' || self.byte_at(end + 1) != quote,
            _ => false,
        };
        if simple {
            self.at = end + 1;
            return self.text.get(start..end).map(Cow::Borrowed).ok_or(GivenUp);
        }
        self.quoted_slowly(quote).map(Cow::Owned)
    }

    fn quoted_slowly(&mut self, quote: u8) -> Read<String> {
        let mut out = String::new();
        loop {
            let start = self.at;
            let rest = self.bytes.get(start..).unwrap_or_default();
            let stop = |byte: &u8| *byte == b'\n' || *byte == quote || (*byte == b'\\' && quote == b'"');
            self.at += rest.iter().position(stop).ok_or(GivenUp)?;
            out.push_str(self.text.get(start..self.at).ok_or(GivenUp)?);
            match self.byte() {
                b'\n' => self.fold_line(&mut out, start)?,
                b'\\' => self.escape(&mut out)?,
                _ if quote == b'\'' && self.byte_at(self.at + 1) == quote => {
                    out.push('\'');
                    self.at += 2;
                }
                _ => {
                    self.at += 1;
                    return Ok(out);
                }
            }
        }
    }

    /// A line break in a quoted scalar: blanks around it go, and it is a blank, or the empty lines behind it.
    fn fold_line(&mut self, out: &mut String, start: usize) -> Read<()> {
        let literal = self.at - start;
        let kept = out.len() - literal;
        let trimmed = out.trim_end_matches(' ').len().max(kept);
        out.truncate(trimmed);
        // A tab that an escape wrote is no blank before a break, which would go.
        if trimmed > kept && out.ends_with('\t') {
            return Err(GivenUp);
        }
        self.at += 1;
        let mut count = 0;
        loop {
            let line = self.at;
            self.skip_spaces();
            match self.bytes.get(self.at) {
                Some(b'\n') => count += 1,
                Some(b'\t') | None => return Err(GivenUp),
                Some(_) if line == self.at && self.is_marker(line) => return Err(GivenUp),
                Some(_) => break,
            }
            self.at += 1;
        }
        fold(out, count);
        Ok(())
    }

    fn escape(&mut self, out: &mut String) -> Read<()> {
        let c = match self.byte_at(self.at + 1) {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b' ' => ' ',
            b'x' => return self.hex(out, 2),
            b'u' => return self.hex(out, 4),
            b'U' => return self.hex(out, 8),
            _ => return Err(GivenUp),
        };
        out.push(c);
        self.at += 2;
        Ok(())
    }

    fn hex(&mut self, out: &mut String, digits: usize) -> Read<()> {
        let start = self.at + 2;
        let text = self.text.get(start..start + digits).ok_or(GivenUp)?;
        if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(GivenUp);
        }
        let code = u32::from_str_radix(text, 16).map_err(|_| GivenUp)?;
        out.push(char::from_u32(code).ok_or(GivenUp)?);
        self.at = start + digits;
        Ok(())
    }

    /// A block scalar within a block at `column`; goes behind its last line.
    pub(super) fn block_scalar(&mut self, column: usize) -> Read<Cow<'t, str>> {
        let literal = self.byte() == b'|';
        self.at += 1;
        let (mut chomp, mut digit) = (b' ', 0);
        loop {
            match self.byte() {
                sign @ (b'-' | b'+') if chomp == b' ' => chomp = sign,
                number @ b'1'..=b'9' if digit == 0 => digit = usize::from(number - b'0'),
                _ => break,
            }
            self.at += 1;
        }
        self.skip_spaces();
        if self.bytes.get(self.at) != Some(&b'\n') {
            return Err(GivenUp);
        }
        self.at += 1;
        let indent = match digit {
            0 => self.block_indent(column)?,
            digit => Some(column + digit),
        };
        let Some(indent) = indent else {
            return if chomp == b'+' { Err(GivenUp) } else { Ok(Cow::Borrowed("")) };
        };
        let (mut text, last_breaks) = self.block_lines(indent, literal)?;
        if self.discards {
            return Ok(Cow::Borrowed(""));
        }
        // The last line of a text may have no break, and then the scalar has none.
        let is_cut = self.at == self.bytes.len() && self.bytes.last() != Some(&b'\n');
        if chomp != b'-' && !is_cut {
            text.push('\n');
        }
        if chomp == b'+' {
            text.push_str(&"\n".repeat(last_breaks));
        }
        Ok(Cow::Owned(text))
    }

    /// The column of the first line with content; `None` when that is no part of the scalar.
    fn block_indent(&self, column: usize) -> Read<Option<usize>> {
        let mut at = self.at;
        let mut widest = 0;
        loop {
            let start = at;
            while self.byte_at(at) == b' ' {
                at += 1;
            }
            let width = at - start;
            match self.bytes.get(at) {
                Some(b'\n') => widest = widest.max(width),
                None if width == 0 => return Ok(None),
                Some(b'\t') | None => return Err(GivenUp),
                Some(_) if width <= column => return Ok(None),
                Some(_) if width >= widest => return Ok(Some(width)),
                Some(_) => return Err(GivenUp),
            }
            at += 1;
        }
    }

    /// The lines of a block scalar without the last break, and how many empty lines follow them.
    fn block_lines(&mut self, indent: usize, literal: bool) -> Read<(String, usize)> {
        let mut out = String::new();
        let mut breaks = self.empty_lines(indent)?;
        let (mut first, mut after_blank) = (true, false);
        while let Some(line) = self.block_line(indent)? {
            if self.discards {
                (first, breaks) = (false, self.empty_lines(indent)?);
                continue;
            }
            let blank = line.starts_with([' ', '\t']);
            if !first && !literal && !after_blank && !blank {
                out.push_str(if breaks == 0 { " " } else { "" });
            } else if !first {
                out.push('\n');
            }
            out.push_str(&"\n".repeat(breaks));
            out.push_str(line);
            (first, after_blank) = (false, blank);
            breaks = self.empty_lines(indent)?;
        }
        if first { Err(GivenUp) } else { Ok((out, breaks)) }
    }

    /// Skips lines without content, whose blanks do not reach beyond the indentation.
    fn empty_lines(&mut self, indent: usize) -> Read<usize> {
        let mut count = 0;
        loop {
            let mut at = self.at;
            while self.byte_at(at) == b' ' && at - self.at < indent {
                at += 1;
            }
            match self.bytes.get(at) {
                Some(b'\n') => {
                    self.at = at + 1;
                    count += 1;
                }
                Some(b'\t') if at - self.at < indent => return Err(GivenUp),
                // Blanks without an end of the line: the other reader knows what they are.
                None if at > self.at => return Err(GivenUp),
                _ => return Ok(count),
            }
        }
    }

    /// The line that starts here, without its indentation; `None` when it has less.
    fn block_line(&mut self, indent: usize) -> Read<Option<&'t str>> {
        let content = self.at + indent;
        let indentation = self.bytes.get(self.at..content);
        if !indentation.is_some_and(|bytes| bytes.iter().all(|byte| *byte == b' '))
            || content == self.bytes.len()
        {
            return Ok(None);
        }
        let rest = self.bytes.get(content..).unwrap_or_default();
        let len = line_len(rest);
        self.at = (content + len + 1).min(self.bytes.len());
        self.text.get(content..content + len).map(Some).ok_or(GivenUp)
    }
}

/// Empty lines between two lines of a scalar.
struct Breaks {
    count: usize,
    commented: bool,
}

/// A break between two lines: a blank, or as many breaks as there are empty lines.
fn fold(out: &mut String, empty_lines: usize) {
    match empty_lines {
        0 => out.push(' '),
        count => out.push_str(&"\n".repeat(count)),
    }
}
