//! What is no plugin, or not one this Plugin object may be, is refused with what would help.

use pintle_plugin::{Export, Manifest};
use serde_json::{Value, json};

use crate::{
    encode,
    setting::{call, chain, line, load, load_bytes, target},
};

async fn check(name: &str, bytes: Vec<u8>, more: Value, reason: &str, expected: &str) {
    let error = load_bytes(name, bytes, &more).await.expect_err(name);
    let line = chain(&error);
    assert_eq!(error.reason(), reason, "{name}: {line}");
    assert!(line.contains(expected), "{name}: expected {expected:?} in {line:?}");
}

async fn check_guest(name: &str, reason: &str, expected: &str) {
    check(name, encode::guest(name), json!({}), reason, expected).await;
}

#[tokio::test]
async fn what_is_no_component_is_refused_by_what_it_is() {
    check_guest("core", "NotAComponent", "core module").await;
    check("garbage", b"#!/bin/sh\necho".to_vec(), json!({}), "NotWebAssembly", "magic number").await;
    check("nothing", Vec::new(), json!({}), "NotWebAssembly", "magic number").await;
    let mut cut = encode::guest("ready");
    cut.truncate(cut.len() / 2);
    check("cut", cut, json!({}), "NotCompiled", "cannot be compiled").await;
    check("large", vec![0; 33 << 20], json!({}), "TooLarge", "at most 33554432 are loaded").await;
}

#[tokio::test]
async fn a_component_that_is_no_plugin_says_what_is_missing() {
    check_guest("empty", "NotAPlugin", "it exports nothing").await;
    check_guest("info", "NotAPlugin", "none of value-mapper, post-renderer, readiness").await;
    check_guest("anonymous", "NotAPlugin", "does not export pintle:plugin/plugin-info@0.1").await;
}

#[tokio::test]
async fn imports_that_are_not_offered_are_listed() {
    check_guest("foreign", "ImportsNotOffered", "acme:gpu/read@1.0.0").await;
    let line = "imports wasi:clocks/monotonic-clock@0.2.0, wasi:random/random@0.2.0; the line `wasi: true` under spec";
    check_guest("wasi", "NeedsWasi", line).await;
}

#[tokio::test]
async fn a_guest_for_other_types_is_told_apart_before_its_first_call() {
    let other = encode::wit().replace("progress: option<u8>", "progress: option<u32>");
    check(
        "later",
        encode::guest_for("ready", &other),
        json!({}),
        "InterfaceMismatch",
        "version of readiness",
    )
    .await;
}

#[tokio::test]
async fn a_manifest_that_cannot_be_used_is_refused() {
    check_guest("manifest-garbled", "InvalidManifest", "not a manifest").await;
    check_guest("manifest-later", "InvalidManifest", "pintle.dev/manifest/v9").await;
    check_guest("manifest-escape", "InvalidManifest", "characters that cannot be shown").await;
    check_guest("describe-trap", "NotDescribed", "trap").await;
    check_guest("config", "InvalidConfig", "patterns must not be empty").await;
    check_guest("large", "TooLarge", "134217728 bytes of memory").await;
}

#[tokio::test]
async fn a_plugin_object_that_gives_the_impossible_is_refused_by_its_field() {
    let ready = || encode::guest("ready");
    let wild = json!({"grants": {"read": [{"apiGroups": ["apps"], "kinds": ["*"]}]}});
    check("wild", ready(), wild, "InvalidGrants", "spec.grants.read[0].kinds has a wildcard").await;
    let selector = json!({"grants": {"logs": [{"labelSelector": "a b"}]}});
    check("selector", ready(), selector, "InvalidGrants", "spec.grants.logs[0].labelSelector").await;
    let limits = json!({"limits": {"memory": "1Gi"}});
    check("limits", ready(), limits, "InvalidLimits", "at most 256Mi are given").await;
}

#[tokio::test]
async fn a_loaded_plugin_says_what_it_offers_and_uses() {
    let plugin = load("read", &json!({})).await.unwrap();
    assert_eq!(plugin.offers(), [Export::Readiness]);
    assert_eq!(plugin.imports(), ["kube-read"]);
    let Manifest { name, version, .. } = plugin.manifest();
    assert_eq!((name.as_str(), version.as_str()), ("guest", "0.1.0"));
    assert_eq!(load("mapper", &json!({})).await.unwrap().offers(), [Export::ValueMapper]);
}

#[tokio::test]
async fn wasi_has_a_still_clock_and_repeating_randomness() {
    let plugin = load("wasi", &json!({"wasi": true})).await.unwrap();
    for is_again in [false, true] {
        let result = plugin.check(call(pintle_api::Record::default()), target()).await;
        assert_eq!(line(&result), "Ready");
        assert!(result.called.is_pure() && result.reused == is_again, "{result:?}");
    }
}

#[tokio::test]
async fn wasi_has_no_files_no_network_and_no_environment() {
    let plugin = load("wasi-nothing", &json!({"wasi": true})).await.unwrap();
    let result = plugin.check(call(pintle_api::Record::default()), target()).await;
    assert_eq!(line(&result), "Ready");
}

#[tokio::test]
async fn a_changed_plugin_object_takes_effect_without_compiling_again() {
    let plugin = load("grow", &json!({})).await.unwrap();
    let small = plugin.rebind(&crate::setting::spec(&json!({"limits": {"memory": "1Mi"}}))).await.unwrap();
    let result = small.check(call(pintle_api::Record::default()), target()).await;
    assert!(line(&result).contains("gives 1048576"), "{}", line(&result));
    assert_eq!(plugin.limits().memory, 64 << 20, "the old one is as it was");
}
