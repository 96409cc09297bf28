//! Where values were written: the file and the line behind what a template or a schema complains about.

use pintle_template::yaml;

use crate::{
    chart::Chart,
    render::RenderError,
    schema::{SchemaError, Violation},
    values::Values,
};

/// One source of values over the chart's defaults.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A file, by the name people know it by, and its text.
    File {
        /// As given.
        name: String,
        /// YAML.
        text: String,
    },
    /// Something without lines: a flag, an object.
    Other {
        /// As people know it.
        name: String,
        /// What it sets.
        values: Values,
    },
}

/// Sentences that say where the values behind an error come from; none where the error is about no value.
///
/// `origins` are those over the chart's defaults, a later one over the earlier.
#[must_use]
pub fn hints(error: &RenderError, chart: &Chart, origins: &[Origin]) -> Vec<String> {
    let sources = Sources { chart, origins };
    match error {
        RenderError::Template(error) => sources.of_template(error).into_iter().collect(),
        RenderError::Schema(error) => sources.of_schema(error),
        _ => Vec::new(),
    }
}

struct Sources<'a> {
    chart: &'a Chart,
    origins: &'a [Origin],
}

/// A place where something is set; without a line where there are none.
struct Place {
    name: String,
    line: Option<u64>,
}

// === impl Sources ===

impl Sources<'_> {
    fn of_template(&self, error: &pintle_template::Error) -> Option<String> {
        let read: Vec<&str> = error.values_path().iter().map(|key| &**key).collect();
        let (_, parents) = read.split_last()?;
        let scope = scope_of(error.frames().last()?.file());
        if let Some(place) = self.find(&scope, &read) {
            return Some(format!("{place} sets .Values.{}", read.join(".")));
        }
        let is_set = |length: usize| Some((length, self.find(&scope, read.get(..length)?)?));
        Some(match (1..=parents.len()).rev().find_map(is_set) {
            Some((length, place)) => {
                let found = read.get(..length).unwrap_or_default().join(".");
                format!("{place} sets .Values.{found}; nothing sets .Values.{}", read.join("."))
            }
            None => format!("nothing sets .Values.{}", read.join(".")),
        })
    }

    fn of_schema(&self, error: &SchemaError) -> Vec<String> {
        let mut hints = Vec::new();
        for chart in &error.charts {
            let scope: Vec<&str> = chart.path.iter().map(String::as_str).collect();
            for violation in &chart.violations {
                self.of_violation(&scope, violation, &mut hints);
            }
        }
        hints
    }

    fn of_violation(&self, scope: &[&str], violation: &Violation, hints: &mut Vec<String>) {
        if violation.is_group {
            return violation.causes.iter().for_each(|cause| self.of_violation(scope, cause, hints));
        }
        let keys: Vec<String> = violation.at.split('/').skip(1).map(unescaped).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        if let Some(place) = self.find(scope, &keys) {
            hints.push(format!("{place}: {}: {}", keys.join("."), violation.problem));
        }
    }

    /// Where what a chart of the tree sees under these keys is set, by who wins.
    fn find(&self, scope: &[&str], keys: &[&str]) -> Option<Place> {
        // A global may be set in each chart on the way, and those around win.
        let from = if keys.first() == Some(&"global") { 0 } else { scope.len() };
        (from..=scope.len()).find_map(|depth| {
            let path: Vec<&str> = scope.get(..depth)?.iter().chain(keys).copied().collect();
            self.find_path(&path)
        })
    }

    fn find_path(&self, path: &[&str]) -> Option<Place> {
        if path.is_empty() {
            return None;
        }
        let given = self.origins.iter().rev().find_map(|origin| origin.find(path));
        given.or_else(|| default_of(self.chart, "values.yaml", path))
    }
}

