//! `os-image-tag`: which driver image fits the nodes. Gives the chart `osTag` (`rhel9`), `osName`
//! (`rhel-9.4`) and the whole `image`.

mod os;

use std::collections::{BTreeMap, BTreeSet};

use pintle_plugin_sdk::{
    Blocker, Call, Failure, Manifest, Mapping, ObjectRef, Plugin, ReadAccess, ValueMapper,
    config::config,
    export_plugin, inputs,
    kube::{self, LabelSelector, Query},
};
use serde::Deserialize;
use serde_json::{Value, json};

use os::Os;

/// What is read of a node, and must be granted.
const FIELDS: [&str; 4] =
    ["metadata.name", "metadata.labels", "status.nodeInfo.osImage", "status.nodeInfo.kernelVersion"];

config! {
    /// `spec.config` of the Plugin.
    pub struct Config {
        /// Labels of the nodes that count; without any, all.
        node_selector: BTreeMap<String, String> = BTreeMap::new(),
        /// Where in the chart's values the driver is described: `repository`, `image`, `version`,
        /// `precompiled`.
        driver: String = "driver".to_owned(),
    }
}

/// The driver in the chart's values.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Driver {
    repository: String,
    image: String,
    version: String,
    precompiled: bool,
}

#[derive(Deserialize)]
struct Node {
    metadata: Metadata,
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
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
    os_image: String,
    #[serde(default)]
    kernel_version: String,
}

/// The plugin.
pub struct OsImageTag;

impl Plugin for OsImageTag {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("os-image-tag", env!("CARGO_PKG_VERSION"))
            .description("Values for the driver image that fits the nodes' operating system and kernel")
            .config::<Config>()
            .reads(ReadAccess::to("", "Node").fields(&FIELDS))
            .reasons(["NoNodes", "OsNotSupported", "SeveralSystems", "SeveralKernels", "NoVersion"])
    }
}

impl ValueMapper for OsImageTag {
    fn map_values(call: &Call<Config>) -> Result<Mapping, Failure> {
        let match_labels = call.config.node_selector.clone();
        let selector = LabelSelector { match_labels, ..LabelSelector::default() };
        let nodes: Vec<Node> = kube::find(&Query::all("v1", "Node").selected_by(&selector).fields(&FIELDS))?;
        let os = only_os(&nodes)?;
        let values: Value = inputs::values()?;
        let driver: Option<Driver> =
            values.get(&call.config.driver).and_then(|driver| Driver::deserialize(driver).ok());
        let mut patch = json!({"osTag": os.tag(), "osName": os.name()});
        if let Some(driver) = driver {
            let reference = driver.reference(&os, || only_kernel(&nodes))?;
            patch["image"] = json!(reference);
        }
        Ok(Mapping::new(&patch))
    }
}

export_plugin!(OsImageTag: ValueMapper);

/// The system of all nodes.
fn only_os(nodes: &[Node]) -> Result<Os, Failure> {
    let mut found = BTreeSet::new();
    for node in nodes {
        let os = Os::of(&node.metadata.labels, &node.status.node_info.os_image);
        found.insert(os.map_err(|why| about(node, "OsNotSupported", why))?);
    }
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(os), None) => Ok(os),
        (None, _) => Err(nothing("NoNodes", "no node is there to take the system of".to_owned())),
        (Some(one), Some(other)) => {
            let message = format!("nodes run {} and {}; render one state per pool", one.name(), other.name());
            Err(nothing("SeveralSystems", message))
        }
    }
}

/// The kernel of all nodes, which a precompiled driver must be made for.
fn only_kernel(nodes: &[Node]) -> Result<String, Failure> {
    let kernels: BTreeSet<&str> =
        nodes.iter().map(|node| node.status.node_info.kernel_version.as_str()).collect();
    let mut kernels = kernels.into_iter();
    match (kernels.next(), kernels.next()) {
        (Some(kernel), None) => Ok(kernel.to_owned()),
        (one, other) => {
            let kernels = [one, other].into_iter().flatten().collect::<Vec<_>>().join(" and ");
            let message =
                format!("a precompiled driver needs one kernel, nodes run {kernels}; render per pool");
            Err(nothing("SeveralKernels", message))
        }
    }
}

impl Driver {
    /// The reference: a digest as it is, else the version with what it was made for.
    fn reference(
        &self,
        os: &Os,
        kernel: impl FnOnce() -> Result<String, Failure>,
    ) -> Result<String, Failure> {
        let Self { repository, image, version, precompiled } = self;
        let name = if repository.is_empty() { image.clone() } else { format!("{repository}/{image}") };
        let tag = os.tag();
        match (version.as_str(), precompiled) {
            ("", _) => Err(nothing("NoVersion", "the driver in the values has no version".to_owned())),
            (digest, _) if digest.starts_with("sha256:") => Ok(format!("{name}@{digest}")),
            (version, true) => Ok(format!("{name}:{version}-{}-{tag}", kernel()?)),
            (version, false) => Ok(format!("{name}:{version}-{tag}")),
        }
    }
}

fn nothing(reason: &str, message: String) -> Failure {
    Failure::until_changed(message.clone()).about(Blocker::new(reason, message))
}

fn about(node: &Node, reason: &str, message: String) -> Failure {
    let name = &node.metadata.name;
    let blocker = Blocker::new(reason, message.clone()).on(ObjectRef::new("v1", "Node", name)).at_node(name);
    Failure::until_changed(message).about(blocker)
}

#[cfg(test)]
mod tests;
