//! Faults of plugins: the object is applied and its gate stays closed, whatever the plugin does.

use std::time::{Duration, Instant};

use pintle_tests::{Stage, stage::condition};
use serde_json::{Value, json};

use super::{
    case::{Case, blockers, push_bytes, push_guest},
    chart::fixture,
    encode,
    registry::{Forward, Liar},
};

/// Runs a row whose fault is what Plugin there is: the state is written, nothing after it is, and
/// another image ends it.
async fn gate_stays_closed(case: &Case, image: &str, more: Value) {
    case.plugin(image, more).await;
    // Watched from the start: a failure that is retried is told in other words after three tries.
    tokio::join!(case.fails(), case.start_with_plugin());
    case.is_applied("second").await;
    case.lacks(&["third"]).await;
}

async fn mend(case: Case) {
    case.plugin(&push_guest("ready").await, json!({})).await;
    case.ready().await;
    case.is_applied("third").await;
    case.end().await;
}

/// A guest that is called and does something it must not.
async fn guest_misbehaves(name: &str, guest: &str) {
    let case = Case::begin(name).await;
    let limits = json!({"limits": {"timeout": "300ms", "memory": "16Mi"}});
    gate_stays_closed(&case, &push_guest(guest).await, limits).await;
    mend(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plugin_unknown() {
    let case = Case::begin("plugin-unknown").await;
    case.start_with_plugin().await;
    case.fails().await;
    case.is_applied("second").await;
    case.lacks(&["third"]).await;
    mend(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn registry_down() {
    let case = Case::begin("registry-down").await;
    let image = push_guest("ready").await;
    let (registry, rest) = image.trim_start_matches("oci://").split_once('/').unwrap();
    let forward = Forward::reserve().await;
    gate_stays_closed(&case, &format!("oci://127.0.0.1:{}/{rest}", forward.port()), json!({})).await;
    let _up = forward.start(registry).await;
    case.ready().await;
    case.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn digest_wrong() {
    let case = Case::begin("digest-wrong").await;
    let liar = Liar::start().await;
    let image = format!("oci://127.0.0.1:{}/test/lie@sha256:{}", liar.port(), "ab".repeat(32));
    gate_stays_closed(&case, &image, json!({})).await;
    mend(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn image_missing() {
    let case = Case::begin("image-missing").await;
    let image = push_guest("ready").await;
    let name = image.split_once('@').unwrap().0;
    gate_stays_closed(&case, &format!("{name}@sha256:{}", "ab".repeat(32)), json!({})).await;
    mend(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn image_by_tag() {
    let case = Case::begin("image-by-tag").await;
    let image = push_guest("ready").await;
    let name = image.split_once('@').unwrap().0;
    gate_stays_closed(&case, &format!("{name}:1"), json!({})).await;
    mend(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn core_module() {
    let case = Case::begin("core-module").await;
    gate_stays_closed(&case, &push_guest("core").await, json!({})).await;
    mend(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_lacking() {
    guest_misbehaves("readiness-lacking", "mapper").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plugin_traps() {
    let case = Case::begin("plugin-traps").await;
    gate_stays_closed(&case, &push_guest("trap").await, json!({})).await;
    let is_paused = |owner: &pintle_api::SpecialResource| {
        let paused = |blocker: &pintle_api::Blocker| {
            blocker.reason == "PluginPaused" && blocker.message.contains("the plugin trapped")
        };
        condition(owner, "Errored").as_deref() == Some("True") && blockers(owner).iter().any(paused)
    };
    case.stage.wait_until("paused, with the reason", is_paused).await.unwrap();
    mend(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plugin_loops() {
    guest_misbehaves("plugin-loops", "loop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plugin_takes_memory() {
    guest_misbehaves("plugin-takes-memory", "grow").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plugin_floods_log() {
    guest_misbehaves("plugin-floods-log", "flood").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn grant_missing() {
    let case = Case::begin("grant-missing").await;
    let licence = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "licence", "namespace": "grant-missing"}
    });
    case.stage.apply(licence).await.unwrap();
    let guest = encode::encode("licence", &fixture("guests/licence.wat"), &encode::wit());
    let image = push_bytes("licence", guest).await;
    gate_stays_closed(&case, &image, json!({})).await;
    let grant = json!({"apiGroups": [""], "kinds": ["ConfigMap"], "namespaces": ["$release"]});
    case.plugin(&image, json!({"grants": {"read": [grant]}})).await;
    case.ready().await;
    case.end().await;
}

/// While one release calls a guest that never ends, another one in the same operator becomes Ready.
#[tokio::test(flavor = "multi_thread")]
async fn plugin_hostile_to_others() {
    let case = Case::begin("plugin-hostile-to-others").await;
    gate_stays_closed(&case, &push_guest("loop").await, json!({"limits": {"timeout": "2s"}})).await;
    let began = Instant::now();
    case.stage.apply(case.owner("plugin-hostile-neighbour", json!({}))).await.unwrap();
    let neighbour = Stage::without_operator("plugin-hostile-neighbour").await.unwrap();
    neighbour.wait_until_ready().await.unwrap();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "the neighbour took {took:?}");
    let waits = |owner: &pintle_api::SpecialResource| condition(owner, "Ready").as_deref() == Some("False");
    case.stage.wait_until("still waiting", waits).await.unwrap();
    mend(case).await;
}
