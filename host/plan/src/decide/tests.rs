//! Decisions over a small world that does what the steps say.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

mod around;
mod hooks;

use std::{collections::BTreeMap, sync::Arc};

use pintle_api::{LogTail, Query, Timestamp, watch::Adopt};
use serde_json::{Value, json};

use super::*;
use crate::{Answers, CallAnswer, Flavor, Known, Pools, Release, RenderFault, fields_mark, rendered_mark};

const OWNER: &str = "owner-uid";

#[derive(Default)]
struct World {
    objects: BTreeMap<ObjectRef, Object>,
    memory: Memory,
    answers: Answers,
    pools: Pools,
    hooks: Vec<crate::Hook>,
    around: Vec<crate::Reference>,
    /// What plugins around states say, by plugin and moment; without an entry they go.
    told: BTreeMap<(String, crate::Moment), crate::Told>,
    asked: Vec<crate::Ask>,
    /// Deeds that are refused, by key.
    refused: BTreeMap<String, crate::Refusal>,
    now: Timestamp,
    writes: Vec<String>,
    /// What repairs put right.
    repaired: Vec<String>,
    /// Somebody takes a field of the next object that is applied, before anybody looks.
    edited_at_once: bool,
    /// A kind that the cluster does not serve.
    unknown: &'static str,
}

impl pintle_api::Facts for World {
    fn get(&self, target: &ObjectRef) -> Answer<Arc<Object>> {
        if target.kind == self.unknown {
            return Answer::KindUnknown;
        }
        self.objects.get(target).cloned().map_or(Answer::Missing, |object| Answer::Found(Arc::new(object)))
    }
    fn list(&self, query: &Query) -> Answer<Vec<Arc<Object>>> {
        let owned = query.label_selector.as_deref().and_then(|text| text.strip_prefix("pintle.dev/owner="));
        let of_kind = |object: &&Object| {
            object.kind() == query.kind && owned.is_none_or(|owner| object.label(names::OWNER) == Some(owner))
        };
        Answer::Found(self.objects.values().filter(of_kind).cloned().map(Arc::new).collect())
    }
    fn tail(&self, _: &LogTail) -> Answer<String> {
        Answer::Found("insmod simple-kmod".into())
    }
    fn resolve(&self, _: &str) -> Answer<String> {
        Answer::Missing
    }
}

impl World {
    fn new() -> Self {
        let mut world = Self::default();
        world.memory.revision = 1;
        let mut namespace = Object::default_of("v1", "Namespace", "ns");
        namespace.set_label(names::SRO_OWNED, "true");
        world.put(namespace);
        world
    }

    fn put(&mut self, object: Object) {
        self.objects.insert(object.reference(), object);
    }

    fn decide(&self, states: &[StateInput]) -> Plan {
        self.plan_with(states, decide, false)
    }

