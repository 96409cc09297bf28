//! `sro.openshift.io/v1beta1` SpecialResourceModule: accepted as SRO's CRD does; not served yet.

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::special_resource::{HelmChart, free_form};

/// A chart rendered once for each cluster version that watched objects name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "sro.openshift.io",
    version = "v1beta1",
    kind = "SpecialResourceModule",
    plural = "specialresourcemodules",
    shortname = "srm",
    status = "SpecialResourceModuleStatus",
    crates(kube_core = "::kube_core"),
    doc = "SpecialResourceModule renders a chart for each cluster version that watched objects name"
)]
pub struct SpecialResourceModuleSpec {
    /// Chart to install.
    pub chart: HelmChart,
    /// Namespace of the release.
    pub namespace: String,
    /// Values over those of the chart.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub set: Map<String, Value>,
    /// Objects that name versions or images.
    pub watch: Vec<WatchedPath>,
}

/// Objects, and the path inside them that names versions or images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WatchedPath {
    /// Version of the kind, as manifests write it.
    pub api_version: String,
    /// Kind of the objects.
    pub kind: String,
    /// JSONPath to a string or a list of strings.
    pub path: String,
    /// Name of one object; empty: all of the kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Namespace of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Filters, any of which may hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selector: Vec<PathSelector>,
}

/// A filter on a path's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathSelector {
    /// JSONPath to a string.
    pub path: String,
    /// What it must be.
    pub value: String,
    /// Turns the filter round.
    #[serde(default)]
    pub exclude: bool,
}

/// Progress by driver-toolkit image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpecialResourceModuleStatus {
    /// Progress by driver-toolkit image.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, ModuleVersion>,
}

/// How far one version is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModuleVersion {
    /// Templates that were applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reconciled_templates: Vec<String>,
    /// Whether all were.
    pub complete: bool,
}
