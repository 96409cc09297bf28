//! Parts of objects: dotted paths, sets of them, and objects cut down to a set.

use std::{collections::BTreeMap, fmt};

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::limits;

/// Segments a path may have; no Kubernetes kind nests deeper.
const DEPTH: usize = 32;

/// A dotted path of keys; a dot inside a key is written `\.`, lists are passed through.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FieldPath(Vec<String>);

/// A set of paths, each with all that is below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mask {
    /// All of it.
    Whole,
    /// Of a mapping, these keys; of a list, this of each element.
    Part(BTreeMap<String, Mask>),
}

/// A path that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no path such as status.phase")]
pub struct NotAPath(String);

// === impl FieldPath ===

impl FieldPath {
    /// Splits a path at its dots.
    ///
    /// # Errors
    /// When it is empty, has an empty segment, is too long or too deep.
    pub(crate) fn parse(text: &str) -> Result<Self, NotAPath> {
        let wrong = || NotAPath(text.chars().take(limits::NAME).collect());
        let mut segments = vec![String::new()];
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '\\' if letters.next_if_eq(&'.').is_some() => push(&mut segments, '.'),
                '.' => segments.push(String::new()),
                other => push(&mut segments, other),
            }
        }
        let is_wrong =
            segments.len() > DEPTH || text.len() > limits::KIB || segments.iter().any(String::is_empty);
        if is_wrong { Err(wrong()) } else { Ok(Self(segments)) }
    }

    /// Parses each, and stops at the first that is none.
    pub(crate) fn parse_all(texts: &[String]) -> Result<Vec<Self>, NotAPath> {
        texts.iter().map(|text| Self::parse(text)).collect()
    }
}

fn push(segments: &mut [String], letter: char) {
    if let Some(last) = segments.last_mut() {
        last.push(letter);
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escaped: Vec<String> = self.0.iter().map(|segment| segment.replace('.', "\\.")).collect();
        f.write_str(&escaped.join("."))
    }
}

// === impl Mask ===

impl Mask {
    /// The set with nothing in it.
    pub(crate) fn nothing() -> Self {
        Self::Part(BTreeMap::new())
    }

    /// The set of these paths; no path means everything, as in grants and calls.
    pub(crate) fn of(paths: &[FieldPath]) -> Self {
        if paths.is_empty() {
            return Self::Whole;
        }
        let mut mask = Self::nothing();
        paths.iter().for_each(|path| mask.add(&path.0));
        mask
    }

    /// What is in either.
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Part(mut fields), Self::Part(others)) => {
                for (key, other) in others {
                    let mine = fields.remove(&key).unwrap_or_else(Self::nothing);
                    fields.insert(key, mine.or(other));
                }
                Self::Part(fields)
            }
            _ => Self::Whole,
        }
    }

    /// True when the path and all below it are in the set.
    pub(crate) fn covers(&self, path: &FieldPath) -> bool {
        let mut mask = self;
        for segment in &path.0 {
            match mask {
                Self::Whole => return true,
                Self::Part(fields) => match fields.get(segment) {
                    Some(below) => mask = below,
                    None => return false,
                },
            }
        }
        matches!(mask, Self::Whole)
    }

    /// The part of the set that was asked for; no path asks for all of it.
    pub(crate) fn narrowed(&self, asked: &[FieldPath]) -> Self {
        if asked.is_empty() {
            return self.clone();
        }
        let mut mask = Self::nothing();
        asked.iter().filter(|path| self.covers(path)).for_each(|path| mask.add(&path.0));
        mask
    }

    /// A copy of the mapping with only what is in the set.
    pub(crate) fn keep(&self, map: &Map<String, Value>) -> Map<String, Value> {
        match self {
            Self::Whole => map.clone(),
            Self::Part(fields) => {
                let kept = fields
                    .iter()
                    .filter_map(|(key, mask)| Some((key.clone(), mask.keep_value(map.get(key)?)?)));
                kept.collect()
            }
        }
    }

    /// The first path of the mapping, as a grant would name it, that is not in the set.
    pub(crate) fn first_beyond(&self, map: &Map<String, Value>) -> Option<FieldPath> {
        let Self::Part(fields) = self else { return None };
        let none = Self::nothing();
        map.iter().find_map(|(key, value)| {
            let mask = fields.get(key).unwrap_or(&none);
            let mut beyond = mask.first_beyond_value(value)?;
            beyond.0.insert(0, key.clone());
            Some(beyond)
        })
    }

    fn first_beyond_value(&self, value: &Value) -> Option<FieldPath> {
        match (self, value) {
            (Self::Whole, _) => None,
            (Self::Part(_), Value::Object(map)) if !map.is_empty() => self.first_beyond(map),
            (Self::Part(_), Value::Array(list)) if !list.is_empty() => {
                list.iter().find_map(|element| self.first_beyond_value(element))
            }
            (Self::Part(_), _) => Some(FieldPath(Vec::new())),
        }
    }

    fn keep_value(&self, value: &Value) -> Option<Value> {
        match (self, value) {
            (Self::Whole, value) => Some(value.clone()),
            (Self::Part(_), Value::Object(map)) => Some(Value::Object(self.keep(map))),
            (Self::Part(_), Value::Array(list)) => {
                Some(list.iter().filter_map(|element| self.keep_value(element)).collect())
            }
            (Self::Part(_), _) => None,
        }
    }

    fn add(&mut self, path: &[String]) {
        match (path.split_first(), &mut *self) {
            (None, _) => *self = Self::Whole,
            (Some(_), Self::Whole) => {}
            (Some((first, rest)), Self::Part(fields)) => {
                fields.entry(first.clone()).or_insert_with(Self::nothing).add(rest);
            }
        }
    }
}

