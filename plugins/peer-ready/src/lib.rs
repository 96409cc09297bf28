//! `peer-ready`: a state waits for what another operator looks after: a field of its object says that it is
//! well. Where the other's kind is not installed, or no node asks for it, nothing is waited for.

use std::collections::BTreeMap;

use pintle_plugin_sdk::{
    Answer, Blocker, Call, Failure, Json, Manifest, ObjectRef, Plugin, Readiness,
    config::config,
    export_plugin,
    kube::{self, LabelSelector, Query, ReadError},
};
use serde::Deserialize;
use serde_json::Value;

config! {
    /// `spec.config` of the Plugin.
    pub struct Config {
        /// What may be waited for, by the name that annotations give.
        peers: BTreeMap<String, Peer> = BTreeMap::new(),
    }
}

config! {
    /// Something that another operator looks after.
    pub struct Peer {
        /// `scenario.example/v1`.
        api_version: String = String::new(),
        /// Kind in the singular.
        kind: String = String::new(),
        /// Name of the object.
        name: String = String::new(),
        /// Namespace of the object; without one, that of the release.
        namespace: Option<String> = None,
        /// Dotted paths of its fields, each with the value that says that all is well.
        fields: BTreeMap<String, String> = BTreeMap::new(),
        /// Dotted path of a text that is shown to people while it is not.
        says: Option<String> = None,
        /// Waited for only where a node has these labels.
        node_labels: BTreeMap<String, String> = BTreeMap::new(),
        /// A DaemonSet of the same namespace that must have been rolled out, where there is one.
        daemon_set: Option<String> = None,
    }
}

config! {
    /// Arguments in the annotation: `peer-ready(peer="storage")`.
    pub struct Args {
        /// A name under `peers`.
        peer: String = String::new(),
    }
}

#[derive(Deserialize)]
struct Named {}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DaemonSet {
    metadata: Metadata,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    generation: i64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    observed_generation: i64,
    desired_number_scheduled: i64,
    updated_number_scheduled: i64,
    number_available: i64,
}

/// The plugin.
pub struct PeerReady;

impl Plugin for PeerReady {
    type Config = Config;

    fn describe() -> Manifest {
        Manifest::new("peer-ready", env!("CARGO_PKG_VERSION"))
            .description("A state waits for what another operator looks after")
            .config::<Config>()
            .args::<Args>()
            .reasons(["PeerMissing", "PeerNotReady", "PeerRollsOut"])
    }

    fn validate(config: &Config) -> Result<(), Failure> {
        match config.peers.iter().find(|(_, peer)| peer.kind.is_empty() || peer.fields.is_empty()) {
            Some((name, _)) => Err(Failure::until_changed(format!("peers.{name} needs kind and fields"))),
            None => Ok(()),
        }
    }
}

impl Readiness for PeerReady {
    fn check(call: &Call<Config>, _: &Json) -> Result<Answer, Failure> {
        let Args { peer: name } = call.args()?;
        let Some(peer) = call.config.peers.get(&name) else {
            return Err(Failure::until_changed(format!("config has no peer {name:?}")));
        };
        if !peer.is_wanted()? {
            return Ok(Answer::ready());
        }
        let namespace = peer.namespace.as_deref().unwrap_or(&call.context.release.namespace);
        let target = ObjectRef::new(&peer.api_version, &peer.kind, &peer.name).within(namespace);
        let object: Value = match kube::get(&target, &[]) {
            // Nobody installed the other operator: there is nothing to wait for; its coming asks again.
            Err(ReadError::KindUnknown) => return Ok(Answer::ready()),
            Err(ReadError::NotFound) => {
                let missing = Blocker::new("PeerMissing", format!("{name}: it is not there yet"));
                return Ok(Answer::unless([missing.on(target)]));
            }
            found => found?,
        };
        let own = peer.blockers(&name, &target, &object);
        Ok(Answer::unless(own.into_iter().chain(peer.rollout(&name, namespace)?)))
    }
}

export_plugin!(PeerReady: Readiness);

impl Peer {
    fn is_wanted(&self) -> Result<bool, Failure> {
        if self.node_labels.is_empty() {
            return Ok(true);
        }
        let selector = LabelSelector { match_labels: self.node_labels.clone(), ..LabelSelector::default() };
        let nodes: Vec<Named> =
            kube::find(&Query::all("v1", "Node").selected_by(&selector).fields(&["metadata.name"]))?;
        Ok(!nodes.is_empty())
    }

    /// Each field that is not as it shall be, in the words of the object where it has some.
    fn blockers(&self, name: &str, target: &ObjectRef, object: &Value) -> Vec<Blocker> {
        let wrong = self.fields.iter().filter_map(|(path, wanted)| {
            let found = shown(at(object, path));
            (found != *wanted).then(|| format!("{path} is {found:?}, {wanted:?} is wanted"))
        });
        let says = self.says.as_ref().map(|path| shown(at(object, path))).filter(|text| !text.is_empty());
        let text = |wrong: String| match &says {
            Some(says) => format!("{name}: {wrong}; it says: {says}"),
            None => format!("{name}: {wrong}"),
        };
        wrong.map(|wrong| Blocker::new("PeerNotReady", text(wrong)).on(target.clone())).collect()
    }

    fn rollout(&self, name: &str, namespace: &str) -> Result<Option<Blocker>, Failure> {
        let Some(set) = &self.daemon_set else { return Ok(None) };
        let target = ObjectRef::new("apps/v1", "DaemonSet", set).within(namespace);
        let DaemonSet { metadata, status } = match kube::get(&target, &["metadata.generation", "status"]) {
            Err(ReadError::NotFound) => return Ok(None),
            found => found?,
        };
        let wanted = status.desired_number_scheduled;
        let done = status.updated_number_scheduled.min(status.number_available);
        let is_done = status.observed_generation >= metadata.generation && done >= wanted;
        let message = format!("{name}: {done} of {wanted} pods are of the newest template and available");
        Ok((!is_done).then(|| Blocker::new("PeerRollsOut", message).on(target)))
    }
}

fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(object, |value, key| match value {
        Value::Array(list) => list.get(key.parse::<usize>().ok()?),
        _ => value.get(key),
    })
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
