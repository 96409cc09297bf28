//! The tree: release, state, object, node, reason; since when, what ends it, who can mend it.

use std::fmt::Write as _;

use anyhow::Context as _;
use jiff::Timestamp;
use pintle_api::{
    Blocker, names,
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
    /// Ready, and the conditions that are not as they should be.
    conditions: Vec<Condition>,
    /// Its states in order.
    states: Vec<StateStatus>,
    /// True when the status speaks of an older generation.
    outdated: bool,
    /// False when no Watch binds its kind.
    bound: bool,
    /// The owner of the release that it is an object of, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    part_of: Option<String>,
    /// Since when it is being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<Timestamp>,
    /// The Watch that binds its kind, where that is being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    leaving: Option<String>,
    /// What its deletion waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    finalizers: Vec<String>,
}

// === impl Report ===

impl Report {
    /// The same, of an owner whose Watch is being deleted.
    pub(crate) fn bound_by_leaving(mut self, watch: Option<String>) -> Self {
        self.leaving = watch;
        self
    }

    /// Reads the status of an owner; `is_bound` tells whether a Watch binds its kind.
    ///
    /// # Errors
    /// When the status is not one of ours.
    pub(crate) fn from_owner(object: &Value, is_bound: bool) -> anyhow::Result<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let name = match text("/metadata/namespace") {
            "" => text("/metadata/name").to_owned(),
            namespace => format!("{namespace}/{}", text("/metadata/name")),
        };
        // Other kinds have conditions too, which say nothing about a release.
        let is_ours = is_bound || object.pointer("/status/states").is_some();
        let list = |field: &str| {
            let found = object.pointer(&format!("/status/{field}")).filter(|_| is_ours);
            found.cloned().unwrap_or(Value::Array(vec![]))
        };
        let conditions: Vec<Condition> = serde_json::from_value(list("conditions"))
            .context("status.conditions is not as Pintle writes it")?;
        let states =
            serde_json::from_value(list("states")).context("status.states is not as Pintle writes it")?;
        let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
        let ready =
            conditions.iter().any(|condition| condition.kind == "Ready" && condition.status == "True");
        let telling = conditions.into_iter().filter(|condition| {
            condition.kind == "Ready"
                || condition.status == "True"
                    && matches!(
                        condition.kind.as_str(),
                        "Errored" | "Progressing" | "Stalled" | "Reconciling"
                    )
        });
        let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
        let deleted: Option<Timestamp> = text("/metadata/deletionTimestamp").parse().ok();
        let annotation = object.pointer("/metadata/annotations").and_then(|all| all.get(names::OWNED_BY));
        Ok(Self {
            owner: format!("{} {name}", text("/kind")),
            ready,
            conditions: telling.collect(),
            states,
            outdated: is_ours && number("/status/observedGeneration") != number("/metadata/generation"),
            bound: is_bound,
            part_of: annotation.and_then(Value::as_str).map(str::to_owned),
            deleted,
            leaving: None,
            finalizers: finalizers
                .into_iter()
                .flatten()
                .filter(|_| deleted.is_some())
                .filter_map(|one| one.as_str().map(str::to_owned))
                .collect(),
        })
    }
}

/// Draws the tree; `now` dates it.
pub(crate) fn draw(report: &Report, now: Timestamp) -> String {
    let mut out = format!("{} {}\n", report.owner, headline(report));
    draw_deletion(&mut out, report, now);
    if !report.bound && !report.states.is_empty() {
        let _ = writeln!(
            out,
            "  no Watch binds its kind: unless an operator has it in its --watches-file, this is what was said last"
        );
    }
    if report.outdated {
        let _ = writeln!(
            out,
            "  its status is of an older generation; the operator has not seen the last change yet"
        );
    }
    if let Some(watch) = &report.leaving {
        let _ = writeln!(
            out,
            "  Watch {watch}, which binds its kind, is being deleted: it serves what has a release, and begins none; ask `pintle why watch/{watch}`"
        );
    }
    draw_plain(&mut out, report, now);
    for condition in report.conditions.iter().filter(|condition| condition.kind != "Ready") {
        let _ = writeln!(
            out,
            "  {} for {}: {}: {}",
            condition.kind,
            span(condition.last_transition_time, now),
            condition.reason,
            or_dash(&condition.message)
        );
    }
    for (at, state) in report.states.iter().enumerate() {
        draw_state(&mut out, state, at + 1 == report.states.len(), now);
    }
    out
}

