//! The tree: release, state, object, node, reason; since when, what ends it, who can mend it.

use std::fmt::Write as _;

use anyhow::Context as _;
use jiff::Timestamp;
use pintle_api::{
    Blocker,
    status::{Condition, Phase, StateStatus},
};
use serde::Serialize;
use serde_json::Value;

/// What the tree is drawn from.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Report {
    /// `SpecialResource simple-kmod`.
    owner: String,
    /// Whether its condition Ready is True.
    ready: bool,
    /// The conditions that are not as they should be.
    conditions: Vec<Condition>,
    /// Its states in order.
    states: Vec<StateStatus>,
    /// True when the status speaks of an older generation.
    outdated: bool,
}

// === impl Report ===

impl Report {
    /// Reads the status of an owner.
    ///
    /// # Errors
    /// When the status is not one of ours.
    pub(crate) fn from_owner(object: &Value) -> anyhow::Result<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let name = match text("/metadata/namespace") {
            "" => text("/metadata/name").to_owned(),
            namespace => format!("{namespace}/{}", text("/metadata/name")),
        };
        let list = |field: &str| {
            object.pointer(&format!("/status/{field}")).cloned().unwrap_or(Value::Array(vec![]))
        };
        let conditions: Vec<Condition> = serde_json::from_value(list("conditions"))
            .context("status.conditions is not as Pintle writes it")?;
        let states =
            serde_json::from_value(list("states")).context("status.states is not as Pintle writes it")?;
        let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
        let ready =
            conditions.iter().any(|condition| condition.kind == "Ready" && condition.status == "True");
        let telling = conditions.into_iter().filter(|condition| {
            condition.status == "True"
                && matches!(condition.kind.as_str(), "Errored" | "Progressing" | "Stalled" | "Reconciling")
        });
        Ok(Self {
            owner: format!("{} {name}", text("/kind")),
            ready,
            conditions: telling.collect(),
            states,
            outdated: number("/status/observedGeneration") != number("/metadata/generation"),
        })
    }
}

/// Draws the tree; `now` dates it.
pub(crate) fn draw(report: &Report, now: Timestamp) -> String {
    let mut out = String::new();
    let headline = match (report.ready, report.states.is_empty() && report.conditions.is_empty()) {
        (true, _) => "is ready",
        (false, true) => "has no status yet; is the operator running, and does its --selector match?",
        (false, false) => "is not ready",
    };
    let _ = writeln!(out, "{} {headline}", report.owner);
    if report.outdated {
        let _ = writeln!(
            out,
            "  its status is of an older generation; the operator has not seen the last change yet"
        );
    }
    for condition in &report.conditions {
        let _ = writeln!(
            out,
            "  {} since {}: {}: {}",
            condition.kind,
            ago(condition.last_transition_time, now),
            condition.reason,
            or_dash(&condition.message)
        );
    }
    for (at, state) in report.states.iter().enumerate() {
        draw_state(&mut out, state, at + 1 == report.states.len(), now);
    }
    out
}

fn draw_state(out: &mut String, state: &StateStatus, is_last: bool, now: Timestamp) {
    let (branch, trunk) = if is_last { ("└─", "  ") } else { ("├─", "│ ") };
    let since = state.since.map(|since| format!(", since {}", ago(since, now))).unwrap_or_default();
    let deferred = if state.deferred > 0 { format!(", {} deferred", state.deferred) } else { String::new() };
    let phase = format!("{:?}", state.phase).to_lowercase();
    let _ = writeln!(
        out,
        "{branch} {}  {phase}, {} of {} objects ready{deferred}{since}",
        state.name, state.ready, state.objects
    );
    if state.phase == Phase::Waiting {
        return;
    }
    let more = state.more_blockers;
    for (at, blocker) in state.blockers.iter().enumerate() {
        let is_last = at + 1 == state.blockers.len() && more == 0;
        draw_blocker(out, blocker, trunk, is_last, now);
    }
    if more > 0 {
        let _ = writeln!(out, "{trunk} └─ and {more} more");
    }
}

