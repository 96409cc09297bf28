//! Report: status, events on transitions, metrics.

use std::{sync::Arc, time::Duration};

use pintle_api::{
    Facts as _, Object, Timestamp, held_fields, names,
    special_resource::{ChartStatus, SpecialResourceStatus},
    status::{Phase, StateStatus},
};
use pintle_chart::Chart;
use pintle_cluster::{Note, NoteKind};
use pintle_plan::{
    Extra, OWN_FIELDS, Plan, REMARKS, Remark, StatusInput, Trouble, fnv1a, paused_status,
    special_resource_status, watch_status,
};
use pintle_plugin::Event;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    context::{Context, Key},
    front::Front,
    ledger::Told,
    metrics::{KindLabels, OwnerLabels, StateLabels},
    plugins::said::{self, Said},
    watches,
};

/// Two writes of a status that says much the same are at least this far apart.
const APART: Duration = Duration::from_secs(1);

/// What is told of a pass.
pub(crate) struct Outcome<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) chart: Option<&'a Chart>,
    pub(crate) revision: u32,
    pub(crate) tries: u32,
    pub(crate) is_removal: bool,
    pub(crate) said: &'a Said,
}

/// Tells how a release stands. Gives the time after which it is to be told, where it was told less
/// than a second ago.
pub(crate) async fn run(ctx: &Context, key: &Key, front: &Front, outcome: &Outcome<'_>) -> Option<Duration> {
    let input = StatusInput {
        plan: Some(outcome.plan),
        problem: None,
        generation: front.owner.generation(),
        tries: outcome.tries,
        is_removal: outcome.is_removal,
        chart: outcome.chart.map(chart_status),
        revision: outcome.revision,
        extra: extra(ctx, key, front),
        now: Timestamp::now(),
    };
    measure(ctx, key, &front.owner, outcome.plan);
    let told = tell(ctx, key, &front.owner, &input, outcome.said).await;
    for event in outcome.said.events() {
        note_of_plugin(ctx, &front.owner, event).await;
    }
    told
}

/// Tells that an owner could not even be planned.
pub(crate) async fn problem(
    ctx: &Context,
    key: &Key,
    owner: &Object,
    trouble: Trouble<'_>,
) -> Option<Duration> {
    let input = StatusInput {
        plan: None,
        problem: Some(trouble),
        generation: owner.generation(),
        tries: 0,
        is_removal: false,
        chart: None,
        revision: 0,
        extra: Extra::default(),
        now: Timestamp::now(),
    };
    tell(ctx, key, owner, &input, &Said::default()).await
}

/// Tells that nothing is done for an owner, and leaves the rest of its status as it is.
pub(crate) async fn paused(ctx: &Context, key: &Key, front: &Front) {
    let owner = &front.owner;
    let before = owner.at("/status").cloned().unwrap_or_else(|| json!({}));
    let input = StatusInput {
        plan: None,
        problem: None,
        generation: owner.generation(),
        tries: 0,
        is_removal: false,
        chart: None,
        revision: 0,
        extra: extra(ctx, key, front),
        now: Timestamp::now(),
    };
    let mut status = own(owner, &before);
    let paused = paused_status(&input, &before).remove("conditions").unwrap_or_default();
    if let Value::Object(status) = &mut status {
        status.insert("conditions".to_owned(), paused);
    }
    if !is_same(&status, &own(owner, &before)) && write_status(ctx, owner, &status).await {
        announce(ctx, owner, &before, &status).await;
    }
}

