//! The release as Helm keeps it, so that `helm list`, `history` and `get` show it.

use std::sync::Arc;

use pintle_api::{Answer, Object, ObjectRef, Query, Timestamp, Verdict, names};
use pintle_chart::release::{HookRun, Info, Record, Status, StoredChart, StoredHook};
use pintle_cluster::{ApiError, Apply, Delete};
use pintle_plan::{Hook, HookPhase, IN_STATE, Known, Memory, REST, Rendered, StateInput};
use serde::Deserialize as _;
use serde_json::json;

use crate::{
    charts::Loaded,
    context::{Context, Key},
    front::Front,
    render::Objects,
};

/// Revisions that are kept when nothing else is asked for; Helm's default.
const HISTORY: usize = 10;
/// Types of the Secrets that go with a release.
const TYPES: [&str; 2] = ["helm.sh/release.v1", "pintle.dev/state"];

/// Records a new revision before its first object is written.
pub(crate) async fn pending(
    ctx: &Context,
    key: &Key,
    front: &Front,
    chart: &Loaded,
    memory: &Memory,
    objects: &Objects,
) {
    let mark = format!("{} begun", memory.revision);
    if ctx.ledger.with(key, |entry| entry.recorded == mark) {
        return;
    }
    let stored = secrets(ctx, key, front).await;
    if find(&stored, front, memory.revision).is_none() {
        let status = if memory.revision > 1 { Status::PendingUpgrade } else { Status::PendingInstall };
        let now = memory.time.unwrap_or(Timestamp::UNIX_EPOCH);
        let record = Record {
            name: front.release.name.clone(),
            namespace: front.release.namespace.clone(),
            version: memory.revision,
            info: Info {
                first_deployed: Some(first_deployed(&stored).unwrap_or(now)),
                last_deployed: Some(now),
                description: "Applied in states by Pintle".to_owned(),
                status,
                ..Info::default()
            },
            chart: StoredChart::from(&*chart.chart),
            config: front.user_values(),
            manifest: manifest(&objects.states),
            hooks: objects.hooks.iter().map(stored_hook).collect(),
            apply_method: "csa".to_owned(),
            ..Record::default()
        };
        write(ctx, front, &record, false).await;
    }
    ctx.ledger.with(key, |entry| entry.recorded = mark);
}

/// Records what became of the revision, once its last gate has decided.
pub(crate) async fn conclude(ctx: &Context, key: &Key, front: &Front, memory: &Memory, verdict: &Verdict) {
    let (status, word) = match verdict {
        Verdict::Ready => (Status::Deployed, "deployed"),
        Verdict::Fatal(_) => (Status::Failed, "failed"),
        Verdict::Pending(_) | Verdict::Transient(_) => return,
    };
    let mark = format!("{} {word}", memory.revision);
    if ctx.ledger.with(key, |entry| entry.recorded == mark) {
        return;
    }
    let stored = secrets(ctx, key, front).await;
    for secret in &stored {
        let Ok(mut record) = Record::from_secret(secret) else { continue };
        let wanted = match record.version.cmp(&memory.revision) {
            std::cmp::Ordering::Equal => status,
            std::cmp::Ordering::Less
                if record.info.status == Status::Deployed && status == Status::Deployed =>
            {
                Status::Superseded
            }
            _ => continue,
        };
        if record.info.status != wanted {
            record.info.status = wanted;
            note_runs(&mut record, memory);
            write(ctx, front, &record, true).await;
        }
    }
    trim(ctx, &stored, memory.revision).await;
    ctx.ledger.with(key, |entry| entry.recorded = mark);
}

/// Deletes the records and the memory of a release that is gone.
pub(crate) async fn forget(ctx: &Context, key: &Key, front: &Front) -> Result<(), ApiError> {
    for secret in secrets(ctx, key, front).await {
        let how = Delete { uid: secret.uid().map(str::to_owned), ..Delete::default() };
        ctx.writer.delete(&secret.reference(), &how).await?;
    }
    Ok(())
}

/// The record of the newest revision that can be read.
pub(crate) async fn newest(ctx: &Context, key: &Key, front: &Front) -> Option<Record> {
    let stored = secrets(ctx, key, front).await;
    let records = stored.iter().filter_map(|secret| Record::from_secret(secret).ok());
    records.max_by_key(|record| record.version)
}

/// The hooks of a record. One that cannot be read any more is left out, and the log says so.
pub(crate) fn hooks(record: &Record) -> Vec<Hook> {
    let read = |stored: &StoredHook| {
        let object = objects_in(&stored.manifest).into_iter().next();
        if object.is_none() {
            tracing::warn!(release = record.name, hook = stored.name, "a stored hook cannot be read");
        }
        Some(Hook {
            rendered: Rendered { object: object?, source: stored.path.clone() },
            events: stored.events.clone(),
            weight: stored.weight,
            delete_policies: stored.delete_policies.clone(),
        })
    };
    record.hooks.iter().filter_map(read).collect()
}

/// The objects of a record, as a memory would know them.
pub(crate) fn objects(record: &Record) -> Vec<Known> {
    let known = |object: Object| Known {
        state: object.annotation(IN_STATE).unwrap_or(REST).to_owned(),
        object: object.reference(),
        pool: String::new(),
        rendered: String::new(),
        fields: String::new(),
    };
    objects_in(&record.manifest).into_iter().map(known).collect()
}

