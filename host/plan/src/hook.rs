//! Hooks of a chart: objects that are created once around a revision, and waited for.

use std::sync::Arc;

use pintle_api::{Answer, Blocker, Object, ObjectRef, Timestamp, Verdict, names, status::Phase};
use pintle_chart::manifest::{DeletePolicy, HookEvent};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Apply, ApplyMode, Delete, Input, Memory, Rendered, StateView, Step,
    compare::{kind_unknown, terminating},
    judge, verdict_of,
};

/// Annotation of ours on the object of a hook: revision and event it was created for.
const RUN: &str = "pintle.dev/hook-run";

/// A hook of the chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hook {
    /// The object, dressed, and where it comes from.
    pub rendered: Rendered,
    /// When it runs.
    pub events: Vec<HookEvent>,
    /// Lower runs first.
    pub weight: i64,
    /// When its object goes; empty means before the next of its name is created.
    pub delete_policies: Vec<DeletePolicy>,
}

/// How one run of a hook stands; kept before the object is created, and again before it goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRun {
    /// The revision it ran for.
    pub revision: u32,
    /// The moment it ran at.
    pub event: HookEvent,
    /// Its object.
    pub object: ObjectRef,
    /// How far it is.
    pub phase: HookPhase,
    /// When it began.
    pub since: Timestamp,
    /// When it ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Why it failed; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// How far a hook is. Running and not in the cluster means: not created yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the words say it")]
pub enum HookPhase {
    Running,
    Succeeded,
    Failed,
}

/// Why the hooks of one moment are not done.
struct Halt {
    phase: Phase,
    blockers: Vec<Blocker>,
}

/// Runs the hooks of one moment, one after another; the view is Ready when all have succeeded.
pub(crate) fn run(
    input: &Input<'_>,
    event: HookEvent,
    memory: &mut Memory,
    steps: &mut Vec<Step>,
) -> Option<StateView> {
    let mut hooks: Vec<_> = input.hooks.iter().filter(|hook| hook.events.contains(&event)).collect();
    hooks.sort_by_key(|hook| hook.weight);
    let mut view = StateView::new(word(event), Phase::Ready);
    view.objects = u32::try_from(hooks.len()).unwrap_or(u32::MAX);
    for hook in &hooks {
        match (Moment { input, event, hook, memory, steps }).advance() {
            Ok(()) => view.ready += 1,
            Err(halt) => {
                (view.phase, view.blockers) = (halt.phase, halt.blockers);
                break;
            }
        }
    }
    (!hooks.is_empty()).then_some(view)
}

/// The view of hooks whose moment has not come.
pub(crate) fn waiting(input: &Input<'_>, event: HookEvent) -> Option<StateView> {
    let count = input.hooks.iter().filter(|hook| hook.events.contains(&event)).count();
    let objects = u32::try_from(count).unwrap_or(u32::MAX);
    (count > 0).then(|| StateView { objects, ..StateView::new(word(event), Phase::Waiting) })
}

/// Lets go of the objects of hooks that a release leaves behind: nothing may keep them from being deleted.
pub(crate) fn release_all(input: &Input<'_>, steps: &mut Vec<Step>) {
    let is_over = |run: &&HookRun| !matches!(run.event, HookEvent::PreDelete | HookEvent::PostDelete);
    for run in input.memory.hooks.iter().filter(is_over) {
        if let Answer::Found(live) = input.facts.get(&run.object)
            && is_held(&live)
        {
            steps.push(Step::Release(run.object.clone()));
        }
    }
}

/// Helm's word for a moment.
#[must_use]
pub fn word(event: HookEvent) -> &'static str {
    match event {
        HookEvent::PreInstall => "pre-install",
        HookEvent::PostInstall => "post-install",
        HookEvent::PreDelete => "pre-delete",
        HookEvent::PostDelete => "post-delete",
        HookEvent::PreUpgrade => "pre-upgrade",
        HookEvent::PostUpgrade => "post-upgrade",
        HookEvent::PreRollback => "pre-rollback",
        HookEvent::PostRollback => "post-rollback",
        HookEvent::Test => "test",
    }
}

/// One hook at one moment.
struct Moment<'a, 'm> {
    input: &'a Input<'a>,
    event: HookEvent,
    hook: &'a Hook,
    memory: &'m mut Memory,
    steps: &'m mut Vec<Step>,
}

impl Moment<'_, '_> {
    fn advance(mut self) -> Result<(), Halt> {
        let target = self.hook.rendered.object.reference();
        match self.memory.hook(self.event, &target).map(|run| (run.phase, run.message.clone())) {
            Some((HookPhase::Succeeded, _)) => {
                self.tidy(self.deletes(DeletePolicy::HookSucceeded));
                Ok(())
            }
            Some((HookPhase::Failed, message)) => {
                self.tidy(self.deletes(DeletePolicy::HookFailed));
                Err(Halt::failed(Blocker::new("HookFailed", message).on(target)))
            }
            Some((HookPhase::Running, _)) => self.watch(),
            None => self.begin(),
        }
    }

