//! Each way in which the server says no becomes its own cause.

use pintle_api::{Object, ObjectRef};
use pintle_cluster::{ApiError, Apply, Cause, Leadership, Patch, Retry};
use serde_json::{Value, json};

use crate::support::{NOBODY, World, connect_as, eventually, object};

fn deployment(namespace: &str, app: &str) -> Object {
    let container = json!({"name": "c", "image": "i"});
    let template = json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}});
    object(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": namespace},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": app}}, "template": template}
    }))
}

fn text(error: &ApiError) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    text
}

#[tokio::test]
async fn a_missing_right_names_account_verb_resource_and_namespace() {
    let world = World::new("no-right").await;
    let nobody = connect_as(NOBODY).await.writer(Leadership::always());
    let error = nobody.apply(&deployment("no-right", "a"), &Apply::default()).await.unwrap_err();
    let Cause::Forbidden { account, verb, resource, namespace, .. } = error.cause() else {
        panic!("{error}")
    };
    let said = (account.as_str(), verb.as_str(), resource.as_str(), namespace.as_deref());
    assert_eq!(said, (NOBODY, "patch", "deployments.apps", Some("no-right")));
    assert_eq!(
        error.to_string(),
        "could not patch Deployment no-right/d: nobody may not patch deployments.apps in namespace no-right; \
         add this rule to a role of that account"
    );
    let status =
        nobody.patch(&world.reference("a"), Some("status"), &Patch::Merge(json!({}))).await.unwrap_err();
    assert!(text(&status).contains("configmaps/status"), "{}", text(&status));
}

#[tokio::test]
async fn a_role_with_rights_that_we_lack_is_refused_and_names_them() {
    let world = World::new("escalation").await;
    let rules = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create", "get", "patch"]}]);
    grant(&world, "escalation", rules).await;
    let nobody = connect_as(NOBODY).await.writer(Leadership::always());
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "more", "namespace": "escalation"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]});
    let error = nobody.apply(&object(role), &Apply::default()).await.unwrap_err();
    let Cause::NotHeld { rights, resource, .. } = error.cause() else { panic!("{error:?}") };
    assert_eq!(resource, "roles.rbac.authorization.k8s.io");
    assert_eq!(rights, r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}"#);
}

async fn grant(world: &World, name: &str, rules: Value) {
    let metadata = json!({"name": name, "namespace": world.namespace});
    let api = "rbac.authorization.k8s.io";
    let role =
        json!({"apiVersion": format!("{api}/v1"), "kind": "Role", "metadata": metadata, "rules": rules});
    let binding = json!({"apiVersion": format!("{api}/v1"), "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": api, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": api, "kind": "User", "name": NOBODY}]});
    for manifest in [role, binding] {
        world.other.create(&object(manifest)).await.unwrap();
    }
}

#[tokio::test]
async fn a_quota_is_not_a_missing_right() {
    let world = World::new("quota").await;
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"configmaps": "0"}},
                       "metadata": {"name": "none", "namespace": "quota"}});
    world.other.create(&object(quota)).await.unwrap();
    let error = eventually("the quota", async || {
        let mut map = world.map("", json!({}));
        map.map_mut(&["metadata"]).insert("generateName".into(), json!("a-"));
        world.writer.create(&map).await.err()
    })
    .await;
    let Cause::Quota(message) = error.cause() else { panic!("{error:?}") };
    assert!(message.contains("exceeded quota: none"), "{message}");
    assert_eq!((error.label(), error.retry()), ("quota", Retry::Later));
}

#[tokio::test]
async fn namespaces_that_are_missing_or_going_are_named() {
    let world = World::new("going").await;
    let mut map = world.map("a", json!({}));
    map.map_mut(&["metadata"]).insert("namespace".into(), json!("no-such-namespace"));
    let error = world.writer.apply(&map, &Apply::default()).await.unwrap_err();
    assert!(
        matches!(error.cause(), Cause::NamespaceMissing(name) if name == "no-such-namespace"),
        "{error:?}"
    );
    // A finalizer on an object inside holds the namespace.
    let held = world.writer.create(&world.map("held", json!({}))).await.unwrap().object;
    let held = world.writer.add_finalizer(&held, "example.com/hold").await.unwrap().unwrap().object;
    let namespace = ObjectRef::new("v1", "Namespace", "going");
    world.other.delete(&namespace, &pintle_cluster::Delete::default()).await.unwrap();
    let error = world.writer.apply(&world.map("a", json!({})), &Apply::default()).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::NamespaceTerminating(name) if name == "going"), "{error:?}");
    eventually("the end of the finalizer", async || {
        let live = world.writer.patch(&held.reference(), None, &Patch::Merge(json!({}))).await.ok()?.object;
        world.writer.remove_finalizer(&live, "example.com/hold").await.ok()
    })
    .await;
}

