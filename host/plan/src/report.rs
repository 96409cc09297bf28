//! Status from a plan. Nothing here can be made from what was not decided.

use pintle_api::{
    Blocker, Timestamp, Verdict,
    special_resource::{ChartStatus, SpecialResourceStatus},
    status::{Condition, Phase, StateStatus},
};
use serde_json::{Map, Value, json};

use crate::{Operation, Plan, StateView, remedy::Course};

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
    /// What else is told of it.
    pub extra: Extra,
    /// Now.
    pub now: Timestamp,
}

/// What is told of a release besides its states.
#[derive(Clone, Debug, Default)]
pub struct Extra {
    /// Name of the release.
    pub release: String,
    /// What the chart's `NOTES.txt` says.
    pub notes: String,
    /// Conditions that are there only while they are true.
    pub remarks: Vec<Remark>,
}

/// A condition that is there only while it is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// One of [`REMARKS`].
    pub kind: &'static str,
    /// CamelCase word.
    pub reason: &'static str,
    /// The sentence.
    pub message: String,
}

/// Types of the conditions that are there only while they are true.
pub const REMARKS: [&str; 5] =
    ["AnnotationUnusable", "ChangedOutside", "Contested", "Drifted", "HelmRollbackUnavailable"];
/// Fields of the status of a vendor's object that are ours; all others are the vendor's.
pub const OWN_FIELDS: [&str; 7] = [
    "conditions",
    "observedGeneration",
    "states",
    "revision",
    "deployedRelease",
    "dependents",
    "moreDependents",
];
/// Objects of a release that its status names.
const DEPENDENTS: usize = 50;
/// A trouble of this word goes by itself.
const PASSING: &str = "HelmAtWork";

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

    /// Takes a condition away.
    pub fn remove(&mut self, kind: &str) {
        self.conditions.retain(|condition| condition.kind != kind);
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
    remark(input, &mut conditions);
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
    hybrid_conditions(input, before, &mut set);
    remark(input, &mut set);
    let states = states_of(input, &states);
    let mut status = Map::from_iter([
        ("conditions".to_owned(), json!(set.into_conditions())),
        ("observedGeneration".to_owned(), json!(input.generation)),
        ("states".to_owned(), json!(states)),
    ]);
    if input.revision > 0 {
        status.insert("revision".to_owned(), json!(input.revision));
        status.insert("deployedRelease".to_owned(), json!({"name": input.extra.release}));
    }
    match input.plan {
        Some(plan) => status.extend(dependents(plan)),
        None => {
            let kept = ["revision", "deployedRelease", "dependents", "moreDependents"];
            let told =
                kept.into_iter().filter_map(|field| Some((field.to_owned(), before.get(field)?.clone())));
            status.extend(told);
        }
    }
    status
}

/// Status of a vendor's object that is paused: what was told stays, and that it is paused.
#[must_use]
pub fn paused_status(input: &StatusInput<'_>, before: &Value) -> Map<String, Value> {
    let own = OWN_FIELDS.into_iter().filter_map(|field| Some((field.to_owned(), before.get(field)?.clone())));
    let mut status: Map<String, Value> = own.collect();
    let conditions: Vec<Condition> =
        status.remove("conditions").and_then(|list| serde_json::from_value(list).ok()).unwrap_or_default();
    let mut set = ConditionSet::new(&conditions, input.generation, input.now);
    set.set("Paused", true, "PauseReconcileAnnotationTrue", "an annotation says that nothing is to be done");
    status.insert("conditions".to_owned(), json!(set.into_conditions()));
    status
}

/// Every object of the release with its readiness, the first fifty.
fn dependents(plan: &Plan) -> Vec<(String, Value)> {
    let all: Vec<_> = plan.states.iter().flat_map(|view| &view.kinds).collect();
    let told = all.iter().take(DEPENDENTS).map(|(object, is_ready)| {
        let mut told = json!({"kind": object.kind, "name": object.name, "ready": is_ready});
        if let (Some(namespace), Value::Object(told)) = (&object.namespace, &mut told) {
            told.insert("namespace".to_owned(), json!(namespace));
        }
        told
    });
    let told: Vec<Value> = told.collect();
    let more = all.len().saturating_sub(DEPENDENTS);
    let mut fields = vec![("dependents".to_owned(), json!(told))];
    if more > 0 {
        fields.push(("moreDependents".to_owned(), json!(more)));
    }
    fields
}

