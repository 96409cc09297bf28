//! What the caches answer, and whom a change wakes.

use std::time::Duration;

use pintle_api::{Answer, Facts as _, Gvk, LogTail, ObjectRef, Query, Read, Recorder};
use pintle_cluster::{Changed, Delete, Interest, Mask, Stage, Verb};
use serde_json::json;

use crate::support::{NOBODY, World, connect_as, data, eventually, object, owned_by, pass, release, soon};

#[tokio::test]
async fn an_answer_is_not_yet_then_missing_then_found() {
    let world = World::new("answers").await;
    let target = world.reference("a");
    let caches = &world.cluster.caches;
    assert!(caches.get(&target).is_not_yet());
    let (set, mut wakes) = caches.watch_set();
    let who = release("answers");
    assert_eq!(world.pass(&set, &who, &[Read::Get(target.clone())]).await, [false]);
    assert_eq!(caches.get(&target), Answer::Missing);
    world.other.create(&world.map("a", json!({"k": "v"}))).await.unwrap();
    let wake = soon("a wake for the new object", wakes.next()).await;
    assert_eq!((wake.holder, wake.because), (who, Some(Read::Get(target.clone()))));
    assert_eq!(data(&world.cluster, &target, "k").unwrap(), "v");
}

#[tokio::test]
async fn what_was_written_is_read_at_once_and_what_was_deleted_is_not() {
    let world = World::new("read-your-writes").await;
    let caches = &world.cluster.caches;
    let owned = Interest::all(Gvk::new("v1", "ConfigMap")).selecting("pintle.dev/owner");
    for interest in [world.maps(), owned.clone()] {
        caches.hold(&interest, &release("r"));
        assert_eq!(caches.settled(&interest).await, Some(Stage::Synced));
    }
    let target = world.reference("a");
    let mut uid = None;
    for round in 0..50 {
        let map = world.owned_map("a", "ryw", json!({"k": round.to_string()}));
        let applied = world.writer.apply(&map, &pintle_cluster::Apply::default()).await.unwrap();
        assert_eq!(data(&world.cluster, &target, "k").unwrap(), round.to_string());
        assert_eq!(caches.list(&owned_by("ryw")).found().unwrap().len(), 1);
        assert_eq!(
            caches.get(&target).found().unwrap().resource_version(),
            applied.object.resource_version()
        );
        uid = applied.object.uid().map(str::to_owned);
    }
    world.writer.delete(&target, &Delete { uid, ..Delete::default() }).await.unwrap();
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(500) {
        assert_eq!(caches.get(&target), Answer::Missing);
        assert!(caches.list(&owned_by("ryw")).found().unwrap().is_empty());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_change_wakes_and_a_new_resource_version_alone_does_not() {
    let world = World::new("wakes").await;
    let map = world.map("a", json!({"k": "v"}));
    let before = world.writer.apply(&map, &pintle_cluster::Apply::default()).await.unwrap().object;
    let (set, mut wakes) = world.cluster.caches.watch_set();
    let who = release("wakes");
    let target = world.reference("a");
    world.pass(&set, &who, &[Read::Get(target.clone())]).await;
    // Another manager shares the field: a new version, new managedFields, and nothing else.
    let shared = world.edit(&map).await;
    assert_ne!(shared.resource_version(), before.resource_version());
    let caches = &world.cluster.caches;
    eventually("the new version", async || {
        let live = caches.get(&target).found()?;
        (live.resource_version() == shared.resource_version()).then_some(())
    })
    .await;
    assert_eq!(wakes.try_next(), None);
    world.edit(&world.map("a", json!({"k": "w"}))).await;
    assert_eq!(soon("a wake for the edit", wakes.next()).await.holder, who);
}

#[tokio::test]
async fn what_changed_between_reading_and_registering_wakes_at_once() {
    let world = World::new("registering").await;
    world.other.create(&world.map("a", json!({"k": "v"}))).await.unwrap();
    let caches = &world.cluster.caches;
    let (target, who) = (world.reference("a"), release("registering"));
    caches.fetch(&[Read::Get(target.clone())], &who).await;
    let recorder = Recorder::new(&**caches);
    assert!(recorder.get(&target).found().is_some());
    world.edit(&world.map("a", json!({"k": "w"}))).await;
    eventually("the edit", async || (data(&world.cluster, &target, "k")? == "w").then_some(())).await;
    let (set, mut wakes) = caches.watch_set();
    set.register(&who, &recorder.into_record());
    assert_eq!(wakes.try_next().unwrap().holder, who);
}

#[tokio::test]
async fn a_kind_that_is_not_served_is_unknown_and_wakes_whoever_asked_once_it_is() {
    let world = World::new("late-kind").await;
    world.cluster.discovery.follow();
    let target = ObjectRef::new("late.example/v1", "Guest", "g").within("late-kind");
    let list = Query {
        api_version: "late.example/v1".into(),
        kind: "Guest".into(),
        namespace: None,
        label_selector: None,
    };
    let (set, mut wakes) = world.cluster.caches.watch_set();
    let asked = [(release("get"), Read::Get(target.clone())), (release("list"), Read::List(list))];
    for (who, read) in &asked {
        world.pass(&set, who, std::slice::from_ref(read)).await;
    }
    assert_eq!(world.cluster.caches.get(&target), Answer::KindUnknown);
    world.other.create(&definition("late.example", "Guest", "guests")).await.unwrap();
    let mut woken = Vec::new();
    for _ in &asked {
        let who = soon("a wake for the new kind", wakes.next()).await.holder;
        let (_, read) = asked.iter().find(|(asker, _)| *asker == who).unwrap();
        world.pass(&set, &who, std::slice::from_ref(read)).await;
        woken.push(who);
    }
    woken.sort();
    assert_eq!(woken, [release("get"), release("list")]);
    assert_eq!(world.cluster.caches.get(&target), Answer::Missing);
    let guest = json!({"apiVersion": "late.example/v1", "kind": "Guest",
                       "metadata": {"name": "g", "namespace": "late-kind"}});
    world.writer.create(&object(guest)).await.unwrap();
    assert!(world.cluster.caches.get(&target).found().is_some());
    let versions = &world.cluster.discovery.capabilities().unwrap().api_versions;
    assert!(
        versions.contains(&"late.example/v1/Guest".to_owned())
            && versions.contains(&"apps/v1/Scale".to_owned())
    );
}

pub(crate) fn definition(group: &str, kind: &str, plural: &str) -> pintle_api::Object {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                         "schema": {"openAPIV3Schema": schema}});
    object(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "versions": [version],
                 "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()}}
    }))
}