/// Kinds that have no states say all they have to say in Ready.
fn draw_plain(out: &mut String, report: &Report, now: Timestamp) {
    let [condition] = report.conditions.as_slice() else { return };
    if condition.kind == "Ready" && !report.ready && report.states.is_empty() && !condition.message.is_empty()
    {
        let since = span(condition.last_transition_time, now);
        let _ = writeln!(out, "  {} for {since}: {}", condition.reason, condition.message);
    }
}

fn headline(report: &Report) -> String {
    let has_status = !report.states.is_empty() || !report.conditions.is_empty();
    match (report.ready, has_status, &report.part_of) {
        (true, ..) => "is ready".to_owned(),
        (false, true, _) => "is not ready".to_owned(),
        (false, false, Some(owner)) => {
            format!("is an object of the release of {owner}; ask `pintle why` for that")
        }
        (false, false, None) if report.bound => {
            "has no status yet; is the operator running, and does its --selector match?".to_owned()
        }
        (false, false, None) => {
            "is not managed by Pintle: no Watch binds its kind (an operator may by its --watches-file), and it is no object of a release".to_owned()
        }
    }
}

fn draw_deletion(out: &mut String, report: &Report, now: Timestamp) {
    let Some(since) = report.deleted else { return };
    let held = match report.finalizers.as_slice() {
        [] => String::new(),
        held => format!("; it goes when these are done: {}", held.join(", ")),
    };
    let _ = writeln!(out, "  is being deleted for {}{held}", span(since, now));
}

fn draw_state(out: &mut String, state: &StateStatus, is_last: bool, now: Timestamp) {
    let (branch, trunk) = if is_last { ("└─", "  ") } else { ("├─", "│ ") };
    let since = state.since.map(|since| format!(", for {}", span(since, now))).unwrap_or_default();
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
    let about = by_object(&state.blockers);
    for (at, blockers) in about.iter().enumerate() {
        let is_last = at + 1 == about.len() && more == 0;
        draw_blockers(out, blockers, trunk, is_last, now);
    }
    if more > 0 {
        let _ = writeln!(out, "{trunk} └─ and {more} more");
    }
}

/// What is told about each object, in order of its first; what is about none stands alone.
fn by_object(blockers: &[Blocker]) -> Vec<Vec<&Blocker>> {
    let mut all: Vec<Vec<&Blocker>> = Vec::new();
    for blocker in blockers {
        let known = all.iter_mut().find(|known| {
            blocker.object.is_some() && known.first().is_some_and(|first| first.object == blocker.object)
        });
        match known {
            Some(known) => known.push(blocker),
            None => all.push(vec![blocker]),
        }
    }
    all
}

/// Draws what is told about one object.
fn draw_blockers(out: &mut String, blockers: &[&Blocker], trunk: &str, is_last: bool, now: Timestamp) {
    let [blocker, others @ ..] = blockers else { return };
    let (branch, below) = if is_last { ("└─", "  ") } else { ("├─", "│ ") };
    let object = blocker.object.as_ref().map(|object| format!("{object} ")).unwrap_or_default();
    let node = blocker.node.as_ref().map(|node| format!("on node {node} ")).unwrap_or_default();
    let since = blocker.since.map(|since| format!(", for {}", span(since, now))).unwrap_or_default();
    let _ = writeln!(out, "{trunk} {branch} {object}{node}{}{since}", blocker.reason);
    let _ = writeln!(out, "{trunk} {below}    {}", blocker.message);
    for other in others.iter().filter(|other| other.message != blocker.message) {
        let _ = writeln!(out, "{trunk} {below}    {}: {}", other.reason, other.message);
    }
    let (wakes, mends) = super::advice::advice(&blocker.reason);
    let _ = writeln!(out, "{trunk} {below}    wakes it: {wakes}; can mend it: {mends}");
}

