//! Plugins around states and around the release: what they hold, own and have done, each once.

use super::*;
use crate::{
    Act, ActVerb, Ask, Deed, Marks, MissingPolicy, Moment, Named, Part, Reference, Told, ToldOutcome, Wanted,
    decide_finalizing, decide_reconciling,
};

impl World {
    pub(super) fn answer(&mut self, ask: Ask) {
        let key = (ask.key.site.plugin.clone(), ask.key.moment);
        let told = self.told.get(&key).cloned().unwrap_or_else(go);
        self.answers.told.insert(ask.key.clone(), told);
        self.asked.push(ask);
    }

    pub(super) fn set_part(&mut self, part: Part) {
        let target = part.object.reference();
        let live = self.objects.get_mut(&target).expect("an apply of a part makes no object");
        let labels = part.object.at("/metadata/labels").and_then(Value::as_object).cloned();
        let fields = labels.as_ref().map(|labels| json!(labels));
        let held =
            fields.map(|fields| json!({"manager": part.manager, "operation": "Apply", "fieldsV1": fields}));
        live.map_mut(&["metadata"]).insert("managedFields".into(), held.into_iter().collect());
        live.map_mut(&["metadata"]).insert("labels".into(), json!(labels.unwrap_or_default()));
        self.writes.push(format!("Part {target}"));
        let marks = Marks::of_part(live, &part);
        self.answers.applied.insert((target, part.manager), marks);
    }

    pub(super) fn act(&mut self, act: Act) {
        let key = (act.plugin, act.deed.key);
        let refusal = self.refused.get(&key.1).cloned();
        if refusal.is_none() {
            self.writes.push(format!("{:?} {} {:?}", act.deed.verb, act.deed.target, act.uid));
            if matches!(act.deed.verb, ActVerb::Evict | ActVerb::Delete) {
                self.objects.remove(&act.deed.target);
            }
        }
        self.answers.acted.insert(key, refusal);
    }

    /// A later pass: nothing is known but what was stored, and the cluster.
    fn new_pass(&mut self) {
        let text = serde_json::to_string(&self.memory).unwrap();
        self.memory = serde_json::from_str(&text).unwrap();
        self.answers = Answers::default();
        self.asked.clear();
        self.writes.clear();
    }

    fn tell(&mut self, plugin: &str, moment: Moment, told: Told) {
        self.told.insert((plugin.to_owned(), moment), told);
    }

    fn moments(&self) -> Vec<String> {
        let word =
            |ask: &Ask| format!("{}@{} {}", ask.key.site.plugin, ask.key.site.state, ask.key.moment.word());
        self.asked.iter().map(word).collect()
    }

    /// Goes on its way out until nothing is left to do.
    fn remove(&mut self, is_forced: bool) -> Plan {
        for _ in 0..30 {
            let plan = self.plan_with(&[], crate::decide_removal, is_forced);
            self.memory = plan.memory.clone();
            if plan.steps.is_empty() {
                return plan;
            }
            plan.steps.into_iter().for_each(|step| self.execute(step));
        }
        panic!("the way out never ends: {:?}", self.writes);
    }
}

fn go() -> Told {
    Told { outcome: ToldOutcome::Go, want: Some(vec![]), deeds: vec![], recheck: None, is_absent: false }
}

fn hold(reason: &str) -> Told {
    let verdict = Verdict::pending(Blocker::new(reason, "wait for it"));
    Told { outcome: ToldOutcome::Wait(verdict), ..go() }
}

fn pod(name: &str) -> Wanted {
    let json = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "labels": {names::OWNER: OWNER}}});
    Wanted { key: name.into(), is_part: false, object: Object::new(json).unwrap() }
}

fn label(value: &str) -> Wanted {
    let json = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "n1", "labels": {"vendor.example/deploy": value}}});
    Wanted { key: "n1".into(), is_part: true, object: Object::new(json).unwrap() }
}

fn deed(key: &str, verb: ActVerb, target: ObjectRef) -> Deed {
    Deed { key: key.into(), verb, target, arguments: Default::default() }
}

fn map(name: &str, annotations: Value) -> Rendered {
    object("v1", "ConfigMap", name, annotations)
}

fn two_states() -> Vec<StateInput> {
    let around = json!({names::PRE: "check", names::POST: "validate"});
    vec![
        state("0000-a", vec![map("a", around.clone()), map("a2", around)]),
        state("1000-b", vec![map("b", json!({}))]),
    ]
}

