//! YAML as Helm writes it: the bytes of `toYaml`.

use std::borrow::Cow;

use minijinja::Value;

use super::json::{JsonError, Node, float_is_integer, lossy, text_len};
use super::keys::{self, Order};
use super::scalar::{Style, analyze, is_break, is_printable, style};
use crate::value::float::float_text;
use crate::value::print::MAX_TEXT;

/// Column behind which a line is folded at the next space.
const WIDTH: usize = 80;

/// Columns of one level.
const INDENT: usize = 2;

/// Bytes of a key that may stand before `:` on one line.
const SIMPLE_KEY: usize = 128;

/// The value as YAML, with a line break at the end.
///
/// Go writes JSON first and reads it back as YAML, which shows: floats without a fraction become
/// integers, invalid UTF-8 becomes U+FFFD, and control characters beyond ASCII cannot be written.
///
/// # Errors
/// For what JSON or YAML cannot hold. `toYaml` answers such an error with an empty text.
pub fn emit(value: &Value) -> Result<String, JsonError> {
    let mut out = Vec::new();
    emit_into(value, &mut out)?;
    Ok(String::from_utf8(out).unwrap_or_default())
}

/// Appends what [`emit`] gives.
///
/// # Errors
/// As [`emit`]; then nothing is appended.
pub(crate) fn emit_into(value: &Value, out: &mut Vec<u8>) -> Result<(), JsonError> {
    document(value, Flavor::Kubernetes, out)
}

/// The value as version 3 of Go's library writes it, with a line break at the end: lists are
/// indented, nothing is folded, numbers are printed as they are.
///
/// # Errors
/// For what YAML cannot hold.
pub fn emit_pretty(value: &Value) -> Result<String, JsonError> {
    let mut out = Vec::new();
    document(value, Flavor::Pretty, &mut out)?;
    Ok(String::from_utf8(out).unwrap_or_default())
}

fn document(value: &Value, flavor: Flavor, out: &mut Vec<u8>) -> Result<(), JsonError> {
    let from = out.len();
    let mut emitter = Emitter { out, flavor, column: 0, whitespace: true, indention: true };
    let result = emitter.node(value, None, Context::Root, 0);
    match result {
        Ok(()) => emitter.write_indent(None),
        Err(_) => out.truncate(from),
    }
    result
}

/// Which of Helm's two writers is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavor {
    /// `toYaml`: JSON first, then version 2 of Go's library.
    Kubernetes,
    /// `toYamlPretty`: version 3.
    Pretty,
}

/// Characters of a key in JSON that YAML still reads as a key.
const READ_KEY: usize = 1024;

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    Root,
    Item,
    /// The value of a key, or a key that needs `?`.
    Entry,
}

/// The state of libyaml's emitter, which decides about spaces and line breaks.
struct Emitter<'o> {
    out: &'o mut Vec<u8>,
    flavor: Flavor,
    column: usize,
    /// The last character was a space, or nothing.
    whitespace: bool,
    /// Only indentation and indicators stand on this line.
    indention: bool,
}

/// Columns of indentation; `None` before the first level.
type Indent = Option<usize>;

