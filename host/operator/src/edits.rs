//! What post-renderers see of what was rendered, and what becomes of it.

use std::{collections::BTreeMap, sync::Arc};

use pintle_api::{Blocker, Gvk, Verdict};
use pintle_chart::Document;
use pintle_plan::{REST, fnv1a};
use pintle_plugin::{Edit, Rendered};
use serde_json::Value;

use crate::{
    plugins::question::NoAnswer,
    render::{Raw, RawState},
};

/// Where an object is in what was rendered: state, pool, document.
type Place = (usize, usize, usize);

/// Every rendered object under a key of its own, in the namespace it will be in.
pub(crate) fn shown(
    raw: &Raw,
    namespace: &str,
    is_namespaced: &(dyn Fn(&Gvk) -> Option<bool> + Sync),
) -> Vec<Rendered> {
    let shown = places(raw).into_iter().filter_map(|(key, (state, pool, document))| {
        let state = raw.states.get(state)?;
        let pool = state.pools.get(pool)?;
        let document = pool.documents.as_ref().ok()?.get(document)?;
        let mut object = document.object.clone();
        if object.namespace().is_none() && is_namespaced(&object.gvk()).unwrap_or(true) {
            object.map_mut(&["metadata"]).insert("namespace".to_owned(), Value::from(namespace));
        }
        Some(Rendered {
            key,
            state: state.number().to_owned(),
            pool: pool.pool.as_ref().map(|pool| pool.key()).unwrap_or_default(),
            source: document.source.to_string(),
            object: Arc::new(object),
        })
    });
    shown.collect()
}

/// Mark of everything a post-renderer is shown.
pub(crate) fn mark(shown: &[Rendered]) -> u64 {
    let texts = shown.iter().map(|one| format!("{}|{}", one.key, pintle_plan::rendered_mark(&one.object)));
    fnv1a(texts.collect::<Vec<_>>().join("\n").as_bytes())
}

/// Does what a post-renderer wants, to all that it was shown.
///
/// # Errors
/// When it adds to a state that is none of the chart's.
pub(crate) fn apply(raw: &mut Raw, plugin: &str, edits: Vec<Edit>) -> Result<(), NoAnswer> {
    let places: BTreeMap<String, Place> = places(raw).into_iter().collect();
    let (mut dropped, mut added) = (Vec::new(), Vec::new());
    for edit in edits {
        match edit {
            Edit::Replace { key, object } => {
                if let Some(document) = places.get(&key).and_then(|place| document_at(raw, *place)) {
                    document.object = object;
                }
            }
            Edit::Drop { key } => dropped.extend(places.get(&key).copied()),
            Edit::Add { state, object, .. } => added.push((state, object)),
        }
    }
    // From the last to the first: what is before stays where it is.
    dropped.sort_unstable_by(|one, other| other.cmp(one));
    for (state, pool, document) in dropped {
        if let Some(Ok(documents)) = raw
            .states
            .get_mut(state)
            .and_then(|state| state.pools.get_mut(pool))
            .map(|pool| &mut pool.documents)
            && document < documents.len()
        {
            documents.remove(document);
        }
    }
    for (state, object) in added.into_iter().rev() {
        let source = Arc::from(format!("plugin {plugin}"));
        add(raw, plugin, &state, Document { source, index: 0, line: 1, text: Arc::from(""), object })?;
    }
    Ok(())
}

/// Adds an object before the others of its state, which may need it. Where the state is rendered per pool, each
/// of them has it, and the first keeps it.
fn add(raw: &mut Raw, plugin: &str, number: &str, document: Document) -> Result<(), NoAnswer> {
    let is_it = |state: &&mut RawState| {
        if number.is_empty() { state.name == REST } else { state.number() == number }
    };
    match raw.states.iter_mut().find(is_it) {
        Some(state) => {
            for documents in state.pools.iter_mut().filter_map(|pool| pool.documents.as_mut().ok()) {
                documents.insert(0, document.clone());
            }
            Ok(())
        }
        None if number.is_empty() => {
            raw.states.push(RawState::of(REST, document));
            Ok(())
        }
        None => {
            let object = document.object.reference();
            let message = format!(
                "{plugin}: it adds {object} to state {number}, and the chart has no state of that number"
            );
            Err(NoAnswer::of(Verdict::fatal(Blocker::new("PluginAnswerInvalid", message).on(object))))
        }
    }
}