#[tokio::test]
async fn a_denied_read_names_the_rule_and_ends_when_the_rule_is_there() {
    let world = World::new("denied").await;
    let nobody = connect_as(NOBODY).await;
    let target = world.reference("a");
    let (set, mut wakes) = nobody.caches.watch_set();
    let who = release("denied");
    pass(&nobody, &set, &who, &[Read::Get(target.clone())]).await;
    let Answer::Denied(text) = nobody.caches.get(&target) else { panic!("not denied") };
    for word in ["nobody", "list and watch", "configmaps", "namespace denied"] {
        assert!(text.contains(word), "{text}");
    }
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": [rule],
                      "metadata": {"name": "reader", "namespace": "denied"}});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "reader", "namespace": "denied"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": NOBODY}]});
    for manifest in [role, binding] {
        world.other.create(&object(manifest)).await.unwrap();
    }
    assert_eq!(soon("a wake for the right", wakes.next()).await.holder, who);
    assert_eq!(nobody.caches.get(&target), Answer::Missing);
}

#[tokio::test]
async fn one_watch_serves_all_owners_and_wakes_only_the_one_concerned() {
    let world = World::new("owners").await;
    for owner in ["o-one", "o-two"] {
        world.other.create(&world.owned_map(owner, owner, json!({"k": "v"}))).await.unwrap();
    }
    let (set, mut wakes) = world.cluster.caches.watch_set();
    for owner in ["o-one", "o-two"] {
        let reads = [Read::List(owned_by(owner)), Read::Get(world.reference(owner))];
        assert_eq!(world.pass(&set, &release(owner), &reads).await, [true, true]);
    }
    assert_eq!(world.cluster.caches.size().interests, 1);
    assert_eq!(world.cluster.counters.count(Verb::Watch, "configmaps"), 1);
    world.edit(&world.owned_map("o-two", "o-two", json!({"k": "w"}))).await;
    assert_eq!(soon("a wake", wakes.next()).await.holder, release("o-two"));
    world.other.delete(&world.reference("o-one"), &Delete::default()).await.unwrap();
    assert_eq!(soon("a wake", wakes.next()).await.holder, release("o-one"));
    assert_eq!(wakes.try_next(), None);
}

