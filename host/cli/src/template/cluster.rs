//! `--dry-run=server`: what a cluster serves and holds, and whether it would take the objects.

use std::{collections::BTreeSet, path::Path};

use kube::{
    Api, Client, Config, Discovery,
    api::{ApiResource, DynamicObject, Patch, PatchParams, ValidationDirective},
    config::{KubeConfigOptions, Kubeconfig},
    core::{GroupVersionKind, Status},
    discovery::Scope,
};
use pintle_api::Object;
use pintle_chart::{Capabilities, Release, Rendered, capabilities::KubeVersion, go_value};
use pintle_template::{Lookup, LookupError, value::Value};
use serde_json::json;
use tokio::runtime::Runtime;

use super::failure::Failure;

const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "Helm");
const RELEASE_NAME: &str = "meta.helm.sh/release-name";
const RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";

const UNREACHABLE: &str = "cluster reachability check failed";

/// A cluster that is only read.
pub(super) struct Cluster {
    runtime: Runtime,
    client: Client,
    served: Discovery,
}

impl Cluster {
    /// Connects and asks what is served.
    pub(super) fn connect(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Self, Failure> {
        let failed = |error: &(dyn std::error::Error + 'static)| Failure::of(error).within(UNREACHABLE);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| failed(&error))?;
        let (client, served) = runtime.block_on(async {
            let config =
                config(kubeconfig, context).await.map_err(|text| Failure::new(text).within(UNREACHABLE))?;
            let client = Client::try_from(config).map_err(|error| failed(&error))?;
            let served = Discovery::new(client.clone()).run().await.map_err(|error| failed(&error))?;
            Ok::<_, Failure>((client, served))
        })?;
        Ok(Self { runtime, client, served })
    }

    /// Version and kinds of the cluster.
    pub(super) fn capabilities(&self) -> Result<Capabilities, Failure> {
        let version = self.runtime.block_on(self.client.apiserver_version());
        let version = version.map_err(|error| Failure::of(&error))?.git_version;
        let kube_version = KubeVersion::parse(&version).map_err(|error| Failure::of(&error))?;
        let mut api_versions = BTreeSet::new();
        for group in self.served.groups() {
            for version in group.versions() {
                for (resource, _) in group.versioned_resources(version) {
                    api_versions.insert(format!("{}/{}", resource.api_version, resource.kind));
                    api_versions.insert(resource.api_version);
                }
            }
        }
        Ok(Capabilities { kube_version, api_versions: api_versions.into_iter().collect() })
    }

    /// Whether the cluster would take the objects: it serves their kinds, finds nothing wrong in them, and
    /// has no others of their names.
    pub(super) fn check(&self, rendered: &Rendered, release: &Release) -> Result<(), Failure> {
        self.runtime.block_on(async {
            for document in &rendered.documents {
                self.check_object(&document.object, release).await?;
            }
            Ok(())
        })
    }

    async fn check_object(&self, object: &Object, release: &Release) -> Result<(), Failure> {
        let gvk = object.gvk();
        let Some(api) = self.api(&gvk.api_version(), &gvk.kind, object.namespace(), &release.namespace)
        else {
            return Err(Failure::new(format!(
                "unable to build kubernetes objects from release manifest: resource mapping not found for name: \
                 \"{}\" namespace: \"{}\" from \"\": no matches for kind \"{}\" in version \"{}\"\nensure CRDs are \
                 installed first",
                object.name(),
                object.namespace().unwrap_or_default(),
                gvk.kind,
                gvk.api_version(),
            )));
        };
        if object.name().is_empty() {
            return Ok(());
        }
        let found = api.get_opt(object.name()).await.map_err(|error| Failure::of(&error))?;
        if let Some(found) = found.filter(|_| !release.is_upgrade) {
            check_owner(&found, object, release)?;
        }
        let params = PatchParams {
            dry_run: true,
            force: true,
            field_manager: Some("pintle-template".to_owned()),
            field_validation: Some(ValidationDirective::Strict),
        };
        match api.patch(object.name(), &params, &Patch::Apply(object.to_value())).await {
            // Rights and the namespace may come with the release; a fault of the object does not go.
            Err(kube::Error::Api(said)) if is_fault(&said) => Err(Failure::new(format!(
                "unable to build kubernetes objects from release manifest: {}",
                said.message
            ))),
            _ => Ok(()),
        }
    }

    /// Where objects of a kind are; nothing for kinds that are not served.
    fn api(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        usual: &str,
    ) -> Option<Api<DynamicObject>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let (resource, capabilities) =
            self.served.resolve_gvk(&GroupVersionKind::gvk(group, version, kind))?;
        Some(match capabilities.scope {
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
            Scope::Namespaced => {
                Api::namespaced_with(self.client.clone(), namespace.unwrap_or(usual), &resource)
            }
        })
    }

    async fn look(
        &self,
        resource: &ApiResource,
        scope: &Scope,
        namespace: &str,
        name: &str,
    ) -> Result<serde_json::Value, kube::Error> {
        let all = namespace.is_empty() || matches!(scope, Scope::Cluster);
        let api: Api<DynamicObject> = match all {
            true => Api::all_with(self.client.clone(), resource),
            false => Api::namespaced_with(self.client.clone(), namespace, resource),
        };
        if name.is_empty() {
            let found = api.list(&Default::default()).await?;
            return Ok(json!({"apiVersion": resource.api_version, "kind": format!("{}List", resource.kind),
                "metadata": found.metadata, "items": found.items}));
        }
        let found = api.get_opt(name).await?;
        Ok(found.map_or_else(|| json!({}), |object| json!(object)))
    }
}

impl Lookup for Cluster {
    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Value, LookupError> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let Some((resource, capabilities)) = self.served.resolve_gvk(&gvk) else {
            return Err(LookupError::Failed(format!(
                "unable to get apiresource from unstructured: {api_version}, Kind={kind}: the server could not find \
                 the requested resource"
            )));
        };
        match self.runtime.block_on(self.look(&resource, &capabilities.scope, namespace, name)) {
            Ok(found) => Ok(go_value(&found)),
            Err(kube::Error::Api(said)) if said.code == 404 => Ok(go_value(&json!({}))),
            Err(error) => Err(LookupError::Failed(error.to_string())),
        }
    }
}

