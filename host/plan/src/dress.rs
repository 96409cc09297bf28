//! What Pintle adds to a rendered object before it is applied.

use std::collections::BTreeMap;

use pintle_api::{Object, ObjectRef, names};
use serde_json::{Map, Value, json};

use crate::{Pool, fnv1a};

/// What made a release, and what that asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// A SpecialResource: objects look as SRO left them.
    SpecialResource {
        /// `spec.nodeSelector`.
        node_selector: BTreeMap<String, String>,
    },
    /// A Watch: objects look as Helm leaves them.
    Watch,
}

/// What the objects of one rendering have in common.
#[derive(Clone, Debug)]
pub struct Dress<'a> {
    /// Name of the release.
    pub release: &'a str,
    /// Namespace of the release.
    pub namespace: &'a str,
    /// The owner.
    pub owner: &'a ObjectRef,
    /// Its uid.
    pub owner_uid: &'a str,
    /// What made the release.
    pub flavor: &'a Flavor,
    /// Name of the state; empty for hooks, which belong to none.
    pub state: &'a str,
    /// The pool this rendering is for.
    pub pool: Option<&'a Pool>,
}

/// Why an object cannot be dressed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DressError {
    /// A kernel's name does not fit where it must stand.
    #[error(
        "{object}: the kernel `{kernel}` cannot be the value of a label (letters, digits, `-`, `_`, `.`, at \
         most 63); it cannot be made kernel-affine"
    )]
    Kernel {
        /// The object.
        object: String,
        /// The kernel.
        kernel: String,
    },
    /// The name with its suffix is too long.
    #[error(
        "{object}: its name with the suffix of its pool has {length} characters, 63 are allowed; shorten it"
    )]
    NameTooLong {
        /// The object.
        object: String,
        /// Length in characters.
        length: usize,
    },
}

/// Annotation of ours on applied objects: name of the state.
pub const IN_STATE: &str = "pintle.dev/in-state";

/// Workloads with a pod template.
const POD_TEMPLATES: [&str; 6] = ["DaemonSet", "Deployment", "StatefulSet", "ReplicaSet", "Job", "CronJob"];

/// Gives an object what its release asks for: namespace, marks of ownership, node selectors, and
/// per kernel a name of its own. `is_namespaced` is what the cluster says of the kind; kinds it does
/// not know yet count as namespaced.
///
/// # Errors
/// When a kernel or a name does not fit; the chart or the node must change.
pub fn dress(dress: &Dress<'_>, mut object: Object, is_namespaced: bool) -> Result<Object, DressError> {
    if is_namespaced && object.namespace().is_none() {
        object.map_mut(&["metadata"]).insert("namespace".to_owned(), Value::from(dress.namespace));
    } else if !is_namespaced {
        object.map_mut(&["metadata"]).remove("namespace");
    }
    if matches!(dress.flavor, Flavor::SpecialResource { .. }) {
        mark_as_sro(&mut object);
    }
    if let Some(pool) = dress.pool.filter(|_| is_per_pool(&object, dress.flavor)) {
        bind_to_pool(&mut object, pool)?;
    }
    if let Flavor::SpecialResource { node_selector } = dress.flavor {
        select_nodes(&mut object, node_selector);
    }
    crate::normal::normalize(&mut object);
    mark_ownership(dress, &mut object, is_namespaced);
    if matches!(dress.flavor, Flavor::SpecialResource { .. }) {
        let hash = fnv1a(crate::rendered_mark(&object).as_bytes());
        object.set_annotation(names::SRO_HASH, &hash.to_string());
    }
    Ok(object)
}

