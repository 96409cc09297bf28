//! Go's regular expressions on the `regex` crate: a pattern is read by RE2's rules and written again
//! in the crate's.
//!
//! Both match alike, leftmost-first; what differs is the notation: `\d \w \s \b` are ASCII in Go, a
//! class has no operators, `\Q…\E` quotes, `\<` is a character, counts end at 1,000. One deviation
//! is left: `\B` knows letters beyond ASCII.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::{Regex, RegexBuilder};

mod class;
mod escape;

/// Bytes a compiled pattern may take where the caller knows no better: the default of
/// [`crate::Limits::regex`].
pub const SIZE_LIMIT: usize = 10 << 20;

/// The count at which RE2 refuses a repetition.
const MAX_COUNT: u32 = 1_000;

/// Compiled patterns that are kept; beyond that the cache starts anew.
const CACHED: usize = 500;

static CACHE: LazyLock<Mutex<HashMap<String, Regex>>> = LazyLock::new(Mutex::default);

/// A pattern that cannot be compiled; the texts of the first kind are Go's.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// Not a pattern of RE2: what is wrong, and the part that is.
    #[error("error parsing regexp: {0}: `{1}`")]
    Syntax(&'static str, String),
    /// Larger than the limit, in bytes.
    #[error("compiled regular expression is larger than {0} bytes (limit regex)")]
    TooLarge(usize),
    /// The crate refuses what RE2 takes.
    #[error("regular expression is not supported")]
    Unsupported(#[source] Box<regex::Error>),
}

/// The compiled pattern, with the default [`SIZE_LIMIT`].
///
/// # Errors
/// When the pattern is not RE2's, or too large.
pub fn translate(pattern: &str) -> Result<Regex, Error> {
    compile(pattern, SIZE_LIMIT)
}

/// The compiled pattern of at most so many bytes. Patterns that were compiled before are not
/// compiled again.
///
/// # Errors
/// When the pattern is not RE2's, or too large.
pub fn compile(pattern: &str, size_limit: usize) -> Result<Regex, Error> {
    let key = format!("{size_limit}:{pattern}");
    if let Some(regex) = lock().get(&key) {
        return Ok(regex.clone());
    }
    let regex =
        RegexBuilder::new(&rewrite(pattern)?).size_limit(size_limit).build().map_err(|err| match err {
            regex::Error::CompiledTooBig(_) => Error::TooLarge(size_limit),
            err => Error::Unsupported(Box::new(err)),
        })?;
    let mut cache = lock();
    if cache.len() >= CACHED {
        cache.clear();
    }
    cache.insert(key, regex.clone());
    Ok(regex)
}

fn lock() -> std::sync::MutexGuard<'static, HashMap<String, Regex>> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pattern in the crate's notation.
pub(crate) fn rewrite(pattern: &str) -> Result<String, Error> {
    let mut writer = Writer { pattern, rest: pattern, out: String::new(), open: 0, last: Last::Nothing };
    while let Some(c) = writer.rest.chars().next() {
        writer.one(c)?;
    }
    if writer.open > 0 {
        return Err(syntax("missing closing )", pattern));
    }
    Ok(writer.out)
}

fn syntax(problem: &'static str, part: &str) -> Error {
    Error::Syntax(problem, part.to_owned())
}

/// What stands before the place that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// Nothing that could be repeated.
    Nothing,
    Item,
    /// A repetition, and how many bytes of the pattern it starts before its end.
    Repeat(usize),
}

struct Writer<'p> {
    pattern: &'p str,
    rest: &'p str,
    out: String,
    open: usize,
    last: Last,
}

impl<'p> Writer<'p> {
    fn one(&mut self, c: char) -> Result<(), Error> {
        match c {
            '\\' => self.escape(),
            '[' => {
                let (class, rest) = class::rewrite(self.rest)?;
                self.item(&class, rest);
                Ok(())
            }
            '(' => self.group(),
            ')' => self.close(),
            '|' => {
                self.copy(1, Last::Nothing);
                Ok(())
            }
            '*' | '+' | '?' => self.repeat(1),
            '{' => match counted(self.rest) {
                Some(len) => self.repeat(len),
                None => {
                    self.literal(c);
                    Ok(())
                }
            },
            '.' | '^' | '$' => {
                self.copy(1, Last::Item);
                Ok(())
            }
            _ => {
                self.literal(c);
                Ok(())
            }
        }
    }