/// What is told of a release besides its states.
fn extra(ctx: &Context, key: &Key, front: &Front) -> Extra {
    let (is_split, outside, notes) = ctx.ledger.with(key, |entry| {
        let notes = entry.rendered.as_ref().map(|rendition| rendition.notes().to_owned());
        (entry.is_split, entry.outside.clone(), notes)
    });
    let mut remarks = Vec::new();
    if let Some(message) = outside {
        remarks.push(Remark { kind: "ChangedOutside", reason: "ReleaseChangedOutside", message });
    }
    if is_split {
        let message = "the revision does not fit into one Secret: `helm list` and `helm history` show it, \
                       `helm rollback` cannot use it"
            .to_owned();
        remarks.push(Remark { kind: "HelmRollbackUnavailable", reason: "RecordTooLarge", message });
    }
    if !front.wishes.unusable.is_empty() {
        let message = front.wishes.unusable.join("; ");
        remarks.push(Remark { kind: "AnnotationUnusable", reason: "InvalidAnnotation", message });
    }
    Extra { release: front.release.name.clone(), notes: notes.unwrap_or_default(), remarks }
}

/// The fields of a status that are ours: those we always write, and those that we wrote for a plugin. What a
/// vendor's own controller wrote is left to it.
fn own(owner: &Object, status: &Value) -> Value {
    if owner.kind() == "SpecialResource" {
        return status.clone();
    }
    let entries = owner.at("/metadata/managedFields").and_then(Value::as_array);
    let ours = entries.into_iter().flatten().filter(|entry| {
        entry["manager"] == names::MANAGER
            && entry["operation"] == "Apply"
            && entry["subresource"] == "status"
    });
    let held: Vec<_> = ours.filter_map(held_fields).collect();
    let is_own = |field: &str| {
        let step = format!("f:{field}");
        let holds = |fields: &Value| fields.get("f:status").is_some_and(|status| status.get(&step).is_some());
        OWN_FIELDS.contains(&field) || held.iter().any(|fields| holds(fields))
    };
    let fields = status.as_object().into_iter().flatten().filter(|(field, _)| is_own(field));
    Value::Object(fields.map(|(field, value)| (field.clone(), value.clone())).collect())
}

/// The states as they were last told.
pub(crate) fn states_before(owner: &Object) -> Vec<StateStatus> {
    let states = owner.at("/status/states").cloned().unwrap_or_default();
    serde_json::from_value(states).unwrap_or_default()
}

async fn tell(
    ctx: &Context,
    key: &Key,
    owner: &Object,
    input: &StatusInput<'_>,
    said: &Said,
) -> Option<Duration> {
    let live = owner.at("/status").cloned().unwrap_or_else(|| json!({}));
    let kept = own(owner, &live);
    let told = ctx.ledger.with(key, |entry| entry.told.clone()).filter(|told| told.kept == mark_of(&kept));
    let before = told.as_ref().map_or_else(|| live.clone(), |told| over(&live, &told.status));
    let mut status = if owner.kind() == "SpecialResource" {
        let before: SpecialResourceStatus = serde_json::from_value(before.clone()).unwrap_or_default();
        json!(special_resource_status(input, &before))
    } else {
        let mut status = own(owner, &before);
        if let Value::Object(status) = &mut status {
            status.retain(|field, _| !OWN_FIELDS.contains(&field.as_str()));
            status.extend(watch_status(input, &before));
        }
        status
    };
    said.put_into(&mut status, owner, input.now);
    if is_same(&status, told.as_ref().map_or(&kept, |told| &*told.status)) {
        return None;
    }
    let is_transition = conditions(&status) != conditions(&before) || phases(&status) != phases(&before);
    if !is_transition && let Some(wait) = ctx.ledger.with(key, |entry| too_early(entry.status_at)) {
        return Some(wait);
    }
    if let Some(written) = send_status(ctx, owner, &status).await {
        announce(ctx, owner, &before, &status).await;
        // What the kind's schema has no place for was dropped: the same again would be dropped again.
        let kept = own(&written, &written.at("/status").cloned().unwrap_or_default());
        let is_whole = is_same(&status, &kept);
        if kept.get("conditions").is_none() {
            announce_wait(ctx, owner, &before, &status).await;
        }
        ctx.ledger.with(key, |entry| {
            entry.status_at = Some(Instant::now());
            entry.told = (!is_whole).then(|| Told { kept: mark_of(&kept), status: Arc::new(status) });
        });
    }
    None
}

