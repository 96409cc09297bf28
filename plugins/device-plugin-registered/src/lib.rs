//! `device-plugin-registered`: a device plugin's DaemonSet is ready once each of its nodes offers the
//! devices, which is what pods wait for; a running pod proves nothing.

use std::collections::BTreeMap;

use pintle_plugin_sdk::{
    Answer, Blocker, Call, Failure, Json, Manifest, ObjectRef, Pending, Plugin, ReadAccess, Readiness,
    config::config,
    export_plugin,
    kube::{self, LabelSelector, Query},
};
use serde::Deserialize;

/// What is read of a node, and must be granted.
const FIELDS: [&str; 3] = ["metadata.labels", "spec.unschedulable", "status.allocatable"];

config! {
    /// `spec.config` of the Plugin.
    pub struct Config {
        /// Resources of which a node must offer at least one; `*` at the end stands for anything.
        resources: Vec<String> = vec!["nvidia.com/gpu".to_owned(), "nvidia.com/mig-*".to_owned()]
            => {"minItems": 1},
        /// How many devices a node must offer.
        least: u64 = 1 => {"minimum": 1},
        /// Labels of the nodes; without any, the node selector of the DaemonSet.
        node_selector: BTreeMap<String, String> = BTreeMap::new(),
        /// Whether a DaemonSet that no node matches is ready.
        empty_is_ready: bool = true,
    }
}

config! {
    /// Arguments in the annotation: `device-plugin-registered(resource="vendor.example/card")`.
    pub struct Args {
        /// The resource, instead of those in the config.
        resource: Option<String> = None,
    }
}

#[derive(Deserialize)]
struct DaemonSet {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    template: Template,
}

#[derive(Deserialize)]
struct Template {
    spec: PodSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    #[serde(default)]
    node_selector: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Node {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    allocatable: BTreeMap<String, String>,
}

/// The plugin.
pub struct Registered;

impl Plugin for Registered {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("device-plugin-registered", env!("CARGO_PKG_VERSION"))
            .description("A device plugin is ready once each of its nodes offers the devices")
            .config::<Config>()
            .args::<Args>()
            .reads(ReadAccess::to("", "Node").fields(&FIELDS))
            .reasons(["NoNodes", "NotRegistered", "TooFewDevices"])
            .looks_at(["spec.template.spec.nodeSelector"])
    }

    fn validate(config: &Config) -> Result<(), Failure> {
        if config.resources.iter().all(|resource| resource.trim_matches('*').is_empty()) {
            return Err(Failure::until_changed(
                "resources names none, so nothing could prove a registration",
            ));
        }
        Ok(())
    }
}

impl Readiness for Registered {
    fn check(call: &Call<Config>, target: &Json) -> Result<Answer, Failure> {
        let (set, args): (DaemonSet, Args) = (target.read()?, call.args()?);
        let own = set.spec.template.spec.node_selector;
        let configured = &call.config.node_selector;
        let match_labels = if configured.is_empty() { own } else { configured.clone() };
        let selector = LabelSelector { match_labels, ..LabelSelector::default() };
        let nodes = Query::all("v1", "Node").selected_by(&selector).fields(&FIELDS);
        let nodes: Vec<Node> = kube::find(&nodes)?;
        if nodes.is_empty() {
            let none = Blocker::new("NoNodes", format!("no node has the labels {}", selector.to_query()));
            return Ok(Answer::unless((!call.config.empty_is_ready).then_some(none)));
        }
        let resources = args.resource.map_or_else(|| call.config.resources.clone(), |one| vec![one]);
        let waiting = nodes.iter().filter_map(|node| node.blocker(&resources, call.config.least));
        let waiting: Vec<Blocker> = waiting.collect();
        if waiting.is_empty() {
            return Ok(Answer::ready());
        }
        let done = (nodes.len() - waiting.len()) * 100 / nodes.len();
        Ok(Pending::new(waiting).progress(u8::try_from(done).unwrap_or(0)).into())
    }
}

export_plugin!(Registered: Readiness);

impl Node {
    /// What is still to come on this node; nothing when it offers enough.
    fn blocker(&self, resources: &[String], least: u64) -> Option<Blocker> {
        let is_wanted = |name: &str| resources.iter().any(|pattern| matches(pattern, name));
        let offered = self.status.allocatable.iter().filter(|(name, _)| is_wanted(name));
        // Devices are counted in whole numbers; anything else is no device.
        let offered: u64 = offered.filter_map(|(_, count)| count.parse::<u64>().ok()).sum();
        let wanted = resources.join(" or ");
        let (reason, message) = match offered {
            0 => ("NotRegistered", format!("the node offers no {wanted}")),
            few if few < least => {
                ("TooFewDevices", format!("the node offers {few} {wanted}, {least} are wanted"))
            }
            _ => return None,
        };
        let name = &self.metadata.name;
        Some(Blocker::new(reason, message).on(ObjectRef::new("v1", "Node", name)).at_node(name))
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests;
