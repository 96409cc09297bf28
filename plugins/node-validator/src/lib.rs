//! `node-validator`: after a state a pod on each node shows that what the state brought can be used; the next state
//! waits for all of them. A pod that failed is tried again a bounded number of times, with the end of its log told.

use std::collections::BTreeMap;

use pintle_plugin_sdk::{
    Around, Blocker, Call, Failure, Hooks, Live, LogAccess, Manifest, ObjectAccess, Pending, Phase, Plugin,
    ReadAccess, Step,
    config::config,
    export_plugin, inputs,
    kube::{self, LabelSelector, Query, ReadError},
    logs::{self, Tail},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// What is read of a node, and must be granted.
const FIELDS: [&str; 3] = ["metadata.name", "metadata.labels", "spec.unschedulable"];
/// Lines of a log that are told.
const LINES: u32 = 3;

config! {
    /// `spec.config` of the Plugin.
    pub struct Config {
        /// The image that uses what was installed, and ends.
        image: String = String::new(),
        /// Its command; none for the image's own.
        command: Vec<String> = Vec::new(),
        /// Labels of the nodes.
        node_selector: BTreeMap<String, String> = BTreeMap::new(),
        /// A resource that the pod asks for one of, such as `vendor.example/gpu`.
        resource: Option<String> = None,
        /// How often a node is tried.
        attempts: u32 = 3 => {"minimum": 1},
    }
}

#[derive(Deserialize)]
struct Node {
    metadata: Metadata,
    #[serde(default)]
    spec: NodeSpec,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeSpec {
    unschedulable: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pod {
    status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: String,
}

/// Attempts by node, from 1.
type Saved = BTreeMap<String, u32>;

/// The plugin.
pub struct NodeValidator;

impl Plugin for NodeValidator {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("node-validator", env!("CARGO_PKG_VERSION"))
            .description("After a state a pod on each node shows that what was installed can be used")
            .config::<Config>()
            .reads(ReadAccess::to("", "Node").fields(&FIELDS))
            .reads_logs(LogAccess::in_release())
            .makes(ObjectAccess::to("", "Pod").in_release())
            .reasons(["Validating", "ValidationFailed"])
    }

    fn validate(config: &Config) -> Result<(), Failure> {
        match config.image.is_empty() {
            true => Err(Failure::until_changed("image is empty; name the image that validates a node")),
            false => Ok(()),
        }
    }
}

impl Hooks for NodeValidator {
    fn on_phase(call: &Call<Config>, around: &Around) -> Result<Step, Failure> {
        if around.phase != Phase::Post {
            return Ok(Step::go());
        }
        let mut saved: Saved = inputs::saved()?.unwrap_or_default();
        let (mut blockers, mut pods, mut unread) = (Vec::new(), Vec::new(), None);
        for node in nodes(&call.config)? {
            let attempt = *saved.entry(node.clone()).or_insert(1);
            let live = Live::find(&around.applied, &key(&node, attempt));
            let phase =
                live.map(|live| live.object.read::<Pod>()).transpose()?.unwrap_or_default().status.phase;
            let mut next = attempt;
            match (phase.as_str(), log(call, &node, attempt, &phase)) {
                ("Succeeded", _) => {}
                ("Failed", Err(error)) => unread = Some(error),
                ("Failed", Ok(said)) if attempt < call.config.attempts => {
                    next += 1;
                    let message = format!("attempt {attempt} of {} failed{said}", call.config.attempts);
                    blockers.push(Blocker::new("Validating", message).at_node(&node));
                }
                ("Failed", Ok(said)) => {
                    let message = format!("all {attempt} attempts failed{said}");
                    blockers.push(Blocker::new("ValidationFailed", message).at_node(&node));
                }
                _ => blockers.push(Blocker::new("Validating", "its pod has not finished").at_node(&node)),
            }
            saved.insert(node.clone(), next);
            pods.push((key(&node, next), pod(call, &node, next)));
        }
        // All logs are asked for before the first that is not there yet ends the call.
        if let Some(error) = unread {
            return Err(error.into());
        }
        let step = if blockers.is_empty() { Step::go() } else { Step::hold(Pending::new(blockers)) };
        Ok(pods.iter().fold(step, |step, (key, pod)| step.want(key, pod)).save(&json!(saved)))
    }
}

export_plugin!(NodeValidator: Hooks);

/// Names of the nodes that take pods.
fn nodes(config: &Config) -> Result<Vec<String>, Failure> {
    let selector = LabelSelector { match_labels: config.node_selector.clone(), ..LabelSelector::default() };
    let nodes = kube::find::<Node>(&Query::all("v1", "Node").selected_by(&selector).fields(&FIELDS))?;
    Ok(nodes.into_iter().filter(|node| !node.spec.unschedulable).map(|node| node.metadata.name).collect())
}

/// The end of the log of a pod that failed, as it ends a sentence.
fn log(call: &Call<Config>, node: &str, attempt: u32, phase: &str) -> Result<String, ReadError> {
    if phase != "Failed" {
        return Ok(String::new());
    }
    let (namespace, pod) = (&call.context.release.namespace, name(call, node, attempt));
    match logs::tail(namespace, &pod, &Tail { lines: LINES, ..Tail::default() }) {
        Ok(text) if !text.trim().is_empty() => Ok(format!(": {}", text.trim().replace('\n', " / "))),
        // A log that nobody kept, or that nobody may see, hides no failure.
        Ok(_) | Err(ReadError::NotFound | ReadError::Denied(_)) => Ok(String::new()),
        Err(error) => Err(error),
    }
}

fn key(node: &str, attempt: u32) -> String {
    format!("{node}-{attempt}")
}

fn name(call: &Call<Config>, node: &str, attempt: u32) -> String {
    format!("{}-validate-{node}-{}-{attempt}", call.context.release.name, call.context.release.revision)
}

fn pod(call: &Call<Config>, node: &str, attempt: u32) -> Value {
    let Config { image, command, resource, .. } = &call.config;
    let mut container = json!({"name": "validate", "image": image});
    if !command.is_empty() {
        container["command"] = json!(command);
    }
    if let Some(resource) = resource {
        container["resources"] = json!({"limits": {resource: "1"}});
    }
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name(call, node, attempt), "namespace": call.context.release.namespace},
        "spec": {"nodeName": node, "restartPolicy": "Never", "containers": [container],
            "tolerations": [{"operator": "Exists"}]}})
}

#[cfg(test)]
mod tests;
