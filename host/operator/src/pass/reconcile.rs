//! Owners that a plugin alone reconciles: asked, its objects brought about, told.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use pintle_api::{Answer, Facts, Object, Record, Timestamp, Verdict};
use pintle_plan::{Input, Memory, Plan, Pools, Reference, Step, decide_finalizing, decide_reconciling};
use pintle_plugin::Operation;
use serde_json::json;

use super::{PAUSE, PLANS, denied, pause, remember, removal};
use crate::{
    apply::{self, Progress},
    context::{Context, Key},
    front::Front,
    memory,
    plugins::{Caller, LOADING},
    report::{self, Outcome},
};

/// An owner on its way through one pass.
struct Pass<'a> {
    ctx: &'a Context,
    key: &'a Key,
    front: &'a Front,
    reference: Reference,
    is_removal: bool,
    /// What was read before the first plan.
    watched: Record,
    /// The memory as it is stored.
    saved: Memory,
    progress: Progress,
}

/// How a pass ended.
enum End {
    /// With this plan; nothing is left to do now.
    Rest(Box<Plan>),
    /// It goes on after this time, or on an event.
    Later(Option<Duration>),
}

/// Asks the plugin what shall be there, and brings it about.
pub(super) async fn run(ctx: &Context, key: &Key, front: &Front) -> (Option<Duration>, &'static str) {
    let pass = match begin(ctx, key, front, false).await {
        Ok(pass) => pass,
        Err(again) => return (again, "memory"),
    };
    pass.run().await
}

/// Asks the plugin what shall still be there, and lets the owner go once nothing is.
pub(super) async fn finalize(ctx: &Context, key: &Key, front: &Front) -> Option<Duration> {
    let mut pass = match begin(ctx, key, front, true).await {
        Ok(pass) => pass,
        Err(again) => return again,
    };
    match pass.settle().await {
        End::Later(again) => again,
        End::Rest(plan) if plan.is_gone => removal::finish(ctx, key, front, &plan).await,
        End::Rest(plan) => pass.tell(&plan).await,
    }
}

async fn begin<'a>(
    ctx: &'a Context,
    key: &'a Key,
    front: &'a Front,
    is_removal: bool,
) -> Result<Pass<'a>, Option<Duration>> {
    let Some(reference) = front.reconciler() else { return Err(None) };
    let look = |facts: &dyn Facts| {
        let owner = facts.get(&front.release.owner);
        (memory::observe(facts, &front.release), owner)
    };
    let ((stored, _), watched) = ctx.know(key, look).await;
    let stored = match stored {
        Answer::Found(memory) => memory,
        Answer::Denied(why) => return Err(denied(ctx, key, front, watched, &why).await),
        _ => return Err(Some(PAUSE)),
    };
    let mut progress = Progress::new(stored.clone(), &front.release.policy.ignore);
    if !is_removal {
        number(&mut progress.memory, front);
    }
    Ok(Pass { ctx, key, front, reference, is_removal, watched, saved: stored, progress })
}

/// Each generation of the owner is a revision, and so is each config of its Watch.
fn number(memory: &mut Memory, front: &Front) {
    let config = front.reconciler().map(|reference| reference.config).unwrap_or_default();
    let mark = format!("{}|{config}", front.owner.generation());
    if memory.revision_mark != mark {
        memory.revision += 1;
        memory.revision_mark = mark;
    }
}

// === impl Pass ===

