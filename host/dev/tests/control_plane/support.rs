//! What the tests share: one control plane, namespaces of their own, and waiting.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use pintle_dev::{ControlPlane, Options, binaries};
use serde_json::json;

/// Longer than anything takes on a machine that compiles beside the tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn options() -> Options {
    Options::new(binaries::ensure(&mut |line| eprintln!("{line}")).unwrap())
}

/// The control plane of this process.
pub(crate) fn plane() -> &'static ControlPlane {
    ControlPlane::shared(options)
}

/// A client and a namespace that no other test uses.
pub(crate) async fn namespace(name: &str) -> Client {
    let client = plane().client().unwrap();
    let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    client
}

/// Asks until the answer is `Some`, and fails with `what` when it never is.
pub(crate) async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: not within {} s", PATIENCE.as_secs());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The pods of a namespace with a label.
pub(crate) async fn pods(client: &Client, namespace: &str, label: &str) -> Vec<Pod> {
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    pods.list(&ListParams::default().labels(label)).await.unwrap().items
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
}

/// A DaemonSet on the workers that carry `label`.
pub(crate) fn daemon_set(name: &str, image: &str, node_label: &str) -> serde_json::Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "nodeSelector": {"node-role.kubernetes.io/worker": "", node_label: ""},
                    "containers": [{"name": "driver", "image": image}],
                },
            },
        },
    })
}
