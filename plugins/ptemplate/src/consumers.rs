//! The pods that use the devices.

use pintle_plugin_sdk::{
    Failure,
    kube::{self, LabelSelector, Query},
};
use serde::Deserialize;

use crate::objects::consumer_name;

/// What is read of a pod, and must be granted.
pub(crate) const FIELDS: [&str; 3] = ["metadata.name", "metadata.labels", "metadata.ownerReferences"];

#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    owner_references: Vec<Owner>,
}

#[derive(Deserialize)]
struct Owner {
    kind: String,
    name: String,
}

/// Their names, sorted. A pod of somebody else may carry the same label; it is not counted.
pub(crate) fn names(namespace: &str, name: &str) -> Result<Vec<String>, Failure> {
    let match_labels = [("app".to_owned(), name.to_owned())].into();
    let selector = LabelSelector { match_labels, ..LabelSelector::default() };
    let query = Query::all("v1", "Pod").within(namespace).selected_by(&selector).fields(&FIELDS);
    let set = consumer_name(name);
    let is_ours = |pod: &Pod| {
        pod.metadata.owner_references.iter().any(|owner| owner.kind == "DaemonSet" && owner.name == set)
    };
    let pods: Vec<Pod> = kube::find(&query)?;
    let mut names: Vec<_> = pods.into_iter().filter(is_ours).map(|pod| pod.metadata.name).collect();
    names.sort();
    Ok(names)
}
