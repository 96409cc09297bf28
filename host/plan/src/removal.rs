//! What a release that is to go needs next: its states in reverse, each gone before the one before it.

mod plugins;

use std::collections::BTreeMap;

use pintle_api::{Answer, Blocker, ObjectRef, Verdict, names, status::Phase};
use pintle_chart::manifest::HookEvent;

use crate::{
    Delete, Input, Known, Memory, Plan, StateView, Step, around::Moment, compare::terminating,
    decide::view_of, hook,
};

/// Decides what a release needs next on its way out.
///
/// Objects go in the reverse order of their states; one state's are gone before the next one's are
/// deleted. Labels of nodes go last. Objects that others took over, and those to be kept, stay. Hooks and
/// plugins run before the first delete and when all is gone, unless the owner asks to go by force, or the
/// namespace is going already and nothing can be created in it.
#[must_use]
pub fn decide_removal(input: &Input<'_>) -> Plan {
    let plan = Plan {
        steps: Vec::new(),
        memory: input.memory.clone(),
        states: Vec::new(),
        verdict: Verdict::Ready,
        recheck: None,
        drift: Vec::new(),
        is_gone: false,
    };
    let skips_hooks = input.release.is_forced_out || input.release.policy.skips_hooks.uninstall;
    let runs_hooks = !skips_hooks && !is_namespace_going(input);
    let mut way = Way { input, plan, runs_hooks, is_waiting: false };
    way.begin();
    way.visit_states();
    hook::release_all(input, &mut way.plan.steps);
    way.end();
    way.finish()
}

/// A release on its way out.
struct Way<'a> {
    input: &'a Input<'a>,
    plan: Plan,
    runs_hooks: bool,
    /// What comes later has to wait.
    is_waiting: bool,
}

impl Way<'_> {
    /// Plugins of the release, then hooks of the chart.
    fn begin(&mut self) {
        self.let_go_of_plugins();
        self.visit_plugins(Moment::Pre);
        if !self.runs_hooks || self.is_waiting {
            return;
        }
        let before = run_hooks(self.input, HookEvent::PreDelete, &mut self.plan);
        self.is_waiting |= before.as_ref().is_some_and(|view| view.phase != Phase::Ready);
        self.plan.states.extend(before);
    }

    fn visit_states(&mut self) {
        let (at, mut views) = (self.plan.states.len(), Vec::new());
        for (state, objects) in states_in_reverse(&self.plan.memory) {
            views.insert(0, self.visit_state(&state, &objects));
        }
        views.retain(|view: &StateView| view.objects > 0 || view.phase != Phase::Ready);
        self.plan.states.splice(at..at, views);
    }

    fn visit_state(&mut self, state: &str, objects: &[Known]) -> StateView {
        let mut held = Verdict::Ready;
        if !self.is_waiting && !objects.is_empty() {
            held = self.before_state(state);
        }
        let must_wait = self.is_waiting || !held.is_ready();
        let mut view = visit(self.input, state, objects, &mut self.plan, must_wait);
        if !must_wait {
            held = if view.objects > 0 { self.while_state_goes(state) } else { self.after_state(state) };
        }
        if !held.is_ready() {
            view.phase = view_of(state, &held).phase;
            view.blockers.extend(held.blockers().iter().cloned());
        } else if view.objects == 0 {
            view.phase = Phase::Ready;
        }
        self.is_waiting |= view.objects > 0 || !held.is_ready();
        view
    }

    /// Hooks of the chart, then plugins of the release, then what plugins still own.
    fn end(&mut self) {
        if self.runs_hooks && self.is_waiting {
            self.while_release_goes();
        }
        if self.runs_hooks && !self.is_waiting && self.plan.steps.is_empty() {
            let after = run_hooks(self.input, HookEvent::PostDelete, &mut self.plan);
            self.is_waiting = after.as_ref().is_some_and(|view| view.phase != Phase::Ready);
            self.plan.states.extend(after);
        }
        if !self.is_waiting && self.plan.steps.is_empty() {
            self.visit_plugins(Moment::Post);
        }
        if !self.is_waiting && self.plan.steps.is_empty() {
            self.dissolve_plugins();
        }
    }

    fn finish(mut self) -> Plan {
        if self.is_waiting {
            let blockers = self.plan.states.iter().flat_map(|view| view.blockers.clone()).collect();
            self.plan.verdict = Verdict::Pending(blockers);
        } else {
            unlabel_nodes(self.input, &mut self.plan);
            self.plan.is_gone = self.plan.steps.is_empty();
        }
        self.plan
    }
}

