//! Which charts inside a chart take part, under which name, and what they lend their parent.
//!
//! Helm decides on charts that are shared: a chart that goes by two aliases is two charts whose inner charts
//! may be the same ones. They are therefore numbered here, and so is their metadata.

mod import;

use std::sync::Arc;

use pintle_template::{
    semver,
    value::{Value, as_map},
};

use crate::{
    chart::Chart,
    metadata::{Dependency, Metadata},
    values::{
        self, Values,
        live::{self, Defaults},
    },
};

/// Charts of a tree with the copies that aliases make of them. The largest public charts have 100; copies of
/// copies would be without end.
pub(crate) const MAX_CHARTS: usize = 5_000;

/// A tree of charts of which some take part.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// The first is the chart that is installed.
    members: Vec<Member>,
    metadata: Vec<Arc<Metadata>>,
}

/// A chart of the tree, which may have left it.
#[derive(Clone, Debug)]
struct Member {
    chart: Arc<Chart>,
    /// Number of its metadata, which copies may share.
    metadata: usize,
    /// Its defaults, with what was imported from children where that was done.
    defaults: Defaults,
    /// The chart whose name stands before its own in the names of its templates.
    parent: Option<usize>,
    children: Vec<usize>,
}

/// A chart that takes part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    tree: &'a Tree,
    at: usize,
}

/// The charts of a tree that take part with these values: conditions, tags and aliases are decided, and
/// values are imported.
///
/// # Errors
/// When the values of a sub-chart are no mapping, or a limit is met.
pub(crate) fn settle(all: &Tree, user: &Values, warnings: &mut Vec<String>) -> Result<Tree, values::Error> {
    let mut tree = all.clone();
    let mut decide = || {
        if tree.node(0).metadata().lists_dependencies() {
            tree.enable(0, &live::of(user), "", warnings)?;
        }
        tree.import(0, warnings)
    };
    match decide() {
        Ok(()) => Ok(tree),
        Err(error) => Err(values::Error::Deciding(Box::new(error))),
    }
}

// === impl Node ===

impl<'a> Node<'a> {
    /// Its name, or the alias it goes by: the key of its values and a part of its templates' names.
    pub(crate) fn name(self) -> &'a str {
        &self.metadata().name
    }

    /// What was loaded.
    pub(crate) fn chart(self) -> &'a Chart {
        &self.member().chart
    }

    /// [`Node::chart`], to be kept.
    pub(crate) fn shared_chart(self) -> &'a Arc<Chart> {
        &self.member().chart
    }

    /// `Chart.yaml` with the dependencies that are on, under their aliases.
    pub(crate) fn metadata(self) -> &'a Metadata {
        let tree = self.tree;
        &tree.metadata[self.member().metadata]
    }

    /// The charts inside that take part.
    pub(crate) fn children(self) -> impl Iterator<Item = Node<'a>> {
        let tree = self.tree;
        self.member().children.iter().map(move |at| Node { tree, at: *at })
    }

    /// The chart's defaults, with what it imports from those inside.
    pub(crate) fn defaults(self) -> &'a Defaults {
        &self.member().defaults
    }

    /// Whether it is the chart that is installed.
    pub(crate) fn is_root(self) -> bool {
        self.member().parent.is_none()
    }

    /// What stands before its files in the names of templates: `top/charts/sub`. Charts inside one that goes by an
    /// alias may still be under its own name.
    pub(crate) fn path(self) -> String {
        match self.member().parent {
            Some(parent) => format!("{}/charts/{}", self.tree.node(parent).path(), self.name()),
            None => self.name().to_owned(),
        }
    }

    fn member(self) -> &'a Member {
        &self.tree.members[self.at]
    }
}

// === impl Tree ===

impl Tree {
    /// The tree as it lies in the archive.
    pub(crate) fn new(chart: &Arc<Chart>) -> Self {
        let mut tree = Self { members: Vec::new(), metadata: Vec::new() };
        tree.load(chart, None);
        tree
    }