impl Pass<'_> {
    async fn run(mut self) -> (Option<Duration>, &'static str) {
        let plan = match self.settle().await {
            End::Rest(plan) => plan,
            End::Later(again) => return (again, "later"),
        };
        // After a restart plugins come a moment later than owners: what was ready is not called anything else.
        let mut blockers = plan.verdict.blockers().iter();
        if blockers.any(|blocker| blocker.reason == LOADING) && super::settle::was_ready(&self.front.owner) {
            return (None, "loading");
        }
        let word = match plan.verdict {
            Verdict::Ready => "ready",
            Verdict::Pending(_) => "pending",
            Verdict::Transient(_) => "transient",
            Verdict::Fatal(_) => "fatal",
        };
        (self.tell(&plan).await, word)
    }

    /// Plans and applies until nothing is left to do now.
    async fn settle(&mut self) -> End {
        for _ in 0..PLANS {
            let now = Timestamp::now();
            let mut plan = self.think(now).await;
            let steps = std::mem::take(&mut plan.steps);
            self.progress.memory = plan.memory.clone();
            if plan.is_gone {
                return End::Rest(Box::new(plan));
            }
            if !self.store(steps.is_empty()).await {
                return End::Later(Some(pause(self.ctx.ledger.count_try(self.key, true))));
            }
            if steps.is_empty() {
                return End::Rest(Box::new(plan));
            }
            self.apply(steps, now).await;
            if self.progress.lost_lead {
                return End::Later(None);
            }
        }
        End::Later(Some(PAUSE))
    }

    /// What must survive a crash is stored before the steps that follow from it, the rest at the end.
    async fn store(&mut self, is_end: bool) -> bool {
        let memory = &mut self.progress.memory;
        let is_due = memory.differs_for_good(&self.saved) || (is_end && *memory != self.saved);
        if !is_due {
            return true;
        }
        let is_stored = remember(self.ctx, self.front, memory).await;
        self.saved = memory.clone();
        is_stored
    }

    async fn think(&self, now: Timestamp) -> Plan {
        let look = |facts: &dyn Facts| {
            let pools = Pools::default();
            let input = Input {
                release: &self.front.release,
                states: &[],
                hooks: &[],
                around: &[],
                pools: &pools,
                memory: &self.progress.memory,
                answers: &self.progress.answers,
                facts,
                before: &report::states_before(&self.front.owner),
                now,
            };
            if self.is_removal {
                decide_finalizing(&input, &self.reference)
            } else {
                decide_reconciling(&input, &self.reference)
            }
        };
        let (plan, reads) = self.ctx.know(self.key, look).await;
        let mut seen = self.watched.clone();
        seen.extend(reads);
        seen.extend(self.progress.reads.clone());
        self.ctx.watches.register(&self.key.holder(), &seen);
        plan
    }

    async fn apply(&mut self, steps: Vec<Step>, now: Timestamp) {
        let revision = self.progress.memory.revision;
        let owned = self.progress.memory.around.owned();
        let own: BTreeSet<_> =
            owned.filter(|owned| !owned.is_part).map(|owned| owned.object.clone()).collect();
        let owner: &Arc<Object> = &self.front.owner;
        let caller = Caller {
            ctx: self.ctx,
            key: self.key,
            owner: Arc::clone(owner),
            release: pintle_plugin::Release {
                name: owner.name().to_owned(),
                namespace: self.front.release.namespace.clone(),
                chart: String::new(),
                chart_version: String::new(),
                revision,
            },
            operation: match (self.is_removal, revision > 1) {
                (true, _) => Operation::Delete,
                (false, true) => Operation::Upgrade,
                (false, false) => Operation::Install,
            },
            own: Arc::new(own),
            values: Arc::new(owner.at("/spec").cloned().unwrap_or_else(|| json!({}))),
            saved: Arc::new(self.progress.memory.saved.clone()),
            now,
        };
        apply::run(self.ctx, &caller, steps, &mut self.progress).await;
    }

    async fn tell(&self, plan: &Plan) -> Option<Duration> {
        let has_refusals = !self.progress.answers.refusals.is_empty();
        let failed = has_refusals || matches!(plan.verdict, Verdict::Transient(_));
        let tries = self.ctx.ledger.count_try(self.key, failed);
        let outcome = Outcome {
            plan,
            chart: None,
            revision: self.progress.memory.revision,
            tries,
            is_removal: self.is_removal,
            said: &self.progress.said,
        };
        let told = report::run(self.ctx, self.key, self.front, &outcome).await;
        [plan.recheck, failed.then(|| pause(tries)), told].into_iter().flatten().min()
    }
}
