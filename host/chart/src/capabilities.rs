//! What a cluster can do, as templates see it: `.Capabilities`.

use std::fmt;

use pintle_template::{
    function::{Ctx, FnError, Param, Signature},
    value::{GoObject, Value, as_text, object::Shape, object_value},
};

/// The version of Helm whose behaviour charts find: `.Capabilities.HelmVersion.Version`.
pub const HELM_VERSION: &str = "v4.3.1";

/// What a cluster can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Version of the API server.
    pub kube_version: KubeVersion,
    /// `v1`, `apps/v1`, and `apps/v1/Deployment` for each kind that is served, in the order templates see.
    pub api_versions: Vec<String>,
}

/// A version of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeVersion {
    /// As the server says it, with a `v`.
    version: String,
    /// Without what vendors add: what constraints are held against.
    plain: String,
    major: String,
    minor: String,
}

/// A version that Kubernetes itself would not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAVersion(pub String);

impl std::error::Error for NotAVersion {}

impl fmt::Display for NotAVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.trim_start();
        if text.strip_prefix('v').unwrap_or(text).starts_with(|first: char| first.is_ascii_digit()) {
            write!(f, "illegal version string {:?}", self.0)
        } else {
            write!(f, "could not parse {:?} as version", self.0)
        }
    }
}

/// What Helm assumes without a cluster.
const DEFAULT_API_VERSIONS: [&str; 57] = [
    "v1",
    "admissionregistration.k8s.io/v1",
    "admissionregistration.k8s.io/v1alpha1",
    "admissionregistration.k8s.io/v1beta1",
    "internal.apiserver.k8s.io/v1alpha1",
    "apps/v1",
    "apps/v1beta1",
    "apps/v1beta2",
    "authentication.k8s.io/v1",
    "authentication.k8s.io/v1alpha1",
    "authentication.k8s.io/v1beta1",
    "authorization.k8s.io/v1",
    "authorization.k8s.io/v1beta1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "batch/v1beta1",
    "certificates.k8s.io/v1",
    "certificates.k8s.io/v1beta1",
    "certificates.k8s.io/v1alpha1",
    "coordination.k8s.io/v1alpha2",
    "coordination.k8s.io/v1beta1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "discovery.k8s.io/v1beta1",
    "events.k8s.io/v1",
    "events.k8s.io/v1beta1",
    "extensions/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta2",
    "flowcontrol.apiserver.k8s.io/v1beta3",
    "lifecycle.k8s.io/v1alpha1",
    "networking.k8s.io/v1",
    "networking.k8s.io/v1beta1",
    "node.k8s.io/v1",
    "node.k8s.io/v1alpha1",
    "node.k8s.io/v1beta1",
    "policy/v1",
    "policy/v1beta1",
    "rbac.authorization.k8s.io/v1",
    "rbac.authorization.k8s.io/v1beta1",
    "rbac.authorization.k8s.io/v1alpha1",
    "resource.k8s.io/v1",
    "resource.k8s.io/v1beta2",
    "resource.k8s.io/v1beta1",
    "resource.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1beta1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1beta1",
    "storage.k8s.io/v1",
    "storage.k8s.io/v1alpha1",
    "storagemigration.k8s.io/v1",
    "storagemigration.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1",
];

// === impl Capabilities ===

impl Capabilities {
    /// A cluster of this version with what Helm assumes it serves; see [`Capabilities::with`].
    #[must_use]
    pub fn assumed(kube_version: KubeVersion) -> Self {
        Self { kube_version, api_versions: DEFAULT_API_VERSIONS.map(str::to_owned).into() }
    }

    /// The same with more API versions.
    #[must_use]
    pub fn with<S: Into<String>>(mut self, api_versions: impl IntoIterator<Item = S>) -> Self {
        self.api_versions.extend(api_versions.into_iter().map(Into::into));
        self
    }

    /// Whether the cluster serves `apps/v1`, or `apps/v1/Deployment`.
    #[must_use]
    pub fn has(&self, version: &str) -> bool {
        self.api_versions.iter().any(|known| known == version)
    }

    /// `.Capabilities`.
    pub(crate) fn to_value(&self) -> Value {
        object_value(Shown {
            kube_version: object_value(ShownVersion(self.kube_version.clone())),
            api_versions: object_value(ShownSet(self.api_versions.clone())),
            helm: object_value(ShownHelm),
        })
    }
}

impl Default for Capabilities {
    /// What `helm template` assumes: the version of Kubernetes that Helm was built for.
    fn default() -> Self {
        let plain = "v1.37.0".to_owned();
        Self::assumed(KubeVersion { version: plain.clone(), plain, major: "1".into(), minor: "37".into() })
    }
}

// === impl KubeVersion ===

impl KubeVersion {
    /// Reads `v1.36.3`, `1.31`, `v1.33.4-gke.1245000`: at least two numbers, what follows them is kept.
    ///
    /// # Errors
    /// When it does not start with two numbers.
    pub fn parse(text: &str) -> Result<Self, NotAVersion> {
        let refuse = || NotAVersion(text.to_owned());
        let start = text.trim_start();
        let start = start.strip_prefix('v').unwrap_or(start);
        let end = start.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(start.len());
        let numbers = start.get(..end).unwrap_or_default().trim_end_matches('.');
        let parts: Vec<u64> =
            numbers.split('.').map(str::parse).collect::<Result<_, _>>().map_err(|_| refuse())?;
        let ([major, minor, ..], true) = (parts.as_slice(), !has_leading_zero(numbers)) else {
            return Err(refuse());
        };
        let version = if text.starts_with('v') { text.to_owned() } else { format!("v{text}") };
        Ok(Self { version, plain: format!("v{numbers}"), major: major.to_string(), minor: minor.to_string() })
    }

