//! Hooks before, after, and on the way out.

use pintle_chart::manifest::{DeletePolicy, HookEvent};
use serde_json::json;

use super::*;
use crate::{Hook, HookPhase, decide_removal};

fn job(name: &str, event: HookEvent, weight: i64, delete_policies: &[DeletePolicy]) -> Hook {
    Hook {
        rendered: object("batch/v1", "Job", name, json!({})),
        events: vec![event],
        weight,
        delete_policies: delete_policies.to_vec(),
    }
}

fn reference(name: &str) -> ObjectRef {
    ObjectRef::new("batch/v1", "Job", name).within("ns")
}

impl World {
    fn with_hooks(hooks: Vec<Hook>) -> Self {
        Self { hooks, ..Self::new() }
    }

    fn end_job(&mut self, name: &str, condition: &str) {
        let conditions =
            json!({"conditions": [{"type": condition, "status": "True", "message": "so it is"}]});
        status(self, "batch/v1", "Job", name, conditions);
    }

    /// Goes out as far as it can.
    fn leave(&mut self, is_forced_out: bool) -> Plan {
        for _ in 0..20 {
            let plan = self.plan_with(&[], decide_removal, is_forced_out);
            self.memory = plan.memory.clone();
            if plan.steps.is_empty() {
                return plan;
            }
            plan.steps.into_iter().for_each(|step| self.execute(step));
        }
        panic!("the release never goes: {:?}", self.writes);
    }
}

fn one_state() -> Vec<StateInput> {
    vec![state("0000-a", vec![object("v1", "ConfigMap", "a", json!({}))])]
}

#[test]
fn hooks_run_one_by_one_before_the_first_state_and_after_the_last() {
    let mut world = World::with_hooks(vec![
        job("late", HookEvent::PreInstall, 5, &[]),
        job("early", HookEvent::PreInstall, -5, &[]),
        job("after", HookEvent::PostInstall, 0, &[]),
        job("upgrade", HookEvent::PreUpgrade, 0, &[]),
    ]);
    let plan = world.settle(&one_state());
    assert_eq!(world.writes, ["Create Job ns/early"]);
    let views: Vec<_> = plan.states.iter().map(|view| (view.name.as_str(), view.phase)).collect();
    let waiting = [("0000-a", Phase::Waiting), ("post-install", Phase::Waiting)];
    assert_eq!(views, [&[("pre-install", Phase::Pending)][..], &waiting].concat());

    world.end_job("early", "Complete");
    world.settle(&one_state());
    world.end_job("late", "Complete");
    let plan = world.settle(&one_state());
    assert!(!plan.verdict.is_ready(), "the hook after the last state is waited for");
    world.end_job("after", "Complete");
    let plan = world.settle(&one_state());
    assert!(plan.verdict.is_ready(), "{:?}", plan.states);
    let created: Vec<_> = world.writes.iter().filter(|write| write.starts_with("Create")).collect();
    let wanted = ["Job ns/early", "Job ns/late", "ConfigMap ns/a", "Job ns/after"];
    assert_eq!(created.len(), wanted.len(), "{created:?}");
    assert!(created.iter().zip(wanted).all(|(write, wanted)| write.ends_with(wanted)), "{created:?}");
    assert!(
        world.objects.values().all(|object| object.at("/metadata/finalizers").is_none()),
        "all are let go"
    );
}

#[test]
fn the_begin_of_a_hook_is_recorded_before_its_object_and_no_crash_makes_it_run_twice() {
    let mut world = World::with_hooks(vec![job("before", HookEvent::PreInstall, 0, &[])]);
    let plan = world.decide(&one_state());
    world.memory = plan.memory;
    assert_eq!(world.memory.hooks[0].phase, HookPhase::Running);
    // It ended before the object was created: the next one creates it.
    world.settle(&one_state());
    assert_eq!(world.writes, ["Create Job ns/before"]);
    // It ended after the object was created: the next one waits.
    world.settle(&one_state());
    world.end_job("before", "Complete");
    world.settle(&one_state());
    assert_eq!(world.writes.iter().filter(|write| write.contains("Create Job")).count(), 1);
    assert_eq!(world.memory.hooks[0].phase, HookPhase::Succeeded);
}

