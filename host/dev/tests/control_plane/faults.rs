//! The proxy that breaks things between a client and the API server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};
use pintle_dev::faults::{Answer, Fault, FaultProxy, Matching, Nth};
use serde_json::json;

use crate::support::{namespace, plane};

struct World {
    proxy: FaultProxy,
    /// By way of the proxy.
    maps: Api<ConfigMap>,
    /// Past the proxy.
    direct: Api<ConfigMap>,
}

async fn world(name: &str) -> World {
    let direct = namespace(name).await;
    let proxy = FaultProxy::start(plane()).await.unwrap();
    let client = Client::try_from(proxy.config(&plane().config("pintle:admin").unwrap()).unwrap()).unwrap();
    World { proxy, maps: Api::namespaced(client, name), direct: Api::namespaced(direct, name) }
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

fn code(result: Result<ConfigMap, kube::Error>) -> u16 {
    match result {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_nth_write_is_refused_and_the_others_pass() {
    let World { proxy, maps, direct } = world("refused").await;
    proxy.rule(
        Matching::verbs(&["create"]).of("configmaps"),
        Nth::Only(2),
        Fault::Answer(Answer::conflict()),
    );
    proxy.rule(Matching::verbs(&["create"]).of("configmaps"), Nth::Only(3), Fault::Answer(Answer::invalid()));
    proxy.rule(Matching::verbs(&["create"]).of("configmaps"), Nth::Only(4), Fault::Lose(Answer::internal()));
    let mut codes = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        codes.push(code(maps.create(&PostParams::default(), &map(name)).await));
    }
    assert_eq!(codes, [200, 409, 422, 500, 200]);
    let there: Vec<String> =
        direct.list(&ListParams::default()).await.unwrap().iter().map(ConfigMap::name_any).collect();
    let there: Vec<&str> = there.iter().map(String::as_str).filter(|name| name.len() == 1).collect();
    assert_eq!(there, ["a", "d", "e"], "the answer for d was lost, its effect was not");
    assert_eq!(proxy.writes().len(), 3);
    proxy.clear();
    assert_eq!(code(maps.create(&PostParams::default(), &map("b")).await), 200);
}

#[tokio::test]
async fn a_throttled_client_is_told_when_to_come_again() {
    let World { proxy, .. } = world("throttled").await;
    proxy.rule(Matching::any(), Nth::First(1), Fault::Answer(Answer::too_many(7)));
    let url = format!("{}/api/v1/namespaces/throttled/configmaps", proxy.url());
    let answer = reqwest::get(url).await.unwrap();
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.headers()["retry-after"], "7");
    let body: serde_json::Value = answer.json().await.unwrap();
    assert_eq!((&body["kind"], &body["reason"]), (&json!("Status"), &json!("TooManyRequests")));
}

#[tokio::test]
async fn a_watch_is_not_buffered_and_is_cut_or_delayed_as_told() {
    let World { proxy, maps, direct } = world("watches").await;
    let add = async |name: &str| drop(direct.create(&PostParams::default(), &map(name)).await.unwrap());
    let version = direct.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let params = WatchParams::default().labels("!absent");

    let plain = maps.watch(&params, &version).await.unwrap();
    pin_mut!(plain);
    let begun = Instant::now();
    add("one").await;
    while !matches!(plain.try_next().await.unwrap(), Some(WatchEvent::Added(map)) if map.name_any() == "one")
    {
    }
    assert!(begun.elapsed() < Duration::from_secs(2), "an event waits for nothing");

    proxy.rule(Matching::verbs(&["watch"]), Nth::Only(1), Fault::CutWatch { after_events: 2 });
    proxy.rule(Matching::verbs(&["watch"]), Nth::Only(2), Fault::DelayWatch(Duration::from_millis(400)));
    add("two").await;
    add("three").await;
    let cut: Vec<_> = maps.watch(&params, &version).await.unwrap().collect().await;
    let names: Vec<_> = cut
        .iter()
        .map(|event| match event {
            Ok(WatchEvent::Added(map)) => map.name_any(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names.len(), 2, "the third event did not come: {names:?}");

    let begun = Instant::now();
    let late = maps.watch(&params, &version).await.unwrap();
    pin_mut!(late);
    for _ in 0..3 {
        late.try_next().await.unwrap().unwrap();
    }
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_millis(400) && took < Duration::from_millis(1_150),
        "{took:?}: late once, not thrice"
    );
}

#[tokio::test]
async fn a_stale_list_is_that_of_before_and_a_muted_watch_shows_nothing_more() {
    let World { proxy, maps, direct } = world("stale").await;
    let add = async |name: &str| drop(direct.create(&PostParams::default(), &map(name)).await.unwrap());
    let names = async |params: &ListParams| {
        let all = maps.list(params).await.unwrap();
        let names = all.iter().map(ConfigMap::name_any);
        names.filter(|name| name.starts_with("own-")).collect::<Vec<_>>()
    };
    let lists = Matching::verbs(&["list"]).of("configmaps");
    proxy.rule(lists, Nth::Only(2), Fault::StaleList);
    add("own-1").await;
    assert_eq!(names(&ListParams::default()).await, ["own-1"]);
    add("own-2").await;
    assert_eq!(names(&ListParams::default()).await, ["own-1"], "the second list is stale");
    assert_eq!(names(&ListParams::default()).await, ["own-1", "own-2"]);

    let version = direct.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    proxy.rule(Matching::verbs(&["watch"]), Nth::Only(1), Fault::MuteWatch { after_events: 1 });
    let muted = maps.watch(&WatchParams::default(), &version).await.unwrap();
    add("own-3").await;
    add("own-4").await;
    let seen = muted.take_until(tokio::time::sleep(Duration::from_millis(500)));
    assert_eq!(seen.collect::<Vec<_>>().await.len(), 1);
    let open = maps.watch(&WatchParams::default(), &version).await.unwrap();
    assert_eq!(open.take(2).collect::<Vec<_>>().await.len(), 2, "the next watch shows both");
}

#[tokio::test]
async fn an_api_server_that_is_away_breaks_watches_and_comes_back() {
    let World { proxy, maps, .. } = world("away").await;
    let watch = maps.watch(&WatchParams::default(), "0").await.unwrap();
    let rest = tokio::spawn(async move { watch.collect::<Vec<_>>().await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!rest.is_finished());
    proxy.go_away();
    let ended = tokio::time::timeout(Duration::from_secs(5), rest).await;
    assert!(ended.is_ok(), "the watch broke");
    let answer = maps.list(&ListParams::default()).await;
    assert!(!matches!(answer, Ok(_) | Err(kube::Error::Api(_))), "nobody answers");
    proxy.come_back();
    maps.list(&ListParams::default()).await.unwrap();
}

#[tokio::test]
async fn a_client_ended_after_its_second_write_never_learns_of_it() {
    let World { proxy, maps, direct } = world("ended").await;
    let known = Arc::new(AtomicU64::new(0));
    let counted = known.clone();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let end = std::sync::Mutex::new(Some(end));
    proxy.after_write(move |count, request| {
        assert_eq!((request.verb.as_str(), request.namespace.as_str()), ("patch", "ended"));
        let end = (count == 2).then(|| end.lock().unwrap().take()).flatten();
        async move {
            if let Some(end) = end {
                end.send(()).unwrap();
                // The client is ended meanwhile; the answer never goes out.
                std::future::pending::<()>().await;
            }
        }
    });
    let client = tokio::spawn(async move {
        for name in ["first", "second", "third"] {
            let how = PatchParams::apply("test");
            let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
            maps.patch(name, &how, &Patch::Apply(body)).await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    ended.await.unwrap();
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
    assert_eq!(known.load(Ordering::SeqCst), 1);
    assert!(direct.get_opt("second").await.unwrap().is_some(), "it was done all the same");
    assert!(direct.get_opt("third").await.unwrap().is_none());
}
