//! `pintle.dev/v1alpha1` Plugin: installs a component and grants it rights.

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{plugin_policy::Signer, special_resource::free_form, status::Condition};

/// A WASM component, where it comes from, and what it may do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "pintle.dev",
    version = "v1alpha1",
    kind = "Plugin",
    plural = "plugins",
    status = "PluginStatus",
    crates(kube_core = "::kube_core"),
    doc = "Plugin installs a WebAssembly component and grants it rights",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Digest","type":"string","jsonPath":".status.digest"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct PluginSpec {
    /// `oci://registry/name:tag` or `…@sha256:…`. For development: `cm://namespace/name/key`, a component in a
    /// ConfigMap, or `file:///path`, one in a folder of the operator's.
    pub image: String,
    /// When the registry is asked again.
    #[serde(default)]
    pub pull_policy: PullPolicy,
    /// Secrets of type `kubernetes.io/dockerconfigjson` or `kubernetes.io/dockercfg`. Those that fit the image
    /// are tried in turn, the most exact first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pull_secrets: Vec<SecretName>,
    /// A service account whose `imagePullSecrets` are tried too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_service_account: Option<ServiceAccountName>,
    /// Who must have signed the component. Without it, it is loaded only by digest, or where the operator
    /// allows unsigned components.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
    /// Given to the plugin on each call.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub config: Map<String, Value>,
    /// What it may read and return.
    #[serde(default)]
    pub grants: Grants,
    /// What one call may use.
    #[serde(default)]
    pub limits: Limits,
    /// Offers WASI to the guest: still no files, no network, no real clock.
    #[serde(default)]
    pub wasi: bool,
}

/// When the registry is asked again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PullPolicy {
    /// When the digest is not in the cache.
    #[default]
    IfNotPresent,
    /// At each start, and when the Plugin changes.
    Always,
    /// Only from the cache.
    Never,
}

/// A Secret in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A service account in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceAccountName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Who must have signed: one of the keys, or one of the identities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verify {
    /// Public keys in PEM, as in `cosign.pub`: ECDSA, Ed25519 or RSA.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub public_keys: Vec<TextSource>,
    /// Identities of keyless signatures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identities: Vec<SignerIdentity>,
    /// Authorities and logs that are trusted, as Sigstore's `trusted_root.json`; without it the one the operator
    /// was started with, else that of the public instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_root: Option<TextSource>,
    /// Signatures by keys must be in a log of the trust root; those of identities always must.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transparency_log: bool,
}

/// An identity that an issuer vouched for. `*` stands for anything but a slash, `**` for anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignerIdentity {
    /// URL of the issuer; its host is named without wildcard.
    pub issuer: String,
    /// Subject of the certificate: an email, or the URL of a workflow.
    pub subject: String,
}

/// A text: one of the three.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextSource {
    /// The text itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub inline: String,
    /// A key of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<KeyOf>,
    /// A key of a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<KeyOf>,
}

/// A key of a Secret or a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyOf {
    /// Namespace of the object.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The key.
    pub key: String,
}

/// What a plugin may read, return and have done. Nothing is granted by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Grants {
    /// Objects it may read besides those of the release.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<ReadGrant>,
    /// Pods whose logs it may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<LogGrant>,
    /// Objects it may return to be made, repaired and pruned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectGrant>,
    /// Fields it may set on objects that exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartGrant>,
    /// What it may have the host do once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<ActionGrant>,
    /// Images it may look up: references such as `registry.example/vendor/*:*`, where `*` stands for
    /// anything but a slash and `**` for anything; the host is named without wildcard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Secrets whose values it sees in clear text. Calls that saw one cannot be replayed elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_values: Vec<SecretGrant>,
}

/// Whose rights a grant is used with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Identity {
    /// The service account of the release's owner, where it names one; else the operator's.
    #[default]
    Owner,
    /// The operator's own account, whatever the owner names.
    Operator,
}

impl Identity {
    fn is_owner(&self) -> bool {
        *self == Self::Owner
    }
}

