//! `node-recovery`: a node whose card is told to be broken is closed for pods, but not more often than so many times in
//! a window; then a person is asked. What was done is kept, so that another operator does not begin anew.

use std::{collections::BTreeMap, time::Duration};

use pintle_plugin_sdk::{
    Action, Blocker, Call, Desired, Failure, Live, Manifest, ObjectAccess, ObjectRef, Pending, Plugin,
    ReadAccess, Reconciler, clock,
    config::config,
    export_plugin, inputs,
    kube::{self, LabelSelector, Query},
};
use serde::Deserialize;
use serde_json::json;

/// What is read of a node, and must be granted.
const FIELDS: [&str; 2] = ["metadata.name", "metadata.labels"];

config! {
    /// `spec.config` of the Plugin, or `spec.reconciler.config` of the Watch.
    pub struct Config {
        /// Labels of the nodes with a card.
        node_selector: BTreeMap<String, String> = BTreeMap::new(),
        /// The label of a node whose card is broken; its value tells one break from the next.
        label: String = "vendor.example/card-broken".to_owned(),
        /// Recoveries of one node within a window.
        most: u32 = 2 => {"minimum": 1},
        /// The window, in minutes.
        window_minutes: u32 = 60 => {"minimum": 1},
    }
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

/// What was done to a node: the break, and when that was, in minutes since the epoch.
type Recoveries = BTreeMap<String, u64>;
/// By node.
type Saved = BTreeMap<String, Recoveries>;

/// The plugin.
pub struct NodeRecovery;

impl Plugin for NodeRecovery {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("node-recovery", env!("CARGO_PKG_VERSION"))
            .description("Closes a node whose card is broken, a bounded number of times within a window")
            .config::<Config>()
            .reads(ReadAccess::to("", "Node").fields(&FIELDS))
            .does(["cordon"], ObjectAccess::to("", "Node"))
            .reasons(["Recovering", "RecoveryDenied"])
    }
}

impl Reconciler for NodeRecovery {
    fn reconcile(call: &Call<Config>, _: &[Live]) -> Result<Desired, Failure> {
        let mut saved: Saved = inputs::saved()?.unwrap_or_default();
        let broken = broken(&call.config)?;
        if broken.is_empty() {
            // Time matters only to what is broken: nothing is asked again without an event.
            return Ok(Desired::unless([]));
        }
        let now = clock::now().as_secs() / 60;
        let begins = now.saturating_sub(u64::from(call.config.window_minutes));
        let (mut blockers, mut actions) = (Vec::new(), Vec::new());
        for (node, fault) in broken {
            let done = saved.entry(node.clone()).or_default();
            done.retain(|known, at| *at > begins || *known == fault);
            let (times, most) = (done.values().filter(|at| **at > begins).count(), call.config.most as usize);
            if done.contains_key(&fault) {
                let message = format!("its card is broken ({fault}); it was closed for pods");
                blockers.push(Blocker::new("Recovering", message).at_node(&node));
            } else if times >= most {
                let message = format!(
                    "it was recovered {times} times within {} minutes already; replace its card, or wait",
                    call.config.window_minutes
                );
                blockers.push(Blocker::new("RecoveryDenied", message).at_node(&node));
            } else {
                done.insert(fault.clone(), now);
                let target = ObjectRef::new("v1", "Node", &node);
                actions.push(Action::new(format!("cordon-{node}-{fault}"), "cordon", target));
                blockers.push(Blocker::new("Recovering", "it is being closed for pods").at_node(&node));
            }
        }
        let window = Duration::from_secs(60 * u64::from(call.config.window_minutes));
        let desired = Desired::new(Pending::new(blockers).recheck(window)).save(&json!(saved));
        Ok(actions.into_iter().fold(desired, Desired::action))
    }
}

export_plugin!(NodeRecovery: Reconciler);

/// Nodes whose card is broken, each with the name of the break.
fn broken(config: &Config) -> Result<Vec<(String, String)>, Failure> {
    let selector = LabelSelector { match_labels: config.node_selector.clone(), ..LabelSelector::default() };
    let nodes: Vec<Node> = kube::find(&Query::all("v1", "Node").selected_by(&selector).fields(&FIELDS))?;
    let told = |node: Node| {
        let fault = node.metadata.labels.get(&config.label).filter(|fault| !fault.is_empty())?;
        Some((node.metadata.name.clone(), fault.clone()))
    };
    Ok(nodes.into_iter().filter_map(told).collect())
}

#[cfg(test)]
mod tests;