    /// The chart that is installed.
    pub(crate) fn root(&self) -> Node<'_> {
        self.node(0)
    }

    fn load(&mut self, chart: &Arc<Chart>, parent: Option<usize>) -> usize {
        let at = self.members.len();
        self.metadata.push(Arc::clone(&chart.metadata));
        self.members.push(Member {
            chart: Arc::clone(chart),
            metadata: self.metadata.len() - 1,
            defaults: Defaults::of(&chart.defaults),
            parent,
            children: Vec::new(),
        });
        let children = chart.dependencies.iter().map(|inner| self.load(inner, Some(at))).collect();
        self.members[at].children = children;
        at
    }

    fn node(&self, at: usize) -> Node<'_> {
        Node { tree: self, at }
    }

    fn metadata_of(&mut self, at: usize) -> &mut Metadata {
        Arc::make_mut(&mut self.metadata[self.members[at].metadata])
    }

    /// Adds a copy of a chart that shares its children and, until it is given its own, its metadata.
    fn copy(&mut self, at: usize, parent: Option<usize>) -> Result<usize, values::Error> {
        if self.members.len() >= MAX_CHARTS {
            return Err(values::Error::TooManyCharts);
        }
        let member = Member { parent, ..self.members[at].clone() };
        self.members.push(member);
        Ok(self.members.len() - 1)
    }

    fn set_children(&mut self, at: usize, children: Vec<usize>) {
        for child in &children {
            self.members[*child].parent = Some(at);
        }
        self.members[at].children = children;
    }

    /// `outer` are the values of the charts around, from the root on; `path` leads from there to this chart, which
    /// lists dependencies.
    fn enable(
        &mut self,
        at: usize,
        outer: &Value,
        path: &str,
        warnings: &mut Vec<String>,
    ) -> Result<(), values::Error> {
        self.take_aliases(at)?;
        let seen = values::coalesce(self.node(at), live::copy(outer)?, warnings)?;
        let mut dependencies = self.node(at).metadata().dependencies.clone();
        for dependency in &mut dependencies {
            dependency.enabled =
                by_condition(dependency, &seen, path).unwrap_or_else(|| by_tags(dependency, &seen));
        }
        let off: Vec<String> =
            dependencies.iter().filter(|one| !one.enabled).map(|one| one.name.clone()).collect();
        let mut children = self.members[at].children.clone();
        children.retain(|child| off.iter().all(|name| name != self.node(*child).name()));
        for child in &children {
            if self.node(*child).metadata().lists_dependencies() {
                let path = format!("{path}{}.", self.node(*child).name());
                self.enable(*child, &seen, &path, warnings)?;
            }
        }
        dependencies.retain(|dependency| !off.contains(&dependency.name));
        self.metadata_of(at).keep_dependencies(dependencies);
        self.set_children(at, children);
        Ok(())
    }

    /// Those nobody required come first; then one child for each requirement that one fits, under its alias.
    fn take_aliases(&mut self, at: usize) -> Result<(), values::Error> {
        let present = self.members[at].children.clone();
        let required = self.node(at).metadata().dependencies.clone();
        let is_required = |child: &&usize| required.iter().any(|wanted| self.fits(**child, wanted));
        let mut children: Vec<usize> = present.iter().filter(|child| !is_required(child)).copied().collect();
        for wanted in &required {
            if let Some(found) = present.iter().find(|child| self.fits(**child, wanted)) {
                children.push(self.copy_as(*found, at, &wanted.alias)?);
            }
        }
        for wanted in &mut self.metadata_of(at).dependencies {
            if !wanted.alias.is_empty() {
                wanted.name.clone_from(&wanted.alias);
            }
        }
        self.set_children(at, children);
        Ok(())
    }

    /// A copy with metadata and children of its own; their children and metadata stay shared.
    fn copy_as(&mut self, at: usize, parent: usize, alias: &str) -> Result<usize, values::Error> {
        let copy = self.copy(at, Some(parent))?;
        self.metadata.push(Arc::clone(&self.metadata[self.members[at].metadata]));
        self.members[copy].metadata = self.metadata.len() - 1;
        let children = self.members[at].children.clone();
        let children: Result<Vec<usize>, _> =
            children.into_iter().map(|child| self.copy(child, Some(copy))).collect();
        self.members[copy].children = children?;
        if !alias.is_empty() {
            alias.clone_into(&mut self.metadata_of(copy).name);
        }
        Ok(copy)
    }

    fn fits(&self, child: usize, wanted: &Dependency) -> bool {
        let metadata = self.node(child).metadata();
        metadata.name == wanted.name && is_compatible(&wanted.version, &metadata.version)
    }
}

/// Helm's compatibility: both must be readable, and the version one of those asked for.
pub(crate) fn is_compatible(constraint: &str, version: &str) -> bool {
    match (semver::Constraint::parse(constraint), semver::Version::parse(version)) {
        (Ok(constraint), Ok(version)) => constraint.matches(&version),
        _ => false,
    }
}

fn by_condition(dependency: &Dependency, seen: &Value, path: &str) -> Option<bool> {
    let conditions = dependency.condition.trim().split(',').filter(|condition| !condition.is_empty());
    conditions.map(|condition| format!("{path}{condition}")).find_map(|path| live::flag(seen, &path))
}

