//! Builds on demand: a BuildConfig waits until the image it would build cannot be pulled.
//!
//! Workload and build are paired by the annotation `driver-container-vendor`. The demand is kept in
//! the release's memory, so it survives a restart and one release never resets another's.

use std::sync::Arc;

use pintle_api::{Answer, Facts, Object, Query, Timestamp, names};
use serde_json::Value;

use crate::{Delete, Step, ready::pods_selector};

/// Reasons of a container that waits for an image that cannot be pulled.
const PULL_FAILURES: [&str; 2] = ["ErrImagePull", "ImagePullBackOff"];

/// The vendor an object is paired by.
#[must_use]
pub fn vendor(object: &Object) -> Option<&str> {
    object.annotation(names::SRO_VENDOR).filter(|vendor| !vendor.is_empty())
}

/// True for objects that are applied on demand alone.
#[must_use]
pub fn is_on_demand(object: &Object) -> bool {
    object.kind() == "BuildConfig" && vendor(object).is_some()
}

/// True for workloads whose image a paired build makes.
#[must_use]
pub fn may_demand(object: &Object) -> bool {
    object.annotation(names::SRO_STATE) == Some("driver-container") && vendor(object).is_some()
}

/// Pods of a workload that cannot pull an image.
pub fn pods_without_image(workload: &Object, facts: &dyn Facts) -> Answer<Vec<Arc<Object>>> {
    let Some(label_selector) = pods_selector(workload) else { return Answer::Missing };
    let query = Query {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        namespace: workload.namespace().map(str::to_owned),
        label_selector: Some(label_selector),
    };
    facts
        .list(&query)
        .map(|pods| pods.into_iter().filter(|pod| !pod.is_terminating() && cannot_pull(pod)).collect())
}

fn cannot_pull(pod: &Object) -> bool {
    let statuses = pod.at("/status/containerStatuses").and_then(Value::as_array);
    statuses.into_iter().flatten().any(|status| {
        let reason = status.pointer("/state/waiting/reason").and_then(Value::as_str);
        reason.is_some_and(|reason| PULL_FAILURES.contains(&reason))
    })
}

/// When the newest build of a BuildConfig was complete; nothing while it is not.
pub(crate) fn completed_at(config: &Object, facts: &dyn Facts) -> Option<Timestamp> {
    let live = facts.get(&config.reference()).found()?;
    let newest = crate::ready::newest_build(&live, facts).found()??;
    if newest.str_at("/status/phase") != Some("Complete") {
        return None;
    }
    newest.str_at("/status/completionTimestamp")?.parse().ok()
}

/// True for a pod that was made before a time; one that was made since is left alone, whatever
/// keeps it from starting.
pub(crate) fn is_older(pod: &Object, than: Timestamp) -> bool {
    let created = pod.str_at("/metadata/creationTimestamp").and_then(|text| text.parse::<Timestamp>().ok());
    created.is_some_and(|created| created < than)
}

/// Deletes a pod so that its workload makes another.
pub(crate) fn replace(pod: &Object) -> Step {
    let (target, uid) = (pod.reference(), pod.uid().map(str::to_owned));
    Step::Delete(Delete { target, uid, reason: "ImageBuilt" })
}