/// Gives an object that a plugin wants what its release asks for: namespace and marks of ownership. It
/// belongs to no state.
#[must_use]
pub fn dress_own(dress: &Dress<'_>, mut object: Object, is_namespaced: bool) -> Object {
    if is_namespaced && object.namespace().is_none() {
        object.map_mut(&["metadata"]).insert("namespace".to_owned(), Value::from(dress.namespace));
    } else if !is_namespaced {
        object.map_mut(&["metadata"]).remove("namespace");
    }
    crate::normal::normalize(&mut object);
    object.set_label(names::OWNER, dress.owner_uid);
    object.set_annotation(names::OWNED_BY, &dress.owner.to_string());
    set_owner_reference(dress, &mut object, is_namespaced);
    object
}

fn mark_as_sro(object: &mut Object) {
    object.set_label(names::SRO_OWNED, "true");
    if let Some(path) = template_of(object) {
        object
            .map_mut(&[&path[..], &["metadata", "labels"]].concat())
            .insert(names::SRO_OWNED.to_owned(), Value::from("true"));
    }
}

fn mark_ownership(dress: &Dress<'_>, object: &mut Object, is_namespaced: bool) {
    object.set_label(names::OWNER, dress.owner_uid);
    object.set_label(names::MANAGED_BY, "Helm");
    object.set_annotation(names::OWNED_BY, &dress.owner.to_string());
    if !dress.state.is_empty() {
        object.set_annotation(IN_STATE, dress.state);
    }
    object.set_annotation(names::HELM_RELEASE_NAME, dress.release);
    object.set_annotation(names::HELM_RELEASE_NAMESPACE, dress.namespace);
    set_owner_reference(dress, object, is_namespaced);
}

fn set_owner_reference(dress: &Dress<'_>, object: &mut Object, is_namespaced: bool) {
    if may_be_collected(dress, object, is_namespaced) {
        let owner = json!([{
            "apiVersion": dress.owner.api_version, "kind": dress.owner.kind, "name": dress.owner.name,
            "uid": dress.owner_uid, "controller": true, "blockOwnerDeletion": true
        }]);
        object.map_mut(&["metadata"]).insert("ownerReferences".to_owned(), owner);
    }
}

/// No owner reference across namespaces, from a namespaced owner to a cluster-scoped object, or on
/// what shall be kept: garbage collection would delete it wrongly (D8).
fn may_be_collected(dress: &Dress<'_>, object: &Object, is_namespaced: bool) -> bool {
    let is_kept = object.annotation(names::HELM_RESOURCE_POLICY) == Some("keep");
    let reaches = match &dress.owner.namespace {
        None => true,
        Some(namespace) => is_namespaced && object.namespace() == Some(namespace),
    };
    reaches && !is_kept && object.kind() != "Namespace"
}

/// True for objects of which there is one per kernel.
pub(crate) fn is_affine(object: &Object) -> bool {
    object.annotation(names::SRO_KERNEL_AFFINE) == Some("true")
}

/// True for objects that a release of this flavor has once per pool.
#[must_use]
pub fn is_per_pool(object: &Object, flavor: &Flavor) -> bool {
    let is_asked_for = object.annotation(names::PER_POOL) == Some("true");
    is_asked_for || (matches!(flavor, Flavor::SpecialResource { .. }) && is_affine(object))
}

fn bind_to_pool(object: &mut Object, pool: &Pool) -> Result<(), DressError> {
    let name = format!("{}-{}", object.name(), pool.key());
    if name.len() > 63 {
        return Err(DressError::NameTooLong { object: object.reference().to_string(), length: name.len() });
    }
    if pool.mapped.is_none() && !is_label_value(&pool.kernel) {
        let (object, kernel) = (object.reference().to_string(), pool.kernel.clone());
        return Err(DressError::Kernel { object, kernel });
    }
    object.map_mut(&["metadata"]).insert("name".to_owned(), Value::from(name.as_str()));
    match object.kind() {
        "DaemonSet" | "Deployment" | "StatefulSet" => rename_app(object, &name),
        "BuildRun" => {
            object.map_mut(&["spec", "buildRef"]).insert("name".to_owned(), Value::from(name.as_str()));
        }
        _ => {}
    }
    if let Some(selector) = selector_of(object) {
        match &pool.mapped {
            Some(mapped) => extend(selector, &mapped.node_selector),
            None => {
                selector.insert(names::NFD_KERNEL.to_owned(), Value::from(pool.kernel.as_str()));
            }
        }
    }
    Ok(())
}

