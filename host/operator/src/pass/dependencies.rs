//! Charts that a SpecialResource needs first. Each is a SpecialResource of its own, named after its chart: made where
//! there is none, kept as its parent says where it was made so, and ready before the parent's first state.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use pintle_api::{
    Answer, Blocker, Facts, Object, ObjectRef, Record, SpecialResource, Verdict, names,
    special_resource::{Dependency, HelmChart},
};
use pintle_chart::Chart;
use pintle_cluster::{ApiError, Cause, Patch};
use pintle_plan::{Memory, fnv1a};
use serde_json::{Map, Value, json};

use super::settle::was_ready;
use crate::{
    context::{Context, Key},
    error_text::one_line,
    fetch::{self, Problem, Wanted},
    front::{Front, FrontKind},
};

/// How a dependency stands.
#[derive(Clone, Debug, PartialEq)]
enum Stand {
    /// There is no SpecialResource of its name.
    Missing,
    /// It was made for this parent, or has no values of its own, and is not as the parent says.
    Outdated(Arc<Object>),
    /// It is as it shall be, and on its way.
    Waiting(Blocker),
    /// The parent must be changed, or the dependency.
    Wrong(Blocker),
    Ready,
}

/// Makes and changes what the owner depends on. Ready when all of it is, or was when the release began: what it
/// depends on may be upgraded beneath it.
pub(super) async fn settle(
    ctx: &Context,
    key: &Key,
    front: &Front,
    memory: &mut Memory,
) -> Result<(Verdict, Record), Problem> {
    let FrontKind::SpecialResource(spec) = &front.kind else {
        return Ok((Verdict::Ready, Record::default()));
    };
    if spec.dependencies.is_empty() {
        memory.dependencies.clear();
        return Ok((Verdict::Ready, Record::default()));
    }
    let parent = &front.owner;
    let look = |facts: &dyn Facts| -> Vec<Stand> {
        spec.dependencies.iter().map(|dependency| stand(facts, parent, dependency)).collect()
    };
    let (stands, mut reads) = ctx.know(key, look).await;
    let mut verdict = Verdict::Ready;
    for (dependency, stand) in spec.dependencies.iter().zip(stands) {
        let now = match stand {
            Stand::Ready => Verdict::Ready,
            Stand::Waiting(blocker) => Verdict::pending(blocker),
            Stand::Wrong(blocker) => Verdict::fatal(blocker),
            Stand::Missing => {
                let (chart, owner) = (&dependency.chart, &front.release.owner);
                let wanted = Wanted { chart, owner, namespace: &chart.name, is_of_watch: false };
                let fetched = fetch::chart(ctx, key, &wanted).await;
                let (chart, seen) = fetched.map_err(|problem| problem.after(&reads))?;
                reads.extend(seen);
                let Some(child) = child(parent, dependency, &chart.chart) else { continue };
                told(ctx.writer.create(&child).await, dependency)
            }
            Stand::Outdated(live) => {
                let patch = change(parent, dependency, &live);
                told(ctx.writer.patch(&live.reference(), None, &patch).await, dependency)
            }
        };
        verdict = verdict.and(now);
    }
    reads.extend(note_parent(ctx, key, parent, &spec.dependencies).await);
    let mark = format!("{:x}", fnv1a(json!(spec.dependencies).to_string().as_bytes()));
    if verdict.is_ready() {
        memory.dependencies = mark;
    } else if memory.dependencies == mark && !matches!(verdict, Verdict::Transient(_)) {
        verdict = Verdict::Ready;
    }
    Ok((verdict, reads))
}

/// Takes the parent's name out of SRO's table of dependencies.
pub(super) async fn forget(ctx: &Context, key: &Key, front: &Front) {
    let FrontKind::SpecialResource(spec) = &front.kind else { return };
    if spec.dependencies.is_empty() {
        return;
    }
    let (table, _) = ctx.know(key, |facts| facts.get(&table(ctx))).await;
    let Some(found) = table.found() else { return };
    let own = spec.dependencies.iter().map(|dependency| &dependency.chart.name);
    let own = own.filter(|name| entry(&found, name) == Some(front.owner.name()));
    let gone: Map<String, Value> = own.map(|name| (name.clone(), Value::Null)).collect();
    if !gone.is_empty() {
        warn(ctx.writer.patch(&found.reference(), None, &Patch::Merge(json!({"data": gone}))).await);
    }
}

