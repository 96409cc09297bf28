//! Differences between what was applied and what is live: those that do not count, and who makes the others.

use std::{borrow::Cow, collections::BTreeSet, time::Duration};

use pintle_api::{
    Object, ObjectRef, Timestamp, held_fields, names,
    watch::{DriftIgnore, DriftTarget},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::compare::{fields_mark, mark_of_fields, own_entries};

/// Repairs against one manager that are made at once (D2).
const AT_ONCE: u32 = 3;
/// Pause after those; doubles up to [`LONGEST`].
const PAUSE: Duration = Duration::from_secs(1);
/// Longest pause between two repairs.
const LONGEST: Duration = Duration::from_secs(300);
/// After so long without a repair nobody fights any more.
const CALM: Duration = Duration::from_secs(600);
/// Who takes a field away leaves no mark.
const NOBODY: &str = "somebody who leaves no mark";

/// An object that differs and is left as it is, for good or for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Which.
    pub object: ObjectRef,
    /// What differs, in a sentence.
    pub message: String,
    /// The manager it is contested with; absent where nobody repairs.
    pub manager: Option<String>,
}

/// Repairs of one object against one manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contest {
    /// Field manager that changes what we apply.
    pub manager: String,
    /// How often it was repaired.
    pub repairs: u32,
    /// When it was last repaired.
    pub at: Timestamp,
}

/// Steps of a path in `fieldsV1`: `f:spec`, `f:replicas`.
type Path = Vec<String>;

// === impl Contest ===

impl Contest {
    /// How long the next repair waits; nothing when it may be made now.
    #[must_use]
    pub fn wait(&self, now: Timestamp) -> Option<Duration> {
        let doublings = self.repairs.checked_sub(AT_ONCE)?;
        let pause = PAUSE.saturating_mul(1 << doublings.min(16)).min(LONGEST);
        let passed: Duration = now.duration_since(self.at).try_into().unwrap_or_default();
        pause.checked_sub(passed).filter(|left| !left.is_zero())
    }

    /// True while the manager is still at it.
    #[must_use]
    pub fn is_on(&self, now: Timestamp) -> bool {
        let passed: Duration = now.duration_since(self.at).try_into().unwrap_or_default();
        passed < CALM
    }

    /// More was repaired than one slip would ask for.
    #[must_use]
    pub fn is_fight(&self) -> bool {
        self.repairs >= AT_ONCE
    }

    /// The contest after one more repair.
    #[must_use]
    pub fn after_repair(before: Option<&Self>, manager: String, now: Timestamp) -> Self {
        let before = before.filter(|before| before.manager == manager && before.is_on(now));
        Self { manager, repairs: before.map_or(0, |before| before.repairs).saturating_add(1), at: now }
    }
}

/// Mark of the fields the server holds for us, those that others may have counted as ours. It equals
/// [`fields_mark`] of the object as it was applied for as long as nothing that counts was lost.
#[must_use]
pub fn held_mark(live: &Object, rendered: &Object, rules: &[DriftIgnore]) -> String {
    let ignored = ignored_paths(live, rendered, rules);
    if ignored.is_empty() {
        return fields_mark(live);
    }
    let mut trees: Vec<Value> = own_entries(live).map(Cow::into_owned).collect();
    if trees.is_empty() {
        return String::new();
    }
    for path in &ignored {
        if !trees.iter().any(|tree| contains(tree, path))
            && let Some(tree) = trees.first_mut()
        {
            insert(tree, path);
        }
    }
    mark_of_fields(trees.iter().map(Cow::Borrowed))
}

/// The object without the fields that others hold and may keep; nothing where it is applied as it is.
#[must_use]
pub(crate) fn without_ignored(live: &Object, rendered: &Object, rules: &[DriftIgnore]) -> Option<Object> {
    let ours: BTreeSet<Path> = own_entries(live).flat_map(|fields| paths(&fields)).collect();
    let whole = rendered.to_value();
    let mut left: Vec<Path> = ignored_paths(live, rendered, rules)
        .into_iter()
        .filter(|path| !ours.contains(path))
        .filter_map(|path| pointer_of(&path, &whole))
        .collect();
    if left.is_empty() {
        return None;
    }
    // Of a list the last goes first, so that places before it stay what they are.
    left.sort();
    let mut kept = whole;
    left.iter().rev().for_each(|pointer| remove(&mut kept, pointer));
    Object::new(kept).ok()
}