/// One true tag switches it on; without one, a false tag switches it off.
fn by_tags(dependency: &Dependency, seen: &Value) -> bool {
    let Some(tags) = live::table(seen, "tags") else { return true };
    let tag = |tag: &String| live::as_bool(&as_map(&tags)?.get(tag)?);
    let mut given = dependency.tags.iter().filter_map(tag).peekable();
    given.peek().is_none() || given.any(|tag| tag)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use pintle_template::value::frozen_map;
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::{chart::tests::chart, yaml};

    fn top(dependencies: &str) -> String {
        format!("apiVersion: v2\nname: top\nversion: 1.0.0\ndependencies:\n{dependencies}")
    }

    fn settled(files: &[(&str, &str)], user: Json) -> Tree {
        settle(&Tree::new(&Arc::new(chart(files))), user.as_object().unwrap(), &mut Vec::new()).unwrap()
    }

    fn names(node: Node<'_>) -> Vec<String> {
        let mut all: Vec<String> = node.children().map(|child| child.name().to_owned()).collect();
        for child in node.children() {
            all.extend(names(child).into_iter().map(|name| format!("{}/{name}", child.name())));
        }
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
            let tree = settled(&files, user.clone());
            assert_eq!(names(tree.root()), on, "{user}");
            assert_eq!(tree.root().metadata().dependencies.len(), on.len(), "{user}");
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
        assert_eq!(names(settled(&files, json!({})).root()), ["a"]);
        assert_eq!(names(settled(&files, json!({"a": {"c": {"active": true}}})).root()), ["a", "a/c"]);
    }

    #[test]
    fn an_alias_makes_a_copy_of_its_own() {
        let meta = top(
            "- {name: a, version: '*', alias: one}\n- {name: a, version: '>1', alias: two}\n- {name: b, version: '9'}\n",
        );
        let tree = settled(&[("Chart.yaml", meta.as_str()), A, B], json!({}));
        // `b` does not fit its requirement, so it counts as one that nobody required.
        assert_eq!(names(tree.root()), ["b", "one"]);
        let meta = top("- {name: a, version: '*', alias: one}\n- {name: a, version: '1.x', alias: two}\n");
        assert_eq!(names(settled(&[("Chart.yaml", meta.as_str()), A], json!({})).root()), ["one", "two"]);
    }

    #[test]
    fn values_are_imported_below_the_parents_own() {
        let meta = top(
            "- {name: a, version: '*', import-values: [data, {child: deep.in, parent: into.here}, nope]}\n",
        );
        let tree = settled(
            &[
                ("Chart.yaml", meta.as_str()),
                ("values.yaml", "x: mine\n"),
                A,
                ("charts/a/values.yaml", "exports: {data: {x: theirs, z: 1}}\ndeep: {in: {k: v}}\n"),
            ],
            json!({}),
        );
        let defaults = frozen_map(Arc::clone(&tree.root().defaults().whole));
        let seen = yaml::integers(&live::to_json(&defaults).unwrap());
        assert_eq!(seen["x"], "mine");
        assert_eq!(seen["z"], 1);
        assert_eq!(seen["into"], json!({"here": {"k": "v"}}));
        assert_eq!(tree.root().metadata().dependencies[0].import_values.len(), 3);
    }

    fn refused(files: &[(&str, &str)]) -> values::Error {
        match settle(&Tree::new(&Arc::new(chart(files))), &Values::new(), &mut Vec::new()).unwrap_err() {
            values::Error::Deciding(error) => *error,
            other => other,
        }
    }

    #[test]
    fn a_mapping_that_is_imported_into_itself_is_refused() {
        let meta = top(
            "- {name: a, version: '*', import-values: [{child: in, parent: .}, {child: in, parent: k.z}]}\n",
        );
        let values = ("charts/a/values.yaml", "in: {k: {x: 1}}\n");
        let error = refused(&[("Chart.yaml", meta.as_str()), A, values]);
        assert!(matches!(error, values::Error::TooDeep), "{error}");
    }

    #[test]
    fn aliases_of_aliases_end_at_a_limit() {
        let aliases: String =
            (0..30).map(|number| format!("- {{name: n, version: '*', alias: n{number}}}\n")).collect();
        let chart =
            |name: &str| format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\ndependencies:\n{aliases}");
        let (meta, inner) = (chart("top"), chart("n"));
        let error = refused(&[
            ("Chart.yaml", &meta),
            ("charts/n/Chart.yaml", &inner),
            ("charts/n/charts/n/Chart.yaml", &inner),
            ("charts/n/charts/n/charts/n/Chart.yaml", &inner),
        ]);
        assert!(matches!(error, values::Error::TooManyCharts), "{error}");
    }
}