    fn plan_with(
        &self,
        states: &[StateInput],
        plan: impl Fn(&Input<'_>) -> Plan,
        is_forced_out: bool,
    ) -> Plan {
        let release = Release {
            name: "simple-kmod".into(),
            namespace: "ns".into(),
            owner: ObjectRef::new("sro.openshift.io/v1beta1", "SpecialResource", "simple-kmod"),
            owner_uid: OWNER.into(),
            chart_digest: "sha256:1".into(),
            flavor: Flavor::SpecialResource { node_selector: BTreeMap::new() },
            adopt: Adopt::IfUnowned,
            gates_all: false,
            leaves_drift: false,
            policy: Default::default(),
            is_forced_out,
            timeout: None,
        };
        plan(&Input {
            release: &release,
            states,
            hooks: &self.hooks,
            around: &self.around,
            pools: &self.pools,
            memory: &self.memory,
            answers: &self.answers,
            facts: self,
            before: &[],
            now: self.now,
        })
    }

    /// Decides and does what the plan says until nothing is left to do.
    fn settle(&mut self, states: &[StateInput]) -> Plan {
        for _ in 0..20 {
            let plan = self.decide(states);
            self.memory = plan.memory.clone();
            if plan.steps.is_empty() {
                return plan;
            }
            plan.steps.into_iter().for_each(|step| self.execute(step));
        }
        panic!("the release never comes to rest: {:?}", self.writes);
    }

    fn execute(&mut self, step: Step) {
        match step {
            Step::Apply(apply) => {
                let mut live = apply.object.clone();
                live.map_mut(&["metadata"]).insert(
                    "managedFields".into(),
                    json!([{"manager": "pintle", "operation": "Apply", "fieldsV1": {"f:x": {}}}]),
                );
                if let Some(status) = self.objects.get(&live.reference()).and_then(|old| old.at("/status")) {
                    live.set("status", status.clone());
                }
                self.writes.push(format!("{:?} {}", apply.mode, live.reference()));
                let repaired = apply.repairs.map(|how| format!("{}: {how}", live.reference()));
                self.repaired.extend(repaired);
                if !apply.is_inventory {
                    let key = (live.reference(), String::new());
                    self.answers.applied.insert(key, crate::Marks::of_object(&live, &apply.object, &[]));
                    let version = self.writes.len().to_string();
                    live.map_mut(&["metadata"]).insert("resourceVersion".into(), version.into());
                }
                if apply.is_inventory {
                    self.memory.know(Known {
                        object: live.reference(),
                        state: apply.state,
                        pool: apply.pool,
                        rendered: rendered_mark(&apply.object),
                        fields: fields_mark(&live),
                    });
                }
                if std::mem::take(&mut self.edited_at_once) {
                    live.map_mut(&["metadata"]).insert(
                        "managedFields".into(),
                        json!([{"manager": "pintle", "operation": "Apply", "fieldsV1": {}}]),
                    );
                }
                self.put(live);
            }
            Step::Delete(delete) => {
                self.writes.push(format!("{} {}", delete.reason, delete.target));
                self.objects.remove(&delete.target);
            }
            Step::Release(target) => {
                self.writes.push(format!("Release {target}"));
                if let Some(live) = self.objects.get_mut(&target) {
                    live.map_mut(&["metadata"]).remove("finalizers");
                }
            }
            Step::Label { target, labels } => {
                let marks = self.pools.node_to_marks.entry(target.name).or_default();
                for (key, value) in labels {
                    marks.retain(|mark| *mark != key);
                    marks.extend(value.map(|_| key));
                }
            }
            Step::CreateNamespace(object) => self.put(object),
            Step::Ask(ask) => self.answer(*ask),
            Step::Part(part) => self.set_part(part),
            Step::Act(act) => self.act(act),
            Step::Tell(tell) => self.writes.push(format!("Tell {}", tell.reason)),
            Step::Call(call) => {
                let verdict = Verdict::pending(Blocker::new("DriverNotLoaded", "not yet"));
                self.answers.calls.insert(call.key, CallAnswer { verdict, recheck: None });
            }
        }
    }
}

fn object(api_version: &str, kind: &str, name: &str, annotations: Value) -> Rendered {
    let json = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "namespace": "ns", "generation": 1,
                     "annotations": annotations, "labels": {names::OWNER: OWNER}},
        "spec": {"selector": {"matchLabels": {"app": name}}}
    });
    Rendered { object: Object::new(json).unwrap(), source: "templates/x.yaml".into() }
}

fn state(name: &str, objects: Vec<Rendered>) -> StateInput {
    let label = name.get(..4).unwrap_or_default().to_owned();
    let pool = PoolInput { pool: String::new(), nodes: vec!["n1".into()], objects: Ok(objects) };
    StateInput { name: name.into(), label, pools: vec![pool] }
}

fn kmod() -> Vec<StateInput> {
    let vendor = json!({names::SRO_WAIT: "true", names::SRO_VENDOR: "kmod"});
    let driver = json!({
        names::SRO_VENDOR: "kmod", names::SRO_STATE: "driver-container", names::WAIT: "builtin"
    });
    vec![
        state(
            "0000-build",
            vec![
                object("image.openshift.io/v1", "ImageStream", "image", json!({})),
                object("build.openshift.io/v1", "BuildConfig", "build", vendor),
            ],
        ),
        state("1000-driver", vec![object("apps/v1", "DaemonSet", "driver", driver)]),
    ]
}

fn status(world: &mut World, api_version: &str, kind: &str, name: &str, status: Value) {
    let reference = ObjectRef::new(api_version, kind, name).within("ns");
    world.objects.get_mut(&reference).unwrap().set("status", status);
}

fn stuck_pod(created: &str) -> Object {
    Object::new(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "driver-1", "namespace": "ns", "uid": "p1", "creationTimestamp": created},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Pending", "containerStatuses": [
            {"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
        ]}
    }))
    .unwrap()
}

