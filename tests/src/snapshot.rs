//! How a release stands at its end, without what differs from run to run: uids, versions, times, addresses,
//! suffixes of pods, seeds.

use std::{collections::BTreeMap, sync::LazyLock};

use anyhow::Context as _;
use pintle_api::names;
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::Stage;

/// Kinds whose objects carry the owner's mark.
const OWNED: [&str; 7] =
    ["ImageStream", "BuildConfig", "ServiceAccount", "Role", "RoleBinding", "DaemonSet", "Secret"];
/// Metadata that counts the writes of others, or says when.
const COUNTERS: [&str; 5] =
    ["resourceVersion", "generation", "managedFields", "creationTimestamp", "selfLink"];

/// uids, times and digests.
static DIFFERS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let patterns = [
        ("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        ("sha256:[0-9a-f]{64}", "DIGEST"),
    ];
    patterns.iter().filter_map(|(pattern, word)| Some((Regex::new(pattern).ok()?, *word))).collect()
});

// === impl Stage ===

impl Stage {
    /// Everything that a release of the example has left in the cluster, by kind and name.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn snapshot(&self) -> anyhow::Result<BTreeMap<String, Value>> {
        let owner = self.read("SpecialResource", &self.name).await?;
        let uid = owner.pointer("/metadata/uid").and_then(Value::as_str).context("no uid")?.to_owned();
        let mut all = BTreeMap::new();
        let mut put = |kind: &str, value: Value| {
            let value = self.mask(value);
            let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            all.insert(format!("{kind} {name}"), value);
        };
        put("SpecialResource", owner);
        put("Namespace", self.read("Namespace", &self.name).await?);
        for kind in OWNED {
            let mine = self.list(kind).await?.into_iter();
            let mine = mine.filter(|object| {
                object.pointer("/metadata/labels").is_some_and(|labels| labels[names::OWNER] == uid.as_str())
            });
            mine.for_each(|object| put(kind, if kind == "Secret" { secret(&object) } else { object }));
        }
        for build in self.list("Build").await? {
            put(
                "Build",
                json!({"metadata": {"name": build["metadata"]["name"]}, "phase": build["status"]["phase"]}),
            );
        }
        put("Nodes", self.node_labels().await?);
        put("Pods", pods(&self.list("Pod").await?));
        Ok(all)
    }

    /// The state labels of this release on each node.
    async fn node_labels(&self) -> anyhow::Result<Value> {
        let prefix = format!("{}{}-", names::SRO_NODE_STATE, self.name);
        let mut node_to_labels = Map::new();
        for node in self.list("Node").await? {
            let labels = node["metadata"]["labels"].as_object().cloned().unwrap_or_default();
            let own: Map<String, Value> =
                labels.into_iter().filter(|(key, _)| key.starts_with(&prefix)).collect();
            node_to_labels
                .insert(node["metadata"]["name"].as_str().unwrap_or_default().to_owned(), own.into());
        }
        Ok(Value::Object(node_to_labels))
    }

    /// The object without what differs from run to run.
    fn mask(&self, mut value: Value) -> Value {
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            COUNTERS.iter().for_each(|field| drop(metadata.remove(*field)));
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                // Over the rendered object, which names the owner's uid.
                annotations.remove(names::SRO_HASH);
            }
            if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
                labels.remove("modifiedAt");
            }
        }
        self.mask_texts(&mut value);
        value
    }

    fn mask_texts(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.mask_text(text),
            Value::Array(list) => list.iter_mut().for_each(|value| self.mask_texts(value)),
            Value::Object(map) => {
                let masked = std::mem::take(map).into_iter().map(|(key, mut value)| {
                    self.mask_texts(&mut value);
                    (self.mask_text(&key), value)
                });
                *map = masked.collect();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn mask_text(&self, text: &str) -> String {
        let named = text.replace(&self.name, "NAME");
        DIFFERS.iter().fold(named, |text, (pattern, word)| pattern.replace_all(&text, *word).into_owned())
    }
}

/// A Secret without its payload, which holds seeds and times.
fn secret(object: &Value) -> Value {
    let keys = object["data"].as_object().into_iter().flat_map(Map::keys);
    json!({"metadata": object["metadata"], "type": object["type"], "keys": keys.collect::<Vec<_>>()})
}

/// Node, phase and image of each pod of a workload; the pod of a build may be gone or not.
fn pods(list: &[Value]) -> Value {
    let mut all: Vec<_> = list
        .iter()
        .filter(|pod| pod["metadata"]["ownerReferences"][0]["kind"] != "Build")
        .map(|pod| {
            json!([
                pod["spec"]["nodeName"],
                pod["status"]["phase"],
                pod["spec"]["containers"][0]["image"],
                pod["status"]["containerStatuses"][0]["restartCount"]
            ])
            .to_string()
        })
        .collect();
    all.sort();
    json!({"all": all})
}

/// What differs between two snapshots, one object a paragraph; empty when nothing does.
#[must_use]
pub fn difference(wanted: &BTreeMap<String, Value>, found: &BTreeMap<String, Value>) -> String {
    let keys: std::collections::BTreeSet<_> = wanted.keys().chain(found.keys()).collect();
    let differs = keys.into_iter().filter(|key| wanted.get(*key) != found.get(*key));
    let tell = |key: &String| {
        let mut lines = format!("{key}:\n");
        tell_difference(
            "",
            wanted.get(key).unwrap_or(&Value::Null),
            found.get(key).unwrap_or(&Value::Null),
            &mut lines,
        );
        lines
    };
    differs.map(tell).collect()
}

fn tell_difference(at: &str, wanted: &Value, found: &Value, out: &mut String) {
    match (wanted, found) {
        _ if wanted == found => {}
        (Value::Object(wanted), Value::Object(found)) => {
            let keys: std::collections::BTreeSet<_> = wanted.keys().chain(found.keys()).collect();
            for key in keys {
                let (a, b) =
                    (wanted.get(key).unwrap_or(&Value::Null), found.get(key).unwrap_or(&Value::Null));
                tell_difference(&format!("{at}/{key}"), a, b, out);
            }
        }
        _ => out.push_str(&format!("  {at}: {wanted} became {found}\n")),
    }
}
