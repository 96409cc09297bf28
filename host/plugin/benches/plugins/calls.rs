//! Calls: fresh ones beside a bare loop, answers that are given again, lists, many calls, and hostile neighbours.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use pintle_api::{Answer, Given, Object, Query, Read, Record, Timestamp, plugin::PluginSpec};
use pintle_plugin::{Artifact, Call, Engine, Operation, Options, Outcome, Plugin, Release, StepClock};
use serde_json::{Map, Value, json};

use crate::{bare::Bare, encode, median, percentiles, resident, table};

/// Calls of each kind that are timed, after a twentieth of them that is not.
const CALLS: usize = 2_000;
/// Rounds in which both sides take turns at many calls at once.
const ROUNDS: usize = 7;
/// Calls over which memory must stay.
const MANY: usize = 1_000_000;
/// Namespaces in a large cluster.
const NAMESPACES: usize = 3_000;

/// One guest on both sides, with what it is asked about.
struct Pair {
    what: &'static str,
    plugin: Plugin,
    bare: Bare,
    target: Arc<Object>,
}

#[derive(Clone, Copy)]
enum Side {
    Ours,
    Bare,
}

/// The part of the report about calls.
pub(crate) async fn measure(guest: &[u8]) -> String {
    // Answers are not given again: what is measured is calls.
    let engine = Engine::new(&Options { memo: 0, workers: 2, ..Options::default() }).unwrap();
    let small = small();
    let nothing = encode::guest("ready");
    let pairs = [
        Pair {
            what: "nothing to do",
            plugin: load(&engine, "ready", nothing.clone()).await,
            bare: Bare::new(&nothing),
            target: small,
        },
        // A status of an old generation: all of the target is parsed, nothing is read.
        Pair {
            what: "check of a 10 KB object",
            plugin: load(&engine, "driver-loaded", guest.to_vec()).await,
            bare: Bare::new(guest),
            target: Arc::new(daemon_set(10 * 1024, 0)),
        },
    ];
    let (mut single, mut many) = (Vec::new(), Vec::new());
    for pair in &pairs {
        single.push(pair.one_by_one().await);
        many.push(pair.four_at_once().await);
    }
    let single = table(&["one call", "p50, us", "p99, us", "bare p50, us", "times bare", "budget"], &single);
    let many =
        table(&["four at once, two threads", "a second", "bare, a second", "times bare", "budget"], &many);
    let others = others(&engine, guest, &pairs).await;
    format!("## Calls, {} profile\n\n{single}{many}{others}", engine.profile())
}

// === impl Pair ===

impl Pair {
    async fn one_by_one(&self) -> Vec<String> {
        let (mut ours, mut bare) = (Vec::with_capacity(CALLS), Vec::with_capacity(CALLS));
        for round in 0..CALLS + CALLS / 20 {
            let (one, other) = (self.call().await, self.bare.call(&self.target).await);
            if round >= CALLS / 20 {
                ours.push(one);
                bare.push(other);
            }
        }
        let ((p50, p99), (of_bare, _)) = (percentiles(ours), percentiles(bare));
        let budget = if self.what.starts_with("nothing") { "30 us, 1.3" } else { "130 us, 1.3" };
        let ratio = format!("{:.2}", p50 / of_bare);
        vec![self.what.into(), us(p50), us(p99), us(of_bare), ratio, budget.into()]
    }

