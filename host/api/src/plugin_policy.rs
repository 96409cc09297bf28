//! `pintle.dev/v1alpha1` PluginPolicy: which components a chart may name itself, and with which rights.

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plugin::{Grants, Limits};

/// References that charts may name directly. While there is no PluginPolicy, charts can name only
/// Plugins that an administrator installed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "pintle.dev",
    version = "v1alpha1",
    kind = "PluginPolicy",
    plural = "pluginpolicies",
    crates(kube_core = "::kube_core"),
    doc = "PluginPolicy lets charts name components of some registries and signers, with some rights",
    printcolumn = r#"{"name":"Images","type":"string","jsonPath":".spec.match.images"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct PluginPolicySpec {
    /// Components it is about.
    pub r#match: PolicyMatch,
    /// The least version that the signed manifest of a component must carry, as `1.2.0`: an older one
    /// that was signed once is refused.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub min_version: String,
    /// `sha256:…` of components that were withdrawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_digests: Vec<String>,
    /// What such a component may read, return and have done.
    #[serde(default)]
    pub grants: Grants,
    /// What one call may use.
    #[serde(default)]
    pub limits: Limits,
}

/// Components a policy is about: the reference is one of the images, and one of the signers signed it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyMatch {
    /// References such as `registry.example/vendor/*`, without `oci://`, tag and digest; `*` stands for
    /// anything but a slash, `**` for anything; the host is named without wildcard.
    pub images: Vec<String>,
    /// Who must have signed; at least one signer, unless `unsigned` says that none is needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signers: Vec<Signer>,
    /// Keys in PEM whose signatures count, besides those of the signers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub public_keys: Vec<String>,
    /// True to take components that nobody signed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsigned: bool,
}

/// Who signed a component: a key, or an identity that an issuer vouched for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Signer {
    /// `sha256:…` of the public key in DER.
    Key(String),
    /// A keyless identity.
    Identity {
        /// URL of the issuer.
        issuer: String,
        /// Subject of the certificate.
        subject: String,
    },
}