impl Origin {
    fn find(&self, path: &[&str]) -> Option<Place> {
        match self {
            Self::File { name, text } => {
                let line = yaml::line_of(text, path)?;
                Some(Place { name: name.clone(), line: Some(line) })
            }
            Self::Other { name, values } => {
                let (last, parents) = path.split_last()?;
                let table = parents.iter().try_fold(values, |table, key| table.get(*key)?.as_object())?;
                table.contains_key(*last).then(|| Place { name: name.clone(), line: None })
            }
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The default of a chart, or of the chart in it whose name the path begins with.
fn default_of(chart: &Chart, file: &str, path: &[&str]) -> Option<Place> {
    if let Some(line) = yaml::line_of(&chart.values_text, path) {
        return Some(Place { name: file.to_owned(), line: Some(line) });
    }
    let (first, rest) = path.split_first()?;
    let alias = chart.metadata.dependencies.iter().find(|dependency| dependency.alias == *first);
    let name = alias.map_or(*first, |dependency| dependency.name.as_str());
    let inner = chart.dependencies.iter().find(|inner| inner.name() == name)?;
    if rest.is_empty() {
        return None;
    }
    default_of(inner, &format!("{}charts/{name}/values.yaml", file.strip_suffix("values.yaml")?), rest)
}

/// The charts on the way from the top to a template: `top/charts/a/charts/b/templates/x.yaml` is in `a`, `b`.
fn scope_of(template: &str) -> Vec<&str> {
    let mut parts = template.split('/').skip(1);
    let mut scope = Vec::new();
    while parts.next() == Some("charts") {
        scope.extend(parts.next());
    }
    scope
}

fn unescaped(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use std::sync::Arc;

    use pintle_template::{NoCluster, Run};

    use super::*;
    use crate::{Capabilities, Compiled, Files, Order, Release, RenderInput, chart::tests::chart, values};

    const META: (&str, &str) = (
        "Chart.yaml",
        "apiVersion: v2\nname: top\nversion: 1.0.0\ndependencies:\n- {name: sub, version: 1.0.0, alias: other}\n",
    );
    const SUB: (&str, &str) = ("charts/sub/Chart.yaml", "name: sub\nversion: 1.0.0\n");
    const SUB_VALUES: (&str, &str) = ("charts/sub/values.yaml", "x: 1\nport: many\n");
    const VALUES: (&str, &str) = ("values.yaml", "# defaults\nimage:\n  tag: v1\nglobal: {zone: a}\n");

    fn of(files: &[(&str, &str)], user: &str) -> Vec<String> {
        let chart = chart(&[&[META, SUB, SUB_VALUES, VALUES], files].concat());
        let compiled = Compiled::new(Arc::new(chart)).unwrap();
        let release = Release { name: "r".into(), namespace: "n".into(), revision: 1, is_upgrade: false };
        let given = values::parse(user).unwrap();
        let input = RenderInput {
            release: &release,
            values: &given,
            capabilities: &Capabilities::default(),
            files: Files::All,
            order: Order::Install,
            run: Run::new(&NoCluster),
        };
        let error = compiled.render(&input).unwrap_err();
        let origin = Origin::File { name: "my.yaml".to_owned(), text: user.to_owned() };
        hints(&error, compiled.chart(), &[origin])
    }

    #[test]
    fn an_error_of_a_template_names_the_file_and_line_of_its_value() {
        let template = |text| [("templates/x.yaml", text)];
        let hint = |text, user| of(&template(text), user).join("|");
        let nested = "{{ .Values.image.tag.major }}";
        assert_eq!(
            hint(nested, "{}"),
            "values.yaml:3 sets .Values.image.tag; nothing sets .Values.image.tag.major"
        );
        assert_eq!(
            hint(nested, "a: 1\nimage:\n\n  tag: v2\n"),
            "my.yaml:4 sets .Values.image.tag; nothing sets .Values.image.tag.major"
        );
        let zone = "{{ required \"x\" .Values.empty }}{{ .Values.global.zone.x }}";
        assert_eq!(hint(zone, "empty: ''"), "my.yaml:1 sets .Values.empty");
        assert_eq!(hint("{{ .Values.nope.x }}", "{}"), "nothing sets .Values.nope.x");
        assert_eq!(hint("{{ len 1 }}", "{}"), "");
    }

    #[test]
    fn values_of_a_chart_inside_are_found_where_they_are_set() {
        let template = [("charts/sub/templates/x.yaml", "{{ .Values.port.x }}")];
        let found = |user| of(&template, user).join("|");
        assert_eq!(found("{}"), "charts/sub/values.yaml:2 sets .Values.port; nothing sets .Values.port.x");
        assert_eq!(found("other:\n  port: 5\n"), "my.yaml:2 sets .Values.port; nothing sets .Values.port.x");
        let global = [("charts/sub/templates/x.yaml", "{{ .Values.global.zone.x }}")];
        assert_eq!(
            of(&global, "{}"),
            ["values.yaml:4 sets .Values.global.zone; nothing sets .Values.global.zone.x"]
        );
    }

    #[test]
    fn what_a_schema_refuses_names_the_file_and_line() {
        let schema = r#"{"properties": {"image": {"properties": {"tag": {"type": "number"}}}, "l": {"items": {"type": "string"}}}}"#;
        let found = of(&[("values.schema.json", schema)], "l:\n- a\n- 5\n");
        assert_eq!(
            found,
            ["values.yaml:3: image.tag: got string, want number", "my.yaml:3: l.1: got number, want string"]
        );
        let inner = [("charts/sub/values.schema.json", r#"{"properties": {"port": {"type": "number"}}}"#)];
        assert_eq!(of(&inner, "{}"), ["charts/sub/values.yaml:2: port: got string, want number"]);
    }
}
