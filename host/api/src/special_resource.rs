//! `sro.openshift.io/v1beta1` SpecialResource: every field SRO had, and optional ones of ours.

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::status::{Condition, StateStatus};

/// A chart, and the values for it, that make one release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "sro.openshift.io",
    version = "v1beta1",
    kind = "SpecialResource",
    plural = "specialresources",
    shortname = "sr",
    status = "SpecialResourceStatus",
    crates(kube_core = "::kube_core"),
    doc = "SpecialResource describes a software stack for hardware that a cluster does not know by itself",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Progressing","type":"string","jsonPath":".status.conditions[?(@.type==\"Progressing\")].status"}"#,
    printcolumn = r#"{"name":"Errored","type":"string","jsonPath":".status.conditions[?(@.type==\"Errored\")].status"}"#,
    printcolumn = r#"{"name":"State","type":"string","jsonPath":".status.currentState"}"#,
    printcolumn = r#"{"name":"Blocked","type":"string","jsonPath":".status.blocked"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct SpecialResourceSpec {
    /// Chart to install.
    pub chart: HelmChart,
    /// Namespace of the release; empty: the name of this object.
    pub namespace: String,
    /// Values over those of the chart. `apiVersion` and `kind` may be given, as SRO asked for.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub set: Map<String, Value>,
    /// Nodes whose facts are used and that get state labels; merged into the workloads' selector.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Charts that must be ready before this one. Each is a SpecialResource of its own, named after its chart: made
    /// where there is none, and left when this one goes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Dependency>,
    /// `Managed` (or empty), `Unmanaged`, `Force`, `Removed`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "management_state")]
    pub management_state: String,
    /// Logs more about this object.
    #[serde(default)]
    pub debug: bool,
    /// Where the driver container comes from; read by charts alone.
    #[serde(default)]
    pub driver_container: DriverContainer,
    /// Kept for existing objects; has no effect.
    #[serde(default)]
    pub force_upgrade: bool,
    /// Values from ConfigMaps and Secrets, under `set`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values_from: Vec<crate::watch::ValuesFrom>,
    /// Account whose rights the release is limited to. Not served yet: an object that names one is refused.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service_account_name: String,
    /// How long each state may take; empty: without end, as SRO.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub timeout: String,
    /// What happens when live objects differ; default: they are repaired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_detection: Option<crate::watch::DriftDetection>,
    /// When an object that exists already is taken over; default: when it carries marks of SRO or Helm for
    /// this release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<crate::watch::Adopt>,
    /// Plugins for the whole release, besides those the chart names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugins: Option<ReleasePlugins>,
}

/// A chart in a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmChart {
    /// Name of the chart in the repository's index.
    pub name: String,
    /// A version or a range, resolved as Helm does.
    pub version: String,
    /// Where the chart is.
    pub repository: HelmRepository,
    /// Kept for existing objects; has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// `sha256:…` that the archive must have.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
}

/// A chart repository. Names of fields with underscores are SRO's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HelmRepository {
    /// A name for people.
    pub name: String,
    /// `cm://namespace/name`, `file:///folder`, `http(s)://…`, `oci://…`.
    pub url: String,
    /// User for basic authentication.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// Password for basic authentication.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub password: String,
    /// Path of a client certificate inside the operator's container.
    #[serde(default, rename = "certFile", skip_serializing_if = "String::is_empty")]
    pub cert_file: String,
    /// Path of the client certificate's key inside the operator's container.
    #[serde(default, rename = "keyFile", skip_serializing_if = "String::is_empty")]
    pub key_file: String,
    /// Path of a certificate authority inside the operator's container.
    #[serde(default, rename = "caFile", skip_serializing_if = "String::is_empty")]
    pub ca_file: String,
    /// Whether the server's certificate goes unchecked.
    #[serde(default)]
    pub insecure_skip_tls_verify: bool,
    /// A Secret of the release's namespace with what is needed to read the repository.
    #[serde(default, rename = "secretRef", skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<RepositorySecret>,
}

/// A Secret with `username` and `password`, or `.dockerconfigjson`; and with `ca.crt`, `tls.crt` and `tls.key` where
/// they are needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepositorySecret {
    /// Its namespace; empty: that of the release. Only a Watch may name another.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A chart that must be ready first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dependency {
    /// The chart.
    #[serde(default)]
    pub chart: HelmChart,
    /// Values over those of the chart.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub set: Map<String, Value>,
}

/// Read by charts as `.Values.specialresource.spec.driverContainer`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriverContainer {
    /// Sources of the driver.
    #[serde(default)]
    pub source: DriverSource,
    /// Files, images and claims the driver container needs.
    #[serde(default)]
    pub artifacts: DriverArtifacts,
}

/// Sources of the driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriverSource {
    /// A git repository.
    #[serde(default)]
    #[schemars(schema_with = "git_schema")]
    pub git: GitSource,
}

/// A git repository at a reference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitSource {
    /// Branch, tag or commit.
    #[serde(default)]
    pub r#ref: String,
    /// Where it is.
    #[serde(default)]
    pub uri: String,
}

/// Files, images and claims the driver container needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriverArtifacts {
    /// Folders of the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_paths: Vec<HostPath>,
    /// Images to copy from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ArtifactImage>,
    /// Persistent volume claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ArtifactClaim>,
}

/// A folder of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostPath {
    /// Where it is on the host.
    pub source_path: String,
    /// Where it goes.
    pub destination_dir: String,
}

/// An image to copy from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactImage {
    /// Name of the image.
    pub name: String,
    /// Kind of the reference.
    pub kind: String,
    /// Namespace of the reference.
    pub namespace: String,
    /// Secret to pull with.
    #[serde(default)]
    pub pullsecret: String,
    /// What to copy.
    pub path: Vec<HostPath>,
}

/// A persistent volume claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactClaim {
    /// Name of the claim.
    pub name: String,
    /// Where it is mounted.
    pub mount_path: String,
}

/// Plugins for a whole release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleasePlugins {
    /// Plugins that map values, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub value_mappers: Vec<String>,
    /// Plugins called around the release and its states, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
}

/// What is known about the release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpecialResourceStatus {
    /// SRO's one line: `Progressing: …`, `Ready: `, `Errored: …`.
    #[serde(default)]
    pub state: String,
    /// `Ready`, `Progressing`, `Errored`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The generation this status was concluded from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Name of the state that is being worked on; empty when all passed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub current_state: String,
    /// The first blocker in short, for the printed column.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub blocked: String,
    /// One entry per state, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<StateStatus>,
    /// Version and digest of the chart in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<ChartStatus>,
    /// Number of the Helm revision in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// What plugins say of their own, by plugin.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub plugins: BTreeMap<String, Value>,
}

/// The chart in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChartStatus {
    /// Name in `Chart.yaml`.
    pub name: String,
    /// Version in `Chart.yaml`.
    pub version: String,
    /// `sha256:…` of the archive, or of the folder's files.
    pub digest: String,
}

/// A mapping that keeps fields the schema does not know.
pub(crate) fn free_form(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn management_state(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^(Managed|Unmanaged|Force|Removed)?$"})
}

fn git_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "required": ["ref", "uri"],
        "properties": {
            "ref": {"type": "string", "description": "Branch, tag or commit."},
            "uri": {"type": "string", "description": "Where it is."}
        }
    })
}