    fn skip(&mut self, len: usize) -> &'p str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        taken
    }

    fn copy(&mut self, len: usize, last: Last) {
        let taken = self.skip(len);
        self.out.push_str(taken);
        self.last = last;
    }

    fn literal(&mut self, c: char) {
        self.out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
        self.skip(c.len_utf8());
        self.last = Last::Item;
    }

    fn item(&mut self, text: &str, rest: &'p str) {
        self.out.push_str(text);
        self.rest = rest;
        self.last = Last::Item;
    }

    fn escape(&mut self) -> Result<(), Error> {
        if let Some(quoted) = self.rest.strip_prefix("\\Q") {
            let (text, rest) = quoted.split_once("\\E").unwrap_or((quoted, ""));
            self.out.push_str(&regex::escape(text));
            self.rest = rest;
            if !text.is_empty() {
                self.last = Last::Item;
            }
            return Ok(());
        }
        let (text, rest) = escape::rewrite(self.rest)?;
        self.item(&text, rest);
        Ok(())
    }

    fn group(&mut self) -> Result<(), Error> {
        self.open += 1;
        if !self.rest.starts_with("(?") {
            self.copy(1, Last::Nothing);
            return Ok(());
        }
        if self.rest.starts_with("(?P<") || self.rest.starts_with("(?<") {
            return self.named();
        }
        let Some(end) = self.rest.find([':', ')']) else {
            return Err(syntax("invalid or unsupported Perl syntax", flag_fault(self.rest)));
        };
        let flags = self.rest.get(2..end).unwrap_or_default();
        let through = self.rest.get(..=end).unwrap_or_default();
        if !are_flags(flags) {
            return Err(syntax("invalid or unsupported Perl syntax", flag_fault(through)));
        }
        if through.ends_with(')') {
            self.open -= 1;
            // Flags alone change what follows and cannot be repeated.
            if flags.is_empty() {
                return Err(syntax("missing argument to repetition operator", "?"));
            }
        }
        self.copy(end + 1, Last::Nothing);
        Ok(())
    }

    fn named(&mut self) -> Result<(), Error> {
        let start = self.rest.find('<').map_or(0, |at| at + 1);
        let Some(end) = self.rest.find('>') else {
            return Err(syntax("invalid named capture", self.rest));
        };
        let name = self.rest.get(start..end).unwrap_or_default();
        let fits = !name.is_empty() && name.chars().all(|c| c == '_' || c.is_alphanumeric());
        if !fits {
            let through = self.rest.get(..=end).unwrap_or_default();
            return Err(syntax("invalid named capture", through));
        }
        let group = format!("(?P<{name}>");
        // Go takes a name twice and means the first group that took part; the crate takes it once.
        self.out.push_str(if self.out.contains(&group) { "(" } else { &group });
        self.skip(end + 1);
        self.last = Last::Nothing;
        Ok(())
    }

    fn close(&mut self) -> Result<(), Error> {
        if self.open == 0 {
            return Err(syntax("unexpected )", self.pattern));
        }
        self.open -= 1;
        self.copy(1, Last::Item);
        Ok(())
    }

    fn repeat(&mut self, len: usize) -> Result<(), Error> {
        let lazy = usize::from(self.rest.get(len..).is_some_and(|rest| rest.starts_with('?')));
        let operator = self.rest.get(..len + lazy).unwrap_or_default();
        match self.last {
            Last::Nothing => {
                return Err(syntax("missing argument to repetition operator", operator));
            }
            Last::Repeat(before) => {
                let end = self.pattern.len() - self.rest.len() + operator.len();
                let start = end - operator.len() - before;
                let both = self.pattern.get(start..end).unwrap_or(operator);
                return Err(syntax("invalid nested repetition operator", both));
            }
            Last::Item => {}
        }
        if !count_fits(operator) {
            let count = self.rest.get(..len).unwrap_or_default();
            return Err(syntax("invalid repeat count", count));
        }
        self.copy(len + lazy, Last::Repeat(operator.len()));
        Ok(())
    }
}

/// Bytes of `{2}`, `{2,}` or `{2,3}` at the start; anything else is text.
fn counted(text: &str) -> Option<usize> {
    let body = text.get(1..text.find('}')?)?;
    let (min, max) = body.split_once(',').unwrap_or((body, ""));
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    // Go reads no number with a zero in front.
    let plain = |text: &str| text.len() < 2 || !text.starts_with('0');
    let fits = !min.is_empty() && number(min) && number(max) && plain(min) && plain(max);
    fits.then_some(body.len() + 2)
}

