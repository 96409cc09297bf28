//! The only place that changes the cluster. Nothing here decides what to write.

mod adopt;
mod classify;
mod error;
mod event;
mod evict;
mod finalizer;
mod lists;
pub(crate) mod record;
mod status;
mod unknown;

use std::{collections::BTreeMap, sync::Arc};

use pintle_api::{Answer, Object, ObjectRef, held_fields, names};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

pub use error::{ApiError, Cause, FieldConflict, InvalidField, Retry};
pub use event::{Note, NoteKind};

use crate::{
    counters::Verb,
    discovery::{Discovery, Served},
    lease::Leadership,
    link::{Link, Query, Reply},
    read::Caches,
};

/// Fields that are dropped from one object at most; one that has more is of another kind.
const MAX_DROPPED: usize = 32;
const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

/// Writes objects while [`Leadership`] allows, and shows each answer to the caches at once.
#[derive(Clone)]
pub struct Writer {
    link: Arc<Link>,
    discovery: Arc<Discovery>,
    caches: Arc<Caches>,
    leadership: Leadership,
    gaps: Arc<unknown::Gaps>,
}

/// How an object is applied; the default is what most applies are: our manager, not forced, whatever is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apply {
    /// Take fields from managers that hold them with other values (D1).
    pub force: bool,
    /// What must be there already.
    pub expect: Expect,
    /// Field manager; `pintle` when absent.
    pub manager: Option<String>,
}

/// What must be there for a write to happen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Expect {
    /// Whatever is there, or nothing.
    #[default]
    Any,
    /// Nothing: an object that exists is left alone, with [`Cause::Stale`].
    Absent,
    /// The object with this uid.
    Uid(String),
    /// The object at this resourceVersion.
    Version(String),
}

/// What a write left behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object as the server answered, whole.
    pub object: Arc<Object>,
    /// Our managedFields entry in it (D4); absent after writes that leave none.
    pub fingerprint: Option<String>,
    /// True when it was made.
    pub created: bool,
    /// What the server warned of: unknown and duplicate fields, deprecated versions.
    pub warnings: Vec<String>,
}

/// A change that is no apply.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// RFC 7386: `null` removes.
    Merge(Value),
    /// RFC 6902: operations in order; a failed `test` is [`Cause::Stale`].
    Json(Vec<Value>),
}

/// How an object is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delete {
    /// Only the object with this uid; another of the same name is left alone.
    pub uid: Option<String>,
    /// What becomes of its dependents.
    pub propagation: Propagation,
}

/// What becomes of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// They go after it.
    #[default]
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}

/// How far a deletion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// It is gone.
    Gone,
    /// Finalizers or a grace period still hold it.
    Terminating,
}

/// Our managedFields entry in a live object as a short text, without its time: it differs when another
/// manager took a field, and does not when the server counted a new version (D4). `None` when the
/// manager holds nothing.
#[must_use]
pub fn applied_fingerprint(object: &Object, manager: &str) -> Option<String> {
    let entries = object.at("/metadata/managedFields").and_then(Value::as_array)?;
    let is_own = |entry: &&Value| {
        let field = |name: &str| entry.get(name).and_then(Value::as_str);
        field("manager") == Some(manager)
            && field("operation") == Some("Apply")
            && field("subresource").is_none()
    };
    let own = entries.iter().find(is_own)?;
    let kept = json!([own.get("apiVersion"), held_fields(own).as_deref().map(sorted)]);
    let digest = Sha256::digest(kept.to_string());
    Some(hex::encode(digest.iter().take(16).copied().collect::<Vec<u8>>()))
}

/// The same value with its mappings sorted, whatever order the parser kept.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let map: BTreeMap<&String, Value> = map.iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(map.into_iter().map(|(key, value)| (key.clone(), value)).collect())
        }
        other => other.clone(),
    }
}

// === impl Writer ===

