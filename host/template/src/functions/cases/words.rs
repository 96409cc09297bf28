//! Words within a text: `http_server` is `HttpServer`, and back.

use super::{lower, upper};

/// A run of characters of one sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// There is none: the end of the text.
    None,
    Number,
    /// Starts with a capital, goes on in capitals or in lower case.
    Capital,
    Lower,
    /// Spaces, `-` and `_`.
    Connector,
    Punctuation,
    Other,
}

/// The text with a capital at the start of each word and without connectors between them.
///
/// Capitals at the start of the text are all kept or all but the first lowered, as `HTTPServer`
/// shows; connectors at the start and doubled ones stay.
pub(super) fn pascal(text: &str) -> String {
    let mut chars = text.chars().peekable();
    let mut out = String::with_capacity(text.len());
    while let Some(c) = chars.next_if(|c| is_connector(*c)) {
        out.push(c);
    }
    let Some(first) = chars.next() else {
        // A text of nothing but connectors ends with one more.
        out.extend(text.chars().next_back());
        return out;
    };
    let mut in_capitals = first.is_uppercase();
    let mut pending = upper(first);
    for c in chars {
        let before = std::mem::replace(&mut pending, c);
        match (is_connector(before), is_connector(c)) {
            (true, true) => out.push(before),
            (true, false) => {
                in_capitals = c.is_uppercase();
                pending = upper(c);
            }
            (false, _) => {
                if in_capitals && c.is_uppercase() {
                    pending = lower(c);
                } else {
                    in_capitals = false;
                }
                out.push(before);
            }
        }
    }
    out.push(pending);
    out
}

/// The words in lower case with a connector between them.
///
/// A number belongs to the letters behind it, unless the text ends there.
pub(super) fn joined(text: &str, connector: char) -> String {
    let mut words = Words { rest: text };
    let mut out = String::with_capacity(text.len() + 8);
    let mut current = words.next_word();
    while !words.rest.is_empty() {
        let before = current;
        push(&mut out, before, connector);
        current = words.next_word();
        match before.0 {
            Sort::Number => current = words.lower_run(&mut out, current, connector),
            Sort::Connector | Sort::Punctuation => continue,
            _ => {
                if current.0 == Sort::Number {
                    if words.rest.is_empty() {
                        break;
                    }
                    let number = std::mem::replace(&mut current, words.next_word());
                    if current.0 == Sort::Lower {
                        out.push(connector);
                        push(&mut out, number, connector);
                        current = words.lower_run(&mut out, current, connector);
                    } else {
                        push(&mut out, number, connector);
                    }
                }
            }
        }
        if starts_word(current.0) {
            out.push(connector);
        }
    }
    push(&mut out, current, connector);
    out
}

fn starts_word(sort: Sort) -> bool {
    !matches!(sort, Sort::None | Sort::Connector | Sort::Punctuation)
}

fn push(out: &mut String, (sort, word): (Sort, &str), connector: char) {
    match sort {
        Sort::Connector => out.extend(word.chars().map(|_| connector)),
        Sort::Capital => out.extend(word.chars().map(lower)),
        _ => out.push_str(word),
    }
}

fn is_connector(c: char) -> bool {
    matches!(c, '-' | '_') || c.is_whitespace()
}

/// Takes a text apart into runs.
struct Words<'t> {
    rest: &'t str,
}

impl<'t> Words<'t> {
    fn next_word(&mut self) -> (Sort, &'t str) {
        let mut chars = self.rest.chars();
        let Some(first) = chars.next() else {
            return (Sort::None, "");
        };
        let sort = sort_of(first);
        let len = match sort {
            Sort::Capital => capital_len(self.rest),
            sort => run_len(self.rest, |c| sort_of(c) == sort),
        };
        let (word, rest) = self.rest.split_at(len);
        self.rest = rest;
        (sort, word)
    }

    /// Writes words of lower case and numbers as one, and returns what follows.
    fn lower_run(
        &mut self,
        out: &mut String,
        mut current: (Sort, &'t str),
        connector: char,
    ) -> (Sort, &'t str) {
        while matches!(current.0, Sort::Lower | Sort::Number) {
            push(out, current, connector);
            current = self.next_word();
        }
        current
    }
}

fn run_len(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

/// A capital with the lower case behind it, or capitals up to the last one before lower case.
fn capital_len(text: &str) -> usize {
    let capitals = run_len(text, char::is_uppercase);
    let after = text.get(capitals..).unwrap_or_default();
    let lower = run_len(after, |c| sort_of(c) == Sort::Lower);
    let single = text.chars().next().map_or(0, char::len_utf8);
    match (capitals == single, lower) {
        (true, lower) => capitals + lower,
        (false, 0) => capitals,
        (false, _) => {
            let last = text.get(..capitals).and_then(|text| text.chars().next_back());
            capitals - last.map_or(0, char::len_utf8)
        }
    }
}

fn sort_of(c: char) -> Sort {
    if is_connector(c) {
        Sort::Connector
    } else if c.is_ascii_punctuation() && !matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~')
        || matches!(c, '\u{a1}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{3001}'..='\u{3003}')
    {
        Sort::Punctuation
    } else if c.is_uppercase() {
        Sort::Capital
    } else if c.is_alphabetic() && !is_ideograph(c) {
        Sort::Lower
    } else if c.is_numeric() {
        Sort::Number
    } else {
        Sort::Other
    }
}

/// Chinese, Japanese and Korean letters make no words that could be joined.
fn is_ideograph(c: char) -> bool {
    matches!(
        c,
        '\u{3400}'..='\u{4d85}' | '\u{4e00}'..='\u{9fcc}' | '\u{20000}'..='\u{2b81d}'
    )
}
