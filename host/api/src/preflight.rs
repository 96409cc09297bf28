//! `sro.openshift.io/v1beta1` PreflightValidation: accepted as SRO's CRD does; not served yet.

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Asks whether every SpecialResource would survive an update of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "sro.openshift.io",
    version = "v1beta1",
    kind = "PreflightValidation",
    plural = "preflightvalidations",
    shortname = "pv",
    status = "PreflightValidationStatus",
    crates(kube_core = "::kube_core"),
    doc = "PreflightValidation asks whether every SpecialResource would survive an update of the cluster"
)]
#[serde(rename_all = "camelCase")]
pub struct PreflightValidationSpec {
    /// Release image to validate against.
    pub update_image: String,
    /// Kept for existing objects; has no effect.
    #[serde(default)]
    pub debug: bool,
}

/// Answers by SpecialResource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreflightValidationStatus {
    /// Answers by SpecialResource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sr_statuses: Vec<PreflightAnswer>,
}

/// What is known of one SpecialResource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreflightAnswer {
    /// Name of the SpecialResource.
    pub name: String,
    /// Whether it would survive.
    pub verification_status: Verification,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status_reason: String,
    /// When the answer last changed, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: String,
}

/// Whether a SpecialResource would survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Verification {
    /// It would.
    True,
    /// It would not.
    False,
    /// Nobody could tell.
    Error,
    /// Nobody has looked yet.
    Unknown,
}
