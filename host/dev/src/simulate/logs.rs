//! What containers print: files that the simulated kubelets serve to `kubectl logs`.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::task::JoinHandle;

/// A container whose log is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The namespace of its pod.
    pub namespace: String,
    /// Its pod.
    pub pod: String,
    /// The labels of its pod.
    pub labels: BTreeMap<String, String>,
    /// The node its pod runs on.
    pub node: String,
    /// Its name.
    pub name: String,
    /// Its image.
    pub image: String,
}

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Time after the line before it, or after the container's start.
    pub after: Duration,
    /// The text, without the line's end.
    pub text: String,
}

impl Line {
    /// A line that comes at once.
    pub fn now(text: impl Into<String>) -> Self {
        Self { after: Duration::ZERO, text: text.into() }
    }

    /// A line that comes `after` the one before.
    pub fn after(after: Duration, text: impl Into<String>) -> Self {
        Self { after, text: text.into() }
    }

    /// What a driver container prints while it loads kernel modules built for `kernel`.
    pub fn driver(kernel: &str, modules: &[&str]) -> Vec<Self> {
        let start = Self::now(format!("+ modprobe -v -a {}", modules.join(" ")));
        let insert = |module: &&str| Self::now(format!("insmod /lib/modules/{kernel}/extra/{module}.ko"));
        std::iter::once(start)
            .chain(modules.iter().map(insert))
            .chain([Self::now("+ sleep infinity")])
            .collect()
    }
}

type Rule = Box<dyn Fn(&Container) -> Option<Vec<Line>> + Send + Sync>;

/// The logs of all containers. One that no rule knows prints nothing.
pub struct PodLogs {
    folder: PathBuf,
    client: Client,
    rules: Mutex<Vec<Rule>>,
    pods: Mutex<HashMap<String, Writers>>,
}

/// The open logs of one pod.
#[derive(Default)]
struct Writers {
    containers: Vec<(Container, PathBuf, Vec<Line>)>,
    running: Vec<JoinHandle<()>>,
    started: bool,
}

impl fmt::Debug for PodLogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PodLogs").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl PodLogs {
    pub(super) fn new(folder: PathBuf, client: Client) -> Self {
        Self { folder, client, rules: Mutex::default(), pods: Mutex::default() }
    }

    /// Says what containers print from now on. The newest rule that answers wins; an empty answer is a container that
    /// stays silent until [`PodLogs::append`]. Pods that are there already keep what they have.
    pub fn rule(&self, rule: impl Fn(&Container) -> Option<Vec<Line>> + Send + Sync + 'static) {
        locked(&self.rules).push(Box::new(rule));
    }

    /// Prints a line in a container that a rule has answered for.
    ///
    /// # Errors
    /// There is no such container, or the file cannot be written.
    pub fn append(&self, namespace: &str, pod: &str, container: &str, text: &str) -> io::Result<()> {
        let pods = locked(&self.pods);
        let all = pods.values().flat_map(|writers| &writers.containers);
        let path = all
            .filter(|(known, ..)| (known.namespace.as_str(), known.pod.as_str()) == (namespace, pod))
            .find(|(known, ..)| known.name == container)
            .map(|(_, path, _)| path.clone());
        drop(pods);
        let path = path
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no rule answers for this container"))?;
        write_line(&path, text)
    }

    /// Called with every state of a pod on a node: its logs exist before it runs, and begin when it runs.
    pub(super) async fn observe(&self, pod: &Pod) {
        let uid = pod.uid().unwrap_or_default();
        if !locked(&self.pods).contains_key(&uid) {
            let writers = self.open(pod, &uid);
            let announce = !writers.containers.is_empty();
            let files: Vec<_> = writers
                .containers
                .iter()
                .map(|(container, path, _)| (container.name.clone(), path.clone()))
                .collect();
            locked(&self.pods).insert(uid.clone(), writers);
            if announce {
                self.announce(pod, &files).await;
            }
        }
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if phase == Some("Running") {
            self.begin(&uid);
        }
    }

    pub(super) fn forget(&self, uid: &str) {
        if let Some(writers) = locked(&self.pods).remove(uid) {
            writers.running.iter().for_each(JoinHandle::abort);
        }
    }

    fn open(&self, pod: &Pod, uid: &str) -> Writers {
        let rules = locked(&self.rules);
        let answer = |container: &Container| rules.iter().rev().find_map(|rule| rule(container));
        let containers = containers(pod)
            .into_iter()
            .filter_map(|container| {
                let lines = answer(&container)?;
                let path = self
                    .folder
                    .join(format!("{}_{}_{uid}_{}.log", container.namespace, container.pod, container.name));
                File::create(&path).ok()?;
                Some((container, path, lines))
            })
            .collect();
        Writers { containers, ..Writers::default() }
    }

    /// Tells the simulated kubelet where the files are.
    async fn announce(&self, pod: &Pod, files: &[(String, PathBuf)]) {
        let kind = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk("kwok.x-k8s.io", "v1alpha1", "Logs"),
            "logs",
        );
        let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
        let logs: Vec<_> = files
            .iter()
            .map(|(container, path)| json!({"containers": [container], "logsFile": path, "previousLogsFile": path, "follow": true}))
            .collect();
        let object = json!({
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "Logs",
            "metadata": {"name": name, "ownerReferences": [{
                "apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod.uid().unwrap_or_default(),
            }]},
            "spec": {"logs": logs},
        });
        let api = Api::<DynamicObject>::namespaced_with(self.client.clone(), &namespace, &kind);
        let how = PatchParams::apply("pintle-dev").force();
        if let Err(error) = api.patch(&name, &how, &Patch::Apply(object)).await {
            tracing::warn!(%error, namespace, name, "the log of a simulated pod cannot be announced");
        }
    }

    /// Starts the clocks of a pod's logs, once.
    fn begin(&self, uid: &str) {
        let mut pods = locked(&self.pods);
        let Some(writers) = pods.get_mut(uid).filter(|writers| !writers.started) else {
            return;
        };
        writers.started = true;
        let scripts =
            writers.containers.iter_mut().map(|(_, path, lines)| (path.clone(), std::mem::take(lines)));
        writers.running = scripts.map(|(path, lines)| tokio::spawn(play(path, lines))).collect();
    }
}

async fn play(path: PathBuf, lines: Vec<Line>) {
    for line in lines {
        if !line.after.is_zero() {
            tokio::time::sleep(line.after).await;
        }
        if let Err(error) = write_line(&path, &line.text) {
            tracing::warn!(%error, path = %path.display(), "the log of a simulated container cannot be written");
        }
    }
}

/// Appends in the format of container runtimes, which the kubelet parses.
fn write_line(path: &PathBuf, text: &str) -> io::Result<()> {
    let mut file = File::options().append(true).open(path)?;
    file.write_all(format!("{:.9} stdout F {text}\n", Timestamp::now()).as_bytes())
}

fn containers(pod: &Pod) -> Vec<Container> {
    let Some(spec) = &pod.spec else {
        return Vec::new();
    };
    let init = spec.init_containers.iter().flatten();
    init.chain(&spec.containers)
        .map(|container| Container {
            namespace: pod.namespace().unwrap_or_default(),
            pod: pod.name_any(),
            labels: pod.labels().clone(),
            node: spec.node_name.clone().unwrap_or_default(),
            name: container.name.clone(),
            image: container.image.clone().unwrap_or_default(),
        })
        .collect()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
