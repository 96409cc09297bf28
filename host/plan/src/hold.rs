//! A plan that leaves everything as it is.

use std::time::Duration;

use pintle_api::{
    Verdict,
    status::{Phase, StateStatus},
};

use crate::{Memory, Plan, StateView};

/// Leaves everything as it is, and says why: it is not known what the release shall be, since a plugin that
/// takes part in it has not answered. What was applied stays, nothing is pruned, no state goes on.
///
/// `names` are the states of the chart; `before` is how they were last told.
#[must_use]
pub fn hold(
    names: &[&str],
    before: &[StateStatus],
    memory: &Memory,
    why: Verdict,
    recheck: Option<Duration>,
) -> Plan {
    let waiting = || names.iter().map(|name| StateView::new(name, Phase::Waiting)).collect();
    let mut states: Vec<StateView> =
        if before.is_empty() { waiting() } else { before.iter().map(view_of).collect() };
    if states.is_empty() {
        states.push(StateView::new(crate::REST, Phase::Waiting));
    }
    if let Some(first) = states.first_mut() {
        first.phase = phase_of(&why, first.phase);
        first.blockers = why.blockers().to_vec();
    }
    Plan {
        steps: Vec::new(),
        memory: memory.clone(),
        states,
        verdict: why,
        recheck,
        drift: Vec::new(),
        is_gone: false,
    }
}

fn view_of(state: &StateStatus) -> StateView {
    let StateStatus { name, phase, ready, objects, deferred, blockers, .. } = state;
    StateView {
        name: name.clone(),
        phase: *phase,
        ready: *ready,
        objects: *objects,
        deferred: *deferred,
        blockers: blockers.clone(),
        kinds: Vec::new(),
    }
}

fn phase_of(why: &Verdict, before: Phase) -> Phase {
    match (why, before) {
        (Verdict::Fatal(_), _) => Phase::Failed,
        (Verdict::Transient(_), _) => Phase::Retrying,
        (_, Phase::Ready | Phase::Regressed) => Phase::Regressed,
        _ => Phase::Pending,
    }
}

#[cfg(test)]
mod tests {
    use pintle_api::Blocker;

    use super::*;

    fn blocker() -> Blocker {
        Blocker::new("PluginLoading", "it is being pulled")
    }

    fn told(name: &str, phase: Phase) -> StateStatus {
        StateStatus {
            name: name.into(),
            phase,
            ready: 1,
            objects: 2,
            deferred: 0,
            since: None,
            blockers: Vec::new(),
            more_blockers: 0,
        }
    }

    #[test]
    fn what_was_told_stays_and_the_first_state_says_why_nothing_goes_on() {
        let before = [told("0000-a", Phase::Ready), told("1000-b", Phase::Ready)];
        let plan = hold(&["x"], &before, &Memory::default(), Verdict::pending(blocker()), None);
        let phases: Vec<_> = plan.states.iter().map(|state| (state.name.as_str(), state.phase)).collect();
        assert_eq!(phases, [("0000-a", Phase::Regressed), ("1000-b", Phase::Ready)]);
        assert_eq!(plan.states.first().map(|state| state.blockers.clone()), Some(vec![blocker()]));
        assert!(plan.steps.is_empty() && plan.verdict == Verdict::pending(blocker()));
    }

    #[test]
    fn a_release_that_never_was_told_has_the_states_of_its_chart() {
        let fatal = Verdict::fatal(blocker());
        let plan = hold(&["0000-a", "1000-b"], &[], &Memory::default(), fatal.clone(), None);
        let phases: Vec<_> = plan.states.iter().map(|state| state.phase).collect();
        assert_eq!(phases, [Phase::Failed, Phase::Waiting]);
        let bare = hold(&[], &[], &Memory::default(), fatal, None);
        assert_eq!(bare.states.first().map(|state| state.name.as_str()), Some("rest"));
    }
}
