//! Connections that break, servers that restart, servers that are older.

use std::{pin::pin, time::Duration};

use futures::StreamExt as _;
use pintle_api::{Answer, Facts as _, Gvk, Read};
use pintle_cluster::{Apply, Cause, Changed, Delete, Interest, Leadership, Stage, Verb};
use serde_json::json;

use crate::{
    server::Server,
    support::{OPERATOR, World, connect_to, data, eventually, object, pass, plane, release, soon},
    wire::Wire,
};

#[tokio::test]
async fn a_dropped_watch_resumes_and_misses_nothing() {
    let world = World::new("dropped").await;
    world.other.create(&world.map("a", json!({"k": "1"}))).await.unwrap();
    let (wire, config) = Wire::before(plane().config(OPERATOR).unwrap()).await;
    let cluster = connect_to(config).await;
    let (target, who) = (world.reference("a"), release("dropped"));
    let (set, mut wakes) = cluster.caches.watch_set();
    pass(&cluster, &set, &who, &[Read::Get(target.clone())]).await;
    wire.jolt();
    world.edit(&world.map("a", json!({"k": "2"}))).await;
    soon("a wake for what happened meanwhile", wakes.next()).await;
    assert_eq!(data(&cluster, &target, "k").unwrap(), "2");
    pass(&cluster, &set, &who, &[Read::Get(target.clone())]).await;
    wire.cut();
    world.other.delete(&target, &Delete::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(data(&cluster, &target, "k").unwrap(), "2", "the last known answer holds");
    wire.mend();
    soon("a wake for the deletion", wakes.next()).await;
    assert_eq!(cluster.caches.get(&target), Answer::Missing);
    assert_eq!(cluster.counters.count(Verb::List, "configmaps"), 0);
}

#[tokio::test]
async fn a_write_that_was_not_sent_differs_from_one_with_an_unknown_outcome() {
    let world = World::new("unsent").await;
    let (wire, config) = Wire::before(plane().config(OPERATOR).unwrap()).await;
    let cluster = connect_to(config).await;
    let writer = cluster.writer(Leadership::always());
    writer.apply(&world.map("a", json!({})), &Apply::default()).await.unwrap();
    wire.cut();
    let error = eventually("the end of the connection", async || {
        let map = world.map("a", json!({"k": "v"}));
        writer.apply(&map, &Apply::default()).await.err()
    })
    .await;
    // The wire takes connections and ends them: a handshake that fails was never a request.
    assert!(matches!(error.cause(), Cause::Unreachable(_) | Cause::OutcomeUnknown(_)), "{error:?}");
    let error = writer.apply(&world.map("a", json!({"k": "v"})), &Apply::default()).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Unreachable(_)), "{error:?}");
}

fn plain_map(name: &str, data: &str) -> pintle_api::Object {
    let metadata = json!({"name": name, "namespace": "default"});
    object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": data}}))
}

/// The code with which the server ends a watch of ConfigMaps from a version, if it does at once.
async fn end_of_watch(server: &Server, version: &str) -> Option<u16> {
    let client = kube::Client::try_from(server.config()).unwrap();
    let maps = kube::Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(client, "default");
    let mut events = pin!(maps.watch(&kube::api::WatchParams::default(), version).await.ok()?);
    match events.next().await?.ok()? {
        kube::core::WatchEvent::Error(status) => Some(status.code),
        _ => None,
    }
}

#[tokio::test]
async fn when_the_server_has_forgotten_our_version_everything_is_listed_again() {
    let mut server = Server::start(&[]).await;
    let (wire, config) = Wire::before(server.config()).await;
    let cluster = connect_to(config).await;
    let other = server.connect().await.writer(Leadership::always());
    let mut last = None;
    for name in ["kept", "deleted"] {
        last = Some(other.create(&plain_map(name, "0")).await.unwrap().object);
    }
    let version = last.unwrap().resource_version().unwrap().to_owned();
    let interest = Interest::all(Gvk::new("v1", "ConfigMap")).within("default");
    cluster.caches.hold(&interest, &release("restart"));
    assert_eq!(cluster.caches.settled(&interest).await, Some(Stage::Synced));
    let mut changes = cluster.caches.subscribe();
    wire.cut();
    let (kept, deleted) = (plain_map("kept", "1"), plain_map("deleted", "0").reference());
    other.delete(&deleted, &Delete::default()).await.unwrap();
    let kept =
        other.apply(&kept, &Apply { force: true, ..Apply::default() }).await.unwrap().object.reference();
    let new = other.create(&plain_map("new", "0")).await.unwrap().object.reference();
    // A new process has no history before its start.
    server.kill();
    server.resume().await;
    assert_eq!(end_of_watch(&server, &version).await, Some(410));
    assert!(cluster.caches.get(&deleted).found().is_some());
    wire.mend();
    eventually("the state after the restart", async || {
        let same = data(&cluster, &kept, "k")? == "1" && cluster.caches.get(&deleted) == Answer::Missing;
        (same && cluster.caches.get(&new).found().is_some()).then_some(())
    })
    .await;
    let mut told = Vec::new();
    for _ in 0..3 {
        let Some(Changed::Object { object, .. }) = soon("a change", changes.next()).await else { panic!() };
        told.push(object.name);
    }
    told.sort();
    assert_eq!(told, ["deleted", "kept", "new"]);
}

#[tokio::test]
async fn a_server_that_cannot_stream_lists_is_asked_for_pages() {
    let server = Server::start(&["--feature-gates=WatchList=false"]).await;
    let cluster = server.connect().await;
    let writer = cluster.writer(Leadership::always());
    let mut names = Vec::new();
    for number in 0..520 {
        let name = format!("m-{number:03}");
        let metadata = json!({"name": name, "namespace": "default"});
        writer
            .create(&object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})))
            .await
            .unwrap();
        names.push(name);
    }
    let interest = Interest::all(Gvk::new("v1", "ConfigMap")).within("default");
    cluster.caches.hold(&interest, &release("pages"));
    assert_eq!(cluster.caches.settled(&interest).await, Some(Stage::Synced));
    let objects = cluster.caches.objects(&interest).found().unwrap();
    let listed: Vec<&str> =
        objects.iter().map(|object| object.name()).filter(|name| name.starts_with("m-")).collect();
    assert_eq!(listed, names);
    assert_eq!(cluster.counters.count(Verb::List, "configmaps"), 2);
    let metadata = json!({"name": "later", "namespace": "default"});
    let other = server.connect().await.writer(Leadership::always());
    let later = object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}));
    other.create(&later).await.unwrap();
    eventually("the later object", async || cluster.caches.get(&later.reference()).found()).await;
}
