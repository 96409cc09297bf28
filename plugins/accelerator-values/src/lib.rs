//! `accelerator-values`: what an accelerator's driver must be told about the nodes it goes to: container
//! runtime, parameters of the module, modules to sign, package repositories to mount, and whether an image
//! of its kernel is there or must be built.

mod facts;

use std::collections::BTreeMap;

use pintle_plugin_sdk::{
    Blocker, Call, Failure, Manifest, Mapping, ObjectRef, Plugin, ReadAccess, ValueMapper,
    config::config,
    export_plugin, images, inputs,
    kube::{self, LabelSelector, Query, ReadError},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use facts::{Node, Os, Platform, Runtime};

/// What is read of a node, and must be granted.
const FIELDS: [&str; 4] = [
    "metadata.name",
    "metadata.labels",
    "status.nodeInfo.containerRuntimeVersion",
    "status.nodeInfo.kernelVersion",
];

config! {
    /// `spec.config` of the Plugin.
    pub struct Config {
        /// Labels of the nodes that count; without any, all.
        node_selector: BTreeMap<String, String> = BTreeMap::new(),
        /// Where in the values the driver is described.
        driver: String = "driver".to_owned(),
        /// Label of nodes that are guests with a virtual function of the device.
        guest_label: Option<String> = None,
        /// Parameters of the module where any node is such a guest.
        guest_parameters: Vec<String> = Vec::new(),
        /// Modules to sign for Secure Boot on OpenShift.
        sign_open_shift: Vec<String> = Vec::new(),
        /// Modules to sign on other clusters.
        sign_kubernetes: Vec<String> = Vec::new(),
        /// Modules to sign where devices are passed through to virtual machines.
        sign_passthrough: Vec<String> = Vec::new(),
        /// ConfigMap of the release's namespace with package repositories; each key is a file.
        repositories: Option<String> = None,
    }
}

/// The driver in the values.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Driver {
    image: String,
    version: String,
    passthrough: bool,
    force_precompiled: bool,
}

#[derive(Deserialize)]
struct ConfigMap {
    #[serde(default)]
    data: BTreeMap<String, String>,
}

/// The plugin.
pub struct AcceleratorValues;

impl Plugin for AcceleratorValues {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("accelerator-values", env!("CARGO_PKG_VERSION"))
            .description("What an accelerator's driver must be told about the nodes it goes to")
            .config::<Config>()
            .reads(ReadAccess::to("", "Node").fields(&FIELDS))
            .reads(ReadAccess::to("", "ConfigMap").in_release())
            .reasons(["NoNodes", "SeveralSystems", "SeveralKernels", "NotPrecompiled", "RepositoriesMissing"])
    }
}

impl ValueMapper for AcceleratorValues {
    fn map_values(call: &Call<Config>) -> Result<Mapping, Failure> {
        let config = &call.config;
        let selector =
            LabelSelector { match_labels: config.node_selector.clone(), ..LabelSelector::default() };
        let nodes: Vec<Node> = kube::find(&Query::all("v1", "Node").selected_by(&selector).fields(&FIELDS))?;
        if nodes.is_empty() {
            return Err(nothing("NoNodes", "no node is there to look at".to_owned()));
        }
        let values: Value = inputs::values()?;
        let driver: Driver = values
            .get(&config.driver)
            .and_then(|driver| Driver::deserialize(driver).ok())
            .unwrap_or_default();
        let platform = Platform::of(&nodes);
        let mut patch = Map::new();
        patch.insert("runtime".to_owned(), Runtime::of(&nodes, platform).values());
        patch.insert("moduleParameters".to_owned(), json!(parameters(config, &nodes)));
        patch.insert("signedModules".to_owned(), json!(signed(config, &driver, platform)));
        if let Some(map) = &config.repositories {
            patch.extend(mounts(call, map, &nodes)?);
        }
        if !driver.image.is_empty() {
            patch.extend(variant(&driver, &nodes)?);
        }
        Ok(Mapping::new(&Value::Object(patch)))
    }
}