/// A status as it is in the cluster, with what was told beside it.
fn over(live: &Value, told: &Value) -> Value {
    let mut all = told.as_object().cloned().unwrap_or_default();
    all.extend(live.as_object().cloned().unwrap_or_default());
    Value::Object(all)
}

/// How long to wait before a status that was just written is written again.
fn too_early(last: Option<Instant>) -> Option<Duration> {
    APART.checked_sub(last?.elapsed()).filter(|left| !left.is_zero())
}

/// Fields the server would drop or leave empty do not make a difference.
fn is_same(status: &Value, before: &Value) -> bool {
    match (status, before) {
        (Value::Object(status), Value::Object(before)) => {
            let filled =
                |value: &Value| !matches!(value, Value::Null) && *value != json!([]) && *value != json!({});
            status
                .iter()
                .filter(|(_, value)| filled(value))
                .all(|(key, value)| before.get(key) == Some(value))
                && before
                    .iter()
                    .filter(|(_, value)| filled(value))
                    .all(|(key, _)| status.get(key).is_some_and(filled))
        }
        _ => status == before,
    }
}

/// Types, statuses and reasons of conditions.
fn conditions(status: &Value) -> Vec<[String; 3]> {
    let list = status.get("conditions").and_then(Value::as_array);
    let text = |condition: &Value, field: &str| {
        condition.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let triple =
        |condition: &Value| [text(condition, "type"), text(condition, "status"), text(condition, "reason")];
    list.into_iter().flatten().map(triple).collect()
}

fn phases(status: &Value) -> Vec<Value> {
    let states = status.get("states").and_then(Value::as_array);
    states.into_iter().flatten().map(|state| state.get("phase").cloned().unwrap_or_default()).collect()
}

/// Writes a status; false when it was refused.
pub(crate) async fn write_status(ctx: &Context, owner: &Object, status: &Value) -> bool {
    send_status(ctx, owner, status).await.is_some()
}

async fn send_status(ctx: &Context, owner: &Object, status: &Value) -> Option<Arc<Object>> {
    match ctx.writer.apply_status(&owner.reference(), owner.uid()?, status).await {
        Ok(applied) => {
            if !applied.warnings.is_empty() {
                watches::note_gaps(ctx, owner, &applied.warnings);
            }
            Some(applied.object)
        }
        Err(err) => {
            tracing::warn!(owner = %owner.reference(), label = err.label(), "could not write the status");
            None
        }
    }
}

fn mark_of(value: &Value) -> u64 {
    fnv1a(value.to_string().as_bytes())
}

/// One event when a release became ready, and one when it failed.
async fn announce(ctx: &Context, owner: &Object, before: &Value, status: &Value) {
    let find = |status: &Value, kind: &str| {
        conditions(status)
            .into_iter()
            .find(|[name, ..]| name == kind)
            .map(|[_, status, reason]| (status, reason))
    };
    let became = |kind: &str| {
        let now = find(status, kind).filter(|(status, _)| status == "True")?;
        (find(before, kind).as_ref() != Some(&now)).then_some(now.1)
    };
    if became("Ready").is_some() {
        note(ctx, owner, NoteKind::Normal, "Ready", "every state is ready").await;
    }
    for kind in ["Errored", "Stalled", "Paused"].into_iter().chain(REMARKS) {
        if let Some(reason) = became(kind) {
            let message = message_of(status, kind);
            note(ctx, owner, NoteKind::Warning, &reason, &message).await;
        }
    }
}

/// Where the schema of the kind has no place for conditions, an event says what is waited for: once, until
/// something of another sort is.
async fn announce_wait(ctx: &Context, owner: &Object, before: &Value, status: &Value) {
    let Some(reason) = waited_for(status).filter(|reason| waited_for(before) != Some(reason)) else { return };
    note(ctx, owner, NoteKind::Normal, reason, &message_of(status, "Ready")).await;
}

/// The word for the first thing that is waited for.
fn waited_for(status: &Value) -> Option<&str> {
    let states = status.get("states")?.as_array()?;
    let mut blockers = states.iter().filter_map(|state| state.get("blockers")?.as_array()).flatten();
    blockers.next()?.get("reason")?.as_str()
}

fn message_of(status: &Value, kind: &str) -> String {
    let list = status.get("conditions").and_then(Value::as_array);
    let found = list.into_iter().flatten().find(|c| c.get("type").and_then(Value::as_str) == Some(kind));
    found.and_then(|c| c.get("message")?.as_str()).unwrap_or_default().to_owned()
}

/// An event of a plugin, about the owner or an object of the release.
async fn note_of_plugin(ctx: &Context, owner: &Object, event: &Event) {
    let live = event.regarding.as_ref().and_then(|target| ctx.caches.get(target).found());
    let about = live.as_deref().unwrap_or(owner);
    note(ctx, about, said::kind_of(event), &event.reason, &event.message).await;
}

/// An event about an owner.
pub(crate) async fn note(ctx: &Context, owner: &Object, kind: NoteKind, reason: &str, message: &str) {
    match kind {
        NoteKind::Warning => tracing::warn!(owner = %owner.reference(), reason, "{message}"),
        NoteKind::Normal => tracing::info!(owner = %owner.reference(), reason, "{message}"),
    }
    let note = Note {
        regarding: owner.reference(),
        uid: owner.uid().map(str::to_owned),
        kind,
        reason: reason.to_owned(),
        action: "Reconcile".to_owned(),
        message: message.to_owned(),
        at: Timestamp::now(),
        reporter: ctx.identity.clone(),
    };
    if let Err(err) = ctx.writer.event(&note).await {
        tracing::warn!(owner = %owner.reference(), label = err.label(), reason, "could not write the event");
    }
}

fn chart_status(chart: &Chart) -> ChartStatus {
    ChartStatus {
        name: chart.name().to_owned(),
        version: chart.metadata.version.clone(),
        digest: chart.digest.clone(),
    }
}

/// SRO's metrics of one SpecialResource.
fn measure(ctx: &Context, key: &Key, owner: &Object, plan: &Plan) {
    if owner.kind() != "SpecialResource" {
        return;
    }
    let name = owner.name().to_owned();
    let mut states = Vec::new();
    let mut series = Vec::new();
    for view in &plan.states {
        let state = format!("templates/{}.yaml", view.name);
        let labels = StateLabels { specialresource: name.clone(), state: state.clone() };
        ctx.metrics.states.get_or_create(&labels).set(i64::from(view.phase == Phase::Ready));
        states.push(state);
        for (object, is_ready) in &view.kinds {
            let labels = KindLabels {
                specialresource: name.clone(),
                kind: object.kind.clone(),
                name: object.name.clone(),
                namespace: object.namespace.clone().unwrap_or_default(),
            };
            ctx.metrics.kinds.get_or_create(&labels).set(i64::from(*is_ready));
            series.push(labels);
        }
    }
    let has_trouble = plan.states.iter().any(|view| matches!(view.phase, Phase::Failed | Phase::Regressed));
    ctx.metrics.upgrade_alert.get_or_create(&OwnerLabels { cr: name }).set(i64::from(has_trouble));
    let old = ctx.ledger.with(key, |entry| std::mem::replace(&mut entry.series, series.clone()));
    old.iter().filter(|labels| !series.contains(labels)).for_each(|labels| {
        ctx.metrics.kinds.remove(labels);
    });
    ctx.ledger.with(key, |entry| entry.states = states);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_that_the_server_dropped_is_no_difference() {
        let ours = json!({"state": "Ready: ", "states": [], "blocked": ""});
        assert!(is_same(&ours, &json!({"state": "Ready: ", "blocked": ""})));
        assert!(!is_same(&ours, &json!({"state": "Ready: ", "blocked": "", "states": [{"name": "a"}]})));
        assert!(!is_same(&ours, &json!({"state": "x", "blocked": ""})));
    }
}