fn span(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
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
        let tree = draw(&Report::from_owner(&owner, true).unwrap(), "2026-01-01T00:01:00Z".parse().unwrap());
        let expected = "\
SpecialResource simple-kmod is not ready
  Progressing for 60 s: HandlingState: working
├─ 0000-buildconfig  ready, 1 of 1 objects ready, 1 deferred
└─ 1000-driver-container  pending, 3 of 4 objects ready, for 30 s
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
        let tree = draw(&Report::from_owner(&owner, true).unwrap(), Timestamp::UNIX_EPOCH);
        assert!(tree.contains("no status yet"), "{tree}");
    }

    #[test]
    fn a_watch_that_is_being_deleted_says_who_holds_it_and_so_do_its_owners() {
        let message = "1 memcached still has a release: shop/a; delete it";
        let watch = json!({"kind": "Watch", "metadata": {"name": "memcached", "generation": 2,
            "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [names::WATCH_FINALIZER]},
            "status": {"observedGeneration": 2, "releases": 1, "conditions": [{"type": "Ready", "status": "False",
                "reason": "Deleting", "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        let tree = draw(&Report::from_owner(&watch, true).unwrap(), now);
        let expected = format!(
            "Watch memcached is not ready\n  is being deleted for 60 s; it goes when these are done: pintle.dev/watch\n  \
             Deleting for 60 s: {message}\n"
        );
        assert_eq!(tree, expected);
        let owner = json!({"kind": "Memcached", "metadata": {"name": "a", "namespace": "shop"}});
        let report = Report::from_owner(&owner, true).unwrap().bound_by_leaving(Some("memcached".to_owned()));
        let tree = draw(&report, now);
        assert!(tree.contains("Watch memcached, which binds its kind, is being deleted"), "{tree}");
    }

    #[test]
    fn an_object_that_nobody_manages_or_that_is_part_of_a_release_says_so() {
        let mut pod = json!({"kind": "Pod", "metadata": {"name": "p", "namespace": "ns"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let draw_at = |object: &Value| {
            draw(&Report::from_owner(object, false).unwrap(), "2026-01-01T00:01:00Z".parse().unwrap())
        };
        let tree = draw_at(&pod);
        assert!(tree.starts_with("Pod ns/p is not managed by Pintle"), "{tree}");
        pod["metadata"]["annotations"] = json!({names::OWNED_BY: "Cache ns/sample"});
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        pod["metadata"]["finalizers"] = json!(["a/b"]);
        let expected = "Pod ns/p is an object of the release of Cache ns/sample; ask `pintle why` for that\n  \
                        is being deleted for 60 s; it goes when these are done: a/b\n";
        assert_eq!(draw_at(&pod), expected);
    }

    #[test]
    fn a_pod_is_shown_once_with_all_that_is_told_about_it() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "p"});
        let owner = json!({"kind": "A", "metadata": {"name": "a"}, "status": {
        "conditions": [{"type": "Ready", "status": "False", "reason": "Progressing", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "states": [{"name": "rest", "phase": "Pending", "ready": 0, "objects": 1, "blockers": [
            {"object": pod, "reason": "Unschedulable", "message": "one"},
            {"object": pod, "reason": "ContainersNotReady", "message": "two"}
        ]}]}});
        let report = Report::from_owner(&owner, true).unwrap();
        let tree = draw(&report, Timestamp::UNIX_EPOCH);
        assert_eq!(tree.matches("Pod ns/p").count(), 1, "{tree}");
        assert!(tree.contains("one\n") && tree.contains("ContainersNotReady: two\n"), "{tree}");
        assert_eq!(serde_json::to_value(&report).unwrap()["conditions"][0]["type"], "Ready");
    }
}
