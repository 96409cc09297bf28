//! What became of a call, as JSON: for `-o json`, for transcripts, and to compare versions of a plugin.

use pintle_api::{Object, Verdict, plugin::ActionVerb};
use serde_json::{Value, json};

use super::{Answered, mask};
use crate::{
    Action, CallFailure, CallResult, Checked, Desired, Edit, Hold, HookOutcome, Keyed, Mapped, Outcome,
    Ownership, PostRendered, Report, Retry, Save, Stepped,
};

/// What became of a call, without what it cost: equal for equal answers. Values of Secrets are not in it.
#[must_use]
pub fn told(result: &CallResult<Answered>) -> Value {
    match &result.outcome {
        Outcome::Answered(answer) => answered(answer),
        Outcome::NeedsFacts(reads) => json!({"verdict": "unknown", "needs": reads}),
        Outcome::Failed(failure) => failed(failure),
    }
}

fn answered(answer: &Answered) -> Value {
    match answer {
        Answered::Checked(Checked { verdict, watch, recheck, progress, report }) => {
            let hold = Hold {
                blockers: verdict.blockers().to_vec(),
                watch: watch.clone(),
                recheck: *recheck,
                progress: *progress,
            };
            with(waiting(word(verdict), &hold), report)
        }
        Answered::Mapped(Mapped { values, pools, report }) => {
            let pools = pools.iter().map(
                |pool| json!({"key": pool.key, "nodeSelector": pool.node_selector, "values": pool.values}),
            );
            with(json!({"verdict": "mapped", "values": values, "pools": pools.collect::<Vec<_>>()}), report)
        }
        Answered::PostRendered(PostRendered { edits, report }) => {
            let edits: Vec<Value> = edits.iter().map(edit).collect();
            with(json!({"verdict": "rendered", "edits": edits}), report)
        }
        Answered::Stepped(Stepped { outcome, want, report }) => {
            let mut told = match outcome {
                HookOutcome::Go => json!({"verdict": "go"}),
                HookOutcome::Hold(hold) => waiting("hold", hold),
                HookOutcome::LeaveOut(why) => json!({"verdict": "leave-out", "message": why}),
            };
            told["want"] = keyed(want);
            with(told, report)
        }
        Answered::Desired(Desired { verdict, watch, recheck, progress, objects, report }) => {
            let hold = Hold {
                blockers: verdict.blockers().to_vec(),
                watch: watch.clone(),
                recheck: *recheck,
                progress: *progress,
            };
            let mut told = waiting(word(verdict), &hold);
            told["objects"] = keyed(objects);
            with(told, report)
        }
    }
}

fn failed(failure: &CallFailure) -> Value {
    let retry = match failure.retry() {
        Retry::WhenInputsChange => "when-inputs-change",
        Retry::WithBackOff => "with-back-off",
        Retry::Never => "never",
    };
    let told = json!({"verdict": "failed", "message": failure.to_string(), "retry": retry});
    match failure {
        CallFailure::Guest { blockers, report, .. } => {
            let mut told = told;
            told["blockers"] = json!(blockers);
            with(told, report)
        }
        _ => told,
    }
}

fn waiting(verdict: &str, hold: &Hold) -> Value {
    let Hold { blockers, watch, recheck, progress } = hold;
    json!({"verdict": verdict, "blockers": blockers, "progress": progress,
        "recheckSeconds": recheck.map(|after| after.as_secs_f64()), "watch": watch})
}

/// Adds what the plugin wants told and kept.
fn with(mut told: Value, report: &Report) -> Value {
    let Report { conditions, events, actions, status, save } = report;
    let conditions = conditions.iter().map(
        |one| json!({"type": one.kind, "status": one.status, "reason": one.reason, "message": one.message}),
    );
    let events = events.iter().map(|event| {
        json!({"warning": event.is_warning, "reason": event.reason, "message": event.message,
            "regarding": event.regarding})
    });
    told["conditions"] = conditions.collect();
    told["events"] = events.collect();
    told["actions"] = actions.iter().map(action).collect();
    told["status"] = json!(status);
    told["save"] = match save {
        Save::Keep => Value::Null,
        Save::Clear => json!({"clear": true}),
        Save::Set(value) => json!({"set": value}),
    };
    told
}

fn action(action: &Action) -> Value {
    let Action { key, verb, target, arguments, identity } = action;
    let verb = ActionVerb::ALL.iter().find(|(known, _)| known == verb).map(|(_, word)| *word);
    json!({"key": key, "verb": verb, "target": target, "arguments": arguments, "as": identity})
}

fn edit(edit: &Edit) -> Value {
    match edit {
        Edit::Replace { key, object } => json!({"replace": key, "object": shown(object)}),
        Edit::Drop { key } => json!({"drop": key}),
        Edit::Add { key, state, object, identity } => {
            json!({"add": key, "state": state, "object": shown(object), "as": identity})
        }
    }
}

fn keyed(keyed: &[Keyed]) -> Value {
    let keyed = keyed.iter().map(|Keyed { key, ownership, object, identity }| {
        let ownership = match ownership {
            Ownership::Whole => "whole",
            Ownership::Part => "part",
        };
        json!({"key": key, "ownership": ownership, "object": shown(object), "as": identity})
    });
    keyed.collect()
}

fn shown(object: &Object) -> Value {
    mask::object(object).into_value()
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Ready => "ready",
        Verdict::Pending(_) => "pending",
        Verdict::Transient(_) => "transient",
        Verdict::Fatal(_) => "fatal",
    }
}
