//! Splits a Go template into tokens.
//!
//! A mistake becomes the last token ([`Kind::Error`]); the parser reports it when it gets there, so
//! that an earlier mistake of another sort wins, as in Go.

use memchr::memmem;

use crate::quote::unicode;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Error,
    Eof,
    Text,
    LeftDelim,
    RightDelim,
    Space,
    Assign,
    Declare,
    Pipe,
    Char,
    CharConstant,
    Complex,
    Number,
    Str,
    RawStr,
    Bool,
    Field,
    Variable,
    Identifier,
    LeftParen,
    RightParen,
    Dot,
    Nil,
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Range,
    Template,
    With,
}

/// A token: a stretch of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'s> {
    pub(crate) kind: Kind,
    /// Byte offset in the source.
    pub(crate) pos: usize,
    /// The stretch itself.
    pub(crate) text: &'s str,
}

/// The tokens of one source after another: a list that is kept, as large ones cost the allocator much.
#[derive(Debug, Default)]
pub(crate) struct Tokens(Vec<Span>);

/// A token without its text. Sources of 4 GiB do not exist: a chart's file has 32 MiB.
#[derive(Clone, Copy, Debug)]
struct Span {
    kind: Kind,
    start: u32,
    end: u32,
}

const LEFT: &str = "{{";
const RIGHT: &str = "}}";
const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

impl Tokens {
    /// Reads the tokens of a source in place of those that are here; the last one is [`Kind::Eof`] or, with a
    /// message, [`Kind::Error`].
    pub(crate) fn read(&mut self, source: &str) -> Option<String> {
        self.0.clear();
        let mut lexer = Lexer { source, start: 0, pos: 0, parens: 0, tokens: &mut self.0 };
        let mistake = lexer.text().err();
        lexer.emit(if mistake.is_some() { Kind::Error } else { Kind::Eof });
        mistake
    }

    pub(crate) fn kind(&self, index: usize) -> Option<Kind> {
        self.0.get(index).map(|span| span.kind)
    }

    pub(crate) fn pos(&self, index: usize) -> Option<usize> {
        self.0.get(index).map(|span| span.start as usize)
    }

    /// The token at a place, the last one beyond the end, with its place.
    #[inline]
    pub(crate) fn get<'s>(&self, index: usize, source: &'s str) -> (usize, Token<'s>) {
        let index = index.min(self.0.len().saturating_sub(1));
        let Some(Span { kind, start, end }) = self.0.get(index).copied() else {
            return (index, Token { kind: Kind::Eof, pos: 0, text: "" });
        };
        let text = source.get(start as usize..end as usize).unwrap_or_default();
        (index, Token { kind, pos: start as usize, text })
    }
}

/// The line of a byte, from 1.
pub(crate) fn line_at(source: &str, pos: usize) -> usize {
    let before = source.as_bytes().get(..pos).unwrap_or_default();
    memchr::memchr_iter(b'\n', before).count() + 1
}

struct Lexer<'s, 't> {
    source: &'s str,
    start: usize,
    pos: usize,
    parens: usize,
    tokens: &'t mut Vec<Span>,
}

type Lexed = Result<(), String>;

