//! The two objects, and where the module is still to come.

use std::collections::BTreeMap;

use pintle_plugin_sdk::{
    Failure,
    kube::{self, LabelSelector, Query},
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::spec::Spec;

/// What is read of a node, and must be granted.
pub(crate) const NODE_FIELDS: [&str; 2] = ["metadata.name", "metadata.labels"];

#[derive(Deserialize)]
struct Node {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// Name of the DaemonSet.
pub(crate) fn consumer_name(name: &str) -> String {
    format!("{name}-consumer")
}

/// The kernel module, for the operator that loads it.
pub(crate) fn module(spec: &Spec, namespace: &str, name: &str) -> Value {
    let mut module = json!({
        "apiVersion": "kmm.sigs.x-k8s.io/v1beta1",
        "kind": "Module",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "devicePlugin": {"container": {"image": spec.device_plugin}},
            "moduleLoader": {"container": {
                "modprobe": {
                    "moduleName": "ptemplate_char_dev",
                    "parameters": [
                        format!("max_dev={}", spec.max_devices),
                        format!("default_msg={}", spec.message),
                    ],
                },
                "imagePullPolicy": "Always",
                "kernelMappings": [{
                    "regexp": "^.+$",
                    "containerImage": "quay.io/chrisp262/pt-char-dev:${KERNEL_FULL_VERSION}-sb",
                }],
            }},
            "selector": spec.selector,
        },
    });
    if let Some(secret) = &spec.pull_secret {
        module["spec"]["imageRepoSecret"] = json!({"name": secret});
    }
    module
}

/// The pods that use its devices.
pub(crate) fn consumer(spec: &Spec, namespace: &str, name: &str) -> Value {
    let labels = json!({"app": name});
    let mut pod = json!({
        "nodeSelector": spec.selector,
        "containers": [{
            "name": "consumer",
            "image": spec.consumer,
            "imagePullPolicy": "Always",
            "securityContext": {"privileged": true},
            "resources": {"limits": {"example.com/ptemplate": spec.required_devices.to_string()}},
            "volumeMounts": [{"name": "host-dev", "mountPath": "/hostdev"}],
        }],
        "volumes": [{"name": "host-dev", "hostPath": {"path": "/dev"}}],
    });
    if let Some(secret) = &spec.pull_secret {
        pod["imagePullSecrets"] = json!([{"name": secret}]);
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": consumer_name(name), "namespace": namespace, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    })
}

/// Selected nodes that do not have the module yet, sorted. Its mapping takes every kernel.
pub(crate) fn nodes_without_module(spec: &Spec, namespace: &str, name: &str) -> Result<Vec<String>, Failure> {
    let selector = LabelSelector { match_labels: spec.selector.clone(), ..LabelSelector::default() };
    let query = Query::all("v1", "Node").selected_by(&selector).fields(&NODE_FIELDS);
    let loaded = format!("kmm.node.kubernetes.io/{namespace}.{name}.ready");
    let nodes: Vec<Node> = kube::find(&query)?;
    let waiting = nodes.into_iter().filter(|node| !node.metadata.labels.contains_key(&loaded));
    let mut names: Vec<_> = waiting.map(|node| node.metadata.name).collect();
    names.sort();
    Ok(names)
}