fn build(phase: &str, completed: Option<&str>) -> Object {
    Object::new(json!({
        "apiVersion": "build.openshift.io/v1", "kind": "Build",
        "metadata": {"name": "build-1", "namespace": "ns",
                     "ownerReferences": [{"kind": "BuildConfig", "name": "build"}]},
        "status": {"phase": phase, "completionTimestamp": completed}
    }))
    .unwrap()
}

#[test]
fn a_build_starts_only_when_its_image_cannot_be_pulled_and_then_replaces_the_pods_once() {
    let (mut world, states) = (World::new(), kmod());
    let plan = world.settle(&states);
    assert_eq!(plan.states[0].phase, Phase::Ready);
    assert_eq!((plan.states[0].deferred, plan.states[1].phase), (1, Phase::Pending));
    assert!(!world.writes.iter().any(|write| write.contains("BuildConfig")));

    status(
        &mut world,
        "apps/v1",
        "DaemonSet",
        "driver",
        json!({"observedGeneration": 1, "desiredNumberScheduled": 1, "numberAvailable": 0}),
    );
    world.put(stuck_pod("2026-01-01T00:00:00Z"));
    let plan = world.settle(&states);
    assert!(world.writes.contains(&"Create BuildConfig ns/build".to_owned()), "{:?}", world.writes);
    assert_eq!(plan.states[0].phase, Phase::Regressed);
    assert_eq!(plan.states[0].blockers[0].reason, "NoBuild");
    assert_eq!(plan.states[1].blockers[0].reason, "ImagePullBackOff");

    world.put(build("Running", None));
    assert_eq!(world.settle(&states).states[0].blockers[0].reason, "BuildRunning");
    world.put(build("Complete", Some("2026-01-01T00:05:00Z")));
    world.settle(&states);
    assert_eq!(world.writes.iter().filter(|write| write.starts_with("ImageBuilt")).count(), 1);

    world.put(stuck_pod("2026-01-01T00:06:00Z"));
    world.settle(&states);
    assert_eq!(world.writes.iter().filter(|write| write.starts_with("ImageBuilt")).count(), 1);
}

#[test]
fn a_failed_build_is_told_as_failed() {
    let (mut world, states) = (World::new(), kmod());
    world.settle(&states);
    status(
        &mut world,
        "apps/v1",
        "DaemonSet",
        "driver",
        json!({"observedGeneration": 1, "desiredNumberScheduled": 1}),
    );
    world.put(stuck_pod("2026-01-01T00:00:00Z"));
    world.settle(&states);
    world.put(build("Failed", None));
    let plan = world.settle(&states);
    assert!(matches!(plan.verdict, Verdict::Fatal(_)), "{:?}", plan.verdict);
}

#[test]
fn nothing_is_written_when_nothing_differs_and_only_what_differs_is_repaired() {
    let (mut world, states) = (World::new(), kmod());
    world.settle(&states);
    let before = world.writes.len();
    world.settle(&states);
    assert_eq!(world.writes.len(), before);
    let stream = ObjectRef::new("image.openshift.io/v1", "ImageStream", "image").within("ns");
    world.objects.get_mut(&stream).unwrap().map_mut(&["metadata"]).insert("managedFields".into(), json!([]));
    world.settle(&states);
    assert_eq!(world.writes[before..], ["Repair ImageStream ns/image"]);
    world.objects.remove(&stream);
    world.settle(&states);
    assert_eq!(
        world.repaired,
        [
            "ImageStream ns/image: somebody who leaves no mark changed fields of it",
            "ImageStream ns/image: it was deleted"
        ],
        "what was applied first, and what the chart changes, is no repair"
    );
}

#[test]
fn a_later_state_waits_and_an_error_in_it_does_not_hold_an_earlier_one() {
    let mut states = kmod();
    let fault = RenderFault { reason: "RenderError".into(), message: "templates/1000.yaml:3:4: no".into() };
    states[1].pools[0].objects = Err(fault);
    let mut world = World::new();
    let plan = world.settle(&states);
    assert_eq!((plan.states[0].phase, plan.states[1].phase), (Phase::Ready, Phase::Failed));
    assert_eq!(plan.states[1].blockers[0].message, "templates/1000.yaml:3:4: no");
}

