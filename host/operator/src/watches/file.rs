//! `watches.yaml`: the file in which operators built on Helm charts keep what a Watch says as an object.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use pintle_api::watch::{WatchChart, WatchRepository, WatchSpec};
use pintle_template::{self as template, Dialect, NoCluster, Program, Run, Source};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Why a watches file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WatchesError {
    /// It cannot be read.
    #[error("{path} cannot be read; name the file with --watches-file")]
    File {
        /// The file.
        path: String,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// It has another shape.
    #[error("{path}: it must be a list of entries with version, kind and chart")]
    Shape {
        /// The file.
        path: String,
        /// What the reader says, with line and column.
        #[source]
        source: serde_yaml::Error,
    },
    /// An entry that cannot be used.
    #[error("{path}: entry {number}: {problem}")]
    Entry {
        /// The file.
        path: String,
        /// Counted from 1.
        number: usize,
        /// What is wrong, and the fix.
        problem: String,
    },
}

/// One entry, as the hybrid and the classic operator read it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    chart: String,
    watch_dependent_resources: Option<bool>,
    #[serde(default)]
    override_values: Map<String, Value>,
    max_concurrent_reconciles: Option<u32>,
    #[serde(default)]
    reconcile_period: String,
    selector: Option<LabelSelector>,
}

/// The watches of a file, in its order. Paths of charts are relative to the folder the operator runs in, as
/// they were there.
///
/// # Errors
/// When the file or an entry cannot be used; nothing of it counts then.
pub fn read(path: &Path) -> Result<Vec<WatchSpec>, WatchesError> {
    let shown = path.display().to_string();
    let text =
        fs::read_to_string(path).map_err(|source| WatchesError::File { path: shown.clone(), source })?;
    let entries: Vec<Entry> =
        serde_yaml::from_str(&text).map_err(|source| WatchesError::Shape { path: shown.clone(), source })?;
    let mut kinds = BTreeSet::new();
    let mut specs = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        let kind = (entry.group.clone(), entry.version.clone(), entry.kind.clone());
        let spec = if kinds.insert(kind) {
            spec_of(entry)
        } else {
            Err("another entry has the same group, version and kind; keep one of them".to_owned())
        };
        let broken = |problem| WatchesError::Entry { path: shown.clone(), number: index + 1, problem };
        specs.push(spec.map_err(broken)?);
    }
    Ok(specs)
}

fn spec_of(entry: Entry) -> Result<WatchSpec, String> {
    for (field, text) in [("version", &entry.version), ("kind", &entry.kind), ("chart", &entry.chart)] {
        if text.is_empty() {
            return Err(format!("{field} is missing; add it"));
        }
    }
    let (url, name) = chart_at(&entry.chart)?;
    let overrides = entry.override_values.into_iter().map(|(key, value)| match value {
        Value::String(text) => {
            let text = super::expand_text(&text, super::variable);
            let text =
                fill_in(&text, super::variable).map_err(|err| format!("overrideValues.{key}: {err}"))?;
            Ok((key, typed(text)))
        }
        other => Ok((key, other)),
    });
    let override_values = overrides.collect::<Result<_, String>>()?;
    Ok(WatchSpec {
        group: entry.group,
        version: entry.version,
        kind: entry.kind,
        chart: WatchChart {
            name,
            repository: WatchRepository { url, secret_ref: None },
            ..WatchChart::default()
        },
        override_values,
        value_mapper: None,
        reconciler: None,
        hooks: Vec::new(),
        max_concurrent_reconciles: entry.max_concurrent_reconciles,
        selector: entry.selector,
        reconcile_period: entry.reconcile_period,
        watch_dependent_resources: entry.watch_dependent_resources,
        ..WatchSpec::default()
    })
}

/// A text with its templates filled in, as the operators before did: Helm's functions, and `env` and
/// `expandenv` of a text in quotes, over no data at all.
fn fill_in(text: &str, variable: fn(&str) -> String) -> Result<String, String> {
    if !text.contains("{{") {
        return Ok(text.to_owned());
    }
    let text = with_environment(text, variable);
    let name = "overrideValues";
    let source = Source { name: Arc::from(name), text: Arc::from(text.as_str()) };
    let told = |err: pintle_template::Error| crate::error_text::one_line(&err);
    let program = Program::parse_in(Dialect::Helm, &[source]).map_err(told)?;
    program.render(name, &template::value::Value::from(()), &Run::new(&NoCluster)).map_err(told)
}

/// `env "NAME"` and `expandenv "text"` become texts in quotes: a template of ours has no environment.
fn with_environment(text: &str, variable: fn(&str) -> String) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, call, behind)) = next_call(rest) {
        out.push_str(before);
        let value = if call.is_expansion {
            super::expand_text(call.argument, variable)
        } else {
            variable(call.argument)
        };
        out.push_str(&Value::from(value).to_string());
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// A call of `env` or `expandenv`.
struct EnvironmentCall<'a> {
    is_expansion: bool,
    argument: &'a str,
}

/// The next call, what is before it, and what is behind.
fn next_call(text: &str) -> Option<(&str, EnvironmentCall<'_>, &str)> {
    let at = text.match_indices("env \"").find(|(at, _)| {
        let before = text.get(..*at).unwrap_or_default();
        let head = before.strip_suffix("expand").unwrap_or(before);
        let is_word = head.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.');
        !is_word && before.rfind("{{") > before.rfind("}}")
    })?;
    let (before, found) = text.split_at_checked(at.0)?;
    let (argument, behind) = found.get(at.1.len()..)?.split_once('"')?;
    match before.strip_suffix("expand") {
        Some(before) => Some((before, EnvironmentCall { is_expansion: true, argument }, behind)),
        None => Some((before, EnvironmentCall { is_expansion: false, argument }, behind)),
    }
}