async fn config(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Config, String> {
    if kubeconfig.is_none() && context.is_none() {
        return Config::infer().await.map_err(|error| error.to_string());
    }
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let file = match kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let file = file.map_err(|error| error.to_string())?;
    Config::from_custom_kubeconfig(file, &options).await.map_err(|error| error.to_string())
}

fn is_fault(said: &Status) -> bool {
    matches!(said.code, 400 | 422)
}

/// An object that is there already must be of this release, as Helm marks them.
fn check_owner(found: &DynamicObject, object: &Object, release: &Release) -> Result<(), Failure> {
    let labels = found.metadata.labels.as_ref();
    let annotations = found.metadata.annotations.as_ref();
    let named = [
        ("label", MANAGED_BY.0, MANAGED_BY.1, labels),
        ("annotation", RELEASE_NAME, release.name.as_str(), annotations),
        ("annotation", RELEASE_NAMESPACE, release.namespace.as_str(), annotations),
    ];
    let faults =
        named.iter().filter_map(|(what, key, wanted, there)| match there.and_then(|there| there.get(*key)) {
            None => {
                Some(format!("{what} validation error: missing key \"{key}\": must be set to \"{wanted}\""))
            }
            Some(value) if value != wanted => Some(format!(
                "{what} validation error: key \"{key}\" must equal \"{wanted}\": current value is \"{value}\""
            )),
            Some(_) => None,
        });
    let faults: Vec<String> = faults.collect();
    if faults.is_empty() {
        return Ok(());
    }
    let (kind, name) = (object.kind(), object.name());
    let namespace = found.metadata.namespace.as_deref().unwrap_or_default();
    Err(Failure::new(format!(
        "unable to continue with install: {kind} \"{name}\" in namespace \"{namespace}\" exists and cannot be \
         imported into the current release: invalid ownership metadata; {}",
        faults.join("; ")
    )))
}