    /// Makes room for the object, then records the run and creates it.
    fn begin(&mut self) -> Result<(), Halt> {
        let object = &self.hook.rendered.object;
        let target = object.reference();
        match self.live() {
            Answer::Found(live) => Err(self.make_room(&live)),
            Answer::Missing => {
                self.memory.note_hook(HookRun {
                    revision: self.memory.revision,
                    event: self.event,
                    object: target,
                    phase: HookPhase::Running,
                    since: self.input.now,
                    until: None,
                    message: String::new(),
                });
                Err(self.create())
            }
            other => Err(self.unknown(&other)),
        }
    }

    /// Judges the object of a run that has begun.
    fn watch(&mut self) -> Result<(), Halt> {
        let target = self.hook.rendered.object.reference();
        let live = match self.live() {
            Answer::Found(live) if live.annotation(RUN) == Some(&self.mark()) => live,
            Answer::Found(live) => return Err(self.make_room(&live)),
            Answer::Missing => return Err(self.create()),
            other => return Err(self.unknown(&other)),
        };
        match outcome(&live, self.input) {
            Verdict::Ready => {
                self.end(HookPhase::Succeeded, "");
                self.tidy(self.deletes(DeletePolicy::HookSucceeded));
                Ok(())
            }
            Verdict::Fatal(blockers) => {
                let why = blockers.first().map(|blocker| blocker.message.clone()).unwrap_or_default();
                let way_out = match self.event {
                    HookEvent::PreDelete | HookEvent::PostDelete => {
                        "mend what it needs and delete its object, or skip hooks with the annotation \
                         pintle.dev/force-delete=true on the owner"
                    }
                    _ => "change the chart or the values: a new revision runs its hooks again",
                };
                let message = format!("hook {} failed: {why}; {way_out}", word(self.event));
                self.end(HookPhase::Failed, &message);
                self.tidy(self.deletes(DeletePolicy::HookFailed));
                Err(Halt::failed(Blocker::new("HookFailed", message).on(target)))
            }
            Verdict::Pending(blockers) | Verdict::Transient(blockers) => self.wait(blockers),
        }
    }

    /// A hook that is not done in time has failed, as with Helm.
    fn wait(&mut self, blockers: Vec<Blocker>) -> Result<(), Halt> {
        let target = self.hook.rendered.object.reference();
        let since = self.memory.hook(self.event, &target).map(|run| run.since);
        match (self.input.release.timeout, since) {
            (Some(limit), Some(since)) if self.input.now.duration_since(since).as_secs() >= limit => {
                let message = format!(
                    "hook {} was not done within {limit} s; change the chart or the values: a new revision runs \
                     its hooks again",
                    word(self.event)
                );
                self.end(HookPhase::Failed, &message);
                self.tidy(self.deletes(DeletePolicy::HookFailed));
                Err(Halt::failed(Blocker::new("HookFailed", message).on(target)))
            }
            _ => Err(Halt { phase: Phase::Pending, blockers }),
        }
    }

    fn end(&mut self, phase: HookPhase, message: &str) {
        let target = self.hook.rendered.object.reference();
        if let Some(run) = self.memory.hook_mut(self.event, &target) {
            (run.phase, run.message, run.until) = (phase, message.to_owned(), Some(self.input.now));
        }
    }

    /// An object of an earlier run goes first, where the chart allows it.
    fn make_room(&mut self, live: &Object) -> Halt {
        let target = live.reference();
        if let Some(refusal) = self.input.answers.refusals.get(&target) {
            return Halt::of(verdict_of(refusal, &target));
        }
        if live.is_terminating() && !is_held(live) {
            return Halt { phase: Phase::Pending, blockers: vec![terminating(live)] };
        }
        let is_ours = live.label(names::OWNER) == Some(&self.input.release.owner_uid);
        if !is_ours && live.annotation(names::HELM_RELEASE_NAME) != Some(&self.input.release.name)
            || !self.deletes(DeletePolicy::BeforeHookCreation)
        {
            let message = format!(
                "hook {} cannot be created: an object of that name is there and the chart does not let it go; \
                 delete it, or add before-hook-creation to its helm.sh/hook-delete-policy",
                word(self.event)
            );
            return Halt::failed(Blocker::new("HookExists", message).on(target));
        }
        self.drop_object(live);
        Halt { phase: Phase::Applying, blockers: Vec::new() }
    }