fn draw_blocker(out: &mut String, blocker: &Blocker, trunk: &str, is_last: bool, now: Timestamp) {
    let (branch, below) = if is_last { ("└─", "  ") } else { ("├─", "│ ") };
    let object = blocker.object.as_ref().map(|object| format!("{object} ")).unwrap_or_default();
    let node = blocker.node.as_ref().map(|node| format!("on node {node} ")).unwrap_or_default();
    let since = blocker.since.map(|since| format!(", since {}", ago(since, now))).unwrap_or_default();
    let _ = writeln!(out, "{trunk} {branch} {object}{node}{}{since}", blocker.reason);
    let _ = writeln!(out, "{trunk} {below}    {}", blocker.message);
    let (wakes, mends) = advice(&blocker.reason);
    let _ = writeln!(out, "{trunk} {below}    wakes it: {wakes}; can mend it: {mends}");
}

/// (what wakes a release that waits for this, who can mend it).
fn advice(reason: &str) -> (&'static str, &'static str) {
    match reason {
        "Forbidden" => ("the next try, within 5 minutes", "the administrator of the cluster, by a rule"),
        "KindNotInstalled" => {
            ("the kind's installation", "the administrator, by installing what brings the kind")
        }
        "OwnedByOther" => {
            ("a change of the object or its owner", "whoever owns the object, or `adopt: Force`")
        }
        "RenderError" | "GateInvalid" | "Invalid" | "GateNotJudgeable" | "ImmutableField" => {
            ("a new chart or other values", "the author of the chart")
        }
        "QuotaExceeded" => ("the next try, within 5 minutes", "the administrator of the namespace"),
        "NoMatchingNodes" | "Unschedulable" => ("a change of the nodes", "the administrator of the nodes"),
        "ErrImagePull" | "ImagePullBackOff" => (
            "the build of the image, or the kubelet's next try",
            "the chart's build, or whoever pushes the image",
        ),
        "PluginMissing" | "PluginNotReady" => {
            ("a change of the Plugin", "the administrator, by installing it")
        }
        "BeingDeleted" => ("the end of the deletion", "whoever holds its finalizers"),
        _ if reason.starts_with("Build") || reason == "NoBuild" => {
            ("a change of the build", "the author of the build")
        }
        _ => ("a change of the object", "the vendor of the workload"),
    }
}

fn ago(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        0..=119 => format!("{seconds} s ago"),
        120..=7199 => format!("{} min ago", seconds / 60),
        _ => format!("{} h ago", seconds / 3600),
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    #[test]
    fn the_tree_names_state_object_node_reason_and_who_can_mend_it() {
        let owner = json!({
            "kind": "SpecialResource", "metadata": {"name": "simple-kmod", "generation": 1},
            "status": {
                "observedGeneration": 1,
                "conditions": [
                    {"type": "Ready", "status": "False", "reason": "Progressing", "message": "",
                     "lastTransitionTime": "2026-01-01T00:00:00Z"},
                    {"type": "Progressing", "status": "True", "reason": "HandlingState", "message": "working",
                     "lastTransitionTime": "2026-01-01T00:00:00Z"}
                ],
                "states": [
                    {"name": "0000-buildconfig", "phase": "Ready", "ready": 1, "objects": 1, "deferred": 1},
                    {"name": "1000-driver-container", "phase": "Pending", "ready": 3, "objects": 4,
                     "since": "2026-01-01T00:00:30Z", "moreBlockers": 2,
                     "blockers": [{
                         "object": {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "p"},
                         "node": "worker-0", "reason": "ImagePullBackOff", "message": "no such image"
                     }]}
                ]
            }
        });
        let tree = draw(&Report::from_owner(&owner).unwrap(), "2026-01-01T00:01:00Z".parse().unwrap());
        let expected = "\
SpecialResource simple-kmod is not ready
  Progressing since 60 s ago: HandlingState: working
├─ 0000-buildconfig  ready, 1 of 1 objects ready, 1 deferred
└─ 1000-driver-container  pending, 3 of 4 objects ready, since 30 s ago
   ├─ Pod ns/p on node worker-0 ImagePullBackOff
   │     no such image
   │     wakes it: the build of the image, or the kubelet's next try; can mend it: the chart's build, or whoever pushes the image
   └─ and 2 more
";
        assert_eq!(tree, expected);
    }

    #[test]
    fn an_object_nobody_looked_at_says_so() {
        let owner = json!({"kind": "SpecialResource", "metadata": {"name": "a", "generation": 1}});
        let tree = draw(&Report::from_owner(&owner).unwrap(), Timestamp::UNIX_EPOCH);
        assert!(tree.contains("no status yet"), "{tree}");
    }
}
