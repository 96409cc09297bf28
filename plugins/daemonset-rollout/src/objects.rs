//! What this plugin looks at in objects of the cluster, and nothing else of them.

use std::collections::BTreeMap;

use pintle_plugin_sdk::kube::LabelSelector;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub(crate) struct DaemonSet {
    pub(crate) metadata: Metadata,
    pub(crate) spec: Spec,
    #[serde(default)]
    pub(crate) status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) generation: i64,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) deletion_timestamp: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec {
    pub(crate) selector: LabelSelector,
    #[serde(default)]
    pub(crate) update_strategy: Strategy,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Strategy {
    pub(crate) r#type: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    pub(crate) observed_generation: i64,
    pub(crate) desired_number_scheduled: u32,
    pub(crate) updated_number_scheduled: u32,
    pub(crate) number_available: u32,
}

#[derive(Deserialize)]
pub(crate) struct Revision {
    pub(crate) metadata: Metadata,
    pub(crate) revision: i64,
    #[serde(default)]
    pub(crate) data: Value,
}

#[derive(Deserialize)]
pub(crate) struct Pod {
    pub(crate) metadata: Metadata,
    #[serde(default)]
    pub(crate) spec: PodSpec,
    #[serde(default)]
    pub(crate) status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodSpec {
    pub(crate) node_name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodStatus {
    pub(crate) container_statuses: Vec<Container>,
}

#[derive(Deserialize)]
pub(crate) struct Container {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) ready: bool,
}
