//! Plans and applies until nothing is left to do now, then reports.

use std::{sync::Arc, time::Duration};

use pintle_api::{Answer, Facts, Object, Record, Timestamp, Verdict, names};
use pintle_plan::{Memory, Plan, Pools, Step};
use pintle_plugin::Operation;
use serde_json::Value;

use super::{
    PAUSE, PLANS, denied, dependencies,
    look::{Thought, prepare_seed},
    pause, remedy, remember, same,
};
use crate::{
    apply::{self, Progress},
    charts::Loaded,
    context::{Context, Key},
    front::{Front, FrontKind},
    memory,
    plugins::{Caller, LOADING},
    record::{self, Revision, outside},
    render::{Objects, kept::Rendition},
    report,
    report::Outcome,
    values_from,
};

/// What a pass ends with: when the release wants to be looked at again, and a word for metrics.
type End = (Option<Duration>, &'static str);

/// A release on its way through one pass.
pub(super) struct Settling<'a> {
    pub(super) ctx: &'a Context,
    pub(super) key: &'a Key,
    pub(super) front: &'a Front,
    pub(super) chart: &'a Arc<Loaded>,
    /// What was read before the first plan.
    pub(super) watched: Record,
    /// The memory as it is stored.
    saved: Memory,
    pub(super) progress: Progress,
    /// Whether what the owner depends on is ready. Until it is, everything stays as it is.
    pub(super) waits: Verdict,
    /// The objects of an earlier revision, while one is gone back to.
    pub(super) back: Option<Arc<Objects>>,
    /// False when the Secret of Helm could not be written.
    is_recorded: bool,
}

/// A new value of `pintle.dev/reconcile-at` begins anew what had been given up or put off.
fn serve_request(ctx: &Context, key: &Key, front: &Front, memory: &mut Memory) {
    let asked = front.owner.annotation(names::RECONCILE_AT).unwrap_or_default();
    if memory.asked_at == asked {
        return;
    }
    asked.clone_into(&mut memory.asked_at);
    memory.contests.clear();
    if memory.remedy.take().is_some() {
        memory.revision_mark.clear();
    }
    ctx.ledger.count_try(key, false);
}

/// Plans and applies until nothing is left to do now, then reports.
pub(super) async fn run(
    ctx: &Context,
    key: &Key,
    front: &Front,
    chart: &Arc<Loaded>,
    fetched: Record,
) -> End {
    let mut front = front.clone();
    front.release.chart_digest.clone_from(&chart.chart.digest);
    let mut watched = fetched;
    let start = match start(ctx, key, &mut front, &mut watched).await {
        Ok(start) => start,
        Err(end) => {
            ctx.watches.register(&key.holder(), &watched);
            return end;
        }
    };
    let Start { saved, stored, waits } = start;
    let mut progress = Progress::new(stored, &front.release.policy.ignore);
    prepare_seed(&mut progress.memory, &front);
    let back = remedy::back(ctx, key, &front, &progress.memory).await.map(Arc::new);
    Settling { ctx, key, front: &front, chart, watched, saved, progress, waits, back, is_recorded: true }
        .run()
        .await
}

/// What a plan is made on.
struct Start {
    /// The memory as it is stored.
    saved: Memory,
    /// The memory as it is known, marks included that wait to be stored.
    stored: Memory,
    /// Whether what the owner depends on is ready.
    waits: Verdict,
}

/// Everything that is known before the first plan; where something is missing it has been told, and the pass ends.
async fn start(ctx: &Context, key: &Key, front: &mut Front, watched: &mut Record) -> Result<Start, End> {
    let (stored, reads) = ctx.know(key, |facts| memory::observe(facts, &front.release)).await;
    watched.extend(reads);
    let saved = match stored {
        Answer::Found(memory) => memory,
        Answer::Denied(why) => return Err((denied(ctx, key, front, watched.clone(), &why).await, "memory")),
        _ => return Err((Some(PAUSE), "memory")),
    };
    let kept = ctx.ledger.with(key, |entry| entry.memory.clone());
    let mut stored = kept.filter(|kept| kept.version == saved.version).unwrap_or_else(|| saved.clone());
    if let Err(halt) = outside::visit(ctx, key, front, &mut stored).await {
        report::problem(ctx, key, &front.owner, same(halt.word, &halt.message)).await;
        return Err((halt.again, "outside"));
    }
    serve_request(ctx, key, front, &mut stored);
    let waits = dependencies(ctx, key, front, &mut stored, watched).await?;
    watched.extend(record::check(ctx, key, front, &stored).await);
    if let FrontKind::SpecialResource(_) = front.kind {
        let (pools, reads) = ctx.know(key, |facts| Pools::observe(facts, &front.node_selector())).await;
        watched.extend(reads);
        if let Answer::Denied(why) = pools {
            return Err((denied(ctx, key, front, watched.clone(), &why).await, "nodes"));
        }
    }
    read_values(ctx, key, front, watched).await?;
    Ok(Start { saved, stored, waits })
}

