//! The status subresource.

use pintle_api::{Object, ObjectRef, names};
use serde_json::{Value, json};

use super::{
    APPLY, ApiError, Applied, MAX_DROPPED, Patch, Writer, item_path, resource_below, unfit, unknown,
};
use crate::{counters::Verb, link::Query};

impl Writer {
    /// Applies `status` as ours alone: fields of ours that it no longer names go, those of others stay. It
    /// is forced, since nobody else may write what we report.
    ///
    /// # Errors
    /// [`super::Cause::Stale`] when the owner's uid is another by now; see [`super::Cause`].
    ///
    /// # Cancellation
    /// The write may or may not have happened.
    pub async fn apply_status(
        &self,
        target: &ObjectRef,
        uid: &str,
        status: &Value,
    ) -> Result<Applied, ApiError> {
        let mut metadata = json!({"name": target.name, "uid": uid});
        if let (Some(namespace), Some(metadata)) = (&target.namespace, metadata.as_object_mut()) {
            metadata.insert("namespace".to_owned(), Value::from(namespace.as_str()));
        }
        let body = json!({"apiVersion": target.api_version, "kind": target.kind, "metadata": metadata, "status": status});
        let body = Object::new(body).map_err(|e| unfit(Verb::Patch, target, &e))?;
        let served = self.served(Verb::Patch, target)?;
        let path = format!("{}/status", item_path(&served, Verb::Patch, target)?);
        let mut body = body.into_value();
        let known = self.gaps.drop_from(&mut body, target);
        let mut dropped = Vec::new();
        loop {
            let request = Query::new(&path)
                .with("fieldManager", names::MANAGER)
                .with("force", "true")
                .with("fieldValidation", "Warn")
                .patch(APPLY, &body);
            match self.send(Verb::Patch, target, &resource_below(&served, "status"), request).await {
                Ok(reply) => {
                    let mut applied = self.applied(Verb::Patch, target, &reply, names::MANAGER)?;
                    if !dropped.is_empty() {
                        let all: Vec<_> = known.iter().chain(&dropped).cloned().collect();
                        self.gaps.learn(target, &all);
                    }
                    applied.warnings.extend(known.into_iter().chain(dropped));
                    return Ok(applied);
                }
                // A vendor's schema need not have a place for all that we tell (D37).
                Err(err) if dropped.len() < MAX_DROPPED => match unknown::drop_from(&mut body, &err) {
                    Some(mut warnings) => dropped.append(&mut warnings),
                    None => return Err(err),
                },
                Err(err) => return Err(err),
            }
        }
    }

    /// Merges `status` into what is there; `null` removes. With `version`, only into that version.
    ///
    /// # Errors
    /// [`super::Cause::Stale`] when the object is at another version; see [`super::Cause`].
    ///
    /// # Cancellation
    /// The write may or may not have happened.
    pub async fn merge_status(
        &self,
        target: &ObjectRef,
        version: Option<&str>,
        status: &Value,
    ) -> Result<Applied, ApiError> {
        let body = match version {
            Some(version) => json!({"metadata": {"resourceVersion": version}, "status": status}),
            None => json!({"status": status}),
        };
        self.patch(target, Some("status"), &Patch::Merge(body)).await
    }
}