fn named(plugin: &str, missing: Option<MissingPolicy>) -> Reference {
    let named = Named { plugin: plugin.into(), args: "{}".into() };
    Reference { named, config: String::new(), missing }
}

fn node() -> Object {
    Object::new(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "n"}})).unwrap()
}

#[test]
fn a_state_is_called_around_once_for_its_revision_and_two_objects_are_one_call() {
    let mut world = World::new();
    let plan = world.settle(&two_states());
    assert_eq!(plan.verdict, Verdict::Ready);
    assert_eq!(world.moments(), ["check@0000-a pre", "validate@0000-a post"]);
    assert_eq!(world.asked[0].rendered.len(), 2);
    world.new_pass();
    world.settle(&two_states());
    assert_eq!((world.moments(), world.writes.len()), (vec![], 0), "nothing new was asked");
    // Facts alone make another revision of the manifest, and run no hooks.
    world.memory.revision += 1;
    world.new_pass();
    assert_eq!(world.settle(&two_states()).verdict, Verdict::Ready);
    assert_eq!(world.moments(), Vec::<String>::new());
    world.memory.seed_revision += 1;
    world.memory.revision += 1;
    world.new_pass();
    world.settle(&two_states());
    assert_eq!(world.moments().len(), 2, "a revision that was asked for is called around again");
}

#[test]
fn a_hold_before_a_state_keeps_every_write_of_it_and_says_why() {
    let mut world = World::new();
    world.tell("check", Moment::Pre, hold("UpgradeActive"));
    let plan = world.settle(&two_states());
    assert_eq!(world.writes, Vec::<String>::new());
    assert_eq!(plan.verdict.blockers()[0].reason, "UpgradeActive");
    assert_eq!((plan.states[0].phase, plan.states[1].phase), (Phase::Pending, Phase::Waiting));
    world.new_pass();
    world.tell("check", Moment::Pre, go());
    assert_eq!(world.settle(&two_states()).verdict, Verdict::Ready);
}

#[test]
fn a_hold_after_a_state_keeps_the_next_one_back_and_its_objects_go_with_it() {
    let mut world = World::new();
    let validating = Told { want: Some(vec![pod("validator")]), ..hold("Validating") };
    world.tell("validate", Moment::Post, validating.clone());
    let plan = world.settle(&two_states());
    assert_eq!(plan.verdict.blockers()[0].reason, "Validating");
    assert_eq!(world.writes, ["Create ConfigMap ns/a", "Create ConfigMap ns/a2", "Create Pod ns/validator"]);
    let last = world.asked.last().unwrap();
    assert_eq!(last.applied.len(), 1, "it is shown what it wanted as it is there");
    // Another operator goes on where this one held.
    world.new_pass();
    world.settle(&two_states());
    assert_eq!(world.writes, Vec::<String>::new());
    assert_eq!(world.asked[0].applied[0].key, "validator");
    world.new_pass();
    world.tell("validate", Moment::Post, go());
    assert_eq!(world.settle(&two_states()).verdict, Verdict::Ready);
    assert_eq!(world.writes, ["HookDone Pod ns/validator", "Create ConfigMap ns/b"]);
    assert!(world.memory.around.sites.is_empty());
}

