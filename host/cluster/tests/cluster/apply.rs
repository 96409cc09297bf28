//! Writes that succeed, and what they leave behind.

use pintle_api::{Object, ObjectRef, names};
use pintle_cluster::{
    Apply, Cause, Delete, Deleted, Expect, Note, NoteKind, Patch, Retry, applied_fingerprint,
};
use serde_json::{Value, json};

use crate::{
    reads::definition,
    support::{World, eventually, object},
};

#[tokio::test]
async fn an_apply_that_changes_nothing_keeps_the_resource_version() {
    let world = World::new("no-op").await;
    let map = world.map("a", json!({"k": "v"}));
    let first = world.writer.apply(&map, &Apply::default()).await.unwrap();
    // The server stamps entries by the second, and a new stamp alone would be a new version.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    let second = world.writer.apply(&map, &Apply::default()).await.unwrap();
    assert!(first.created && !second.created);
    assert_eq!(first.object.resource_version(), second.object.resource_version());
    assert_eq!(first.fingerprint, second.fingerprint);
}

#[tokio::test]
async fn a_foreign_edit_changes_our_fingerprint_and_ours_and_strangers_fields_do_not() {
    let world = World::new("fingerprints").await;
    let applied =
        world.writer.apply(&world.map("a", json!({"k": "1", "l": "1"})), &Apply::default()).await.unwrap();
    let fingerprint = applied.fingerprint.unwrap();
    let again =
        world.writer.apply(&world.map("a", json!({"k": "2", "l": "1"})), &Apply::default()).await.unwrap();
    assert_eq!(again.fingerprint.unwrap(), fingerprint, "the same fields with other values");
    let strange = world.edit(&world.map("a", json!({"other": "x"}))).await;
    assert_eq!(applied_fingerprint(&strange, "pintle").unwrap(), fingerprint, "a field that is not ours");
    let patch = Patch::Merge(json!({"data": {"k": "3"}}));
    let edited = world.other.patch(&world.reference("a"), None, &patch).await.unwrap();
    // Its patch has our manager's name, but it is no apply: the field has changed hands.
    assert_eq!(edited.object.str_at("/data/k"), Some("3"));
    assert_ne!(applied_fingerprint(&edited.object, "pintle").unwrap(), fingerprint);
}

#[tokio::test]
async fn a_conflict_names_managers_and_fields_and_force_takes_them() {
    let world = World::new("conflicts").await;
    world.edit(&world.map("a", json!({"k": "theirs", "l": "theirs"}))).await;
    let map = world.map("a", json!({"k": "ours"}));
    let error = world.writer.apply(&map, &Apply::default()).await.unwrap_err();
    let Cause::Conflict(fields) = error.cause() else { panic!("{error}") };
    assert_eq!((fields[0].manager.as_str(), fields[0].field.as_str()), ("somebody", ".data.k"));
    assert_eq!(fields.len(), 1);
    assert_eq!((error.label(), error.retry()), ("conflict", Retry::WhenChanged));
    let text = error.to_string();
    assert_eq!(text, "could not patch ConfigMap conflicts/a: .data.k is held by somebody");
    let forced = world.writer.apply(&map, &Apply { force: true, ..Apply::default() }).await.unwrap();
    assert_eq!(forced.object.str_at("/data/k"), Some("ours"));
    assert_eq!(forced.object.str_at("/data/l"), Some("theirs"));
}

#[tokio::test]
async fn an_apply_that_expects_nothing_makes_an_object_and_leaves_an_existing_one_alone() {
    let world = World::new("expectations").await;
    let absent = Apply { expect: Expect::Absent, ..Apply::default() };
    let first = world.writer.apply(&world.map("a", json!({"k": "1"})), &absent).await.unwrap();
    assert!(first.created);
    let error = world.writer.apply(&world.map("a", json!({"k": "2"})), &absent).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Stale(_)), "{error:?}");
    let uid = |uid: &str| Apply { expect: Expect::Uid(uid.to_owned()), force: true, manager: None };
    let right = uid(first.object.uid().unwrap());
    let second = world.writer.apply(&world.map("a", json!({"k": "3"})), &right).await.unwrap();
    let version = Apply {
        expect: Expect::Version(first.object.resource_version().unwrap().to_owned()),
        ..Apply::default()
    };
    let error = world.writer.apply(&world.map("a", json!({"k": "4"})), &version).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Stale(_)), "{error:?}");
    let wrong = uid("00000000-0000-0000-0000-000000000000");
    for name in ["a", "not-there"] {
        let error = world.writer.apply(&world.map(name, json!({"k": "5"})), &wrong).await.unwrap_err();
        assert!(matches!(error.cause(), Cause::Stale(_)), "{name}: {error:?}");
    }
    assert_eq!(second.object.str_at("/data/k"), Some("3"));
}