fn rename_app(object: &mut Object, name: &str) {
    for path in [
        &["metadata", "labels"][..],
        &["spec", "selector", "matchLabels"],
        &["spec", "template", "metadata", "labels"],
    ] {
        object.map_mut(path).insert("app".to_owned(), Value::from(name));
    }
}

fn select_nodes(object: &mut Object, wanted: &BTreeMap<String, String>) {
    if wanted.is_empty() {
        return;
    }
    if let Some(selector) = selector_of(object) {
        extend(selector, wanted);
    }
}

fn extend(selector: &mut Map<String, Value>, wanted: &BTreeMap<String, String>) {
    selector.extend(wanted.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))));
}

/// The node selector of a workload, or of what builds or runs on nodes.
fn selector_of(object: &mut Object) -> Option<&mut Map<String, Value>> {
    if let Some(path) = template_of(object) {
        return Some(object.map_mut(&[&path[..], &["spec", "nodeSelector"]].concat()));
    }
    matches!(object.kind(), "Pod" | "BuildConfig").then(|| object.map_mut(&["spec", "nodeSelector"]))
}

/// Path of the pod template of a workload.
pub(crate) fn template_of(object: &Object) -> Option<Vec<&'static str>> {
    if !POD_TEMPLATES.contains(&object.kind()) {
        return None;
    }
    Some(match object.kind() {
        "CronJob" => vec!["spec", "jobTemplate", "spec", "template"],
        _ => vec!["spec", "template"],
    })
}

