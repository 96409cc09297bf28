//! What is in a namespace, of every kind: asked once, by who is about to delete it.

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt as _, stream};
use pintle_api::{Gvk, Object};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Cluster, Failure, Served, Verb, link::Query};

/// Kinds that are listed at once.
const AT_ONCE: usize = 8;
/// Objects of one kind that are read: who has more has no empty namespace.
const MOST: usize = 500;
/// Names, labels, annotations and owners are enough; what an aggregated server sends instead is taken too.
const ACCEPT: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// What a namespace holds.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Objects with their metadata.
    pub objects: Vec<Object>,
    /// Why these are not all, where they are not.
    pub unread: Option<String>,
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    metadata: ListMetadata,
    /// Null where there are none.
    items: Option<Vec<Map<String, Value>>>,
}

#[derive(Default, Deserialize)]
struct ListMetadata {
    /// Where the next page begins; empty where there is none.
    #[serde(default, rename = "continue")]
    next: String,
}

impl Cluster {
    /// The objects in a namespace of all kinds that `counts` names and that can be made and deleted. It ends at
    /// the first kind that cannot be listed.
    pub async fn survey(&self, namespace: &str, counts: impl Fn(&Gvk) -> bool) -> Survey {
        let mut survey = Survey::default();
        let kinds = self.kinds_in_namespaces().into_iter().filter(|served| counts(&served.gvk));
        let asked: Vec<_> = kinds.map(|served| self.list_in(namespace, served)).collect();
        let mut answers = stream::iter(asked).buffered(AT_ONCE);
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(objects) => survey.objects.extend(objects),
                Err(why) => {
                    survey.unread = Some(why);
                    break;
                }
            }
        }
        survey
    }

    /// Each kind once, in the version that the server prefers. What cannot be deleted is computed from other
    /// objects: nobody loses it.
    fn kinds_in_namespaces(&self) -> Vec<Arc<Served>> {
        let mut kinds: BTreeMap<(String, String), Arc<Served>> = BTreeMap::new();
        for served in self.discovery.kinds() {
            if served.namespaced && served.allows("list") && served.allows("delete") {
                let (group, kind) = (served.gvk.group.clone(), served.gvk.kind.clone());
                let preferred = self.discovery.preferred(&group, &kind).unwrap_or(served);
                kinds.insert((group, kind), preferred);
            }
        }
        kinds.into_values().collect()
    }

    async fn list_in(&self, namespace: &str, served: Arc<Served>) -> Result<Vec<Object>, String> {
        let resource = served.resource();
        let query = Query::new(&served.path(Some(namespace), None)).with("limit", &MOST.to_string());
        let list: List = match self.link.send(Verb::List, &resource, query.get_as(ACCEPT)).await {
            Ok(reply) => reply.json().map_err(|err| told(&resource, &err))?,
            // The kind went, or nobody may list it.
            Err(err) if matches!(err.code(), Some(404 | 405)) => return Ok(Vec::new()),
            Err(err) => return Err(told(&resource, &err)),
        };
        let items = list.items.unwrap_or_default();
        if !list.metadata.next.is_empty() || items.len() >= MOST {
            return Err(format!("there are more {resource} than are looked at"));
        }
        Ok(items.into_iter().filter_map(|item| with_kind(item, &served.gvk)).collect())
    }
}

/// Items of a list do not say what they are.
fn with_kind(mut item: Map<String, Value>, gvk: &Gvk) -> Option<Object> {
    item.insert("apiVersion".to_owned(), Value::from(gvk.api_version()));
    item.insert("kind".to_owned(), Value::from(gvk.kind.as_str()));
    Object::new(Value::Object(item)).ok()
}

fn told(resource: &str, err: &Failure) -> String {
    match err.status() {
        Some(status) if !status.message.is_empty() => status.message.clone(),
        _ => format!("could not list {resource}: {err}"),
    }
}
