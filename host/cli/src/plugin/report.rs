//! How a call ended, for people and for machines.

use pintle_api::{Blocker, Record};
use pintle_plugin::{
    CallResult, Outcome,
    transcript::{Answered, told},
};
use serde_json::{Value, json};

/// What became of a call, with reads and cost.
pub(super) fn document(result: &CallResult<Answered>) -> Value {
    let mut document = told(result);
    let stats = result.stats;
    document["reads"] = json!(reads(&result.record));
    document["cost"] = json!({"microseconds": stats.duration.as_micros(), "memoryBytes": stats.memory,
        "reads": stats.reads, "readBytes": stats.read_bytes});
    document
}

/// The same for people.
pub(super) fn text(result: &CallResult<Answered>) -> String {
    let mut text = match &result.outcome {
        Outcome::NeedsFacts(reads) => format!("unknown: {} reads have no answer\n", reads.len()),
        Outcome::Failed(failure) => format!("failed: {failure} ({:?})\n", failure.retry()),
        Outcome::Answered(_) => answer(&told(result)),
    };
    for read in reads(&result.record) {
        text += &format!("read {read}\n");
    }
    let stats = result.stats;
    text += &format!(
        "{} us, {} KiB of memory, {} reads, {} bytes read\n",
        stats.duration.as_micros(),
        stats.memory / 1024,
        stats.reads,
        stats.read_bytes
    );
    text
}

/// An answer: its verdict, what is waited for, and what the plugin wants done.
fn answer(told: &Value) -> String {
    let text_of =
        |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let list = |field: &str| told.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut text = text_of(told, "verdict") + "\n";
    for blocker in list("blockers").into_iter().filter_map(|one| serde_json::from_value::<Blocker>(one).ok())
    {
        text += &format!("  {}\n", line(&blocker));
    }
    for condition in list("conditions") {
        text += &format!("condition {}: {}\n", text_of(&condition, "type"), text_of(&condition, "message"));
    }
    for event in list("events") {
        text += &format!("event {}: {}\n", text_of(&event, "reason"), text_of(&event, "message"));
    }
    // What it returns is shown as YAML, which is how it will be read in a cluster.
    for field in ["values", "pools", "edits", "want", "objects", "actions", "status"] {
        let value = told.get(field).cloned().unwrap_or_default();
        let is_empty = value.is_null()
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(serde_json::Map::is_empty);
        if !is_empty {
            let yaml = serde_yaml::to_string(&value).unwrap_or_else(|_| value.to_string());
            let yaml: String = yaml.lines().map(|line| format!("  {line}\n")).collect();
            text += &format!("{field}\n{yaml}");
        }
    }
    text
}

/// A blocker in one line.
pub(super) fn line(blocker: &Blocker) -> String {
    let node = blocker.node.as_deref().map(|node| format!(" {node}")).unwrap_or_default();
    let object = blocker.object.as_ref().map(|object| format!(" {object}")).unwrap_or_default();
    format!("{}{node}{object}: {}", blocker.reason, blocker.message)
}

/// What was read, one line each, without the answers: those are in the files of the call.
fn reads(record: &Record) -> Vec<String> {
    use pintle_api::Read;
    let line = |read: &Read| match read {
        Read::Get(target) => format!("get {target}"),
        Read::List(query) => {
            let namespace = query.namespace.as_deref().map(|name| format!(" in {name}")).unwrap_or_default();
            let selector =
                query.label_selector.as_deref().map(|text| format!(" with {text}")).unwrap_or_default();
            format!("list {} {}{namespace}{selector}", query.api_version, query.kind)
        }
        Read::Tail(log) => format!("log {}/{}", log.namespace, log.pod),
        Read::Resolve(image) => format!("image {image}"),
    };
    record.iter().map(|(read, _)| line(read)).collect()
}
