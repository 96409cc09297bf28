//! Status from a plan. Nothing here can be made from what was not decided.

use pintle_api::{
    Blocker, Timestamp, Verdict,
    special_resource::{ChartStatus, SpecialResourceStatus},
    status::{Condition, Phase, StateStatus},
};
use serde_json::{Map, Value, json};

use crate::{Plan, StateView};

/// Blockers that one state tells; the rest is counted.
const BLOCKERS: usize = 10;
/// Bytes of one message.
const MESSAGE: usize = 1024;
/// Tries after which a failure that a retry may mend is told as an error.
const TRIES: u32 = 3;

/// What a status is made from.
#[derive(Debug)]
pub struct StatusInput<'a> {
    /// What was decided; absent when it did not come so far.
    pub plan: Option<&'a Plan>,
    /// What kept it from being decided.
    pub problem: Option<Trouble<'a>>,
    /// Generation of the owner.
    pub generation: i64,
    /// Passes in a row that failed in a way a retry may mend.
    pub tries: u32,
    /// The owner is being deleted.
    pub is_removal: bool,
    /// The chart in use.
    pub chart: Option<ChartStatus>,
    /// The revision in use; 0 before the first.
    pub revision: u32,
    /// Now.
    pub now: Timestamp,
}

/// Why nothing could be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble<'a> {
    /// CamelCase word of SRO's contract, for conditions.
    pub reason: &'a str,
    /// CamelCase word for the very fault.
    pub word: &'a str,
    /// The sentence with place and fix.
    pub message: &'a str,
}

/// Conditions that keep the time at which their status changed.
#[derive(Debug)]
pub struct ConditionSet {
    conditions: Vec<Condition>,
    generation: i64,
    now: Timestamp,
}

/// How things stand, in the three words SRO's conditions know.
enum Standing {
    Ready,
    Progressing(String, String),
    Errored(String, String),
}

// === impl ConditionSet ===

impl ConditionSet {
    /// Starts from the conditions there are.
    #[must_use]
    pub fn new(before: &[Condition], generation: i64, now: Timestamp) -> Self {
        Self { conditions: before.to_vec(), generation, now }
    }

    /// Sets one condition; its time changes with its status alone.
    pub fn set(&mut self, kind: &str, status: bool, reason: &str, message: &str) {
        self.set_if_known(kind, Some(status), reason, message);
    }

    /// Sets one condition that may be unknown.
    pub fn set_if_known(&mut self, kind: &str, status: Option<bool>, reason: &str, message: &str) {
        let status = status.map_or("Unknown", |status| if status { "True" } else { "False" });
        let before = self.conditions.iter().find(|condition| condition.kind == kind);
        let since = before.filter(|before| before.status == status).map(|before| before.last_transition_time);
        let condition = Condition {
            kind: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: shorten(message),
            last_transition_time: since.unwrap_or(self.now),
            observed_generation: Some(self.generation),
        };
        match self.conditions.iter_mut().find(|condition| condition.kind == kind) {
            Some(slot) => *slot = condition,
            None => self.conditions.push(condition),
        }
    }

    /// Drops conditions.
    pub fn retain(&mut self, keep: impl Fn(&Condition) -> bool) {
        self.conditions.retain(keep);
    }

    /// The conditions.
    #[must_use]
    pub fn into_conditions(self) -> Vec<Condition> {
        self.conditions
    }
}

/// Status of a SpecialResource: SRO's conditions and texts, and one entry per state.
#[must_use]
pub fn special_resource_status(
    input: &StatusInput<'_>,
    before: &SpecialResourceStatus,
) -> SpecialResourceStatus {
    let standing = stand(input);
    let mut conditions = ConditionSet::new(&before.conditions, input.generation, input.now);
    let state = match &standing {
        Standing::Ready => {
            conditions.set("Ready", true, "Success", "");
            conditions.set("Progressing", false, "SpecialResourceIsReady", "");
            conditions.set("Errored", false, "SpecialResourceIsReady", "");
            "Ready: ".to_owned()
        }
        Standing::Progressing(reason, message) => {
            conditions.set("Ready", false, "Progressing", "");
            conditions.set("Progressing", true, reason, message);
            conditions.set("Errored", false, "Progressing", "");
            format!("Progressing: {}", shorten(message))
        }
        Standing::Errored(reason, message) => {
            conditions.set("Ready", false, "ErrorHasOccurred", "");
            conditions.set("Progressing", false, "ErrorHasOccurred", "");
            conditions.set("Errored", true, reason, message);
            format!("Errored: {}", shorten(message))
        }
    };
    let current = input.plan.and_then(Plan::current_state);
    SpecialResourceStatus {
        state,
        conditions: conditions.into_conditions(),
        observed_generation: Some(input.generation),
        current_state: current.map(|state| state.name.clone()).unwrap_or_default(),
        blocked: blocked(input),
        states: states_of(input, &before.states),
        chart: input.chart.clone().or_else(|| before.chart.clone()),
        revision: (input.revision > 0).then_some(input.revision).or(before.revision),
        plugins: before.plugins.clone(),
    }
}