/// The manager that holds a field of ours by now.
#[must_use]
pub(crate) fn taker(live: &Object, rendered: &Object, rules: &[DriftIgnore]) -> String {
    let ours: BTreeSet<Path> = own_entries(live).flat_map(|fields| paths(&fields)).collect();
    let whole = rendered.to_value();
    let takers = foreign_entries(live).filter(|entry| {
        let takes = |path: &Path| !ours.contains(path) && pointer_of(path, &whole).is_some();
        held_fields(entry).is_some_and(|fields| paths(&fields).iter().any(takes))
            && !rules.iter().any(|rule| names_manager(rule, rendered, text(entry, "manager")))
    });
    let newest = takers.max_by_key(|entry| text(entry, "time").to_owned());
    newest.map_or_else(|| NOBODY.to_owned(), |entry| text(entry, "manager").to_owned())
}

/// Paths of fields that others hold, or nobody, and that are not to be repaired.
fn ignored_paths(live: &Object, rendered: &Object, rules: &[DriftIgnore]) -> BTreeSet<Path> {
    let whole = rendered.to_value();
    let mut ignored = BTreeSet::new();
    let pointers: Vec<Path> = rules
        .iter()
        .filter(|rule| is_about(rule, rendered))
        .flat_map(|rule| rule.paths.iter().map(|pointer| steps_of(pointer)))
        .collect();
    for entry in foreign_entries(live) {
        let all = text(entry, "subresource") == "scale"
            || rules.iter().any(|rule| names_manager(rule, rendered, text(entry, "manager")));
        for path in held_fields(entry).map(|fields| paths(&fields)).unwrap_or_default() {
            let is_ignored = pointer_of(&path, &whole)
                .is_some_and(|pointer| all || pointers.iter().any(|rule| pointer.starts_with(rule)));
            if is_ignored {
                ignored.insert(path);
            }
        }
    }
    for pointer in &pointers {
        // Keys of items are not known here; what others hold inside of a list was found above.
        if let Some(value) = at(&whole, pointer).filter(|_| !enters_list(&whole, pointer)) {
            let path: Path = pointer.iter().map(|step| format!("f:{step}")).collect();
            add_scalars(value, path, &mut ignored);
        }
    }
    ignored
}

/// Entries of others in `managedFields`, but for those of a status.
fn foreign_entries(live: &Object) -> impl Iterator<Item = &Value> {
    let entries = live.at("/metadata/managedFields").and_then(Value::as_array);
    entries.into_iter().flatten().filter(|entry| {
        let is_ours = text(entry, "manager") == names::MANAGER && text(entry, "operation") == "Apply";
        !is_ours && text(entry, "subresource") != "status"
    })
}

fn names_manager(rule: &DriftIgnore, object: &Object, manager: &str) -> bool {
    is_about(rule, object) && rule.managers.iter().any(|named| named == manager)
}

fn is_about(rule: &DriftIgnore, object: &Object) -> bool {
    let Some(DriftTarget { group, kind, name, namespace }) = &rule.target else { return true };
    let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
    is(group, &object.gvk().group)
        && is(kind, object.kind())
        && is(name, object.name())
        && is(namespace, object.namespace().unwrap_or_default())
}

fn text<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Every leaf of a `fieldsV1` tree.
fn paths(fields: &Value) -> BTreeSet<Path> {
    let (mut found, mut left) = (BTreeSet::new(), vec![(Vec::new(), fields)]);
    while let Some((path, node)) = left.pop() {
        match node.as_object().filter(|map| !map.is_empty()) {
            Some(map) => left.extend(map.iter().map(|(step, below)| {
                let path: Path = path.iter().cloned().chain([step.clone()]).collect();
                (path, below)
            })),
            None => drop(found.insert(path)),
        }
    }
    found
}