#[tokio::test]
async fn an_unknown_kind_a_missing_object_and_a_taken_name_differ() {
    let world = World::new("absences").await;
    let alien = object(json!({"apiVersion": "alien.example/v1", "kind": "Alien",
                              "metadata": {"name": "a", "namespace": "absences"}}));
    let error = world.writer.apply(&alien, &Apply::default()).await.unwrap_err();
    assert!(
        matches!(error.cause(), Cause::KindUnknown(kind) if kind == "Alien (alien.example/v1)"),
        "{error:?}"
    );
    let error = world.writer.patch(&world.reference("a"), None, &Patch::Merge(json!({}))).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::NotFound), "{error:?}");
    world.writer.create(&world.map("a", json!({}))).await.unwrap();
    let error = world.writer.create(&world.map("a", json!({}))).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::AlreadyExists), "{error:?}");
    assert_eq!(
        error.to_string(),
        "could not create ConfigMap absences/a: an object of this name exists already"
    );
}

#[tokio::test]
async fn invalid_fields_are_named_and_immutable_ones_are_told_apart() {
    let world = World::new("invalid").await;
    let mut wrong = deployment("invalid", "a");
    wrong.map_mut(&["spec"]).insert("replicas".into(), json!(-1));
    let error = world.writer.apply(&wrong, &Apply::default()).await.unwrap_err();
    let Cause::Invalid(fields) = error.cause() else { panic!("{error:?}") };
    assert_eq!(fields[0].path, "spec.replicas");
    world.writer.apply(&deployment("invalid", "a"), &Apply::default()).await.unwrap();
    let error = world.writer.apply(&deployment("invalid", "b"), &Apply::default()).await.unwrap_err();
    let Cause::Immutable(fields) = error.cause() else { panic!("{error:?}") };
    assert_eq!(fields[0].path, "spec.selector");
    let mut unknown = deployment("invalid", "a");
    unknown.map_mut(&["spec"]).insert("surprise".into(), json!(1));
    let wrong_type = |object: &mut Object| object.map_mut(&["spec"]).insert("replicas".into(), json!("many"));
    wrong_type(&mut unknown);
    let error = world.writer.apply(&unknown, &Apply::default()).await.unwrap_err();
    let Cause::Invalid(fields) = error.cause() else { panic!("{error:?}") };
    assert!(!fields.is_empty());
}

#[tokio::test]
async fn policies_and_webhooks_are_told_apart_from_rights() {
    let world = World::new("admission").await;
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": "admission"}});
    let api = "admissionregistration.k8s.io";
    let rule =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]});
    let policy = json!({"apiVersion": format!("{api}/v1"), "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-secrets"},
        "spec": {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]},
                 "validations": [{"expression": "false", "message": "no secrets here"}]}});
    let binding = json!({"apiVersion": format!("{api}/v1"), "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-secrets"},
        "spec": {"policyName": "no-secrets", "validationActions": ["Deny"],
                 "matchResources": {"namespaceSelector": selector}}});
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["services"]});
    let webhook = json!({"apiVersion": format!("{api}/v1"), "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "away"},
        "webhooks": [{"name": "away.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                      "failurePolicy": "Fail", "rules": [rule], "namespaceSelector": selector, "timeoutSeconds": 1,
                      "clientConfig": {"url": "https://127.0.0.1:1/"}}]});
    for manifest in [policy, binding, webhook] {
        world.other.create(&object(manifest)).await.unwrap();
    }
    let refused = eventually("the policy", async || {
        let metadata = json!({"generateName": "s-", "namespace": "admission"});
        world
            .writer
            .create(&object(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})))
            .await
            .err()
    })
    .await;
    let Cause::Refused(message) = refused.cause() else { panic!("{refused:?}") };
    assert!(message.contains("no secrets here"), "{message}");
    let failed = eventually("the webhook", async || {
        let metadata = json!({"generateName": "s-", "namespace": "admission"});
        let spec = json!({"ports": [{"port": 80}], "clusterIP": "None"});
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec});
        world.writer.create(&object(service)).await.err()
    })
    .await;
    let Cause::Webhook(message) = failed.cause() else { panic!("{failed:?}") };
    assert!(message.contains("away.example.com"), "{message}");
}

#[tokio::test]
async fn an_object_without_name_or_namespace_is_refused_before_it_is_sent() {
    let world = World::new("nameless").await;
    let nameless =
        object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "nameless"}}));
    let homeless = object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}));
    let writes = world.cluster.counters.writes();
    for object in [nameless, homeless] {
        let error = world.writer.apply(&object, &Apply::default()).await.unwrap_err();
        assert!(matches!(error.cause(), Cause::Refusal(_)), "{error:?}");
    }
    assert_eq!(world.cluster.counters.writes(), writes);
}