#[tokio::test]
async fn only_the_object_with_the_uid_is_deleted() {
    let world = World::new("deletion").await;
    let target = world.reference("a");
    let old = world.writer.create(&world.map("a", json!({}))).await.unwrap().object;
    let with = |object: &Object| Delete { uid: object.uid().map(str::to_owned), ..Delete::default() };
    assert_eq!(world.writer.delete(&target, &with(&old)).await.unwrap(), Deleted::Gone);
    assert_eq!(world.writer.delete(&target, &with(&old)).await.unwrap(), Deleted::Gone);
    let new = world.writer.create(&world.map("a", json!({}))).await.unwrap().object;
    let error = world.writer.delete(&target, &with(&old)).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Stale(_)), "{error:?}");
    assert_eq!(world.writer.delete(&target, &with(&new)).await.unwrap(), Deleted::Gone);
}

#[tokio::test]
async fn finalizers_come_and_go_one_at_a_time_and_only_on_the_version_that_was_read() {
    let world = World::new("finalizers").await;
    let target = world.reference("a");
    let read = world.writer.create(&world.map("a", json!({}))).await.unwrap().object;
    let first = world.writer.add_finalizer(&read, "pintle.dev/release").await.unwrap().unwrap().object;
    let stale = world.writer.add_finalizer(&read, "example.com/other").await.unwrap_err();
    assert!(matches!(stale.cause(), Cause::Stale(_)), "{stale:?}");
    assert_eq!(stale.retry(), Retry::Reread);
    assert!(world.writer.add_finalizer(&first, "pintle.dev/release").await.unwrap().is_none());
    let both = world.writer.add_finalizer(&first, "example.com/other").await.unwrap().unwrap().object;
    assert_eq!(world.writer.delete(&target, &Delete::default()).await.unwrap(), Deleted::Terminating);
    let stale = world.writer.remove_finalizer(&both, "pintle.dev/release").await.unwrap_err();
    assert!(matches!(stale.cause(), Cause::Stale(_)), "{stale:?}");
    let no_op = world.writer.patch(&target, None, &Patch::Merge(json!({}))).await.unwrap().object;
    let one = world.writer.remove_finalizer(&no_op, "pintle.dev/release").await.unwrap().unwrap().object;
    assert_eq!(one.at("/metadata/finalizers"), Some(&json!(["example.com/other"])));
    world.writer.remove_finalizer(&one, "example.com/other").await.unwrap().unwrap();
    let error = world.writer.patch(&target, None, &Patch::Merge(json!({}))).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::NotFound), "{error:?}");
}

#[tokio::test]
async fn labels_of_a_node_come_and_go_one_by_one_with_one_manager() {
    let world = World::new("node-labels").await;
    let labels = json!({"example.com/theirs": "x"});
    let node =
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-labels", "labels": labels}});
    // The server keeps no managers of an object before it is applied once.
    let theirs = Apply { manager: Some("theirs".to_owned()), ..Apply::default() };
    let node = world.other.apply(&object(node), &theirs).await.unwrap().object.reference();
    let label = async |key: &str, value: Option<&str>| {
        world.writer.label(&node, &[(key.to_owned(), value.map(str::to_owned))]).await
    };
    label("example.com/one", Some("Ready")).await.unwrap();
    label("example.com/gone", Some("Ready")).await.unwrap();
    label("example.com/two", Some("Ready")).await.unwrap();
    label("example.com/never", None).await.unwrap();
    let live = label("example.com/gone", None).await.unwrap().object;
    assert_eq!(live.label("example.com/one"), Some("Ready"));
    assert_eq!(live.label("example.com/two"), Some("Ready"));
    assert_eq!(live.label("example.com/gone"), None);
    let managers = live.at("/metadata/managedFields").and_then(Value::as_array).unwrap();
    let by = |operation: &str| -> Vec<&str> {
        let entries = managers.iter().filter(|entry| entry["operation"] == operation);
        entries.filter_map(|entry| entry["manager"].as_str()).collect()
    };
    assert_eq!(by("Apply"), ["theirs"], "an apply leaves a manager for each release on each node");
    let ours = by("Update").into_iter().filter(|manager| *manager == names::MANAGER).count();
    assert_eq!(ours, 1, "{managers:?}");
    world.other.delete(&node, &Delete::default()).await.unwrap();
    let error = label("example.com/one", Some("Ready")).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::NotFound), "no node is made: {error:?}");
}

