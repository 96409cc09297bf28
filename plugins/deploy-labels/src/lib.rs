//! `deploy-labels`: labels on nodes say which operands run there, by the workload that the node is for. A label that
//! somebody set to another value, such as a pauser, is left as it is; labels of others are never touched.

use std::collections::BTreeMap;

use pintle_plugin_sdk::{
    Call, ConditionStatus, Desired, Failure, Live, Manifest, ObjectAccess, Plugin, ReadAccess, Reconciler,
    config::config,
    export_plugin,
    kube::{self, LabelSelector, Query},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What is read of a node, and must be granted.
const FIELDS: [&str; 2] = ["metadata.name", "metadata.labels"];
/// What the names of our labels begin with.
const PREFIX: &str = "vendor.example/deploy.";
/// Our labels as fields of a node: no other one may be set.
const LABELS: [&str; 9] = [
    "metadata.labels.vendor\\.example/deploy\\.device-plugin",
    "metadata.labels.vendor\\.example/deploy\\.driver",
    "metadata.labels.vendor\\.example/deploy\\.exporter",
    "metadata.labels.vendor\\.example/deploy\\.mig-manager",
    "metadata.labels.vendor\\.example/deploy\\.sandbox-device-plugin",
    "metadata.labels.vendor\\.example/deploy\\.toolkit",
    "metadata.labels.vendor\\.example/deploy\\.vfio-manager",
    "metadata.labels.vendor\\.example/deploy\\.vgpu-device-manager",
    "metadata.labels.vendor\\.example/deploy\\.vgpu-manager",
];
/// The label by which an administrator says what a node is for.
const WORKLOAD: &str = "vendor.example/workload";
/// The value that an operand looks for.
const ON: &str = "true";
/// Operands by workload.
const OPERANDS: [(&str, &[&str]); 3] = [
    ("container", &["driver", "toolkit", "device-plugin", "exporter"]),
    ("vm-passthrough", &["vfio-manager", "sandbox-device-plugin"]),
    ("vm-vgpu", &["vgpu-manager", "vgpu-device-manager", "sandbox-device-plugin"]),
];
/// Products that can be cut into instances, which one more operand does.
const MIG: [&str; 3] = ["h100", "a100", "a30"];

config! {
    /// `spec.config` of the Plugin, or `spec.reconciler.config` of the Watch.
    pub struct Config {
        /// Labels of the nodes with a card.
        node_selector: BTreeMap<String, String> = BTreeMap::new(),
        /// What a node is for that does not say so itself.
        default_workload: String = "container".to_owned(),
        /// The label with the name of the card.
        product_label: String = "vendor.example/product".to_owned(),
    }
}

#[derive(Deserialize)]
struct Node {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// The plugin.
pub struct DeployLabels;

impl Plugin for DeployLabels {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("deploy-labels", env!("CARGO_PKG_VERSION"))
            .description("Labels on nodes say which operands run there, by the workload that the node is for")
            .config::<Config>()
            .reads(ReadAccess::to("", "Node").fields(&FIELDS))
            .changes(ObjectAccess::to("", "Node").fields(&LABELS))
            .reasons(["Labelled"])
    }
}

impl Reconciler for DeployLabels {
    fn reconcile(call: &Call<Config>, _: &[Live]) -> Result<Desired, Failure> {
        let config = &call.config;
        let selector =
            LabelSelector { match_labels: config.node_selector.clone(), ..LabelSelector::default() };
        let nodes: Vec<Node> = kube::find(&Query::all("v1", "Node").selected_by(&selector).fields(&FIELDS))?;
        let mut desired = Desired::unless([]);
        let mut labelled = 0_usize;
        for Node { metadata: Metadata { name, labels } } in nodes {
            let wanted = wanted(config, &name, &labels)?;
            let free = wanted.into_iter().filter(|label| is_free(&labels, label));
            let kept: Map<String, Value> = free.map(|label| (label, json!(ON))).collect();
            if !kept.is_empty() {
                labelled += 1;
                let part =
                    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": kept}});
                desired = desired.part(&name, &part);
            }
        }
        let message = format!("{labelled} nodes say which operands they run");
        Ok(desired.condition("Labelled", ConditionStatus::Met, "Labelled", message))
    }
}

export_plugin!(DeployLabels: Reconciler);

/// Labels that a node shall have.
fn wanted(config: &Config, node: &str, labels: &BTreeMap<String, String>) -> Result<Vec<String>, Failure> {
    let workload =
        labels.get(WORKLOAD).filter(|workload| !workload.is_empty()).unwrap_or(&config.default_workload);
    let Some((_, operands)) = OPERANDS.iter().find(|(known, _)| known == workload) else {
        let known = OPERANDS.map(|(known, _)| known).join(", ");
        return Err(Failure::until_changed(format!(
            "node {node} is for {workload:?}, which is none of {known}"
        )));
    };
    let product = labels.get(&config.product_label).map(|product| product.to_lowercase()).unwrap_or_default();
    let can_be_cut = workload == "container" && MIG.iter().any(|mig| product.contains(mig));
    let more = can_be_cut.then_some("mig-manager");
    Ok(operands.iter().copied().chain(more).map(|operand| format!("{PREFIX}{operand}")).collect())
}

/// True for a label that nobody else has set: it is not there, empty, or as we set it.
fn is_free(labels: &BTreeMap<String, String>, label: &str) -> bool {
    labels.get(label).is_none_or(|value| value.is_empty() || value == ON)
}

#[cfg(test)]
mod tests;