fn contains(tree: &Value, path: &[String]) -> bool {
    path.iter().try_fold(tree, |node, step| node.get(step)).is_some()
}

fn insert(tree: &mut Value, path: &[String]) {
    let mut node = tree;
    for step in path {
        let Value::Object(map) = node else { return };
        node = map.entry(step.clone()).or_insert_with(|| Value::Object(Map::new()));
    }
}

/// Where in an object a path of `fieldsV1` leads; nothing where the object has no value there.
fn pointer_of(path: &[String], object: &Value) -> Option<Path> {
    let (mut pointer, mut node) = (Vec::new(), object);
    for step in path.iter().filter(|step| *step != ".") {
        let place = match step.split_once(':')? {
            ("f", field) => field.to_owned(),
            ("i", index) => index.to_owned(),
            ("k", keys) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).ok()?;
                let has_keys =
                    |item: &Value| keys.iter().all(|(key, value)| is_key(key, item.get(key), value));
                node.as_array()?.iter().position(has_keys)?.to_string()
            }
            ("v", value) => {
                let value: Value = serde_json::from_str(value).ok()?;
                node.as_array()?.iter().position(|item| *item == value)?.to_string()
            }
            _ => return None,
        };
        node = at(node, std::slice::from_ref(&place))?;
        pointer.push(place);
    }
    Some(pointer)
}

/// The API's own default of a list's key may be missing in what was rendered.
fn is_key(key: &str, found: Option<&Value>, wanted: &Value) -> bool {
    match found {
        Some(found) => found == wanted,
        None => key == "protocol" && wanted == "TCP",
    }
}

fn at<'a>(object: &'a Value, steps: &[String]) -> Option<&'a Value> {
    steps.iter().try_fold(object, |node, step| match node {
        Value::Array(list) => list.get(step.parse::<usize>().ok()?),
        other => other.get(step),
    })
}

fn enters_list(object: &Value, steps: &[String]) -> bool {
    (0..steps.len())
        .any(|length| steps.get(..length).and_then(|up_to| at(object, up_to)).is_some_and(Value::is_array))
}

fn remove(object: &mut Value, pointer: &[String]) {
    let Some((last, parents)) = pointer.split_last() else { return };
    let mut node = object;
    for step in parents {
        let below = match node {
            Value::Array(list) => step.parse::<usize>().ok().and_then(|index| list.get_mut(index)),
            other => other.get_mut(step),
        };
        let Some(below) = below else { return };
        node = below;
    }
    match node {
        Value::Object(map) => drop(map.remove(last)),
        Value::Array(list) => {
            if let Some(index) = last.parse::<usize>().ok().filter(|index| *index < list.len()) {
                list.remove(index);
            }
        }
        _ => {}
    }
}

