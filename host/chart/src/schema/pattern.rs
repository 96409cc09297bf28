//! Patterns of schemas, of the few constructs that all kinds of regular expressions agree on.
//!
//! To compile one of them for a general engine takes longer than most charts take to render, and what is matched is
//! a word. A pattern or a text beyond the subset has no answer here.

/// Tries of one match; beyond that there is no answer.
const MAX_STEPS: u32 = 2_000;
/// Groups inside each other.
const MAX_DEPTH: usize = 20;
/// A count in braces that is read.
const MAX_COUNT: u32 = 1_000;

/// A pattern that was understood.
#[derive(Debug)]
pub(super) struct Pattern(Choice);

/// Sequences, of which one must match.
type Choice = Vec<Vec<Repeat>>;

/// So many of a piece, one after the other.
#[derive(Debug)]
struct Repeat {
    piece: Piece,
    min: u32,
    max: u32,
}

#[derive(Debug)]
enum Piece {
    Start,
    End,
    /// The ASCII characters that match, a bit each.
    One(u128),
    Group(Choice),
}

/// What is left of a pattern while it is read.
struct Reader<'p> {
    rest: &'p [u8],
    depth: usize,
}

/// A match that is tried.
struct Match<'t> {
    text: &'t [u8],
    left: u32,
}

// === impl Pattern ===

impl Pattern {
    /// The pattern, if it is in the subset, and so valid for each engine.
    pub(super) fn parse(pattern: &str) -> Option<Self> {
        let mut reader = Reader { rest: pattern.as_bytes(), depth: 0 };
        let choice = reader.choice()?;
        reader.rest.is_empty().then_some(Self(choice))
    }

    /// Whether it is found in a text; `None` for texts of more than printable ASCII, about which engines differ,
    /// and where that takes long.
    pub(super) fn is_in(&self, text: &str) -> Option<bool> {
        let text = text.as_bytes();
        if !text.iter().all(|byte| matches!(byte, b' '..=b'~')) {
            return None;
        }
        let mut tried = Match { text, left: MAX_STEPS };
        for start in 0..=text.len() {
            if tried.choice(&self.0, start, &mut |_, _| Some(true))? {
                return Some(true);
            }
        }
        Some(false)
    }
}

// === impl Reader ===