/// The five conditions of the hybrid operator, for those who wait for them.
fn hybrid_conditions(input: &StatusInput<'_>, before: &Value, set: &mut ConditionSet) {
    set.set("Initialized", true, "Initialized", "");
    set.set("Paused", false, "NotPaused", "");
    let memory = input.plan.map(|plan| &plan.memory);
    let is_first = memory.is_none_or(|memory| memory.operation() == Operation::Install);
    let (done, failed) =
        if is_first { ("InstallSuccessful", "InstallError") } else { ("UpgradeSuccessful", "UpgradeError") };
    let is_removed = input.is_removal && input.plan.is_some_and(|plan| plan.is_gone);
    let was_deployed = before.pointer("/conditions").and_then(Value::as_array).is_some_and(|list| {
        list.iter().any(|condition| condition["type"] == "Deployed" && condition["status"] == "True")
    });
    let is_deployed = input.plan.is_some_and(|plan| plan.verdict.is_ready()) && !input.is_removal;
    if is_removed {
        set.set("Deployed", false, "UninstallSuccessful", "");
    } else if is_deployed {
        let words = if is_first { "installed" } else { "upgraded" };
        let notes = &input.extra.notes;
        let message = format!("release was successfully {words}");
        set.set("Deployed", true, done, if notes.is_empty() { &message } else { notes });
    } else if !was_deployed {
        set.set("Deployed", false, "NotYet", "");
    }
    match stand(input) {
        Standing::Errored(_, message) if input.problem.is_some() => {
            let reason = input.problem.map_or("ReconcileError", |trouble| hybrid_reason(trouble.word));
            set.set("Irreconcilable", true, reason, &message);
            set.set("ReleaseFailed", false, "NotFailed", "");
        }
        Standing::Errored(_, message) => {
            set.set("ReleaseFailed", true, failed, &message);
            set.set("Irreconcilable", true, "ReconcileError", &message);
        }
        Standing::Ready | Standing::Progressing(..) => {
            set.set("ReleaseFailed", false, "NotFailed", "");
            set.set("Irreconcilable", false, "Reconcilable", "");
        }
    }
}

fn hybrid_reason(word: &str) -> &'static str {
    match word {
        "ValuesMissing" | "InvalidValues" | "ValuesUnknown" => "ErrorGettingValues",
        "ReleaseNameTaken" => "ErrorGettingReleaseState",
        _ => "ReconcileError",
    }
}

/// Conditions that are there only while they are true.
fn remark(input: &StatusInput<'_>, set: &mut ConditionSet) {
    let mut remarks = input.extra.remarks.clone();
    remarks.extend(input.plan.map(drift_remarks).unwrap_or_default());
    for kind in REMARKS {
        match remarks.iter().find(|remark| remark.kind == kind) {
            Some(remark) => set.set(kind, true, remark.reason, &remark.message),
            None => set.remove(kind),
        }
    }
}

fn drift_remarks(plan: &Plan) -> Vec<Remark> {
    let told = |is_contested: bool| {
        let drift = plan.drift.iter().filter(|drift| drift.manager.is_some() == is_contested);
        let all: Vec<_> = drift.map(|drift| format!("{}: {}", drift.object, drift.message)).collect();
        (!all.is_empty()).then(|| all.join("; "))
    };
    let contested = told(true).map(|message| Remark { kind: "Contested", reason: "ChangedBack", message });
    let drifted = told(false).map(|message| Remark { kind: "Drifted", reason: "LeftAlone", message });
    contested.into_iter().chain(drifted).collect()
}

/// How a failure that something is done about is told.
fn remedied(plan: &Plan) -> Option<Standing> {
    let remedy = plan.memory.remedy.as_ref()?;
    let (revision, why) = (remedy.revision, &remedy.why);
    let way_out = "change the object, or give it another pintle.dev/reconcile-at";
    Some(match &remedy.course {
        Course::Trying => return None,
        Course::Wait(at) => {
            let message = format!("revision {revision} failed: {why}; it is tried again at {at}");
            Standing::Progressing("RetryScheduled".to_owned(), message)
        }
        Course::Uninstall => {
            let message = format!("revision {revision} failed: {why}; it is uninstalled and tried again");
            Standing::Progressing("Uninstalling".to_owned(), message)
        }
        Course::Spent => {
            let message = format!("revision {revision} failed {} times: {why}; {way_out}", remedy.failures);
            Standing::Errored("RetriesExhausted".to_owned(), message)
        }
        Course::Back { to, failed, .. } if !failed.is_empty() => {
            let message = format!(
                "revision {revision} failed: {why}; the rollback to revision {to} failed too: {failed}; {way_out}"
            );
            Standing::Errored("RollbackFailed".to_owned(), message)
        }
        Course::Back { to, again: Some(at), .. } => {
            let message = format!(
                "revision {revision} failed: {why}; revision {to} is in use again until it is tried at {at}"
            );
            Standing::Progressing("RetryScheduled".to_owned(), message)
        }
        Course::Back { to, .. } if plan.verdict.is_ready() => {
            let message =
                format!("revision {revision} failed: {why}; revision {to} is in use again; {way_out}");
            Standing::Errored("RolledBack".to_owned(), message)
        }
        Course::Back { to, .. } => {
            let message = format!("revision {revision} failed: {why}; revision {to} is being restored");
            Standing::Progressing("RollingBack".to_owned(), message)
        }
    })
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
        if trouble.word == PASSING {
            return Standing::Progressing(trouble.reason.to_owned(), trouble.message.to_owned());
        }
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
    if let Some(standing) = remedied(plan) {
        return standing;
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
            drift: vec![],
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
            extra: Extra::default(),
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