fn reference(name: &str) -> ObjectRef {
    ObjectRef::new("sro.openshift.io/v1beta1", "SpecialResource", name)
}

fn table(ctx: &Context) -> ObjectRef {
    ObjectRef::new("v1", "ConfigMap", names::SRO_DEPENDENCIES).within(&ctx.options.namespace)
}

fn entry<'a>(table: &'a Object, name: &str) -> Option<&'a str> {
    table.at("/data")?.get(name)?.as_str()
}

/// How one dependency of the parent stands.
fn stand(facts: &dyn Facts, parent: &Object, dependency: &Dependency) -> Stand {
    let name = &dependency.chart.name;
    if name.is_empty() {
        let message = "an entry of spec.dependencies has no chart.name: add it";
        return Stand::Wrong(Blocker::new("InvalidSpec", message));
    }
    let child = reference(name);
    let wrong = |message: String| Stand::Wrong(Blocker::new("InvalidSpec", message).on(child.clone()));
    if let Some(round) = round(facts, parent.name(), name) {
        return wrong(format!("spec.dependencies go round ({round}): take one of them away"));
    }
    let live = match facts.get(&child) {
        Answer::Found(live) => live,
        Answer::Missing => return Stand::Missing,
        Answer::Denied(why) => return Stand::Waiting(Blocker::new("Forbidden", why).on(child)),
        Answer::NotYet | Answer::KindUnknown => {
            return Stand::Waiting(not_ready(&child, "it is not known yet"));
        }
    };
    if live.is_terminating() {
        return Stand::Waiting(not_ready(&child, "it is being deleted, and will be made anew"));
    }
    let is_ours = live.annotation(names::DEPENDENCY_OF) == Some(parent.name());
    let (own, wanted) = (own_values(live.at("/spec/set")), own_values(Some(&json!(dependency.set))));
    let chart =
        live.at("/spec/chart").and_then(|chart| serde_json::from_value::<HelmChart>(chart.clone()).ok());
    if is_ours && (own != wanted || chart.as_ref() != Some(&dependency.chart)) {
        return Stand::Outdated(live);
    }
    let has_wanted = wanted.iter().all(|(key, value)| own.get(key) == Some(value));
    if !has_wanted && own.is_empty() && live.annotation(names::DEPENDENCY_OF).is_none() {
        return Stand::Outdated(live);
    }
    if !has_wanted {
        return wrong(format!(
            "the dependency {name} has other values than its entry in spec.dependencies: make its spec.set equal \
             to that of the entry, or take set out of the entry"
        ));
    }
    if was_ready(&live) {
        return Stand::Ready;
    }
    Stand::Waiting(not_ready(&child, &what_holds(&live)))
}

/// What the status of a dependency says it waits for.
fn what_holds(live: &Object) -> String {
    let texts = |pointer: &str| live.at(pointer).and_then(Value::as_array).into_iter().flatten();
    let errors = texts("/status/conditions")
        .filter(|condition| condition["type"] == "Errored" && condition["status"] == "True")
        .map(|condition| &condition["message"]);
    let states = texts("/status/states").flat_map(|state| state["blockers"].as_array().into_iter().flatten());
    let mut all = errors.chain(states.map(|blocker| &blocker["message"])).filter_map(Value::as_str);
    let held = all.find(|text| !text.is_empty());
    held.unwrap_or("its states have not all passed").to_owned()
}

fn not_ready(child: &ObjectRef, why: &str) -> Blocker {
    Blocker::new("DependencyNotReady", format!("the dependency is not ready: {why}")).on(child.clone())
}

/// Values without the `apiVersion` and `kind` that SRO asked for.
fn own_values(set: Option<&Value>) -> Map<String, Value> {
    let mut own = set.and_then(Value::as_object).cloned().unwrap_or_default();
    own.retain(|key, _| key != "apiVersion" && key != "kind");
    own
}