#[test]
fn a_state_does_not_start_before_the_gate_of_the_one_before_opens() {
    let gated = object("v1", "Pod", "first", json!({names::WAIT: "builtin"}));
    let states =
        [state("0000-a", vec![gated]), state("1000-b", vec![object("v1", "ConfigMap", "second", json!({}))])];
    let mut world = World::new();
    let plan = world.settle(&states);
    assert_eq!(world.writes, ["Create Pod ns/first"]);
    assert_eq!(plan.states[1].phase, Phase::Waiting);
    let running = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    status(&mut world, "v1", "Pod", "first", running);
    assert!(world.settle(&states).verdict.is_ready());
}

#[test]
fn a_regression_holds_what_has_not_started_and_nothing_else() {
    let gated = object("v1", "Pod", "first", json!({names::WAIT: "builtin"}));
    let waiting = object("v1", "Pod", "second", json!({names::WAIT: "builtin"}));
    let last = object("v1", "ConfigMap", "third", json!({}));
    let states = [state("0000-a", vec![gated]), state("1000-b", vec![waiting]), state("2000-c", vec![last])];
    let mut world = World::new();
    world.settle(&states);
    let running = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    status(&mut world, "v1", "Pod", "first", running.clone());
    world.settle(&states);
    status(&mut world, "v1", "Pod", "first", json!({"phase": "Pending"}));
    status(&mut world, "v1", "Pod", "second", running);
    let plan = world.settle(&states);
    let phases: Vec<_> = plan.states.iter().map(|state| state.phase).collect();
    assert_eq!(phases, [Phase::Regressed, Phase::Ready, Phase::Waiting]);
    assert!(!world.writes.iter().any(|write| write.contains("third")));
}

#[test]
fn an_object_of_another_owner_is_left_alone_and_named() {
    let mut foreign = object("v1", "ConfigMap", "motd", json!({})).object;
    foreign.set_label(names::OWNER, "somebody");
    foreign.set_annotation(names::OWNED_BY, "SpecialResource other");
    let mut world = World::new();
    world.put(foreign);
    let plan = world.settle(&[state("0000-a", vec![object("v1", "ConfigMap", "motd", json!({}))])]);
    assert!(world.writes.is_empty());
    let blocker = &plan.states[0].blockers[0];
    assert_eq!(blocker.reason, "OwnedByOther");
    assert!(blocker.message.contains("SpecialResource other") && blocker.message.contains("adopt: Force"));
}

#[test]
fn what_left_the_chart_goes_at_the_end_of_its_state() {
    let keep = object("v1", "ConfigMap", "kept", json!({names::HELM_RESOURCE_POLICY: "keep"}));
    let both = [state(
        "0000-a",
        vec![object("v1", "ConfigMap", "a", json!({})), object("v1", "ConfigMap", "b", json!({})), keep],
    )];
    let one = [state("0000-a", vec![object("v1", "ConfigMap", "a", json!({}))])];
    let mut world = World::new();
    world.settle(&both);
    world.writes.clear();
    world.settle(&one);
    assert_eq!(world.writes, ["Pruned ConfigMap ns/b"]);
    world.settle(&[]);
    assert_eq!(world.writes, ["Pruned ConfigMap ns/b", "Pruned ConfigMap ns/a"]);
}

