//! Label selectors as the API writes them: parsed, matched, compared.

use std::collections::BTreeSet;

use pintle_api::Object;

/// A label selector; the empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Selector {
    terms: BTreeSet<Term>,
}

/// One term; all must hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Term {
    In(String, BTreeSet<String>),
    NotIn(String, BTreeSet<String>),
    Exists(String),
    Absent(String),
}

// === impl Selector ===

impl Selector {
    /// `None` when the text is no selector; the server would refuse it too.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let terms = split(text).into_iter().map(str::trim).filter(|term| !term.is_empty());
        Some(Self { terms: terms.map(Term::parse).collect::<Option<_>>()? })
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.terms.iter().all(|term| term.matches(object))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// True when whatever `narrower` selects is selected by this one too.
    pub(crate) fn contains(&self, narrower: &Self) -> bool {
        self.terms.iter().all(|term| narrower.terms.iter().any(|other| term.follows_from(other)))
    }

    /// True when it asks for the key, whatever the value.
    pub(crate) fn asks_for(&self, key: &str) -> bool {
        let wanted = Term::Exists(key.to_owned());
        self.terms.iter().any(|term| wanted.follows_from(term))
    }

    /// The one value the key must have.
    pub(crate) fn value_of(&self, key: &str) -> Option<&str> {
        self.terms.iter().find_map(|term| match term {
            Term::In(own, values) if own == key && values.len() == 1 => values.first().map(String::as_str),
            _ => None,
        })
    }
}

/// At commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let at_comma = |char: char| {
        match char {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        char == ',' && depth == 0
    };
    text.split(at_comma).collect()
}

// === impl Term ===

impl Term {
    fn parse(text: &str) -> Option<Self> {
        if let Some((key, values)) = text.split_once('(') {
            let values = values.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
            let (key, operator) = key.trim().split_once(char::is_whitespace)?;
            return match operator.trim() {
                "in" => Some(Self::In(key_of(key)?, values)),
                "notin" => Some(Self::NotIn(key_of(key)?, values)),
                _ => None,
            };
        }
        let one = |value: &str| BTreeSet::from([value.trim().to_owned()]);
        if let Some((key, value)) = text.split_once("!=") {
            return Some(Self::NotIn(key_of(key)?, one(value)));
        }
        if let Some((key, value)) = text.split_once('=') {
            return Some(Self::In(key_of(key)?, one(value.strip_prefix('=').unwrap_or(value))));
        }
        match text.strip_prefix('!') {
            Some(key) => Some(Self::Absent(key_of(key)?)),
            None => Some(Self::Exists(key_of(text)?)),
        }
    }

    fn matches(&self, object: &Object) -> bool {
        match self {
            Self::In(key, values) => object.label(key).is_some_and(|value| values.contains(value)),
            Self::NotIn(key, values) => object.label(key).is_none_or(|value| !values.contains(value)),
            Self::Exists(key) => object.label(key).is_some(),
            Self::Absent(key) => object.label(key).is_none(),
        }
    }

    fn follows_from(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exists(key), Self::In(other, _)) => key == other,
            (Self::In(key, values), Self::In(other, others)) => key == other && others.is_subset(values),
            (Self::NotIn(key, values), Self::NotIn(other, others)) => {
                key == other && values.is_subset(others)
            }
            (Self::NotIn(key, _), Self::Absent(other)) => key == other,
            (Self::NotIn(key, values), Self::In(other, others)) => key == other && values.is_disjoint(others),
            _ => self == other,
        }
    }
}

fn key_of(text: &str) -> Option<String> {
    let key = text.trim();
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_./".contains(char);
    (!key.is_empty() && key.chars().all(is_plain)).then(|| key.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    fn labelled(key: &str, value: &str) -> Object {
        let json = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {key: value}}});
        Object::new(json).unwrap()
    }

    #[test]
    fn selectors_match_as_the_server_does() {
        let cases = [
            ("a=b", true),
            ("a==b", true),
            ("a!=b", false),
            ("a in (b, c)", true),
            ("a notin (b)", false),
            ("x notin (b)", true),
            ("a", true),
            ("!a", false),
            ("!x,a in (c,b)", true),
            ("", true),
            ("a=", false),
        ];
        for (text, expected) in cases {
            assert_eq!(Selector::parse(text).unwrap().matches(&labelled("a", "b")), expected, "{text}");
        }
        assert!(Selector::parse("a b").is_none());
        assert!(Selector::parse("a in b)").is_none());
    }

    #[test]
    fn a_watch_of_all_owners_covers_one_owner_and_not_the_reverse() {
        let all = Selector::parse("pintle.dev/owner").unwrap();
        let one = Selector::parse("pintle.dev/owner=u,app in (x)").unwrap();
        assert!(all.contains(&one) && !one.contains(&all));
        assert!(Selector::default().contains(&one) && !all.contains(&Selector::default()));
        assert!(Selector::parse("a!=b").unwrap().contains(&Selector::parse("a=c").unwrap()));
        assert!(!Selector::parse("a!=b").unwrap().contains(&Selector::parse("a in (b,c)").unwrap()));
        assert_eq!(one.value_of("pintle.dev/owner"), Some("u"));
    }
}
