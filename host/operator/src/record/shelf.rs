//! The Secrets that records lie in.

use std::sync::Arc;

use pintle_api::{Answer, Facts, Gvk, Object, ObjectRef, Query, Timestamp, names};
use pintle_chart::release::{Dropped, PARTS, Record, SECRET_TYPE, part_name, secret_name};
use pintle_cluster::{ApiError, Apply, Delete, Interest, Mask};
use serde_json::json;

use crate::{
    context::{Context, Key},
    front::Front,
};

/// Types of the Secrets that go with a release.
const TYPES: [&str; 2] = [SECRET_TYPE, "pintle.dev/state"];
/// Part of the manifest of a record that lies elsewhere.
pub(super) const ELSEWHERE: &str = "does not fit into a Secret";

/// A record as its Secret's metadata tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) version: u32,
    /// Helm's word.
    pub(crate) status: String,
    /// Whether the last to write it was one of us: Helm keeps no annotations.
    pub(crate) is_ours: bool,
    /// Uid of the owner, where the label is there.
    pub(crate) owner: Option<String>,
    /// Who it was written for, where the annotation is there.
    pub(crate) owned_by: Option<String>,
    /// When it was last written, as far as is known.
    pub(crate) at: Option<Timestamp>,
    /// In how many parts it lies besides; 0: in none.
    pub(crate) parts: usize,
}

/// Metadata of every record of Helm in the cluster: what somebody else does to a release shows there.
pub(crate) fn helm_secrets() -> Interest {
    Interest::all(Gvk::new("v1", "Secret")).selecting("owner=helm").masked(Mask::Metadata)
}

/// Namespace and name of the release that a record of Helm is of.
pub(crate) fn release_of(secret: &Object) -> Option<(String, String)> {
    let is_record = secret.kind() == "Secret" && secret.label("owner") == Some("helm");
    let name = secret.label("name").filter(|_| is_record)?;
    Some((secret.namespace()?.to_owned(), name.to_owned()))
}

/// The Secret of a revision.
pub(super) fn secret_of(front: &Front, revision: u32) -> ObjectRef {
    let name = secret_name(&front.release.name, revision);
    ObjectRef::new("v1", "Secret", &name).within(&front.release.namespace)
}

/// Every record of the release, whoever wrote it, oldest first.
pub(crate) fn entries(ctx: &Context, front: &Front) -> Vec<Entry> {
    let (namespace, name) = (&front.release.namespace, &front.release.name);
    let first = secret_name(name, 0);
    let all = ctx.caches.objects_named(&helm_secrets(), namespace, first.trim_end_matches('0'));
    let all = all.found().unwrap_or_default();
    let is_it = |secret: &&Arc<Object>| secret.label("name") == Some(name.as_str());
    let mut entries: Vec<_> = all.iter().filter(is_it).filter_map(|secret| entry(secret)).collect();
    entries.sort_by_key(|entry| entry.version);
    entries
}

fn entry(secret: &Object) -> Option<Entry> {
    let seconds = |label: &str| {
        let seconds = secret.label(label)?.parse().ok()?;
        Timestamp::from_second(seconds).ok()
    };
    Some(Entry {
        version: secret.label("version")?.parse().ok()?,
        status: secret.label("status").unwrap_or_default().to_owned(),
        is_ours: secret.annotation(names::OWNED_BY).is_some(),
        owner: secret.label(names::OWNER).map(str::to_owned),
        owned_by: secret.annotation(names::OWNED_BY).map(str::to_owned),
        at: seconds("modifiedAt").or_else(|| seconds("createdAt")),
        parts: secret.annotation(PARTS).and_then(|text| text.parse().ok()).unwrap_or_default(),
    })
}

/// Every Secret of the owner that goes with the release: its records and its memory.
pub(super) async fn secrets(ctx: &Context, key: &Key, front: &Front) -> Vec<Arc<Object>> {
    let query = Query {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        namespace: Some(front.release.namespace.clone()),
        label_selector: Some(format!("{}={}", names::OWNER, front.release.owner_uid)),
    };
    let (answer, _) = ctx.know(key, |facts| facts.list(&query)).await;
    let is_ours = |secret: &Arc<Object>| secret.str_at("/type").is_some_and(|kind| TYPES.contains(&kind));
    answer.found().unwrap_or_default().into_iter().filter(is_ours).collect()
}

/// The record of a revision, joined where it is in parts; nothing when it cannot be read.
pub(super) async fn read(ctx: &Context, key: &Key, front: &Front, revision: u32) -> Option<Record> {
    let secret = get(ctx, key, &secret_of(front, revision)).await?;
    let Some(count) = secret.annotation(PARTS).and_then(|text| text.parse::<usize>().ok()) else {
        return told(Record::from_secret(&secret), revision);
    };
    let mut parts = Vec::new();
    for number in 0..count {
        parts.push(get(ctx, key, &part(front, revision, number)).await?);
    }
    told(Record::from_parts(parts.iter().map(|part| &**part)), revision)
}