impl Writer {
    pub(crate) fn new(
        link: Arc<Link>,
        discovery: Arc<Discovery>,
        caches: Arc<Caches>,
        leadership: Leadership,
    ) -> Self {
        Self { link, discovery, caches, leadership, gaps: Arc::default() }
    }

    /// Server-side apply. Fields the server does not know are dropped with a warning.
    ///
    /// # Errors
    /// See [`Cause`]; [`ApiError::retry`] says whether a retry helps.
    ///
    /// # Cancellation
    /// The write may or may not have happened; the watch of the object tells.
    pub async fn apply(&self, object: &Object, how: &Apply) -> Result<Applied, ApiError> {
        let manager = how.manager.as_deref().unwrap_or(names::MANAGER);
        let target = object.reference();
        let mut body = apply_body(object, &how.expect);
        let served = self.served(Verb::Patch, &target)?;
        let path = item_path(&served, Verb::Patch, &target)?;
        let mut dropped = Vec::new();
        loop {
            let query = Query::new(&path)
                .with("fieldManager", manager)
                .with("force", if how.force { "true" } else { "false" })
                .with("fieldValidation", "Warn");
            let request = query.patch(APPLY, &body);
            match self.send(Verb::Patch, &target, &served.resource(), request).await {
                Ok(reply) => {
                    let mut applied = self.applied(Verb::Patch, &target, &reply, manager)?;
                    applied.warnings.append(&mut dropped);
                    return Ok(applied);
                }
                Err(err) if dropped.len() < MAX_DROPPED => match unknown::drop_from(&mut body, &err) {
                    Some(mut warnings) => dropped.append(&mut warnings),
                    None => return Err(err),
                },
                Err(err) => return Err(err),
            }
        }
    }

    /// POST of a new object; `generateName` is taken as it is.
    ///
    /// # Errors
    /// [`Cause::AlreadyExists`] when the name is taken; see [`Cause`].
    ///
    /// # Cancellation
    /// The write may or may not have happened.
    pub async fn create(&self, object: &Object) -> Result<Applied, ApiError> {
        let target = object.reference();
        let served = self.served(Verb::Create, &target)?;
        let namespace = namespace_of(&served, Verb::Create, &target)?;
        let query = Query::new(&served.path(namespace, None))
            .with("fieldManager", names::MANAGER)
            .with("fieldValidation", "Warn");
        let request = query.post(&object.to_value());
        let reply = self.send(Verb::Create, &target, &served.resource(), request).await?;
        self.applied(Verb::Create, &target, &reply, names::MANAGER)
    }

    /// A patch of an object, or of one of its subresources (`status`, `scale`).
    ///
    /// # Errors
    /// [`Cause::NotFound`] when it is not there; [`Cause::Stale`] when a `test` or a resourceVersion in
    /// the patch does not hold; see [`Cause`].
    ///
    /// # Cancellation
    /// The write may or may not have happened.
    pub async fn patch(
        &self,
        target: &ObjectRef,
        subresource: Option<&str>,
        patch: &Patch,
    ) -> Result<Applied, ApiError> {
        let (content_type, body) = match patch {
            Patch::Merge(body) => (MERGE, body.clone()),
            Patch::Json(operations) => (JSON_PATCH, Value::Array(operations.clone())),
        };
        let served = self.served(Verb::Patch, target)?;
        let (path, resource) = below(item_path(&served, Verb::Patch, target)?, &served, subresource);
        let request = Query::new(&path)
            .with("fieldManager", names::MANAGER)
            .with("fieldValidation", "Warn")
            .patch(content_type, &body);
        let reply = self.send(Verb::Patch, target, &resource, request).await?;
        self.applied(Verb::Patch, target, &reply, names::MANAGER)
    }