impl<'s> Lexer<'s, '_> {
    fn rest(&self) -> &'s str {
        self.source.get(self.pos..).unwrap_or_default()
    }

    fn bytes(&self) -> &'s [u8] {
        self.source.as_bytes().get(self.pos..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        match self.bytes().first() {
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            _ => self.rest().chars().next(),
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        Some(c)
    }

    fn accept(&mut self, set: &str) -> bool {
        let found = self.peek().is_some_and(|c| set.contains(c));
        if found {
            self.pos += 1;
        }
        found
    }

    fn accept_run(&mut self, set: &str) {
        while self.accept(set) {}
    }

    fn emit(&mut self, kind: Kind) {
        let short = |pos| u32::try_from(pos).unwrap_or(u32::MAX);
        self.tokens.push(Span { kind, start: short(self.start), end: short(self.pos) });
        self.start = self.pos;
    }

    // --- text and delimiters ---

    fn text(&mut self) -> Lexed {
        let find = memmem::Finder::new(LEFT);
        while let Some(offset) = find.find(self.bytes()) {
            let text = self.rest().get(..offset).unwrap_or_default();
            let after = self.rest().get(offset + LEFT.len()..).unwrap_or_default();
            let kept = if has_left_trim(after) { text.trim_end_matches(SPACES) } else { text };
            let open = self.pos + offset;
            self.pos += kept.len();
            if !kept.is_empty() {
                self.emit(Kind::Text);
            }
            self.pos = open;
            self.start = open;
            self.left_delim()?;
        }
        self.pos = self.source.len();
        if self.pos > self.start {
            self.emit(Kind::Text);
        }
        Ok(())
    }

    fn left_delim(&mut self) -> Lexed {
        let open = self.pos;
        self.pos += LEFT.len();
        let marker = if has_left_trim(self.rest()) { 2 } else { 0 };
        if self.rest().get(marker..).is_some_and(|rest| rest.starts_with("/*")) {
            self.pos += marker;
            self.start = self.pos;
            return self.comment();
        }
        self.start = open;
        self.emit(Kind::LeftDelim);
        self.pos += marker;
        self.start = self.pos;
        self.parens = 0;
        self.action()
    }

    fn comment(&mut self) -> Lexed {
        let Some(end) = self.rest().find("*/") else {
            return Err("unclosed comment".to_owned());
        };
        self.pos += end + 2;
        match self.right_delim_ahead() {
            None => Err("comment ends before closing delimiter".to_owned()),
            Some(trim) => {
                self.skip_right_delim(trim);
                Ok(())
            }
        }
    }

    /// Whether the action ends here, and if so whether white space after it goes.
    fn right_delim_ahead(&self) -> Option<bool> {
        match self.bytes() {
            [b'}', b'}', ..] => Some(false),
            [b' ' | b'\t' | b'\r' | b'\n', b'-', b'}', b'}', ..] => Some(true),
            _ => None,
        }
    }

    fn skip_right_delim(&mut self, trim: bool) {
        self.pos += RIGHT.len() + if trim { 2 } else { 0 };
        if trim {
            let rest = self.rest();
            self.pos += rest.len() - rest.trim_start_matches(SPACES).len();
        }
        self.start = self.pos;
    }

    fn right_delim(&mut self, trim: bool) {
        if trim {
            self.pos += 2;
            self.start = self.pos;
        }
        self.pos += RIGHT.len();
        self.emit(Kind::RightDelim);
        if trim {
            let rest = self.rest();
            self.pos += rest.len() - rest.trim_start_matches(SPACES).len();
            self.start = self.pos;
        }
    }

    // --- inside an action ---

    fn action(&mut self) -> Lexed {
        loop {
            if self.usual_item() {
                continue;
            }
            if let Some(trim) = self.right_delim_ahead() {
                if self.parens > 0 {
                    return Err("unclosed left paren".to_owned());
                }
                self.right_delim(trim);
                return Ok(());
            }
            let Some(c) = self.next() else {
                return Err("unclosed action".to_owned());
            };
            self.item(c)?;
        }
    }

    /// Reads one of the items most actions are made of, if that comes next: the others are read with more care.
    fn usual_item(&mut self) -> bool {
        let (kind, len) = match self.bytes() {
            [b' ', next, ..] if !matches!(next, b' ' | b'\t' | b'\r' | b'\n' | b'-') => {
                (Kind::Space, Some(1))
            }
            [b'|', ..] => (Kind::Pipe, Some(1)),
            [b'.', rest @ ..] if !rest.first().is_some_and(u8::is_ascii_digit) => match plain_word(rest) {
                Some(0) => (Kind::Dot, Some(1)),
                len => (Kind::Field, len.map(|len| len + 1)),
            },
            [b'$', rest @ ..] => (Kind::Variable, plain_word(rest).map(|len| len + 1)),
            [b'"', rest @ ..] => (Kind::Str, plain_text(rest)),
            bytes @ [b'a'..=b'z' | b'A'..=b'Z' | b'_', ..] => (Kind::Identifier, plain_word(bytes)),
            _ => return false,
        };
        let Some(len) = len else { return false };
        self.pos += len;
        match kind {
            Kind::Identifier => {
                let word = self.source.get(self.start..self.pos).unwrap_or_default();
                self.emit(keyword(word));
            }
            kind => self.emit(kind),
        }
        true
    }

    fn item(&mut self, c: char) -> Lexed {
        match c {
            c if SPACES.contains(&c) => self.space(),
            '=' => self.emit(Kind::Assign),
            ':' if self.accept("=") => self.emit(Kind::Declare),
            ':' => return Err("expected :=".to_owned()),
            '|' => self.emit(Kind::Pipe),
            '"' => return self.quoted('"', Kind::Str, "unterminated quoted string"),
            '\'' => {
                return self.quoted('\'', Kind::CharConstant, "unterminated character constant");
            }
            '`' => return self.raw_string(),
            '$' => return self.name(Kind::Variable),
            '.' if !self.peek().is_some_and(|c| c.is_ascii_digit()) => {
                return self.name(Kind::Field);
            }
            '.' | '+' | '-' | '0'..='9' => return self.number(c),
            c if is_alphanumeric(c) => return self.identifier(),
            '(' => {
                self.parens += 1;
                self.emit(Kind::LeftParen);
            }
            ')' => return self.right_paren(),
            ' '..='~' => self.emit(Kind::Char),
            c => return Err(format!("unrecognized character in action: {}", unicode(c))),
        }
        Ok(())
    }

    fn right_paren(&mut self) -> Lexed {
        let Some(parens) = self.parens.checked_sub(1) else {
            return Err("unexpected right paren".to_owned());
        };
        self.parens = parens;
        self.emit(Kind::RightParen);
        Ok(())
    }

    /// A run of spaces, but for the last one where that belongs to ` -}}`.
    fn space(&mut self) {
        while self.right_delim_ahead().is_none() && self.peek().is_some_and(|c| SPACES.contains(&c)) {
            self.pos += 1;
        }
        self.emit(Kind::Space);
    }

    fn quoted(&mut self, mark: char, kind: Kind, unterminated: &str) -> Lexed {
        loop {
            match self.next() {
                Some('\\') => match self.next() {
                    None | Some('\n') => return Err(unterminated.to_owned()),
                    Some(_) => {}
                },
                None | Some('\n') => return Err(unterminated.to_owned()),
                Some(c) if c == mark => break,
                Some(_) => {}
            }
        }
        self.emit(kind);
        Ok(())
    }

    fn raw_string(&mut self) -> Lexed {
        match self.rest().find('`') {
            Some(end) => {
                self.pos += end + 1;
                self.emit(Kind::RawStr);
                Ok(())
            }
            None => {
                self.pos = self.source.len();
                Err("unterminated raw quoted string".to_owned())
            }
        }
    }

    /// `.field` or `$variable`; the mark alone is the dot or the root.
    fn name(&mut self, kind: Kind) -> Lexed {
        if self.at_terminator() {
            self.emit(if kind == Kind::Field { Kind::Dot } else { Kind::Variable });
            return Ok(());
        }
        self.word()?;
        self.emit(kind);
        Ok(())
    }

    fn identifier(&mut self) -> Lexed {
        self.word()?;
        let word = self.source.get(self.start..self.pos).unwrap_or_default();
        self.emit(keyword(word));
        Ok(())
    }

    fn word(&mut self) -> Lexed {
        loop {
            let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            let bytes = self.bytes();
            self.pos += bytes.iter().position(|byte| !is_plain(byte)).unwrap_or(bytes.len());
            if !self.peek().is_some_and(is_alphanumeric) {
                break;
            }
            self.next();
        }
        if self.at_terminator() {
            return Ok(());
        }
        let c = self.peek().unwrap_or_default();
        Err(format!("bad character {}", unicode(c)))
    }

    fn at_terminator(&self) -> bool {
        match self.peek() {
            None | Some(' ' | '\t' | '\r' | '\n' | '.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(_) => self.rest().starts_with(RIGHT),
        }
    }

    fn number(&mut self, first: char) -> Lexed {
        self.pos -= first.len_utf8();
        let mut ok = self.scan_number();
        let mut kind = Kind::Number;
        if ok && self.peek().is_some_and(|c| c == '+' || c == '-') {
            ok = self.scan_number() && self.source.get(..self.pos).is_some_and(|s| s.ends_with('i'));
            kind = Kind::Complex;
        }
        if !ok {
            let text = self.source.get(self.start..self.pos).unwrap_or_default();
            return Err(format!("bad number syntax: {}", crate::quote::quote(text.as_bytes())));
        }
        self.emit(kind);
        Ok(())
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
        let mut digits = "0123456789_";
        if self.accept("0") {
            if self.accept("xX") {
                digits = "0123456789abcdefABCDEF_";
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        let exponent = match digits.len() {
            11 => "eE",
            23 => "pP",
            _ => "",
        };
        if self.accept(exponent) {
            self.accept("+-");
            self.accept_run("0123456789_");
        }
        self.accept("i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.next();
            return false;
        }
        true
    }
}

/// Which bytes are ASCII letters, digits and `_`.
const IS_WORD: [bool; 256] = {
    let mut is_word = [false; 256];
    let mut byte: u8 = 0;
    while byte < 0x80 {
        is_word[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'_';
        byte += 1;
    }
    is_word
};

/// Bytes of the word that starts here, when all of it is ASCII and something ends it that may.
fn plain_word(bytes: &[u8]) -> Option<usize> {
    let len = bytes.iter().position(|byte| !IS_WORD[usize::from(*byte)])?;
    match bytes.get(len..)? {
        [b' ' | b'\t' | b'\r' | b'\n' | b'.' | b',' | b'|' | b':' | b')' | b'(', ..] => Some(len),
        [b'}', b'}', ..] => Some(len),
        _ => None,
    }
}

/// Bytes of a quoted text with both quotes, of which the first was read, when nothing in it is escaped.
fn plain_text(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'\n'))?;
    (bytes.get(end) == Some(&b'"')).then_some(end + 2)
}

fn has_left_trim(after: &str) -> bool {
    after.strip_prefix('-').is_some_and(|rest| rest.starts_with(SPACES))
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn keyword(word: &str) -> Kind {
    match word {
        "block" => Kind::Block,
        "break" => Kind::Break,
        "continue" => Kind::Continue,
        "define" => Kind::Define,
        "else" => Kind::Else,
        "end" => Kind::End,
        "if" => Kind::If,
        "range" => Kind::Range,
        "nil" => Kind::Nil,
        "template" => Kind::Template,
        "with" => Kind::With,
        "true" | "false" => Kind::Bool,
        _ => Kind::Identifier,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(source: &str) -> String {
        let mut tokens = Tokens::default();
        let mistake = tokens.read(source);
        let parts = (0..tokens.0.len()).map(|index| {
            let t = tokens.get(index, source).1;
            let line = line_at(source, t.pos);
            match (t.kind, &mistake) {
                (Kind::Error, Some(message)) => format!("{line}:{}:!{message}", t.pos),
                _ => format!("{line}:{}:{:?}={:?}", t.pos, t.kind, t.text),
            }
        });
        parts.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn tokens_have_kind_line_and_offset() {
        let source = "a\n {{- /* c */ -}}\n b {{ $x := .a.b | f \"q\" 1.5 'c' -}}\n{{(.)}}";
        insta::assert_snapshot!(shape(source));
    }

    #[test]
    fn mistakes_end_the_tokens() {
        let sources = [
            "{{ \"a",
            "{{ `a",
            "{{ 'a",
            "{{ 1x }}",
            "{{ ) }}",
            "{{ (1 }}",
            "{{ $x=1 }}",
            "{{ :x }}",
            "{{ é\u{7}",
            "{{/* a",
            "{{/* a */ }}",
            "a {{ .x",
            "{{ 1+2 }}",
            "{{ \"\\",
        ];
        let shapes: Vec<_> = sources.iter().map(|s| format!("{s:?}\n{}", shape(s))).collect();
        insta::assert_snapshot!(shapes.join("\n\n"));
    }
}
