//! `node-pools`: one rendering for each kind of node, by operating system, CoreOS build, kernel or
//! architecture, as the labels of node-feature-discovery tell them apart.

use std::collections::{BTreeMap, BTreeSet};

use pintle_plugin_sdk::{
    Blocker, Call, Failure, Manifest, Mapping, Plugin, Pool, ReadAccess, ValueMapper,
    config::config,
    export_plugin,
    kube::{self, LabelSelector, Query},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// What is read of a node, and must be granted.
const FIELDS: [&str; 2] = ["metadata.name", "metadata.labels"];
/// Letters that a pool's key may have (WIT: a DNS label of at most 20 characters).
const KEY: usize = 20;
/// Letters of the part that tells keys apart which are cut.
const HASH: usize = 7;

config! {
    /// `spec.config` of the Plugin.
    pub struct Config {
        /// What makes nodes differ.
        by: Vec<By> = vec![By::Os] => {"minItems": 1},
        /// Labels of the nodes that count; without any, all.
        node_selector: BTreeMap<String, String> = BTreeMap::new(),
        /// Where in the values of a pool the facts about it stand.
        values: String = "pool".to_owned(),
    }
}

config! {
    /// One thing that makes nodes differ.
    pub enum By { Os, Rhcos, Kernel, Arch }
}

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

/// The labels of a pool's nodes, and what the chart is told.
type Kind = Vec<(&'static str, String)>;

/// The plugin.
pub struct NodePools;

impl By {
    /// The labels, and what they are called in the values.
    fn labels(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Os => &[
                ("feature.node.kubernetes.io/system-os_release.ID", "osId"),
                ("feature.node.kubernetes.io/system-os_release.VERSION_ID", "osVersion"),
            ],
            Self::Rhcos => &[("feature.node.kubernetes.io/system-os_release.OSTREE_VERSION", "rhcosVersion")],
            Self::Kernel => &[("feature.node.kubernetes.io/kernel-version.full", "kernel")],
            Self::Arch => &[("kubernetes.io/arch", "arch")],
        }
    }
}

impl Plugin for NodePools {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("node-pools", env!("CARGO_PKG_VERSION"))
            .description("One rendering for each kind of node, by operating system, kernel or architecture")
            .config::<Config>()
            .reads(ReadAccess::to("", "Node").fields(&FIELDS))
            .reasons(["LabelMissing", "NoNodes"])
    }

    fn validate(config: &Config) -> Result<(), Failure> {
        if config.by.is_empty() {
            return Err(Failure::until_changed("by is empty, so all nodes would be one pool without labels"));
        }
        Ok(())
    }
}

impl ValueMapper for NodePools {
    fn map_values(call: &Call<Config>) -> Result<Mapping, Failure> {
        let Config { by, node_selector, values } = &call.config;
        let selector = LabelSelector { match_labels: node_selector.clone(), ..LabelSelector::default() };
        let nodes: Vec<Node> = kube::find(&Query::all("v1", "Node").selected_by(&selector).fields(&FIELDS))?;
        let by: BTreeSet<By> = by.iter().copied().collect();
        let wanted: Vec<_> = by.iter().flat_map(|by| by.labels()).copied().collect();
        let (mut kinds, mut unlabelled) = (BTreeSet::<Kind>::new(), Vec::new());
        for node in &nodes {
            match node.kind(&wanted) {
                Ok(kind) => drop(kinds.insert(kind)),
                Err(label) => unlabelled.push(node.blocker(label)),
            }
        }
        if kinds.is_empty() {
            let none = Blocker::new("NoNodes", "no node has the labels that pools are made by");
            let failure = Failure::until_changed("there is no node to make a pool of");
            return Err(unlabelled.into_iter().chain([none]).fold(failure, Failure::about));
        }
        let mapping = kinds.iter().fold(Mapping::new(&json!({})), |mapping, kind| {
            mapping.pool(pool(kind, &wanted, node_selector, values))
        });
        Ok(warned(mapping, &unlabelled))
    }
}

export_plugin!(NodePools: ValueMapper);

/// A node without the labels is in no pool; that must not pass in silence.
fn warned(mapping: Mapping, unlabelled: &[Blocker]) -> Mapping {
    use pintle_plugin_sdk::ConditionStatus::{Met, Unmet};
    match unlabelled.first() {
        None => mapping.condition("NodesLabelled", Met, "Labelled", "every node is in a pool"),
        Some(first) => {
            let message = format!("{} nodes are in no pool, the first: {}", unlabelled.len(), first.message);
            mapping.condition("NodesLabelled", Unmet, "LabelMissing", message)
        }
    }
}

fn pool(
    kind: &Kind,
    wanted: &[(&'static str, &'static str)],
    selector: &BTreeMap<String, String>,
    values: &str,
) -> Pool {
    let facts = wanted.iter().zip(kind).map(|((_, name), (_, value))| ((*name).to_owned(), json!(value)));
    let facts: serde_json::Map<String, Value> = facts.collect();
    let text: Vec<&str> = kind.iter().map(|(_, value)| value.as_str()).collect();
    let own = kind.iter().map(|(label, value)| (*label, value));
    let common = selector.iter().map(|(label, value)| (label.as_str(), value));
    let pool = own
        .chain(common)
        .fold(Pool::new(key(&text.join("-"))), |pool, (label, value)| pool.select(label, value.as_str()));
    pool.values(&json!({values: facts}))
}

/// A DNS label that is the same for the same text; long texts are told apart by the hash at the end.
fn key(text: &str) -> String {
    let plain = |letter: char| match letter.to_ascii_lowercase() {
        letter if letter.is_ascii_alphanumeric() => letter,
        _ => '-',
    };
    let label: String = text.chars().map(plain).collect();
    if label == text && label.len() <= KEY && !label.starts_with('-') && !label.ends_with('-') {
        return label;
    }
    // FNV-1a: it names, and guards against nothing.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let begin: String = label.chars().take(KEY - HASH - 1).collect();
    format!("{}-{:07x}", begin.trim_matches('-'), hash & 0x0fff_ffff).trim_start_matches('-').to_owned()
}

impl Node {
    /// The values of the labels, or the label that it lacks.
    fn kind(&self, wanted: &[(&'static str, &'static str)]) -> Result<Kind, &'static str> {
        let value = |(label, _): &(&'static str, _)| {
            self.metadata.labels.get(*label).map(|value| (*label, value.clone())).ok_or(*label)
        };
        wanted.iter().map(value).collect()
    }

    fn blocker(&self, label: &str) -> Blocker {
        let name = &self.metadata.name;
        let message = format!("node {name} has no label {label}; is node-feature-discovery running there?");
        Blocker::new("LabelMissing", message).at_node(name)
    }
}

#[cfg(test)]
mod tests;