    /// Deletes an object; one that is not there counts as gone.
    ///
    /// # Errors
    /// [`Cause::Stale`] when another uid has the name; see [`Cause`].
    ///
    /// # Cancellation
    /// The deletion may or may not have begun.
    pub async fn delete(&self, target: &ObjectRef, how: &Delete) -> Result<Deleted, ApiError> {
        let policy = match how.propagation {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        };
        let mut body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy});
        if let (Some(uid), Some(body)) = (&how.uid, body.as_object_mut()) {
            body.insert("preconditions".to_owned(), json!({"uid": uid}));
        }
        let served = self.served(Verb::Delete, target)?;
        let path = item_path(&served, Verb::Delete, target)?;
        let request = Query::new(&path).delete(&body);
        match self.send(Verb::Delete, target, &served.resource(), request).await {
            Ok(reply) => self.deleted(target, &reply),
            Err(error) if matches!(error.cause(), Cause::NotFound) => {
                if let Some(uid) = &how.uid {
                    self.caches.forget(target, uid);
                }
                Ok(Deleted::Gone)
            }
            Err(error) => Err(error),
        }
    }

    /// Sets labels of an object that others own, and takes away those without a value; it never makes the object.
    /// A patch and no apply: with an apply each release would need a manager of its own on each node, of which the
    /// server reads all at every write.
    ///
    /// # Errors
    /// See [`Cause`].
    ///
    /// # Cancellation
    /// The write may or may not have happened.
    pub async fn label(
        &self,
        target: &ObjectRef,
        labels: &[(String, Option<String>)],
    ) -> Result<Applied, ApiError> {
        let labels: BTreeMap<&str, Option<&str>> =
            labels.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect();
        self.patch(target, None, &Patch::Merge(json!({"metadata": {"labels": labels}}))).await
    }

    fn served(&self, verb: Verb, target: &ObjectRef) -> Result<Arc<Served>, ApiError> {
        match self.discovery.kind(&target.gvk()) {
            Answer::Found(served) => Ok(served),
            _ => Err(ApiError::new(verb, target.clone(), Cause::KindUnknown(target.gvk().to_string()))),
        }
    }

    /// The one way out: nothing is sent without a permit.
    async fn send(
        &self,
        verb: Verb,
        target: &ObjectRef,
        resource: &str,
        request: crate::link::Built,
    ) -> Result<Reply, ApiError> {
        let fail = |cause| ApiError::new(verb, target.clone(), cause);
        let permit = self.leadership.permit().map_err(|e| fail(Cause::NotLeading(e)))?;
        let sent = self.link.send(verb, resource, request).await;
        drop(permit);
        sent.map_err(|failure| fail(classify::cause(failure, target, &self.link.account)))
    }

    fn applied(
        &self,
        verb: Verb,
        target: &ObjectRef,
        reply: &Reply,
        manager: &str,
    ) -> Result<Applied, ApiError> {
        let unreadable = |failure| ApiError::new(verb, target.clone(), Cause::OutcomeUnknown(Some(failure)));
        let object: Arc<Object> = Arc::new(reply.json().map_err(unreadable)?);
        self.caches.put(&object);
        Ok(Applied {
            fingerprint: applied_fingerprint(&object, manager),
            created: reply.code == 201,
            warnings: reply.warnings.clone(),
            object,
        })
    }

    /// The server answers with the object while it is held, and with it or a Status once it is gone.
    fn deleted(&self, target: &ObjectRef, reply: &Reply) -> Result<Deleted, ApiError> {
        let unreadable =
            |failure| ApiError::new(Verb::Delete, target.clone(), Cause::OutcomeUnknown(Some(failure)));
        let answer: Map<String, Value> = reply.json().map_err(unreadable)?;
        let is_status = answer.get("kind").and_then(Value::as_str) == Some("Status");
        if !is_status
            && let Ok(object) = Object::new(Value::Object(answer.clone()))
            && object.is_terminating()
        {
            self.caches.put(&Arc::new(object));
            return Ok(Deleted::Terminating);
        }
        let answer = Value::Object(answer);
        let uid = if is_status { answer.pointer("/details/uid") } else { answer.pointer("/metadata/uid") };
        if let Some(uid) = uid.and_then(Value::as_str) {
            self.caches.forget(target, uid);
        }
        Ok(Deleted::Gone)
    }
}