/// The fields of an owner's status that are ours, for a vendor's kind; others stay as they are.
#[must_use]
pub fn watch_status(input: &StatusInput<'_>, before: &Value) -> Map<String, Value> {
    let read = |field: &str| before.get(field).cloned().unwrap_or_default();
    let conditions: Vec<Condition> = serde_json::from_value(read("conditions")).unwrap_or_default();
    let states: Vec<StateStatus> = serde_json::from_value(read("states")).unwrap_or_default();
    let mut set = ConditionSet::new(&conditions, input.generation, input.now);
    match stand(input) {
        Standing::Ready => {
            set.set("Ready", true, "Ready", "every state is ready");
            set.set("Reconciling", false, "Ready", "");
            set.set("Stalled", false, "Ready", "");
        }
        Standing::Progressing(reason, message) => {
            set.set("Ready", false, &reason, &message);
            set.set("Reconciling", true, &reason, &message);
            set.set("Stalled", false, "Progressing", "");
        }
        Standing::Errored(reason, message) => {
            set.set("Ready", false, &reason, &message);
            set.set("Reconciling", false, &reason, "");
            set.set("Stalled", true, &reason, &message);
        }
    }
    let states = states_of(input, &states);
    let mut status = Map::from_iter([
        ("conditions".to_owned(), json!(set.into_conditions())),
        ("observedGeneration".to_owned(), json!(input.generation)),
        ("states".to_owned(), json!(states)),
    ]);
    if input.revision > 0 {
        status.insert("revision".to_owned(), json!(input.revision));
    }
    status
}

/// One entry per state; phases and blockers keep the time at which they began.
#[must_use]
pub fn states_status(views: &[StateView], before: &[StateStatus], now: Timestamp) -> Vec<StateStatus> {
    views
        .iter()
        .map(|view| state_status(view, before.iter().find(|state| state.name == view.name), now))
        .collect()
}

fn states_of(input: &StatusInput<'_>, before: &[StateStatus]) -> Vec<StateStatus> {
    match input.plan {
        Some(plan) => states_status(&plan.states, before, input.now),
        None => before.to_vec(),
    }
}

fn state_status(view: &StateView, before: Option<&StateStatus>, now: Timestamp) -> StateStatus {
    let same_phase = before.filter(|before| before.phase == view.phase);
    let blockers = view.blockers.iter().take(BLOCKERS).map(|blocker| {
        let earlier = before.and_then(|before| before.blockers.iter().find(|other| other.is_same(blocker)));
        Blocker {
            message: shorten(&blocker.message),
            since: earlier.and_then(|earlier| earlier.since).or(Some(now)),
            ..blocker.clone()
        }
    });
    let more = view.blockers.len().saturating_sub(BLOCKERS);
    StateStatus {
        name: view.name.clone(),
        phase: view.phase,
        ready: view.ready,
        objects: view.objects,
        deferred: view.deferred,
        since: same_phase.and_then(|before| before.since).or(Some(now)),
        blockers: blockers.collect(),
        more_blockers: u32::try_from(more).unwrap_or(u32::MAX),
    }
}

fn stand(input: &StatusInput<'_>) -> Standing {
    if let Some(trouble) = input.problem {
        return Standing::Errored(trouble.reason.to_owned(), trouble.message.to_owned());
    }
    let Some(plan) = input.plan else {
        return Standing::Progressing("Progressing".to_owned(), "Progressing".to_owned());
    };
    if input.is_removal && plan.is_gone {
        let message = "nothing is left of the release; spec.managementState `Managed` brings it back";
        return Standing::Progressing("Removed".to_owned(), message.to_owned());
    }
    if input.is_removal {
        let message = first_blocker(plan).unwrap_or_else(|| "objects are being deleted".to_owned());
        return Standing::Progressing("MarkedForDeletion".to_owned(), message);
    }
    let message = || match (plan.current_state(), first_blocker(plan)) {
        (Some(state), Some(blocker)) => format!("{}: {blocker}", state.name),
        (Some(state), None) => format!("Working on: {}", state.name),
        (None, _) => "Progressing".to_owned(),
    };
    match &plan.verdict {
        Verdict::Ready => Standing::Ready,
        Verdict::Transient(_) if input.tries < TRIES => {
            Standing::Progressing("HandlingState".to_owned(), message())
        }
        Verdict::Pending(_) => Standing::Progressing("HandlingState".to_owned(), message()),
        Verdict::Transient(_) | Verdict::Fatal(_) => {
            Standing::Errored("FailedToDeployChart".to_owned(), message())
        }
    }
}

