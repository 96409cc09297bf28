//! What many releases of a vendor's kind cost, in requests: counts that may not rise.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use pintle::scenario;
use pintle_dev::audit::Request;
use pintle_tests::{
    Stage,
    requests::{is_change, told},
};
use serde_json::{Value, json};

/// Owners that are created at once.
const COUNT: usize = 100;
/// Requests a release may cost until it is ready, watches and the lease aside; events are among them. This is a
/// little more than was measured and may not rise; the aim is 11, and 9 of them writes.
const REQUESTS: f64 = 12.0;
/// Those of them that change something, one event included.
const WRITES: f64 = 11.7;
/// Watches in all: those of kinds, and of single objects until their names are watched instead. Others' tests let a
/// watch break off now and then.
const WATCHES: usize = 80;

fn file(path: &str) -> Value {
    let path = scenario::source_tree().join("deploy/example/memcached").join(path);
    serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

async fn install(stage: &Stage) {
    stage.apply(file("crd.yaml")).await.unwrap();
    stage.install_chart(&scenario::chart_folder("memcached")).await.unwrap();
    let mut watch = file("watch.yaml");
    watch["metadata"] = json!({"name": stage.name, "labels": {"test": stage.name}});
    watch["spec"]["chart"]["repository"]["url"] = json!(format!("cm://{}/chart", stage.name));
    watch["spec"]["selector"] = json!({"matchLabels": {"test": stage.name}});
    stage.apply(watch).await.unwrap();
}

async fn create(stage: &Stage) {
    let one = |number: usize| async move {
        let mut owner = file("sample.yaml");
        let name = format!("cache-{number}");
        owner["metadata"] = json!({"name": name, "namespace": stage.name, "labels": {"test": stage.name}});
        owner["spec"]["replicaCount"] = json!(1);
        stage.apply(owner).await.unwrap();
    };
    stream::iter(0..COUNT).for_each_concurrent(8, one).await;
}

async fn ready(stage: &Stage) -> usize {
    let owners = stage.api("cache.my.domain/v1", "Memcached", "memcacheds");
    let owners = owners.list(&Default::default()).await.unwrap();
    let is_ready = |data: &Value| {
        let conditions = data["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    owners.iter().filter(|owner| is_ready(&owner.data)).count()
}

/// How many there are of each sort, a release.
fn census(requests: &[Request]) -> String {
    let mut sorts = BTreeMap::<String, usize>::new();
    for request in requests {
        let slash = if request.subresource.is_empty() { "" } else { "/" };
        let sort =
            format!("{} {}{slash}{} {}", request.verb, request.resource, request.subresource, request.code);
        *sorts.entry(sort).or_default() += 1;
    }
    let line = |(sort, count): (&String, &usize)| format!("{:6.2} {sort}\n", each(*count));
    sorts.iter().map(line).collect()
}

/// Plugins are everybody's: those of other tests come and go meanwhile.
fn is_ours(request: &Request) -> bool {
    request.resource != "leases" && request.resource != "plugins"
}

#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn each(count: usize) -> f64 {
    count as f64 / COUNT as f64
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_owners_cost_few_requests_and_none_at_rest() {
    let mut stage = Stage::without_operator("many").await.unwrap();
    stage.start();
    install(&stage).await;
    let mark = stage.mark().await.unwrap();
    create(&stage).await;
    let all_are_ready = async |stage: &Stage| Ok(ready(stage).await == COUNT);
    stage.eventually("every owner is Ready", all_are_ready).await.unwrap();
    // What was needed on the way, such as pods of what was not ready, is let go within five seconds.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let requests = stage.requests_since(mark).await.unwrap();
    let is_counted = |request: &&Request| request.verb != "watch" && is_ours(request);
    let counted: Vec<_> = requests.iter().filter(is_counted).cloned().collect();
    let watches = requests.iter().filter(|request| request.verb == "watch" && is_ours(request)).count();
    let writes = counted.iter().filter(|request| request.is_write()).count();
    eprintln!(
        "{:.2} requests, {:.2} writes a release; {watches} watches\n{}",
        each(counted.len()),
        each(writes),
        census(&counted)
    );
    assert!(each(counted.len()) <= REQUESTS && each(writes) <= WRITES, "{}", census(&counted));
    let begun: Vec<_> =
        requests.iter().filter(|request| request.verb == "watch" && is_ours(request)).cloned().collect();
    assert!(watches <= WATCHES, "{watches} watches:\n{}", told(&begun));

    let mark = stage.mark().await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let rest = stage.requests_since(mark).await.unwrap();
    let changes: Vec<_> = rest.into_iter().filter(|request| is_change(request) && is_ours(request)).collect();
    assert!(changes.is_empty(), "writes at rest:\n{}", told(&changes));
    stage.stop_operator().await.unwrap();
}
