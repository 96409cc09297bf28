//! OpenShift's builds: a BuildConfig gets its first Build, a Build its pod, a finished Build its image.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::build_run::Run;
use super::images::Images;
use super::logs::{Line, PodLogs};
use crate::openshift::Kind;

/// How a build goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// From the start of its pod to its end.
    pub duration: Duration,
    /// Its end.
    pub outcome: Outcome,
}

/// How a build ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The image is pushed.
    Complete,
    /// No image.
    Failed {
        /// `status.reason`, for example `DockerBuildFailed`.
        reason: String,
        /// `status.message`.
        message: String,
    },
}

/// A build that is about to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The BuildConfig it is from, empty when it is from none.
    pub config: String,
    /// Its number among the builds of that BuildConfig.
    pub number: u64,
}

type Rule = Box<dyn Fn(&BuildFacts) -> Option<Script> + Send + Sync>;

/// The builds of a simulated cluster.
pub struct Builds {
    client: Client,
    usual: Duration,
    rules: Mutex<Vec<Rule>>,
}

impl fmt::Debug for Builds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builds").field("usual", &self.usual).finish_non_exhaustive()
    }
}

impl Builds {
    pub(super) fn new(client: Client, usual: Duration) -> Self {
        Self { client, usual, rules: Mutex::default() }
    }

    /// Says how builds go from now on. The newest rule that answers wins; a build that no rule knows completes in the
    /// usual time.
    pub fn rule(&self, rule: impl Fn(&BuildFacts) -> Option<Script> + Send + Sync + 'static) {
        self.rules().push(Box::new(rule));
    }

    /// Starts one more build of a BuildConfig, as `oc start-build` does, and returns its name.
    ///
    /// # Errors
    /// There is no such BuildConfig, or the Build was refused.
    pub async fn start(&self, namespace: &str, config: &str) -> Result<String, kube::Error> {
        let configs = Api::namespaced_with(self.client.clone(), namespace, &Kind::BuildConfig.resource());
        let config = configs.get(config).await?;
        self.create(&config, last_version(&config) + 1, "Manually triggered").await
    }

    pub(super) fn script(&self, facts: &BuildFacts) -> Script {
        let answer = self.rules().iter().rev().find_map(|rule| rule(facts));
        answer.unwrap_or(Script { duration: self.usual, outcome: Outcome::Complete })
    }

    fn rules(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number is recorded first: two simulators, or one that starts again, never make the same build twice.
    async fn create(&self, config: &DynamicObject, number: u64, cause: &str) -> Result<String, kube::Error> {
        let namespace = config.namespace().unwrap_or_default();
        let configs = Api::<DynamicObject>::namespaced_with(
            self.client.clone(),
            &namespace,
            &Kind::BuildConfig.resource(),
        );
        let status = json!({"metadata": {"resourceVersion": config.resource_version()}, "status": {"lastVersion": number}});
        configs.patch_status(&config.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
        let object = build_build(config, number, cause);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let builds = Api::namespaced_with(self.client.clone(), &namespace, &Kind::Build.resource());
        let object: DynamicObject = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
        match builds.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(name),
            other => other.map(|_| name),
        }
    }
}

/// Follows BuildConfigs, Builds and ImageStreams.
pub(super) struct Controller {
    pub(super) client: Client,
    pub(super) builds: Arc<Builds>,
    pub(super) images: Arc<Images>,
    pub(super) running: HashMap<String, JoinHandle<()>>,
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.running.values().for_each(JoinHandle::abort);
    }
}

