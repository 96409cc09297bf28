//! `.Files`: the files of a chart that are no templates, as templates read them.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use pintle_template::{
    function::{Ctx, FnError, Param, Signature},
    value::{
        GoObject, MapType, Value, as_text, bytes_value, object::Shape, object_value, string_list,
        string_value, typed_map,
    },
    yaml,
};

use crate::chart::Chart;

/// `engine.files`: content by path. Few charts ask, so the paths are sorted when one does.
#[derive(Clone, Debug)]
pub(crate) struct FilesObject {
    chart: Arc<Chart>,
    known: OnceLock<BTreeMap<String, Bytes>>,
}

impl FilesObject {
    pub(crate) fn value(chart: &Arc<Chart>) -> Value {
        object_value(Self { chart: Arc::clone(chart), known: OnceLock::new() })
    }

    fn known(&self) -> &BTreeMap<String, Bytes> {
        let all = || self.chart.files.iter().map(|file| (file.path.clone(), file.data.clone())).collect();
        self.known.get_or_init(all)
    }

    fn bytes(&self, path: &str) -> &[u8] {
        self.known().get(path).map(|data| &**data).unwrap_or_default()
    }

    fn glob(&self, pattern: &str) -> Self {
        // Helm takes every file where the pattern is none.
        let glob = Glob::parse(pattern);
        let fits = |path: &str| glob.as_ref().is_none_or(|glob| glob.fits(path));
        let fitting = self.known().iter().filter(|(path, _)| fits(path));
        let known = fitting.map(|(path, data)| (path.clone(), data.clone())).collect::<BTreeMap<_, _>>();
        Self { chart: Arc::clone(&self.chart), known: known.into() }
    }

    /// A mapping in YAML from base names to what `show` makes of the content.
    fn as_yaml(&self, show: impl Fn(&[u8]) -> Value) -> Value {
        let base = |path: &str| Arc::from(path.rsplit('/').next().unwrap_or(path));
        let entries = self.known().iter().map(|(path, data)| (base(path), show(data))).collect();
        let text = yaml::emit(&typed_map(entries, MapType::Strings)).unwrap_or_default();
        Value::from(text.trim_end_matches('\n'))
    }

    fn lines(&self, path: &str) -> Value {
        let text = String::from_utf8_lossy(self.bytes(path));
        if text.is_empty() {
            return string_list(Vec::<Value>::new());
        }
        string_list(text.strip_suffix('\n').unwrap_or(&text).split('\n'))
    }
}

impl GoObject for FilesObject {
    fn type_name(&self) -> &'static str {
        "engine.files"
    }

    fn shape(&self) -> Shape {
        Shape::Map
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.known().get(name).map(|data| bytes_value(&**data))
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Get" | "GetBytes" | "Glob" | "Lines" => Some(Signature::fixed(&[Param::String])),
            "AsConfig" | "AsSecrets" => Some(Signature::fixed(&[])),
            _ => None,
        }
    }

    fn call(&self, name: &str, _: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
        let argument = args.first().and_then(as_text).unwrap_or_default();
        Ok(match name {
            "Get" => string_value(self.bytes(&argument).to_vec()),
            "GetBytes" => bytes_value(self.bytes(&argument)),
            "Glob" => object_value(self.glob(&argument)),
            "Lines" => self.lines(&argument),
            "AsConfig" => self.as_yaml(|data| string_value(data.to_vec())),
            _ => self.as_yaml(|data| Value::from(BASE64_STANDARD.encode(data))),
        })
    }

    fn entries(&self) -> Vec<(Value, Value)> {
        let known = self.known().iter();
        known.map(|(path, data)| (Value::from(path.as_str()), bytes_value(&**data))).collect()
    }
}

/// A pattern of gobwas/glob with `/` as separator: `*` and `?` stop at it, `**` does not; `[ab]`, `[a-z]`,
/// `[!a]`, `{one,other}`, `\` takes the next character as it is.
#[derive(Debug)]
struct Glob(Vec<Token>);

#[derive(Debug)]
enum Token {
    /// Any text without `/`.
    Star,
    /// Any text.
    DoubleStar,
    /// One character but `/`.
    Any,
    One(char),
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
    Either(Vec<Vec<Token>>),
}

/// Alternatives inside alternatives; gobwas has no limit, a stack has.
const MAX_DEPTH: usize = 32;

impl Glob {
    fn parse(pattern: &str) -> Option<Self> {
        let chars: Vec<char> = pattern.chars().collect();
        let (tokens, at) = tokens(&chars, 0, 0)?;
        (at == chars.len()).then_some(Self(tokens))
    }

    fn fits(&self, path: &str) -> bool {
        let text: Vec<char> = path.chars().collect();
        let mut ends = vec![false; text.len() + 1];
        if let Some(start) = ends.first_mut() {
            *start = true;
        }
        advance(&self.0, &text, ends).last().copied().unwrap_or(false)
    }
}

