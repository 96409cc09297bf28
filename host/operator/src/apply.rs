//! Apply: does what a plan says. The only step that changes the cluster, besides the report.

mod act;

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt as _, future::join_all, stream};
use pintle_api::{Answer, Facts as _, ObjectRef, Record, names, watch::DriftIgnore};
use pintle_cluster::{ApiError, Applied, Cause as ApiCause, Delete as DeleteHow, Expect, NoteKind};
use pintle_plan::{
    Act, Answers, Apply, ApplyMode, CallAnswer, Cause, Delete, Known, Marks, Memory, Part, Refusal, Step,
    held_mark, rendered_mark,
};

use crate::{
    context::Context,
    error_text::one_line,
    ledger::Repair,
    plugins::{
        Caller,
        question::{Answered, NoAnswer, Question, Reply},
        said::Said,
    },
    report,
};

/// Applies of one rank that run at once.
const AT_ONCE: usize = 8;
/// Repaired objects that one event names.
const NAMED: usize = 3;
/// Managers of earlier owners, whose fields become ours at adoption.
const EARLIER: [&str; 5] =
    ["helm", "helm-operator", "helm-controller", "manager", "special-resource-operator"];

/// What a pass has come to.
pub(crate) struct Progress {
    pub(crate) memory: Memory,
    pub(crate) answers: Answers,
    /// Everything that plugins read: part of the watch set.
    pub(crate) reads: Record,
    /// Differences that do not count.
    pub(crate) ignore: Vec<DriftIgnore>,
    /// What plugins want told.
    pub(crate) said: Said,
    /// Objects that were put right, and what somebody had done to them.
    repaired: Vec<Repair>,
    /// Objects that were written.
    pub(crate) writes: u32,
    /// This process may not write any more.
    pub(crate) lost_lead: bool,
}

/// Does the steps: the namespace alone, then questions, applies by rank, labels, deletes. A step that
/// fails is an answer; the plan that follows says what it means.
pub(crate) async fn run(ctx: &Context, caller: &Caller<'_>, steps: Vec<Step>, progress: &mut Progress) {
    let (mut applies, mut calls, mut asks, mut others): (Vec<Apply>, Vec<_>, Vec<_>, Vec<_>) =
        Default::default();
    for step in steps {
        match step {
            Step::CreateNamespace(object) => {
                let target = object.reference();
                return progress.note(&target, ctx.writer.create(&object).await.map(drop));
            }
            Step::Apply(apply) => applies.push(apply),
            Step::Call(call) => calls.push(call),
            Step::Ask(ask) => asks.push(ask),
            other => others.push(other),
        }
    }
    for (question, reply) in join_all(calls.iter().map(|call| caller.check(call))).await {
        progress.hear(ctx, &question, &reply);
        let answer = match reply.answer {
            Ok(checked) => CallAnswer { recheck: Answered::recheck(&checked), verdict: checked.verdict },
            Err(NoAnswer { verdict, recheck, .. }) => CallAnswer { verdict, recheck },
        };
        progress.answers.calls.insert(question.key, answer);
    }
    let heard = join_all(asks.iter().map(|ask| caller.ask_around(ask))).await;
    for (ask, heard) in asks.into_iter().zip(heard) {
        progress.hear(ctx, &heard.question, &heard.reply);
        progress.answers.told.insert(ask.key, heard.told);
    }
    apply_by_rank(ctx, applies, progress).await;
    tell_repairs(ctx, caller, progress).await;
    for step in others {
        match step {
            Step::Label { target, labels } => {
                let outcome = ctx.writer.label(&target, &labels).await;
                progress.note(&target, outcome.map(drop));
            }
            Step::Release(target) => {
                let outcome = release(ctx, &target).await;
                progress.note(&target, outcome);
            }
            Step::Delete(step) => delete(ctx, caller, &step, progress).await,
            Step::Part(part) => {
                let outcome = set_part(ctx, &part).await;
                progress.note_part(part, outcome);
            }
            Step::Act(act) => {
                let outcome = act::run(ctx, &act).await;
                progress.note_act(act, outcome);
            }
            Step::Tell(tell) => {
                let kind = if tell.is_warning { NoteKind::Warning } else { NoteKind::Normal };
                report::note(ctx, &caller.owner, kind, tell.reason, &tell.message).await;
            }
            Step::CreateNamespace(_) | Step::Apply(_) | Step::Call(_) | Step::Ask(_) => {}
        }
    }
}