/// Kinds, and where and how much of them, a plugin may read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadGrant {
    /// Groups; `""` is the core API.
    pub api_groups: Vec<String>,
    /// Kinds in the singular; a wildcard is refused.
    pub kinds: Vec<String>,
    /// Namespaces; empty for all, `$release` for the release's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Names; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Label selector that objects must match.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label_selector: String,
    /// Dotted paths; empty for the whole object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// Whose rights it is used with.
    #[serde(default, rename = "as", skip_serializing_if = "Identity::is_owner")]
    pub identity: Identity,
}

/// Pods whose logs a plugin may read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogGrant {
    /// Namespaces; empty for all, `$release` for the release's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Label selector that pods must match.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label_selector: String,
    /// Whose rights it is used with.
    #[serde(default, rename = "as", skip_serializing_if = "Identity::is_owner")]
    pub identity: Identity,
}

/// Kinds, and where of them, a plugin may return whole objects. Kinds of group `pintle.dev` are never
/// granted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectGrant {
    /// Groups; `""` is the core API.
    pub api_groups: Vec<String>,
    /// Kinds in the singular; a wildcard is refused.
    pub kinds: Vec<String>,
    /// Namespaces; empty for all, `$release` for the release's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Names; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Whose rights it is used with.
    #[serde(default, rename = "as", skip_serializing_if = "Identity::is_owner")]
    pub identity: Identity,
}

/// Fields a plugin may set on objects that exist and that others own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PartGrant {
    /// Groups; `""` is the core API.
    pub api_groups: Vec<String>,
    /// Kinds in the singular; a wildcard is refused.
    pub kinds: Vec<String>,
    /// Namespaces; empty for all, `$release` for the release's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Names; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Dotted paths it may set, each with all that is below it; at least one.
    pub fields: Vec<String>,
    /// Whose rights it is used with.
    #[serde(default, rename = "as", skip_serializing_if = "Identity::is_owner")]
    pub identity: Identity,
}

/// What a plugin may have the host do, and to which objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionGrant {
    /// What is done.
    pub verbs: Vec<ActionVerb>,
    /// Groups; `""` is the core API.
    pub api_groups: Vec<String>,
    /// Kinds in the singular; a wildcard is refused.
    pub kinds: Vec<String>,
    /// Namespaces; empty for all, `$release` for the release's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Names; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Whose rights it is used with.
    #[serde(default, rename = "as", skip_serializing_if = "Identity::is_owner")]
    pub identity: Identity,
}

/// What the host can do for a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ActionVerb {
    /// Evicts a pod, within its disruption budget.
    Evict,
    /// Marks a node as unschedulable.
    Cordon,
    /// Marks a node as schedulable.
    Uncordon,
    /// Deletes an object.
    Delete,
    /// Rolls the pods of a workload.
    Restart,
}

impl ActionVerb {
    /// Each verb with the word for it in grants and answers.
    pub const ALL: [(Self, &str); 5] = [
        (Self::Evict, "evict"),
        (Self::Cordon, "cordon"),
        (Self::Uncordon, "uncordon"),
        (Self::Delete, "delete"),
        (Self::Restart, "restart"),
    ];
}

/// Secrets, each by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretGrant {
    /// Namespaces; empty for all, `$release` for the release's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Names; at least one.
    pub names: Vec<String>,
}

/// What one call of a plugin may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Linear memory, as `64Mi`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub memory: String,
    /// Wall time of a call, as `2s`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub timeout: String,
}

/// What is known about a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginStatus {
    /// The generation this status was concluded from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The image string that `digest` was resolved from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// `sha256:…` of the manifest in the registry.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// Who signed this digest, of those `spec.verify` names; each was verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signers: Vec<Signer>,
    /// Name and version in the plugin's own manifest.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Functions it offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exports: Vec<String>,
    /// Abilities of the host it uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<String>,
    /// Rights its manifest asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    /// Rights it was granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<String>,
    /// Rights its manifest asks for that no grant gives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// A version that asks for more than the one that is loaded, and waits for grants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Upgrade>,
    /// `Pulled`, `Verified`, `Granted`, `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A version that waits for grants, while the one before goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// The image string.
    pub image: String,
    /// `sha256:…` of its manifest.
    pub digest: String,
    /// Name and version in its manifest.
    pub version: String,
    /// Rights that it asks for, that the version before does not ask for, and that no grant gives.
    pub missing: Vec<String>,
}
