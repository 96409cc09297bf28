//! Values: where they come from, which wins, and what each chart of a tree sees of them.
//!
//! Numbers keep the kind they came with: integers are Go's `int64` (`--set`, custom resources), floats its
//! `float64` (every number of a values file). Templates can tell them apart.

mod coalesce;
pub(crate) mod live;
mod set;

pub(crate) use coalesce::{coalesce, merge, merge_tables};
pub use set::{SetError, set, set_file, set_json, set_literal, set_string};

use serde_json::{Map, Value};

use crate::yaml;

/// A mapping of values.
pub type Values = Map<String, Value>;

/// Why values cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A values text that is no YAML or no mapping.
    #[error("line {line}: not a mapping in YAML")]
    Yaml {
        /// Counted from 1.
        line: usize,
        /// What the reader says.
        #[source]
        source: yaml::Error,
    },
    /// The key of a sub-chart holds something else than a mapping.
    #[error("values of sub-chart {name} must be a mapping, not {found}: put them under the key {name:?}")]
    NotATable {
        /// Name of the sub-chart, with the names of those around it.
        name: String,
        /// Its own name.
        key: String,
        /// What is there.
        found: String,
        /// It itself.
        value: Box<Value>,
    },
    /// Values that do not fit while it is decided which charts take part.
    #[error("it cannot be decided which charts take part")]
    Deciding(#[source] Box<Error>),
    /// Values nested deeper than [`live::MAX_DEPTH`]: imports can make a mapping contain itself.
    #[error(
        "values are nested more than {} deep: does import-values put a mapping into itself?",
        live::MAX_DEPTH
    )]
    TooDeep,
    /// More entries than [`live::MAX_ENTRIES`]: imports can repeat a mapping without end.
    #[error("values have more than {} entries: does import-values repeat a mapping?", live::MAX_ENTRIES)]
    TooLarge,
    /// More charts than [`crate::dependencies::MAX_CHARTS`]: aliases multiply those inside.
    #[error("more than {} charts take part, with the aliases they go by", crate::dependencies::MAX_CHARTS)]
    TooManyCharts,
    /// `overrideValues` with a path that runs into a scalar.
    #[error("cannot set {path:?}: {at:?} is no mapping")]
    Path {
        /// As given.
        path: String,
        /// The part that is in the way.
        at: String,
    },
}

/// A values file's text as values: all documents merged, every number a float.
///
/// # Errors
/// When it is no YAML or no mapping.
pub fn parse(text: &str) -> Result<Values, Error> {
    yaml::load_values(text).map_err(|source| Error::Yaml { line: source.line, source })
}

/// The layers over each other, a later one over the earlier; mappings are merged, all else is replaced. A
/// null stays: over a chart's default it deletes that default.
#[must_use]
pub fn overlay<'a>(layers: impl IntoIterator<Item = &'a Values>) -> Values {
    layers.into_iter().fold(Values::new(), |mut under, over| {
        lay(&mut under, over);
        under
    })
}

/// The values of a SpecialResource over its chart's defaults: `set`, then mapper plugins in order, then the
/// facts of the cluster, later over earlier.
#[must_use]
pub fn for_special_resource(set: &Values, mapped: &[Values], runtime: &Values) -> Values {
    overlay(std::iter::once(set).chain(mapped).chain(std::iter::once(runtime)))
}

/// The values of a vendor's object over its chart's defaults: `valuesFrom` in order, then the object's
/// `spec`, then mapper plugins in order, then `overrideValues`, whose keys may be dotted paths.
///
/// # Errors
/// When a path of `overrides` runs into something that is no mapping.
pub fn for_watch(
    values_from: &[Values],
    spec: &Values,
    mapped: &[Values],
    overrides: &Values,
) -> Result<Values, Error> {
    let mut values = overlay(values_from.iter().chain(std::iter::once(spec)).chain(mapped));
    for (path, value) in overrides {
        insert_at(&mut values, path, value.clone())?;
    }
    Ok(values)
}

fn lay(under: &mut Values, over: &Values) {
    for (key, value) in over {
        match (under.get_mut(key), value) {
            (Some(Value::Object(under)), Value::Object(over)) => lay(under, over),
            _ => drop(under.insert(key.clone(), value.clone())),
        }
    }
}

