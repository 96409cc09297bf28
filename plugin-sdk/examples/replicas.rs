//! As many replicas as there are nodes with a label, and one pool of nodes for each of its values.

use std::collections::BTreeMap;

use pintle_plugin_sdk::{Call, Failure, Manifest, Mapping, Plugin, Pool, ReadAccess, ValueMapper};
use pintle_plugin_sdk::{
    config::config,
    export_plugin,
    kube::{self, Query},
};
use serde::Deserialize;
use serde_json::json;

config! {
    /// `spec.config` of the Plugin object.
    pub struct Config {
        /// The label that makes a node one of a pool.
        label: String = "topology.kubernetes.io/zone".to_owned(),
    }
}

#[derive(Deserialize)]
struct Node {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

struct Replicas;

impl Plugin for Replicas {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("replicas", "0.1.0")
            .config::<Config>()
            .reads(ReadAccess::to("", "Node").fields(&["metadata.labels"]))
    }
}

impl ValueMapper for Replicas {
    fn map_values(call: &Call<Config>) -> Result<Mapping, Failure> {
        let nodes: Vec<Node> = kube::find(&Query::all("v1", "Node").fields(&["metadata.labels"]))?;
        let mut zones = BTreeMap::<&str, u32>::new();
        for zone in nodes.iter().filter_map(|node| node.metadata.labels.get(&call.config.label)) {
            *zones.entry(zone).or_default() += 1;
        }
        let mapping = Mapping::new(&json!({"replicas": zones.values().sum::<u32>()}));
        Ok(zones.iter().fold(mapping, |mapping, (zone, nodes)| {
            let pool = Pool::new(*zone).select(&call.config.label, *zone);
            mapping.pool(pool.values(&json!({"replicas": nodes})))
        }))
    }
}

export_plugin!(Replicas: ValueMapper);

/// On the machine of its author a plugin is an ordinary function; `fake` stands in for the host.
#[cfg(not(target_arch = "wasm32"))]
pub fn example() {
    let node = |name: &str, zone: &str| {
        json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}}})
    };
    let host = pintle_plugin_sdk::fake::Host::new();
    let mapping = host.objects([node("a", "east"), node("b", "west"), node("c", "east")]);
    let mapping = mapping.map_values::<Replicas>();
    assert!(mapping.as_ref().is_ok_and(|mapping| mapping.values() == r#"{"replicas":3}"#));
    let pools = mapping.iter().flat_map(Mapping::pools);
    assert_eq!(pools.map(|pool| pool.key().to_owned()).collect::<Vec<_>>(), ["east", "west"]);
}