fn is_label_value(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= 63
        && edge(text.chars().next())
        && edge(text.chars().last())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::unwrap_in_result, reason = "tests stop at the first surprise")]
    use super::*;

    const KERNEL: &str = "4.18.0-305.10.2.el8_4.x86_64";

    fn check(object: Value, flavor: &Flavor, owner: &ObjectRef, kernel: &str) -> Result<Object, DressError> {
        let pool = Pool {
            kernel: kernel.into(),
            os_version: "8.4".into(),
            cluster_version: "4.8".into(),
            nodes: vec!["a".into()],
            mapped: None,
        };
        check_in(object, flavor, owner, &pool)
    }

    fn check_in(
        object: Value,
        flavor: &Flavor,
        owner: &ObjectRef,
        pool: &Pool,
    ) -> Result<Object, DressError> {
        let with = Dress {
            release: "simple-kmod",
            namespace: "simple-kmod",
            owner,
            owner_uid: "u",
            flavor,
            state: "1000-driver-container",
            pool: Some(pool),
        };
        dress(&with, Object::new(object).unwrap(), true)
    }

    fn special_resource() -> (Flavor, ObjectRef) {
        let flavor = Flavor::SpecialResource { node_selector: BTreeMap::new() };
        (flavor, ObjectRef::new("sro.openshift.io/v1beta1", "SpecialResource", "simple-kmod"))
    }

    #[test]
    fn a_driver_container_is_bound_to_its_kernel() {
        let (flavor, owner) = special_resource();
        let object = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "driver", "labels": {"app": "driver"},
                         "annotations": {names::SRO_KERNEL_AFFINE: "true"}},
            "spec": {"template": {"spec": {"nodeSelector": {names::NFD_KERNEL: ""}}}}
        });
        let dressed = check(object, &flavor, &owner, KERNEL).unwrap();
        assert_eq!(dressed.name(), "driver-12813789169ac0ee");
        assert_eq!(dressed.namespace(), Some("simple-kmod"));
        for pointer in ["/metadata/labels/app", "/spec/selector/matchLabels/app"] {
            assert_eq!(dressed.str_at(pointer), Some("driver-12813789169ac0ee"), "{pointer}");
        }
        let selector = dressed.at("/spec/template/spec/nodeSelector").unwrap();
        assert_eq!(selector.get(names::NFD_KERNEL), Some(&Value::from(KERNEL)));
        assert_eq!(dressed.str_at("/metadata/ownerReferences/0/uid"), Some("u"));
        assert_eq!(
            dressed.str_at("/spec/template/metadata/labels/specialresource.openshift.io~1owned"),
            Some("true")
        );
        assert!(dressed.annotation(names::SRO_HASH).is_some());
    }

    #[test]
    fn an_object_of_a_plugins_pool_has_the_key_and_the_labels_of_the_pool() {
        let (flavor, owner) = special_resource();
        let node_selector = BTreeMap::from([("os".to_owned(), "rhel".to_owned())]);
        let mapped = crate::MappedPool { key: "rhel9".into(), node_selector };
        let pool = Pool {
            // Several kernels: none is named, and none must be.
            kernel: String::new(),
            os_version: String::new(),
            cluster_version: String::new(),
            nodes: vec!["a".into()],
            mapped: Some(mapped),
        };
        let object = |annotation: &str| {
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
                "metadata": {"name": "driver", "annotations": {annotation: "true"}},
                "spec": {"template": {"spec": {"nodeSelector": {"gpu": "yes"}}}}})
        };
        for (flavor, annotation) in [
            (&flavor, names::SRO_KERNEL_AFFINE),
            (&flavor, names::PER_POOL),
            (&Flavor::Watch, names::PER_POOL),
        ] {
            let dressed = check_in(object(annotation), flavor, &owner, &pool).unwrap();
            assert_eq!(dressed.name(), "driver-rhel9");
            let selector = dressed.at("/spec/template/spec/nodeSelector").unwrap();
            assert_eq!(selector, &json!({"gpu": "yes", "os": "rhel"}));
        }
        let other = check_in(object(names::SRO_KERNEL_AFFINE), &Flavor::Watch, &owner, &pool).unwrap();
        assert_eq!(other.name(), "driver", "the annotation means nothing to charts of a Watch");
    }

    #[test]
    fn a_build_keeps_its_app_label_and_gets_the_selector() {
        let (flavor, owner) = special_resource();
        let object = json!({
            "apiVersion": "build.openshift.io/v1", "kind": "BuildConfig",
            "metadata": {"name": "build", "labels": {"app": "build"},
                         "annotations": {names::SRO_KERNEL_AFFINE: "true"}},
            "spec": {"nodeSelector": {"node-role.kubernetes.io/worker": ""}}
        });
        let dressed = check(object, &flavor, &owner, KERNEL).unwrap();
        assert_eq!(dressed.label("app"), Some("build"));
        assert_eq!(dressed.at("/spec/nodeSelector").unwrap().as_object().unwrap().len(), 2);
    }

    #[test]
    fn a_kernel_that_is_no_label_value_is_refused_by_name() {
        let (flavor, owner) = special_resource();
        let object = json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "driver", "annotations": {names::SRO_KERNEL_AFFINE: "true"}}});
        let refused = check(object, &flavor, &owner, "5.14.0+rt").unwrap_err().to_string();
        assert!(refused.contains("5.14.0+rt") && refused.contains("DaemonSet"), "{refused}");
    }

    #[test]
    fn a_namespaced_owner_owns_only_what_its_namespace_holds() {
        let owner = ObjectRef::new("cache.my.domain/v1", "Memcached", "m").within("elsewhere");
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let dressed = check(object, &Flavor::Watch, &owner, KERNEL).unwrap();
        assert!(dressed.at("/metadata/ownerReferences").is_none());
        assert_eq!(dressed.annotation(names::SRO_HASH), None);
    }
}