fn insert_at(values: &mut Values, path: &str, value: Value) -> Result<(), Error> {
    let Some((parents, key)) = path.rsplit_once('.') else {
        lay(values, &Values::from_iter([(path.to_owned(), value)]));
        return Ok(());
    };
    let mut table = values;
    for part in parents.split('.') {
        let slot = table.entry(part.to_owned()).or_insert(Value::Null);
        if slot.is_null() {
            *slot = Value::Object(Values::new());
        }
        table =
            slot.as_object_mut().ok_or_else(|| Error::Path { path: path.to_owned(), at: part.to_owned() })?;
    }
    lay(table, &Values::from_iter([(key.to_owned(), value)]));
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;
    use crate::{
        chart::tests::chart,
        dependencies::{Tree, settle},
    };

    const META: &str = "apiVersion: v2\nname: top\nversion: 1.0.0\n";

    fn values(json: Value) -> Values {
        json.as_object().unwrap().clone()
    }

    /// What the tree of charts sees of `user`, as JSON with Go's numbers.
    fn seen(files: &[(&str, &str)], user: Value) -> Value {
        let user = values(user);
        let tree = settle(&Tree::new(&std::sync::Arc::new(chart(files))), &user, &mut Vec::new()).unwrap();
        let seen = coalesce(tree.root(), live::of(&user), &mut Vec::new()).unwrap();
        yaml::integers(&Value::Object(live::to_values(&seen).unwrap()))
    }

    #[test]
    fn user_values_win_and_null_deletes_a_default() {
        let files =
            [("Chart.yaml", META), ("values.yaml", "a: 1\nb: {c: 2, d: 3, l: [1]}\ne: x\nnone: null\n")];
        assert_eq!(
            seen(&files, json!({"b": {"c": null, "l": [2]}, "e": null, "new": null, "f": {"g": null}})),
            json!({"a": 1, "b": {"d": 3, "l": [2]}, "new": null, "f": {"g": null}})
        );
    }

    #[test]
    fn sub_charts_see_their_branch_and_globals() {
        let files = [
            ("Chart.yaml", META),
            ("values.yaml", "global: {reg: r, deep: {a: 1}}\nsub: {x: parent}\n"),
            ("charts/sub/Chart.yaml", "name: sub\nversion: 1.0.0\n"),
            (
                "charts/sub/values.yaml",
                "x: child\nz: child\nglobal: {reg: child, own: o, deep: {a: 2, b: 3}}\n",
            ),
        ];
        let seen = seen(&files, json!({"global": {"reg": "user"}}));
        assert_eq!(
            seen,
            json!({"global": {"reg": "user", "deep": {"a": 1}},
                "sub": {"x": "parent", "z": "child",
                    "global": {"reg": "user", "own": "o", "deep": {"a": 1, "b": 3}}}})
        );
    }

    #[test]
    fn a_null_for_a_sub_chart_deletes_the_childs_default() {
        let files = [
            ("Chart.yaml", META),
            ("charts/sub/Chart.yaml", "name: sub\nversion: 1.0.0\n"),
            ("charts/sub/values.yaml", "x: {a: 1, b: 2}\nz: 1\n"),
        ];
        let seen = seen(&files, json!({"sub": {"x": {"a": null}, "z": null}}));
        assert_eq!(seen, json!({"sub": {"x": {"b": 2}, "global": {}}}));
    }

    #[test]
    fn values_of_a_sub_chart_must_be_a_mapping() {
        let files = [("Chart.yaml", META), ("charts/sub/Chart.yaml", "name: sub\nversion: 1.0.0\n")];
        let tree =
            settle(&Tree::new(&std::sync::Arc::new(chart(&files))), &Values::new(), &mut Vec::new()).unwrap();
        let user = live::of(&values(json!({"sub": 7})));
        let error = coalesce(tree.root(), user, &mut Vec::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "values of sub-chart top.sub must be a mapping, not a number: put them under the key \"top.sub\""
        );
    }

    #[test]
    fn what_cannot_be_merged_is_left_and_told() {
        let chart = chart(&[("Chart.yaml", META), ("values.yaml", "a: {b: {c: 1}, t: 1}\nk: 1\n")]);
        let tree = settle(&Tree::new(&std::sync::Arc::new(chart)), &Values::new(), &mut Vec::new()).unwrap();
        let mut warnings = Vec::new();
        let user = values(json!({"a": {"b": 5, "t": {}}, "k": {}}));
        let got = coalesce(tree.root(), live::of(&user), &mut warnings).unwrap();
        assert_eq!(live::to_values(&got).unwrap(), user);
        assert_eq!(warnings.len(), 3, "{warnings:?}");
    }

    #[test]
    fn runtime_facts_win_over_set_and_mappers() {
        let got = for_special_resource(
            &values(json!({"kernelFullVersion": "mine", "a": {"x": 1, "y": 1}, "gone": 1})),
            &[values(json!({"a": {"y": 2}, "gone": null}))],
            &values(json!({"kernelFullVersion": "5.14"})),
        );
        assert_eq!(got, values(json!({"kernelFullVersion": "5.14", "a": {"x": 1, "y": 2}, "gone": null})));
    }

    #[test]
    fn overrides_of_a_watch_win_and_may_be_dotted() {
        let got = for_watch(
            &[values(json!({"a": 1, "b": 1})), values(json!({"b": 2}))],
            &values(json!({"b": 3, "image": {"tag": "t"}})),
            &[values(json!({"c": 4}))],
            &values(json!({"image.repository": "r", "c": 5})),
        )
        .unwrap();
        assert_eq!(got, values(json!({"a": 1, "b": 3, "c": 5, "image": {"tag": "t", "repository": "r"}})));
        let error = for_watch(&[], &values(json!({"a": 1})), &[], &values(json!({"a.b": 1}))).unwrap_err();
        assert_eq!(error.to_string(), "cannot set \"a.b\": \"a\" is no mapping");
    }
}
