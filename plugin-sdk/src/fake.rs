//! A host for native unit tests of plugins: objects, logs and config in memory.
//!
//! It answers as the real one does where plugins can tell: fields that were not asked for are not
//! there, selectors select, what is not there is `NotFound`, and what was denied is denied.

use std::cell::RefCell;

use serde_json::{Map, Value};

use crate::{
    Answer, Context, Failure, ObjectQuery, ObjectRef, Operation, Readiness, Release,
    bindings::pintle::plugin::{kube_read::Page, log::Level, types::ReadError},
    readiness,
};

/// Items on a page when the plugin does not ask for fewer: few, so that tests see more than one.
const PAGE: usize = 2;

thread_local! {
    static CURRENT: RefCell<Host> = RefCell::new(Host::new());
}

/// What the host would answer.
#[derive(Clone, Debug)]
pub struct Host {
    pub(crate) config: Value,
    pub(crate) owner: Value,
    pub(crate) values: Value,
    pub(crate) saved: Option<Value>,
    pub(crate) now_ms: u64,
    pub(crate) elapsed_ms: u64,
    pub(crate) attempt: u32,
    objects: Vec<Value>,
    denied: Vec<String>,
    logs: Vec<(ObjectRef, Option<String>, Result<String, ReadError>)>,
    args: Value,
    said: Vec<String>,
}

/// What came of a call and what the plugin logged meanwhile.
pub type Called = (Result<Answer, Failure>, Vec<String>);

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Host {
    /// An empty cluster, an empty config, the first attempt at the epoch.
    #[must_use]
    pub fn new() -> Self {
        let empty = Value::Object(Map::new());
        Self {
            config: empty.clone(),
            owner: empty.clone(),
            values: empty.clone(),
            saved: None,
            now_ms: 0,
            elapsed_ms: 0,
            attempt: 1,
            objects: Vec::new(),
            denied: Vec::new(),
            logs: Vec::new(),
            args: empty,
            said: Vec::new(),
        }
    }

    /// `spec.config` of the Plugin.
    #[must_use]
    pub fn config(mut self, config: Value) -> Self {
        self.config = config;
        self
    }

    /// Arguments in the annotation.
    #[must_use]
    pub fn args(mut self, args: Value) -> Self {
        self.args = args;
        self
    }

    /// The custom resource.
    #[must_use]
    pub fn owner(mut self, owner: Value) -> Self {
        self.owner = owner;
        self
    }

    /// What the plugin kept earlier.
    #[must_use]
    pub fn saved(mut self, saved: Value) -> Self {
        self.saved = Some(saved);
        self
    }

    /// Time since the epoch, time since the state was entered, and attempt.
    #[must_use]
    pub fn clock(mut self, now_ms: u64, elapsed_ms: u64, attempt: u32) -> Self {
        (self.now_ms, self.elapsed_ms, self.attempt) = (now_ms, elapsed_ms, attempt);
        self
    }

    /// An object of the cluster.
    #[must_use]
    pub fn object(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// Denies all reads of a kind; `Log` denies those of logs.
    #[must_use]
    pub fn deny(mut self, kind: &str) -> Self {
        self.denied.push(kind.to_owned());
        self
    }

    /// The log of a pod's container; none for the only one.
    #[must_use]
    pub fn log(mut self, namespace: &str, pod: &str, container: Option<&str>, log: &str) -> Self {
        let pod = ObjectRef::new("v1", "Pod", pod).within(namespace);
        self.logs.push((pod, container.map(str::to_owned), Ok(log.to_owned())));
        self
    }

    /// A log that is out of reach.
    #[must_use]
    pub fn log_unavailable(mut self, namespace: &str, pod: &str, why: &str) -> Self {
        let pod = ObjectRef::new("v1", "Pod", pod).within(namespace);
        self.logs.push((pod, None, Err(ReadError::Unavailable(why.to_owned()))));
        self
    }

    /// Calls `check` of a plugin for a target, as the host would.
    ///
    /// # Errors
    /// With the plugin's own failure.
    pub fn check<P: Readiness>(self, target: Value) -> Result<Answer, Failure> {
        self.check_and_log::<P>(target).0
    }

    /// As [`Host::check`], with what the plugin logged.
    pub fn check_and_log<P: Readiness>(self, target: Value) -> Called {
        let context = Context {
            operation: Operation::Steady,
            release: Release {
                name: "release".into(),
                namespace: "namespace".into(),
                chart: "chart".into(),
                chart_version: "0.1.0".into(),
                revision: 1,
            },
            state: String::new(),
            pool: String::new(),
            args: self.args.to_string(),
        };
        let before = CURRENT.with(|current| current.replace(self));
        let answer = readiness::answer::<P>(context, target.to_string());
        let after = CURRENT.with(|current| current.replace(before));
        (answer, after.said)
    }

    pub(crate) fn get(&self, target: &ObjectRef, fields: &[String]) -> Result<String, ReadError> {
        self.permit(&target.kind)?;
        let found = self.objects.iter().find(|object| is_named(object, target));
        found.map(|object| shown(object, fields).to_string()).ok_or(ReadError::NotFound)
    }

    pub(crate) fn find(
        &self,
        query: &ObjectQuery,
        fields: &[String],
        max_items: u32,
        token: Option<&str>,
    ) -> Result<Page, ReadError> {
        self.permit(&query.kind)?;
        let skip = token.and_then(|token| token.parse().ok()).unwrap_or(0);
        let most = if max_items == 0 { PAGE } else { PAGE.min(max_items as usize) };
        let found: Vec<&Value> = self.objects.iter().filter(|object| is_found(object, query)).collect();
        let items = found.iter().skip(skip).take(most).map(|object| shown(object, fields).to_string());
        let items: Vec<String> = items.collect();
        let end = skip + items.len();
        Ok(Page { items, next: (end < found.len()).then(|| end.to_string()) })
    }

    pub(crate) fn tail(
        &self,
        pod: &ObjectRef,
        container: Option<&str>,
        previous: bool,
        lines: u32,
    ) -> Result<String, ReadError> {
        self.permit("Log")?;
        let is_it = |(of, name, _): &&(ObjectRef, Option<String>, _)| {
            of == pod && !previous && (name.as_deref() == container || name.is_none())
        };
        let (_, _, log) = self.logs.iter().find(is_it).ok_or(ReadError::NotFound)?;
        let log = log.as_ref().map_err(Clone::clone)?;
        let all: Vec<&str> = log.lines().collect();
        let skip = all.len().saturating_sub(usize::try_from(lines).unwrap_or(usize::MAX));
        Ok(all.into_iter().skip(skip).map(|line| format!("{line}\n")).collect())
    }

    pub(crate) fn emit(&mut self, level: Level, message: &str, fields: &[(String, String)]) {
        let fields: String = fields.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        self.said.push(format!("{level:?} {message}{fields}"));
    }

    fn permit(&self, kind: &str) -> Result<(), ReadError> {
        match self.denied.iter().any(|denied| denied == kind) {
            true => Err(ReadError::Denied(format!("{kind} is not granted"))),
            false => Ok(()),
        }
    }
}

/// Runs something with the host of this thread.
pub(crate) fn with<T>(work: impl FnOnce(&mut Host) -> T) -> T {
    CURRENT.with(|current| work(&mut current.borrow_mut()))
}

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str)
}