/// The folder a chart lies in as a repository, and the chart's name there, which its `Chart.yaml` says.
fn chart_at(path: &str) -> Result<(String, String), String> {
    let shown = path;
    let path: PathBuf = Path::new(path)
        .canonicalize()
        .map_err(|err| format!("chart {shown} is not there ({err}); name a folder or a .tgz"))?;
    let text = if path.is_dir() {
        fs::read(path.join("Chart.yaml")).map_err(|err| format!("chart {shown}: Chart.yaml: {err}"))?
    } else {
        let bytes = fs::read(&path).map_err(|err| format!("chart {shown}: {err}"))?;
        let files = pintle_chart::archive::read_tgz(&bytes).map_err(|err| format!("chart {shown}: {err}"))?;
        let file = files.into_iter().find(|file| file.path == "Chart.yaml");
        file.ok_or_else(|| format!("chart {shown} has no Chart.yaml"))?.data.to_vec()
    };
    let metadata = pintle_chart::Metadata::parse(&String::from_utf8_lossy(&text))
        .map_err(|err| format!("chart {shown}: {err}"))?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    Ok((format!("file://{}", folder.display()), metadata.name))
}

/// A text as `--set` reads it: these values were joined to one such argument.
fn typed(text: String) -> Value {
    let is_number = text == "0" || (!text.starts_with('0') && text.parse::<i64>().is_ok());
    match text.as_str() {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        _ if is_number => text.parse::<i64>().map_or(Value::Null, Value::from),
        _ => Value::String(text),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::unwrap_in_result, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    fn with_file(text: &str) -> Result<Vec<WatchSpec>, WatchesError> {
        let folder = tempfile::tempdir().unwrap();
        let chart = folder.path().join("helm-charts/memcached");
        fs::create_dir_all(&chart).unwrap();
        fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: memcached\nversion: 0.1.0\n").unwrap();
        let path = folder.path().join("watches.yaml");
        fs::write(&path, text.replace("HERE", &folder.path().display().to_string())).unwrap();
        read(&path)
    }

    const ENTRY: &str =
        "- group: cache.example.com\n  version: v1\n  kind: Memcached\n  chart: HERE/helm-charts/memcached\n";

    #[test]
    fn an_entry_becomes_a_watch() {
        let more = "  watchDependentResources: false\n  reconcilePeriod: 2s\n  overrideValues: {image.tag: \"1\", on: \"true\", name: a$PINTLE_NOBODY}\n  selector: {matchLabels: {a: b}}\n";
        let specs = with_file(&format!("{ENTRY}{more}")).unwrap();
        assert_eq!(specs[0].chart.name, "memcached");
        assert!(specs[0].chart.repository.url.ends_with("/helm-charts"));
        let overrides = Value::Object(specs[0].override_values.clone());
        assert_eq!(overrides, json!({"image.tag": 1, "on": true, "name": "a"}));
        assert_eq!(specs[0].watch_dependent_resources, Some(false));
        assert_eq!(specs[0].reconcile_period, "2s");
        assert!(specs[0].selector.is_some());
    }

    #[test]
    fn each_fault_names_file_entry_and_fix() {
        let cases = [
            (format!("{ENTRY}{ENTRY}"), "entry 2: another entry has the same group, version and kind"),
            (ENTRY.replace("  kind: Memcached\n", ""), "entry 1: kind is missing; add it"),
            (ENTRY.replace("memcached\n", "away\n"), "helm-charts/away is not there"),
            (format!("{ENTRY}  overrideValues: {{a: '{{{{ nothing \"X\" }}}}'}}\n"), "overrideValues.a: "),
            ("kind: List\n".to_owned(), "it must be a list of entries"),
        ];
        for (text, wanted) in cases {
            let message = with_file(&text).unwrap_err().to_string();
            assert!(message.contains(wanted) && message.contains("watches.yaml"), "{message}");
        }
        let away = read(Path::new("nowhere/watches.yaml")).unwrap_err().to_string();
        assert_eq!(away, "nowhere/watches.yaml cannot be read; name the file with --watches-file");
    }

    #[test]
    fn templates_of_values_know_the_environment_and_helms_functions() {
        let known = |name: &str| if name == "IMAGE" { "a\"b".to_owned() } else { String::new() };
        for (text, wanted) in [
            ("{{ env \"IMAGE\" | upper }}", "A\"B"),
            ("{{ env \"NONE\" | default \"y\" }}/{{ (env \"IMAGE\") }}", "y/a\"b"),
            ("{{ expandenv \"x-$IMAGE\" }}", "x-a\"b"),
            ("env \"IMAGE\" {{ \"}}\" }}", "env \"IMAGE\" }}"),
        ] {
            assert_eq!(fill_in(text, known).unwrap(), wanted, "{text}");
        }
        let wrong = fill_in("{{ \"A\" | env }}", known).unwrap_err();
        assert!(wrong.contains("env"), "{wrong}");
    }

    #[test]
    fn texts_are_typed_as_set_types_them() {
        for (text, value) in
            [("1", json!(1)), ("01", json!("01")), ("1.5", json!("1.5")), ("null", json!(null))]
        {
            assert_eq!(typed(text.to_owned()), value);
        }
    }
}