#[test]
fn a_hook_that_fails_stops_the_revision_and_the_next_one_runs_it_again() {
    let mut world = World::with_hooks(vec![job("before", HookEvent::PreInstall, 0, &[])]);
    world.settle(&one_state());
    world.end_job("before", "Failed");
    let plan = world.settle(&one_state());
    let [blocker] = plan.verdict.blockers() else { panic!("{:?}", plan.verdict) };
    assert!(matches!(plan.verdict, Verdict::Fatal(_)));
    assert_eq!(blocker.reason, "HookFailed");
    assert!(blocker.message.contains("so it is"), "{}", blocker.message);
    assert!(!world.writes.iter().any(|write| write.contains("ConfigMap")));

    world.memory.revision = 2;
    world.hooks = vec![job("before", HookEvent::PreUpgrade, 0, &[])];
    world.writes.clear();
    world.settle(&one_state());
    assert_eq!(world.writes, ["HookDone Job ns/before", "Create Job ns/before"]);
}

#[test]
fn what_becomes_of_a_hooks_object_is_the_charts_choice() {
    let policies: [(&[DeletePolicy], &str, bool); 5] = [
        (&[], "Complete", true),
        (&[DeletePolicy::HookSucceeded], "Complete", false),
        (&[DeletePolicy::HookSucceeded], "Failed", true),
        (&[DeletePolicy::HookFailed], "Failed", false),
        (&[DeletePolicy::HookFailed], "Complete", true),
    ];
    for (policies, end, stays) in policies {
        let mut world = World::with_hooks(vec![job("before", HookEvent::PreInstall, 0, policies)]);
        world.settle(&one_state());
        world.end_job("before", end);
        world.settle(&one_state());
        assert_eq!(world.objects.contains_key(&reference("before")), stays, "{policies:?} {end}");
    }
    // Without the policy an object that is in the way is not taken away.
    let mut world =
        World::with_hooks(vec![job("before", HookEvent::PreInstall, 0, &[DeletePolicy::HookFailed])]);
    world.put(object("batch/v1", "Job", "before", json!({})).object);
    let plan = world.settle(&one_state());
    assert_eq!(plan.verdict.blockers()[0].reason, "HookExists");
}

#[test]
fn a_hook_that_left_the_chart_while_it_ran_is_let_go() {
    let mut world = World::with_hooks(vec![job("before", HookEvent::PreInstall, 0, &[])]);
    world.settle(&one_state());
    world.memory.revision = 2;
    world.hooks.clear();
    world.settle(&one_state());
    assert!(world.objects[&reference("before")].at("/metadata/finalizers").is_none());
    assert!(world.memory.hooks.is_empty());
}

#[test]
fn hooks_hold_the_way_out_unless_it_is_forced_or_the_namespace_is_going() {
    let hooks =
        vec![job("before", HookEvent::PreDelete, 0, &[]), job("after", HookEvent::PostDelete, 0, &[])];
    let ready = || {
        let mut world = World::with_hooks(hooks.clone());
        world.settle(&one_state());
        world.writes.clear();
        world
    };
    let mut world = ready();
    let plan = world.leave(false);
    assert!(!plan.is_gone);
    assert_eq!(world.writes, ["Create Job ns/before"]);
    world.end_job("before", "Complete");
    assert!(!world.leave(false).is_gone);
    world.end_job("after", "Complete");
    assert!(world.leave(false).is_gone, "{:?}", world.writes);
    let at = |text: &str| world.writes.iter().position(|write| write.contains(text)).unwrap();
    assert!(at("Removed ConfigMap ns/a") < at("Create Job ns/after"));

    let mut world = ready();
    world.leave(false);
    world.end_job("before", "Failed");
    let plan = world.leave(false);
    assert!(plan.states[0].blockers[0].message.contains("pintle.dev/force-delete=true"));
    assert!(world.leave(true).is_gone);

    let mut world = ready();
    let mut namespace = Object::default_of("v1", "Namespace", "ns");
    namespace.map_mut(&["metadata"]).insert("deletionTimestamp".into(), json!("2026-01-01T00:00:00Z"));
    world.put(namespace);
    assert!(world.leave(false).is_gone);
    assert_eq!(world.writes, ["Removed ConfigMap ns/a"]);
}