fn is_named(object: &Value, target: &ObjectRef) -> bool {
    text(object, "/apiVersion") == Some(&target.api_version)
        && text(object, "/kind") == Some(&target.kind)
        && text(object, "/metadata/namespace") == target.namespace.as_deref()
        && text(object, "/metadata/name") == Some(&target.name)
}

fn is_found(object: &Value, query: &ObjectQuery) -> bool {
    let ObjectQuery { api_version, kind, namespace, name, label_selector } = query;
    text(object, "/apiVersion") == Some(api_version)
        && text(object, "/kind") == Some(kind)
        && (namespace.is_none() || text(object, "/metadata/namespace") == namespace.as_deref())
        && (name.is_none() || text(object, "/metadata/name") == name.as_deref())
        && label_selector.as_ref().is_none_or(|selector| is_selected(object, selector))
}

/// Equality alone, joined by commas: what `LabelSelector::to_query` makes of `matchLabels`.
fn is_selected(object: &Value, selector: &str) -> bool {
    let labels = object.pointer("/metadata/labels");
    let terms = selector.split(',').filter_map(|term| term.split_once('='));
    let mut terms =
        terms.map(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(&Value::from(value)));
    terms.all(|holds| holds)
}

/// The fields asked for, and what names the object; no field asks for all.
fn shown(object: &Value, fields: &[String]) -> Value {
    if fields.is_empty() {
        return object.clone();
    }
    let mut kept = Value::Object(Map::new());
    for name in ["apiVersion", "kind", "metadata.name", "metadata.namespace"] {
        copy(object, &mut kept, &[name.to_owned()].concat());
    }
    fields.iter().for_each(|field| copy(object, &mut kept, field));
    kept
}

fn copy(from: &Value, to: &mut Value, field: &str) {
    let path: Vec<String> = field.replace("\\.", "\0").split('.').map(|key| key.replace('\0', ".")).collect();
    let found = path.iter().try_fold(from, |value, key| value.get(key));
    let Some(found) = found else { return };
    let mut slot = to;
    for key in path {
        slot = &mut slot[key];
    }
    *slot = found.clone();
}
