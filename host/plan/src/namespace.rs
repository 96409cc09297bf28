//! What becomes of a namespace that was made for a release, once the release is gone.

use std::collections::BTreeSet;

use pintle_api::{Blocker, Gvk, Object, ObjectRef, names};
use serde_json::Value;

use crate::Release;

/// Objects that a sentence names.
const NAMED: usize = 3;
/// Kinds whose objects come and go by themselves, by group.
const PASSING: [(&str, &str); 5] = [
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("", "Endpoints"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("coordination.k8s.io", "Lease"),
];
/// Accounts that a cluster, or OpenShift, puts into each namespace.
const ACCOUNTS: [&str; 3] = ["default", "builder", "deployer"];
/// ConfigMaps that a cluster, OpenShift or Istio puts into each namespace.
const CONFIG_MAPS: [&str; 3] = ["kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert"];
/// RoleBindings that OpenShift puts into each namespace.
const ROLE_BINDINGS: [&str; 3] = ["system:image-pullers", "system:image-builders", "system:deployers"];
/// Annotation on the Secrets of an account.
const OF_ACCOUNT: &str = "kubernetes.io/service-account.name";

/// What becomes of such a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing of anybody's is in it.
    Delete,
    /// The owner waits until these are gone.
    Wait(Box<Blocker>, Vec<ObjectRef>),
    /// It stays, and why.
    Stay(String),
}

/// True for a namespace that was made for this very release, and is there for good.
#[must_use]
pub fn is_made_for(namespace: &Object, release: &Release) -> bool {
    namespace.annotation(names::CREATED_BY) == Some(&release.owner_uid) && !namespace.is_terminating()
}

/// Whether objects of a kind are anybody's.
#[must_use]
pub fn counts(kind: &Gvk) -> bool {
    !PASSING.contains(&(kind.group.as_str(), kind.kind.as_str()))
}

/// What becomes of a namespace that was made for a release, by what is in it; `unread` says why that is not
/// all.
#[must_use]
pub fn fate_of(release: &Release, inside: &[Object], unread: Option<&str>) -> Fate {
    let stays = format!("namespace {} was made for this release and stays", release.namespace);
    let uids: BTreeSet<&str> = inside.iter().filter_map(Object::uid).collect();
    let mut foreign = Vec::new();
    for object in inside.iter().filter(|object| is_anybodys(object, release, &uids)) {
        if is_of_another(object, release) {
            return Fate::Stay(format!("{stays}: {} is of another release", object.reference()));
        }
        if is_ours(object, release) {
            return Fate::Stay(format!("{stays}: {} is to be kept", object.reference()));
        }
        foreign.push(object.reference());
    }
    if let Some(unread) = unread {
        return Fate::Stay(format!("{stays}: it cannot be seen whether it is empty: {unread}"));
    }
    if foreign.is_empty() {
        return Fate::Delete;
    }
    foreign.sort();
    let holds = list(&foreign);
    if release.is_forced_out {
        return Fate::Stay(format!("{stays}, as {} asks: it holds {holds}", names::FORCE_DELETE));
    }
    let message = format!(
        "it was made for this release and holds {holds}, which the release did not make: delete them, or annotate \
         the owner {}: \"true\" to leave the namespace",
        names::FORCE_DELETE
    );
    let namespace = ObjectRef::new("v1", "Namespace", &release.namespace);
    Fate::Wait(Box::new(Blocker::new("NamespaceNotEmpty", message).on(namespace)), foreign)
}

/// False for what goes by itself: with its owner, with the release, or with any namespace.
fn is_anybodys(object: &Object, release: &Release, uids: &BTreeSet<&str>) -> bool {
    let goes_with = |reference: &Value| {
        let uid = reference.get("uid").and_then(Value::as_str).unwrap_or_default();
        uid == release.owner_uid || uids.contains(uid)
    };
    let owners = object.at("/metadata/ownerReferences").and_then(Value::as_array);
    let is_dependent = owners.into_iter().flatten().any(goes_with);
    let is_left_over = is_ours(object, release) && !is_kept(object);
    counts(&object.gvk()) && !object.is_terminating() && !is_dependent && !is_left_over && !is_usual(object)
}

fn is_kept(object: &Object) -> bool {
    object.annotation(names::HELM_RESOURCE_POLICY) == Some("keep")
}

fn is_ours(object: &Object, release: &Release) -> bool {
    object.label(names::OWNER) == Some(&release.owner_uid)
        || object.annotation(names::OWNED_BY) == Some(&release.owner.to_string())
}

fn is_of_another(object: &Object, release: &Release) -> bool {
    let is_marked = object.label(names::OWNER).is_some() || object.annotation(names::OWNED_BY).is_some();
    is_marked && !is_ours(object, release)
}

/// What a cluster puts into each namespace.
fn is_usual(object: &Object) -> bool {
    match object.kind() {
        "ServiceAccount" => ACCOUNTS.contains(&object.name()),
        "ConfigMap" => CONFIG_MAPS.contains(&object.name()),
        "RoleBinding" => ROLE_BINDINGS.contains(&object.name()),
        "Secret" => object.annotation(OF_ACCOUNT).is_some_and(|account| ACCOUNTS.contains(&account)),
        _ => false,
    }
}

