//! `ptemplate`: a Ptemplate becomes a kernel module on the nodes it selects, and pods that use its devices.
//!
//! The component offers it twice, with the same result: as a whole reconciler, and as the value mapper
//! of the chart `ptemplate`, which then has the objects.

mod consumers;
mod objects;
mod spec;

use pintle_plugin_sdk::{
    Blocker, Call, ConditionStatus, Desired, Failure, Live, Manifest, Mapping, ObjectAccess, ObjectRef,
    Plugin, ReadAccess, Reconciler, ValueMapper, config::NoConfig, export_plugin, inputs,
};
use serde::Deserialize;
use serde_json::{Value, json};

use spec::{DEPRECATED, Spec};

/// Keys of the two objects.
const MODULE: &str = "module";
const CONSUMER: &str = "consumer";

/// What is looked at in the owner.
#[derive(Deserialize)]
struct Owner {
    #[serde(default)]
    spec: Value,
}

/// The plugin.
pub struct Ptemplate;

impl Plugin for Ptemplate {
    type Config = NoConfig;

    fn describe() -> Manifest {
        Manifest::new("ptemplate", env!("CARGO_PKG_VERSION"))
            .description(
                "A kernel module on the nodes that a Ptemplate selects, and pods that use its devices",
            )
            .reads(ReadAccess::to("", "Pod").in_release().fields(&consumers::FIELDS))
            .reads(ReadAccess::to("", "Node").fields(&objects::NODE_FIELDS))
            .makes(ObjectAccess::to("kmm.sigs.x-k8s.io", "Module").in_release())
            .makes(ObjectAccess::to("apps", "DaemonSet").in_release())
            .reasons(["ModuleNotLoaded", "ConsumerGoes", "ConsumerNotReady"])
    }
}

impl ValueMapper for Ptemplate {
    fn map_values(call: &Call<NoConfig>) -> Result<Mapping, Failure> {
        let given: Value = inputs::values()?;
        let (spec, deprecated) = Spec::read(&given)?;
        let release = &call.context.release;
        let consumers = consumers::names(&release.namespace, &release.name)?;
        let mapping = Mapping::new(&spec.values()).status(&json!({"consumers": consumers}));
        let (status, reason, message) = condition(&deprecated);
        Ok(if deprecated.is_empty() {
            mapping
        } else {
            mapping.condition(DEPRECATED, status, reason, message)
        })
    }
}

impl Reconciler for Ptemplate {
    fn reconcile(call: &Call<NoConfig>, applied: &[Live]) -> Result<Desired, Failure> {
        let owner: Owner = inputs::owner()?;
        let (spec, deprecated) = Spec::read(&owner.spec)?;
        let (namespace, name) = (&*call.context.release.namespace, &*call.context.release.name);
        let missing = objects::nodes_without_module(&spec, namespace, name)?;
        // Once it is there, the consumer stays: a node that joins later does not take it from the others.
        let had_consumer = Live::find(applied, CONSUMER).is_some();
        let is_loaded = missing.is_empty() && Live::find(applied, MODULE).is_some();
        let mut blockers: Vec<_> = missing.iter().map(|node| not_loaded(node, name)).collect();
        if Live::find(applied, MODULE).is_none() {
            blockers.push(Blocker::new("ModuleNotLoaded", format!("Module {name} is being made")));
        }
        let consumers = consumers::names(namespace, name)?;
        let mut desired = Desired::unless(blockers)
            .object(MODULE, &objects::module(&spec, namespace, name))
            .status(&json!({"consumers": consumers}));
        if is_loaded || had_consumer {
            desired = desired.object(CONSUMER, &objects::consumer(&spec, namespace, name));
        }
        let (status, reason, message) = condition(&deprecated);
        Ok(if deprecated.is_empty() {
            desired
        } else {
            desired.condition(DEPRECATED, status, reason, message)
        })
    }

    /// Consumers go before the module they use.
    fn finalize(call: &Call<NoConfig>, applied: &[Live]) -> Result<Desired, Failure> {
        let release = &call.context.release;
        let pods = consumers::names(&release.namespace, &release.name)?;
        let is_there = Live::find(applied, CONSUMER).is_some() || !pods.is_empty();
        let Some(module) = Live::find(applied, MODULE).filter(|_| is_there) else {
            return Ok(Desired::unless([]));
        };
        let spec: Owner = inputs::owner()?;
        let (spec, _) = Spec::read(&spec.spec)?;
        let message = format!("{} pods still use the module", pods.len());
        let set = ObjectRef::new("apps/v1", "DaemonSet", objects::consumer_name(&release.name));
        let blocker = Blocker::new("ConsumerGoes", message).on(set.within(&release.namespace));
        let object = objects::module(&spec, &release.namespace, &release.name);
        Ok(Desired::unless([blocker]).object(&module.key, &object))
    }
}

export_plugin!(Ptemplate: ValueMapper, Reconciler);

fn not_loaded(node: &str, module: &str) -> Blocker {
    Blocker::new("ModuleNotLoaded", format!("{module} is not loaded yet"))
        .on(ObjectRef::new("v1", "Node", node))
        .at_node(node)
}

/// What is told of fields under their old names.
fn condition(deprecated: &[&str]) -> (ConditionStatus, &'static str, String) {
    (ConditionStatus::Met, "DeprecatedField", deprecated.join("; "))
}

#[cfg(test)]
mod tests;