/// The way from the parent over its dependencies back to it, where there is one.
fn round(facts: &dyn Facts, parent: &str, name: &str) -> Option<String> {
    let mut ways = vec![vec![parent.to_owned(), name.to_owned()]];
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop() {
        let last = way.last()?;
        if last == parent {
            return Some(way.join(" needs "));
        }
        let is_new = seen.insert(last.clone());
        let Some(live) = facts.get(&reference(last)).found().filter(|_| is_new) else { continue };
        let needs = live.at("/spec/dependencies").and_then(Value::as_array).into_iter().flatten();
        let needs = needs.filter_map(|need| need.pointer("/chart/name")?.as_str());
        ways.extend(needs.map(|need| way.iter().cloned().chain([need.to_owned()]).collect()));
    }
    None
}

/// The SpecialResource of a dependency: that which the chart brings along as `<name>.yaml`, or one that has the chart
/// and its values alone. Whatever selects the parent selects it too.
fn child(parent: &Object, dependency: &Dependency, chart: &Chart) -> Option<Object> {
    let name = &dependency.chart.name;
    let mut child = packaged(chart, name).or_else(|| blank(&reference(name)))?;
    for (key, value) in parent.at("/metadata/labels").and_then(Value::as_object).into_iter().flatten() {
        child.map_mut(&["metadata", "labels"]).insert(key.clone(), value.clone());
    }
    child.map_mut(&["metadata", "annotations"]).insert(names::DEPENDENCY_OF.to_owned(), parent.name().into());
    let spec = child.map_mut(&["spec"]);
    spec.entry("namespace").or_insert_with(|| json!(name));
    spec.insert("chart".to_owned(), json!(dependency.chart));
    if !own_values(Some(&json!(dependency.set))).is_empty() {
        spec.insert("set".to_owned(), json!(dependency.set));
    }
    Some(child)
}

/// An object of which nothing is known but what it is called.
fn blank(target: &ObjectRef) -> Option<Object> {
    let metadata = match &target.namespace {
        Some(namespace) => json!({"name": target.name, "namespace": namespace}),
        None => json!({"name": target.name}),
    };
    Object::new(json!({"apiVersion": target.api_version, "kind": target.kind, "metadata": metadata})).ok()
}

fn packaged(chart: &Chart, name: &str) -> Option<Object> {
    let path = format!("{name}.yaml");
    let file = chart.files.iter().find(|file| file.path == path)?;
    let value = pintle_template::yaml::load_json(&file.text()).ok()?;
    let read: SpecialResource = serde_json::from_value(value.clone()).ok()?;
    let object = Object::new(value).ok()?;
    (object.kind() == "SpecialResource" && read.metadata.name.as_deref() == Some(name)).then_some(object)
}

/// What makes a dependency as its parent says.
fn change(parent: &Object, dependency: &Dependency, live: &Object) -> Patch {
    let add = |path: &str, value: Value| json!({"op": "add", "path": path, "value": value});
    let annotations = live.at("/metadata/annotations").and_then(Value::as_object).cloned();
    let mut annotations: BTreeMap<String, Value> = annotations.unwrap_or_default().into_iter().collect();
    annotations.insert(names::DEPENDENCY_OF.to_owned(), parent.name().into());
    Patch::Json(vec![
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": live.resource_version()}),
        add("/metadata/annotations", json!(annotations)),
        add("/spec/chart", json!(dependency.chart)),
        add("/spec/set", json!(dependency.set)),
    ])
}

/// What follows from a write of a dependency.
fn told<T>(written: Result<T, ApiError>, dependency: &Dependency) -> Verdict {
    let child = reference(&dependency.chart.name);
    match written {
        Ok(_) => Verdict::pending(not_ready(&child, "it was changed just now")),
        Err(err) if matches!(err.cause(), Cause::Stale(_) | Cause::AlreadyExists) => {
            Verdict::pending(not_ready(&child, "somebody else changed it just now"))
        }
        Err(err) => Verdict::transient(Blocker::new("DependencyNotWritten", one_line(&err)).on(child)),
    }
}

