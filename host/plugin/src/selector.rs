//! Label selectors, as the Kubernetes API takes them in `labelSelector`.

use pintle_api::Object;
use serde_json::{Map, Value};

use crate::{grants::labels, limits};

/// Terms of one selector.
const TERMS: usize = 64;

/// Terms that must all hold; no term holds for everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    key: String,
    wants: Wants,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Wants {
    AnyValue,
    Absent,
    OneOf(Vec<String>),
    NoneOf(Vec<String>),
}

/// A selector that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no label selector such as app=driver")]
pub struct NotASelector(String);

impl Selector {
    /// Reads `key=value`, `key==value`, `key!=value`, `key in (a,b)`, `key notin (a,b)`, `key` and
    /// `!key`, joined by commas.
    ///
    /// # Errors
    /// When a term is none of these, or there are too many.
    pub(crate) fn parse(text: &str) -> Result<Self, NotASelector> {
        let wrong = || NotASelector(text.chars().take(limits::NAME).collect());
        if text.len() > 4 * limits::KIB {
            return Err(wrong());
        }
        let terms = split(text).into_iter().filter(|term| !term.is_empty());
        let terms: Vec<Term> = terms.map(Term::parse).collect::<Option<_>>().ok_or_else(wrong)?;
        if terms.len() > TERMS { Err(wrong()) } else { Ok(Self(terms)) }
    }

    /// True when an object is selected; its labels are not even looked for where everything is.
    pub(crate) fn selects(&self, object: &Object) -> bool {
        self.is_everything() || self.matches(labels(object))
    }

    /// True when an object with these labels is selected.
    pub(crate) fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.0.iter().all(|term| {
            let value = labels.and_then(|labels| labels.get(&term.key)).and_then(Value::as_str);
            match &term.wants {
                Wants::AnyValue => value.is_some(),
                Wants::Absent => value.is_none(),
                Wants::OneOf(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
                Wants::NoneOf(values) => !value.is_some_and(|value| values.iter().any(|one| one == value)),
            }
        })
    }

    /// True when everything is selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.0.is_empty()
    }
}

/// The selector that both must hold for, in the form the API takes.
pub(crate) fn both(one: &str, other: &str) -> Option<String> {
    match (one.is_empty(), other.is_empty()) {
        (true, true) => None,
        (false, true) => Some(one.to_owned()),
        (true, false) => Some(other.to_owned()),
        (false, false) if one == other => Some(one.to_owned()),
        (false, false) => Some(format!("{one},{other}")),
    }
}

/// Splits at the commas that are outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let at_comma = |letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    };
    text.split(at_comma).map(str::trim).collect()
}

// === impl Term ===

impl Term {
    fn parse(text: &str) -> Option<Self> {
        if let Some(key) = text.strip_prefix('!') {
            return Self::new(key, Wants::Absent);
        }
        if let Some((key, value)) = text.split_once("!=") {
            return Self::new(key, Wants::NoneOf(vec![word(value)?]));
        }
        if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
            return Self::new(key, Wants::OneOf(vec![word(value)?]));
        }
        if let Some(values) = text.strip_suffix(')') {
            let (head, values) = values.split_once('(')?;
            let values: Vec<String> = values.split(',').map(word).collect::<Option<_>>()?;
            let (key, operator) = head.trim().split_once(char::is_whitespace)?;
            return match operator.trim() {
                "in" => Self::new(key, Wants::OneOf(values)),
                "notin" => Self::new(key, Wants::NoneOf(values)),
                _ => None,
            };
        }
        Self::new(text, Wants::AnyValue)
    }

    fn new(key: &str, wants: Wants) -> Option<Self> {
        let key = key.trim();
        let is_key = !key.is_empty() && key.chars().all(|letter| is_plain(letter) || letter == '/');
        is_key.then(|| Self { key: key.to_owned(), wants })
    }
}

fn word(text: &str) -> Option<String> {
    let text = text.trim();
    text.chars().all(is_plain).then(|| text.to_owned())
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(selector: &str, selected: bool) {
        let labels = json!({"app": "driver", "tier": "", "a.b/c": "x"});
        assert_eq!(Selector::parse(selector).unwrap().matches(labels.as_object()), selected, "{selector}");
    }

    #[test]
    fn each_form_selects_as_the_api_does() {
        for yes in
            ["", "app", "app=driver", "app==driver", "app != other", "gone!=x", "!gone", "tier=", "a.b/c=x"]
        {
            check(yes, true);
        }
        for yes in ["app in (a, driver)", "app notin (a,b),tier", "gone notin (a)", "app=driver,!gone"] {
            check(yes, true);
        }
        for no in [
            "gone",
            "app=other",
            "!app",
            "app!=driver",
            "app in (a,b)",
            "app notin (driver)",
            "app=driver,gone",
        ] {
            check(no, false);
        }
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for odd in ["a b", "=x", "a in b", "a in (", "a of (b)", "a=b c", "a=(b)", "a=b;c", "ä=1"] {
            assert!(Selector::parse(odd).is_err(), "{odd}");
        }
    }
}