/// A value of which only what is in a set is written.
pub(crate) struct Masked<'a>(pub(crate) &'a Value, pub(crate) &'a Mask);

impl Masked<'_> {
    /// True when nothing of the value is in the set, as [`Mask::keep`] leaves it out.
    pub(crate) fn is_left_out(&self) -> bool {
        matches!((self.1, self.0), (Mask::Part(_), value) if !value.is_object() && !value.is_array())
    }
}

impl Serialize for Masked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.1, self.0) {
            (Mask::Part(fields), Value::Object(map)) => {
                let kept = fields.iter().filter_map(|(key, mask)| Some((key, Masked(map.get(key)?, mask))));
                serializer.collect_map(kept.filter(|(_, value)| !value.is_left_out()))
            }
            (mask @ Mask::Part(_), Value::Array(list)) => {
                let kept = list.iter().map(|element| Masked(element, mask));
                serializer.collect_seq(kept.filter(|element| !element.is_left_out()))
            }
            (_, value) => value.serialize(serializer),
        }
    }
}

/// Removes what is at the path; lists are passed through.
pub(crate) fn remove(map: &mut Map<String, Value>, path: &FieldPath) {
    remove_below(map, &path.0);
}

fn remove_below(map: &mut Map<String, Value>, path: &[String]) {
    match path {
        [] => {}
        [last] => {
            map.remove(last);
        }
        [first, rest @ ..] => match map.get_mut(first) {
            Some(Value::Object(below)) => remove_below(below, rest),
            Some(Value::Array(list)) => {
                list.iter_mut().filter_map(Value::as_object_mut).for_each(|below| remove_below(below, rest));
            }
            _ => {}
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    fn mask(paths: &[&str]) -> Mask {
        Mask::of(&paths.iter().map(|path| FieldPath::parse(path).unwrap()).collect::<Vec<_>>())
    }

    #[track_caller]
    fn check(paths: &[&str], whole: &Value, kept: &Value) {
        assert_eq!(&Value::Object(mask(paths).keep(whole.as_object().unwrap())), kept);
    }

    #[test]
    fn a_mask_keeps_the_paths_and_what_is_below_them() {
        let pod = json!({"spec": {"nodeName": "n", "containers": [{"name": "a", "env": [1]}, {"name": "b"}]},
            "metadata": {"labels": {"a.b/c": "x", "d": "y"}}, "status": {"phase": "Running"}});
        check(&["spec.nodeName"], &pod, &json!({"spec": {"nodeName": "n"}}));
        check(
            &["spec.containers.name"],
            &pod,
            &json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}),
        );
        check(&["metadata.labels.a\\.b/c"], &pod, &json!({"metadata": {"labels": {"a.b/c": "x"}}}));
        check(&["status", "status.phase"], &pod, &json!({"status": {"phase": "Running"}}));
        check(&["spec.nodeName.deeper", "gone"], &pod, &json!({"spec": {}}));
        check(&[], &pod, &pod);
    }

    #[test]
    fn a_wider_path_than_granted_is_not_covered() {
        let granted = mask(&["metadata.labels", "status.phase"]);
        let covered = |path: &str| granted.covers(&FieldPath::parse(path).unwrap());
        assert!(covered("metadata.labels.app") && covered("status.phase"));
        assert!(!covered("metadata") && !covered("status.podIP") && !covered("spec"));
    }

    #[test]
    fn two_grants_are_united() {
        let both = mask(&["status.phase"]).or(mask(&["status.podIP", "spec"]));
        assert_eq!(both, mask(&["status.phase", "status.podIP", "spec"]));
        assert_eq!(both.or(Mask::Whole), Mask::Whole);
    }

    #[test]
    fn what_is_no_path_is_refused_and_paths_print_as_they_were_written() {
        for odd in ["", ".", "a..b", "a.", &"a.".repeat(40), &"x".repeat(2_000)] {
            assert!(FieldPath::parse(odd).is_err(), "{odd}");
        }
        assert_eq!(FieldPath::parse("a.b\\.c/d").unwrap().to_string(), "a.b\\.c/d");
    }
}