#[test]
fn what_was_written_down_is_carried_out_first_by_whoever_comes_next() {
    let mut world = World::new();
    world.put(node());
    let wants = Told {
        want: Some(vec![pod("validator")]),
        deeds: vec![deed("cordon-n1", ActVerb::Cordon, ObjectRef::new("v1", "Node", "n1"))],
        ..hold("Validating")
    };
    world.tell("check", Moment::Pre, wants);
    // The operator asks, stores what follows from the answer, and ends before it does any of it.
    let mut steps = Vec::new();
    for _ in 0..10 {
        let plan = world.decide(&two_states());
        world.memory = plan.memory.clone();
        steps = plan.steps;
        if steps.iter().any(|step| matches!(step, Step::Apply(_))) {
            break;
        }
        std::mem::take(&mut steps).into_iter().for_each(|step| world.execute(step));
    }
    assert_eq!(steps.len(), 2, "{steps:?}");
    world.new_pass();
    let plan = world.decide(&two_states());
    assert_eq!(plan.steps, steps, "the next operator begins with the very same steps, and asks nobody");
    world.settle(&two_states());
    assert_eq!(world.writes, ["Create Pod ns/validator", r#"Cordon Node n1 Some("n")"#]);
    world.new_pass();
    world.settle(&two_states());
    assert_eq!(world.writes, Vec::<String>::new(), "and none of it twice");
}

#[test]
fn a_deed_is_done_once_for_its_key_and_an_eviction_waits_for_its_budget() {
    let mut world = World::new();
    let target = ObjectRef::new("v1", "Pod", "user").within("ns");
    let user = || {
        let json = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "user", "namespace": "ns", "uid": "u1"}});
        Object::new(json).unwrap()
    };
    world.put(user());
    let evicts = Told { deeds: vec![deed("evict-user", ActVerb::Evict, target)], ..go() };
    world.tell("check", Moment::Pre, evicts);
    let busy = crate::Refusal { cause: crate::Cause::TooManyRequests, message: "not now".into() };
    world.refused.insert("evict-user".into(), busy);
    let plan = world.settle(&two_states());
    assert_eq!(plan.verdict.blockers()[0].reason, "DisruptionBudget");
    assert!(plan.recheck.is_some() && world.writes.is_empty(), "{:?}", world.writes);
    world.new_pass();
    world.refused.clear();
    assert_eq!(world.settle(&two_states()).verdict, Verdict::Ready);
    assert_eq!(world.writes[0], r#"Evict Pod ns/user Some("u1")"#);
    assert_eq!(world.moments(), ["validate@0000-a post"], "what was decided before is not asked again");
    // The same key in a later revision is the same deed.
    world.put(user());
    world.memory.seed_revision += 1;
    world.memory.revision += 1;
    world.new_pass();
    world.settle(&two_states());
    assert!(world.writes.iter().all(|write| !write.starts_with("Evict")), "{:?}", world.writes);
}

#[test]
fn a_part_is_set_given_up_and_never_deletes_or_makes_the_object() {
    let mut world = World::new();
    world.tell("check", Moment::Pre, Told { want: Some(vec![label("true")]), ..hold("Labelled") });
    let plan = world.settle(&two_states());
    assert!(plan.verdict.blockers().iter().any(|blocker| blocker.reason == "PartMissing"));
    assert!(world.writes.is_empty());
    world.put(node());
    world.new_pass();
    world.settle(&two_states());
    assert_eq!(world.writes, ["Part Node n1"]);
    let shown = &world.asked.last().unwrap().applied[0].object;
    assert_eq!((shown.label("vendor.example/deploy"), shown.uid()), (Some("true"), None));
    world.new_pass();
    world.tell("check", Moment::Pre, go());
    world.settle(&two_states());
    assert_eq!(world.writes[0], "Part Node n1");
    let live = &world.objects[&ObjectRef::new("v1", "Node", "n1")];
    assert_eq!(live.label("vendor.example/deploy"), None);
}

#[test]
fn a_state_that_is_left_out_is_not_touched_and_the_next_one_goes_on() {
    let mut world = World::new();
    let leaves = Told { outcome: ToldOutcome::LeaveOut("no such card".into()), ..go() };
    world.tell("check", Moment::Pre, leaves);
    let plan = world.settle(&two_states());
    assert_eq!(plan.verdict, Verdict::Ready);
    assert_eq!(world.writes, ["Tell StateLeftOut", "Create ConfigMap ns/b"]);
    assert_eq!((plan.states[0].phase, plan.states[0].deferred), (Phase::Ready, 2));
    world.new_pass();
    world.settle(&two_states());
    assert_eq!(world.writes, Vec::<String>::new());
}

#[test]
fn hooks_stop_at_the_first_that_does_not_go() {
    let mut world = World::new();
    world.around = vec![named("first", None), named("second", None)];
    world.tell("first", Moment::Pre, hold("First"));
    let plan = world.settle(&two_states());
    assert_eq!(world.moments(), ["first@ pre"]);
    assert_eq!(plan.states[0].name, "hooks-pre");
    world.new_pass();
    world.told.clear();
    world.tell("second", Moment::Post, hold("Second"));
    let plan = world.settle(&two_states());
    let wanted = [
        "first@ pre",
        "second@ pre",
        "check@0000-a pre",
        "validate@0000-a post",
        "first@ post",
        "second@ post",
    ];
    assert_eq!(world.moments(), wanted);
    assert_eq!(plan.verdict.blockers()[0].reason, "Second");
}

