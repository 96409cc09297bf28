//! Which charts inside a chart take part, under which name, and what they lend their parent.

use std::sync::Arc;

use pintle_template::semver;
use serde_json::{Value, json};

use crate::{
    chart::Chart,
    metadata::{Dependency, Metadata},
    values::{self, Values},
};

/// A chart of the tree that takes part in a render.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Its name, or the alias it goes by: the key of its values and a part of its templates' names.
    pub(crate) name: String,
    /// What was loaded.
    pub(crate) chart: Arc<Chart>,
    /// `Chart.yaml` with the dependencies that are on, under their aliases.
    pub(crate) metadata: Metadata,
    /// The charts inside that take part.
    pub(crate) children: Vec<Node>,
    /// Defaults with what was imported from children, where that was done.
    imported: Option<Values>,
}

/// The tree of charts that take part with these values: conditions, tags and aliases are decided, and
/// values are imported.
///
/// # Errors
/// When the values of a sub-chart are no mapping.
pub(crate) fn settle(
    chart: &Arc<Chart>,
    user: &Values,
    warnings: &mut Vec<String>,
) -> Result<Node, values::Error> {
    let mut node = Node::new(chart);
    node.enable(user, "", warnings)?;
    node.import(warnings)?;
    Ok(node)
}

impl Node {
    /// The tree as it lies in the archive.
    fn new(chart: &Arc<Chart>) -> Self {
        Self {
            name: chart.metadata.name.clone(),
            chart: Arc::clone(chart),
            metadata: chart.metadata.clone(),
            children: chart.dependencies.iter().map(Self::new).collect(),
            imported: None,
        }
    }

    /// The chart's defaults.
    pub(crate) fn values(&self) -> &Values {
        self.imported.as_ref().unwrap_or(&self.chart.values)
    }

    /// `outer` are the values of the charts around, from the root on; `path` leads from there to this chart.
    fn enable(
        &mut self,
        outer: &Values,
        path: &str,
        warnings: &mut Vec<String>,
    ) -> Result<(), values::Error> {
        if self.metadata.dependencies.is_empty() {
            return Ok(());
        }
        self.take_aliases();
        let seen = values::coalesce(self, outer.clone(), warnings)?;
        for dependency in &mut self.metadata.dependencies {
            dependency.enabled =
                by_condition(dependency, &seen, path).unwrap_or_else(|| by_tags(dependency, &seen));
        }
        let dependencies = std::mem::take(&mut self.metadata.dependencies);
        let (on, off): (Vec<_>, Vec<_>) = dependencies.into_iter().partition(|dependency| dependency.enabled);
        self.metadata.dependencies = on;
        self.children.retain(|child| off.iter().all(|dependency| dependency.name != child.name));
        for child in &mut self.children {
            let path = format!("{path}{}.", child.name);
            child.enable(&seen, &path, warnings)?;
        }
        Ok(())
    }

    /// One child for each requirement that one fits, under its alias; then those nobody required stay first.
    fn take_aliases(&mut self) {
        let present = std::mem::take(&mut self.children);
        let required = &self.metadata.dependencies;
        let mut children: Vec<Self> = present
            .iter()
            .filter(|child| !required.iter().any(|dependency| child.fits(dependency)))
            .cloned()
            .collect();
        for dependency in &mut self.metadata.dependencies {
            if let Some(found) = present.iter().find(|child| child.fits(dependency)) {
                let mut child = found.clone();
                if !dependency.alias.is_empty() {
                    child.name.clone_from(&dependency.alias);
                    child.metadata.name.clone_from(&dependency.alias);
                }
                children.push(child);
            }
            if !dependency.alias.is_empty() {
                dependency.name.clone_from(&dependency.alias);
            }
        }
        self.children = children;
    }

    fn fits(&self, dependency: &Dependency) -> bool {
        self.name == dependency.name && is_compatible(&dependency.version, &self.metadata.version)
    }

    fn import(&mut self, warnings: &mut Vec<String>) -> Result<(), values::Error> {
        for child in &mut self.children {
            child.import(warnings)?;
        }
        if self.metadata.dependencies.is_empty() {
            return Ok(());
        }
        let mut seen = values::merge(self, Values::new(), warnings)?;
        let mut imported = Values::new();
        for dependency in &mut self.metadata.dependencies {
            let mut kept = Vec::new();
            for wanted in std::mem::take(&mut dependency.import_values) {
                let Some((child, parent)) = import_paths(&wanted) else { continue };
                kept.push(json!({"child": child, "parent": parent}));
                let from = format!("{}.{child}", dependency.name);
                match values::table(&seen, &from) {
                    Some(table) => {
                        values::merge_tables(&mut imported, under(&parent, table.clone()), warnings);
                    }
                    None => warnings.push(format!("import-values: there is no table {from}")),
                }
            }
            dependency.import_values = kept;
        }
        values::merge_tables(&mut seen, imported, warnings);
        self.imported = Some(seen);
        Ok(())
    }
}

/// Helm's compatibility: both must be readable, and the version one of those asked for.
pub(crate) fn is_compatible(constraint: &str, version: &str) -> bool {
    match (semver::Constraint::parse(constraint), semver::Version::parse(version)) {
        (Ok(constraint), Ok(version)) => constraint.matches(&version),
        _ => false,
    }
}

fn by_condition(dependency: &Dependency, seen: &Values, path: &str) -> Option<bool> {
    let conditions = dependency.condition.trim().split(',').filter(|condition| !condition.is_empty());
    conditions
        .filter_map(|condition| values::scalar(seen, &format!("{path}{condition}")))
        .find_map(Value::as_bool)
}