impl Emitter<'_> {
    fn node(
        &mut self,
        value: &Value,
        indent: Indent,
        context: Context,
        depth: usize,
    ) -> Result<(), JsonError> {
        if self.out.len() > MAX_TEXT {
            return Err(JsonError::TooLong);
        }
        match Node::of(value, depth)? {
            Node::Null => self.plain("null", indent),
            Node::Bool(bool) => self.plain(if bool { "true" } else { "false" }, indent),
            Node::Int(int) => self.plain(&int.to_string(), indent),
            Node::Uint(uint) => self.plain(&uint.to_string(), indent),
            Node::Float(float) => {
                let text = self.number_text(float);
                self.plain(&text, indent);
            }
            Node::Text(bytes) => {
                let text = lossy(&bytes);
                match self.pretty() {
                    true => self.text(&text, indent),
                    false => self.text(&reread(&text)?, indent),
                }
            }
            Node::List(items) if items.is_empty() => self.flow("[]"),
            Node::Map(entries) if entries.is_empty() => self.flow("{}"),
            Node::List(items) => return self.sequence(&items, indent, context, depth),
            Node::Map(entries) => return self.mapping(entries, indent, depth),
        }
        Ok(())
    }

    fn sequence(
        &mut self,
        items: &[Value],
        indent: Indent,
        context: Context,
        depth: usize,
    ) -> Result<(), JsonError> {
        // A sequence under a key stands at the key's own indentation.
        let indentless = context == Context::Entry && !self.indention && !self.pretty();
        let indent = match indent {
            Some(columns) if indentless => Some(columns),
            indent => deeper(indent),
        };
        for item in items {
            self.write_indent(indent);
            self.indicator("-", true);
            self.node(item, indent, Context::Item, depth + 1)?;
        }
        Ok(())
    }

    fn mapping(
        &mut self,
        entries: Vec<(std::sync::Arc<str>, Value)>,
        indent: Indent,
        depth: usize,
    ) -> Result<(), JsonError> {
        let indent = deeper(indent);
        let order = if self.pretty() { Order::Version3 } else { Order::Version2 };
        if !self.pretty() {
            entries.iter().try_for_each(|(key, _)| check_key(key))?;
        }
        for (key, value) in keys::sort(entries, order) {
            self.write_indent(indent);
            if analyze(&key, self.pretty()).multiline || key.len() > SIMPLE_KEY {
                self.indicator("?", true);
                self.text(&key, indent);
                self.write_indent(indent);
                self.indicator(":", true);
            } else {
                self.simple_key(&key);
                self.write(":");
                (self.whitespace, self.indention) = (false, false);
            }
            self.node(&value, indent, Context::Entry, depth + 1)?;
        }
        Ok(())
    }

    fn flow(&mut self, brackets: &str) {
        self.space();
        self.write(brackets);
        (self.whitespace, self.indention) = (false, false);
    }

    fn simple_key(&mut self, key: &str) {
        match style(key, analyze(key, self.pretty()), true) {
            Style::Plain => self.write_plain(key, None),
            Style::Single => self.write_single(key, None),
            Style::Double | Style::Literal => self.write_double(key, None),
        }
    }

    fn text(&mut self, text: &str, indent: Indent) {
        let indent = scalar_indent(indent);
        match style(text, analyze(text, self.pretty()), false) {
            Style::Plain => self.write_plain(text, indent),
            Style::Single => self.write_single(text, indent),
            Style::Double => self.write_double(text, indent),
            Style::Literal => self.write_literal(text, indent),
        }
    }

    fn plain(&mut self, text: &str, indent: Indent) {
        self.write_plain(text, scalar_indent(indent));
    }

    fn pretty(&self) -> bool {
        self.flavor == Flavor::Pretty
    }

    fn width(&self) -> usize {
        if self.pretty() { usize::MAX } else { WIDTH }
    }

    /// A number; in JSON an integer that fits 64 bits is one, whatever it was before.
    fn number_text(&self, float: f64) -> String {
        let integer = if self.pretty() { None } else { float_is_integer(float) };
        integer.unwrap_or_else(|| float_text(float))
    }

    fn space(&mut self) {
        if !self.whitespace {
            self.put(' ');
        }
    }

    fn put(&mut self, c: char) {
        self.push(c);
        self.column += 1;
    }

    fn push(&mut self, c: char) {
        match u8::try_from(c) {
            Ok(byte) if byte.is_ascii() => self.out.push(byte),
            _ => self.out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }

    fn write(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
        self.column += if text.is_ascii() { text.len() } else { text.chars().count() };
    }

    fn put_break(&mut self, c: char) {
        self.push(c);
        self.column = 0;
    }

    fn write_indent(&mut self, indent: Indent) {
        let indent = indent.unwrap_or(0);
        let beyond = self.column > indent || (self.column == indent && !self.whitespace);
        if !self.indention || beyond {
            self.put_break('\n');
        }
        let missing = indent.saturating_sub(self.column);
        self.out.resize(self.out.len() + missing, b' ');
        self.column += missing;
        (self.whitespace, self.indention) = (true, true);
    }

    /// `-`, `?` or `:` behind which a node may start on the same line.
    fn indicator(&mut self, indicator: &str, is_indention: bool) {
        self.space();
        self.write(indicator);
        self.whitespace = false;
        self.indention = self.indention && is_indention;
    }

    /// `indent` is `None` where no line may be broken: in a key.
    fn write_plain(&mut self, text: &str, indent: Indent) {
        self.space();
        if text.is_ascii() && self.column + text.len() <= self.width() {
            self.out.extend_from_slice(text.as_bytes());
            self.column += text.len();
            (self.whitespace, self.indention) = (false, false);
            return;
        }
        let mut spaces = false;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let fold = c == ' ' && !spaces && chars.peek().is_some_and(|next| *next != ' ');
            self.character_or_fold(c, fold, indent);
            spaces = c == ' ';
        }
        (self.whitespace, self.indention) = (false, false);
    }

    fn character_or_fold(&mut self, c: char, fold: bool, indent: Indent) {
        match indent {
            Some(_) if fold && self.column > self.width() => self.write_indent(indent),
            _ => self.put(c),
        }
        if c != ' ' {
            self.indention = false;
        }
    }

    fn write_single(&mut self, text: &str, indent: Indent) {
        self.indicator("'", false);
        let (mut spaces, mut breaks, mut first) = (false, false, true);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if is_break(c) {
                if !breaks && c == '\n' {
                    self.put_break('\n');
                }
                self.put_break(c);
                self.indention = true;
                (breaks, first) = (true, false);
                continue;
            }
            if breaks && c != ' ' {
                self.write_indent(indent);
            }
            if c == '\'' {
                self.put('\'');
            }
            let next = chars.peek().is_some_and(|next| *next != ' ');
            self.character_or_fold(c, c == ' ' && !spaces && !first && next, indent);
            breaks = breaks && c == ' ';
            (spaces, first) = (c == ' ', false);
        }
        self.write("'");
        (self.whitespace, self.indention) = (false, false);
    }

    fn write_double(&mut self, text: &str, indent: Indent) {
        self.indicator("\"", false);
        // Go's test for a byte order mark looks at the start of the text, whatever it is asked.
        let marked = text.starts_with('\u{feff}');
        let (mut spaces, mut first) = (false, true);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let escape = marked || !is_printable(c) || is_break(c) || c == '"' || c == '\\';
            let inner = !first && chars.peek().is_some();
            if escape {
                self.write(&escaped(c));
            } else if c == ' ' && !spaces && inner && self.column > self.width() && indent.is_some() {
                self.write_indent(indent);
                if chars.peek() == Some(&' ') {
                    self.put('\\');
                }
            } else {
                self.put(c);
            }
            spaces = c == ' ' && !escape;
            first = false;
        }
        self.write("\"");
        (self.whitespace, self.indention) = (false, false);
    }

    fn write_literal(&mut self, text: &str, indent: Indent) {
        self.indicator("|", false);
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            self.write(&INDENT.to_string());
        }
        self.write(chomping(text));
        self.put_break('\n');
        (self.whitespace, self.indention) = (true, true);
        let mut breaks = true;
        for c in text.chars() {
            if is_break(c) {
                self.put_break(c);
                self.indention = true;
                breaks = true;
                continue;
            }
            if breaks {
                self.write_indent(indent);
            }
            self.put(c);
            self.indention = false;
            breaks = false;
        }
    }
}

