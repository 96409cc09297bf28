//! Finalizers, added and removed one at a time.

use pintle_api::Object;
use serde_json::{Value, json};

use super::{ApiError, Applied, Patch, Writer};

impl Writer {
    /// Adds a finalizer to the object as it was read; `None` when it has it already.
    ///
    /// # Errors
    /// [`super::Cause::Stale`] when it changed since it was read: read it again. See [`super::Cause`].
    ///
    /// # Cancellation
    /// The write may or may not have happened.
    pub async fn add_finalizer(&self, live: &Object, finalizer: &str) -> Result<Option<Applied>, ApiError> {
        let finalizers = finalizers(live);
        if finalizers.contains(&finalizer) {
            return Ok(None);
        }
        let add = if finalizers.is_empty() {
            json!({"op": "add", "path": "/metadata/finalizers", "value": [finalizer]})
        } else {
            json!({"op": "add", "path": "/metadata/finalizers/-", "value": finalizer})
        };
        let patch = Patch::Json(vec![same_version(live), add]);
        self.patch(&live.reference(), None, &patch).await.map(Some)
    }

    /// Removes a finalizer from the object as it was read; `None` when it has none of that name. An object
    /// that is being deleted may be gone after it.
    ///
    /// # Errors
    /// [`super::Cause::Stale`] when it changed since it was read: read it again. See [`super::Cause`].
    ///
    /// # Cancellation
    /// The write may or may not have happened.
    pub async fn remove_finalizer(
        &self,
        live: &Object,
        finalizer: &str,
    ) -> Result<Option<Applied>, ApiError> {
        let Some(at) = finalizers(live).iter().position(|name| *name == finalizer) else { return Ok(None) };
        let path = format!("/metadata/finalizers/{at}");
        let patch = Patch::Json(vec![same_version(live), json!({"op": "remove", "path": path})]);
        let applied = self.patch(&live.reference(), None, &patch).await?;
        if live.is_terminating()
            && finalizers(&applied.object).is_empty()
            && let Some(uid) = live.uid()
        {
            self.caches.forget(&live.reference(), uid);
        }
        Ok(Some(applied))
    }
}

fn same_version(live: &Object) -> Value {
    json!({"op": "test", "path": "/metadata/resourceVersion", "value": live.resource_version()})
}

fn finalizers(object: &Object) -> Vec<&str> {
    let list = object.at("/metadata/finalizers").and_then(Value::as_array);
    list.map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}