fn document_at(raw: &mut Raw, (state, pool, document): Place) -> Option<&mut Document> {
    raw.states.get_mut(state)?.pools.get_mut(pool)?.documents.as_mut().ok()?.get_mut(document)
}

/// `0000-state/pool/Kind/name` of each object; the second of the same has a number at its end.
fn places(raw: &Raw) -> Vec<(String, Place)> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut places = Vec::new();
    for (at, state) in raw.states.iter().enumerate() {
        for (pool_at, pool) in state.pools.iter().enumerate() {
            let key = pool.pool.as_ref().map(|pool| pool.key()).unwrap_or_default();
            for (document_at, document) in pool.documents.iter().flatten().enumerate() {
                let object = &document.object;
                let base = format!("{}/{key}/{}/{}", state.name, object.kind(), object.name());
                let count = seen.entry(base.clone()).or_default();
                *count += 1;
                let key = if *count > 1 { format!("{base}#{count}") } else { base };
                places.push((key, (at, pool_at, document_at)));
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use pintle_api::{Object, plugin::Identity};
    use serde_json::json;

    use super::*;

    fn object(kind: &str, name: &str) -> Object {
        Object::new(json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})).unwrap()
    }

    fn document(name: &str) -> Document {
        let (source, text) = (Arc::from("c/templates/0000-a.yaml"), Arc::from(""));
        Document { source, index: 0, line: 1, text, object: object("ConfigMap", name) }
    }

    fn raw() -> Raw {
        let mut state = RawState::of("0000-a", document("one"));
        let documents = state.pools[0].documents.as_mut().unwrap();
        documents.extend([document("two"), document("two"), document("three")]);
        let mut raw = Raw::default();
        raw.states.push(state);
        raw
    }

    fn names(raw: &Raw) -> Vec<String> {
        let documents = raw.states.iter().flat_map(|state| &state.pools).flat_map(|pool| &pool.documents);
        documents.flatten().map(|document| document.object.name().to_owned()).collect()
    }

    fn adding(state: &str) -> Edit {
        let (key, state) = ("new".to_owned(), state.to_owned());
        Edit::Add { key, state, object: object("Secret", "new"), identity: Identity::default() }
    }

    #[test]
    fn each_object_has_a_key_of_its_own_and_the_namespace_it_will_be_in() {
        let shown = shown(&raw(), "ns", &|gvk: &Gvk| Some(gvk.kind == "ConfigMap"));
        let keys: Vec<_> = shown.iter().map(|one| one.key.as_str()).collect();
        assert_eq!(
            keys,
            [
                "0000-a//ConfigMap/one",
                "0000-a//ConfigMap/two",
                "0000-a//ConfigMap/two#2",
                "0000-a//ConfigMap/three"
            ]
        );
        assert!(shown.iter().all(|one| one.state == "0000" && one.object.namespace() == Some("ns")));
    }

    #[test]
    fn objects_are_replaced_dropped_and_added_before_the_others() {
        let mut raw = raw();
        let key = |name: &str| format!("0000-a//ConfigMap/{name}");
        let edits = vec![
            Edit::Drop { key: key("one") },
            adding("0000"),
            Edit::Replace { key: key("two#2"), object: object("ConfigMap", "other") },
            Edit::Drop { key: key("three") },
            adding(""),
        ];
        apply(&mut raw, "p", edits).unwrap();
        assert_eq!(names(&raw), ["new", "two", "other", "new"]);
        assert_eq!(raw.states[1].name, "rest");
    }

    #[test]
    fn a_state_that_the_chart_has_not_is_named() {
        let refused = apply(&mut raw(), "p", vec![adding("7000")]).unwrap_err();
        let message = &refused.verdict.blockers()[0].message;
        assert_eq!(message, "p: it adds Secret new to state 7000, and the chart has no state of that number");
    }
}
