//! Objects of a test, read by kind and name.

use anyhow::Context as _;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::Value;

use crate::Stage;

/// Kinds that tests look at: kind, API version, plural, whether they live in namespaces.
const KINDS: [(&str, &str, &str, bool); 21] = [
    ("Namespace", "v1", "namespaces", false),
    ("Node", "v1", "nodes", false),
    ("CustomResourceDefinition", "apiextensions.k8s.io/v1", "customresourcedefinitions", false),
    ("SpecialResource", "sro.openshift.io/v1beta1", "specialresources", false),
    ("SpecialResourceModule", "sro.openshift.io/v1beta1", "specialresourcemodules", false),
    ("Plugin", "pintle.dev/v1alpha1", "plugins", false),
    ("Watch", "pintle.dev/v1alpha1", "watches", false),
    ("Ptemplate", "pt.example.com/v1alpha1", "ptemplates", true),
    ("Module", "kmm.sigs.x-k8s.io/v1beta1", "modules", true),
    ("ImageStream", "image.openshift.io/v1", "imagestreams", true),
    ("BuildConfig", "build.openshift.io/v1", "buildconfigs", true),
    ("Build", "build.openshift.io/v1", "builds", true),
    ("ConfigMap", "v1", "configmaps", true),
    ("Secret", "v1", "secrets", true),
    ("ServiceAccount", "v1", "serviceaccounts", true),
    ("Pod", "v1", "pods", true),
    ("Role", "rbac.authorization.k8s.io/v1", "roles", true),
    ("RoleBinding", "rbac.authorization.k8s.io/v1", "rolebindings", true),
    ("DaemonSet", "apps/v1", "daemonsets", true),
    ("Event", "events.k8s.io/v1", "events", true),
    ("Lease", "coordination.k8s.io/v1", "leases", true),
];

// === impl Stage ===

impl Stage {
    /// Access to a kind, in the test's namespace where it has one.
    ///
    /// # Panics
    /// When the kind is not in the table above.
    #[must_use]
    pub fn of_kind(&self, kind: &str) -> Api<DynamicObject> {
        self.of_kind_in(kind, &self.name)
    }

    /// Access to a kind, in a namespace where it has one.
    ///
    /// # Panics
    /// When the kind is not in the table above.
    #[must_use]
    #[allow(clippy::panic, reason = "a test that names an unknown kind is wrong itself")]
    pub fn of_kind_in(&self, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let Some((_, api_version, plural, is_namespaced)) = KINDS.iter().find(|(known, ..)| *known == kind)
        else {
            panic!("{kind} is not in the table of tests/src/objects.rs")
        };
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        if *is_namespaced {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        } else {
            Api::all_with(self.client.clone(), &resource)
        }
    }

    /// An object as it is in the cluster; nothing when it is not there.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn find(&self, kind: &str, name: &str) -> anyhow::Result<Option<Value>> {
        let found = self.of_kind(kind).get_opt(name).await?;
        Ok(found.map(serde_json::to_value).transpose()?)
    }

    /// An object as it is in the cluster.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn read(&self, kind: &str, name: &str) -> anyhow::Result<Value> {
        self.find(kind, name).await?.with_context(|| format!("there is no {kind} {name}"))
    }

    /// Every object of a kind, in the test's namespace where the kind has one.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn list(&self, kind: &str) -> anyhow::Result<Vec<Value>> {
        let list = self.of_kind(kind).list(&ListParams::default()).await?;
        let values = list.items.into_iter().map(|object| Ok(serde_json::to_value(object)?));
        values.collect()
    }

    /// Names of every object of a kind, sorted.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn names(&self, kind: &str) -> anyhow::Result<Vec<String>> {
        let list = self.of_kind(kind).list_metadata(&ListParams::default()).await?;
        let mut names: Vec<_> = list.items.into_iter().filter_map(|object| object.metadata.name).collect();
        names.sort();
        Ok(names)
    }

    /// Changes fields of an object as somebody other than the operator.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn edit(&self, kind: &str, name: &str, patch: Value) -> anyhow::Result<()> {
        let params = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
        self.of_kind(kind).patch(name, &params, &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Deletes an object; one that is not there is deleted.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn delete(&self, kind: &str, name: &str) -> anyhow::Result<()> {
        match self.of_kind(kind).delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }

    /// Waits until something holds of what is read again and again; for what has no status to watch.
    ///
    /// # Errors
    /// After [`crate::stage::PATIENCE`].
    pub async fn eventually(
        &self,
        what: &str,
        mut holds: impl AsyncFnMut(&Self) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let wait = async {
            while !holds(self).await? {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            anyhow::Ok(())
        };
        let waited = tokio::time::timeout(crate::stage::PATIENCE, wait).await;
        waited.with_context(|| format!("{}: not yet: {what}", self.name))?
    }
}