/// Writes into SRO's table who needs what, so that SRO itself and its users' tools read it as before.
async fn note_parent(ctx: &Context, key: &Key, parent: &Object, dependencies: &[Dependency]) -> Record {
    let target = table(ctx);
    let (found, reads) = ctx.know(key, |facts| facts.get(&target)).await;
    let names = dependencies.iter().map(|dependency| dependency.chart.name.clone());
    let missing = |live: Option<&Object>| -> Map<String, Value> {
        let others =
            names.clone().filter(|name| live.is_none_or(|live| entry(live, name) != Some(parent.name())));
        others.map(|name| (name, parent.name().into())).collect()
    };
    match found {
        Answer::Found(live) => {
            let data = missing(Some(&live));
            if !data.is_empty() {
                warn(ctx.writer.patch(&target, None, &Patch::Merge(json!({"data": data}))).await);
            }
        }
        Answer::Missing => {
            if let Some(mut table) = blank(&target) {
                *table.map_mut(&["data"]) = missing(None);
                warn(ctx.writer.create(&table).await);
            }
        }
        Answer::Denied(_) | Answer::NotYet | Answer::KindUnknown => {}
    }
    reads
}

/// The table tells and decides nothing: a release does not fail for it.
fn warn<T>(written: Result<T, ApiError>) {
    if let Err(err) = written {
        tracing::warn!(label = err.label(), "{err}");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]
    use pintle_api::{LogTail, Query};

    use super::*;

    /// SpecialResources by name.
    struct World(Vec<Object>);

    impl Facts for World {
        fn get(&self, target: &ObjectRef) -> Answer<Arc<Object>> {
            let found = self.0.iter().find(|object| object.reference() == *target);
            found.map_or(Answer::Missing, |object| Answer::Found(Arc::new(object.clone())))
        }
        fn list(&self, _: &Query) -> Answer<Vec<Arc<Object>>> {
            Answer::Missing
        }
        fn tail(&self, _: &LogTail) -> Answer<String> {
            Answer::Missing
        }
        fn resolve(&self, _: &str) -> Answer<String> {
            Answer::Missing
        }
    }

    fn chart(name: &str) -> Value {
        json!({"name": name, "version": "1", "repository": {"name": "r", "url": "cm://a/b"}})
    }

    fn resource(name: &str, patch: Value) -> Object {
        let mut object = json!({
            "apiVersion": "sro.openshift.io/v1beta1", "kind": "SpecialResource",
            "metadata": {"name": name, "generation": 1}, "spec": {"namespace": name, "chart": chart(name)}
        });
        pintle_plugin::merge_patch(&mut object, &patch);
        Object::new(object).unwrap()
    }

    fn ready() -> Value {
        json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]})
    }

    fn need(name: &str, set: Value) -> Dependency {
        serde_json::from_value(json!({"chart": chart(name), "set": set})).unwrap()
    }

    fn stand_of(live: &[Object], set: Value) -> Stand {
        stand(&World(live.to_vec()), &resource("top", json!({})), &need("base", set))
    }

    fn message(stand: Stand) -> String {
        match stand {
            Stand::Waiting(blocker) | Stand::Wrong(blocker) => blocker.message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_dependency_is_made_waited_for_and_then_ready() {
        assert_eq!(stand_of(&[], json!({})), Stand::Missing);
        let held = json!({"status": {"states": [{"blockers": []}, {"blockers": [{"message": "no pods"}]}]}});
        let waits = stand_of(&[resource("base", held)], json!({}));
        assert_eq!(message(waits), "the dependency is not ready: no pods");
        assert_eq!(stand_of(&[resource("base", json!({"status": ready()}))], json!({})), Stand::Ready);
        let changed = json!({"metadata": {"generation": 2}, "status": ready()});
        assert!(matches!(stand_of(&[resource("base", changed)], json!({})), Stand::Waiting(_)));
        let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": ready()});
        assert!(message(stand_of(&[resource("base", going)], json!({}))).contains("being deleted"));
    }

    #[test]
    fn what_was_made_for_a_parent_follows_it_and_what_was_not_is_left() {
        let marked = json!({"annotations": {names::DEPENDENCY_OF: "top"}});
        let ours = |set: Value| {
            resource("base", json!({"metadata": marked, "spec": {"set": set}, "status": ready()}))
        };
        let set = json!({"apiVersion": "sro.openshift.io/v1beta1", "kind": "Values", "a": 1});
        assert_eq!(
            stand_of(&[ours(json!({"a": 1}))], set.clone()),
            Stand::Ready,
            "kind and apiVersion are no values"
        );
        assert!(matches!(stand_of(&[ours(json!({"a": 2}))], set.clone()), Stand::Outdated(_)));
        assert!(matches!(stand_of(&[ours(json!({"a": 1, "b": 1}))], set.clone()), Stand::Outdated(_)));
        // SRO made them without values and without a mark.
        let of_sro = resource("base", json!({"status": ready()}));
        assert!(matches!(stand_of(&[of_sro], set.clone()), Stand::Outdated(_)));
        let of_somebody = |set: Value| resource("base", json!({"spec": {"set": set}, "status": ready()}));
        assert_eq!(stand_of(&[of_somebody(json!({"a": 1, "b": 1}))], set.clone()), Stand::Ready);
        let other = message(stand_of(&[of_somebody(json!({"a": 2}))], set));
        assert!(other.contains("has other values than its entry in spec.dependencies"), "{other}");
    }

    #[test]
    fn dependencies_that_go_round_are_named_with_their_way() {
        let needs = |name: &str, other: &str| {
            resource(name, json!({"spec": {"dependencies": [{"chart": chart(other)}]}}))
        };
        let around = stand_of(&[needs("base", "deep"), needs("deep", "top")], json!({}));
        assert!(message(around).contains("(top needs base needs deep needs top)"));
        let own = stand_of(&[needs("base", "base")], json!({}));
        assert!(matches!(own, Stand::Waiting(_)), "not the parent's fault, and told there: {own:?}");
        let nameless = stand(&World(Vec::new()), &resource("top", json!({})), &need("", json!({})));
        assert!(message(nameless).contains("no chart.name"));
    }

    #[test]
    fn a_chart_may_bring_its_own_special_resource() {
        let files = |text: &str| {
            let file = |path: &str, text: &str| pintle_chart::File::new(path, text.as_bytes());
            let own = "apiVersion: v2\nname: base\nversion: 1.0.0\n";
            Chart::from_folder(vec![file("Chart.yaml", own), file("base.yaml", text)]).unwrap()
        };
        let packaged = "apiVersion: sro.openshift.io/v1beta1
kind: SpecialResource
metadata: {name: base}
spec:
  namespace: elsewhere
  set: {a: packaged}
  nodeSelector: {gpu: 'yes'}
  chart: {name: base, version: '9', repository: {name: r, url: 'cm://x/y'}}
";
        let parent = resource("top", json!({"metadata": {"labels": {"team": "a"}}}));
        let made = child(&parent, &need("base", json!({})), &files(packaged)).unwrap();
        assert_eq!(made.at("/spec/namespace"), Some(&json!("elsewhere")));
        assert_eq!(made.at("/spec/nodeSelector/gpu"), Some(&json!("yes")));
        assert_eq!(made.at("/spec/set"), Some(&json!({"a": "packaged"})));
        assert_eq!(made.at("/spec/chart/repository/url"), Some(&json!("cm://a/b")), "the parent says which");
        let plain =
            child(&parent, &need("base", json!({"a": 1})), &files("not: a SpecialResource\n")).unwrap();
        assert_eq!(plain.at("/spec/namespace"), Some(&json!("base")));
        assert_eq!(plain.at("/spec/set"), Some(&json!({"a": 1})));
        assert_eq!(plain.label("team"), Some("a"));
        assert_eq!(plain.annotation(names::DEPENDENCY_OF), Some("top"));
    }
}
