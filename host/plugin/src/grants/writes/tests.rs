#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
use std::sync::Arc;

use pintle_api::plugin::Grants;
use serde_json::json;

use super::*;
use crate::grants::{GrantError, Granted};

fn grants(json: Value) -> Grants {
    serde_json::from_value(json).unwrap()
}

fn granted(json: Value) -> Result<Granted, GrantError> {
    Granted::new(&grants(json))
}

fn scope(grants: Value) -> Scope {
    let granted = Arc::new(granted(grants).unwrap());
    Scope { plugin: "p".into(), granted, namespace: "n".into(), own: Arc::default() }
}

fn object(json: Value) -> Object {
    Object::new(json).unwrap()
}

fn map(namespace: Option<&str>, name: &str) -> Object {
    object(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}),
    )
}

fn node(metadata: Value) -> Object {
    object(json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata}))
}

#[track_caller]
fn denied<T: std::fmt::Debug>(checked: Result<T, Denial>, expected: &str) {
    let Denial(why) = checked.unwrap_err();
    assert!(why.contains(expected), "expected {expected:?} in {why:?}");
}

#[test]
fn an_object_needs_a_grant_for_its_kind_namespace_and_name() {
    let maps = scope(json!({"objects": [{"apiGroups": [""], "kinds": ["ConfigMap"],
        "namespaces": ["$release"], "names": ["a"], "as": "operator"}]}));
    assert_eq!(maps.check_object(&map(None, "a")), Ok(Identity::Operator));
    assert_eq!(maps.check_object(&map(Some("n"), "a")), Ok(Identity::Operator));
    let line =
        "spec.grants.objects of Plugin p would: - {apiGroups: [\"\"], kinds: [ConfigMap], namespaces: ";
    denied(maps.check_object(&map(Some("kube-system"), "a")), &format!("{line}[kube-system]}}"));
    denied(maps.check_object(&map(None, "b")), &format!("{line}[$release]}}"));
    let other = object(json!({"apiVersion": "apps/v1", "kind": "ConfigMap", "metadata": {"name": "a"}}));
    denied(maps.check_object(&other), "apiGroups: [\"apps\"]");
}

#[test]
fn kinds_of_ours_are_never_given() {
    let grant = json!({"objects": [{"apiGroups": ["pintle.dev"], "kinds": ["Plugin"]}]});
    assert_eq!(granted(grant).unwrap_err(), GrantError::Reserved { list: "objects", at: 0 });
    let nothing = scope(json!({}));
    let ours = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "x"}});
    let ours = object(ours);
    denied(nothing.check_object(&ours), "decides about rights");
    denied(nothing.check_part(&ours), "decides about rights");
    denied(nothing.check_edit(&ours, &ours), "decides about rights");
}

#[test]
fn a_rendered_object_may_change_but_not_become_another_or_give_rights() {
    let nothing = scope(json!({}));
    assert_eq!(nothing.check_edit(&map(None, "a"), &map(Some("n"), "a")), Ok(()));
    denied(nothing.check_edit(&map(None, "a"), &map(None, "b")), "spec.grants.objects");
    denied(nothing.check_edit(&map(None, "a"), &map(Some("other"), "a")), "spec.grants.objects");
    let role = |rules: Value| {
        object(
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a"},
            "rules": rules}),
        )
    };
    assert_eq!(nothing.check_edit(&role(json!([])), &role(json!([]))), Ok(()));
    denied(nothing.check_edit(&role(json!([])), &role(json!([{"verbs": ["*"]}]))), "kinds: [Role]");
    let roles = scope(json!({"objects": [{"apiGroups": ["rbac.authorization.k8s.io"], "kinds": ["Role"]}]}));
    assert_eq!(roles.check_edit(&role(json!([])), &role(json!([{"verbs": ["*"]}]))), Ok(()));
}

#[test]
fn a_part_sets_only_the_fields_that_are_granted() {
    let labels = scope(json!({"parts": [{"apiGroups": [""], "kinds": ["Node"],
        "fields": ["metadata.labels.vendor\\.example/ready"]}]}));
    let ready = node(json!({"name": "a", "labels": {"vendor.example/ready": "yes"}}));
    assert_eq!(labels.check_part(&ready), Ok(Identity::Owner));
    let other = node(json!({"name": "a", "labels": {"node-role.kubernetes.io/control-plane": ""}}));
    denied(labels.check_part(&other), "fields: [metadata.labels.node-role\\.kubernetes\\.io/control-plane]}");
    let mut cordoned = node(json!({"name": "a"}));
    cordoned.set("spec", json!({"unschedulable": true}));
    denied(labels.check_part(&cordoned), "fields: [spec.unschedulable]");
    let none = scope(json!({}));
    denied(
        none.check_part(&ready),
        "spec.grants.parts of Plugin p would: - {apiGroups: [\"\"], kinds: [Node]",
    );
}

#[test]
fn an_action_needs_its_verb_on_its_kind() {
    let evicts = scope(json!({"actions": [{"verbs": ["evict"], "apiGroups": [""], "kinds": ["Pod"],
        "namespaces": ["$release"]}]}));
    let pod = ObjectRef::new("v1", "Pod", "p").within("n");
    assert_eq!(evicts.check_action((ActionVerb::Evict, "evict"), &pod), Ok(Identity::Owner));
    denied(
        evicts.check_action((ActionVerb::Delete, "delete"), &pod),
        "- {apiGroups: [\"\"], kinds: [Pod], namespaces: [$release], verbs: [delete]}",
    );
    denied(evicts.check_action((ActionVerb::Evict, "evict"), &pod.within("other")), "namespaces: [other]");
    denied(evicts.check_action((ActionVerb::Cordon, "cordon"), &ObjectRef::new("v1", "Node", "a")), "[Node]");
}

#[test]
fn a_grant_of_nothing_is_refused_by_its_field() {
    let odd = [
        (
            json!({"parts": [{"apiGroups": [""], "kinds": ["Node"], "fields": []}]}),
            "parts[0].fields is empty",
        ),
        (
            json!({"actions": [{"verbs": [], "apiGroups": [""], "kinds": ["Pod"]}]}),
            "actions[0].verbs is empty",
        ),
        (json!({"secretValues": [{"names": []}]}), "secretValues[0].names is empty"),
        (json!({"secretValues": [{"names": ["a*"]}]}), "secretValues[0].names has a wildcard"),
        (json!({"objects": [{"apiGroups": ["*"], "kinds": ["Pod"]}]}), "objects[0].apiGroups has a wildcard"),
        (json!({"images": ["*/x"]}), "images[0] is no reference"),
    ];
    for (grants, expected) in odd {
        let error = granted(grants).unwrap_err().to_string();
        assert!(error.starts_with(&format!("spec.grants.{expected}")), "{error}");
    }
}
