//! The kinds of OpenShift that drivers use, as far as a client can tell: definitions that keep unknown fields, and
//! the objects that every cluster has. Builds are run by [`crate::simulate`].

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Client, Error};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cluster::INTERNAL_REGISTRY;

/// What the simulated cluster says its version is: the one that ships [`crate::nodes::KERNEL`].
pub const CLUSTER_VERSION: &str = "4.8.4";

/// The image of the driver toolkit that the simulated cluster names.
pub const DRIVER_TOOLKIT: &str = "registry.example/openshift/driver-toolkit:4.8.4";

/// A kind of OpenShift that can be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// `build.openshift.io/v1`.
    BuildConfig,
    /// `build.openshift.io/v1`.
    Build,
    /// `image.openshift.io/v1`.
    ImageStream,
    /// `security.openshift.io/v1`.
    SecurityContextConstraints,
    /// `config.openshift.io/v1`.
    ClusterVersion,
    /// `config.openshift.io/v1`.
    Proxy,
}

/// The names and the scope of a kind.
struct Names {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    short: &'static [&'static str],
    namespaced: bool,
}

impl Kind {
    /// All of them: a cluster that is OpenShift. Without any it is plain Kubernetes.
    pub const ALL: [Self; 6] = [
        Self::BuildConfig,
        Self::Build,
        Self::ImageStream,
        Self::SecurityContextConstraints,
        Self::ClusterVersion,
        Self::Proxy,
    ];

    const fn names(self) -> Names {
        let (group, kind, plural, singular, namespaced) = match self {
            Self::BuildConfig => ("build.openshift.io", "BuildConfig", "buildconfigs", "buildconfig", true),
            Self::Build => ("build.openshift.io", "Build", "builds", "build", true),
            Self::ImageStream => ("image.openshift.io", "ImageStream", "imagestreams", "imagestream", true),
            Self::SecurityContextConstraints => (
                "security.openshift.io",
                "SecurityContextConstraints",
                "securitycontextconstraints",
                "securitycontextconstraints",
                false,
            ),
            Self::ClusterVersion => {
                ("config.openshift.io", "ClusterVersion", "clusterversions", "clusterversion", false)
            }
            Self::Proxy => ("config.openshift.io", "Proxy", "proxies", "proxy", false),
        };
        let short: &[&str] = match self {
            Self::BuildConfig => &["bc"],
            Self::ImageStream => &["is"],
            Self::SecurityContextConstraints => &["scc"],
            Self::Build | Self::ClusterVersion | Self::Proxy => &[],
        };
        Names { group, kind, plural, singular, short, namespaced }
    }

    /// How objects of the kind are asked for.
    pub fn resource(self) -> ApiResource {
        let Names { group, kind, plural, .. } = self.names();
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), plural)
    }

    /// The CustomResourceDefinition. Status is a subresource where OpenShift keeps users from writing it.
    pub fn definition(self) -> Value {
        let Names { group, kind, plural, singular, short, namespaced } = self.names();
        let mut version = json!({
            "name": "v1",
            "served": true,
            "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        });
        if self != Self::SecurityContextConstraints {
            version["subresources"] = json!({"status": {}});
        }
        if self == Self::Build {
            version["additionalPrinterColumns"] = json!([
                {"name": "Status", "type": "string", "jsonPath": ".status.phase"},
                {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
            ]);
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group,
                "scope": if namespaced { "Namespaced" } else { "Cluster" },
                "names": {
                    "plural": plural, "singular": singular, "kind": kind, "listKind": format!("{kind}List"),
                    "shortNames": short,
                },
                "versions": [version],
            },
        })
    }
}

/// Makes the objects that a cluster with `kinds` has from the start. Their definitions must be established.
///
/// # Errors
/// The API server refused one; with `NotFound` a definition is not established yet and a retry helps.
pub(crate) async fn install_objects(client: &Client, kinds: &[Kind]) -> Result<(), Error> {
    let has = |kind: Kind| kinds.contains(&kind);
    if has(Kind::SecurityContextConstraints) {
        apply(client, Kind::SecurityContextConstraints, None, &privileged()).await?;
    }
    if has(Kind::ClusterVersion) {
        apply(client, Kind::ClusterVersion, None, &cluster_version()).await?;
        ensure_namespace(client, "openshift-machine-config-operator").await?;
        ensure_os_image_url(client).await?;
    }
    if has(Kind::Proxy) {
        apply(client, Kind::Proxy, None, &json!({"metadata": {"name": "cluster"}, "spec": {}, "status": {}}))
            .await?;
    }
    if has(Kind::ImageStream) {
        ensure_namespace(client, "openshift").await?;
        apply(client, Kind::ImageStream, Some("openshift"), &driver_toolkit()).await?;
    }
    Ok(())
}

