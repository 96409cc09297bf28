//! What this plugin looks at in objects of the cluster, and nothing else of them.

use pintle_plugin_sdk::kube::LabelSelector;
use serde::{Deserialize, de::IgnoredAny};

#[derive(Deserialize)]
pub(crate) struct Pod {
    pub(crate) metadata: Metadata,
    #[serde(default)]
    pub(crate) status: PodStatus,
}

#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodStatus {
    pub(crate) container_statuses: Vec<Container>,
}

#[derive(Deserialize)]
pub(crate) struct Container {
    pub(crate) image: String,
    #[serde(default)]
    pub(crate) state: State,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    pub(crate) waiting: Option<Waiting>,
}

#[derive(Deserialize)]
pub(crate) struct Waiting {
    #[serde(default)]
    pub(crate) reason: String,
}

/// What the release has rendered, as far as it matters here.
#[derive(Deserialize)]
pub(crate) struct Rendered {
    pub(crate) kind: String,
    pub(crate) metadata: Metadata,
    #[serde(default)]
    pub(crate) spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Spec {
    pub(crate) selector: Option<LabelSelector>,
    pub(crate) strategy: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Build {
    pub(crate) status: BuildStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct BuildStatus {
    pub(crate) phase: String,
    pub(crate) message: String,
}
