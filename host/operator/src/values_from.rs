//! Values from ConfigMaps and Secrets that an owner or its Watch names. They are watched: a change of one
//! wakes the release.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_api::{
    Answer, Facts, Object, ObjectRef,
    watch::{ValuesFrom, ValuesKind},
};
use pintle_chart::{Values, values};

/// Key that is read when none is named.
const KEY: &str = "values.yaml";

/// The values of one entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    /// What is there.
    pub(crate) values: Values,
    /// They are of a Secret: no plugin may see them.
    pub(crate) is_secret: bool,
}

/// Why values cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    #[error("{0}, named in valuesFrom, is not there; create it, or mark the entry with `optional: true`")]
    Missing(String),
    #[error("{object}, named in valuesFrom, has no key {key:?}; add it, or name another with valuesKey")]
    KeyMissing { object: String, key: String },
    #[error("{object}, named in valuesFrom: {key} is no text")]
    NotText { object: String, key: String },
    /// What the reader says would quote the value, which of a Secret nobody may see.
    #[error("{object}, named in valuesFrom: {key}:{line} is no YAML mapping of values; mend that line")]
    Broken { object: String, key: String, line: usize },
    #[error("{object}, named in valuesFrom, may not be read: {why}")]
    Denied { object: String, why: String },
    #[error("{0}, named in valuesFrom, is not known yet")]
    NotYet(String),
}

// === impl Problem ===

impl Problem {
    /// CamelCase word for conditions.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Missing(_) | Self::KeyMissing { .. } => "ValuesMissing",
            Self::NotText { .. } | Self::Broken { .. } => "InvalidValues",
            Self::Denied { .. } => "Forbidden",
            Self::NotYet(_) => "ValuesUnknown",
        }
    }

    /// Time alone may mend it; what an event mends is not asked for again.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Denied { .. } | Self::NotYet(_))
    }
}

/// The values of every entry, in order: a later one counts over an earlier.
pub(crate) fn observe(
    facts: &dyn Facts,
    entries: &[ValuesFrom],
    namespace: &str,
) -> Result<Vec<Source>, Problem> {
    let found = entries.iter().map(|entry| read(facts, entry, namespace));
    // All are read before the first is missed, so that all of them are watched.
    let found: Vec<_> = found.collect();
    found.into_iter().filter_map(Result::transpose).collect()
}

fn read(facts: &dyn Facts, entry: &ValuesFrom, namespace: &str) -> Result<Option<Source>, Problem> {
    let kind = match entry.kind {
        ValuesKind::ConfigMap => "ConfigMap",
        ValuesKind::Secret => "Secret",
    };
    let object = ObjectRef::new("v1", kind, &entry.name).within(namespace);
    let live = facts.get(&object);
    let object = object.to_string();
    let live = match live {
        Answer::Found(live) => live,
        Answer::Missing | Answer::KindUnknown if entry.optional => return Ok(None),
        Answer::Missing | Answer::KindUnknown => return Err(Problem::Missing(object)),
        Answer::Denied(why) => return Err(Problem::Denied { object, why }),
        Answer::NotYet => return Err(Problem::NotYet(object)),
    };
    let key = if entry.values_key.is_empty() { KEY } else { &entry.values_key };
    let Some(text) = text_of(&live, entry.kind, key) else {
        let has_key = live.at("/data").is_some_and(|data| data.get(key).is_some());
        let key = key.to_owned();
        return match (has_key, entry.optional) {
            (true, _) => Err(Problem::NotText { object, key }),
            (false, true) => Ok(None),
            (false, false) => Err(Problem::KeyMissing { object, key }),
        };
    };
    let values = values::parse(&text).map_err(|err| {
        let line = if let values::Error::Yaml { line, .. } = err { line } else { 1 };
        Problem::Broken { object, key: key.to_owned(), line }
    })?;
    Ok(Some(Source { values, is_secret: entry.kind == ValuesKind::Secret }))
}

fn text_of(live: &Object, kind: ValuesKind, key: &str) -> Option<String> {
    let value = live.at("/data")?.get(key)?.as_str()?;
    match kind {
        ValuesKind::ConfigMap => Some(value.to_owned()),
        ValuesKind::Secret => String::from_utf8(BASE64_STANDARD.decode(value).ok()?).ok(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use std::{collections::BTreeMap, sync::Arc};

    use pintle_api::{LogTail, Query};
    use serde_json::{Value, json};

    use super::*;

    struct World(BTreeMap<ObjectRef, Value>);

    impl Facts for World {
        fn get(&self, target: &ObjectRef) -> Answer<Arc<Object>> {
            let found = self.0.get(target).cloned().map(|value| Arc::new(Object::new(value).unwrap()));
            found.map_or(Answer::Missing, Answer::Found)
        }
        fn list(&self, _: &Query) -> Answer<Vec<Arc<Object>>> {
            Answer::Missing
        }
        fn tail(&self, _: &LogTail) -> Answer<String> {
            Answer::Missing
        }
        fn resolve(&self, _: &str) -> Answer<String> {
            Answer::Missing
        }
    }

    fn world() -> World {
        let object = |kind: &str, name: &str, data: Value| {
            let reference = ObjectRef::new("v1", kind, name).within("ns");
            let metadata = json!({"name": name, "namespace": "ns"});
            (reference, json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": data}))
        };
        World(BTreeMap::from([
            object(
                "ConfigMap",
                "plain",
                json!({"values.yaml": "a: 1\nb: {c: x}\n", "broken": "a: 1\n b: ["}),
            ),
            object(
                "Secret",
                "hidden",
                json!({"values.yaml": BASE64_STANDARD.encode("b: {d: s3cret}"), "odd": "%"}),
            ),
            object("Secret", "broken", json!({"values.yaml": BASE64_STANDARD.encode("s3cret: ["), })),
        ]))
    }

    fn entry(kind: ValuesKind, name: &str, key: &str, optional: bool) -> ValuesFrom {
        ValuesFrom { kind, name: name.into(), values_key: key.into(), optional }
    }

    #[test]
    fn values_come_in_order_and_what_is_optional_may_be_away() {
        let entries = [
            entry(ValuesKind::ConfigMap, "plain", "", false),
            entry(ValuesKind::ConfigMap, "away", "", true),
            entry(ValuesKind::ConfigMap, "plain", "away", true),
            entry(ValuesKind::Secret, "hidden", "values.yaml", false),
        ];
        let found = observe(&world(), &entries, "ns").unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].values, *json!({"b": {"d": "s3cret"}}).as_object().unwrap());
        assert_eq!([found[0].is_secret, found[1].is_secret], [false, true]);
    }

    #[test]
    fn each_fault_names_object_key_and_fix_and_never_the_value() {
        let cases = [
            (
                ValuesKind::ConfigMap,
                "away",
                "",
                "ConfigMap ns/away, named in valuesFrom, is not there; create it",
            ),
            (ValuesKind::ConfigMap, "plain", "away", "has no key \"away\"; add it"),
            (ValuesKind::ConfigMap, "plain", "broken", "ConfigMap ns/plain, named in valuesFrom: broken:"),
            (ValuesKind::Secret, "hidden", "odd", "odd is no text"),
            (ValuesKind::Secret, "broken", "", "values.yaml:"),
        ];
        for (kind, name, key, text) in cases {
            let problem = observe(&world(), &[entry(kind, name, key, false)], "ns").unwrap_err().to_string();
            assert!(problem.contains(text) && !problem.contains("s3cret"), "{problem}");
        }
    }
}