#[tokio::test]
async fn an_object_that_lost_its_owner_label_is_not_taken_for_deleted() {
    let world = World::new("strays").await;
    let map = world.owned_map("a", "stray", json!({"k": "v"}));
    world.other.create(&map).await.unwrap();
    let (set, mut wakes) = world.cluster.caches.watch_set();
    let who = release("stray");
    let reads = [Read::List(owned_by("stray")), Read::Get(world.reference("a"))];
    world.pass(&set, &who, &reads).await;
    let mut changes = world.cluster.caches.subscribe();
    let patch = pintle_cluster::Patch::Merge(json!({"metadata": {"labels": {"pintle.dev/owner": null}}}));
    world.other.patch(&world.reference("a"), None, &patch).await.unwrap();
    assert_eq!(soon("a wake", wakes.next()).await.holder, who);
    let Some(Changed::Object { new, .. }) = soon("a change", changes.next()).await else {
        panic!("no object")
    };
    assert_eq!(new.unwrap().object.label("pintle.dev/owner"), None);
    assert_eq!(world.pass(&set, &who, &reads).await, [true, true]);
    // Its deletion is seen although the watch of owned objects says nothing of it.
    world.other.delete(&world.reference("a"), &Delete::default()).await.unwrap();
    assert_eq!(soon("a wake", wakes.next()).await.holder, who);
    assert_eq!(world.pass(&set, &who, &reads).await, [true, false]);
}

#[tokio::test]
async fn an_interest_nobody_holds_ends_after_a_while() {
    let world = World::new("linger").await;
    let caches = &world.cluster.caches;
    let (one, two) = (release("one"), release("two"));
    for who in [&one, &two] {
        caches.fetch(&[Read::Get(world.reference("a"))], who).await;
    }
    assert_eq!(caches.size().interests, 1);
    caches.release(&one);
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(caches.get(&world.reference("a")), Answer::Missing);
    caches.release(&two);
    eventually("the end of the interest", async || (caches.size().interests == 0).then_some(())).await;
    assert!(caches.get(&world.reference("a")).is_not_yet());
}

#[tokio::test]
async fn a_later_pass_lets_go_of_what_it_does_not_read() {
    let world = World::new("let-go").await;
    let (set, _wakes) = world.cluster.caches.watch_set();
    let who = release("let-go");
    world.pass(&set, &who, &[Read::Get(world.reference("a")), Read::Get(world.reference("b"))]).await;
    assert_eq!(world.cluster.caches.size().interests, 2);
    world.pass(&set, &who, &[Read::Get(world.reference("b"))]).await;
    let caches = &world.cluster.caches;
    eventually("the end of the interest", async || (caches.size().interests == 1).then_some(())).await;
    set.remove(&who);
    eventually("the end of the other", async || (caches.size().interests == 0).then_some(())).await;
}

#[tokio::test]
async fn names_answer_for_many_objects_that_are_not_there() {
    let world = World::new("crowd").await;
    world.other.create(&world.map("there", json!({"k": "v"}))).await.unwrap();
    let (set, mut wakes) = world.cluster.caches.watch_set();
    let caches = &world.cluster.caches;
    for number in 0..20 {
        let reads = [Read::Get(world.reference(&format!("absent-{number}")))];
        world.pass(&set, &release(&format!("crowd-{number}")), &reads).await;
        assert_eq!(caches.get(&world.reference(&format!("absent-{number}"))), Answer::Missing);
    }
    assert_eq!(caches.size().interests, 5, "four objects alone, then the names of all");
    // What is there is read whole, by a watch of its own.
    let there = [Read::Get(world.reference("there"))];
    assert_eq!(world.pass(&set, &release("crowd-there"), &there).await, [true]);
    let found = caches.get(&world.reference("there")).found().unwrap();
    assert_eq!(found.str_at("/data/k"), Some("v"));
    assert_eq!((caches.size().interests, wakes.try_next()), (6, None));
    // A name that comes wakes who was told that there is none, and nobody else.
    world.other.create(&world.map("absent-17", json!({"k": "w"}))).await.unwrap();
    assert_eq!(soon("a wake for the new name", wakes.next()).await.holder, release("crowd-17"));
    assert_eq!(data(&world.cluster, &world.reference("absent-17"), "k").unwrap(), "w");
    assert_eq!(wakes.try_next(), None);
}