fn run_hooks(input: &Input<'_>, event: HookEvent, plan: &mut Plan) -> Option<StateView> {
    hook::run(input, event, &mut plan.memory, &mut plan.steps)
}

fn is_namespace_going(input: &Input<'_>) -> bool {
    let namespace = ObjectRef::new("v1", "Namespace", &input.release.namespace);
    input.facts.get(&namespace).found().is_some_and(|live| live.is_terminating())
}

fn states_in_reverse(memory: &Memory) -> Vec<(String, Vec<Known>)> {
    // A state whose objects are gone is still looked at while plugins may be called after it.
    let going = memory.around.going.iter().map(|state| (state.clone(), Vec::new()));
    let mut state_to_objects: BTreeMap<String, Vec<Known>> = going.collect();
    for known in memory.objects.values() {
        state_to_objects.entry(known.state.clone()).or_default().push(known.clone());
    }
    let mut states: Vec<_> = state_to_objects.into_iter().collect();
    // What has no state was applied last.
    states.sort_by_key(|(state, _)| (state == crate::state::REST, state.clone()));
    states.reverse();
    states
}

fn visit(input: &Input<'_>, state: &str, objects: &[Known], plan: &mut Plan, is_waiting: bool) -> StateView {
    let phase = if is_waiting { Phase::Waiting } else { Phase::Pending };
    let mut view = StateView::new(state, phase);
    for known in objects {
        match input.facts.get(&known.object) {
            Answer::Missing | Answer::KindUnknown => plan.memory.forget(&known.object),
            Answer::Found(live) if live.label(names::OWNER) != Some(&input.release.owner_uid) => {
                plan.memory.forget(&known.object);
            }
            Answer::Found(live) if live.annotation(names::HELM_RESOURCE_POLICY) == Some("keep") => {
                plan.memory.forget(&known.object);
            }
            Answer::Found(live) => {
                view.objects += 1;
                if live.is_terminating() {
                    view.blockers.push(terminating(&live));
                } else if !is_waiting {
                    view.blockers.extend(delete(input, known, live.uid(), plan));
                }
            }
            Answer::NotYet => view.objects += 1,
            Answer::Denied(why) => {
                view.objects += 1;
                view.blockers.push(Blocker::new("Forbidden", why).on(known.object.clone()));
            }
        }
    }
    view
}

/// Plans a delete; a refused one is a blocker instead.
fn delete(input: &Input<'_>, known: &Known, uid: Option<&str>, plan: &mut Plan) -> Option<Blocker> {
    if let Some(refusal) = input.answers.refusals.get(&known.object) {
        return Some(Blocker::new(refusal.cause.reason(), &refusal.message).on(known.object.clone()));
    }
    let (target, uid) = (known.object.clone(), uid.map(str::to_owned));
    plan.steps.push(Step::Delete(Delete { target, uid, reason: "Removed" }));
    None
}

fn unlabel_nodes(input: &Input<'_>, plan: &mut Plan) {
    for (node, marks) in &input.pools.node_to_marks {
        let own = marks.iter().filter(|mark| is_mark_of(mark, &input.release.name));
        let labels: Vec<_> = own.map(|mark| (mark.clone(), None)).collect();
        let target = ObjectRef::new("v1", "Node", node);
        if !labels.is_empty() && !input.answers.refusals.contains_key(&target) {
            plan.steps.push(Step::Label { target, labels });
        }
    }
}

/// True for `…state-<release>-<four digits>`; a release called `foo` has no part in `foo-bar`'s labels.
pub(crate) fn is_mark_of(mark: &str, release: &str) -> bool {
    let rest = mark.strip_prefix(names::SRO_NODE_STATE).and_then(|rest| rest.strip_prefix(release));
    let digits = rest.and_then(|rest| rest.strip_prefix('-')).unwrap_or_default();
    digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_no_part_in_the_labels_of_one_with_a_longer_name() {
        assert!(is_mark_of("specialresource.openshift.io/state-foo-0000", "foo"));
        assert!(!is_mark_of("specialresource.openshift.io/state-foo-bar-0000", "foo"));
        assert!(!is_mark_of("specialresource.openshift.io/state-foo-bar", "foo"));
    }
}