/// One true tag switches it on; without one, a false tag switches it off.
fn by_tags(dependency: &Dependency, seen: &Values) -> bool {
    let Some(tags) = values::table(seen, "tags") else { return true };
    let mut given = dependency.tags.iter().filter_map(|tag| tags.get(tag)?.as_bool()).peekable();
    given.peek().is_none() || given.any(|tag| tag)
}

fn import_paths(wanted: &Value) -> Option<(String, String)> {
    match wanted {
        Value::String(name) => Some((format!("exports.{name}"), ".".to_owned())),
        Value::Object(paths) => {
            let path = |key| paths.get(key).map_or_else(|| "<nil>".to_owned(), text);
            Some((path("child"), path("parent")))
        }
        _ => None,
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn under(path: &str, table: Values) -> Values {
    if path == "." {
        return table;
    }
    path.rsplit('.').fold(table, |inner, key| Values::from_iter([(key.to_owned(), Value::Object(inner))]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;
    use crate::{chart::tests::chart, yaml};

    fn top(dependencies: &str) -> String {
        format!("apiVersion: v2\nname: top\nversion: 1.0.0\ndependencies:\n{dependencies}")
    }

    fn settled(files: &[(&str, &str)], user: Value) -> Node {
        settle(&Arc::new(chart(files)), user.as_object().unwrap(), &mut Vec::new()).unwrap()
    }

    fn names(node: &Node) -> Vec<String> {
        let below =
            |child: &Node| names(child).into_iter().map(|name| format!("{}/{name}", child.name)).collect();
        let mut all: Vec<String> = node.children.iter().map(|child| child.name.clone()).collect();
        all.extend(node.children.iter().flat_map(|child| -> Vec<String> { below(child) }));
        all.sort();
        all
    }

    const A: (&str, &str) = ("charts/a/Chart.yaml", "name: a\nversion: 1.2.0\n");
    const B: (&str, &str) = ("charts/b/Chart.yaml", "name: b\nversion: 2.0.0\n");

    #[test]
    fn conditions_beat_tags_and_the_first_that_is_there_decides() {
        let meta = top(
            "- {name: a, version: '*', condition: 'a.on,x.on', tags: [t, u]}\n- {name: b, version: '*', tags: [u]}\n",
        );
        let files = [("Chart.yaml", meta.as_str()), A, B];
        for (user, on) in [
            (json!({}), vec!["a", "b"]),
            (json!({"tags": {"u": false}}), vec![]),
            (json!({"tags": {"u": false, "t": true}}), vec!["a"]),
            (json!({"tags": {"t": false}}), vec!["b"]),
            (json!({"tags": {"u": false}, "x": {"on": true}}), vec!["a"]),
            (json!({"a": {"on": false}, "x": {"on": true}}), vec!["b"]),
            (json!({"a": {"on": "no"}, "x": {"on": false}}), vec!["b"]),
        ] {
            let node = settled(&files, user.clone());
            assert_eq!(names(&node), on, "{user}");
            assert_eq!(node.metadata.dependencies.len(), on.len(), "{user}");
        }
    }

    #[test]
    fn conditions_of_inner_charts_are_paths_from_the_root() {
        let meta = top("- {name: a, version: '*'}\n");
        let files = [
            ("Chart.yaml", meta.as_str()),
            (
                "charts/a/Chart.yaml",
                "apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies:\n- {name: c, version: '*', condition: c.active}\n",
            ),
            ("charts/a/values.yaml", "c: {active: false}\n"),
            ("charts/a/charts/c/Chart.yaml", "name: c\nversion: 1.0.0\n"),
        ];
        assert_eq!(names(&settled(&files, json!({}))), ["a"]);
        assert_eq!(names(&settled(&files, json!({"a": {"c": {"active": true}}}))), ["a", "a/c"]);
    }

    #[test]
    fn an_alias_makes_a_copy_of_its_own() {
        let meta = top(
            "- {name: a, version: '*', alias: one}\n- {name: a, version: '>1', alias: two}\n- {name: b, version: '9'}\n",
        );
        let node = settled(&[("Chart.yaml", meta.as_str()), A, B], json!({}));
        // `b` does not fit its requirement, so it counts as one that nobody required.
        assert_eq!(names(&node), ["b", "one"]);
        let meta = top("- {name: a, version: '*', alias: one}\n- {name: a, version: '1.x', alias: two}\n");
        assert_eq!(names(&settled(&[("Chart.yaml", meta.as_str()), A], json!({}))), ["one", "two"]);
    }

    #[test]
    fn values_are_imported_below_the_parents_own() {
        let meta = top(
            "- {name: a, version: '*', import-values: [data, {child: deep.in, parent: into.here}, nope]}\n",
        );
        let node = settled(
            &[
                ("Chart.yaml", meta.as_str()),
                ("values.yaml", "x: mine\n"),
                A,
                ("charts/a/values.yaml", "exports: {data: {x: theirs, z: 1}}\ndeep: {in: {k: v}}\n"),
            ],
            json!({}),
        );
        let seen = yaml::integers(&Value::Object(node.values().clone()));
        assert_eq!(seen["x"], "mine");
        assert_eq!(seen["z"], 1);
        assert_eq!(seen["into"], json!({"here": {"k": "v"}}));
        assert_eq!(node.metadata.dependencies[0].import_values.len(), 3);
    }
}