/// What is sent for an apply: without what only the server writes, with what must hold.
fn apply_body(object: &Object, expect: &Expect) -> Value {
    let mut body = object.clone();
    let metadata = body.map_mut(&["metadata"]);
    for field in ["managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"] {
        metadata.remove(field);
    }
    match expect {
        Expect::Any => None,
        // No object is ever at this version: an existing one differs, and a new one is not compared.
        Expect::Absent => metadata.insert("resourceVersion".to_owned(), Value::from("1")),
        Expect::Uid(uid) => metadata.insert("uid".to_owned(), Value::from(uid.as_str())),
        Expect::Version(version) => {
            metadata.insert("resourceVersion".to_owned(), Value::from(version.as_str()))
        }
    };
    body.into_value()
}

fn below(path: String, served: &Served, subresource: Option<&str>) -> (String, String) {
    match subresource {
        Some(sub) => (format!("{path}/{sub}"), resource_below(served, sub)),
        None => (path, served.resource()),
    }
}

/// `daemonsets/status.apps`, as messages of the server name it.
fn resource_below(served: &Served, subresource: &str) -> String {
    let group = if served.gvk.group.is_empty() { String::new() } else { format!(".{}", served.gvk.group) };
    format!("{}/{subresource}{group}", served.plural)
}

fn namespace_of<'a>(served: &Served, verb: Verb, target: &'a ObjectRef) -> Result<Option<&'a str>, ApiError> {
    let namespace = target.namespace.as_deref();
    if served.namespaced && namespace.is_none() {
        let cause = Cause::Refusal("objects of this kind need a namespace".to_owned());
        return Err(ApiError::new(verb, target.clone(), cause));
    }
    Ok(namespace)
}

fn item_path(served: &Served, verb: Verb, target: &ObjectRef) -> Result<String, ApiError> {
    let namespace = namespace_of(served, verb, target)?;
    if target.name.is_empty() {
        let cause = Cause::Refusal("the object has no name".to_owned());
        return Err(ApiError::new(verb, target.clone(), cause));
    }
    Ok(served.path(namespace, Some(&target.name)))
}

fn unfit(verb: Verb, target: &ObjectRef, error: &pintle_api::NotAnObject) -> ApiError {
    ApiError::new(verb, target.clone(), Cause::Refusal(error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    fn with_entries(entries: Value) -> Object {
        let metadata = json!({"name": "a", "managedFields": entries});
        Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).unwrap()
    }

    #[test]
    fn our_entry_counts_without_its_time_and_others_do_not() {
        let own = |time: &str, fields: Value| json!({"manager": "pintle", "operation": "Apply", "apiVersion": "v1", "time": time, "fieldsV1": fields});
        let other = json!({"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsV1": {}});
        let fields = json!({"f:data": {"f:b": {}, "f:a": {}}});
        let one = applied_fingerprint(&with_entries(json!([own("1", fields.clone())])), "pintle");
        let two = applied_fingerprint(&with_entries(json!([other, own("2", fields)])), "pintle");
        let three =
            applied_fingerprint(&with_entries(json!([own("1", json!({"f:data": {"f:a": {}}}))])), "pintle");
        assert!(one.is_some() && one == two && one != three);
        assert_eq!(applied_fingerprint(&with_entries(json!([])), "pintle"), None);
    }

    #[test]
    fn an_apply_carries_nothing_that_only_the_server_writes() {
        let mut object = with_entries(json!([]));
        object.map_mut(&["metadata"]).insert("uid".into(), json!("u"));
        let body = apply_body(&object, &Expect::Version("7".into()));
        assert_eq!(body["metadata"], json!({"name": "a", "resourceVersion": "7"}));
    }
}
