#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::fake::Host;

use super::*;

fn node(name: &str, runtime: &str, labels: Value) -> Value {
    let mut all = json!({
        "feature.node.kubernetes.io/system-os_release.ID": "ubuntu",
        "feature.node.kubernetes.io/system-os_release.VERSION_ID": "24.04"
    });
    all.as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": all},
        "status": {"nodeInfo": {"containerRuntimeVersion": runtime, "kernelVersion": "6.8.0"}}})
}

fn mapped(host: Host) -> Value {
    serde_json::from_str(host.map_values::<AcceleratorValues>().unwrap().values()).unwrap()
}

#[test]
fn the_runtime_is_crio_on_openshift_and_containerd_where_any_node_has_it() {
    let two = |labels: Value| {
        Host::new().object(node("a", "cri-o://1.34", labels)).object(node("b", "containerd://2.1", json!({})))
    };
    assert_eq!(mapped(two(json!({})))["runtime"]["socket"], "/run/containerd/containerd.sock");
    let openshift = mapped(two(json!({"node.openshift.io/os_id": "rhcos"})));
    assert_eq!(openshift["runtime"]["name"], "crio");
    let docker = mapped(Host::new().object(node("a", "docker://27", json!({}))));
    assert_eq!(docker["runtime"]["config"], "/etc/docker/daemon.json");
}

#[test]
fn modules_and_parameters_are_those_of_the_platform_and_the_guests() {
    let config = json!({"guestLabel": "vf", "guestParameters": ["mask=0x7f"], "signOpenShift": ["a", "b"],
        "signKubernetes": ["c"], "signPassthrough": ["d"]});
    let host = |labels: Value, driver: Value| {
        Host::new().config(config.clone()).values(json!({"driver": driver})).object(node(
            "a",
            "cri-o://1",
            labels,
        ))
    };
    let plain = mapped(host(json!({}), json!({})));
    assert_eq!((&plain["moduleParameters"], &plain["signedModules"]), (&json!([]), &json!(["c"])));
    let guest = mapped(host(json!({"vf": "", "node.openshift.io/os_id": "rhcos"}), json!({})));
    assert_eq!(
        (&guest["moduleParameters"], &guest["signedModules"]),
        (&json!(["mask=0x7f"]), &json!(["a", "b"]))
    );
    let passed = mapped(host(json!({"node.openshift.io/os_id": "x"}), json!({"passthrough": true})));
    assert_eq!(passed["signedModules"], json!(["d"]));
}

#[test]
fn repositories_are_mounted_where_the_system_looks_for_them() {
    let host =
        || Host::new().config(json!({"repositories": "repos"})).object(node("a", "cri-o://1", json!({})));
    let missing = host().map_values::<AcceleratorValues>().unwrap_err();
    assert_eq!(missing.blockers()[0].reason, "RepositoriesMissing");
    let namespace = "namespace";
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"own.list": "deb x"},
        "metadata": {"name": "repos", "namespace": namespace}});
    let values = mapped(host().object(map));
    assert_eq!(values["mounts"][0]["mountPath"], "/etc/apt/sources.list.d/own.list");
    assert_eq!(values["volumes"][0]["configMap"]["name"], "repos");
}

#[test]
fn an_image_that_is_there_is_used_and_one_that_is_not_is_built_or_named() {
    let host = |force: bool| {
        let driver = json!({"image": "registry.example/gpu", "version": "5", "forcePrecompiled": force});
        Host::new().values(json!({"driver": driver})).object(node("a", "cri-o://1", json!({})))
    };
    let precompiled = "registry.example/gpu:5-6.8.0-ubuntu24.04";
    let there = mapped(host(true).image(precompiled, "sha256:1"));
    assert_eq!((&there["image"], &there["build"]), (&json!(precompiled), &json!(false)));
    let built = mapped(host(false));
    assert_eq!((&built["image"], &built["build"]), (&json!("registry.example/gpu:5"), &json!(true)));
    let refused = host(true).map_values::<AcceleratorValues>().unwrap_err();
    assert!(refused.message().starts_with(precompiled), "{}", refused.message());
}

#[test]
fn several_systems_are_named_where_one_is_needed() {
    let other = json!({"feature.node.kubernetes.io/system-os_release.ID": "rocky",
        "feature.node.kubernetes.io/system-os_release.VERSION_ID": "9.4"});
    let host = Host::new()
        .values(json!({"driver": {"image": "r/gpu", "version": "5"}}))
        .object(node("a", "cri-o://1", json!({})))
        .object(node("b", "cri-o://1", other));
    let refused = host.map_values::<AcceleratorValues>().unwrap_err();
    assert!(refused.message().contains("rocky9 and ubuntu24.04"), "{}", refused.message());
}
