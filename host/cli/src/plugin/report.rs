//! How a call ended, for people and for machines.

use pintle_api::{Blocker, Record, Verdict};
use pintle_plugin::{CallResult, Checked, Outcome};
use serde_json::{Value, json};

/// The answer of a readiness check without what it cost: equal for equal answers.
pub(super) fn answer(result: &CallResult<Checked>) -> Value {
    match &result.outcome {
        Outcome::Answered(checked) => {
            let report = &checked.report;
            let conditions = report.conditions.iter().map(|one| {
                json!({"type": one.kind, "status": one.status, "reason": one.reason, "message": one.message})
            });
            let events = report.events.iter().map(|event| {
                json!({"warning": event.is_warning, "reason": event.reason, "message": event.message})
            });
            json!({
                "verdict": word(&checked.verdict), "blockers": checked.verdict.blockers(),
                "progress": checked.progress, "recheckSeconds": checked.recheck.map(|after| after.as_secs_f64()),
                "watch": checked.watch, "conditions": conditions.collect::<Vec<_>>(),
                "events": events.collect::<Vec<_>>(), "status": report.status,
            })
        }
        Outcome::NeedsFacts(reads) => json!({"verdict": "unknown", "needs": reads}),
        Outcome::Failed(failure) => json!({"verdict": "failed", "message": failure.to_string(),
            "retry": format!("{:?}", failure.retry())}),
    }
}

/// The same with reads and cost.
pub(super) fn document(result: &CallResult<Checked>) -> Value {
    let mut document = answer(result);
    let stats = result.stats;
    document["reads"] = json!(reads(&result.record));
    document["cost"] = json!({"microseconds": stats.duration.as_micros(), "memoryBytes": stats.memory,
        "reads": stats.reads, "readBytes": stats.read_bytes});
    document
}

/// The same for people.
pub(super) fn text(result: &CallResult<Checked>) -> String {
    let mut text = match &result.outcome {
        Outcome::Answered(checked) => {
            let mut text = format!("{}\n", word(&checked.verdict));
            text.extend(checked.verdict.blockers().iter().map(|blocker| format!("  {}\n", line(blocker))));
            for condition in &checked.report.conditions {
                text += &format!("condition {}: {}\n", condition.kind, condition.message);
            }
            text
        }
        Outcome::NeedsFacts(reads) => format!("unknown: {} reads have no answer\n", reads.len()),
        Outcome::Failed(failure) => format!("failed: {failure} ({:?})\n", failure.retry()),
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

/// A blocker in one line.
pub(super) fn line(blocker: &Blocker) -> String {
    let node = blocker.node.as_deref().map(|node| format!(" {node}")).unwrap_or_default();
    let object = blocker.object.as_ref().map(|object| format!(" {object}")).unwrap_or_default();
    format!("{}{node}{object}: {}", blocker.reason, blocker.message)
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Ready => "ready",
        Verdict::Pending(_) => "pending",
        Verdict::Transient(_) => "transient",
        Verdict::Fatal(_) => "fatal",
    }
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