/// `/metadata/annotations/a~1b` as `metadata`, `annotations`, `a/b`.
fn steps_of(pointer: &str) -> Path {
    pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

/// What is below a field, as far as it is mappings; a list is one field here.
fn add_scalars(value: &Value, path: Path, into: &mut BTreeSet<Path>) {
    match value.as_object().filter(|map| !map.is_empty()) {
        Some(map) => {
            for (key, below) in map {
                add_scalars(below, path.iter().cloned().chain([format!("f:{key}")]).collect(), into);
            }
        }
        None if !value.is_array() => drop(into.insert(path)),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    fn rendered() -> Object {
        let spec = json!({"replicas": 3, "paused": false,
            "template": {"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}}});
        let metadata = json!({"name": "web", "namespace": "ns"});
        Object::new(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}),
        )
        .unwrap()
    }

    fn fields(replicas: bool, image: bool) -> Value {
        let mut b = json!({".": {}, "f:name": {}});
        if image {
            b["f:image"] = json!({});
        }
        let mut spec = json!({"f:paused": {}, "f:template": {"f:spec": {"f:containers": {
            "k:{\"name\":\"a\"}": {".": {}, "f:image": {}, "f:name": {}}, "k:{\"name\":\"b\"}": b}}}});
        if replicas {
            spec["f:replicas"] = json!({});
        }
        json!({"f:spec": spec})
    }

    fn live(ours: Value, foreign: Option<Value>) -> Object {
        let mut entries = vec![json!({"manager": "pintle", "operation": "Apply", "fieldsV1": ours})];
        entries.extend(foreign);
        let mut live = rendered();
        live.map_mut(&["metadata"]).insert("managedFields".to_owned(), Value::from(entries));
        live
    }

    fn by(manager: &str, subresource: &str, fields: Value) -> Option<Value> {
        Some(
            json!({"manager": manager, "operation": "Update", "subresource": subresource, "fieldsV1": fields}),
        )
    }

    fn rule(paths: &[&str], managers: &[&str], kind: Option<&str>) -> Vec<DriftIgnore> {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        let target = kind.map(|kind| DriftTarget { kind: Some(kind.to_owned()), ..DriftTarget::default() });
        vec![DriftIgnore { paths: owned(paths), managers: owned(managers), target }]
    }

    #[test]
    fn what_scales_keeps_the_number_without_a_rule() {
        let applied = fields_mark(&live(fields(true, true), None));
        let scaled = live(fields(false, true), by("hpa", "scale", json!({"f:spec": {"f:replicas": {}}})));
        assert_ne!(applied, fields_mark(&scaled));
        assert_eq!(applied, held_mark(&scaled, &rendered(), &[]));
        let sent = without_ignored(&scaled, &rendered(), &[]).unwrap();
        assert!(sent.at("/spec/replicas").is_none() && sent.at("/spec/paused").is_some());
    }

    #[test]
    fn a_path_or_a_manager_is_ignored_where_a_rule_says_so() {
        let applied = fields_mark(&live(fields(true, true), None));
        let image = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {
            "k:{\"name\":\"b\"}": {"f:image": {}}}}}}});
        let edited = live(fields(true, false), by("injector", "", image));
        for (rules, is_ignored) in [
            (rule(&["/spec/template/spec/containers/1/image"], &[], None), true),
            (rule(&["/spec/template"], &[], Some("Deployment")), true),
            (rule(&[], &["injector"], None), true),
            (rule(&["/spec/template"], &[], Some("DaemonSet")), false),
            (rule(&["/spec/template/spec/containers/0/image"], &[], None), false),
            (rule(&[], &["kubectl"], None), false),
        ] {
            assert_eq!(held_mark(&edited, &rendered(), &rules) == applied, is_ignored, "{rules:?}");
            assert_eq!(without_ignored(&edited, &rendered(), &rules).is_some(), is_ignored, "{rules:?}");
        }
        assert_eq!(taker(&edited, &rendered(), &[]), "injector");
        assert_eq!(taker(&live(fields(false, true), None), &rendered(), &[]), NOBODY);
    }

    #[test]
    fn a_field_that_was_taken_away_is_ignored_where_its_path_is() {
        let applied = fields_mark(&live(fields(true, true), None));
        let removed = live(fields(false, true), None);
        assert_eq!(held_mark(&removed, &rendered(), &rule(&["/spec/replicas"], &[], None)), applied);
        assert_ne!(held_mark(&removed, &rendered(), &[]), applied);
    }

    #[test]
    fn three_repairs_come_at_once_and_the_next_ones_later_and_later() {
        let at = |second: i64| Timestamp::from_second(second).unwrap_or_default();
        let mut contest: Option<Contest> = None;
        let mut waits = Vec::new();
        for _ in 0..5 {
            let next = Contest::after_repair(contest.as_ref(), "kubectl".to_owned(), at(100));
            waits.push(next.wait(at(100)).map(|wait| wait.as_secs()));
            contest = Some(next);
        }
        assert_eq!(waits, [None, None, Some(1), Some(2), Some(4)]);
        let later = contest.unwrap();
        assert_eq!(later.wait(at(104)), None);
        assert!(later.is_on(at(600)) && !later.is_on(at(701)));
        let other = Contest::after_repair(Some(&later), "argocd".to_owned(), at(110));
        assert_eq!(other.repairs, 1, "each manager is counted for itself");
    }
}
