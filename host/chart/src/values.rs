//! Values: where they come from, which wins, and what each chart of a tree sees of them.
//!
//! Numbers keep the kind they came with: integers are Go's `int64` (`--set`, custom resources), floats its
//! `float64` (every number of a values file). Templates can tell them apart.

mod set;

pub use set::{SetError, set, set_file, set_json, set_literal, set_string};

use serde_json::{Map, Value};

use crate::{dependencies::Node, yaml};

/// A mapping of values.
pub type Values = Map<String, Value>;

/// The key whose mapping each sub-chart sees.
const GLOBAL: &str = "global";

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
        /// What is there.
        found: String,
        /// It itself.
        value: Box<Value>,
    },
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

/// What a chart and the charts in it see: its defaults under `values`. Sub-charts find theirs under their
/// name, and `global` in each. A null over a default deletes it.
///
/// # Errors
/// When the values of a sub-chart are no mapping.
pub(crate) fn coalesce(node: &Node, values: Values, warnings: &mut Vec<String>) -> Result<Values, Error> {
    Coalesce { merge: false, warnings }.chart(node, values, "")
}

/// As [`coalesce`], but nulls stay: what is known of defaults before they are used.
pub(crate) fn merge(node: &Node, values: Values, warnings: &mut Vec<String>) -> Result<Values, Error> {
    Coalesce { merge: true, warnings }.chart(node, values, "")
}

/// `under` below `over`, nulls kept: Helm's MergeTables.
pub(crate) fn merge_tables(over: &mut Values, under: Values, warnings: &mut Vec<String>) {
    Coalesce { merge: true, warnings }.tables(over, under, "", true);
}

/// The mapping at a dotted path.
pub(crate) fn table<'a>(values: &'a Values, path: &str) -> Option<&'a Values> {
    path.split('.').try_fold(values, |table, key| table.get(key)?.as_object())
}

/// The value at a dotted path that is no mapping.
pub(crate) fn scalar<'a>(values: &'a Values, path: &str) -> Option<&'a Value> {
    let (parent, key) = match path.rsplit_once('.') {
        Some((parent, key)) => (table(values, parent)?, key),
        None => (values, path),
    };
    parent.get(key).filter(|value| !value.is_object())
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

struct Coalesce<'a> {
    merge: bool,
    warnings: &'a mut Vec<String>,
}

