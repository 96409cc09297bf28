//! A cluster out of files, for calls without one.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use pintle_api::{Answer, Facts, LogTail, Object, ObjectRef, Query, Record, Timestamp};
use pintle_plugin::{Call, Operation, Release, StepClock};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::{loaded::read_yaml, samples::Samples};

/// What a call is told.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Inputs {
    /// The object with the annotation (YAML); without one `samples/target.yaml`.
    #[arg(long, value_name = "FILE")]
    pub(super) target: Option<PathBuf>,
    /// Objects of the cluster: a YAML file, or a folder of them. Without it `samples/objects`.
    #[arg(long, value_name = "PATH")]
    objects: Option<PathBuf>,
    /// Logs: `NAMESPACE/POD.log` or `NAMESPACE/POD/CONTAINER.log` below this folder. Without it `samples/logs`.
    #[arg(long, value_name = "FOLDER")]
    logs: Option<PathBuf>,
    /// Reads with their answers (JSON), as a recorded call has them; they count before the objects.
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    /// The custom resource (YAML); without one `samples/owner.yaml`, or an empty one.
    #[arg(long, value_name = "FILE")]
    owner: Option<PathBuf>,
    /// Chart values so far (YAML).
    #[arg(long, value_name = "FILE")]
    values: Option<PathBuf>,
    /// What an earlier call saved (JSON).
    #[arg(long, value_name = "FILE")]
    saved: Option<PathBuf>,
    /// An argument of the annotation; the value is JSON, or a string. Without any `samples/args.json`.
    #[arg(long = "arg", value_name = "KEY=VALUE")]
    args: Vec<String>,
    /// Namespace of the release.
    #[arg(long, default_value = "default")]
    namespace: String,
    /// Number of the state that the call is for; empty for the whole release.
    #[arg(long, default_value = "0000")]
    state: String,
    /// What the release is doing.
    #[arg(long, value_enum, default_value = "steady")]
    operation: Doing,
    #[arg(skip)]
    samples: Samples,
}

/// What a release is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Doing {
    Install,
    Upgrade,
    Rollback,
    #[default]
    Steady,
    Delete,
}

/// Objects and logs out of files.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    objects: Vec<Arc<Object>>,
    logs: Option<PathBuf>,
    record: Record,
}

impl Inputs {
    /// The same with the samples that belong to a plugin.
    pub(super) fn for_plugin(mut self, plugin: &str) -> Self {
        self.samples = Samples::of(plugin);
        self
    }

    /// What was named, else the sample where there is one.
    pub(super) fn sample(&self, named: Option<&Path>, sample: &str) -> Option<PathBuf> {
        named.map(Path::to_owned).or_else(|| self.samples.find(sample))
    }

    /// The object with the annotation, from its flag or the sample.
    pub(super) fn target(&self) -> anyhow::Result<Option<Arc<Object>>> {
        let Some(path) = self.sample(self.target.as_deref(), "target.yaml") else { return Ok(None) };
        Ok(Some(Arc::new(object(read_yaml(&path)?, &path)?)))
    }

    /// Number of the state that the call is for.
    pub(super) fn state(&self) -> &str {
        &self.state
    }

    /// The cluster that these files are.
    pub(super) fn files(&self) -> anyhow::Result<Files> {
        let objects = match self.sample(self.objects.as_deref(), "objects") {
            Some(path) => read_objects(&path)?,
            None => Vec::new(),
        };
        let record = match &self.facts {
            Some(path) => {
                let text =
                    fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?;
                serde_json::from_str(&text)
                    .with_context(|| format!("{} has no recorded reads", path.display()))?
            }
            None => Record::default(),
        };
        Ok(Files { objects, logs: self.sample(self.logs.as_deref(), "logs"), record })
    }

