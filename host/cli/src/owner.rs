//! `KIND/NAME` on the command line, and the object it names.

use std::str::FromStr;

use anyhow::{Context as _, bail};
use kube::{
    Api, Client,
    core::{ApiResource, DynamicObject, GroupVersionKind},
    discovery::{Discovery, Scope},
};
use serde_json::Value;

/// What a user names: `sr/simple-kmod`, `memcached.cache.my.domain/sample`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnerName {
    kind: String,
    name: String,
}

// === impl OwnerName ===

impl FromStr for OwnerName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() => {
                Ok(Self { kind: kind.to_lowercase(), name: name.to_owned() })
            }
            _ => Err("write KIND/NAME, as sr/simple-kmod".to_owned()),
        }
    }
}

impl OwnerName {
    /// The object from the cluster, with its status.
    pub(crate) async fn get(&self, client: &Client, namespace: Option<&str>) -> anyhow::Result<Value> {
        let (resource, scope) = self.resource(client).await?;
        if let (Scope::Cluster, Some(namespace)) = (&scope, namespace) {
            eprintln!("note: {} has no namespace; -n {namespace} is left out", resource.kind);
        }
        let api: Api<DynamicObject> = match (&scope, namespace) {
            (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
            (Scope::Namespaced, Some(namespace)) => {
                Api::namespaced_with(client.clone(), namespace, &resource)
            }
            (Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), &resource),
        };
        let place = namespace
            .filter(|_| scope == Scope::Namespaced)
            .map(|namespace| format!(" in namespace {namespace}"))
            .unwrap_or_default();
        let object = match api.get_opt(&self.name).await {
            Ok(Some(object)) => object,
            Ok(None) => bail!(
                "{} {} does not exist{place}; `kubectl get {} -A` lists those there are",
                resource.kind,
                self.name,
                resource.plural
            ),
            // What the server said, without the rest of its answer.
            Err(kube::Error::Api(said)) => {
                bail!("could not read {} {}{place}: {}", resource.kind, self.name, said.message)
            }
            Err(err) => {
                return Err(err)
                    .with_context(|| format!("could not read {} {}{place}", resource.kind, self.name));
            }
        };
        serde_json::to_value(object).context("could not read the answer of the API server")
    }

    async fn resource(&self, client: &Client) -> anyhow::Result<(ApiResource, Scope)> {
        if matches!(self.kind.as_str(), "sr" | "specialresource" | "specialresources") {
            let resource = ApiResource::erase::<pintle_api::SpecialResource>(&());
            return Ok((resource, Scope::Cluster));
        }
        let served =
            Discovery::new(client.clone()).run().await.context("could not ask which kinds are served")?;
        for group in served.groups() {
            for (resource, capabilities) in group.recommended_resources() {
                if self.names(&resource) {
                    return Ok((resource, capabilities.scope));
                }
            }
        }
        if let Some(found) = self.by_short_name(client).await {
            return Ok(found);
        }
        bail!("the cluster serves no kind called `{}`; see `kubectl api-resources`", self.kind)
    }

    /// The kind with this short name, as `po`; the core API goes before others, as for kubectl.
    async fn by_short_name(&self, client: &Client) -> Option<(ApiResource, Scope)> {
        let core = client.list_core_api_versions_aggregated().await.ok()?;
        let more = client.list_api_groups_aggregated().await.ok()?;
        core.items.iter().chain(&more.items).find_map(|group| {
            let name = group.metadata.as_ref().and_then(|meta| meta.name.as_deref()).unwrap_or_default();
            // Versions are in the order that the server prefers.
            let version = group.versions.first()?;
            let found = version.resources.iter().find(|one| one.short_names.contains(&self.kind))?;
            let kind = found.response_kind.as_ref()?.kind.as_deref()?;
            let gvk = GroupVersionKind::gvk(name, version.version.as_deref()?, kind);
            let scope = match found.scope.as_deref() {
                Some("Cluster") => Scope::Cluster,
                _ => Scope::Namespaced,
            };
            Some((ApiResource::from_gvk_with_plural(&gvk, found.resource.as_deref()?), scope))
        })
    }

    /// True for the kind, its plural, and both with their group.
    fn names(&self, resource: &ApiResource) -> bool {
        let (kind, group) = self.kind.split_once('.').unwrap_or((&self.kind, ""));
        let fits = kind == resource.kind.to_lowercase() || kind == resource.plural;
        fits && (group.is_empty() || group == resource.group)
    }
}
