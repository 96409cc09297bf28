#![allow(clippy::unwrap_used, clippy::unwrap_in_result, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::fake::Host;

use super::*;

fn node(labels: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": labels}})
}

/// Labels of the one node, without what all of them begin with.
fn labels(host: Host) -> Result<Vec<String>, Failure> {
    let desired = host.reconcile::<DeployLabels>([])?;
    let Some((_, part)) = desired.objects().next() else { return Ok(Vec::new()) };
    let part: Value = serde_json::from_str(part).unwrap();
    let labels = part["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    Ok(labels.keys().map(|label| label.trim_start_matches(PREFIX).to_owned()).collect())
}

#[test]
fn operands_follow_workload_and_product() {
    for (of, expected) in [
        (json!({}), &["device-plugin", "driver", "exporter", "toolkit"][..]),
        (json!({WORKLOAD: ""}), &["device-plugin", "driver", "exporter", "toolkit"]),
        (
            json!({"vendor.example/product": "A100-SXM4-40GB"}),
            &["device-plugin", "driver", "exporter", "mig-manager", "toolkit"],
        ),
        (json!({WORKLOAD: "vm-passthrough"}), &["sandbox-device-plugin", "vfio-manager"]),
        (
            json!({WORKLOAD: "vm-vgpu", "vendor.example/product": "h100"}),
            &["sandbox-device-plugin", "vgpu-device-manager", "vgpu-manager"],
        ),
    ] {
        let mut found = labels(Host::new().object(node(of.clone()))).unwrap();
        found.sort();
        assert_eq!(found, expected, "{of}");
    }
}

#[test]
fn what_a_pauser_set_stays_and_an_empty_value_is_none() {
    let of = json!({"vendor.example/deploy.driver": "paused", "vendor.example/deploy.toolkit": "",
        "vendor.example/deploy.exporter": "true", "other": "x"});
    let mut found = labels(Host::new().object(node(of))).unwrap();
    found.sort();
    assert_eq!(found, ["device-plugin", "exporter", "toolkit"]);
}

#[test]
fn every_label_is_one_that_is_granted() {
    let operands = OPERANDS.iter().flat_map(|(_, operands)| operands.iter().copied()).chain(["mig-manager"]);
    for operand in operands {
        let field = format!("metadata.labels.{}{operand}", PREFIX.replace('.', "\\."));
        assert!(LABELS.contains(&&*field), "{field}");
    }
}

#[test]
fn a_workload_that_nobody_knows_is_named() {
    let failure = labels(Host::new().object(node(json!({WORKLOAD: "gaming"})))).unwrap_err();
    assert_eq!(
        failure.message(),
        "node a is for \"gaming\", which is none of container, vm-passthrough, vm-vgpu"
    );
    assert!(labels(Host::new().deny("Node")).is_err());
}