    /// Everything a call is told but its target.
    pub(super) fn call(&self, facts: Arc<dyn Facts>) -> anyhow::Result<Call> {
        let owner = match self.sample(self.owner.as_deref(), "owner.yaml") {
            Some(path) => object(read_yaml(&path)?, &path)?,
            None => Object::default_of("pintle.dev/v1alpha1", "Sample", "sample"),
        };
        let read = |path: &Option<PathBuf>| path.as_deref().map(read_yaml::<Value>).transpose();
        Ok(Call {
            facts,
            operation: self.operation.into(),
            release: Release {
                name: "sample".to_owned(),
                namespace: self.namespace.clone(),
                chart: "sample".to_owned(),
                chart_version: "0.1.0".to_owned(),
                revision: 1,
            },
            state: self.state.clone(),
            pool: String::new(),
            args: self.args()?,
            owner: Arc::new(owner),
            host_fields: Arc::new([]),
            values: Arc::new(read(&self.values)?.unwrap_or_else(|| json!({}))),
            saved: read(&self.saved)?.map(Arc::new),
            own: Arc::new(BTreeSet::new()),
            // The same at each call, so that a plugin which reads a clock answers the same too.
            clock: StepClock { now: Timestamp::UNIX_EPOCH, elapsed: Duration::ZERO, attempt: 1 },
        })
    }

    fn args(&self) -> anyhow::Result<Map<String, Value>> {
        if self.args.is_empty()
            && let Some(path) = self.samples.find("args.json")
        {
            return read_yaml(&path);
        }
        let mut args = Map::new();
        for arg in &self.args {
            let Some((key, value)) = arg.split_once('=') else {
                bail!("--arg {arg} has no `=`; write --arg emptyIsReady=false")
            };
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
            args.insert(key.to_owned(), value);
        }
        Ok(args)
    }
}

impl From<Doing> for Operation {
    fn from(doing: Doing) -> Self {
        match doing {
            Doing::Install => Self::Install,
            Doing::Upgrade => Self::Upgrade,
            Doing::Rollback => Self::Rollback,
            Doing::Steady => Self::Steady,
            Doing::Delete => Self::Delete,
        }
    }
}

impl Files {
    /// The same cluster without its nodes.
    pub(super) fn without_nodes(&self) -> Self {
        let mut files = self.clone();
        files.objects.retain(|object| object.kind() != "Node");
        files
    }

    /// True when there is a node.
    pub(super) fn has_nodes(&self) -> bool {
        self.objects.iter().any(|object| object.kind() == "Node")
    }
}

impl Facts for Files {
    fn get(&self, target: &ObjectRef) -> Answer<Arc<Object>> {
        match self.record.get(target) {
            Answer::NotYet => {}
            recorded => return recorded,
        }
        let found = self.objects.iter().find(|object| object.reference() == *target);
        found.map_or(Answer::Missing, |object| Answer::Found(Arc::clone(object)))
    }

    fn list(&self, query: &Query) -> Answer<Vec<Arc<Object>>> {
        match self.record.list(query) {
            Answer::NotYet => {}
            recorded => return recorded,
        }
        let Query { api_version, kind, namespace, label_selector } = query;
        let is_in = |object: &&Arc<Object>| {
            object.api_version() == api_version
                && object.kind() == kind
                && (namespace.is_none() || object.namespace() == namespace.as_deref())
                && label_selector.as_deref().is_none_or(|selector| is_selected(object, selector))
        };
        let mut found: Vec<Arc<Object>> = self.objects.iter().filter(is_in).cloned().collect();
        found.sort_by(|one, other| (one.namespace(), one.name()).cmp(&(other.namespace(), other.name())));
        Answer::Found(found)
    }

    fn tail(&self, log: &LogTail) -> Answer<String> {
        match self.record.tail(log) {
            Answer::NotYet => {}
            recorded => return recorded,
        }
        let Some(folder) = self.logs.as_ref().map(|logs| logs.join(&log.namespace)) else {
            return Answer::Missing;
        };
        let of_container =
            log.container.as_ref().map(|name| folder.join(&log.pod).join(format!("{name}.log")));
        let of_pod = folder.join(format!("{}.log", log.pod));
        let text = of_container.into_iter().chain([of_pod]).find_map(|path| fs::read_to_string(path).ok());
        let Some(text) = text else { return Answer::Missing };
        let lines: Vec<&str> = text.lines().collect();
        let skip = lines.len().saturating_sub(usize::try_from(log.lines).unwrap_or(usize::MAX));
        Answer::Found(lines.into_iter().skip(skip).map(|line| format!("{line}\n")).collect())
    }

    fn resolve(&self, image: &str) -> Answer<String> {
        match self.record.resolve(image) {
            Answer::NotYet => Answer::Missing,
            recorded => recorded,
        }
    }
}

