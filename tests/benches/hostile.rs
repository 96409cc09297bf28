//! What a hostile plugin costs the releases beside it: from the event that a release waits for to the status that
//! tells it, on the real control plane.
//!
//! `cargo xtask bench hostile` writes `tests/HOSTILE.md`. Four releases call a plugin that never ends, as long as
//! they may; meanwhile another one is asked again by event after event. The same events alone come before.
#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench stops at the first surprise"
)]

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use futures::{Stream, StreamExt as _};
use kube::{Api, runtime::watcher};
use pintle_api::SpecialResource;
use pintle_tests::{
    Stage,
    stage::{plane, push, push_plugin},
};
use serde_json::{Value, json};

#[path = "../../host/plugin/tests/plugin/encode.rs"]
#[allow(dead_code, reason = "of the plugin host's tests, of which a part is used here")]
mod encode;

/// Events that are timed, each way, after a tenth of them that is not.
const EVENTS: usize = 200;
/// Releases with the hostile plugin: as many as one plugin has slots.
const HOSTILE: usize = 4;
/// What one hostile plugin may add to the slowest of a hundred.
const BUDGET: f64 = 5.0;
const NAME: &str = "bench-hostile";

type Changes = std::pin::Pin<Box<dyn Stream<Item = Result<Option<SpecialResource>, watcher::Error>> + Send>>;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let [alone, beside] = runtime.block_on(measure());
    let row = |what: &str, (p50, p99): (f64, f64)| format!("| {what} | {p50:.1} | {p99:.1} |\n");
    let text = format!(
        "# What a hostile plugin costs others\n\nWritten by `cargo xtask bench hostile`: from the event that a release \
         waits for to the status that tells it, milliseconds, {EVENTS} events each way in one operator on the real \
         control plane. The hostile plugin never ends and is called by {HOSTILE} releases at once.\n\n\
         | event to status | p50 | p99 |\n|---|---|---|\n{}{}\nAt p99 it adds {:.1} ms; the budget is {BUDGET} ms.\n",
        row("alone", alone),
        row("beside the hostile plugin", beside),
        beside.1 - alone.1
    );
    println!("{text}");
    fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("HOSTILE.md"), text).unwrap();
}

async fn measure() -> [(f64, f64); 2] {
    let mut stage = Stage::new(NAME).await.unwrap();
    stage.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}})).await.unwrap();
    install(&stage).await;
    let owners: Api<SpecialResource> = Api::all(stage.client.clone());
    let mut changes: Changes = Box::pin(watcher::watch_object(owners, NAME).boxed());
    let alone = events(&stage, &mut changes, "alone").await;
    for number in 0..HOSTILE {
        stage
            .apply(owner(&format!("{NAME}-hostile-{number}"), "wait", &format!("{NAME}-loop")))
            .await
            .unwrap();
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let beside = events(&stage, &mut changes, "beside").await;
    stage.stop_operator().await.unwrap();
    [alone, beside]
}

/// Two Plugins, a chart whose one object may name either, and the release that is asked again.
async fn install(stage: &Stage) {
    let plane = plane().await.unwrap();
    let read =
        json!([{"apiGroups": [""], "kinds": ["ConfigMap"], "namespaces": ["$release"], "fields": ["data"]}]);
    let told = push_plugin(plane, "scripted-hook").await.unwrap();
    let never = push(plane, "loop", encode::guest("loop")).await.unwrap();
    for (name, image, more) in [
        ("told", told, json!({"grants": {"read": read}})),
        // As long as a plugin may ask for: the breaker opens after three of these.
        ("loop", never, json!({"limits": {"timeout": "30s"}})),
    ] {
        let mut spec = json!({"image": image});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let plugin = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Plugin",
            "metadata": {"name": format!("{NAME}-{name}")}, "spec": spec});
        stage.apply(plugin).await.unwrap();
    }
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"],
        "verbs": ["get", "list", "watch", "create", "patch", "delete"]}]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": rules,
        "metadata": {"name": NAME, "labels": {"pintle.dev/aggregate-to-operator": "true"}}});
    stage.apply(role).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("templates")).unwrap();
    let write = |path: &str, text: &str| fs::write(folder.path().join(path), text).unwrap();
    write("Chart.yaml", "apiVersion: v2\nname: one\nversion: 0.1.0\n");
    write(
        "templates/0000-one.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n  annotations:\n    {{- range $key, $plugin := .Values.by }}\n    pintle.dev/{{ $key }}: {{ $plugin }}\n    {{- end }}\n",
    );
    stage.install_chart(folder.path()).await.unwrap();
    script(stage, "at first").await;
    stage.apply(owner(NAME, "post", &format!("{NAME}-told"))).await.unwrap();
}

fn owner(name: &str, annotation: &str, plugin: &str) -> Value {
    json!({
        "apiVersion": "sro.openshift.io/v1beta1", "kind": "SpecialResource",
        "metadata": {"name": name, "labels": {"test": NAME}},
        "spec": {"namespace": name, "set": {"by": {annotation: plugin}}, "chart": {"name": "one", "version": "0.1.0",
            "repository": {"name": "chart", "url": format!("cm://{NAME}/chart")}}}
    })
}

async fn script(stage: &Stage, message: &str) {
    let line = json!({"does": "hold", "reason": "Held", "message": message}).to_string();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "script", "namespace": NAME},
        "data": {"post": line}});
    stage.apply(map).await.unwrap();
}

/// p50 and p99 in milliseconds, from before the write that is the event to the status that has its word.
async fn events(stage: &Stage, changes: &mut Changes, what: &str) -> (f64, f64) {
    let mut times = Vec::with_capacity(EVENTS);
    for number in 0..EVENTS + EVENTS / 10 {
        let message = format!("{what} {number}");
        let began = Instant::now();
        script(stage, &message).await;
        let told = tokio::time::timeout(Duration::from_secs(60), is_told(changes, &message)).await;
        told.unwrap_or_else(|_| panic!("no status says {message:?}"));
        if number >= EVENTS / 10 {
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        // Each event finds an operator that has nothing else to do.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    times.sort_by(f64::total_cmp);
    (times[EVENTS / 2], times[EVENTS * 99 / 100])
}

async fn is_told(changes: &mut Changes, message: &str) {
    while let Some(change) = changes.next().await {
        let Ok(Some(owner)) = change else { continue };
        let mut states = owner.status.iter().flat_map(|status| &status.states);
        if states.any(|state| state.blockers.iter().any(|blocker| blocker.message == message)) {
            return;
        }
    }
}