impl Reader<'_> {
    fn take(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.rest.first() == Some(&byte);
        if found {
            self.take();
        }
        found
    }

    fn choice(&mut self) -> Option<Choice> {
        let mut choice = vec![self.sequence()?];
        while self.accept(b'|') {
            choice.push(self.sequence()?);
        }
        Some(choice)
    }

    fn sequence(&mut self) -> Option<Vec<Repeat>> {
        let mut sequence = Vec::new();
        while !matches!(self.rest.first(), None | Some(b'|' | b')')) {
            let piece = self.piece()?;
            let is_anchor = matches!(piece, Piece::Start | Piece::End);
            let (min, max) = if is_anchor { (1, 1) } else { self.count()? };
            sequence.push(Repeat { piece, min, max });
        }
        Some(sequence)
    }

    fn piece(&mut self) -> Option<Piece> {
        Some(match self.take()? {
            b'^' => Piece::Start,
            b'$' => Piece::End,
            b'.' => Piece::One(!0),
            b'[' => Piece::One(self.class()?),
            b'\\' => Piece::One(escaped(self.take()?)?),
            b'(' => {
                self.depth += 1;
                // Other groups are more than groups.
                if self.accept(b'?') && !self.accept(b':') {
                    return None;
                }
                let choice = (self.depth < MAX_DEPTH).then(|| self.choice())??;
                self.depth -= 1;
                self.accept(b')').then_some(Piece::Group(choice))?
            }
            byte => Piece::One(literal(byte)?),
        })
    }

    /// The rest of `[a-z_-]`.
    fn class(&mut self) -> Option<u128> {
        let negated = self.accept(b'^');
        let mut set = 0;
        loop {
            let first = match self.take()? {
                b']' if set != 0 => return Some(if negated { !set } else { set }),
                b'\\' => {
                    set |= escaped(self.take()?)?;
                    continue;
                }
                // Between two others it would be a range.
                b'-' if self.rest.first() == Some(&b']') => b'-',
                byte => literal(byte).map(|_| byte).or((byte == b'.').then_some(byte))?,
            };
            match self.rest {
                [b'-', last, ..] if *last != b']' => {
                    let last = *last;
                    let is_range = |range: std::ops::RangeInclusive<u8>| {
                        range.contains(&first) && range.contains(&last) && first <= last
                    };
                    let known = is_range(b'a'..=b'z') || is_range(b'A'..=b'Z') || is_range(b'0'..=b'9');
                    known.then_some(())?;
                    set |= span(first, last);
                    self.rest = self.rest.get(2..)?;
                }
                _ => set |= span(first, first),
            }
        }
    }

    fn count(&mut self) -> Option<(u32, u32)> {
        let count = match self.rest.first() {
            Some(b'*') => (0, u32::MAX),
            Some(b'+') => (1, u32::MAX),
            Some(b'?') => (0, 1),
            Some(b'{') => return self.braces(),
            _ => return Some((1, 1)),
        };
        self.take();
        self.once(count)
    }

    /// The count, unless another one stands behind it, which means something else.
    fn once(&self, count: (u32, u32)) -> Option<(u32, u32)> {
        (!matches!(self.rest.first(), Some(b'*' | b'+' | b'?' | b'{'))).then_some(count)
    }

    /// `{2}`, `{2,}` or `{2,3}`.
    fn braces(&mut self) -> Option<(u32, u32)> {
        let len = self.rest.iter().position(|byte| *byte == b'}')?;
        let inside = str::from_utf8(self.rest.get(1..len)?).ok()?;
        self.rest = self.rest.get(len + 1..)?;
        let number = |digits: &str| {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|number| is_number && *number <= MAX_COUNT)
        };
        let (min, max) = match inside.split_once(',') {
            None => (number(inside)?, number(inside)?),
            Some((min, "")) => (number(min)?, u32::MAX),
            Some((min, max)) => (number(min)?, number(max)?),
        };
        (min <= max).then_some(())?;
        self.once((min, max))
    }
}

/// A character that stands for itself.
fn literal(byte: u8) -> Option<u128> {
    let is_plain =
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':' | b'/' | b'@' | b',' | b' ' | b'=');
    is_plain.then(|| span(byte, byte))
}

/// What a backslash makes of a character.
fn escaped(byte: u8) -> Option<u128> {
    match byte {
        b'd' => Some(span(b'0', b'9')),
        b'w' => Some(span(b'0', b'9') | span(b'A', b'Z') | span(b'a', b'z') | span(b'_', b'_')),
        b'.' | b'/' | b'-' | b'$' | b'^' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'*' | b'+' | b'?'
        | b'|' | b'\\' => Some(span(byte, byte)),
        _ => None,
    }
}

fn span(first: u8, last: u8) -> u128 {
    (first..=last).fold(0, |set, byte| set | 1 << (byte & 0x7f))
}

// === impl Match ===

