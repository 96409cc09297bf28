//! `pintle.dev/v1alpha1` Watch: binds a vendor's kind to a chart.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_derive::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    special_resource::{RepositorySecret, free_form},
    status::Condition,
};

/// One vendor's kind, and the chart each of its objects becomes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "pintle.dev",
    version = "v1alpha1",
    kind = "Watch",
    plural = "watches",
    status = "WatchStatus",
    crates(kube_core = "::kube_core"),
    doc = "Watch binds a vendor's kind to a chart",
    printcolumn = r#"{"name":"Kind","type":"string","jsonPath":".spec.kind"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Releases","type":"integer","jsonPath":".status.releases"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct WatchSpec {
    /// Group of the vendor's kind.
    pub group: String,
    /// Version of the vendor's kind.
    pub version: String,
    /// The vendor's kind in the singular.
    pub kind: String,
    /// The chart each object becomes; without one a reconciler says what shall be there.
    #[serde(default, skip_serializing_if = "WatchChart::is_absent")]
    pub chart: WatchChart,
    /// The plugin that alone says what shall be there for each object, in place of a chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconciler: Option<WatchPlugin>,
    /// Plugins called around each release, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<WatchHook>,
    /// Release name as a template over the owner; empty: the owner's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub release_name: String,
    /// Namespace of the release; empty: the owner's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target_namespace: String,
    /// Values from ConfigMaps and Secrets of the release's namespace, under those of the owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values_from: Vec<ValuesFrom>,
    /// Values over those of the owner; keys may be dotted paths.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub override_values: Map<String, Value>,
    /// Plugin that makes values of an owner, over those of its `spec` and under `overrideValues`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_mapper: Option<WatchPlugin>,
    /// How many owners are worked on at once; absent: one for each processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent_reconciles: Option<u32>,
    /// Owners that count; empty: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector")]
    pub selector: Option<LabelSelector>,
    /// How long each state may take, as `5m`; empty: without end.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub timeout: String,
    /// What happens when live objects differ; default: they are repaired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_detection: Option<DriftDetection>,
    /// Revisions that are kept; 0: all. Default: 10, as Helm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_max: Option<u32>,
    /// What is done when a revision fails; absent: nothing, it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<Remediation>,
    /// What becomes of the files under `crds/` of the chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crds: Option<CrdPolicy>,
    /// Whether objects of the release are watched and repaired; default: yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_dependent_resources: Option<bool>,
    /// How often a release is looked at without an event, as `1m`; empty: as the operator's flag says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reconcile_period: String,
    /// Domain of the annotations on owners, as `install-disable-hooks`; empty:
    /// `helm.sdk.operatorframework.io`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub annotation_domain: String,
    /// Annotation on an owner that pauses it besides `pintle.dev/pause`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pause_annotation: String,
    /// Whether the release's namespace is made when it is missing. An empty one goes with the release.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub create_namespace: bool,
    /// When an object that exists already is taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Adopt>,
    /// Account whose rights the releases are limited to. Not served yet: a Watch that names one is refused.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service_account_name: String,
}

/// A plugin that is called around the releases of a [`Watch`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WatchHook {
    /// Name of the Plugin.
    pub plugin: String,
    /// Config for this kind, over that of the Plugin.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub config: Map<String, Value>,
    /// What becomes of a deletion when the Plugin is not there; absent: it is waited for ten minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<MissingPolicy>,
}

/// What becomes of a deletion when a Plugin that is called around it is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MissingPolicy {
    /// It waits until the Plugin is there.
    Block,
    /// It goes on without.
    Orphan,
}

/// A plugin of a [`Watch`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WatchPlugin {
    /// Name of the Plugin.
    pub plugin: String,
    /// Config for this kind, over that of the Plugin.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub config: Map<String, Value>,
}

/// A chart for a [`Watch`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchChart {
    /// Name of the chart in the repository's index.
    pub name: String,
    /// A version or a range, resolved as Helm does; empty: the newest.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Where the chart is.
    pub repository: WatchRepository,
    /// `sha256:…` that the archive must have.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
}

impl WatchChart {
    /// True when no chart is named.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}

/// A chart repository for a [`Watch`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchRepository {
    /// `cm://namespace/name`, `file:///folder`, `http(s)://…`, `oci://…`.
    pub url: String,
    /// A Secret with what is needed to read the repository.
    #[serde(default, rename = "secretRef", skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<RepositorySecret>,
}

/// What happens when live objects differ from what was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriftDetection {
    /// Repair, tell, or neither.
    #[serde(default)]
    pub mode: DriftMode,
    /// Differences that do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<DriftIgnore>,
}

/// Differences that do not count: those at a path, or made by a manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriftIgnore {
    /// JSON pointers, as `/spec/replicas`; what is below counts as little.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Field managers, as `kubectl get --show-managed-fields` names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managers: Vec<String>,
    /// Objects it is about; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<DriftTarget>,
}

/// Objects that a rule is about: all that have each field that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriftTarget {
    /// Group of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// What is done when a revision fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Remediation {
    /// How often a revision that failed is tried again.
    #[serde(default)]
    pub retries: u32,
    /// What becomes of one that failed.
    #[serde(default)]
    pub strategy: RemediationStrategy,
}

/// What becomes of a revision that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RemediationStrategy {
    /// The last revision that was deployed comes back, as a new one. A first installation has none to go
    /// back to; it is tried again as it is.
    #[default]
    Rollback,
    /// The release is uninstalled before it is tried again.
    Uninstall,
}

/// What becomes of the files under `crds/` of a chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CrdPolicy {
    /// They are left out.
    Skip,
    /// Those that are missing are made; none is changed.
    #[default]
    Create,
    /// They are made, and changed when the chart changes them; none is ever deleted.
    CreateReplace,
}

/// Repair, tell, or neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DriftMode {
    /// Differences are repaired, but for what was written through the subresource `scale`: an autoscaler, or
    /// `kubectl scale`, keeps its number of replicas.
    #[default]
    Enabled,
    /// Differences are told.
    Warn,
    /// Nobody looks.
    Disabled,
}

/// When an object that exists already is taken over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Adopt {
    /// Never.
    Never,
    /// When it carries no mark of another owner, or marks of Helm or SRO for this very release.
    #[default]
    IfUnowned,
    /// Always.
    Force,
}

/// Values from a ConfigMap or a Secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValuesFrom {
    /// `ConfigMap` or `Secret`.
    pub kind: ValuesKind,
    /// Its name, in the release's namespace.
    pub name: String,
    /// Key inside it; empty: `values.yaml`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub values_key: String,
    /// Whether it may be absent.
    #[serde(default)]
    pub optional: bool,
}

/// Where values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ValuesKind {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
}

/// What is known about a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WatchStatus {
    /// The generation this status was concluded from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Owners that count.
    #[serde(default)]
    pub releases: u32,
    /// `Ready`, and `StatusSchemaIncomplete` where the kind's schema has no place for what is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Status of an owner of a vendor's kind, in the fields we write; the vendor's own survive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerStatus {
    /// Conditions by type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What does not belong to us.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
            "matchExpressions": {"type": "array", "items": {
                "type": "object",
                "required": ["key", "operator"],
                "properties": {
                    "key": {"type": "string"},
                    "operator": {"type": "string"},
                    "values": {"type": "array", "items": {"type": "string"}}
                }
            }}
        }
    })
}
