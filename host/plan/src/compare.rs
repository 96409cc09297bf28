//! How a live object stands to what shall be.

use std::{borrow::Cow, sync::Arc, time::Duration};

use pintle_api::{Answer, Blocker, Object, Verdict, held_fields, names, watch::Adopt};
use serde_json::Value;

use crate::{
    ApplyMode, Input,
    drift::{Drift, held_mark, taker},
    fnv1a,
    memory::key_of,
};

/// How a live object stands to a rendered one.
#[derive(Debug)]
pub(crate) enum Standing {
    /// Nobody has looked yet.
    NotYet,
    /// It is as it shall be.
    InSync(Arc<Object>),
    /// It must be written.
    Write(ApplyMode),
    /// It must go, so that it can be made anew.
    Remove,
    /// It differs, and is left as it is: for good, or until so much time has passed.
    Left(Option<Arc<Object>>, Drift, Option<Duration>),
    /// It must not be written.
    Held(Verdict),
}

/// Mark of an object as it was rendered; independent of the order of keys.
#[must_use]
pub fn rendered_mark(object: &Object) -> String {
    let mut text = String::new();
    object.json().iter().collect::<std::collections::BTreeMap<_, _>>().iter().for_each(|(key, value)| {
        text.push_str(key);
        write_canonical(value, &mut text);
    });
    format!("{:x}", fnv1a(text.as_bytes()))
}

/// Mark of the fields the server holds for us; empty when it holds none.
///
/// A field somebody else changed has left our entry, so the mark differs; values are never compared,
/// since a server may write `1000m` as `1`.
#[must_use]
pub fn fields_mark(object: &Object) -> String {
    mark_of_fields(own_entries(object))
}

/// The same for a manager of a plugin's.
pub(crate) fn fields_mark_of(object: &Object, manager: &str) -> String {
    mark_of_fields(entries_of(object, manager))
}

/// Mark of `fieldsV1` trees; empty when there is none.
pub(crate) fn mark_of_fields<'a>(trees: impl Iterator<Item = Cow<'a, Value>>) -> String {
    let mut text = String::new();
    trees.for_each(|fields| write_canonical(&fields, &mut text));
    if text.is_empty() { text } else { format!("{:x}", fnv1a(text.as_bytes())) }
}

/// The `fieldsV1` trees of what we applied.
pub(crate) fn own_entries(object: &Object) -> impl Iterator<Item = Cow<'_, Value>> {
    entries_of(object, names::MANAGER)
}

fn entries_of<'a>(object: &'a Object, manager: &'a str) -> impl Iterator<Item = Cow<'a, Value>> {
    let entries = object.at("/metadata/managedFields").and_then(Value::as_array);
    let ours = entries.into_iter().flatten().filter(move |entry| {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        text("manager") == manager && text("operation") == "Apply" && text("subresource").is_empty()
    });
    ours.filter_map(held_fields)
}

/// Compares a rendered object with the live one of the same name.
pub(crate) fn compare(input: &Input<'_>, rendered: &Object) -> Standing {
    let known = input.memory.known(&rendered.reference());
    compare_known(input, rendered, known.map(|known| (known.rendered.as_str(), known.fields.as_str())))
}

/// The same with the marks of what was last rendered, and of the fields the server then held for us.
pub(crate) fn compare_known(input: &Input<'_>, rendered: &Object, known: Option<(&str, &str)>) -> Standing {
    let reference = rendered.reference();
    let live = match input.answers.written.get(&reference) {
        Some(written) => Answer::Found(Arc::clone(written)),
        None => input.facts.get(&reference),
    };
    match live {
        Answer::NotYet => Standing::NotYet,
        Answer::Missing => compare_missing(input, rendered, known),
        Answer::KindUnknown => Standing::Held(Verdict::pending(kind_unknown(rendered))),
        Answer::Denied(why) => {
            Standing::Held(Verdict::transient(Blocker::new("Forbidden", why).on(reference)))
        }
        Answer::Found(live) if live.is_terminating() => Standing::Held(Verdict::pending(terminating(&live))),
        Answer::Found(live) => compare_found(input, rendered, live, known),
    }
}

fn compare_found(
    input: &Input<'_>,
    rendered: &Object,
    live: Arc<Object>,
    known: Option<(&str, &str)>,
) -> Standing {
    if live.label(names::OWNER) != Some(&input.release.owner_uid) {
        return match foreign_owner(input, &live) {
            None => Standing::Write(ApplyMode::Adopt),
            Some(owner) => Standing::Held(Verdict::fatal(owned_by_other(&live, &owner))),
        };
    }
    if known.is_none_or(|(mark, _)| mark != rendered_mark(rendered)) {
        return Standing::Write(ApplyMode::Repair);
    }
    let held = held_mark(&live, rendered, &input.release.policy.ignore);
    if known.is_some_and(|(_, fields)| fields == held) {
        return Standing::InSync(live);
    }
    compare_drifted(input, rendered, live)
}