/// `-` without a last line break, `+` with more than one, nothing with one.
fn chomping(text: &str) -> &'static str {
    let mut last = text.chars().rev();
    match (last.next().is_some_and(is_break), last.next()) {
        (false, _) => "-",
        (true, None) => "+",
        (true, Some(before)) if is_break(before) => "+",
        (true, Some(_)) => "",
    }
}

fn deeper(indent: Indent) -> Indent {
    Some(indent.map_or(0, |columns| columns + INDENT))
}

fn scalar_indent(indent: Indent) -> Indent {
    Some(indent.unwrap_or(0) + INDENT)
}

fn escaped(c: char) -> String {
    let short = match c {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' | '\\' => c,
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => {
            return match u32::from(c) {
                code @ 0..=0xff => format!("\\x{code:02X}"),
                code @ 0x100..=0xffff => format!("\\u{code:04X}"),
                code => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}

/// What is left of a text that was written as JSON and read as YAML.
///
/// # Errors
/// For characters JSON writes as they are and YAML does not know.
fn reread(text: &str) -> Result<Cow<'_, str>, JsonError> {
    if text.bytes().all(|b| b < 0x7f) {
        return Ok(Cow::Borrowed(text));
    }
    let unknown = |c: char| matches!(c, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}');
    if text.contains(unknown) {
        return Err(JsonError::Control);
    }
    Ok(if text.contains('\u{85}') { Cow::Owned(fold_next_lines(text)) } else { Cow::Borrowed(text) })
}

/// Whether a key survives being written as JSON and read as YAML.
fn check_key(key: &str) -> Result<(), JsonError> {
    reread(key)?;
    // One character can become six, so a short key needs no counting.
    let long = key.len() * 6 + 2 > READ_KEY && text_len(key) > READ_KEY;
    if long || key.contains('\u{85}') { Err(JsonError::Key) } else { Ok(()) }
}

/// U+0085 ends a line of YAML, and lines of a quoted text are folded.
fn fold_next_lines(text: &str) -> String {
    let mut lines = text.split('\u{85}');
    let mut out = lines.next().unwrap_or_default().to_owned();
    let mut pending = 0;
    for line in lines {
        if pending == 0 {
            out.truncate(out.trim_end_matches(' ').len());
        }
        pending += 1;
        let line = line.trim_start_matches(' ');
        if line.is_empty() {
            continue;
        }
        out.push_str(&folded(pending));
        pending = 0;
        out.push_str(line);
    }
    if pending > 0 {
        out.push_str(&folded(pending));
    }
    out
}

/// One break is a space, more are one break fewer.
fn folded(breaks: usize) -> String {
    if breaks == 1 { " ".to_owned() } else { "\n".repeat(breaks - 1) }
}
