//! `ordered-teardown`: before a release is deleted its workloads go one after another, each only when
//! the pods of the one before are gone, so that nothing holds the driver when its module is unloaded.

use std::collections::BTreeMap;

use pintle_plugin_sdk::{
    Action, Around, Blocker, Call, Failure, Hooks, Manifest, ObjectAccess, ObjectRef, Operation, Pending,
    Phase, Plugin, ReadAccess, Step,
    config::config,
    export_plugin, inputs,
    kube::{self, LabelSelector, Query, ReadError},
};
use serde::Deserialize;
use serde_json::json;

/// What is read of a pod, and must be granted.
const FIELDS: [&str; 2] = ["metadata.name", "spec.nodeName"];
/// What of a workload; objects of the release need no grant.
const WORKLOAD: [&str; 3] = ["metadata.name", "metadata.uid", "spec.selector"];

config! {
    /// `spec.config` of the Plugin.
    pub struct Config {
        /// Workloads of the release in the order in which they go.
        order: Vec<Tier> = Vec::new() => {"minItems": 1},
    }
}

config! {
    /// One workload.
    pub struct Tier {
        /// As in its `apiVersion`.
        api_version: String = "apps/v1".to_owned(),
        /// As in its `kind`.
        kind: String = "DaemonSet".to_owned(),
        /// Its name; `$release` in it is the name of the release.
        name: String = String::new(),
    }
}

#[derive(Deserialize)]
struct Workload {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    uid: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    selector: LabelSelector,
}

#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    #[serde(default)]
    spec: PodSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: String,
}

/// Selectors of the pods of each workload that was seen: it is gone before its pods are.
type Saved = BTreeMap<String, String>;

/// The plugin.
pub struct OrderedTeardown;

impl Plugin for OrderedTeardown {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("ordered-teardown", env!("CARGO_PKG_VERSION"))
            .description("Before a release is deleted its workloads go one after another, pods included")
            .config::<Config>()
            .reads(ReadAccess::to("", "Pod").in_release().fields(&FIELDS))
            .does(["delete"], ObjectAccess::to("apps", "DaemonSet").in_release())
            .reasons(["WorkloadGoes", "PodGoes"])
    }

    fn validate(config: &Config) -> Result<(), Failure> {
        match config.order.iter().position(|tier| tier.name.is_empty()) {
            Some(at) => Err(Failure::until_changed(format!("order[{at}].name is empty"))),
            None if config.order.is_empty() => {
                Err(Failure::until_changed("order is empty, so nothing is ordered"))
            }
            None => Ok(()),
        }
    }
}

impl Hooks for OrderedTeardown {
    fn on_phase(call: &Call<Config>, around: &Around) -> Result<Step, Failure> {
        if call.context.operation != Operation::Delete || around.phase != Phase::Pre {
            return Ok(Step::go());
        }
        let mut saved: Saved = inputs::saved()?.unwrap_or_default();
        let release = &call.context.release;
        for (at, tier) in call.config.order.iter().enumerate() {
            let name = tier.name.replace("$release", &release.name);
            let target = ObjectRef::new(&tier.api_version, &tier.kind, &name).within(&release.namespace);
            match kube::get::<Workload>(&target, &WORKLOAD) {
                Ok(workload) => {
                    saved.insert(format!("{at}"), workload.spec.selector.to_query());
                    return Ok(delete(call, at, target, &workload).save(&json!(saved)));
                }
                Err(ReadError::NotFound | ReadError::KindUnknown) => {}
                Err(error) => return Err(error.into()),
            }
            let left = saved
                .get(&format!("{at}"))
                .map_or_else(|| Ok(Vec::new()), |selector| pods(call, selector))?;
            if !left.is_empty() {
                return Ok(Step::hold(Pending::new(left)));
            }
        }
        Ok(Step::go())
    }
}

export_plugin!(OrderedTeardown: Hooks);

/// Asks for the deletion of one workload. The uid makes it once for each object of that name.
fn delete(call: &Call<Config>, at: usize, target: ObjectRef, workload: &Workload) -> Step {
    let later: Vec<&str> = call.config.order.iter().skip(at + 1).map(|tier| tier.name.as_str()).collect();
    let message = match later.as_slice() {
        [] => "it goes last".to_owned(),
        later => format!("it goes before {}", later.join(", ")),
    };
    let Metadata { name, uid } = &workload.metadata;
    let action = Action::new(format!("delete-{name}-{uid}"), "delete", target.clone());
    Step::hold(Pending::new(vec![Blocker::new("WorkloadGoes", message).on(target)])).action(action)
}

/// Pods that are still there, as blockers.
fn pods(call: &Call<Config>, selector: &str) -> Result<Vec<Blocker>, Failure> {
    let namespace = &call.context.release.namespace;
    let query = Query::all("v1", "Pod").within(namespace).selected_by_text(selector).fields(&FIELDS);
    let blocker = |pod: Pod| {
        let object = ObjectRef::new("v1", "Pod", &pod.metadata.name).within(namespace);
        let blocker = Blocker::new("PodGoes", "it may still hold the driver").on(object);
        if pod.spec.node_name.is_empty() { blocker } else { blocker.at_node(pod.spec.node_name) }
    };
    Ok(kube::find::<Pod>(&query)?.into_iter().map(blocker).collect())
}

#[cfg(test)]
mod tests;