fn told(record: Result<Record, pintle_chart::release::Error>, revision: u32) -> Option<Record> {
    let fault = match record {
        Ok(record) if record.version == revision => return Some(record),
        Ok(record) => format!("it says that it is of revision {}", record.version),
        Err(err) => err.to_string(),
    };
    tracing::warn!(revision, "the record of a revision cannot be used: {fault}");
    None
}

async fn get(ctx: &Context, key: &Key, target: &ObjectRef) -> Option<Arc<Object>> {
    let (answer, _): (Answer<Arc<Object>>, _) = ctx.know(key, |facts: &dyn Facts| facts.get(target)).await;
    answer.found()
}

fn part(front: &Front, revision: u32, number: usize) -> ObjectRef {
    let name = part_name(&front.release.name, revision, number);
    ObjectRef::new("v1", "Secret", &name).within(&front.release.namespace)
}

/// Writes a record; gives what had to be left out of the Secret that Helm reads, nothing where no Secret holds it:
/// the next try would not either.
pub(super) async fn write(
    ctx: &Context,
    front: &Front,
    record: &Record,
    is_update: bool,
) -> Result<Option<Dropped>, ApiError> {
    let now = Timestamp::now();
    let (secrets, dropped) = match record.to_secret(now, is_update) {
        Ok((secret, dropped)) => (vec![secret], dropped),
        Err(pintle_chart::release::Error::TooLarge { .. }) => match record.to_parts(now, is_update) {
            Ok(parts) => {
                let count = parts.len().saturating_sub(1);
                (parts, Dropped::Whole(count))
            }
            Err(err) => return Ok(not_recorded(front, &err)),
        },
        Err(err) => return Ok(not_recorded(front, &err)),
    };
    // Parts come first: a head without them would be a record that nobody can read.
    for secret in secrets.into_iter().rev() {
        put(ctx, front, secret).await?;
    }
    Ok(Some(dropped))
}

fn not_recorded(front: &Front, err: &pintle_chart::release::Error) -> Option<Dropped> {
    tracing::warn!(owner = %front.release.owner, "the revision is not recorded for Helm: {err}");
    None
}

async fn put(ctx: &Context, front: &Front, mut secret: Object) -> Result<(), ApiError> {
    let release = &front.release;
    let target: ObjectRef = secret.reference();
    // Parts are large and found by their names: no watch of ours shall keep them.
    if secret.str_at("/type") == Some(SECRET_TYPE) {
        secret.set_label(names::OWNER, &release.owner_uid);
    }
    secret.set_annotation(names::OWNED_BY, &release.owner.to_string());
    if release.owner.namespace.as_ref().is_none_or(|namespace| *namespace == release.namespace) {
        let owner = json!([{
            "apiVersion": release.owner.api_version, "kind": release.owner.kind, "name": release.owner.name,
            "uid": release.owner_uid
        }]);
        secret.map_mut(&["metadata"]).insert("ownerReferences".to_owned(), owner);
    }
    let written = ctx.writer.apply(&secret, &Apply { force: true, ..Apply::default() }).await;
    if let Err(err) = &written {
        tracing::warn!(secret = %target, label = err.label(), "could not record the revision for Helm");
    }
    written.map(drop)
}

/// Deletes what is over the limit of the history; never what is deployed.
pub(super) async fn trim(ctx: &Context, front: &Front, newest: u32) {
    let limit = front.history() as usize;
    let entries = entries(ctx, front);
    let over = entries.len().saturating_sub(limit);
    if limit == 0 {
        return;
    }
    let old = entries.iter().filter(|entry| entry.version < newest && entry.status != "deployed");
    for entry in old.take(over) {
        if let Err(err) = delete(ctx, front, entry).await {
            let revision = entry.version;
            tracing::warn!(owner = %front.release.owner, revision, label = err.label(), "could not delete an old revision");
        }
    }
}

async fn delete(ctx: &Context, front: &Front, entry: &Entry) -> Result<(), ApiError> {
    for number in 0..entry.parts {
        ctx.writer.delete(&part(front, entry.version, number), &Delete::default()).await?;
    }
    ctx.writer.delete(&secret_of(front, entry.version), &Delete::default()).await.map(drop)
}

/// Deletes the records and the memory of a release that is gone.
pub(super) async fn forget(ctx: &Context, key: &Key, front: &Front) -> Result<(), ApiError> {
    let uid = &front.release.owner_uid;
    let own = secrets(ctx, key, front).await;
    let is_of_other = |entry: &Entry| entry.owner.as_ref().is_some_and(|owner| owner != uid);
    for entry in entries(ctx, front).iter().filter(|entry| !is_of_other(entry)) {
        delete(ctx, front, entry).await?;
    }
    for secret in own {
        let how = Delete { uid: secret.uid().map(str::to_owned), ..Delete::default() };
        ctx.writer.delete(&secret.reference(), &how).await?;
    }
    Ok(())
}
