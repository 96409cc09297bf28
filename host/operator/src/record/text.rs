//! What is in a record, as text and as objects.

use pintle_api::Object;
use pintle_chart::{
    manifest,
    release::{HookRun, Record, StoredHook},
};
use pintle_plan::{
    Dress, Flavor, Hook, HookPhase, IN_STATE, Known, Memory, REST, Rendered, StateInput, dress,
};
use pintle_template::yaml;
use serde_json::Value;

use crate::front::Front;

/// The hooks of a record. One that cannot be read any more is left out, and the log says so.
pub(crate) fn hooks(record: &Record) -> Vec<Hook> {
    let read = |stored: &StoredHook| {
        let object = objects_in(&stored.manifest).into_iter().next();
        if object.is_none() {
            tracing::warn!(release = record.name, hook = stored.name, "a stored hook cannot be read");
        }
        Some(Hook {
            rendered: Rendered { object: object?, source: stored.path.clone() },
            events: stored.events.clone(),
            weight: stored.weight,
            delete_policies: stored.delete_policies.clone(),
        })
    };
    record.hooks.iter().filter_map(read).collect()
}

/// The objects of a record, as a memory would know them.
pub(crate) fn objects(record: &Record) -> Vec<Known> {
    let known = |mut object: Object| {
        if object.namespace().is_none() {
            let namespace = Value::from(record.namespace.as_str());
            object.map_mut(&["metadata"]).insert("namespace".to_owned(), namespace);
        }
        let state = object.annotation(IN_STATE).unwrap_or(REST).to_owned();
        Known::unmarked(object.reference(), state)
    };
    objects_in(&record.manifest).into_iter().map(known).collect()
}

/// Objects of a record by their states, and its hooks.
type Again = (Vec<(String, Rendered)>, Vec<Hook>);

/// The objects of a record as they are to be applied again, and the hooks, dressed for the release.
pub(crate) fn rendered(
    record: &Record,
    front: &Front,
    is_namespaced: &dyn Fn(&Object) -> bool,
) -> Result<Again, pintle_plan::DressError> {
    let dressed = |state: &str, object: Object| {
        let release = &front.release;
        let with = Dress {
            release: &release.name,
            namespace: &release.namespace,
            owner: &release.owner,
            owner_uid: &release.owner_uid,
            flavor: &Flavor::Watch,
            state,
            pool: None,
        };
        let scope = is_namespaced(&object);
        dress(&with, object, scope)
    };
    let mut states = Vec::new();
    for object in objects_in(&record.manifest) {
        let state = object.annotation(IN_STATE).unwrap_or(REST).to_owned();
        let source = format!("revision {}", record.version);
        states.push((state.clone(), Rendered { object: dressed(&state, object)?, source }));
    }
    let mut found = hooks(record);
    for hook in &mut found {
        hook.rendered.object = dressed("", hook.rendered.object.clone())?;
    }
    Ok((states, found))
}

/// The objects of a manifest, those of its lists one by one. Helm's client writes records too: what cannot be read
/// is left out, and the log says so.
fn objects_in(text: &str) -> Vec<Object> {
    let read = |(line, text)| match yaml::load_json(text) {
        Ok(document) => manifest::items(&document).to_vec(),
        Err(err) => {
            tracing::warn!(line, "a document of a stored manifest cannot be read: {err}");
            Vec::new()
        }
    };
    let documents = manifest::split(text).into_iter().flat_map(read);
    documents.filter_map(|document| Object::new(document).ok()).collect()
}

/// Tells in the record how its hooks ran.
pub(super) fn note_runs(record: &mut Record, memory: &Memory) {
    for run in memory.hooks.iter().filter(|run| run.revision == record.version) {
        let is_it = |hook: &&mut StoredHook| hook.kind == run.object.kind && hook.name == run.object.name;
        if let Some(hook) = record.hooks.iter_mut().find(is_it) {
            let phase = match run.phase {
                HookPhase::Running => "Running",
                HookPhase::Succeeded => "Succeeded",
                HookPhase::Failed => "Failed",
            };
            let completed_at = (run.phase != HookPhase::Running).then_some(run.until).flatten();
            hook.last_run = HookRun { started_at: Some(run.since), completed_at, phase: phase.to_owned() };
        }
    }
}

pub(super) fn stored_hook(hook: &Hook) -> StoredHook {
    let object = &hook.rendered.object;
    StoredHook {
        name: object.name().to_owned(),
        kind: object.kind().to_owned(),
        path: hook.rendered.source.clone(),
        manifest: serde_yaml::to_string(object).unwrap_or_default(),
        events: hook.events.clone(),
        weight: hook.weight,
        delete_policies: hook.delete_policies.clone(),
        ..StoredHook::default()
    }
}

/// Every object as it is applied. A state that cannot be rendered yet is named in its place.
pub(super) fn manifest(states: &[StateInput]) -> String {
    let mut text = String::new();
    for state in states {
        for pool in &state.pools {
            match &pool.objects {
                Ok(objects) => {
                    for rendered in objects {
                        let yaml = serde_yaml::to_string(&rendered.object).unwrap_or_default();
                        text.push_str(&format!("---\n# Source: {}\n{yaml}", rendered.source));
                    }
                }
                Err(fault) => {
                    text.push_str(&format!("---\n# {} is not rendered: {}\n", state.name, fault.reason));
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_read_past_what_is_damaged_in_it() {
        let list = "kind: ConfigMapList\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n";
        let object = "# Source: x\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        let found = objects_in(&format!("---\n{object}---\n{{\n---\n# nothing\n---\n{list}"));
        let names: Vec<&str> = found.iter().map(Object::name).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(objects_in("{\n").is_empty());
    }
}