#[tokio::test]
async fn a_key_that_helm_set_goes_once_the_object_is_adopted() {
    let world = World::new("adoption").await;
    let map = world.map("a", json!({"kept": "1", "dropped": "1"}));
    let helm = Apply { manager: Some("helm".to_owned()), ..Apply::default() };
    world.other.apply(&map, &helm).await.unwrap();
    let target = world.reference("a");
    let adopted = world.writer.adopt(&target, &["helm", "helm-controller"]).await.unwrap();
    assert!(adopted.is_some());
    assert!(world.writer.adopt(&target, &["helm"]).await.unwrap().is_none());
    let applied = world.writer.apply(&world.map("a", json!({"kept": "2"})), &Apply::default()).await.unwrap();
    assert_eq!(applied.object.at("/data"), Some(&json!({"kept": "2"})));
}

#[tokio::test]
async fn a_status_is_ours_where_we_wrote_it_and_others_fields_stay() {
    let world = World::new("status").await;
    world.other.create(&definition("status.example", "Owner", "owners")).await.unwrap();
    let owner = json!({"apiVersion": "status.example/v1", "kind": "Owner", "spec": {"a": 1},
                       "metadata": {"name": "o", "namespace": "status"}});
    let owner = object(owner);
    let live = eventually("the new kind", async || {
        world.cluster.discovery.refresh().await.unwrap();
        world.writer.create(&owner).await.ok()
    })
    .await;
    let (target, uid) = (owner.reference(), live.object.uid().unwrap().to_owned());
    let foreign = json!({"theirs": true});
    world.writer.merge_status(&target, None, &foreign).await.unwrap();
    world.writer.apply_status(&target, &uid, &json!({"phase": "Pending", "extra": 1})).await.unwrap();
    let now = world.writer.apply_status(&target, &uid, &json!({"phase": "Ready"})).await.unwrap().object;
    assert_eq!(now.at("/status"), Some(&json!({"phase": "Ready", "theirs": true})));
    assert_eq!(now.at("/spec/a"), Some(&json!(1)));
    let error = world.writer.merge_status(&target, Some("1"), &json!({"phase": "x"})).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Stale(_)), "{error:?}");
}

#[tokio::test]
async fn an_event_is_there_for_whoever_describes_the_object() {
    let world = World::new("events").await;
    let map = world.writer.create(&world.map("a", json!({}))).await.unwrap().object;
    let note = Note {
        regarding: map.reference(),
        uid: map.uid().map(str::to_owned),
        kind: NoteKind::Warning,
        reason: "OwnedByOther".into(),
        action: "Apply".into(),
        message: "somebody else owns it".into(),
        at: pintle_api::Timestamp::now(),
        reporter: "pintle-0".into(),
    };
    world.writer.event(&note).await.unwrap();
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": [],
                      "metadata": {"name": "example:events:test"}});
    let role = world.other.create(&object(role)).await.unwrap().object;
    let regarding = ObjectRef { name: "example:events:test".into(), ..role.reference() };
    world.writer.event(&Note { regarding, uid: None, kind: NoteKind::Normal, ..note }).await.unwrap();
    let client = crate::support::plane().client().unwrap();
    let events = kube::Api::<k8s_openapi::api::core::v1::Event>::namespaced(client, "events");
    let found = events.list(&kube::api::ListParams::default()).await.unwrap().items;
    let event = found.iter().find(|event| event.reason.as_deref() == Some("OwnedByOther")).unwrap();
    assert_eq!(event.involved_object.uid, note_uid(&map));
    assert_eq!(event.message.as_deref(), Some("somebody else owns it"));
    assert_eq!(event.type_.as_deref(), Some("Warning"));
}

fn note_uid(object: &Object) -> Option<String> {
    object.uid().map(str::to_owned)
}

#[tokio::test]
async fn the_server_warns_of_fields_it_drops() {
    let world = World::new("warnings").await;
    let mut map = world.map("a", json!({}));
    map.set("surprise", json!(1));
    let created = world.writer.create(&map).await.unwrap();
    assert_eq!(created.warnings, ["unknown field \"surprise\""]);
    // A server-side apply refuses what any other write drops; a chart must not stand still for it.
    let mut pod = Object::default_of("v1", "Pod", "p");
    pod.map_mut(&["metadata"]).insert("namespace".into(), json!("warnings"));
    let container =
        json!({"name": "c", "image": "i", "surprise": 1, "ports": [{"containerPort": 1, "odd": 2}]});
    pod.set("spec", json!({"containers": [container], "unknown": {"deep": true}}));
    let applied = world.writer.apply(&pod, &Apply::default()).await.unwrap();
    let mut warnings = applied.warnings.clone();
    warnings.sort();
    let named = ["spec.containers[name=\"c\"]", "spec.unknown"];
    assert!(named.iter().all(|path| warnings.iter().any(|warning| warning.contains(path))), "{warnings:?}");
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert_eq!(applied.object.at("/spec/unknown"), None);
}
