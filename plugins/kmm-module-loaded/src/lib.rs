//! `kmm-module-loaded`: a Module of the Kernel Module Management operator is ready once every node that
//! its selector takes, and that has a kernel it has a mapping for, carries the labels of a loaded module.

use std::collections::BTreeMap;

use pintle_plugin_sdk::{
    Answer, Blocker, Call, ConditionStatus, Failure, Json, Manifest, ObjectRef, Pending, Plugin, ReadAccess,
    Readiness,
    config::config,
    export_plugin,
    kube::{self, LabelSelector, Query},
};
use regex_lite::Regex;
use serde::Deserialize;

/// What is read of a node, and must be granted.
const FIELDS: [&str; 3] = ["metadata.name", "metadata.labels", "status.nodeInfo.kernelVersion"];

config! {
    /// `spec.config` of the Plugin.
    pub struct Config {
        /// Whether a Module that no node matches is ready.
        empty_is_ready: bool = true,
        /// Whether a node whose kernel has no mapping is waited for too.
        every_kernel_is_mapped: bool = false,
    }
}

#[derive(Deserialize)]
struct Module {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    selector: BTreeMap<String, String>,
    module_loader: Loader,
}

#[derive(Deserialize)]
struct Loader {
    container: Container,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    #[serde(default)]
    version: String,
    kernel_mappings: Vec<Mapping>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Mapping {
    literal: String,
    regexp: String,
}

#[derive(Deserialize)]
struct Node {
    metadata: Metadata,
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    node_info: NodeInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeInfo {
    kernel_version: String,
}

/// The plugin.
pub struct Loaded;

impl Plugin for Loaded {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("kmm-module-loaded", env!("CARGO_PKG_VERSION"))
            .description("A KMM Module is ready once each node with a mapped kernel has it loaded")
            .config::<Config>()
            .reads(ReadAccess::to("", "Node").fields(&FIELDS))
            .reasons(["NoNodes", "ModuleNotLoaded", "OtherVersionLoaded", "KernelNotMapped"])
            .looks_at(["spec.selector", "spec.moduleLoader.container"])
    }
}

impl Readiness for Loaded {
    fn check(call: &Call<Config>, target: &Json) -> Result<Answer, Failure> {
        let module: Module = target.read()?;
        let kernels = module.kernels()?;
        let selector =
            LabelSelector { match_labels: module.spec.selector.clone(), ..LabelSelector::default() };
        let nodes: Vec<Node> = kube::find(&Query::all("v1", "Node").selected_by(&selector).fields(&FIELDS))?;
        let (mapped, unmapped): (Vec<&Node>, Vec<&Node>) =
            nodes.iter().partition(|node| kernels.iter().any(|kernel| kernel.is_match(node.kernel())));
        let waiting: Vec<Blocker> = mapped.iter().filter_map(|node| module.blocker(node)).collect();
        let missing = unmapped
            .iter()
            .map(|node| node.blocker("KernelNotMapped", format!("kernel {} has no mapping", node.kernel())));
        let missing: Vec<Blocker> = missing.collect();
        let (done, all) = (mapped.len() - waiting.len(), mapped.len());
        let none = Blocker::new("NoNodes", "no node with a mapped kernel matches the selector");
        let none = (all == 0 && !call.config.empty_is_ready).then_some(none);
        // Those without a mapping are told where something is waited for anyway, and hold where asked to.
        let is_held = !waiting.is_empty() || none.is_some() || call.config.every_kernel_is_mapped;
        let told = if is_held { missing } else { Vec::new() };
        let blockers: Vec<Blocker> = none.into_iter().chain(waiting).chain(told).collect();
        let answer = if blockers.is_empty() {
            Answer::ready()
        } else {
            let percent = (done * 100).checked_div(all).and_then(|percent| u8::try_from(percent).ok());
            Pending::new(blockers).progress(percent.unwrap_or(0)).into()
        };
        let message = format!("{done}/{all} nodes, {} without a mapping for their kernel", unmapped.len());
        let met = if done == all { ConditionStatus::Met } else { ConditionStatus::Unmet };
        Ok(answer.condition("Loaded", met, if done == all { "Loaded" } else { "ModuleNotLoaded" }, message))
    }
}

export_plugin!(Loaded: Readiness);

impl Module {
    /// The kernels it has mappings for; the expressions are KMM's own, in the syntax of RE2.
    fn kernels(&self) -> Result<Vec<Regex>, Failure> {
        let mappings = self.spec.module_loader.container.kernel_mappings.iter();
        let patterns = mappings.map(|Mapping { literal, regexp }| match regexp.is_empty() {
            true => format!("^{}$", regex_lite::escape(literal)),
            false => regexp.clone(),
        });
        let read = |pattern: String| {
            Regex::new(&pattern)
                .map_err(|error| Failure::until_changed(format!("kernel mapping {pattern}: {error}")))
        };
        patterns.map(read).collect()
    }

    /// What is still to come on a node; nothing when the wanted version is loaded there.
    fn blocker(&self, node: &Node) -> Option<Blocker> {
        let Metadata { name, namespace, .. } = &self.metadata;
        let label =
            |end: &str| node.metadata.labels.get(&format!("kmm.node.kubernetes.io/{namespace}.{name}.{end}"));
        let wanted = &self.spec.module_loader.container.version;
        if label("ready").is_none() {
            return Some(node.blocker("ModuleNotLoaded", format!("{name} is not loaded yet")));
        }
        let loaded = label("version.ready").map_or("none", String::as_str);
        let is_other = !wanted.is_empty() && loaded != wanted;
        is_other.then(|| {
            node.blocker(
                "OtherVersionLoaded",
                format!("version {loaded} of {name} is loaded, {wanted} is wanted"),
            )
        })
    }
}

impl Node {
    fn kernel(&self) -> &str {
        &self.status.node_info.kernel_version
    }

    fn blocker(&self, reason: &str, message: String) -> Blocker {
        let name = &self.metadata.name;
        Blocker::new(reason, message).on(ObjectRef::new("v1", "Node", name)).at_node(name)
    }
}

#[cfg(test)]
mod tests;