#[test]
fn a_plugin_that_holds_keeps_the_state_closed_and_is_asked_with_its_arguments() {
    let asked = object("v1", "ConfigMap", "a", json!({names::WAIT: "builtin && loaded(lines=3)"}));
    let states = [state("0000-a", vec![asked])];
    let mut world = World::new();
    let plan = world.settle(&states);
    let key = world.answers.calls.keys().next().unwrap().clone();
    assert_eq!((key.plugin.as_str(), key.args.as_str()), ("loaded", r#"{"lines":3}"#));
    assert_eq!(plan.states[0].blockers[0].reason, "DriverNotLoaded");
    world.answers.calls.get_mut(&key).unwrap().verdict = Verdict::Ready;
    assert!(world.settle(&states).verdict.is_ready());
}

#[test]
fn a_gate_nobody_can_judge_never_opens() {
    let asked = object("vendor.io/v1", "Thing", "a", json!({names::SRO_WAIT: "true"}));
    let plan = World::new().settle(&[state("0000-a", vec![asked])]);
    assert_eq!(plan.states[0].blockers[0].reason, "GateNotJudgeable");
    let broken = object("v1", "ConfigMap", "a", json!({names::WAIT: "logs(x"}));
    let mut world = World::new();
    let plan = world.settle(&[state("0000-a", vec![broken])]);
    assert_eq!(plan.states[0].blockers[0].reason, "GateInvalid");
    assert!(world.writes.is_empty(), "a broken gate is refused before anything is written");
}

#[test]
fn a_release_goes_in_the_reverse_order_of_its_states() {
    let states = [
        state("0000-a", vec![object("v1", "ConfigMap", "a", json!({}))]),
        state("1000-b", vec![object("v1", "ConfigMap", "b", json!({}))]),
    ];
    let mut world = World::new();
    world.settle(&states);
    world.writes.clear();
    let release = Release {
        name: "simple-kmod".into(),
        namespace: "ns".into(),
        owner: ObjectRef::new("v1", "X", "x"),
        owner_uid: OWNER.into(),
        chart_digest: String::new(),
        flavor: Flavor::Watch,
        adopt: Adopt::IfUnowned,
        gates_all: false,
        leaves_drift: false,
        policy: Default::default(),
        is_forced_out: false,
        timeout: None,
    };
    let mut gone = false;
    while !gone {
        let plan = crate::decide_removal(&Input {
            release: &release,
            states: &[],
            hooks: &[],
            around: &[],
            pools: &Pools::default(),
            memory: &world.memory,
            answers: &world.answers,
            facts: &world,
            before: &[],
            now: Timestamp::UNIX_EPOCH,
        });
        gone = plan.is_gone;
        world.memory = plan.memory;
        plan.steps.into_iter().for_each(|step| world.execute(step));
    }
    assert_eq!(world.writes, ["Removed ConfigMap ns/b", "Removed ConfigMap ns/a"]);
}

#[test]
fn a_state_per_pool_waits_for_nodes_and_deletes_nothing_without_them() {
    let mut states = [state("0000-a", vec![object("v1", "ConfigMap", "a", json!({}))])];
    let mut world = World::new();
    world.settle(&states);
    states[0].pools.clear();
    let plan = world.settle(&states);
    assert_eq!(plan.states[0].blockers[0].reason, "NoMatchingNodes");
    assert_eq!(world.writes, ["Create ConfigMap ns/a"]);
}

#[test]
fn a_pool_whose_nodes_left_keeps_its_objects_for_ten_minutes() {
    let pool = |key: &str| {
        let objects = Ok(vec![object("v1", "ConfigMap", key, json!({}))]);
        PoolInput { pool: key.into(), nodes: vec![format!("node-{key}")], objects }
    };
    let of = |pools: &[&str]| {
        let pools = pools.iter().map(|key| pool(key)).collect();
        [StateInput { name: "0000-a".into(), label: String::new(), pools }]
    };
    let mut world = World::new();
    world.settle(&of(&["old", "new"]));
    world.writes.clear();
    let plan = world.settle(&of(&["new"]));
    assert_eq!(plan.recheck, Some(Duration::from_secs(600)));
    // Its nodes come back, as after an upgrade: the time begins anew.
    world.now += Duration::from_secs(599);
    world.settle(&of(&["old", "new"]));
    world.now += Duration::from_secs(100);
    world.settle(&of(&["new"]));
    assert!(world.writes.is_empty(), "{:?}", world.writes);
    world.now += Duration::from_secs(600);
    world.settle(&of(&["new"]));
    assert_eq!(world.writes, ["Pruned ConfigMap ns/old"]);
    assert!(world.memory.left_pools.is_empty());
}

#[test]
fn a_lost_memory_orphans_nothing_and_writes_nothing_twice() {
    let all = |names: &[&str]| {
        let objects = names.iter().map(|name| {
            let mut rendered = object("v1", "ConfigMap", name, json!({}));
            rendered.object.set_annotation("pintle.dev/in-state", "0000-a");
            rendered
        });
        [state("0000-a", objects.collect())]
    };
    let mut world = World::new();
    world.settle(&all(&["a", "b"]));
    world.memory = Memory { revision: 1, ..Memory::default() };
    world.writes.clear();
    world.settle(&all(&["a"]));
    assert_eq!(world.writes, ["Repair ConfigMap ns/a", "Pruned ConfigMap ns/b"]);
}