fn objects_in(yaml: &str) -> Vec<Object> {
    let documents = serde_yaml::Deserializer::from_str(yaml);
    let values = documents.filter_map(|document| serde_json::Value::deserialize(document).ok());
    values.filter_map(|value| Object::new(value).ok()).collect()
}

/// Every Secret that goes with the release: its records and its memory.
async fn secrets(ctx: &Context, key: &Key, front: &Front) -> Vec<Arc<Object>> {
    let query = Query {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        namespace: Some(front.release.namespace.clone()),
        label_selector: Some(format!("{}={}", names::OWNER, front.release.owner_uid)),
    };
    let (answer, _) = ctx.know(key, |facts| facts.list(&query)).await;
    match answer {
        Answer::Found(secrets) => {
            let is_ours =
                |secret: &Arc<Object>| secret.str_at("/type").is_some_and(|kind| TYPES.contains(&kind));
            secrets.into_iter().filter(is_ours).collect()
        }
        _ => Vec::new(),
    }
}

fn find<'a>(secrets: &'a [Arc<Object>], front: &Front, revision: u32) -> Option<&'a Arc<Object>> {
    let name = format!("sh.helm.release.v1.{}.v{revision}", front.release.name);
    secrets.iter().find(|secret| secret.name() == name)
}

fn first_deployed(secrets: &[Arc<Object>]) -> Option<Timestamp> {
    secrets.iter().filter_map(|secret| Record::from_secret(secret).ok()?.info.first_deployed).min()
}

async fn trim(ctx: &Context, secrets: &[Arc<Object>], newest: u32) {
    for secret in secrets {
        let version = secret.label("version").and_then(|text| text.parse::<u32>().ok());
        let is_old = version.is_some_and(|version| (version as usize) + HISTORY <= newest as usize);
        if is_old && let Err(err) = ctx.writer.delete(&secret.reference(), &Delete::default()).await {
            tracing::warn!(secret = %secret.reference(), label = err.label(), "could not delete an old revision");
        }
    }
}

async fn write(ctx: &Context, front: &Front, record: &Record, is_update: bool) {
    let release = &front.release;
    let mut secret = match record.to_secret(Timestamp::now(), is_update) {
        Ok((secret, _)) => secret,
        Err(err) => {
            tracing::warn!(owner = %release.owner, "the revision is not recorded for Helm: {err}");
            return;
        }
    };
    secret.set_label(names::OWNER, &release.owner_uid);
    secret.set_annotation(names::OWNED_BY, &release.owner.to_string());
    let target: ObjectRef = secret.reference();
    if release.owner.namespace.as_ref().is_none_or(|namespace| *namespace == release.namespace) {
        let owner = json!([{
            "apiVersion": release.owner.api_version, "kind": release.owner.kind, "name": release.owner.name,
            "uid": release.owner_uid
        }]);
        secret.map_mut(&["metadata"]).insert("ownerReferences".to_owned(), owner);
    }
    if let Err(err) = ctx.writer.apply(&secret, &Apply { force: true, ..Apply::default() }).await {
        tracing::warn!(secret = %target, label = err.label(), "could not record the revision for Helm");
    }
}

/// Tells in the record how its hooks ran.
fn note_runs(record: &mut Record, memory: &Memory) {
    for run in memory.hooks.iter().filter(|run| run.revision == record.version) {
        let is_it = |hook: &&mut StoredHook| hook.kind == run.object.kind && hook.name == run.object.name;
        if let Some(hook) = record.hooks.iter_mut().find(is_it) {
            let phase = match run.phase {
                HookPhase::Running => "Running",
                HookPhase::Succeeded => "Succeeded",
                HookPhase::Failed => "Failed",
            };
            let completed_at = (run.phase != HookPhase::Running).then_some(run.until).flatten();
            hook.last_run = HookRun { started_at: Some(run.since), completed_at, phase: phase.to_owned() };
        }
    }
}

fn stored_hook(hook: &Hook) -> StoredHook {
    let object = &hook.rendered.object;
    StoredHook {
        name: object.name().to_owned(),
        kind: object.kind().to_owned(),
        path: hook.rendered.source.clone(),
        manifest: serde_yaml::to_string(object).unwrap_or_default(),
        events: hook.events.clone(),
        weight: hook.weight,
        delete_policies: hook.delete_policies.clone(),
        ..StoredHook::default()
    }
}

/// Every object as it is applied. A state that cannot be rendered yet is named in its place.
fn manifest(states: &[StateInput]) -> String {
    let mut text = String::new();
    for state in states {
        for pool in &state.pools {
            match &pool.objects {
                Ok(objects) => {
                    for rendered in objects {
                        let yaml = serde_yaml::to_string(&rendered.object).unwrap_or_default();
                        text.push_str(&format!("---\n# Source: {}\n{yaml}", rendered.source));
                    }
                }
                Err(fault) => {
                    text.push_str(&format!("---\n# {} is not rendered: {}\n", state.name, fault.reason))
                }
            }
        }
    }
    text
}