/// Whether what the owner depends on is ready.
async fn dependencies(
    ctx: &Context,
    key: &Key,
    front: &Front,
    memory: &mut Memory,
    watched: &mut Record,
) -> Result<Verdict, End> {
    match dependencies::settle(ctx, key, front, memory).await {
        Ok((waits, reads)) => {
            watched.extend(reads);
            Ok(waits)
        }
        Err(problem) => {
            watched.extend(problem.reads.clone());
            let tries = ctx.ledger.count_try(key, true);
            report::problem(ctx, key, &front.owner, problem.trouble_of_dependency()).await;
            Err((problem.may_pass.then(|| pause(tries)), "dependencies"))
        }
    }
}

/// Reads the values that ConfigMaps and Secrets hold for the release.
async fn read_values(ctx: &Context, key: &Key, front: &mut Front, watched: &mut Record) -> Result<(), End> {
    let (sources, namespace) = (front.value_sources().to_vec(), front.release.namespace.clone());
    let (values, reads) =
        ctx.know(key, |facts: &dyn Facts| values_from::observe(facts, &sources, &namespace)).await;
    watched.extend(reads);
    match values {
        Ok(values) => front.values_from = values,
        Err(problem) => {
            let tries = ctx.ledger.count_try(key, true);
            report::problem(ctx, key, &front.owner, same(problem.reason(), &problem.to_string())).await;
            return Err((problem.may_pass().then(|| pause(tries)), "values"));
        }
    }
    Ok(())
}

// === impl Settling ===

