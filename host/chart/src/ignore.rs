//! `.helmignore`: which files of a chart folder are no part of the chart. Helm's rules, not git's.

use crate::archive::File;

/// The rules of one `.helmignore`, in order.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// A rule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Helm has no `**`.
    #[error(".helmignore:{line}: `**` is not supported: name the folder")]
    DoubleStar {
        /// Counted from 1.
        line: usize,
    },
    /// A class or an escape without its end.
    #[error(".helmignore:{line}: {rule:?} is no pattern: close the `[` or drop the `\\`")]
    Pattern {
        /// Counted from 1.
        line: usize,
        /// As written.
        rule: String,
    },
}

#[derive(Clone, Debug)]
struct Rule {
    pattern: String,
    negated: bool,
    folders_only: bool,
    /// Held against the whole path, not its last part.
    whole: bool,
}

/// The files that the folder's own `.helmignore` leaves; without one only `templates/.?*` is ignored.
///
/// # Errors
/// When `.helmignore` cannot be read.
pub fn apply(files: Vec<File>) -> Result<Vec<File>, Error> {
    let text = files.iter().find(|file| file.path == ".helmignore").map(|file| file.text().into_owned());
    let rules = Rules::parse(text.as_deref().unwrap_or_default())?;
    Ok(files.into_iter().filter(|file| !rules.ignore(&file.path)).collect())
}

// === impl Rules ===

impl Rules {
    /// Reads the rules, and adds the one that Helm always adds.
    ///
    /// # Errors
    /// When a rule is no pattern.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut rules = Vec::new();
        for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            rules.extend(Rule::parse(line.trim(), number + 1)?);
        }
        rules.extend(Rule::parse("templates/.?*", 0)?);
        Ok(Self { rules })
    }

    /// True when the file, or a folder it is in, is ignored.
    #[must_use]
    pub fn ignore(&self, path: &str) -> bool {
        let folders = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        folders.into_iter().any(|folder| self.decide(folder, true)) || self.decide(path, false)
    }

    fn decide(&self, path: &str, is_folder: bool) -> bool {
        for rule in &self.rules {
            let fits = rule.fits(path);
            // A negated rule ignores all that does not fit, and lets the rest go on to the next rule.
            if rule.negated {
                if (rule.folders_only && !is_folder) || !fits {
                    return true;
                }
            } else if fits && (is_folder || !rule.folders_only) {
                return true;
            }
        }
        false
    }
}

// === impl Rule ===