#[tokio::test]
async fn metadata_alone_is_watched_as_such_and_does_not_answer_reads_of_the_whole() {
    let world = World::new("metadata").await;
    world.other.create(&world.map("a", json!({"k": "v"}))).await.unwrap();
    let caches = &world.cluster.caches;
    let interest = world.maps().masked(Mask::Metadata);
    caches.hold(&interest, &release("m"));
    caches.settled(&interest).await;
    let objects = caches.objects(&interest).found().unwrap();
    let map = objects.iter().find(|object| object.name() == "a").unwrap();
    assert_eq!((map.kind(), map.api_version()), ("ConfigMap", "v1"));
    assert!(map.at("/data").is_none() && map.uid().is_some());
    assert!(caches.get(&world.reference("a")).is_not_yet());
}

#[tokio::test]
async fn nothing_is_asked_while_nothing_changes() {
    let world = World::new("quiet").await;
    world.cluster.discovery.follow();
    let (set, mut wakes) = world.cluster.caches.watch_set();
    let node = ObjectRef::new("v1", "Node", "no-such-node").within("quiet");
    // Not a list of one owner: its watch is of all namespaces, and sees what other tests delete.
    let list =
        Query { namespace: Some("quiet".into()), label_selector: Some("app=x".into()), ..owned_by("") };
    let reads = [Read::Get(world.reference("a")), Read::List(list.clone()), Read::Get(node)];
    world.pass(&set, &release("quiet"), &reads).await;
    let counters = &world.cluster.counters;
    for resource in ["customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io"] {
        let opened = async || (counters.count(Verb::Watch, resource) > 0).then_some(());
        eventually("the watch of kinds", opened).await;
    }
    // Other tests of this process install kinds; the readings after theirs are not ours to count.
    let but_discovery = || counters.requests() - counters.count(Verb::Get, "discovery");
    let before = but_discovery();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(but_discovery(), before, "{:?}", counters.snapshot());
    assert_eq!(wakes.try_next(), None);
    assert_eq!(world.cluster.caches.list(&list), Answer::Found(Vec::new()));
}

#[tokio::test]
async fn a_log_that_is_not_there_is_missing_and_one_that_may_not_be_read_is_denied() {
    let world = World::new("logs").await;
    let log = LogTail {
        namespace: "logs".into(),
        pod: "p".into(),
        container: None,
        previous: false,
        lines: 10,
        max_bytes: 1000,
    };
    let (reader, nobody) = (&world.cluster, connect_as(NOBODY).await);
    let read = Read::Tail(log.clone());
    assert!(reader.caches.tail(&log).is_not_yet());
    reader.caches.fetch(std::slice::from_ref(&read), &release("l")).await;
    nobody.caches.fetch(&[read], &release("l")).await;
    assert_eq!(reader.caches.tail(&log), Answer::Missing);
    let Answer::Denied(text) = nobody.caches.tail(&log) else { panic!("not denied") };
    assert!(text.contains("pods/log in namespace logs"), "{text}");
    let asked = || reader.counters.count(Verb::Get, "pods/log");
    eventually("the second question", async || (asked() == 2).then_some(())).await;
    reader.caches.release(&release("l"));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(asked(), 2, "nobody holds it");
}

#[tokio::test]
async fn without_a_resolver_images_are_denied() {
    let cluster = connect_as(NOBODY).await;
    assert!(matches!(cluster.caches.resolve("image:1"), Answer::Denied(_)));
}