impl Settling<'_> {
    async fn run(mut self) -> End {
        let mut last = None;
        for _ in 0..PLANS {
            let now = Timestamp::now();
            let Thought { mut plan, objects } = self.think(now).await;
            let steps = std::mem::take(&mut plan.steps);
            // What a plan only wrote down is what the next one goes on from.
            let goes_on = !steps.is_empty() || plan.memory.differs_for_good(&self.progress.memory);
            self.progress.memory = plan.memory.clone();
            let is_stored = self.store_first(&steps, objects.as_deref()).await;
            last = Some((plan, objects));
            let Some((_, Some(objects))) = last.as_ref().filter(|_| is_stored && goes_on) else {
                break;
            };
            self.apply(steps, objects, now).await;
            if self.progress.lost_lead {
                return (None, "standby");
            }
        }
        let Some((plan, objects)) = last else { return (Some(PAUSE), "stuck") };
        if let Some(objects) = objects.as_ref().filter(|objects| objects.is_whole()) {
            let named = self.named_plugins(objects);
            self.progress.said.only(&named, &mut self.progress.memory);
        }
        let remedied = self.take_stock(&plan, objects.as_deref()).await;
        // Before its first revision a release has no namespace to keep a memory in.
        if objects.is_some() || self.progress.memory.revision > 0 {
            self.store_last(&plan).await;
        }
        let plan = Plan { memory: self.progress.memory.clone(), ..plan };
        let (again, word) = self.conclude(&plan).await;
        ([again, remedied, self.front.period()].into_iter().flatten().min(), word)
    }

    /// Records what became of the revision, and decides what follows where it failed.
    async fn take_stock(&mut self, plan: &Plan, objects: Option<&Objects>) -> Option<Duration> {
        let objects = objects?;
        let is_whole = objects.is_whole();
        let was_deployed = self.progress.memory.deployed == self.progress.memory.revision;
        if plan.verdict.is_ready() || (!was_deployed && (is_whole || !self.front.is_watched())) {
            self.is_recorded = self.revision(&self.progress.memory, objects).conclude(&plan.verdict).await;
        }
        if plan.verdict.is_ready() {
            self.progress.memory.deployed = self.progress.memory.revision;
        }
        remedy::conclude(self.ctx, self.front, &mut self.progress.memory, plan, is_whole)
    }

    fn revision<'a>(&'a self, memory: &'a Memory, objects: &'a Objects) -> Revision<'a> {
        Revision { ctx: self.ctx, key: self.key, front: self.front, chart: self.chart, memory, objects }
    }

    /// What must survive a crash is stored before the steps that follow from it. The memory lies in the
    /// release's namespace, so that comes first.
    async fn store_first(&mut self, steps: &[Step], objects: Option<&Objects>) -> bool {
        let Some(objects) = objects else { return true };
        let has_namespace = !steps.iter().any(|step| matches!(step, Step::CreateNamespace(_)));
        let memory = &mut self.progress.memory;
        // Where nothing follows, the end of the pass is soon enough.
        let is_early = steps.is_empty() && memory.revision == self.saved.revision;
        if !has_namespace || is_early || !memory.differs_for_good(&self.saved) {
            return true;
        }
        let mut ahead = memory.ahead_of(steps);
        if !remember(self.ctx, self.front, &mut ahead).await {
            return false;
        }
        memory.version.clone_from(&ahead.version);
        self.saved = ahead;
        self.revision(&self.saved, objects).begin().await;
        true
    }

    /// Marks of objects that came of this pass are stored with what comes next, while something is waited for:
    /// whoever does not have them writes those objects once more.
    async fn store_last(&mut self, plan: &Plan) {
        let memory = &mut self.progress.memory;
        // Which request was served last is stored with what else there is to store, not for itself.
        let saved = Memory { asked_at: memory.asked_at.clone(), ..self.saved.clone() };
        let may_write_again = !self.front.release.leaves_drift;
        let is_kept = !plan.verdict.is_ready() && may_write_again && memory.differs_in_marks_alone(&saved);
        let kept = is_kept.then(|| memory.clone());
        if !is_kept && *memory != saved {
            remember(self.ctx, self.front, memory).await;
        }
        self.ctx.ledger.with(self.key, |entry| entry.memory = kept);
    }

    async fn apply(&mut self, steps: Vec<Step>, objects: &Objects, now: Timestamp) {
        let revision = self.progress.memory.revision;
        let owned = self.progress.memory.around.owned();
        let owned = owned.filter(|owned| !owned.is_part).map(|owned| owned.object.clone());
        let own = objects.all().map(|rendered| rendered.object.reference()).chain(owned).collect();
        let asks = steps.iter().any(|step| matches!(step, Step::Call(_) | Step::Ask(_)));
        let shown = if asks { self.shown_values().await.ok() } else { None };
        let values = shown.map(|shown| shown.values().clone()).unwrap_or_default();
        let caller = Caller {
            ctx: self.ctx,
            key: self.key,
            owner: Arc::clone(&self.front.owner),
            release: self.release(revision),
            operation: match self.progress.memory.operation() {
                pintle_plan::Operation::Install => Operation::Install,
                pintle_plan::Operation::Upgrade => Operation::Upgrade,
                pintle_plan::Operation::Rollback => Operation::Rollback,
            },
            own: Arc::new(own),
            values: Arc::new(values),
            saved: Arc::new(self.progress.memory.saved.clone()),
            now,
        };
        let begun = tokio::time::Instant::now();
        self.ctx.ledger.with(self.key, |entry| *entry.first_write_at.get_or_insert(begun));
        apply::run(self.ctx, &caller, steps, &mut self.progress).await;
    }

    async fn conclude(&self, plan: &Plan) -> End {
        // After a restart plugins come a moment later than releases: what was ready is not called anything
        // else before it was judged. The end of the loading wakes the release.
        if is_loading(&self.progress, plan) && was_ready(&self.front.owner) {
            return (None, "loading");
        }
        let has_refusals = !self.progress.answers.refusals.is_empty();
        let failed = has_refusals || !self.is_recorded || matches!(plan.verdict, Verdict::Transient(_));
        let tries = self.ctx.ledger.count_try(self.key, failed);
        if plan.verdict.is_ready() {
            self.ctx.ledger.with(self.key, |entry| entry.rendered.as_mut().map(Rendition::rest));
        }
        let outcome = Outcome {
            plan,
            chart: Some(&self.chart.chart),
            revision: self.progress.memory.revision,
            tries,
            is_removal: false,
            said: &self.progress.said,
        };
        let told = report::run(self.ctx, self.key, self.front, &outcome).await;
        let result = match plan.verdict {
            Verdict::Ready => "ready",
            Verdict::Pending(_) => "pending",
            Verdict::Transient(_) => "transient",
            Verdict::Fatal(_) => "fatal",
        };
        let again = [plan.recheck, failed.then(|| pause(tries)), told].into_iter().flatten().min();
        (again, result)
    }
}

fn is_loading(progress: &Progress, plan: &Plan) -> bool {
    let asked = progress.answers.calls.values().flat_map(|answer| answer.verdict.blockers());
    asked.chain(plan.verdict.blockers()).any(|blocker| blocker.reason == LOADING)
}

/// The owner's status says that it is ready, and is of its present generation.
pub(super) fn was_ready(owner: &Object) -> bool {
    let number = |pointer: &str| owner.at(pointer).and_then(Value::as_i64);
    let conditions = owner.at("/status/conditions").and_then(Value::as_array);
    let is_ready = conditions.into_iter().flatten().any(|condition| {
        let text = |field: &str| condition.get(field).and_then(Value::as_str);
        text("type") == Some("Ready") && text("status") == Some("True")
    });
    is_ready && number("/status/observedGeneration") == number("/metadata/generation")
}
