//! What this plugin looks at in objects of the cluster, and nothing else of them.

use pintle_plugin_sdk::kube::LabelSelector;
use serde::Deserialize;

/// The target.
#[derive(Debug, Deserialize)]
pub(crate) struct DaemonSet {
    pub(crate) metadata: Metadata,
    pub(crate) spec: DaemonSetSpec,
    #[serde(default)]
    pub(crate) status: DaemonSetStatus,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) namespace: String,
    #[serde(default)]
    pub(crate) generation: i64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct DaemonSetSpec {
    pub(crate) selector: LabelSelector,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DaemonSetStatus {
    pub(crate) observed_generation: i64,
    pub(crate) desired_number_scheduled: u32,
}

/// A pod of the target.
#[derive(Debug, Deserialize)]
pub(crate) struct Pod {
    pub(crate) metadata: Metadata,
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodStatus {
    phase: String,
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerStatus {
    name: String,
    state: ContainerState,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    waiting: Option<Stopped>,
    terminated: Option<Stopped>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Stopped {
    reason: String,
    message: String,
}

impl DaemonSet {
    /// True when the status was made for the spec as it is now.
    pub(crate) fn is_current(&self) -> bool {
        self.status.observed_generation >= self.metadata.generation
    }
}

impl Pod {
    /// The node it runs on, once it has one.
    pub(crate) fn node(&self) -> Option<&str> {
        Some(self.spec.node_name.as_str()).filter(|node| !node.is_empty())
    }

    /// Why it does not run, in words for people; nothing when it runs.
    pub(crate) fn not_running(&self) -> Option<String> {
        let stopped = self.status.container_statuses.iter().find_map(ContainerStatus::stopped);
        match (stopped, self.status.phase.as_str()) {
            (Some(why), _) => Some(why),
            (None, "Running") => None,
            (None, "") => Some("the pod has no status yet".to_owned()),
            (None, phase) => Some(format!("the pod is {phase}")),
        }
    }
}

impl ContainerStatus {
    fn stopped(&self) -> Option<String> {
        let Self { name, state } = self;
        let (word, Stopped { reason, message }) = match (&state.waiting, &state.terminated) {
            (Some(waiting), _) => ("waits", waiting),
            (None, Some(terminated)) => ("has ended", terminated),
            (None, None) => return None,
        };
        let details = [reason, message].into_iter().filter(|part| !part.is_empty());
        Some(details.fold(format!("container {name} {word}"), |text, part| format!("{text}: {part}")))
    }
}