impl Coalesce<'_> {
    fn chart(&mut self, node: &Node, mut values: Values, prefix: &str) -> Result<Values, Error> {
        let own = join(prefix, &node.name);
        self.defaults(node, &mut values, &own);
        for child in &node.children {
            let inner = match values.remove(&child.name) {
                None => Values::new(),
                Some(Value::Object(inner)) => inner,
                Some(other) => {
                    return Err(Error::NotATable {
                        name: join(&own, &child.name),
                        found: kind(&other).to_owned(),
                        value: Box::new(other),
                    });
                }
            };
            let inner = self.globals(inner, values.get(GLOBAL), &own);
            let inner = self.chart(child, inner, &own)?;
            values.insert(child.name.clone(), Value::Object(inner));
        }
        Ok(values)
    }

    fn defaults(&mut self, node: &Node, values: &mut Values, prefix: &str) {
        for (key, default) in node.values() {
            let Some(value) = values.get_mut(key) else {
                if self.merge {
                    values.insert(key.clone(), default.clone());
                } else if !default.is_null() {
                    values.insert(key.clone(), without_nulls(default.clone()));
                }
                continue;
            };
            match (value, default) {
                (Value::Null, _) if !self.merge => drop(values.remove(key)),
                (Value::Object(over), Value::Object(under)) => {
                    let merge = self.merge || node.children.iter().any(|child| child.name == *key);
                    let under = if merge { under.clone() } else { clean(under.clone()) };
                    self.tables(over, under, &join(prefix, key), merge);
                }
                (Value::Object(_), default) if !default.is_null() => {
                    self.warnings.push(format!("skipped value for {prefix}.{key}: Not a table."));
                }
                _ => {}
            }
        }
    }

    /// The values of a sub-chart with the `global` of those around it; what is no mapping is left alone.
    fn globals(&mut self, mut inner: Values, outer: Option<&Value>, prefix: &str) -> Values {
        let outer = match outer {
            None => None,
            Some(Value::Object(outer)) => Some(outer),
            Some(_) => {
                self.warnings.push(format!("skipping globals because source {GLOBAL} is not a table."));
                return inner;
            }
        };
        let own = inner.entry(GLOBAL).or_insert_with(|| Value::Object(Values::new()));
        match own.as_object_mut() {
            Some(own) => outer.into_iter().for_each(|outer| self.lay_globals(own, outer, prefix)),
            None => {
                self.warnings.push(format!("skipping globals because destination {GLOBAL} is not a table."));
            }
        }
        inner
    }

    fn lay_globals(&mut self, own: &mut Values, outer: &Values, prefix: &str) {
        for (key, value) in outer {
            match (value, own.get_mut(key)) {
                (Value::Object(table), Some(Value::Object(slot))) => {
                    let mut over = table.clone();
                    self.tables(&mut over, std::mem::take(slot), &join(prefix, key), true);
                    *slot = over;
                }
                (Value::Object(_), Some(_)) => {
                    self.warnings
                        .push(format!("Conflict: cannot merge map onto non-map for {key:?}. Skipping."));
                }
                (_, Some(Value::Object(_))) => self.warnings.push(format!("key {key} is table. Skipping")),
                _ => drop(own.insert(key.clone(), value.clone())),
            }
        }
    }

    /// `over` with what `under` adds.
    fn tables(&mut self, over: &mut Values, under: Values, prefix: &str, merge: bool) {
        for (key, value) in under {
            let full = join(prefix, &key);
            let Some(slot) = over.get_mut(&key) else {
                over.insert(key, value);
                continue;
            };
            match (slot, value) {
                (Value::Null, value) if !merge && !value.is_null() => drop(over.remove(&key)),
                (Value::Object(over), Value::Object(under)) => self.tables(over, under, &full, merge),
                // Helm puts the nulls of `over` into `under` first, so a null here meets a null.
                (Value::Null, _) | (_, Value::Null) => {}
                (_, Value::Object(_)) => {
                    self.warnings.push(format!("cannot overwrite table with non table for {full}"));
                }
                (Value::Object(_), _) => {
                    self.warnings
                        .push(format!("destination for {full} is a table. Ignoring non-table value"));
                }
                _ => {}
            }
        }
    }
}

fn clean(table: Values) -> Values {
    let kept = table.into_iter().filter(|(_, value)| !value.is_null());
    kept.map(|(key, value)| (key, without_nulls(value))).collect()
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(table) => Value::Object(clean(table)),
        other => other,
    }
}

fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;
    use crate::{chart::tests::chart, dependencies::settle};

    const META: &str = "apiVersion: v2\nname: top\nversion: 1.0.0\n";

    fn values(json: Value) -> Values {
        json.as_object().unwrap().clone()
    }

    /// What the tree of charts sees of `user`, as JSON with Go's numbers.
    fn seen(files: &[(&str, &str)], user: Value) -> Value {
        let node =
            settle(&std::sync::Arc::new(chart(files)), &values(user.clone()), &mut Vec::new()).unwrap();
        yaml::integers(&Value::Object(coalesce(&node, values(user), &mut Vec::new()).unwrap()))
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
        let node = settle(&std::sync::Arc::new(chart(&files)), &Values::new(), &mut Vec::new()).unwrap();
        let error = coalesce(&node, values(json!({"sub": 7})), &mut Vec::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "values of sub-chart top.sub must be a mapping, not a number: put them under the key \"top.sub\""
        );
    }

    #[test]
    fn what_cannot_be_merged_is_left_and_told() {
        let chart = chart(&[("Chart.yaml", META), ("values.yaml", "a: {b: {c: 1}, t: 1}\nk: 1\n")]);
        let node = settle(&std::sync::Arc::new(chart), &Values::new(), &mut Vec::new()).unwrap();
        let mut warnings = Vec::new();
        let user = values(json!({"a": {"b": 5, "t": {}}, "k": {}}));
        let got = coalesce(&node, user.clone(), &mut warnings).unwrap();
        assert_eq!(got, user);
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