impl Controller {
    /// Never returns.
    pub(super) async fn run(mut self) {
        let follow = |kind: Kind| {
            let api = Api::<DynamicObject>::all_with(self.client.clone(), &kind.resource());
            watcher(api, watcher::Config::default()).map(move |event| (kind, event))
        };
        let events = futures::stream::select_all([
            follow(Kind::BuildConfig).boxed(),
            follow(Kind::Build).boxed(),
            follow(Kind::ImageStream).boxed(),
        ]);
        pin_mut!(events);
        while let Some((kind, event)) = events.next().await {
            match event {
                Ok(Event::Apply(object) | Event::InitApply(object)) => self.observe(kind, &object).await,
                Ok(Event::Delete(object)) => self.forget(&object),
                Ok(Event::Init | Event::InitDone) => {}
                // The watcher itself waits and tries again.
                Err(error) => {
                    tracing::debug!(%error, "a watch of the simulated builds broke");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn observe(&mut self, kind: Kind, object: &DynamicObject) {
        if object.metadata.deletion_timestamp.is_some() {
            return;
        }
        let done = match kind {
            Kind::BuildConfig if last_version(object) == 0 && has_trigger(object, "ConfigChange") => {
                self.builds.create(object, 1, "Build configuration change").await.map(drop)
            }
            Kind::ImageStream => self.name_repository(object).await,
            Kind::Build => {
                self.begin(object);
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(error) = done {
            tracing::debug!(%error, name = object.name_any(), "a simulated build was not taken");
        }
    }

    fn begin(&mut self, build: &DynamicObject) {
        let uid = build.uid().unwrap_or_default();
        let phase = build.data["status"]["phase"].as_str().unwrap_or("New");
        if matches!(phase, "Complete" | "Failed" | "Error" | "Cancelled") || self.running.contains_key(&uid) {
            return;
        }
        let run = Run::new(self.client.clone(), self.builds.clone(), self.images.clone(), build.clone());
        self.running.insert(uid, tokio::spawn(run.run()));
    }

    fn forget(&mut self, object: &DynamicObject) {
        if let Some(run) = self.running.remove(&object.uid().unwrap_or_default()) {
            run.abort();
        }
    }

    /// An ImageStream says where its images are pushed to.
    async fn name_repository(&self, stream: &DynamicObject) -> Result<(), kube::Error> {
        if stream.data["status"]["dockerImageRepository"].is_string() {
            return Ok(());
        }
        let (namespace, name) = (stream.namespace().unwrap_or_default(), stream.name_any());
        let streams = Api::<DynamicObject>::namespaced_with(
            self.client.clone(),
            &namespace,
            &Kind::ImageStream.resource(),
        );
        let status = json!({"status": {"dockerImageRepository": repository(&namespace, &name)}});
        streams.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.map(drop)
    }
}

/// Where the images of a stream are pulled from.
pub(super) fn repository(namespace: &str, stream: &str) -> String {
    format!("{}{namespace}/{stream}", crate::cluster::INTERNAL_REGISTRY)
}

fn last_version(config: &DynamicObject) -> u64 {
    config.data["status"]["lastVersion"].as_u64().unwrap_or_default()
}

fn has_trigger(config: &DynamicObject, kind: &str) -> bool {
    let triggers = config.data["spec"]["triggers"].as_array();
    triggers.is_some_and(|all| all.iter().any(|trigger| trigger["type"] == kind))
}

/// The Build object of a BuildConfig, named and labelled as OpenShift does.
fn build_build(config: &DynamicObject, number: u64, cause: &str) -> Value {
    let (name, spec) = (config.name_any(), &config.data["spec"]);
    let mut labels = json!(config.labels());
    labels["buildconfig"] = json!(name);
    labels["openshift.io/build-config.name"] = json!(name);
    labels["openshift.io/build.start-policy"] =
        spec.get("runPolicy").cloned().unwrap_or_else(|| json!("Serial"));
    let mut copied = json!({"serviceAccount": "builder", "triggeredBy": [{"message": cause}]});
    for key in
        ["source", "strategy", "output", "resources", "nodeSelector", "revision", "completionDeadlineSeconds"]
    {
        if let Some(value) = spec.get(key) {
            copied[key] = value.clone();
        }
    }
    json!({
        "apiVersion": "build.openshift.io/v1",
        "kind": "Build",
        "metadata": {
            "name": format!("{name}-{number}"),
            "namespace": config.namespace(),
            "labels": labels,
            "annotations": {"openshift.io/build-config.name": name, "openshift.io/build.number": number.to_string()},
            "ownerReferences": [{
                "apiVersion": "build.openshift.io/v1", "kind": "BuildConfig", "name": name, "uid": config.uid(),
                "controller": true,
            }],
        },
        "spec": copied,
    })
}

/// What a build pod prints; the last line comes when the image has been pushed.
pub(super) fn log_rule(logs: &PodLogs, usual: Duration) {
    logs.rule(move |container| {
        let build = container.labels.get("openshift.io/build.name")?;
        Some(vec![
            Line::now(format!("Cloning the source of {build} ...")),
            Line::now("STEP 1: building in a simulated builder"),
            Line::after(usual, "Push successful"),
        ])
    });
}

/// Whether a pod has begun to run.
pub(super) fn has_begun(pod: Option<&Pod>) -> bool {
    let phase = pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref());
    matches!(phase, Some("Running" | "Succeeded" | "Failed"))
}

/// What keeps a build from going on, as an error of the API.
pub(super) fn other(message: &'static str) -> kube::Error {
    kube::Error::Service(Box::new(io::Error::other(message)))
}