fn count_fits(operator: &str) -> bool {
    let Some(body) = operator.strip_prefix('{') else {
        return true;
    };
    let body = body.trim_end_matches(['?', '}']);
    let (min, max) = body.split_once(',').unwrap_or((body, body));
    let Ok(min) = min.parse::<u32>() else {
        return false;
    };
    let max = if max.is_empty() { Ok(min) } else { max.parse() };
    max.is_ok_and(|max: u32| min <= max && max <= MAX_COUNT)
}

/// `i`, `m`, `s` and `U`, and the same behind one minus.
fn are_flags(flags: &str) -> bool {
    let (on, off) = flags.split_once('-').unwrap_or((flags, "i"));
    let known = |flags: &str| flags.chars().all(|c| matches!(c, 'i' | 'm' | 's' | 'U'));
    known(on) && known(off) && !off.is_empty()
}

/// The flags up to the one that is unknown.
fn flag_fault(group: &str) -> &str {
    let after = group.get(2..).unwrap_or_default();
    let fault = after.find(|c| !matches!(c, 'i' | 'm' | 's' | 'U' | '-'));
    let fault = fault.and_then(|at| Some((at, after.get(at..)?.chars().next()?)));
    fault.and_then(|(at, c)| group.get(..2 + at + c.len_utf8())).unwrap_or(group)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

    use super::*;

    #[test]
    fn patterns_match_what_go_matches() {
        let cases: &[(&str, &str, Option<&str>)] = &[
            (r"\d+", "x٣12", Some("12")),
            (r"\w+", "éab", Some("ab")),
            (r"\s", "\u{b}x y", Some(" ")),
            (r"\bb", "éb", Some("b")),
            (r"\Qa.b\E+", "aab a.bb", Some("a.bb")),
            (r"a{,2}", "aa a{,2}", Some("a{,2}")),
            (r"x{", "ax{", Some("x{")),
            (r"[[a]+", "b[a", Some("[a")),
            (r"[a&&b]+", "&b", Some("&b")),
            (r"[a--b]+", "a-", None),
            (r"[]a]+", "x]a", Some("]a")),
            (r"[^\d\s]+", "1 ab", Some("ab")),
            (r"[\D]", "1a", Some("a")),
            (r"\<b", "a<b", Some("<b")),
            (r"[[:alpha:]_-]+", "1a_-b", Some("a_-b")),
            (r"\x41\x{42}\103", "ABC", Some("ABC")),
            (r"(?i)ab(?-i)C", "AbC", Some("AbC")),
            (r"\p{^Greek}", "αb", Some("b")),
            (r"(?s).+", "a\nb", Some("a\nb")),
            (r"a$", "a\n", None),
        ];
        for (pattern, text, found) in cases {
            match translate(pattern) {
                Ok(regex) => assert_eq!(regex.find(text).map(|m| m.as_str()), *found, "{pattern}"),
                Err(err) => assert!(found.is_none(), "{pattern}: {err}"),
            }
        }
    }

    #[test]
    fn errors_are_gos() {
        let cases = [
            ("[a", "missing closing ]: `[a`"),
            ("(a", "missing closing ): `(a`"),
            ("a)", "unexpected ): `a)`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a++", "invalid nested repetition operator: `++`"),
            ("a*?+", "invalid nested repetition operator: `*?+`"),
            ("x{1001}", "invalid repeat count: `{1001}`"),
            ("x{2,1}", "invalid repeat count: `{2,1}`"),
            (r"\y", r"invalid escape sequence: `\y`"),
            (r"\8", r"invalid escape sequence: `\8`"),
            (r"(a)\1", r"invalid escape sequence: `\1`"),
            ("a\\", "trailing backslash at end of expression: ``"),
            ("[b-a]", "invalid character class range: `b-a`"),
            ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            (r"\pX", r"invalid character class range: `\pX`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
        ];
        for (pattern, text) in cases {
            let err = translate(pattern).unwrap_err().to_string();
            assert_eq!(err, format!("error parsing regexp: {text}"), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_that_grows_too_large_is_refused() {
        let pattern = "(((a{100}){100}){100})";
        assert!(matches!(compile(pattern, 1 << 20), Err(Error::TooLarge(_) | Error::Syntax(..))));
    }
}