    async fn four_at_once(&self) -> Vec<String> {
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(self.rate(Side::Ours).await);
            bare.push(self.rate(Side::Bare).await);
        }
        let (ours, bare) = (median(ours), median(bare));
        let budget = if self.what.starts_with("nothing") { "1.3" } else { "10,000, 1.3" };
        let ratio = format!("{:.2}", bare / ours);
        vec![self.what.into(), format!("{ours:.0}"), format!("{bare:.0}"), ratio, budget.into()]
    }

    /// Calls a second of four tasks, a fair share of [`CALLS`] each.
    async fn rate(&self, side: Side) -> f64 {
        let began = Instant::now();
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let (plugin, bare, target) =
                    (self.plugin.clone(), self.bare.clone(), Arc::clone(&self.target));
                tokio::spawn(async move {
                    for _ in 0..CALLS / 4 {
                        match side {
                            Side::Ours => call_of(&plugin, &target, Record::default()).await,
                            Side::Bare => bare.call(&target).await,
                        };
                        // Each one lets others have the thread.
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        CALLS as f64 / began.elapsed().as_secs_f64()
    }

    async fn call(&self) -> Duration {
        call_of(&self.plugin, &self.target, Record::default()).await
    }
}

/// How long one call takes; it must be answered.
async fn call_of(plugin: &Plugin, target: &Arc<Object>, facts: Record) -> Duration {
    let call = call(facts);
    let began = Instant::now();
    let result = plugin.check(call, Arc::clone(target)).await;
    let took = began.elapsed();
    assert!(matches!(result.outcome, Outcome::Answered(_)), "{:?}", result.outcome);
    took
}

/// Calls that have no bare counterpart.
async fn others(engine: &Engine, guest: &[u8], pairs: &[Pair; 2]) -> String {
    let mut rows = Vec::new();
    let again = Engine::new(&Options { workers: 2, ..Options::default() }).unwrap();
    let kept = load(&again, "driver-loaded", guest.to_vec()).await;
    let no_facts = Record::default();
    rows.push(
        timed("the same answer about 10 KB, given again", &kept, &pairs[1].target, &no_facts, CALLS, "-")
            .await,
    );
    let set = Arc::new(daemon_set(2 * 1024, 1));
    for (nodes, what) in [(3, "check of 3 pods and their logs"), (100, "check of 100 pods and their logs")] {
        rows.push(timed(what, &pairs[1].plugin, &set, &facts(nodes), CALLS / 4, "-").await);
    }
    let pages = load(engine, "pages", encode::guest("pages")).await;
    let budget = "10,000 us";
    rows.push(
        timed(
            "list of 3,000 namespaces, their names",
            &pages,
            &pairs[0].target,
            &namespaces(),
            CALLS / 10,
            budget,
        )
        .await,
    );
    rows.extend(beside_a_hostile_one(engine, &pairs[1]).await);
    table(&["other calls", "p50, us", "p99, us", "budget"], &rows)
}

async fn timed(
    what: &str,
    plugin: &Plugin,
    target: &Arc<Object>,
    facts: &Record,
    calls: usize,
    budget: &str,
) -> Vec<String> {
    let mut times = Vec::with_capacity(calls);
    for round in 0..calls + calls / 20 {
        let took = call_of(plugin, target, facts.clone()).await;
        if round >= calls / 20 {
            times.push(took);
        }
    }
    let (p50, p99) = percentiles(times);
    vec![what.into(), us(p50), us(p99), budget.into()]
}

/// The same calls alone, and while a plugin that never ends is called by four releases.
async fn beside_a_hostile_one(engine: &Engine, pair: &Pair) -> Vec<Vec<String>> {
    let spin = load(engine, "loop", encode::guest("loop")).await;
    let spaced = async || {
        let mut times = Vec::with_capacity(CALLS / 4);
        for _ in 0..CALLS / 4 {
            tokio::time::sleep(Duration::from_micros(1_500)).await;
            times.push(pair.call().await);
        }
        percentiles(times)
    };
    let alone = spaced().await;
    let spinners: Vec<_> = (0..4)
        .map(|number| {
            let (spin, target) = (spin.clone(), Arc::clone(&pair.target));
            let mut asked = call(Record::default());
            asked.release.name = format!("hostile-{number}");
            tokio::spawn(async move {
                loop {
                    spin.check(asked.clone(), Arc::clone(&target)).await;
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let beside = spaced().await;
    spinners.iter().for_each(tokio::task::JoinHandle::abort);
    let row =
        |what: &str, (p50, p99): (f64, f64), budget: String| vec![what.into(), us(p50), us(p99), budget];
    vec![
        row("check of a 10 KB object, one every 1.5 ms", alone, "-".into()),
        row(
            "the same beside a plugin that never ends, four times",
            beside,
            format!("{} us p99", us(alone.1 + 5_000.0)),
        ),
    ]
}

/// Memory and descriptors of the process before and after very many calls: nothing of a call may stay.
pub(crate) async fn soak() -> String {
    let engine = Engine::new(&Options { memo: 0, workers: 2, ..Options::default() }).unwrap();
    let (plugin, target) = (load(&engine, "ready", encode::guest("ready")).await, small());
    let call = || call_of(&plugin, &target, Record::default());
    let descriptors = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    for _ in 0..MANY / 10 {
        call().await;
    }
    let (before, open) = (resident(), descriptors());
    let began = Instant::now();
    for _ in 0..MANY {
        call().await;
    }
    let took = began.elapsed().as_secs_f64();
    format!(
        "{MANY} calls, one after another, in {took:.0} s: memory {before:.1} MB before, {:.1} MB after (budget 2 MB more); \
         {open} descriptors before, {} after.\n\n",
        resident(),
        descriptors()
    )
}

fn us(time: f64) -> String {
    format!("{time:.1}")
}

async fn load(engine: &Engine, name: &str, bytes: Vec<u8>) -> Plugin {
    let spec: PluginSpec = serde_json::from_value(json!({"image": "oci://registry.test/guest:1", "grants": {
        "read": [{"apiGroups": [""], "kinds": ["Pod"], "namespaces": ["$release"],
            "fields": ["metadata.name", "spec.nodeName", "status"]},
            {"apiGroups": [""], "kinds": ["Namespace"], "fields": ["metadata.name"]}],
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

fn namespaces() -> Record {
    let mut facts = Record::default();
    let all = (0..NAMESPACES).map(|number| {
        Arc::new(object(json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": format!("team-{number:04}"), "uid": format!("0-{number}"),
                "labels": {"kubernetes.io/metadata.name": format!("team-{number:04}"), "team": "a"},
                "annotations": {"example.org/owner": "somebody@example.org"}},
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}})))
    });
    let query =
        Query { api_version: "v1".into(), kind: "Namespace".into(), namespace: None, label_selector: None };
    facts.insert(Read::List(query), Given::Objects(Answer::Found(all.collect())));
    facts
}

fn small() -> Arc<Object> {
    Arc::new(object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})))
}

fn object(json: Value) -> Object {
    Object::new(json).unwrap()
}