#[test]
fn an_object_of_a_hook_that_somebody_else_made_is_left_alone() {
    let mut world = World::new();
    let foreign =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "validator", "namespace": "ns"}});
    world.put(Object::new(foreign).unwrap());
    world.tell("check", Moment::Pre, Told { want: Some(vec![pod("validator")]), ..hold("Validating") });
    let plan = world.settle(&two_states());
    assert_eq!(world.writes, Vec::<String>::new());
    assert!(plan.verdict.blockers().iter().any(|blocker| blocker.reason == "OwnedByOther"));
    assert!(matches!(plan.verdict, Verdict::Fatal(_)));
}

#[test]
fn a_plugin_that_is_named_no_more_takes_what_it_owned_with_it() {
    let mut world = World::new();
    world.tell("check", Moment::Pre, Told { want: Some(vec![pod("validator")]), ..hold("Validating") });
    world.settle(&two_states());
    world.new_pass();
    let plain = vec![state("0000-a", vec![map("a", json!({}))])];
    assert_eq!(world.settle(&plain).verdict, Verdict::Ready);
    assert_eq!(world.writes, ["HookDone Pod ns/validator", "Create ConfigMap ns/a"]);
}

fn installed() -> World {
    let mut world = World::new();
    world.around = vec![named("teardown", None)];
    world.settle(&two_states());
    world.new_pass();
    world
}

#[test]
fn a_deletion_is_called_around_in_reverse_and_each_moment_once() {
    let mut world = installed();
    world.tell("teardown", Moment::Pre, hold("ExporterGoes"));
    let plan = world.remove(false);
    assert_eq!(world.writes, Vec::<String>::new());
    assert_eq!(plan.verdict.blockers()[0].reason, "ExporterGoes");
    world.new_pass();
    world.told.clear();
    assert!(world.remove(false).is_gone);
    let wanted = ["teardown@ pre", "check@0000-a pre", "validate@0000-a post", "teardown@ post"];
    assert_eq!(world.moments(), wanted);
    let wanted = ["Removed ConfigMap ns/b", "Removed ConfigMap ns/a", "Removed ConfigMap ns/a2"];
    assert_eq!(world.writes, wanted);
}

#[test]
fn by_force_nobody_is_asked_and_everything_still_goes() {
    let mut world = installed();
    world.tell("teardown", Moment::Pre, Told { want: Some(vec![pod("cleaner")]), ..hold("Cleaning") });
    world.remove(false);
    assert_eq!(world.writes, ["Create Pod ns/cleaner"]);
    world.new_pass();
    assert!(world.remove(true).is_gone);
    assert_eq!(world.moments(), Vec::<String>::new());
    assert!(world.writes.contains(&"HookDone Pod ns/cleaner".to_owned()), "{:?}", world.writes);
    assert_eq!(world.objects.len(), 1, "only the namespace is left");
}

#[test]
fn a_deletion_waits_ten_minutes_for_a_plugin_that_is_not_there_unless_told_otherwise() {
    let absent = || Told { want: None, is_absent: true, ..hold("PluginMissing") };
    let mut world = installed();
    world.tell("teardown", Moment::Pre, absent());
    world.tell("teardown", Moment::Post, absent());
    assert!(!world.remove(false).is_gone);
    world.now = Timestamp::from_second(599).unwrap();
    world.new_pass();
    assert!(!world.remove(false).is_gone);
    world.now = Timestamp::from_second(600).unwrap();
    world.new_pass();
    let plan = world.remove(false);
    assert!(world.writes.contains(&"Tell PluginSkipped".to_owned()), "{:?}", world.writes);
    assert!(plan.is_gone, "what it does at the end is not waited for once more");

    for (policy, is_gone) in [(MissingPolicy::Orphan, true), (MissingPolicy::Block, false)] {
        let mut world = World::new();
        world.around = vec![named("teardown", Some(policy))];
        world.settle(&two_states());
        world.new_pass();
        world.tell("teardown", Moment::Pre, absent());
        world.tell("teardown", Moment::Post, absent());
        world.remove(false);
        world.now = Timestamp::from_second(1_000_000).unwrap();
        world.new_pass();
        assert_eq!(world.remove(false).is_gone, is_gone, "{policy:?}");
    }
}

fn reconcile(world: &mut World, is_removal: bool) -> Plan {
    for _ in 0..20 {
        let decide = if is_removal {
            |input: &Input<'_>| decide_finalizing(input, &named("backup", None))
        } else {
            |input: &Input<'_>| decide_reconciling(input, &named("backup", None))
        };
        let plan = world.plan_with(&[], decide, false);
        world.memory = plan.memory.clone();
        if plan.steps.is_empty() {
            return plan;
        }
        plan.steps.into_iter().for_each(|step| world.execute(step));
    }
    panic!("it never comes to rest: {:?}", world.writes);
}