async fn apply_by_rank(ctx: &Context, applies: Vec<Apply>, progress: &mut Progress) {
    let mut rank_to_applies: BTreeMap<u32, Vec<Apply>> = BTreeMap::new();
    for apply in applies {
        rank_to_applies.entry(apply.rank).or_default().push(apply);
    }
    for (_, applies) in rank_to_applies {
        let outcomes = stream::iter(applies)
            .map(|step| async move {
                let outcome = apply(ctx, &step).await;
                (step, outcome)
            })
            .buffered(AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        for (step, outcome) in outcomes {
            progress.note_apply(step, outcome);
        }
        if progress.lost_lead {
            return;
        }
    }
}

/// One event for all that was put right at once, but for what was told lately.
async fn tell_repairs(ctx: &Context, caller: &Caller<'_>, progress: &mut Progress) {
    let mut repaired = std::mem::take(&mut progress.repaired);
    repaired.retain(|repair| ctx.ledger.is_news(caller.key, repair));
    if !repaired.is_empty() {
        report::note(ctx, &caller.owner, NoteKind::Normal, "Repaired", &sentence(&repaired)).await;
    }
}

/// `put right: ConfigMap shop/a (kubectl changed fields of it) and 2 more`
fn sentence(repaired: &[Repair]) -> String {
    let named = repaired.iter().take(NAMED).map(|(object, how)| format!("{object} ({how})"));
    let named = named.collect::<Vec<_>>().join(", ");
    match repaired.len().saturating_sub(NAMED) {
        0 => format!("put right: {named}"),
        more => format!("put right: {named} and {more} more"),
    }
}

async fn apply(ctx: &Context, step: &Apply) -> Result<Applied, ApiError> {
    if step.mode == ApplyMode::Adopt {
        ctx.writer.adopt(&step.object.reference(), &EARLIER).await?;
    }
    let expect = if step.mode == ApplyMode::Create { Expect::Absent } else { Expect::Any };
    let how = pintle_cluster::Apply { force: step.mode.is_forced(), expect, manager: None };
    let applied = match ctx.writer.apply(&step.object, &how).await {
        Err(err) if step.mode == ApplyMode::Repair && matches!(err.cause(), ApiCause::Invalid(_)) => {
            apply_lists(ctx, step, &how, err).await?
        }
        outcome => outcome?,
    };
    if step.mode == ApplyMode::Repair {
        tracing::info!(object = %step.object.reference(), "changed");
    }
    for warning in &applied.warnings {
        tracing::warn!(object = %step.object.reference(), "{warning}");
    }
    Ok(applied)
}

/// The apply once more, after lists were put right in which somebody changed the key of an item.
async fn apply_lists(
    ctx: &Context,
    step: &Apply,
    how: &pintle_cluster::Apply,
    refused: ApiError,
) -> Result<Applied, ApiError> {
    match ctx.writer.replace_lists(&step.object).await {
        Ok(true) => ctx.writer.apply(&step.object, how).await,
        // What the server says of the object itself is what its author can mend.
        Ok(false) | Err(_) => Err(refused),
    }
}

/// Sets fields of an object that others own, with a manager of the release and the plugin. The object is named
/// with its uid, so that an apply never makes one.
async fn set_part(ctx: &Context, part: &Part) -> Result<Applied, ApiError> {
    let how = pintle_cluster::Apply {
        force: true,
        expect: Expect::Uid(part.uid.clone()),
        manager: Some(part.manager.clone()),
    };
    ctx.writer.apply(&part.object, &how).await
}

/// Takes the finalizer of hooks off an object, whoever may have deleted it meanwhile.
async fn release(ctx: &Context, target: &ObjectRef) -> Result<(), ApiError> {
    let Answer::Found(live) = ctx.caches.get(target) else { return Ok(()) };
    ctx.writer.remove_finalizer(&live, names::HOOK_FINALIZER).await.map(drop)
}

async fn delete(ctx: &Context, caller: &Caller<'_>, step: &Delete, progress: &mut Progress) {
    let how = DeleteHow { uid: step.uid.clone(), ..DeleteHow::default() };
    let outcome = ctx.writer.delete(&step.target, &how).await.map(drop);
    if outcome.is_ok() {
        // Where it was deleted since it could not be changed, it can be made now.
        progress.answers.refusals.remove(&step.target);
        progress.answers.written.remove(&step.target);
        tracing::info!(owner = %caller.owner.reference(), object = %step.target, reason = step.reason, "deleted");
    }
    progress.note(&step.target, outcome);
}

// === impl Progress ===

impl Progress {
    /// Nothing done yet.
    pub(crate) fn new(memory: Memory, ignore: &[DriftIgnore]) -> Self {
        let (answers, reads, said, repaired) = Default::default();
        let ignore = ignore.to_vec();
        Self { memory, answers, reads, said, ignore, repaired, writes: 0, lost_lead: false }
    }

    /// Takes over what came with the reply to any question: what was read wakes the release from now on,
    /// what is to be kept is in the memory, what is to be told is told at the end of the pass.
    pub(crate) fn hear<T: Answered>(&mut self, ctx: &Context, question: &Question, reply: &Reply<T>) {
        self.reads.extend(reply.reads.clone());
        let report = match &reply.answer {
            Ok(answer) => Some(answer.report()),
            Err(no_answer) => no_answer.report.as_deref(),
        };
        if let Some(report) = report {
            let version = ctx.plugins.version_of(&question.key.plugin);
            self.said.note(question, &version, report, &mut self.memory);
        }
    }

    fn note(&mut self, target: &ObjectRef, outcome: Result<(), ApiError>) {
        self.writes += 1;
        if let Err(err) = outcome {
            self.refuse(target, &err);
        }
    }

    fn note_apply(&mut self, step: Apply, outcome: Result<Applied, ApiError>) {
        self.writes += 1;
        let target = step.object.reference();
        match outcome {
            Ok(applied) => {
                self.repaired.extend(step.repairs.clone().map(|how| (target.clone(), how)));
                if step.is_inventory {
                    let rendered = rendered_mark(step.rendered());
                    let fields = held_mark(&applied.object, step.rendered(), &self.ignore);
                    let (object, state, pool) = (target.clone(), step.state, step.pool);
                    self.memory.know(Known { object, state, pool, rendered, fields });
                }
                if !step.is_inventory {
                    let key = (target.clone(), String::new());
                    let marks = Marks::of_object(&applied.object, &step.object, &self.ignore);
                    self.answers.applied.insert(key, marks);
                }
                self.answers.written.insert(target, Arc::clone(&applied.object));
            }
            Err(err) => {
                self.memory.uncount_repair(&target);
                self.refuse(&target, &err);
            }
        }
    }

    fn note_part(&mut self, part: Part, outcome: Result<Applied, ApiError>) {
        self.writes += 1;
        let target = part.object.reference();
        match outcome {
            Ok(applied) => {
                let marks = Marks::of_part(&applied.object, &part);
                self.answers.applied.insert((target, part.manager), marks);
            }
            Err(err) => self.refuse(&target, &err),
        }
    }

    /// What is gone cannot be done to any more; everything else that is refused is the plan's to judge.
    fn note_act(&mut self, act: Act, outcome: Result<(), ApiError>) {
        self.writes += 1;
        let refusal = match outcome {
            Ok(()) => None,
            Err(err) => match err.cause() {
                ApiCause::NotFound | ApiCause::Stale(_) | ApiCause::Gone(_) => None,
                cause => {
                    let Some(word) = cause_of(cause) else {
                        self.lost_lead = true;
                        return;
                    };
                    tracing::warn!(object = %act.deed.target, label = err.label(), "{}", one_line(&err));
                    Some(Refusal { cause: word, message: one_line(cause) })
                }
            },
        };
        self.answers.acted.insert((act.plugin, act.deed.key), refusal);
    }

    fn refuse(&mut self, target: &ObjectRef, err: &ApiError) {
        let Some(cause) = cause_of(err.cause()) else {
            self.lost_lead = true;
            return;
        };
        tracing::warn!(object = %target, label = err.label(), "{}", one_line(err));
        let refusal = Refusal { cause, message: one_line(err.cause()) };
        self.answers.refusals.insert(target.clone(), refusal);
    }
}

/// What a failed write means for a plan; nothing when this process does not lead any more.
fn cause_of(cause: &ApiCause) -> Option<Cause> {
    Some(match cause {
        ApiCause::Conflict(_) => Cause::Conflict,
        ApiCause::KindUnknown(_) => Cause::KindUnknown,
        ApiCause::NamespaceMissing(_) => Cause::NamespaceMissing,
        ApiCause::NamespaceTerminating(_) => Cause::NamespaceTerminating,
        ApiCause::Forbidden { .. } | ApiCause::NotHeld { .. } | ApiCause::Unauthorized(_) => Cause::Forbidden,
        ApiCause::Quota(_) => Cause::Quota,
        ApiCause::Invalid(_) | ApiCause::Refusal(_) => Cause::Invalid,
        ApiCause::Immutable(_) => Cause::Immutable,
        ApiCause::TooManyRequests { .. } => Cause::TooManyRequests,
        ApiCause::Webhook(_) | ApiCause::Refused(_) => Cause::Webhook,
        ApiCause::OutcomeUnknown(_) => Cause::TimedOut,
        ApiCause::Stale(_)
        | ApiCause::AlreadyExists
        | ApiCause::NotFound
        | ApiCause::Gone(_)
        | ApiCause::Unavailable(_)
        | ApiCause::Unreachable(_)
        | ApiCause::Unexpected(_) => Cause::Unavailable,
        ApiCause::NotLeading(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_repairs_are_one_sentence() {
        let repair = |name: &str| {
            (ObjectRef::new("v1", "ConfigMap", name).within("shop"), "it was deleted".to_owned())
        };
        let all = ["a", "b", "c", "d", "e"].map(repair);
        assert_eq!(sentence(&all[..1]), "put right: ConfigMap shop/a (it was deleted)");
        assert!(sentence(&all).ends_with("ConfigMap shop/c (it was deleted) and 2 more"));
    }
}
