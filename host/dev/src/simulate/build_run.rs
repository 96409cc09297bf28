//! One build from New to its end.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::builds::{BuildFacts, Builds, Outcome, Script, has_begun, other, repository};
use super::images::Images;
use crate::openshift::Kind;

/// How often a build that cannot go on, because its ImageStream is missing, looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

pub(super) struct Run {
    client: Client,
    builds: Arc<Builds>,
    images: Arc<Images>,
    namespace: String,
    name: String,
    build: DynamicObject,
}

/// Where a build pushes to.
struct Target {
    namespace: String,
    stream: String,
    tag: String,
}

impl Target {
    fn reference(&self) -> String {
        format!("{}:{}", repository(&self.namespace, &self.stream), self.tag)
    }
}

impl Run {
    pub(super) fn new(
        client: Client,
        builds: Arc<Builds>,
        images: Arc<Images>,
        build: DynamicObject,
    ) -> Self {
        let (namespace, name) = (build.namespace().unwrap_or_default(), build.name_any());
        Self { client, builds, images, namespace, name, build }
    }

    pub(super) async fn run(self) {
        if let Err(error) = self.phases().await {
            tracing::debug!(%error, name = self.name, "a simulated build stopped");
        }
    }

    async fn phases(&self) -> Result<(), kube::Error> {
        let script = self.builds.script(&self.facts());
        let target = self.wait_for_target().await?;
        let started = Timestamp::now();
        self.report(json!({"phase": "Pending"})).await?;
        let pod = self.ensure_pod().await?;
        let pods = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        let begun = await_condition(pods.clone(), &pod, |pod: Option<&Pod>| has_begun(pod));
        begun.await.map_err(|_| other("the watch of a build pod broke"))?;
        self.report(json!({"phase": "Running", "startTimestamp": started})).await?;
        tokio::time::sleep(script.duration).await;
        if let (Outcome::Complete, Some(target)) = (&script.outcome, &target) {
            self.push(target).await?;
        }
        self.end_pod(&pods, &pod, &script).await?;
        self.report(end_status(&script, target.as_ref(), started)).await
    }

    fn facts(&self) -> BuildFacts {
        let annotation = |key: &str| self.build.annotations().get(key).cloned().unwrap_or_default();
        BuildFacts {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            config: annotation("openshift.io/build-config.name"),
            number: annotation("openshift.io/build.number").parse().unwrap_or(1),
        }
    }

    /// A build waits as New until the ImageStream of its output is there. One without an output pushes nothing.
    async fn wait_for_target(&self) -> Result<Option<Target>, kube::Error> {
        let Some(target) = self.target() else {
            return Ok(None);
        };
        let streams = self.objects(Kind::ImageStream, &target.namespace);
        let mut told = false;
        while streams.get_opt(&target.stream).await?.is_none() {
            if !told {
                let message = "Output image could not be resolved.";
                self.report(json!({"phase": "New", "reason": "InvalidOutputReference", "message": message}))
                    .await?;
                told = true;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(Some(target))
    }

    fn target(&self) -> Option<Target> {
        let to = &self.build.data["spec"]["output"]["to"];
        let (stream, tag) = match to["kind"].as_str() {
            Some("ImageStreamTag") => to["name"].as_str()?.split_once(':')?,
            _ => return None,
        };
        let namespace = to["namespace"].as_str().unwrap_or(&self.namespace);
        Some(Target { namespace: namespace.to_owned(), stream: stream.to_owned(), tag: tag.to_owned() })
    }

    fn objects(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &kind.resource())
    }

    async fn report(&self, status: Value) -> Result<(), kube::Error> {
        let patch = json!({"status": status});
        let builds = self.objects(Kind::Build, &self.namespace);
        builds.patch_status(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
    }

    async fn ensure_pod(&self) -> Result<String, kube::Error> {
        let name = format!("{}-build", self.name);
        let pod = json!({
            "metadata": {
                "name": name,
                "labels": {"openshift.io/build.name": self.name},
                "annotations": {"openshift.io/build.name": self.name},
                "ownerReferences": [{
                    "apiVersion": "build.openshift.io/v1", "kind": "Build", "name": self.name,
                    "uid": self.build.uid(), "controller": true,
                }],
            },
            "spec": {
                "restartPolicy": "Never",
                "nodeSelector": self.build.data["spec"].get("nodeSelector"),
                "containers": [{"name": "docker-build", "image": "registry.example/openshift/docker-builder:v4.8"}],
            },
        });
        let pod = serde_json::from_value(pod).map_err(kube::Error::SerdeError)?;
        let pods = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        match pods.create(&PostParams::default(), &pod).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(name),
            other => other.map(|_| name),
        }
    }

    /// The image is in its stream and can be pulled.
    async fn push(&self, target: &Target) -> Result<(), kube::Error> {
        let streams = self.objects(Kind::ImageStream, &target.namespace);
        let stream = streams.get(&target.stream).await?;
        let mut tags = stream.data["status"]["tags"].as_array().cloned().unwrap_or_default();
        let item = json!({
            "created": Timestamp::now(), "generation": 1, "image": digest(&self.name),
            "dockerImageReference": format!("{}@{}", repository(&target.namespace, &target.stream), digest(&self.name)),
        });
        let known = tags.iter_mut().find(|known| known["tag"] == target.tag.as_str());
        match known.and_then(|known| known["items"].as_array_mut()) {
            Some(items) => items.insert(0, item),
            None => tags.push(json!({"tag": target.tag, "items": [item]})),
        }
        let status = json!({"status": {"tags": tags}});
        streams.patch_status(&target.stream, &PatchParams::default(), &Patch::Merge(status)).await?;
        self.images.add(target.reference()).map_err(|error| kube::Error::Service(Box::new(error)))
    }

    async fn end_pod(&self, pods: &Api<Pod>, name: &str, script: &Script) -> Result<(), kube::Error> {
        let now = Timestamp::now();
        let (phase, code, reason) = match script.outcome {
            Outcome::Complete => ("Succeeded", 0, "Completed"),
            Outcome::Failed { .. } => ("Failed", 1, "Error"),
        };
        let status = json!({"status": {
            "phase": phase,
            "conditions": [
                {"type": "Ready", "status": "False", "reason": "PodCompleted", "lastTransitionTime": now},
                {"type": "ContainersReady", "status": "False", "reason": "PodCompleted", "lastTransitionTime": now},
            ],
            "containerStatuses": [{
                "name": "docker-build", "ready": false, "started": false,
                "state": {"running": null, "terminated": {"exitCode": code, "reason": reason, "finishedAt": now}},
            }],
        }});
        pods.patch_status(name, &PatchParams::default(), &Patch::Strategic(status)).await.map(drop)
    }
}

fn end_status(script: &Script, target: Option<&Target>, started: Timestamp) -> Value {
    let now = Timestamp::now();
    let nanoseconds = i64::try_from(now.duration_since(started).as_nanos()).unwrap_or(i64::MAX);
    let mut status =
        json!({"completionTimestamp": now, "duration": nanoseconds, "reason": null, "message": null});
    match &script.outcome {
        Outcome::Complete => {
            status["phase"] = json!("Complete");
            status["outputDockerImageReference"] = json!(target.map(Target::reference));
        }
        Outcome::Failed { reason, message } => {
            status["phase"] = json!("Failed");
            status["reason"] = json!(reason);
            status["message"] = json!(message);
        }
    }
    status
}

/// The digest of an image that nobody built: the same for the same build.
fn digest(build: &str) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(build.as_bytes())))
}
