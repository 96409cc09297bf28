//! What a call costs: p50 and p99 of 1,000 calls after 50 for warm-up, and calls a second on two threads,
//! each beside the same guest in a bare loop over wasmtime: the target made into text, a fresh store, the call;
//! no grants, no record, no limits but the engine's.
//!
//! `PINTLE_GUESTS=<folder with driver_loaded.wasm> cargo bench -p pintle-plugin --bench calls`; without the
//! folder only the guest that does nothing is measured.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench stops at the first surprise"
)]

#[path = "calls/bare.rs"]
mod bare;
#[path = "../tests/plugin/encode.rs"]
#[allow(dead_code, reason = "of the tests' guests, of which a part is measured")]
mod encode;

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use pintle_api::{Answer, Given, Object, Query, Read, Record, Timestamp, plugin::PluginSpec};
use pintle_plugin::{Artifact, Call, Engine, Operation, Options, Outcome, Plugin, Release, StepClock};
use serde_json::{Map, Value, json};

const CALLS: usize = 1_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    // Answers are not given again: what is measured is calls.
    let engine = Engine::new(&Options { memo: 0, workers: 2, ..Options::default() }).unwrap();
    println!("profile {}", engine.profile());
    let nothing = load(&engine, "ready", encode::guest("ready")).await;
    let bare_nothing = bare::Bare::new(&encode::guest("ready"));
    let small = Arc::new(object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})));
    let p50 = report("fresh call, nothing to do", &nothing, &call(Record::default()), &small).await;
    ratio(p50, bare_nothing.report("bare: fresh call, nothing to do", &small, CALLS).await, "of a bare call");
    let rate = throughput("fresh call, nothing to do", &nothing, &call(Record::default()), &small).await;
    ratio(
        bare_nothing.throughput("bare: fresh call, nothing to do", &small, CALLS).await,
        rate,
        "of a bare loop's time",
    );
    soak(&nothing, &call(Record::default()), &small).await;
    let Some(folder) = std::env::var_os("PINTLE_GUESTS") else {
        println!("PINTLE_GUESTS names no folder: driver-loaded is not measured");
        return;
    };
    let bytes = std::fs::read(PathBuf::from(folder).join("driver_loaded.wasm")).unwrap();
    let began = Instant::now();
    let plugin = load(&engine, "driver-loaded", bytes.clone()).await;
    println!(
        "{:<44} {:>9.1} ms  ({} KB)",
        "compile, try and describe driver-loaded",
        ms(began.elapsed()),
        bytes.len() / 1024
    );
    // A status of an old generation: all of the target is parsed, nothing is read.
    let set = Arc::new(daemon_set(10 * 1024, 0));
    let bare = bare::Bare::new(&bytes);
    let p50 = report("check of a 10 KB object", &plugin, &call(Record::default()), &set).await;
    ratio(p50, bare.report("bare: check of a 10 KB object", &set, CALLS).await, "of a bare call");
    let rate = throughput("check of a 10 KB object", &plugin, &call(Record::default()), &set).await;
    ratio(bare.throughput("bare: check of a 10 KB object", &set, CALLS).await, rate, "of a bare loop's time");
    again(&bytes, &set).await;
    let set = Arc::new(daemon_set(2 * 1024, 1));
    for nodes in [3, 100] {
        let facts = facts(nodes);
        report(&format!("check of {nodes} pods and their logs"), &plugin, &call(facts), &set).await;
    }
}

/// Prints p50 and p99; returns p50 in microseconds.
async fn report(what: &str, plugin: &Plugin, call: &Call, target: &Arc<Object>) -> f64 {
    let mut whole = Vec::with_capacity(CALLS);
    let mut inside = Vec::with_capacity(CALLS);
    for round in 0..CALLS + 50 {
        let began = Instant::now();
        let result = plugin.check(call.clone(), Arc::clone(target)).await;
        let took = began.elapsed();
        assert!(matches!(result.outcome, Outcome::Answered(_)), "{:?}", result.outcome);
        if round >= 50 {
            whole.push(took);
            inside.push(result.stats.duration);
        }
    }
    let [(p50, p99), (in50, in99)] = [whole, inside].map(percentiles);
    println!("{what:<44} {p50:>7.1} us p50 {p99:>7.1} us p99   (in the lane {in50:.1} / {in99:.1})");
    p50
}

fn ratio(ours: f64, bare: f64, of_what: &str) {
    println!("{:<44} {:>7.2} times that {of_what}", "", ours / bare);
}