/// What must match behind a place.
type Then<'a> = &'a mut dyn FnMut(&mut Match<'_>, usize) -> Option<bool>;

impl Match<'_> {
    fn choice(&mut self, choice: &Choice, at: usize, then: Then<'_>) -> Option<bool> {
        for sequence in choice {
            if self.sequence(sequence, at, then)? {
                return Some(true);
            }
        }
        Some(false)
    }

    fn sequence(&mut self, sequence: &[Repeat], at: usize, then: Then<'_>) -> Option<bool> {
        match sequence.split_first() {
            None => then(self, at),
            Some((first, rest)) => self.repeat(first, 0, at, &mut |tried, at| tried.sequence(rest, at, then)),
        }
    }

    fn repeat(&mut self, repeat: &Repeat, done: u32, at: usize, then: Then<'_>) -> Option<bool> {
        self.left = self.left.checked_sub(1)?;
        if done < repeat.max {
            let more = self.piece(&repeat.piece, at, &mut |tried, next| {
                // Nothing, once more, leads nowhere.
                let is_stuck = next == at && done >= repeat.min;
                if is_stuck { Some(false) } else { tried.repeat(repeat, done + 1, next, then) }
            })?;
            if more {
                return Some(true);
            }
        }
        if done >= repeat.min { then(self, at) } else { Some(false) }
    }

    fn piece(&mut self, piece: &Piece, at: usize, then: Then<'_>) -> Option<bool> {
        match piece {
            Piece::Start => Some(at == 0 && then(self, at)?),
            Piece::End => Some(at == self.text.len() && then(self, at)?),
            Piece::One(set) => match self.text.get(at) {
                Some(byte) if set >> (byte & 0x7f) & 1 == 1 => then(self, at + 1),
                _ => Some(false),
            },
            Piece::Group(choice) => self.choice(choice, at, then),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    const TEXTS: &[&str] = &[
        "",
        "a",
        "ab",
        "abc",
        "z9",
        "A-b.c",
        "5m",
        "1h30m",
        "0",
        "30s",
        "sha256:ab",
        "a b",
        "x=y",
        "a.b",
        "__",
        "-",
        "$x",
        "aaaaaaaa",
        "Zab",
        "a/b@c,d",
        "[x]",
        "ab\\",
    ];

    #[test]
    fn what_is_understood_matches_as_the_validators_engine_has_it() {
        let patterns = [
            "",
            "^a",
            "b$",
            "^[a-z]+[a-zA-Z0-9]+$",
            "^[a-zA-Z0-9-]+$",
            "^sha256:[a-f0-9]{2}$",
            "^.{2,3}$",
            "a{2,}",
            "^(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?$|^0$",
            "^[^a-c]+$",
            "^\\d+[ms]$",
            "\\.",
            "^(?:a|ab)(c|$)",
            "^(a?)*$",
            "^[a-zA-Z_][a-zA-Z0-9_]*$|^...$",
            "(|a)b",
            "^[\\w.-]+$",
            "^(a|b|)+c?$",
            "\\\\$",
            "\\[x",
        ];
        for pattern in patterns {
            let schema = json!({"pattern": pattern});
            let validator = jsonschema::validator_for(&schema).unwrap();
            let read = Pattern::parse(pattern).unwrap();
            for text in TEXTS {
                assert_eq!(
                    read.is_in(text),
                    Some(validator.is_valid(&json!(text))),
                    "{text:?} by {pattern:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_not_sure_has_no_answer() {
        for pattern in [
            "(",
            ")",
            "a)",
            "[",
            "[]",
            "[a",
            "[^]",
            "[z-a]",
            "[a-Z]",
            "[+--]",
            "a**",
            "a{2}{3}",
            "a{3,2}",
            "{2}",
            "*",
            "^*",
            "\\b",
            "\\p{L}",
            "(?=a)",
            "(?i)a",
            "a{",
            "a{x}",
            "a{1001}",
            "ü",
            "a+?",
            "[[:alpha:]]",
            "#",
        ] {
            assert!(Pattern::parse(pattern).is_none(), "{pattern:?}");
        }
        assert!(Pattern::parse(&"(".repeat(100_000)).is_none());
        assert_eq!(Pattern::parse("a").unwrap().is_in("ü"), None);
        assert_eq!(Pattern::parse("a").unwrap().is_in("\n"), None);
        assert_eq!(Pattern::parse("^((a*)*)*b$").unwrap().is_in(&"a".repeat(40)), None);
        assert_eq!(Pattern::parse("^a*$").unwrap().is_in(&"a".repeat(100_000)), None);
    }
}