/// The tokens from `at` up to the end, or up to the `,` or `}` of the alternatives around.
fn tokens(chars: &[char], mut at: usize, depth: usize) -> Option<(Vec<Token>, usize)> {
    let mut tokens = Vec::new();
    while let Some(next) = chars.get(at) {
        at += 1;
        tokens.push(match next {
            ',' | '}' if depth > 0 => return Some((tokens, at - 1)),
            '*' if chars.get(at) == Some(&'*') => {
                while chars.get(at) == Some(&'*') {
                    at += 1;
                }
                Token::DoubleStar
            }
            '*' => Token::Star,
            '?' => Token::Any,
            '\\' => {
                at += 1;
                Token::One(*chars.get(at - 1)?)
            }
            '[' => {
                let (class, end) = class(chars, at)?;
                at = end;
                class
            }
            '{' if depth < MAX_DEPTH => {
                let (either, end) = alternatives(chars, at, depth)?;
                at = end;
                either
            }
            '{' => return None,
            other => Token::One(*other),
        });
    }
    (depth == 0).then_some((tokens, at))
}

fn alternatives(chars: &[char], mut at: usize, depth: usize) -> Option<(Token, usize)> {
    let mut either = Vec::new();
    loop {
        let (one, end) = tokens(chars, at, depth + 1)?;
        either.push(one);
        at = end + 1;
        if chars.get(end) == Some(&'}') {
            return Some((Token::Either(either), at));
        }
    }
}

fn class(chars: &[char], mut at: usize) -> Option<(Token, usize)> {
    let negated = chars.get(at) == Some(&'!');
    at += usize::from(negated);
    let mut ranges = Vec::new();
    loop {
        let mut next = || {
            let escaped = chars.get(at) == Some(&'\\');
            at += 1 + usize::from(escaped);
            chars.get(at - 1).copied().map(|letter| (letter, escaped))
        };
        let (low, escaped) = next()?;
        if low == ']' && !escaped {
            return (!ranges.is_empty()).then_some((Token::Class { negated, ranges }, at));
        }
        let is_range = chars.get(at) == Some(&'-') && chars.get(at + 1).is_some_and(|end| *end != ']');
        if is_range {
            at += 1;
            let escaped = chars.get(at) == Some(&'\\');
            at += 1 + usize::from(escaped);
            ranges.push((low, *chars.get(at - 1)?));
        } else {
            ranges.push((low, low));
        }
    }
}

/// Where a match can end, for each place it can start: one pass per token, so no pattern blows up.
fn advance(tokens: &[Token], text: &[char], starts: Vec<bool>) -> Vec<bool> {
    tokens.iter().fold(starts, |starts, token| match token {
        Token::Star => spread(&starts, text, |letter| letter != '/'),
        Token::DoubleStar => spread(&starts, text, |_| true),
        Token::Any => shift(&starts, text, |letter| letter != '/'),
        Token::One(one) => shift(&starts, text, |letter| letter == *one),
        Token::Class { negated, ranges } => shift(&starts, text, |letter| {
            ranges.iter().any(|(low, high)| (*low..=*high).contains(&letter)) != *negated
        }),
        Token::Either(either) => either.iter().fold(vec![false; starts.len()], |ends, tokens| {
            let more = advance(tokens, text, starts.clone());
            ends.into_iter().zip(more).map(|(one, other)| one || other).collect()
        }),
    })
}

fn shift(starts: &[bool], text: &[char], takes: impl Fn(char) -> bool) -> Vec<bool> {
    let stepped = starts.iter().zip(text).map(|(start, letter)| *start && takes(*letter));
    std::iter::once(false).chain(stepped).collect()
}

fn spread(starts: &[bool], text: &[char], takes: impl Fn(char) -> bool) -> Vec<bool> {
    let mut open = false;
    let letters = std::iter::once(None).chain(text.iter().map(|letter| Some(*letter)));
    let reach = starts.iter().zip(letters).map(|(start, before)| {
        open = *start || (open && before.is_some_and(&takes));
        open
    });
    reach.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn patterns_fit_as_in_gobwas() {
        for (pattern, path, fits) in [
            ("*.yaml", "a.yaml", true),
            ("*.yaml", "d/a.yaml", false),
            ("**.yaml", "d/e/a.yaml", true),
            ("d/**", "d/e/a", true),
            ("d/*", "d/e/a", false),
            ("conf/?.txt", "conf/a.txt", true),
            ("conf/?.txt", "conf/ab.txt", false),
            ("{a,b/*}.t", "b/x.t", true),
            ("{a,b/*}.t", "c.t", false),
            ("{a,{b,c}d}", "cd", true),
            ("[ab].t", "b.t", true),
            ("[!ab].t", "b.t", false),
            ("[a-c]*", "cat", true),
            ("\\*.t", "*.t", true),
            ("\\*.t", "a.t", false),
            ("", "", true),
            ("a", "", false),
        ] {
            assert_eq!(Glob::parse(pattern).unwrap().fits(path), fits, "{path} by {pattern}");
        }
        for pattern in ["[a", "{a", "a\\", "[]"] {
            assert!(Glob::parse(pattern).is_none(), "{pattern}");
        }
        assert!(Glob::parse(&"{".repeat(1000)).is_none());
    }

    #[test]
    fn a_pattern_that_is_none_takes_all_files() {
        let known = BTreeMap::from([("a".to_owned(), Bytes::from_static(b"x"))]);
        let files = FilesObject { chart: Arc::default(), known: known.into() };
        assert_eq!(files.glob("[a").known().len(), 1);
        assert_eq!(files.glob("b").known().len(), 0);
    }
}