/// The same check with answers kept: nothing changed, so the guest does not run.
async fn again(bytes: &[u8], target: &Arc<Object>) {
    let engine = Engine::new(&Options { workers: 2, ..Options::default() }).unwrap();
    let plugin = load(&engine, "driver-loaded", bytes.to_vec()).await;
    let mut times = Vec::with_capacity(CALLS);
    for round in 0..CALLS + 50 {
        let began = Instant::now();
        let result = plugin.check(call(Record::default()), Arc::clone(target)).await;
        if round >= 50 {
            assert!(result.reused);
            times.push(began.elapsed());
        }
    }
    let (p50, p99) = percentiles(times);
    println!("{:<44} {p50:>7.1} us p50 {p99:>7.1} us p99", "the same answer, given again");
}

/// Memory of the process before and after many calls: nothing of a call may stay.
async fn soak(plugin: &Plugin, call: &Call, target: &Arc<Object>) {
    let before = resident();
    for _ in 0..100 * CALLS {
        plugin.check(call.clone(), Arc::clone(target)).await;
    }
    let (before, after) = (before / 1024, resident() / 1024);
    println!("{:<44} {before} KB before, {after} KB after", format!("memory over {} calls", 100 * CALLS));
}

/// Resident memory in bytes; 0 where there is no `/proc`.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4096
}

/// Prints and returns calls a second.
async fn throughput(what: &str, plugin: &Plugin, call: &Call, target: &Arc<Object>) -> f64 {
    let began = Instant::now();
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let (plugin, call, target) = (plugin.clone(), call.clone(), Arc::clone(target));
            tokio::spawn(async move {
                for _ in 0..CALLS {
                    plugin.check(call.clone(), Arc::clone(&target)).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let rate = (4 * CALLS) as f64 / began.elapsed().as_secs_f64();
    println!("{what:<44} {rate:>7.0} a second, four at once");
    rate
}

pub(crate) fn percentiles(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e6;
    (at(50), at(99))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

async fn load(engine: &Engine, name: &str, bytes: Vec<u8>) -> Plugin {
    let spec: PluginSpec = serde_json::from_value(json!({"image": "oci://registry.test/guest:1", "grants": {
        "read": [{"apiGroups": [""], "kinds": ["Pod"], "namespaces": ["$release"],
            "fields": ["metadata.name", "spec.nodeName", "status"]}],
        "logs": [{"namespaces": ["$release"]}]}}))
    .unwrap();
    let artifact = Artifact { name: name.to_owned(), digest: "sha256:0".to_owned(), bytes: bytes.into() };
    Plugin::load(engine, artifact, &spec).await.unwrap()
}

fn call(facts: Record) -> Call {
    Call {
        facts: Arc::new(facts),
        operation: Operation::Steady,
        release: Release { name: "r".into(), namespace: "n".into(), revision: 1, ..Release::default() },
        state: "1000".into(),
        pool: String::new(),
        args: Map::new(),
        owner: Arc::new(object(json!({"apiVersion": "a/v1", "kind": "Owner", "metadata": {"name": "o"}}))),
        host_fields: Arc::new([]),
        values: Arc::new(json!({})),
        saved: None,
        own: Arc::new(BTreeSet::new()),
        clock: StepClock { now: Timestamp::UNIX_EPOCH, elapsed: Duration::ZERO, attempt: 1 },
    }
}

/// A DaemonSet whose status alone, which the plugin asks for, is about `size` bytes of JSON.
fn daemon_set(size: usize, observed: u64) -> Object {
    let condition = json!({"type": "Something", "status": "True", "reason": "BecauseOfIt",
        "message": "a sentence of about the usual length for a condition", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let conditions = vec![condition.clone(); size / condition.to_string().len()];
    object(json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "driver", "namespace": "n", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "driver"}}},
        "status": {"observedGeneration": observed, "desiredNumberScheduled": 1, "conditions": conditions}}))
}

fn facts(nodes: usize) -> Record {
    let mut facts = Record::default();
    let names: Vec<String> = (0..nodes).map(|node| format!("node-{node:03}")).collect();
    let pods = names.iter().map(|node| {
        Arc::new(object(json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("driver-{node}"), "namespace": "n", "labels": {"app": "driver"}},
            "spec": {"nodeName": node}, "status": {"phase": "Running", "containerStatuses": [
                {"name": "driver", "ready": true, "restartCount": 0, "state": {"running": {}}}]}})))
    });
    let query = Query {
        api_version: "v1".into(),
        kind: "Pod".into(),
        namespace: Some("n".into()),
        label_selector: Some("app=driver".into()),
    };
    facts.insert(Read::List(query), Given::Objects(Answer::Found(pods.collect())));
    for node in &names {
        let log = pintle_api::LogTail {
            namespace: "n".into(),
            pod: format!("driver-{node}"),
            container: None,
            previous: false,
            lines: 200,
            max_bytes: 256 * 1024,
        };
        let text = "starting\n+ insmod /lib/modules/4.18.0/extra/simple-kmod.ko\n".to_owned();
        facts.insert(Read::Tail(log), Given::Text(Answer::Found(text)));
    }
    facts
}

fn object(json: Value) -> Object {
    Object::new(json).unwrap()
}