fn object(json: Value, path: &Path) -> anyhow::Result<Object> {
    Object::new(json)
        .with_context(|| format!("{} has no object with apiVersion, kind and name", path.display()))
}

/// The objects of a YAML file, or of all of a folder.
pub(super) fn read_objects(path: &Path) -> anyhow::Result<Vec<Arc<Object>>> {
    let mut files = Vec::new();
    if path.is_dir() {
        let entries = fs::read_dir(path).with_context(|| format!("could not read {}", path.display()))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let is_yaml = |path: &PathBuf| {
            path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json")
        };
        files.extend(paths.filter(is_yaml));
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    let mut objects = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("could not read {}", file.display()))?;
        for document in serde_yaml::Deserializer::from_str(&text) {
            let value =
                Value::deserialize(document).with_context(|| format!("{} is no YAML", file.display()))?;
            match value.get("items").and_then(Value::as_array) {
                // What `kubectl get -o yaml` prints.
                Some(items) => {
                    for item in items {
                        objects.push(Arc::new(object(item.clone(), &file)?));
                    }
                }
                None if value.is_null() => {}
                None => objects.push(Arc::new(object(value, &file)?)),
            }
        }
    }
    Ok(objects)
}

/// `a=b,c in (d,e),f notin (g),h,!i`, as the API server takes it.
fn is_selected(object: &Object, selector: &str) -> bool {
    let is_in = |key: &str, set: &str| {
        let mut values = set.trim_matches(['(', ')', ' ']).split(',').map(str::trim);
        object.label(key.trim()).is_some_and(|value| values.any(|one| one == value))
    };
    terms(selector).iter().all(|term| {
        if let Some((key, set)) = term.split_once(" notin ") {
            !is_in(key, set)
        } else if let Some((key, set)) = term.split_once(" in ") {
            is_in(key, set)
        } else if let Some((key, value)) = term.split_once("!=") {
            object.label(key.trim()) != Some(value.trim())
        } else if let Some((key, value)) = term.split_once('=') {
            object.label(key.trim()) == Some(value.trim_start_matches('=').trim())
        } else if let Some(key) = term.strip_prefix('!') {
            object.label(key.trim()).is_none()
        } else {
            object.label(term).is_some()
        }
    })
}

/// Terms of a selector: a comma between brackets separates values.
fn terms(selector: &str) -> Vec<String> {
    let (mut terms, mut depth) = (vec![String::new()], 0_u32);
    for letter in selector.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match terms.last_mut() {
            Some(_) if letter == ',' && depth == 0 => terms.push(String::new()),
            Some(term) => term.push(letter),
            None => {}
        }
    }
    terms.iter().map(|term| term.trim().to_owned()).filter(|term| !term.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn selectors_select_as_those_of_kubernetes() {
        let labels = json!({"a": "b", "c": "d"});
        let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": labels}});
        let object = Object::new(object).unwrap();
        for (selector, expected) in [
            ("a=b", true),
            ("a==b,c", true),
            ("a!=b", false),
            ("a in (x,b),c notin (x,y)", true),
            ("!a", false),
            ("e", false),
            ("!e", true),
            ("", true),
        ] {
            assert_eq!(is_selected(&object, selector), expected, "{selector}");
        }
    }

    #[test]
    fn arguments_are_json_or_text() {
        let inputs =
            Inputs { args: vec!["a=1".into(), "b=x=y".into(), "c=\"1\"".into()], ..Inputs::default() };
        assert_eq!(Value::Object(inputs.args().unwrap()), json!({"a": 1, "b": "x=y", "c": "1"}));
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("samples")).unwrap();
        fs::write(folder.path().join("samples/args.json"), "{\"kind\": \"Pod\"}").unwrap();
        let plugin = folder.path().join("a.wasm").display().to_string();
        let sampled = Inputs::default().for_plugin(&plugin);
        assert_eq!(Value::Object(sampled.args().unwrap()), json!({"kind": "Pod"}));
        let named = Inputs { args: vec!["a=1".into()], ..sampled };
        assert_eq!(Value::Object(named.args().unwrap()), json!({"a": 1}));
        let wrong = Inputs { args: vec!["a".into()], ..Inputs::default() };
        assert!(wrong.args().unwrap_err().to_string().contains("--arg a has no `=`"));
    }
}
