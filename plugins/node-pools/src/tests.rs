#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::fake::Host;

use super::*;

fn node(name: &str, os: (&str, &str), kernel: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {
        "feature.node.kubernetes.io/system-os_release.ID": os.0,
        "feature.node.kubernetes.io/system-os_release.VERSION_ID": os.1,
        "feature.node.kubernetes.io/kernel-version.full": kernel, "gpu": "yes"}}})
}

fn three() -> Host {
    Host::new()
        .object(node("a", ("ubuntu", "22.04"), "5.15.0-78-generic"))
        .object(node("b", ("rhel", "9.4"), "5.14.0-427.el9.x86_64"))
        .object(node("c", ("ubuntu", "22.04"), "5.15.0-91-generic"))
}

#[test]
fn nodes_of_one_system_are_one_pool() {
    let mapping = three().map_values::<NodePools>().unwrap();
    let pools: Vec<Pool> = mapping.pools().collect();
    let values: Vec<&str> = pools.iter().map(Pool::patch).collect();
    let expected = [
        r#"{"pool":{"osId":"rhel","osVersion":"9.4"}}"#,
        r#"{"pool":{"osId":"ubuntu","osVersion":"22.04"}}"#,
    ];
    assert_eq!(values, expected);
    assert_eq!(pools[0].selector()[1].1, "9.4");
    assert_eq!(mapping.report().conditions[0].reason, "Labelled");
}

#[test]
fn system_and_kernel_together_make_more_pools_within_the_common_labels() {
    let config = json!({"by": ["kernel", "os"], "nodeSelector": {"gpu": "yes"}, "values": "nodes"});
    let mapping = three().config(config).map_values::<NodePools>().unwrap();
    let pools: Vec<Pool> = mapping.pools().collect();
    assert_eq!(pools.len(), 3);
    assert!(pools.iter().all(|pool| pool.selector().contains(&("gpu".to_owned(), "yes".to_owned()))));
    assert!(pools[2].patch().contains(r#""kernel":"5.15.0-91-generic""#), "{}", pools[2].patch());
}

#[test]
fn keys_are_labels_that_stay_and_differ() {
    assert_eq!(key("amd64"), "amd64");
    let keys = ["5.15.0-78-generic", "5.15.0-91-generic", "rhel-9.4", "rhel-9-4", "X", "-"].map(key);
    for key in &keys {
        let is_plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        assert!(is_plain && key.len() <= KEY && !key.ends_with('-'), "{key}");
    }
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
    assert_eq!(key("5.15.0-78-generic"), keys[0]);
}

#[test]
fn a_node_without_labels_is_told_and_only_such_nodes_are_a_failure() {
    let bare = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "d"}});
    let mapping = three().object(bare.clone()).map_values::<NodePools>().unwrap();
    let told = &mapping.report().conditions[0].message;
    assert!(told.starts_with("1 nodes are in no pool, the first: node d has no label"), "{told}");
    let failure = Host::new().object(bare).map_values::<NodePools>().unwrap_err();
    let reasons: Vec<&str> = failure.blockers().iter().map(|blocker| blocker.reason.as_str()).collect();
    assert_eq!(reasons, ["LabelMissing", "NoNodes"]);
}

#[test]
fn a_config_that_makes_no_pools_is_refused() {
    assert!(Host::new().config(json!({"by": []})).validate::<NodePools>().is_err());
}
