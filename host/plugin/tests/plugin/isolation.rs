//! One guest does not hold up another, and nothing of a call is left behind.

use std::{
    process::Command,
    sync::{
        Arc, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use pintle_api::Record;
use pintle_plugin::{Allocation, Artifact, Engine, Options, Plugin, Profile};
use serde_json::json;

use crate::{
    encode,
    setting::{call, line, load, spec, target},
};

async fn load_into(engine: &Engine, name: &str, timeout: &str) -> Plugin {
    let artifact =
        Artifact { name: name.into(), digest: "sha256:0".into(), bytes: encode::guest(name).into() };
    Plugin::load(engine, artifact, &spec(&json!({"limits": {"timeout": timeout}}))).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_spinners_do_not_hold_up_another_plugin() {
    let engine = Engine::new(&Options { workers: 2, ..Options::default() }).unwrap();
    let spinner = load_into(&engine, "loop", "2s").await;
    let ready = load_into(&engine, "ready", "2s").await;
    let spinning: Vec<_> = (0..4)
        .map(|_| {
            let spinner = spinner.clone();
            tokio::spawn(async move { spinner.check(call(Record::default()), target()).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut times = Vec::new();
    for _ in 0..200 {
        let began = Instant::now();
        assert_eq!(line(&ready.check(call(Record::default()), target()).await), "Ready");
        times.push(began.elapsed());
    }
    times.sort_unstable();
    println!("beside four spinners: p50 {:?}, p99 {:?}", times[100], times[198]);
    assert!(times[100] < Duration::from_millis(20), "p50 {:?}, p99 {:?}", times[100], times[198]);
    for spinner in spinning {
        assert!(line(&spinner.await.unwrap()).starts_with("timeout"));
    }
}

#[tokio::test]
async fn slots_come_back_after_each_way_a_call_can_end() {
    let engine = Engine::new(&Options::default()).unwrap();
    let (trap, grow, slow) = (
        load_into(&engine, "trap", "1s").await,
        load_into(&engine, "grow", "1s").await,
        load_into(&engine, "loop", "20ms").await,
    );
    for _ in 0..40 {
        assert!(line(&trap.check(call(Record::default()), target()).await).starts_with("trap"));
        assert!(line(&grow.check(call(Record::default()), target()).await).starts_with("oom"));
    }
    for _ in 0..10 {
        assert!(line(&slow.check(call(Record::default()), target()).await).starts_with("timeout"));
        let dropped = slow.check(call(Record::default()), target());
        assert!(tokio::time::timeout(Duration::from_millis(5), dropped).await.is_err(), "it was given up");
    }
    assert!(line(&trap.check(call(Record::default()), target()).await).starts_with("trap"));
}

#[tokio::test]
async fn the_clock_rests_when_no_call_runs() {
    let engine = Engine::new(&Options::default()).unwrap();
    let plugin = load_into(&engine, "loop", "50ms").await;
    let running = tokio::spawn({
        let plugin = plugin.clone();
        async move { plugin.check(call(Record::default()), target()).await }
    });
    let began = Instant::now();
    while !engine.is_ticking() {
        assert!(began.elapsed() < Duration::from_secs(2), "it never ran");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    running.await.unwrap();
    let ended = Instant::now();
    while engine.is_ticking() {
        assert!(ended.elapsed() < Duration::from_secs(2), "it never rests");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn guests_run_the_same_without_a_pool() {
    let engine =
        Engine::new(&Options { allocation: Allocation::OnDemand, workers: 1, ..Options::default() }).unwrap();
    assert_eq!(engine.profile(), Profile::OnDemand);
    for (name, expected) in [("ready", "Ready"), ("grow", "oom"), ("recursion", "trap"), ("loop", "timeout")]
    {
        let plugin = load_into(&engine, name, "200ms").await;
        let line = line(&plugin.check(call(Record::default()), target()).await);
        assert!(line.starts_with(expected), "{name}: {line}");
    }
}

#[test]
fn a_process_without_the_address_space_for_a_pool_does_without() {
    if std::env::var_os("PINTLE_TEST_SMALL").is_some() {
        let engine = Engine::new(&Options::default()).unwrap();
        assert_eq!(engine.profile(), Profile::OnDemand);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let line = runtime.block_on(async {
            let plugin = load_into(&engine, "ready", "1s").await;
            line(&plugin.check(call(Record::default()), target()).await)
        });
        assert_eq!(line, "Ready");
        return;
    }
    let name = "isolation::a_process_without_the_address_space_for_a_pool_does_without";
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 8388608 && exec \"$0\" --exact \"$1\" --test-threads 1"])
        .args([std::env::current_exe().unwrap().as_os_str(), name.as_ref()])
        .env("PINTLE_TEST_SMALL", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_outlives_the_runtime_that_loaded_it_and_engines_stop_when_dropped() {
    let plugin = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(load("ready", &json!({}))).unwrap()
    });
    let plugin = plugin.join().unwrap();
    assert_eq!(line(&plugin.check(call(Record::default()), target()).await), "Ready");
    drop(Engine::new(&Options::default()).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_is_swapped_under_load_without_a_failed_call() {
    let engine = Engine::new(&Options { memo: 0, ..Options::default() }).unwrap();
    let serving = Arc::new(RwLock::new(load_into(&engine, "ready", "2s").await));
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..6)
        .map(|caller| {
            let (serving, stop) = (Arc::clone(&serving), Arc::clone(&stop));
            tokio::spawn(async move {
                let (mut calls, mut pending) = (0_u32, 0_u32);
                while !stop.load(Ordering::Relaxed) {
                    let plugin = serving.read().unwrap().clone();
                    let mut asked = call(Record::default());
                    asked.release.name = format!("release-{caller}");
                    let line = line(&plugin.check(asked, target()).await);
                    assert!(line == "Ready" || line.starts_with("Pending"), "{line}");
                    calls += 1;
                    pending += u32::from(line != "Ready");
                }
                (calls, pending)
            })
        })
        .collect();
    for round in 0..10 {
        let next = load_into(&engine, if round % 2 == 0 { "pending" } else { "ready" }, "2s").await;
        *serving.write().unwrap() = next;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        let (calls, pending) = caller.await.unwrap();
        assert!(
            calls > pending && pending > 0,
            "both versions answered: {pending} of {calls} were the other"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_with_many_slow_calls_does_not_keep_another_from_the_same_plugin() {
    let engine = Engine::new(&Options { workers: 2, ..Options::default() }).unwrap();
    let spinner = load_into(&engine, "loop", "100ms").await;
    let asked = |release: &str| {
        let mut asked = call(Record::default());
        asked.release.name = release.to_owned();
        asked
    };
    let greedy: Vec<_> = (0..24)
        .map(|_| {
            let (spinner, asked) = (spinner.clone(), asked("greedy"));
            tokio::spawn(async move { spinner.check(asked, target()).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let modest = spinner.check(asked("modest"), target()).await;
    let waiting = greedy.iter().filter(|call| !call.is_finished()).count();
    // Four run at once: its turn comes after the first four, while most of the others still wait.
    assert!(waiting >= 12, "only {waiting} of 24 still waited after {:?}", modest.stats.queued);
    for call in greedy {
        assert!(line(&call.await.unwrap()).starts_with("timeout"));
    }
}
