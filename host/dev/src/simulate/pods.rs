//! The part of a kubelet that Stage files cannot play: image pulls that fail and are tried again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, pin_mut};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::images::Images;
use super::logs::PodLogs;
use crate::stages::{IMAGES_PULLED, Timings};

/// How long a failed pull is called `ErrImagePull` before it is called `ImagePullBackOff`, at most.
const ERROR_SHOWN: Duration = Duration::from_millis(500);

pub(super) struct Simulator {
    client: Client,
    images: Arc<Images>,
    logs: Arc<PodLogs>,
    timings: Timings,
    pulls: HashMap<String, JoinHandle<()>>,
}

impl Simulator {
    pub(super) fn new(client: Client, images: Arc<Images>, logs: Arc<PodLogs>, timings: Timings) -> Self {
        Self { client, images, logs, timings, pulls: HashMap::new() }
    }

    /// Follows all scheduled pods; never returns.
    pub(super) async fn run(mut self) {
        let pods = watcher(
            Api::<Pod>::all(self.client.clone()),
            watcher::Config::default().fields("spec.nodeName!="),
        );
        pin_mut!(pods);
        while let Some(event) = pods.next().await {
            match event {
                Ok(Event::Apply(pod) | Event::InitApply(pod)) => self.observe(&pod).await,
                Ok(Event::Delete(pod)) => self.forget(&pod.uid().unwrap_or_default()),
                Ok(Event::Init | Event::InitDone) => {}
                // The watcher itself waits and tries again.
                Err(error) => {
                    tracing::debug!(%error, "the watch of simulated pods broke");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn observe(&mut self, pod: &Pod) {
        if pod.metadata.deletion_timestamp.is_some() {
            self.forget(&pod.uid().unwrap_or_default());
            return;
        }
        self.logs.observe(pod).await;
        let uid = pod.uid().unwrap_or_default();
        let gated = all_containers(pod).any(|container| self.images.is_gated(image(container)));
        if gated && !is_pulled(pod) && !self.pulls.contains_key(&uid) {
            let pull = Pull {
                pods: Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default()),
                pod: pod.clone(),
                images: self.images.clone(),
                timings: self.timings.clone(),
            };
            self.pulls.insert(uid, tokio::spawn(pull.run()));
        }
    }

    fn forget(&mut self, uid: &str) {
        self.logs.forget(uid);
        if let Some(pull) = self.pulls.remove(uid) {
            pull.abort();
        }
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.pulls.values().for_each(JoinHandle::abort);
    }
}

/// The pulls of one pod's images until all have succeeded.
struct Pull {
    pods: Api<Pod>,
    pod: Pod,
    images: Arc<Images>,
    timings: Timings,
}

impl Pull {
    async fn run(self) {
        let mut backoff = self.timings.pull_backoff;
        let mut reported = None;
        while let Some(missing) = self.missing() {
            if reported.as_ref() != Some(&missing) {
                self.report(&missing, "ErrImagePull").await;
                tokio::time::sleep(ERROR_SHOWN.min(backoff / 2)).await;
                self.report(&missing, "ImagePullBackOff").await;
                reported = Some(missing);
            }
            self.wait(backoff).await;
            backoff = (backoff * 2).min(self.timings.pull_backoff_max);
        }
        self.patch(json!([condition(IMAGES_PULLED, true)]), json!({})).await;
    }

    /// A kubelet tries again when its back-off has passed. While nothing was pushed the result is known, so nothing
    /// runs in between: the wait ends at the first end of a back-off after a change of the images.
    async fn wait(&self, backoff: Duration) {
        let mut changes = self.images.changes();
        changes.mark_unchanged();
        tokio::time::sleep(backoff).await;
        if self.missing().is_some() {
            // The sender lives as long as the simulator, so an error means that there is nothing to wait for.
            drop(changes.changed().await);
        }
    }

    fn missing(&self) -> Option<Vec<String>> {
        let missing: Vec<String> = all_containers(&self.pod)
            .filter(|container| !self.images.can_pull(image(container)))
            .map(|container| container.name.clone())
            .collect();
        (!missing.is_empty()).then_some(missing)
    }

    async fn report(&self, missing: &[String], reason: &str) {
        let spec = self.pod.spec.as_ref();
        let init: Vec<&Container> =
            spec.iter().flat_map(|spec| spec.init_containers.iter().flatten()).collect();
        let main: Vec<&Container> = spec.iter().flat_map(|spec| &spec.containers).collect();
        let held_by_init = init.iter().any(|container| missing.contains(&container.name));
        let status = |container: &&Container| {
            let state = match () {
                () if missing.contains(&container.name) => {
                    waiting(reason, &message(reason, image(container)))
                }
                () if held_by_init => waiting("PodInitializing", ""),
                () => json!({"running": {"startedAt": Timestamp::now()}}),
            };
            json!({
                "name": container.name, "image": image(container), "imageID": "", "ready": false,
                "started": false, "restartCount": 0, "state": state,
            })
        };
        let mut fields = json!({"containerStatuses": main.iter().map(status).collect::<Vec<_>>()});
        if !init.is_empty() {
            fields["initContainerStatuses"] = init.iter().map(status).collect();
        }
        let conditions = json!([
            condition("PodReadyToStartContainers", true),
            condition("Initialized", !held_by_init),
            condition("ContainersReady", false),
            condition("Ready", false),
        ]);
        self.patch(conditions, fields).await;
    }

    async fn patch(&self, conditions: Value, mut status: Value) {
        status["conditions"] = conditions;
        let patch = json!({"metadata": {"uid": self.pod.uid()}, "status": status});
        let name = self.pod.name_any();
        if let Err(error) =
            self.pods.patch_status(&name, &PatchParams::default(), &Patch::Strategic(patch)).await
        {
            tracing::debug!(%error, name, "a simulated pod's status was not taken");
        }
    }
}

fn all_containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    let spec = pod.spec.iter();
    spec.flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers))
}

fn image(container: &Container) -> &str {
    container.image.as_deref().unwrap_or_default()
}

fn is_pulled(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|one| one.type_ == IMAGES_PULLED && one.status == "True")
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({"waiting": {"reason": reason, "message": message}})
}

/// The kubelet's own words, since log searches and people know them.
fn message(reason: &str, image: &str) -> String {
    match reason {
        "ImagePullBackOff" => format!("Back-off pulling image \"{image}\""),
        _ => format!("reading manifest of {image}: manifest unknown"),
    }
}

fn condition(kind: &str, holds: bool) -> Value {
    let reason = if holds { None } else { Some("ContainersNotReady") };
    json!({
        "type": kind, "status": if holds { "True" } else { "False" }, "reason": reason,
        "lastTransitionTime": Timestamp::now(),
    })
}
