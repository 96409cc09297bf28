#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::fake::Host;

use super::*;

fn node(name: &str, image: &str, kernel: &str, os: Option<(&str, &str)>) -> Value {
    let labels = os.map(|(id, version)| {
        json!({"feature.node.kubernetes.io/system-os_release.ID": id,
            "feature.node.kubernetes.io/system-os_release.VERSION_ID": version})
    });
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels.unwrap_or(json!({}))},
        "status": {"nodeInfo": {"osImage": image, "kernelVersion": kernel}}})
}

fn mapped(host: Host) -> Result<Value, String> {
    let mapping = host.map_values::<OsImageTag>().map_err(|failure| failure.to_string())?;
    serde_json::from_str(mapping.values()).map_err(|error| error.to_string())
}

#[track_caller]
fn check_text(image: &str, name: &str, tag: &str) {
    let values = mapped(Host::new().object(node("a", image, "k", None))).unwrap();
    assert_eq!((values["osName"].as_str(), values["osTag"].as_str()), (Some(name), Some(tag)), "{image}");
}

#[test]
fn the_free_text_of_known_systems_is_read() {
    check_text("SUSE Linux Enterprise Server 15 SP7", "sles-15.7", "sles15.7");
    check_text("Red Hat Enterprise Linux CoreOS 416.94.202406251923-0 (Plow)", "rhcos-416.94", "rhcos416.94");
    check_text("Red Hat Enterprise Linux 9.4 (Plow)", "rhel-9.4", "rhel9");
    check_text("Ubuntu 22.04.4 LTS", "ubuntu-22.04", "ubuntu22.04");
    check_text("Rocky Linux 9.3 (Blue Onyx)", "rocky-9.3", "rocky9");
    check_text("Oracle Linux Server 8.9", "ol-8.9", "ol8");
    check_text("Debian GNU/Linux 12 (bookworm)", "debian-12", "debian12");
}

#[test]
fn an_unknown_system_is_named_beside_the_known_ones() {
    let unknown =
        mapped(Host::new().object(node("a", "Flatcar Container Linux 3975", "k", None))).unwrap_err();
    let known = "rhcos, rhel, ubuntu, sles, rocky, ol, centos, debian, fedora";
    assert_eq!(unknown, format!("OS not supported: Flatcar Container Linux 3975; supported: {known}"));
}

#[test]
fn labels_of_node_feature_discovery_count_before_the_text() {
    let host = Host::new().object(node("a", "Ubuntu 22.04", "k", Some(("rhel", "8.10"))));
    assert_eq!(mapped(host).unwrap()["osTag"], "rhel8");
}

#[test]
fn the_image_depends_on_digest_and_on_whether_it_is_precompiled() {
    let reference = |version: &str, precompiled: bool| {
        let driver = json!({"repository": "r.example/nv", "image": "driver", "version": version,
            "precompiled": precompiled});
        let host = Host::new().values(json!({"driver": driver}));
        mapped(host.object(node("a", "Ubuntu 22.04", "5.15.0-78-generic", None)))
            .map(|values| values["image"].clone())
    };
    assert_eq!(reference("sha256:ab", true).unwrap(), "r.example/nv/driver@sha256:ab");
    assert_eq!(reference("535", true).unwrap(), "r.example/nv/driver:535-5.15.0-78-generic-ubuntu22.04");
    assert_eq!(reference("535", false).unwrap(), "r.example/nv/driver:535-ubuntu22.04");
    assert_eq!(reference("", false).unwrap_err(), "the driver in the values has no version");
}

#[test]
fn several_systems_or_kernels_want_pools() {
    let two =
        Host::new().object(node("a", "Ubuntu 22.04", "5", None)).object(node("b", "Debian 12", "6", None));
    assert!(
        mapped(two).unwrap_err().contains("nodes run debian-12 and ubuntu-22.04; render one state per pool")
    );
    let kernels = Host::new()
        .values(json!({"driver": {"image": "i", "version": "1", "precompiled": true}}))
        .object(node("a", "Ubuntu 22.04", "5", None))
        .object(node("b", "Ubuntu 22.04", "6", None));
    assert!(mapped(kernels).unwrap_err().contains("nodes run 5 and 6"));
}

#[test]
fn without_nodes_it_waits_for_one() {
    let failure = Host::new().map_values::<OsImageTag>().unwrap_err();
    assert_eq!(failure.blockers()[0].reason, "NoNodes");
    assert_eq!(failure.retry(), pintle_plugin_sdk::Retry::WhenInputsChange);
}