#[test]
fn what_a_reconciler_wants_is_made_repaired_and_pruned() {
    let mut world = World::new();
    let wants = |names: &[&str]| Told { want: Some(names.iter().map(|name| pod(name)).collect()), ..go() };
    world.tell("backup", Moment::Waiting, wants(&["a", "b"]));
    assert_eq!(reconcile(&mut world, false).verdict, Verdict::Ready);
    assert_eq!(world.writes, ["Create Pod ns/a", "Create Pod ns/b"]);
    world.new_pass();
    reconcile(&mut world, false);
    assert_eq!(world.writes, Vec::<String>::new());
    assert!(world.asked[0].key.is_steady);
    world.objects.remove(&ObjectRef::new("v1", "Pod", "a").within("ns"));
    world.new_pass();
    reconcile(&mut world, false);
    assert_eq!(world.writes, ["Create Pod ns/a"], "what was deleted by hand is back");
    world.new_pass();
    world.tell("backup", Moment::Waiting, wants(&["a"]));
    reconcile(&mut world, false);
    assert_eq!(world.writes, ["HookDone Pod ns/b"]);
    world.new_pass();
    world.edited_at_once = true;
    world.objects.remove(&ObjectRef::new("v1", "Pod", "a").within("ns"));
    reconcile(&mut world, false);
    world.new_pass();
    reconcile(&mut world, false);
    assert_eq!(world.writes, ["Repair Pod ns/a"], "an edit right after our write is one");
    world.new_pass();
    world.tell("backup", Moment::Waiting, wants(&["a"]));
    assert!(!reconcile(&mut world, true).is_gone, "what it still wants is still there");
    world.new_pass();
    world.tell("backup", Moment::Waiting, wants(&[]));
    assert!(reconcile(&mut world, true).is_gone);
    assert_eq!(world.writes, ["HookDone Pod ns/a"]);
}

#[test]
fn a_rollback_is_called_around_as_one_of_its_own_and_the_next_try_as_another() {
    use crate::remedy::{Course, Remedy};
    let mut world = World::new();
    world.around = vec![named("check", None)];
    let states = [state("0000-a", vec![map("a", json!({}))])];
    (world.memory.revision, world.memory.seed_revision) = (2, 2);
    assert_eq!(world.settle(&states).verdict, Verdict::Ready);
    assert_eq!(world.moments(), ["check@ pre", "check@ post"]);

    let course = Course::Back { to: 1, again: None, failed: String::new() };
    let why = "broken".to_owned();
    world.memory.remedy = Some(Remedy { mark: "m".into(), failures: 1, revision: 2, why, course });
    world.memory.revision = 3;
    world.new_pass();
    world.tell("check", Moment::Pre, hold("Held"));
    assert!(matches!(world.settle(&states).verdict, Verdict::Pending(_)), "its pre may hold it");
    world.new_pass();
    world.tell("check", Moment::Pre, go());
    assert_eq!(world.settle(&states).verdict, Verdict::Ready);
    assert_eq!(world.moments(), ["check@ pre", "check@ post"]);
    // Facts alone make another revision of the manifest, and run no hooks.
    world.memory.revision = 4;
    world.new_pass();
    world.settle(&states);
    assert_eq!(world.moments(), Vec::<String>::new());

    world.memory.remedy.as_mut().unwrap().course = Course::Trying;
    world.memory.revision = 5;
    world.new_pass();
    world.settle(&states);
    assert_eq!(world.moments(), ["check@ pre", "check@ post"], "the upgrade is tried again with its hooks");
}

#[test]
fn a_kind_that_a_reconciler_wants_and_nobody_serves_is_waited_for_by_name() {
    let mut world = World { unknown: "Pod", ..World::new() };
    world.tell("backup", Moment::Waiting, Told { want: Some(vec![pod("a")]), ..go() });
    let verdict = reconcile(&mut world, false).verdict;
    let Verdict::Pending(blockers) = &verdict else { panic!("{verdict:?}") };
    assert_eq!((blockers[0].reason.as_str(), world.writes.len()), ("KindNotInstalled", 0), "{verdict:?}");
    assert_eq!(blockers[0].object.as_ref().map(|object| object.name.as_str()), Some("a"));
    world.new_pass();
    world.unknown = "";
    assert_eq!(reconcile(&mut world, false).verdict, Verdict::Ready);
    assert_eq!(world.writes, ["Create Pod ns/a"], "it is made once it can be");
}