export_plugin!(AcceleratorValues: ValueMapper);

/// Parameters that every node's module gets, since one chart is for all of them.
fn parameters<'a>(config: &'a Config, nodes: &[Node]) -> &'a [String] {
    let is_guest = |node: &Node| config.guest_label.as_ref().is_some_and(|label| node.has(label));
    if nodes.iter().any(is_guest) { &config.guest_parameters } else { &[] }
}

fn signed<'a>(config: &'a Config, driver: &Driver, platform: Platform) -> &'a [String] {
    match platform {
        _ if driver.passthrough => &config.sign_passthrough,
        Platform::OpenShift => &config.sign_open_shift,
        Platform::Kubernetes => &config.sign_kubernetes,
    }
}

/// A volume, and a mount of each of its files where the system looks for repositories.
fn mounts(call: &Call<Config>, name: &str, nodes: &[Node]) -> Result<Map<String, Value>, Failure> {
    let target = ObjectRef::new("v1", "ConfigMap", name).within(&call.context.release.namespace);
    let map: ConfigMap = match kube::get(&target, &[]) {
        Err(ReadError::NotFound) => {
            let message = format!("ConfigMap {name} with the repositories is not there; create it");
            return Err(Failure::until_changed(message.clone())
                .about(Blocker::new("RepositoriesMissing", message).on(target)));
        }
        found => found?,
    };
    let folder = only_os(nodes)?.repositories();
    let mounts = map.data.keys().map(|file| {
        json!({"name": "repositories", "mountPath": format!("{folder}/{file}"), "subPath": file, "readOnly": true})
    });
    let mounts: Vec<Value> = mounts.collect();
    let volumes = json!([{"name": "repositories", "configMap": {"name": name}}]);
    Ok(Map::from_iter([("volumes".to_owned(), volumes), ("mounts".to_owned(), json!(mounts))]))
}

/// The image of this kernel where its registry has one, else that it must be built.
fn variant(driver: &Driver, nodes: &[Node]) -> Result<Map<String, Value>, Failure> {
    let Driver { image, version, force_precompiled, .. } = driver;
    let precompiled = format!("{image}:{version}-{}-{}", only_kernel(nodes)?, only_os(nodes)?.tag());
    let is_there = match images::resolve(&precompiled) {
        Ok(_) => true,
        Err(ReadError::NotFound) => false,
        Err(error) => return Err(error.into()),
    };
    if !is_there && *force_precompiled {
        let message = format!("{precompiled} is not in its registry, and forcePrecompiled wants no other");
        return Err(nothing("NotPrecompiled", message));
    }
    let chosen = if is_there { precompiled } else { format!("{image}:{version}") };
    Ok(Map::from_iter([("image".to_owned(), json!(chosen)), ("build".to_owned(), json!(!is_there))]))
}

fn only_os(nodes: &[Node]) -> Result<Os, Failure> {
    let mut systems: Vec<Os> = nodes.iter().map(Node::os).collect();
    systems.sort();
    systems.dedup();
    match systems.as_slice() {
        [one] => Ok(one.clone()),
        several => {
            let names: Vec<String> = several.iter().map(Os::tag).collect();
            Err(nothing("SeveralSystems", format!("nodes run {}; render per pool", names.join(" and "))))
        }
    }
}

fn only_kernel(nodes: &[Node]) -> Result<&str, Failure> {
    let mut kernels: Vec<&str> = nodes.iter().map(Node::kernel).collect();
    kernels.sort_unstable();
    kernels.dedup();
    match kernels.as_slice() {
        [one] => Ok(one),
        several => {
            Err(nothing("SeveralKernels", format!("nodes run {}; render per pool", several.join(" and "))))
        }
    }
}

fn nothing(reason: &str, message: String) -> Failure {
    Failure::until_changed(message.clone()).about(Blocker::new(reason, message))
}

#[cfg(test)]
mod tests;