/// Somebody changed what was applied.
fn compare_drifted(input: &Input<'_>, rendered: &Object, live: Arc<Object>) -> Standing {
    let object = live.reference();
    let manager = taker(&live, rendered, &input.release.policy.ignore);
    if input.release.leaves_drift {
        let message = format!("{manager} changed fields of it; driftDetection leaves them");
        return Standing::Left(Some(live), Drift { object, message, manager: None }, None);
    }
    let contest = input.memory.contests.get(&key_of(&object)).filter(|contest| contest.manager == manager);
    match contest.and_then(|contest| contest.wait(input.now)) {
        None => Standing::Write(ApplyMode::Repair),
        Some(wait) => {
            let message = format!("{manager} changes back what is repaired; the next repair waits");
            Standing::Left(Some(live), Drift { object, message, manager: Some(manager) }, Some(wait))
        }
    }
}

/// An object that is not there is made; one that somebody deleted only where that is to be repaired.
fn compare_missing(input: &Input<'_>, rendered: &Object, known: Option<(&str, &str)>) -> Standing {
    let object = rendered.reference();
    let was_applied = known.is_some_and(|(mark, _)| mark == rendered_mark(rendered));
    if was_applied && input.release.leaves_drift {
        let message = "it was deleted; driftDetection does not make it anew".to_owned();
        return Standing::Left(None, Drift { object, message, manager: None }, None);
    }
    Standing::Write(ApplyMode::Create)
}

/// Who owns a live object that does not carry our mark; nothing when it may be taken over.
fn foreign_owner(input: &Input<'_>, live: &Object) -> Option<String> {
    let release = input.release;
    if release.adopt == Adopt::Force {
        return None;
    }
    if let Some(helm) = live.annotation(names::HELM_RELEASE_NAME) {
        let namespace = live.annotation(names::HELM_RELEASE_NAMESPACE).unwrap_or_default();
        let is_this_release = helm == release.name && namespace == release.namespace;
        return (!is_this_release).then(|| format!("Helm release {namespace}/{helm}"));
    }
    if let Some(owner) = live.annotation(names::OWNED_BY).or_else(|| live.label(names::OWNER)) {
        return Some(owner.to_owned());
    }
    if let Some((owner, uid)) = controller_of(live) {
        return (uid != release.owner_uid).then_some(owner);
    }
    if let Some(manager) = live.label(names::MANAGED_BY).filter(|manager| *manager != "Helm") {
        return Some(format!("a manager called {manager}"));
    }
    (release.adopt == Adopt::Never).then(|| "somebody else".to_owned())
}

fn controller_of(live: &Object) -> Option<(String, String)> {
    let owners = live.at("/metadata/ownerReferences")?.as_array()?;
    let controller =
        owners.iter().find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))?;
    let text = |field: &str| controller.get(field).and_then(Value::as_str).unwrap_or_default();
    Some((format!("{} {}", text("kind"), text("name")), text("uid").to_owned()))
}

pub(crate) fn owned_by_other(live: &Object, owner: &str) -> Blocker {
    let message = format!(
        "it exists and belongs to {owner}; delete it, rename ours in the chart, or set `adopt: Force` on the \
         owner of this release"
    );
    Blocker::new("OwnedByOther", message).on(live.reference())
}

pub(crate) fn kind_unknown(rendered: &Object) -> Blocker {
    let message = format!(
        "the cluster does not serve {}; install its CustomResourceDefinition or the operator that brings it",
        rendered.gvk()
    );
    Blocker::new("KindNotInstalled", message).on(rendered.reference())
}

pub(crate) fn terminating(live: &Object) -> Blocker {
    let finalizers = live.at("/metadata/finalizers").and_then(Value::as_array);
    let names: Vec<_> = finalizers.into_iter().flatten().filter_map(Value::as_str).collect();
    let message = if names.is_empty() {
        "it is being deleted".to_owned()
    } else {
        format!("it is being deleted and held by {}", names.join(", "))
    };
    Blocker::new("BeingDeleted", message).on(live.reference())
}

/// JSON with sorted keys, so that equal objects give equal text whatever made them.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            out.push('{');
            let sorted: std::collections::BTreeMap<_, _> = map.iter().collect();
            for (key, value) in sorted {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(list) => {
            out.push('[');
            for value in list {
                write_canonical(value, out);
                out.push(',');
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    fn object(fields: &Value) -> Object {
        Object::new(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "managedFields": [
                {"manager": "pintle", "operation": "Apply", "fieldsV1": fields, "time": "t"},
                {"manager": "pintle", "operation": "Apply", "subresource": "status", "fieldsV1": {"x": {}}},
                {"manager": "kubectl", "operation": "Update", "fieldsV1": {"y": {}}}
            ]}
        }))
        .unwrap()
    }

    #[test]
    fn only_our_own_fields_count() {
        let ours = fields_mark(&object(&json!({"f:data": {"f:a": {}, "f:b": {}}})));
        assert_eq!(ours, fields_mark(&object(&json!({"f:data": {"f:b": {}, "f:a": {}}}))));
        assert_ne!(ours, fields_mark(&object(&json!({"f:data": {"f:a": {}}}))));
        let bare = Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap"})).unwrap();
        assert_eq!(fields_mark(&bare), "");
    }
}
