//! `upgrade-veto`: a release is not upgraded while the driver of a node is; each such node is named with the state
//! that its label tells.

use std::collections::BTreeMap;

use pintle_plugin_sdk::{
    Around, Blocker, Call, Failure, Hooks, Manifest, Operation, Pending, Phase, Plugin, ReadAccess, Step,
    config::config,
    export_plugin,
    kube::{self, Query},
};
use serde::Deserialize;

/// What is read of a node, and must be granted.
const FIELDS: [&str; 2] = ["metadata.name", "metadata.labels"];

config! {
    /// `spec.config` of the Plugin.
    pub struct Config {
        /// The label that tells how far the upgrade of a node's driver is.
        label: String = "vendor.example/driver-upgrade-state".to_owned(),
        /// Values of the label with which nothing is under way; without the label nothing is either.
        done: Vec<String> = vec!["upgrade-done".to_owned(), String::new()],
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

/// The plugin.
pub struct UpgradeVeto;

impl Plugin for UpgradeVeto {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("upgrade-veto", env!("CARGO_PKG_VERSION"))
            .description("A release is not upgraded while the driver of a node is")
            .config::<Config>()
            .reads(ReadAccess::to("", "Node").fields(&FIELDS))
            .reasons(["DriverUpgradeActive"])
    }
}

impl Hooks for UpgradeVeto {
    fn on_phase(call: &Call<Config>, around: &Around) -> Result<Step, Failure> {
        let is_upgrade = matches!(call.context.operation, Operation::Upgrade | Operation::Rollback);
        if !is_upgrade || around.phase != Phase::Pre {
            return Ok(Step::go());
        }
        let Config { label, done } = &call.config;
        let nodes = Query::all("v1", "Node").selected_by_text(label).fields(&FIELDS);
        let mut active = Vec::new();
        for Node { metadata: Metadata { name, labels } } in kube::find(&nodes)? {
            let state = labels.get(label).map(String::as_str).unwrap_or_default();
            if !done.iter().any(|done| done == state) {
                let message =
                    format!("its driver is still being upgraded ({state}); the release waits for it");
                active.push(Blocker::new("DriverUpgradeActive", message).at_node(name));
            }
        }
        Ok(if active.is_empty() { Step::go() } else { Step::hold(Pending::new(active)) })
    }
}

export_plugin!(UpgradeVeto: Hooks);

#[cfg(test)]
mod tests;
