//! `daemonset-rollout`: a DaemonSet is ready once each of its nodes runs the newest template. Also for
//! `OnDelete`, where the counters in its status say nothing about that.

mod objects;

use pintle_plugin_sdk::{
    Answer, Blocker, Call, Failure, Json, Manifest, ObjectRef, Pending, Plugin, ReadAccess, Readiness,
    config::config,
    export_plugin,
    kube::{self, Query},
};
use serde_json::Value;

use objects::{DaemonSet, Pod, Revision, Status};

/// The label of a pod that names the revision it was made from.
const HASH: &str = "controller-revision-hash";
/// What is read of a pod, and must be granted.
const POD: [&str; 5] = [
    "metadata.name",
    "metadata.labels.controller-revision-hash",
    "spec.nodeName",
    "metadata.deletionTimestamp",
    "status.containerStatuses",
];
/// What of a revision, and must be granted.
const REVISION: [&str; 3] = ["metadata.labels.controller-revision-hash", "revision", "data"];

config! {
    /// `spec.config` of the Plugin.
    pub struct Config {
        /// Whether a DaemonSet that no node matches is ready; the argument of the same name decides for
        /// one annotation.
        empty_is_ready: bool = true,
    }
}

config! {
    /// Arguments in the annotation: `daemonset-rollout(emptyIsReady=false)`.
    pub struct Args {
        /// Whether a DaemonSet that no node matches is ready.
        empty_is_ready: Option<bool> = None,
    }
}

/// The plugin.
pub struct Rollout;

impl Plugin for Rollout {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("daemonset-rollout", env!("CARGO_PKG_VERSION"))
            .description(
                "A DaemonSet is ready once each of its nodes runs the newest template, OnDelete included",
            )
            .config::<Config>()
            .args::<Args>()
            .reads(ReadAccess::to("", "Pod").in_release().fields(&POD))
            .reads(ReadAccess::to("apps", "ControllerRevision").in_release().fields(&REVISION))
            .reasons(["StatusOutdated", "NoNodes", "RolloutRuns", "PodMissing", "PodOutdated", "PodNotReady"])
            .looks_at(["metadata.generation", "spec.selector", "spec.updateStrategy", "status"])
    }
}

impl Readiness for Rollout {
    fn check(call: &Call<Config>, target: &Json) -> Result<Answer, Failure> {
        let (set, args): (DaemonSet, Args) = (target.read()?, call.args()?);
        let Status { observed_generation, desired_number_scheduled: wanted, .. } = set.status;
        if observed_generation < set.metadata.generation {
            let message = format!("the status is not of generation {} yet", set.metadata.generation);
            return Ok(Answer::unless([Blocker::new("StatusOutdated", message)]));
        }
        if wanted == 0 {
            let none = Blocker::new("NoNodes", "no node matches the DaemonSet, and emptyIsReady is false");
            let is_ready = args.empty_is_ready.unwrap_or(call.config.empty_is_ready);
            return Ok(Answer::unless((!is_ready).then_some(none)));
        }
        if set.spec.update_strategy.r#type != "OnDelete" {
            return Ok(rolling(&set.status));
        }
        let query = |version, kind| {
            Query::all(version, kind).within(&set.metadata.namespace).selected_by(&set.spec.selector)
        };
        let current = current(kube::find(&query("apps/v1", "ControllerRevision").fields(&REVISION))?);
        let pods: Vec<Pod> = kube::find(&query("v1", "Pod").fields(&POD))?;
        let pods: Vec<&Pod> = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect();
        let missing = wanted.saturating_sub(u32::try_from(pods.len()).unwrap_or(u32::MAX));
        let mut blockers: Vec<Blocker> = pods.iter().filter_map(|pod| pod.blocker(&set, &current)).collect();
        if missing > 0 {
            blockers.push(Blocker::new("PodMissing", format!("{missing} of {wanted} nodes have no pod yet")));
        }
        Ok(Answer::unless(blockers))
    }
}

export_plugin!(Rollout: Readiness);

/// `RollingUpdate`: the controller counts, and counts right.
fn rolling(status: &Status) -> Answer {
    let Status { desired_number_scheduled: wanted, updated_number_scheduled: updated, .. } = *status;
    let done = updated.min(status.number_available);
    if done >= wanted {
        return Answer::ready();
    }
    let message = format!(
        "{updated} of {wanted} pods are of the newest template, {} available",
        status.number_available
    );
    let percent = u8::try_from(u64::from(done) * 100 / u64::from(wanted)).unwrap_or(0);
    Pending::new(vec![Blocker::new("RolloutRuns", message)]).progress(percent).into()
}

/// Hashes whose pods are as good as new: the newest revision's, and those of revisions that differ from
/// it only in where pods may run. A changed nodeSelector that leaves the nodes as they are makes a new
/// revision, but nobody deletes a pod for it.
fn current(revisions: Vec<Revision>) -> Vec<String> {
    let Some(newest) = revisions.iter().max_by_key(|revision| revision.revision) else { return Vec::new() };
    let template = what_runs(newest);
    let same = revisions.iter().filter(|one| one.revision == newest.revision || what_runs(one) == template);
    same.filter_map(|revision| revision.metadata.labels.get(HASH).cloned()).collect()
}

/// The template of a revision without where its pods may run.
fn what_runs(revision: &Revision) -> Value {
    let mut template = revision.data.pointer("/spec/template").cloned().unwrap_or_default();
    if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
        for placement in ["nodeSelector", "affinity", "tolerations"] {
            spec.remove(placement);
        }
    }
    template
}

impl Pod {
    /// What is still to come on its node; nothing when all is well there.
    fn blocker(&self, set: &DaemonSet, current: &[String]) -> Option<Blocker> {
        let Self { metadata, spec, status } = self;
        let is_current = metadata.labels.get(HASH).is_some_and(|hash| current.contains(hash));
        let waiting = status.container_statuses.iter().find(|container| !container.ready);
        let (reason, message) = match (is_current, waiting) {
            (false, _) => (
                "PodOutdated",
                format!("it runs an older template; delete pod {} to update it", metadata.name),
            ),
            (true, Some(container)) => ("PodNotReady", format!("container {} is not ready", container.name)),
            (true, None) if status.container_statuses.is_empty() => {
                ("PodNotReady", "its containers have not started".to_owned())
            }
            (true, None) => return None,
        };
        let pod = ObjectRef::new("v1", "Pod", &metadata.name).within(&set.metadata.namespace);
        let blocker = Blocker::new(reason, message).on(pod);
        Some(if spec.node_name.is_empty() { blocker } else { blocker.at_node(&spec.node_name) })
    }
}

#[cfg(test)]
mod tests;
