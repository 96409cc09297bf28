//! What the tests share: one engine, plugins by the name of their file, and calls.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
    time::Duration,
};

use pintle_api::{Facts, Object, ObjectRef, Record, Timestamp, plugin::PluginSpec};
use pintle_plugin::{
    Artifact, Call, CallResult, Checked, Engine, LoadError, Operation, Options, Outcome, Plugin, Release,
    SchemaCheck, StepClock,
};
use serde_json::{Map, Value, json};

use crate::encode;

/// One engine for all tests, as in an operator.
pub(crate) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let schemas: Arc<dyn SchemaCheck> = Arc::new(Required);
        Engine::new(&Options { schemas: Some(schemas), ..Options::default() }).unwrap()
    })
}

/// Knows of schemas only which fields they require; the operator brings a checker that knows all.
struct Required;

impl SchemaCheck for Required {
    fn violations(&self, schema: &Value, json: &Value) -> Vec<String> {
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        required
            .filter(|field| json.get(field).is_none())
            .map(|field| format!("{field:?} is missing"))
            .collect()
    }
}

/// A Plugin's spec; limits are short, so that hostile guests are cut soon.
pub(crate) fn spec(more: &Value) -> PluginSpec {
    let mut spec = json!({"image": "oci://registry.test/guest:1", "limits": {"timeout": "300ms"}});
    let fields = spec.as_object_mut().unwrap();
    fields.extend(more.as_object().cloned().unwrap_or_default());
    serde_json::from_value(spec).unwrap()
}

/// Loads bytes under a name.
pub(crate) async fn load_bytes(name: &str, bytes: Vec<u8>, more: &Value) -> Result<Plugin, LoadError> {
    let artifact = Artifact { name: name.to_owned(), digest: "sha256:0".to_owned(), bytes: bytes.into() };
    Plugin::load(engine(), artifact, &spec(more)).await
}

/// Loads a guest of `tests/guests`.
pub(crate) async fn load(name: &str, more: &Value) -> Result<Plugin, LoadError> {
    load_bytes(name, encode::guest(name), more).await
}

/// A call for release `r` in namespace `n`.
pub(crate) fn call(facts: impl Facts + 'static) -> Call {
    Call {
        facts: Arc::new(facts),
        operation: Operation::Steady,
        release: Release { name: "r".into(), namespace: "n".into(), revision: 1, ..Release::default() },
        state: "1000".into(),
        pool: String::new(),
        args: Map::new(),
        owner: Arc::new(object(json!({"apiVersion": "a/v1", "kind": "Owner", "metadata": {"name": "o",
            "resourceVersion": "7"}, "spec": {"a": 1}, "status": {"state": "1000", "plugins": {}}}))),
        host_fields: Arc::new(["status.state".to_owned()]),
        values: Arc::new(json!({})),
        saved: None,
        own: Arc::new(BTreeSet::from([ObjectRef::new("apps/v1", "DaemonSet", "d").within("n")])),
        clock: StepClock { now: Timestamp::UNIX_EPOCH, elapsed: Duration::from_secs(7), attempt: 1 },
    }
}

/// The object with the annotation.
pub(crate) fn target() -> Arc<Object> {
    Arc::new(object(json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "d", "namespace": "n", "resourceVersion": "9", "managedFields": [{}]}})))
}

/// Loads a guest and calls it once, with no facts known.
pub(crate) async fn check_once(name: &str, more: &Value) -> CallResult<Checked> {
    load(name, more).await.unwrap().check(call(Record::default()), target()).await
}

pub(crate) fn object(json: Value) -> Object {
    Object::new(json).unwrap()
}

/// How a call ended, in one line.
pub(crate) fn line(result: &CallResult<Checked>) -> String {
    match &result.outcome {
        Outcome::Answered(checked) => format!("{:?}", checked.verdict),
        Outcome::NeedsFacts(reads) => format!("needs {reads:?}"),
        Outcome::Failed(failure) => format!("{} {:?}: {failure}", failure.label(), failure.retry()),
    }
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        line = format!("{line}: {error}");
        source = error.source();
    }
    line
}