fn privileged() -> Value {
    json!({
        "metadata": {"name": "privileged"},
        "allowPrivilegedContainer": true, "allowHostNetwork": true, "allowHostPID": true, "allowHostIPC": true,
        "allowHostPorts": true, "allowHostDirVolumePlugin": true, "allowPrivilegeEscalation": true,
        "allowedCapabilities": ["*"], "volumes": ["*"], "seccompProfiles": ["*"],
        "runAsUser": {"type": "RunAsAny"}, "seLinuxContext": {"type": "RunAsAny"},
        "fsGroup": {"type": "RunAsAny"}, "supplementalGroups": {"type": "RunAsAny"},
        "readOnlyRootFilesystem": false, "users": [], "groups": ["system:cluster-admins", "system:nodes"],
    })
}

fn cluster_version() -> Value {
    json!({
        "metadata": {"name": "version"},
        "spec": {"channel": "stable-4.8"},
        "status": {
            "desired": {"version": CLUSTER_VERSION, "image": "registry.example/openshift/release:4.8.4"},
            "history": [{
                "state": "Completed", "version": CLUSTER_VERSION, "verified": true,
                "image": "registry.example/openshift/release:4.8.4",
                "startedTime": "2021-08-01T00:00:00Z", "completionTime": "2021-08-01T00:30:00Z",
            }],
        },
    })
}

fn driver_toolkit() -> Value {
    json!({
        "metadata": {"name": "driver-toolkit"},
        "spec": {"tags": [{"name": "latest", "from": {"kind": "DockerImage", "name": DRIVER_TOOLKIT}}]},
        "status": {
            "dockerImageRepository": format!("{INTERNAL_REGISTRY}openshift/driver-toolkit"),
            "tags": [{"tag": "latest", "items": [{
                "created": "2021-08-01T00:00:00Z", "generation": 1, "dockerImageReference": DRIVER_TOOLKIT,
                "image": "sha256:a6a33d2b5f0f9ae1b1f1b0b5d9f3f6e8d1c2b3a495867768594a3b2c1d0e0f10",
            }]}],
        },
    })
}

async fn ensure_namespace(client: &Client, name: &str) -> Result<(), Error> {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    Api::<Namespace>::all(client.clone()).patch(name, &how(), &Patch::Apply(object)).await.map(drop)
}

async fn ensure_os_image_url(client: &Client) -> Result<(), Error> {
    let (namespace, name) = ("openshift-machine-config-operator", "machine-config-osimageurl");
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"osImageURL": "registry.example/openshift/machine-os-content:4.8.4"},
    });
    let maps = Api::<ConfigMap>::namespaced(client.clone(), namespace);
    maps.patch(name, &how(), &Patch::Apply(object)).await.map(drop)
}

/// Applies an object and, where the kind keeps it apart, its status.
async fn apply(client: &Client, kind: Kind, namespace: Option<&str>, object: &Value) -> Result<(), Error> {
    let resource = kind.resource();
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let mut object = object.clone();
    object["apiVersion"] = json!(resource.api_version);
    object["kind"] = json!(resource.kind);
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    api.patch(&name, &how(), &Patch::Apply(&object)).await?;
    if object.get("status").is_some() && kind != Kind::SecurityContextConstraints {
        api.patch_status(&name, &how(), &Patch::Apply(&object)).await?;
    }
    Ok(())
}

fn how() -> PatchParams {
    PatchParams::apply("pintle-dev").force()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_named_after_its_plural_and_group_and_keeps_unknown_fields() {
        for kind in Kind::ALL {
            let (definition, resource) = (kind.definition(), kind.resource());
            assert_eq!(definition["metadata"]["name"], format!("{}.{}", resource.plural, resource.group));
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            assert_eq!(schema["x-kubernetes-preserve-unknown-fields"], true);
        }
    }
}