impl Rule {
    fn parse(text: &str, line: usize) -> Result<Option<Self>, Error> {
        if text.is_empty() || text.starts_with('#') {
            return Ok(None);
        }
        if text.contains("**") {
            return Err(Error::DoubleStar { line });
        }
        matches(text, "abc").ok_or_else(|| Error::Pattern { line, rule: text.to_owned() })?;
        let (negated, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let (folders_only, text) = text.strip_suffix('/').map_or((false, text), |rest| (true, rest));
        let (rooted, pattern) = text.strip_prefix('/').map_or((false, text), |rest| (true, rest));
        Ok(Some(Self {
            pattern: pattern.to_owned(),
            negated,
            folders_only,
            whole: rooted || text.contains('/'),
        }))
    }

    fn fits(&self, path: &str) -> bool {
        let base = path.rsplit('/').next().unwrap_or(path);
        matches(&self.pattern, if self.whole { path } else { base }).unwrap_or(false)
    }
}

/// Go's `filepath.Match`: `*` and `?` stop at `/`, `[a-z]`, `[^a]`, `\` takes the next character as it is.
/// Nothing when the pattern is none, which is found even where the text does not fit.
fn matches(pattern: &str, text: &str) -> Option<bool> {
    let pattern = tokens(pattern)?;
    let text: Vec<char> = text.chars().collect();
    Some(fits(&pattern, &text))
}

#[derive(Debug, PartialEq)]
enum Token {
    Star,
    Any,
    One(char),
    Class { negated: bool, ranges: Vec<(char, char)> },
}

fn tokens(pattern: &str) -> Option<Vec<Token>> {
    let mut chars = pattern.chars().peekable();
    let mut tokens = Vec::new();
    while let Some(next) = chars.next() {
        tokens.push(match next {
            '*' => Token::Star,
            '?' => Token::Any,
            '\\' => Token::One(chars.next()?),
            '[' => class(&mut chars)?,
            other => Token::One(other),
        });
    }
    Some(tokens)
}

fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<Token> {
    let negated = chars.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    loop {
        let low = match chars.next()? {
            ']' if !ranges.is_empty() => return Some(Token::Class { negated, ranges }),
            ']' | '-' => return None,
            '\\' => chars.next()?,
            other => other,
        };
        let mut high = low;
        if chars.next_if_eq(&'-').is_some() {
            high = match chars.next()? {
                ']' | '-' => return None,
                '\\' => chars.next()?,
                other => other,
            };
        }
        ranges.push((low, high));
    }
}

/// Greedy with one way back, so that no pattern takes more than pattern times text.
fn fits(pattern: &[Token], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    loop {
        let step = match (pattern.get(p), text.get(t)) {
            (None, None) => return true,
            (Some(Token::Star), _) => {
                back = Some((p + 1, t));
                p += 1;
                continue;
            }
            (Some(token), Some(next)) => token.takes(*next),
            _ => false,
        };
        if step {
            p += 1;
            t += 1;
        } else {
            match back {
                Some((after, from)) if text.get(from).is_some_and(|next| *next != '/') => {
                    back = Some((after, from + 1));
                    p = after;
                    t = from + 1;
                }
                _ => return false,
            }
        }
    }
}

impl Token {
    fn takes(&self, next: char) -> bool {
        match self {
            Self::Star => false,
            Self::Any => next != '/',
            Self::One(one) => *one == next,
            Self::Class { negated, ranges } => {
                next != '/' && ranges.iter().any(|(low, high)| (*low..=*high).contains(&next)) != *negated
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[track_caller]
    fn check(rules: &str, ignored: &[&str], kept: &[&str]) {
        let rules = Rules::parse(rules).unwrap();
        for path in ignored {
            assert!(rules.ignore(path), "{path} is ignored");
        }
        for path in kept {
            assert!(!rules.ignore(path), "{path} is kept");
        }
    }

    #[test]
    fn rules_work_as_in_helm() {
        check("helm.txt", &["helm.txt", "a/helm.txt"], &["helm.text"]);
        check("*.txt", &["a.txt", "x/b.txt"], &["a.txt.yaml"]);
        check("/a.txt", &["a.txt"], &["b/a.txt"]);
        check("cargo/*.txt", &["cargo/a.txt"], &["a.txt", "x/cargo/a.txt"]);
        check("cargo/", &["cargo/a.txt", "x/cargo/b"], &["cargo"]);
        check("[a-c]?.t", &["ab.t", "cx.t"], &["dx.t", "abc.t"]);
        check("[^a].t", &["b.t"], &["a.t"]);
        check("# all\n\n  *.bak  ", &["a.bak"], &["# all"]);
        check("", &["templates/.swp"], &["templates/a", ".gitignore", "templates/."]);
        check("a\\*b", &["a*b"], &["axb"]);
    }

    #[test]
    fn a_negated_rule_ignores_all_that_does_not_fit() {
        check("!*.yaml", &["a.txt", "templates/a.yaml"], &["a.yaml"]);
        check("!keep/", &["a.yaml"], &[]);
    }

    #[test]
    fn what_is_no_rule_is_named_with_its_line() {
        assert_eq!(Rules::parse("a\n**/b").unwrap_err(), Error::DoubleStar { line: 2 });
        for rule in ["[a", "a\\", "[]", "[a-]"] {
            assert_eq!(Rules::parse(rule).unwrap_err(), Error::Pattern { line: 1, rule: rule.into() });
        }
    }

    #[test]
    fn many_stars_do_not_take_for_ever() {
        let rule = "*a".repeat(40);
        assert_eq!(matches(&rule, &"a".repeat(10_000)), Some(true));
        assert_eq!(matches(&format!("{rule}b"), &"a".repeat(10_000)), Some(false));
    }
}
