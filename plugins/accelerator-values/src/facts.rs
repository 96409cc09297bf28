//! What nodes say about themselves.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

const OS_ID: &str = "feature.node.kubernetes.io/system-os_release.ID";
const OS_VERSION: &str = "feature.node.kubernetes.io/system-os_release.VERSION_ID";
/// OpenShift's machine configuration labels each of its nodes so.
const OPENSHIFT: &str = "node.openshift.io/os_id";

#[derive(Deserialize)]
pub(crate) struct Node {
    metadata: Metadata,
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    node_info: NodeInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeInfo {
    #[serde(default)]
    container_runtime_version: String,
    #[serde(default)]
    kernel_version: String,
}

/// An operating system and its version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Os {
    id: String,
    version: String,
}

/// What kind of cluster it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platform {
    OpenShift,
    Kubernetes,
}

/// Who runs containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    Crio,
    Containerd,
    Docker,
}

impl Node {
    pub(crate) fn has(&self, label: &str) -> bool {
        self.metadata.labels.contains_key(label)
    }

    pub(crate) fn kernel(&self) -> &str {
        &self.status.node_info.kernel_version
    }

    pub(crate) fn os(&self) -> Os {
        let label = |key: &str| self.metadata.labels.get(key).cloned().unwrap_or_default();
        Os { id: label(OS_ID), version: label(OS_VERSION) }
    }

    fn runs(&self, runtime: &str) -> bool {
        self.status.node_info.container_runtime_version.starts_with(runtime)
    }
}

impl Os {
    /// The tag of vendors' images: of the Red Hat family only the major version counts.
    pub(crate) fn tag(&self) -> String {
        let Self { id, version } = self;
        let major = version.split('.').next().unwrap_or(version);
        let version = if matches!(id.as_str(), "rhel" | "rocky" | "ol") { major } else { version };
        format!("{id}{version}")
    }

    /// Where its package manager looks for repositories.
    pub(crate) fn repositories(&self) -> &'static str {
        match self.id.as_str() {
            "ubuntu" | "debian" => "/etc/apt/sources.list.d",
            "sles" => "/etc/zypp/repos.d",
            _ => "/etc/yum.repos.d",
        }
    }
}

impl Platform {
    pub(crate) fn of(nodes: &[Node]) -> Self {
        if nodes.iter().any(|node| node.has(OPENSHIFT)) { Self::OpenShift } else { Self::Kubernetes }
    }
}

impl Runtime {
    /// CRI-O on OpenShift; containerd where any node has it, since its settings do no harm to the others.
    pub(crate) fn of(nodes: &[Node], platform: Platform) -> Self {
        let any = |runtime: &str| nodes.iter().any(|node| node.runs(runtime));
        match platform {
            Platform::OpenShift => Self::Crio,
            Platform::Kubernetes if any("containerd") => Self::Containerd,
            Platform::Kubernetes if any("cri-o") => Self::Crio,
            Platform::Kubernetes if any("docker") => Self::Docker,
            Platform::Kubernetes => Self::Containerd,
        }
    }

    pub(crate) fn values(self) -> Value {
        let (name, socket, config) = match self {
            Self::Crio => ("crio", "/run/crio/crio.sock", "/etc/crio/crio.conf"),
            Self::Containerd => {
                ("containerd", "/run/containerd/containerd.sock", "/etc/containerd/config.toml")
            }
            Self::Docker => ("docker", "/run/docker.sock", "/etc/docker/daemon.json"),
        };
        json!({"name": name, "socket": socket, "config": config})
    }
}