fn list(objects: &[ObjectRef]) -> String {
    let named: Vec<String> = objects.iter().take(NAMED).map(ToString::to_string).collect();
    match objects.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]
    use pintle_api::watch::Adopt;
    use serde_json::json;

    use super::*;
    use crate::Flavor;

    fn release(is_forced_out: bool) -> Release {
        Release {
            name: "r".into(),
            namespace: "ns".into(),
            owner: ObjectRef::new("v1", "X", "x"),
            owner_uid: "u".into(),
            chart_digest: String::new(),
            flavor: Flavor::Watch,
            adopt: Adopt::IfUnowned,
            gates_all: false,
            leaves_drift: false,
            policy: Default::default(),
            is_forced_out,
            timeout: None,
        }
    }

    fn object(kind: &str, name: &str, metadata: Value) -> Object {
        let mut all = json!({"name": name, "namespace": "ns", "uid": format!("uid-{name}")});
        all.as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
        let version = if kind == "RoleBinding" { "rbac.authorization.k8s.io/v1" } else { "v1" };
        Object::new(json!({"apiVersion": version, "kind": kind, "metadata": all})).unwrap()
    }

    /// What goes with any namespace, or with the release.
    fn of_nobody() -> Vec<Object> {
        let owned = |uid: &str| json!({"ownerReferences": [{"uid": uid}]});
        vec![
            object("ServiceAccount", "default", json!({})),
            object("ConfigMap", "kube-root-ca.crt", json!({})),
            object("Secret", "builder-dockercfg-x", json!({"annotations": {OF_ACCOUNT: "builder"}})),
            object("RoleBinding", "system:image-pullers", json!({})),
            object("Event", "any", json!({})),
            object("Secret", "pintle.r", json!({"labels": {names::OWNER: "u"}})),
            object("ConfigMap", "by-owner", owned("u")),
            object("Pod", "by-default-account", owned("uid-default")),
            object("Pod", "going", json!({"deletionTimestamp": "2026-01-01T00:00:00Z"})),
        ]
    }

    #[test]
    fn a_namespace_goes_only_when_nothing_of_anybodys_is_in_it() {
        assert_eq!(fate_of(&release(false), &of_nobody(), None), Fate::Delete);
        for (more, said) in [
            (
                object("Secret", "a", json!({"labels": {names::OWNER: "other"}})),
                "Secret ns/a is of another release",
            ),
            (
                object("Secret", "a", json!({"annotations": {names::OWNED_BY: "X other"}})),
                "Secret ns/a is of another release",
            ),
            (
                object(
                    "ConfigMap",
                    "a",
                    json!({"labels": {names::OWNER: "u"},
                    "annotations": {names::HELM_RESOURCE_POLICY: "keep"}}),
                ),
                "ConfigMap ns/a is to be kept",
            ),
        ] {
            let inside: Vec<_> = of_nobody().into_iter().chain([more]).collect();
            let Fate::Stay(why) = fate_of(&release(false), &inside, None) else { panic!("{said}") };
            assert!(why.contains(said), "{why}");
        }
        let Fate::Stay(why) = fate_of(&release(false), &of_nobody(), Some("no rule to list pods")) else {
            panic!("what nobody looked at is not empty")
        };
        assert!(why.ends_with("whether it is empty: no rule to list pods"), "{why}");
    }

    #[test]
    fn what_the_release_did_not_make_is_waited_for_by_name_or_left_by_force() {
        let more = ["a", "b", "c", "d"].map(|name| object("ConfigMap", name, json!({})));
        let inside: Vec<_> = of_nobody().into_iter().chain(more).collect();
        let Fate::Wait(blocker, foreign) = fate_of(&release(false), &inside, None) else {
            panic!("it waits")
        };
        assert_eq!((blocker.reason.as_str(), foreign.len()), ("NamespaceNotEmpty", 4));
        assert!(blocker.message.contains("ConfigMap ns/a, ConfigMap ns/b, ConfigMap ns/c and 1 more"));
        let Fate::Stay(why) = fate_of(&release(true), &inside, None) else { panic!("it is left") };
        assert!(why.contains("as pintle.dev/force-delete asks: it holds ConfigMap ns/a"), "{why}");
        // An object of an owner elsewhere is somebody's.
        let elsewhere = [object("ConfigMap", "a", json!({"ownerReferences": [{"uid": "far"}]}))];
        assert!(matches!(fate_of(&release(false), &elsewhere, None), Fate::Wait(..)));
    }

    #[test]
    fn only_a_namespace_made_for_this_owner_is_looked_at() {
        let namespace = |metadata: Value| {
            let mut all = metadata;
            all["name"] = json!("ns");
            Object::new(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": all})).unwrap()
        };
        let made = json!({"annotations": {names::CREATED_BY: "u"}});
        assert!(is_made_for(&namespace(made.clone()), &release(false)));
        let mut going = made;
        going["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(!is_made_for(&namespace(going), &release(false)));
        assert!(!is_made_for(
            &namespace(json!({"annotations": {names::CREATED_BY: "other"}})),
            &release(false)
        ));
        assert!(!is_made_for(&namespace(json!({})), &release(false)), "its user made it");
    }
}