    fn create(&mut self) -> Halt {
        let mut object = self.hook.rendered.object.clone();
        let target = object.reference();
        if let Some(refusal) = self.input.answers.refusals.get(&target) {
            return Halt::of(verdict_of(refusal, &target));
        }
        object.set_annotation(RUN, &self.mark());
        object
            .map_mut(&["metadata"])
            .insert("finalizers".to_owned(), Value::from(vec![names::HOOK_FINALIZER]));
        let (state, pool) = (String::new(), String::new());
        self.steps.push(Step::Apply(Apply {
            object,
            mode: ApplyMode::Create,
            state,
            pool,
            rank: 0,
            is_inventory: false,
            whole: None,
            repairs: None,
        }));
        Halt { phase: Phase::Applying, blockers: Vec::new() }
    }

    /// After its result is recorded the object is let go, and deleted where the chart says so.
    fn tidy(&mut self, is_deleted: bool) {
        let Answer::Found(live) = self.live() else { return };
        if live.annotation(RUN) != Some(&self.mark())
            || self.input.answers.refusals.contains_key(&live.reference())
        {
            return;
        }
        if is_deleted {
            self.drop_object(&live);
        } else if is_held(&live) {
            self.steps.push(Step::Release(live.reference()));
        }
    }

    fn drop_object(&mut self, live: &Object) {
        if is_held(live) {
            self.steps.push(Step::Release(live.reference()));
        }
        if !live.is_terminating() {
            let (target, uid) = (live.reference(), live.uid().map(str::to_owned));
            self.steps.push(Step::Delete(Delete { target, uid, reason: "HookDone" }));
        }
    }

    /// Helm deletes before creation where a chart says nothing.
    fn deletes(&self, policy: DeletePolicy) -> bool {
        let policies = &self.hook.delete_policies;
        policies.contains(&policy) || (policies.is_empty() && policy == DeletePolicy::BeforeHookCreation)
    }

    fn live(&self) -> Answer<Arc<Object>> {
        let target = self.hook.rendered.object.reference();
        match self.input.answers.written.get(&target) {
            Some(written) => Answer::Found(Arc::clone(written)),
            None => self.input.facts.get(&target),
        }
    }

    fn unknown(&self, answer: &Answer<Arc<Object>>) -> Halt {
        let object = &self.hook.rendered.object;
        let (phase, blockers) = match answer {
            Answer::KindUnknown => (Phase::Pending, vec![kind_unknown(object)]),
            Answer::Denied(why) => {
                (Phase::Retrying, vec![Blocker::new("Forbidden", why).on(object.reference())])
            }
            Answer::Found(_) | Answer::Missing | Answer::NotYet => (Phase::Pending, Vec::new()),
        };
        Halt { phase, blockers }
    }

    fn mark(&self) -> String {
        format!("{} {}", self.memory.revision, word(self.event))
    }
}

impl Halt {
    fn failed(blocker: Blocker) -> Self {
        Self { phase: Phase::Failed, blockers: vec![blocker] }
    }

    fn of(verdict: Verdict) -> Self {
        let phase = match &verdict {
            Verdict::Fatal(_) => Phase::Failed,
            Verdict::Transient(_) => Phase::Retrying,
            Verdict::Pending(_) | Verdict::Ready => Phase::Pending,
        };
        Self { phase, blockers: verdict.blockers().to_vec() }
    }
}

/// What became of a hook: a Job or a Pod must end well, anything else must be ready.
fn outcome(live: &Object, input: &Input<'_>) -> Verdict {
    if live.kind() != "Pod" {
        return if crate::has_rule(live) { judge(live, input.facts, true) } else { Verdict::Ready };
    }
    let target = live.reference();
    match live.str_at("/status/phase").unwrap_or_default() {
        "Succeeded" => Verdict::Ready,
        "Failed" => {
            let why = live.str_at("/status/message").unwrap_or("its containers ended with an error");
            Verdict::fatal(Blocker::new("PodFailed", why).on(target))
        }
        phase => {
            let phase = if phase.is_empty() { "not scheduled yet" } else { phase };
            Verdict::pending(Blocker::new("HookRunning", format!("the hook's pod is {phase}")).on(target))
        }
    }
}

/// The object was created for a hook of this revision.
pub(crate) fn is_of(live: &Object, revision: u32) -> bool {
    let mark = live.annotation(RUN).and_then(|mark| mark.split(' ').next()?.parse().ok());
    mark == Some(revision)
}

/// Our finalizer holds the object.
pub(crate) fn is_held(live: &Object) -> bool {
    let finalizers = live.at("/metadata/finalizers").and_then(Value::as_array);
    finalizers.into_iter().flatten().any(|finalizer| finalizer == names::HOOK_FINALIZER)
}
