//! `memcached-backup`: a MemcachedBackup becomes a Deployment of its size, and its status names the pods.

use std::collections::BTreeMap;

use pintle_plugin_sdk::{
    Blocker, Call, Desired, Failure, Live, Manifest, ObjectAccess, ObjectRef, Plugin, ReadAccess, Reconciler,
    config::config,
    export_plugin, inputs,
    kube::{self, Query},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// What is read of a pod, and must be granted.
const FIELDS: [&str; 2] = ["metadata.name", "metadata.labels"];
/// Key of the one object.
const DEPLOYMENT: &str = "deployment";

config! {
    /// `spec.config` of the Plugin, or `spec.reconciler.config` of the Watch.
    pub struct Config {
        /// The image that runs.
        image: String = "memcached:1.6-alpine".to_owned(),
    }
}

#[derive(Deserialize)]
struct Backup {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
struct Spec {
    size: u32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Deployment {
    metadata: Generation,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Generation {
    generation: u64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    observed_generation: u64,
    replicas: u32,
    updated_replicas: u32,
    ready_replicas: u32,
}

#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
}

/// The plugin.
pub struct MemcachedBackup;

impl Plugin for MemcachedBackup {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("memcached-backup", env!("CARGO_PKG_VERSION"))
            .description("A MemcachedBackup becomes a Deployment of its size, and its status names the pods")
            .config::<Config>()
            .reads(ReadAccess::to("", "Pod").in_release().fields(&FIELDS))
            .makes(ObjectAccess::to("apps", "Deployment").in_release())
            .reasons(["NotThereYet", "NotReady"])
    }
}

impl Reconciler for MemcachedBackup {
    fn reconcile(call: &Call<Config>, applied: &[Live]) -> Result<Desired, Failure> {
        let Backup { metadata: Metadata { name }, spec: Spec { size } } = inputs::owner()?;
        let namespace = &call.context.release.namespace;
        let labels = labels(&name);
        let live =
            Live::find(applied, DEPLOYMENT).map(|live| live.object.read::<Deployment>()).transpose()?;
        let set = ObjectRef::new("apps/v1", "Deployment", &name).within(namespace);
        let nodes = pods(namespace, &labels)?;
        let desired = Desired::unless(waiting(live.as_ref(), size).map(|blocker| blocker.on(set)))
            .status(&json!({"nodes": nodes}));
        Ok(desired.object(DEPLOYMENT, &deployment(call, &name, &labels, size)))
    }
}

export_plugin!(MemcachedBackup: Reconciler);

fn labels(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("app.kubernetes.io/name".to_owned(), "memcached-backup".to_owned()),
        ("app.kubernetes.io/instance".to_owned(), name.to_owned()),
    ])
}

/// What keeps it from being as large as it shall be.
fn waiting(live: Option<&Deployment>, size: u32) -> Option<Blocker> {
    let Some(Deployment { metadata, status }) = live else {
        return Some(Blocker::new("NotThereYet", "the Deployment is being made"));
    };
    let is_seen = status.observed_generation >= metadata.generation;
    let is_whole =
        status.replicas == size && status.updated_replicas == size && status.ready_replicas == size;
    let message = format!("{} of {size} pods are ready", status.ready_replicas);
    (!is_seen || !is_whole).then(|| Blocker::new("NotReady", message))
}

/// Names of the pods, sorted.
fn pods(namespace: &str, labels: &BTreeMap<String, String>) -> Result<Vec<String>, Failure> {
    let selector: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let query = Query::all("v1", "Pod").within(namespace).selected_by_text(&selector.join(","));
    let pods = kube::find::<Pod>(&query.fields(&FIELDS))?;
    let mut names: Vec<String> = pods.into_iter().map(|pod| pod.metadata.name).collect();
    names.sort();
    Ok(names)
}

fn deployment(call: &Call<Config>, name: &str, labels: &BTreeMap<String, String>, size: u32) -> Value {
    let container = json!({"name": "memcached", "image": call.config.image,
        "args": ["memcached", "-m=64", "-o", "modern", "-v"],
        "ports": [{"name": "memcached", "containerPort": 11211}]});
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": call.context.release.namespace, "labels": labels},
        "spec": {"replicas": size, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}})
}

#[cfg(test)]
mod tests;
