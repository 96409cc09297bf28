//! The values that each chart of a tree sees, as Helm lays them over each other.
//!
//! Mappings inside `global` are the same for a chart and the charts in it, from the second level on: what a
//! sub-chart's defaults add there is seen by its parent, and by its siblings after it.

use std::sync::Arc;

use pintle_template::value::{Map, Value, as_map, thawed};
use serde_json::Value as Json;

use super::{Error, live};
use crate::dependencies::Node;

/// The key whose mapping each sub-chart sees.
const GLOBAL: &str = "global";

/// What a chart and the charts in it see: its defaults under `values`, which are changed. Sub-charts find
/// theirs under their name, and `global` in each. A null over a default deletes it.
///
/// # Errors
/// When the values of a sub-chart are no mapping.
pub(crate) fn coalesce(node: Node<'_>, values: Value, warnings: &mut Vec<String>) -> Result<Value, Error> {
    lay_tree(node, values, false, warnings)
}

/// What is known of defaults before they are used: as [`coalesce`] of no values, but nulls stay.
///
/// # Errors
/// When the values of a sub-chart are no mapping.
pub(crate) fn merge(node: Node<'_>, warnings: &mut Vec<String>) -> Result<Value, Error> {
    lay_tree(node, live::empty(), true, warnings)
}

/// Adds to `over` what only `under` has, nulls kept; both may be changed.
///
/// # Errors
/// When mappings are nested too deep.
pub(crate) fn merge_tables(over: &Value, under: &Value, warnings: &mut Vec<String>) -> Result<(), Error> {
    match (as_map(over), as_map(under)) {
        (Some(over), Some(under)) => Coalesce::new(true, warnings).tables(over, under, &Place::root(true)),
        _ => Ok(()),
    }
}

fn lay_tree(node: Node<'_>, values: Value, merge: bool, warnings: &mut Vec<String>) -> Result<Value, Error> {
    if let Some(table) = as_map(&values) {
        Coalesce::new(merge, warnings).chart(node, table, "")?;
    }
    Ok(values)
}

struct Coalesce<'a> {
    merge: bool,
    warnings: &'a mut Vec<String>,
    budget: live::Budget,
}

/// Where two mappings are laid over each other.
struct Place<'a> {
    /// For warnings.
    path: Path<'a>,
    depth: usize,
    /// Whether nulls stay.
    merge: bool,
}

/// A dotted path that is written down only when it is needed.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Text(&'a str),
    Below(&'a Path<'a>, &'a str),
}

// === impl Path ===

impl Path<'_> {
    fn text(self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Text(text) => text.to_owned(),
            Self::Below(parent, key) => join(&parent.text(), key),
        }
    }
}

// === impl Place ===

impl Place<'_> {
    fn root(merge: bool) -> Self {
        Self { path: Path::Root, depth: 0, merge }
    }
}

// === impl Coalesce ===

impl<'a> Coalesce<'a> {
    fn new(merge: bool, warnings: &'a mut Vec<String>) -> Self {
        Self { merge, warnings, budget: live::Budget::default() }
    }

    fn chart(&mut self, node: Node<'_>, values: &Map, prefix: &str) -> Result<(), Error> {
        let own = join(prefix, node.name());
        self.defaults(node, values, &own)?;
        for child in node.children() {
            let inner = match values.get(child.name()) {
                None => {
                    let inner = live::empty();
                    values.insert(child.name(), inner.clone());
                    inner
                }
                Some(inner) => inner,
            };
            let Some(inner) = as_map(&inner) else { return Err(no_table(&own, child.name(), &inner)) };
            self.globals(inner, values, &own)?;
            self.chart(child, inner, &own)?;
        }
        Ok(())
    }

