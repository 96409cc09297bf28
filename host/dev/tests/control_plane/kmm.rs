//! Kernel modules that come and go on nodes.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use pintle_dev::nodes::{self, NodeSpec};
use pintle_dev::simulate::kmm::{self, Loading};
use serde_json::{Value, json};

use crate::support::{eventually, namespace, plane};

fn modules(client: &Client) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), "kmm", &kmm::resource())
}

fn module(version: &str) -> DynamicObject {
    let object = json!({
        "apiVersion": "kmm.sigs.x-k8s.io/v1beta1", "kind": "Module", "metadata": {"name": "char-dev"},
        "spec": {
            "selector": {"kmm": "yes"},
            "moduleLoader": {"container": {
                "version": version, "kernelMappings": [{"regexp": "^4\\.18", "containerImage": "image"}],
            }},
        },
    });
    serde_json::from_value(object).unwrap()
}

async fn counts(client: &Client, wanted: [u64; 3]) {
    let what = format!("counters {wanted:?}");
    eventually(&what, async || {
        let module = modules(client).get("char-dev").await.unwrap();
        let counts: &Value = &module.data["status"]["moduleLoader"];
        let names = ["nodesMatchingSelectorNumber", "desiredNumber", "availableNumber"];
        (names.map(|name| counts[name].as_u64().unwrap_or(99)) == wanted).then_some(())
    })
    .await;
}

async fn label(client: &Client, node: &str, end: &str) -> Option<String> {
    let node = Api::<Node>::all(client.clone()).get(node).await.unwrap();
    node.labels().get(&format!("kmm.node.kubernetes.io/kmm.char-dev.{end}")).cloned()
}

#[tokio::test]
async fn a_module_is_loaded_where_a_mapping_fits_and_goes_when_no_node_has_it() {
    let client = namespace("kmm").await;
    let simulator = plane().simulators().unwrap().kmm().await.unwrap();
    simulator.rule(|facts| {
        let devices = (facts.version == "2").then(|| ("example.com/char".to_owned(), 5));
        (facts.namespace == "kmm").then_some(Loading { after: Some(Duration::from_millis(20)), devices })
    });
    let spec = |name: &str| NodeSpec::worker(name).with_label("kmm", "yes");
    nodes::create(&client, &spec("kmm-0")).await.unwrap();
    let other = NodeSpec { kernel: "6.1.0".to_owned(), ..spec("kmm-1") };
    nodes::create(&client, &other).await.unwrap();
    modules(&client).create(&PostParams::default(), &module("1")).await.unwrap();

    counts(&client, [2, 1, 1]).await;
    assert_eq!(label(&client, "kmm-0", "version.ready").await.as_deref(), Some("1"));
    assert_eq!(label(&client, "kmm-1", "ready").await, None);

    let patch = json!({"spec": {"moduleLoader": {"container": {"version": "2"}}}});
    modules(&client).patch("char-dev", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    eventually("the second version", async || {
        (label(&client, "kmm-0", "version.ready").await.as_deref() == Some("2")).then_some(())
    })
    .await;
    let node = Api::<Node>::all(client.clone()).get("kmm-0").await.unwrap();
    assert_eq!(node.status.unwrap().allocatable.unwrap()["example.com/char"].0, "5");

    modules(&client).delete("char-dev", &DeleteParams::default()).await.unwrap();
    eventually("the end of the Module", async || {
        modules(&client).get_opt("char-dev").await.unwrap().is_none().then_some(())
    })
    .await;
    assert_eq!(label(&client, "kmm-0", "ready").await, None);
}