/// The first blocker of the state that is furthest behind; a failed state speaks before others.
fn leading_blocker(plan: &Plan) -> Option<&Blocker> {
    let failed = plan.states.iter().find(|state| matches!(state.phase, Phase::Failed | Phase::Retrying));
    let blocked = failed.into_iter().chain(&plan.states).find(|state| !state.blockers.is_empty())?;
    blocked.blockers.first()
}

fn first_blocker(plan: &Plan) -> Option<String> {
    leading_blocker(plan).map(|blocker| match &blocker.object {
        Some(object) => format!("{object}: {}", blocker.message),
        None => blocker.message.clone(),
    })
}

fn blocked(input: &StatusInput<'_>) -> String {
    if let Some(trouble) = input.problem {
        return trouble.word.to_owned();
    }
    let Some(blocker) = input.plan.and_then(leading_blocker) else { return String::new() };
    match &blocker.object {
        Some(object) => format!("{}: {object}", blocker.reason),
        None => blocker.reason.clone(),
    }
}

fn shorten(message: &str) -> String {
    if message.len() <= MESSAGE {
        return message.to_owned();
    }
    let end = (0..=MESSAGE - 4).rev().find(|at| message.is_char_boundary(*at)).unwrap_or_default();
    format!("{}…", message.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    fn plan(phase: Phase, blockers: Vec<Blocker>) -> Plan {
        let verdict = match phase {
            Phase::Ready => Verdict::Ready,
            Phase::Failed => Verdict::Fatal(blockers.clone()),
            _ => Verdict::Pending(blockers.clone()),
        };
        let view = StateView {
            name: "0000-a".into(),
            phase,
            ready: 0,
            objects: 1,
            deferred: 0,
            blockers,
            kinds: Vec::new(),
        };
        Plan {
            steps: vec![],
            memory: Memory::default(),
            states: vec![view],
            verdict,
            recheck: None,
            is_gone: false,
        }
    }

    fn status(plan: &Plan, before: &SpecialResourceStatus, second: i64) -> SpecialResourceStatus {
        let input = StatusInput {
            plan: Some(plan),
            problem: None,
            generation: 1,
            tries: 0,
            is_removal: false,
            chart: None,
            revision: 1,
            now: Timestamp::from_second(second).unwrap_or_default(),
        };
        special_resource_status(&input, before)
    }

    #[test]
    fn texts_are_those_that_scripts_look_for() {
        let ready = status(&plan(Phase::Ready, vec![]), &SpecialResourceStatus::default(), 1);
        assert_eq!(ready.state, "Ready: ");
        assert_eq!(
            ready.conditions.first().map(|c| (c.reason.as_str(), c.message.as_str())),
            Some(("Success", ""))
        );
        let failed = plan(Phase::Failed, vec![Blocker::new("RenderError", "line 3")]);
        let failed = status(&failed, &ready, 2);
        assert_eq!(failed.state, "Errored: 0000-a: line 3");
        assert_eq!(failed.blocked, "RenderError");
    }

    #[test]
    fn times_are_kept_while_nothing_changes() {
        let waiting = plan(Phase::Pending, vec![Blocker::new("Slow", "1 of 3")]);
        let first = status(&waiting, &SpecialResourceStatus::default(), 10);
        let later = plan(Phase::Pending, vec![Blocker::new("Slow", "2 of 3")]);
        let second = status(&later, &first, 20);
        let since = |status: &SpecialResourceStatus| {
            status.states.first().map(|state| (state.since, state.blockers.first().map(|b| b.since)))
        };
        assert_eq!(since(&first), since(&second));
        assert_eq!(status(&later, &second, 30), second);
    }

    #[test]
    fn what_is_not_told_is_counted() {
        let many = (0..25).map(|n| Blocker::new(format!("R{n}"), "x".repeat(5000))).collect();
        let told = status(&plan(Phase::Pending, many), &SpecialResourceStatus::default(), 1);
        let state = told.states.first();
        assert_eq!(state.map(|state| (state.blockers.len(), state.more_blockers)), Some((10, 15)));
        assert!(told.state.len() < 1100);
    }
}