    fn defaults(&mut self, node: Node<'_>, values: &Map, prefix: &str) -> Result<(), Error> {
        let defaults = node.defaults();
        for (key, default) in defaults.whole.iter() {
            let Some(value) = values.get(key) else {
                let from = if self.merge { &defaults.whole } else { &defaults.clean };
                if let Some(default) = from.get(key) {
                    values.insert(Arc::clone(key), thawed(default));
                }
                continue;
            };
            match (as_map(&value), as_map(default).is_some()) {
                (Some(over), true) => {
                    let merge = self.merge || node.children().any(|child| *child.name() == **key);
                    let from = if merge { &defaults.whole } else { &defaults.clean };
                    let under = from.get(key).map(thawed);
                    let parent = Path::Text(prefix);
                    let place = Place { path: Path::Below(&parent, key), depth: 0, merge };
                    under
                        .as_ref()
                        .and_then(as_map)
                        .map_or(Ok(()), |under| self.tables(over, under, &place))?;
                }
                (Some(_), false) if !default.is_none() => {
                    self.warnings.push(format!("skipped value for {prefix}.{key}: Not a table."));
                }
                _ if value.is_none() && !self.merge => drop(values.remove(key)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Lays the `global` of a chart over that of one inside it; what is no mapping is left alone.
    fn globals(&mut self, inner: &Map, outer: &Map, prefix: &str) -> Result<(), Error> {
        let own = inner.get(GLOBAL).unwrap_or_else(live::empty);
        let Some(table) = as_map(&own) else {
            self.warnings.push(format!("skipping globals because destination {GLOBAL} is not a table."));
            return Ok(());
        };
        if let Some(theirs) = outer.get(GLOBAL) {
            let Some(theirs) = as_map(&theirs) else {
                self.warnings.push(format!("skipping globals because source {GLOBAL} is not a table."));
                return Ok(());
            };
            self.lay_globals(table, theirs, prefix)?;
        }
        inner.insert(GLOBAL, own);
        Ok(())
    }

    fn lay_globals(&mut self, own: &Map, outer: &Map, prefix: &str) -> Result<(), Error> {
        for (key, value) in outer.snapshot() {
            let known = own.get(&key);
            let known_table = known.as_ref().and_then(as_map);
            match (as_map(&value), &known, known_table) {
                (Some(table), None, _) => drop(own.insert(key, live::shallow(table))),
                (Some(table), Some(_), Some(under)) => {
                    let over = live::shallow(table);
                    let parent = Path::Text(prefix);
                    let place = Place { path: Path::Below(&parent, &key), depth: 0, merge: true };
                    as_map(&over).map_or(Ok(()), |over| self.tables(over, under, &place))?;
                    own.insert(key, over);
                }
                (Some(_), Some(_), None) => self
                    .warnings
                    .push(format!("Conflict: cannot merge map onto non-map for {key:?}. Skipping.")),
                (None, _, Some(_)) => self.warnings.push(format!("key {key} is table. Skipping")),
                (None, _, None) => drop(own.insert(key, value)),
            }
        }
        Ok(())
    }

    /// Adds to `over` what only `under` has. Nulls of `over` are put into `under`, which may be in use elsewhere.
    fn tables(&mut self, over: &Map, under: &Map, place: &Place<'_>) -> Result<(), Error> {
        self.budget.take(under.len(), place.depth)?;
        let null = |(key, value): (&Arc<str>, &Value)| value.is_none().then(|| Arc::clone(key));
        let nulls: Vec<Arc<str>> = over.read().iter().filter_map(null).collect();
        for key in nulls {
            let deletes = !place.merge && under.get(&key).is_some_and(|value| !value.is_none());
            live::set_null(under, Arc::clone(&key));
            if deletes {
                over.remove(&key);
                // What is deleted is not added again.
                under.remove(&key);
            }
        }
        for (key, value) in under.snapshot() {
            self.entry(over, key, value, place)?;
        }
        Ok(())
    }

    fn entry(&mut self, over: &Map, key: Arc<str>, value: Value, place: &Place<'_>) -> Result<(), Error> {
        let Some(known) = over.get(&key) else {
            over.insert(key, value);
            return Ok(());
        };
        match (as_map(&known), as_map(&value)) {
            (Some(over), Some(under)) => {
                let path = Path::Below(&place.path, &key);
                self.tables(over, under, &Place { path, depth: place.depth + 1, merge: place.merge })?;
            }
            (None, Some(_)) => {
                let full = Path::Below(&place.path, &key).text();
                self.warnings.push(format!("cannot overwrite table with non table for {full}"));
            }
            (Some(_), None) if !value.is_none() => {
                let full = Path::Below(&place.path, &key).text();
                self.warnings.push(format!("destination for {full} is a table. Ignoring non-table value"));
            }
            _ => {}
        }
        Ok(())
    }
}

fn no_table(around: &str, key: &str, found: &Value) -> Error {
    match live::to_json(found) {
        Ok(value) => Error::NotATable {
            name: join(around, key),
            key: key.to_owned(),
            found: kind(&value).to_owned(),
            value: Box::new(value),
        },
        Err(error) => error,
    }
}

fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
}

fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a bool",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "a list",
        Json::Object(_) => "a mapping",
    }
}
