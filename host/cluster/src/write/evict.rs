//! Evictions: pods that go within their disruption budgets.

use pintle_api::ObjectRef;
use serde_json::{Value, json};

use super::{ApiError, Writer, item_path, resource_below};
use crate::{counters::Verb, link::Query};

impl Writer {
    /// Asks for the eviction of a pod, of the very one with this uid.
    ///
    /// # Errors
    /// [`super::Cause::TooManyRequests`] while a disruption budget does not let it go: it may later.
    /// [`super::Cause::NotFound`] when it is gone, [`super::Cause::Stale`] when another one has its name; see
    /// [`super::Cause`].
    ///
    /// # Cancellation
    /// The eviction may or may not have begun.
    pub async fn evict(
        &self,
        pod: &ObjectRef,
        uid: Option<&str>,
        grace_seconds: Option<i64>,
    ) -> Result<(), ApiError> {
        let mut options = json!({});
        if let Some(uid) = uid {
            options["preconditions"] = json!({"uid": uid});
        }
        if let Some(seconds) = grace_seconds {
            options["gracePeriodSeconds"] = Value::from(seconds);
        }
        let body = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace}, "deleteOptions": options
        });
        let served = self.served(Verb::Create, pod)?;
        let path = format!("{}/eviction", item_path(&served, Verb::Create, pod)?);
        let request = Query::new(&path).post(&body);
        self.send(Verb::Create, pod, &resource_below(&served, "eviction"), request).await.map(drop)
    }
}