    /// As the server says it, with a `v`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Without what vendors add.
    #[must_use]
    pub fn plain(&self) -> &str {
        &self.plain
    }
}

fn has_leading_zero(numbers: &str) -> bool {
    numbers.split('.').any(|part| part.len() > 1 && part.starts_with('0'))
}

/// `*common.Capabilities`, whose parts are made once: charts ask for them again and again.
#[derive(Debug)]
struct Shown {
    kube_version: Value,
    api_versions: Value,
    helm: Value,
}

/// `common.KubeVersion`
#[derive(Debug)]
struct ShownVersion(KubeVersion);

/// `common.VersionSet`
#[derive(Debug)]
struct ShownSet(Vec<String>);

/// `version.BuildInfo`
#[derive(Debug)]
struct ShownHelm;

impl GoObject for Shown {
    fn type_name(&self) -> &'static str {
        "*common.Capabilities"
    }

    fn shape(&self) -> Shape {
        Shape::Pointer
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "KubeVersion" => Some(self.kube_version.clone()),
            "APIVersions" => Some(self.api_versions.clone()),
            "HelmVersion" => Some(self.helm.clone()),
            _ => None,
        }
    }

    fn entries(&self) -> Vec<(Value, Value)> {
        fields(self, &["KubeVersion", "APIVersions", "HelmVersion"])
    }
}

impl GoObject for ShownVersion {
    fn type_name(&self) -> &'static str {
        "common.KubeVersion"
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Version" => Some(self.0.version.as_str().into()),
            "Major" => Some(self.0.major.as_str().into()),
            "Minor" => Some(self.0.minor.as_str().into()),
            _ => None,
        }
    }

    fn method(&self, name: &str) -> Option<Signature> {
        matches!(name, "GitVersion" | "String").then(|| Signature::fixed(&[]))
    }

    fn call(&self, name: &str, _: &mut Ctx<'_>, _: &[Value]) -> Result<Value, FnError> {
        let text = if name == "String" { &self.0.plain } else { &self.0.version };
        Ok(text.as_str().into())
    }

    fn entries(&self) -> Vec<(Value, Value)> {
        fields(self, &["Version", "Major", "Minor"])
    }

    fn text(&self) -> Option<String> {
        Some(self.0.plain.clone())
    }
}

impl GoObject for ShownSet {
    fn type_name(&self) -> &'static str {
        "common.VersionSet"
    }

    fn shape(&self) -> Shape {
        Shape::Slice
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "Has").then(|| Signature::fixed(&[Param::String]))
    }

    fn call(&self, _: &str, _: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
        let wanted = args.first().and_then(as_text);
        Ok(wanted.is_some_and(|wanted| self.0.iter().any(|known| *known == wanted)).into())
    }

    fn entries(&self) -> Vec<(Value, Value)> {
        self.0
            .iter()
            .enumerate()
            .map(|(at, version)| (Value::from(at), Value::from(version.as_str())))
            .collect()
    }
}

impl GoObject for ShownHelm {
    fn type_name(&self) -> &'static str {
        "version.BuildInfo"
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Version" => Some(HELM_VERSION.into()),
            "GoVersion" => Some("go1.26.8".into()),
            "KubeClientVersion" => Some("v1.37".into()),
            "GitCommit" | "GitTreeState" => Some("".into()),
            _ => None,
        }
    }

    fn entries(&self) -> Vec<(Value, Value)> {
        fields(self, &["Version", "GitCommit", "GitTreeState", "GoVersion", "KubeClientVersion"])
    }
}

fn fields(object: &dyn GoObject, names: &[&str]) -> Vec<(Value, Value)> {
    names.iter().filter_map(|name| Some((Value::from(*name), object.field(name)?))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn versions_are_read_as_kubernetes_reads_them() {
        for (text, version, plain, minor) in [
            ("v1.36.3", "v1.36.3", "v1.36.3", "36"),
            ("1.31", "v1.31", "v1.31", "31"),
            ("v1.33.4-gke.1245000", "v1.33.4-gke.1245000", "v1.33.4", "33"),
            ("v1.30.2+rke2r1", "v1.30.2+rke2r1", "v1.30.2", "30"),
        ] {
            let read = KubeVersion::parse(text).unwrap();
            assert_eq!((read.version(), read.plain(), read.minor.as_str()), (version, plain, minor));
        }
        for text in ["banana", "v", ""] {
            let error = KubeVersion::parse(text).unwrap_err();
            assert_eq!(error.to_string(), format!("could not parse {text:?} as version"));
        }
        for text in ["1", "v01.2"] {
            let error = KubeVersion::parse(text).unwrap_err();
            assert_eq!(error.to_string(), format!("illegal version string {text:?}"));
        }
    }

    #[test]
    fn api_versions_can_be_asked_with_and_without_a_kind() {
        let capabilities = Capabilities::default().with(["cert-manager.io/v1", "apps/v1/Deployment"]);
        for (version, there) in [
            ("apps/v1", true),
            ("apps/v1/Deployment", true),
            ("cert-manager.io/v1", true),
            ("apps/v9", false),
        ] {
            assert_eq!(capabilities.has(version), there, "{version}");
        }
    }
}
