//! Simulated nodes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Error};
use serde_json::json;

/// The kernel of the first release this successor must serve: the one its predecessor's documents show.
pub const KERNEL: &str = "4.18.0-305.10.2.el8_4.x86_64";
/// The operating system that goes with [`KERNEL`], in the form in which OpenShift's nodes report it.
pub const OS_IMAGE: &str = "Red Hat Enterprise Linux CoreOS 48.84.202107202156-0 (Ootpa)";

const WORKER: &str = "node-role.kubernetes.io/worker";
const KERNEL_LABEL: &str = "feature.node.kubernetes.io/kernel-version.full";

/// A node to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    /// The name, also the label `kubernetes.io/hostname`.
    pub name: String,
    /// What it reports as its kernel; also a label, as Node Feature Discovery sets it.
    pub kernel: String,
    /// What it reports as its operating system.
    pub os_image: String,
    /// Labels besides those of a worker.
    pub labels: BTreeMap<String, String>,
}

impl NodeSpec {
    /// A worker with [`KERNEL`] and [`OS_IMAGE`].
    pub fn worker(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kernel: KERNEL.to_owned(),
            os_image: OS_IMAGE.to_owned(),
            labels: BTreeMap::new(),
        }
    }

    /// The same node with another kernel.
    #[must_use]
    pub fn with_kernel(mut self, kernel: impl Into<String>) -> Self {
        self.kernel = kernel.into();
        self
    }

    /// The same node with one more label.
    #[must_use]
    pub fn with_label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    fn build_labels(&self) -> BTreeMap<String, String> {
        let own = [
            ("kubernetes.io/hostname", self.name.as_str()),
            ("kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", "amd64"),
            (WORKER, ""),
            (KERNEL_LABEL, self.kernel.as_str()),
        ];
        let own = own.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
        own.chain(self.labels.clone()).collect()
    }
}

/// Makes a node; the simulated kubelet has it ready at once.
///
/// # Errors
/// The API server refused it.
pub async fn create(client: &Client, spec: &NodeSpec) -> Result<Node, Error> {
    let node = serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": spec.name, "labels": spec.build_labels()},
        "status": {"nodeInfo": {
            "kernelVersion": spec.kernel, "osImage": spec.os_image, "architecture": "amd64",
            "operatingSystem": "linux", "kubeletVersion": "v1.36.3", "kubeProxyVersion": "v1.36.3",
            "containerRuntimeVersion": "cri-o://1.34.0", "bootID": boot_id(&spec.kernel), "machineID": spec.name,
            "systemUUID": spec.name,
        }},
    }))
    .map_err(Error::SerdeError)?;
    Api::<Node>::all(client.clone()).create(&PostParams::default(), &node).await
}

/// The node starts again with another kernel: it reports it, under a new boot id, and its label follows.
///
/// # Errors
/// The API server refused a patch; with `NotFound` there is no such node.
pub async fn reboot(client: &Client, name: &str, kernel: &str) -> Result<(), Error> {
    let nodes = Api::<Node>::all(client.clone());
    let status = json!({"status": {"nodeInfo": {"kernelVersion": kernel, "bootID": boot_id(kernel)}}});
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
    let labels = json!({"metadata": {"labels": {KERNEL_LABEL: kernel}}});
    nodes.patch(name, &PatchParams::default(), &Patch::Merge(labels)).await?;
    Ok(())
}

/// Another one for another kernel, so that a reboot is seen as one.
fn boot_id(kernel: &str) -> String {
    let digits = crate::cache::fingerprint(&[kernel]);
    format!(
        "00000000-0000-0000-{}-{}0000",
        digits.get(..4).unwrap_or("0000"),
        digits.get(4..12).unwrap_or("00000000")
    )
}
