//! One pass over an owner: fetch, map, render, plan, apply, report.

use std::{sync::Arc, time::Duration};

use pintle_api::{Answer, Facts, Gvk, Object, ObjectRef, Record, Timestamp, Verdict, names};
use pintle_plan::{Input, Memory, Plan, Pools, StateInput, decide, decide_removal, fnv1a};
use pintle_plugin::Operation;
use serde_json::Value;

use crate::{
    apply::{self, Progress},
    charts::Loaded,
    context::{Context, Key},
    fetch,
    front::{Front, FrontKind},
    memory,
    metrics::PassLabels,
    plugins::{Caller, LOADING},
    record, render, report,
    report::Outcome,
};

/// Plans of one pass; a release that still wants something then goes on in the next.
const PLANS: usize = 64;
/// First pause after a failure that a retry may mend; doubles up to [`LONGEST`].
const PAUSE: Duration = Duration::from_secs(1);
/// Longest pause between two tries.
const LONGEST: Duration = Duration::from_secs(300);

/// What was concluded from one look at the world.
struct Thought {
    plan: Plan,
    states: Vec<StateInput>,
}

/// Brings a release one pass further; gives the time after which it wants to be looked at again.
pub(crate) async fn reconcile(ctx: &Context, owner: &ObjectRef) -> Option<Duration> {
    let key = Key::Owner(owner.clone());
    let started = tokio::time::Instant::now();
    let (answer, _) = ctx.know(&key, |facts| facts.get(owner)).await;
    let Some(live) = answer.found() else {
        forget(ctx, &key);
        return None;
    };
    let front = match ctx.front_of(&live) {
        Some(Ok(front)) => front,
        Some(Err(err)) => {
            watch_owner(ctx, &key, owner);
            return report::problem(ctx, &key, &live, "InvalidSpec", &err.to_string()).await;
        }
        None => {
            forget(ctx, &key);
            return None;
        }
    };
    let (again, result) = pass(ctx, &key, &front).await;
    let front = match front.kind {
        FrontKind::SpecialResource(_) => "specialresource",
        FrontKind::Watch(_) => "watch",
    };
    ctx.metrics.passes.get_or_create(&PassLabels { front, result }).inc();
    ctx.metrics.pass_seconds.observe(started.elapsed().as_secs_f64());
    again
}

async fn pass(ctx: &Context, key: &Key, front: &Front) -> (Option<Duration>, &'static str) {
    if state_of_management(front) == "Unmanaged" {
        watch_owner(ctx, key, &front.release.owner);
        return (None, "unmanaged");
    }
    if front.owner.is_terminating() || state_of_management(front) == "Removed" {
        return (remove(ctx, key, front).await, "removal");
    }
    if let Err(err) = hold(ctx, front).await {
        tracing::warn!(owner = %front.release.owner, label = err.label(), "could not set the finalizer");
        return (Some(PAUSE), "finalizer");
    }
    match fetch::run(ctx, key, front).await {
        Ok((chart, reads)) => settle(ctx, key, front, &chart, reads).await,
        Err(problem) => {
            ctx.watches.register(&key.holder(), &problem.reads);
            let tries = ctx.ledger.count_try(key, true);
            report::problem(ctx, key, &front.owner, problem.reason, &problem.message).await;
            (problem.may_pass.then(|| pause(tries)), "fetch")
        }
    }
}

/// Plans and applies until nothing is left to do now, then reports.
async fn settle(
    ctx: &Context,
    key: &Key,
    front: &Front,
    chart: &Arc<Loaded>,
    fetched: Record,
) -> (Option<Duration>, &'static str) {
    let mut front = front.clone();
    front.release.chart_digest.clone_from(&chart.chart.digest);
    let (stored, reads) = ctx.know(key, |facts| memory::observe(facts, &front.release)).await;
    let stored = match stored {
        Answer::Found(memory) => memory,
        Answer::Denied(why) => return (denied(ctx, key, &front, reads, &why).await, "memory"),
        _ => return (Some(PAUSE), "memory"),
    };
    if let FrontKind::SpecialResource(_) = front.kind {
        let (pools, reads) = ctx.know(key, |facts| Pools::observe(facts, &front.node_selector())).await;
        if let Answer::Denied(why) = pools {
            return (denied(ctx, key, &front, reads, &why).await, "nodes");
        }
    }
    let mut saved = stored.clone();
    let mut watched = fetched;
    watched.extend(reads);
    let mut progress = Progress::new(stored);
    prepare_seed(&mut progress.memory, &front);
    let mut last = None;
    for _ in 0..PLANS {
        let now = Timestamp::now();
        let (thought, reads) =
            ctx.know(key, |facts| think(ctx, key, &front, chart, &progress, facts, now)).await;
        let mut seen = watched.clone();
        seen.extend(reads);
        seen.extend(progress.reads.clone());
        ctx.watches.register(&key.holder(), &seen);
        let Thought { mut plan, states } = thought;
        let steps = std::mem::take(&mut plan.steps);
        progress.memory = plan.memory.clone();
        let is_idle = steps.is_empty();
        if progress.memory.differs_for_good(&saved) && has_namespace(&steps) {
            if !remember(ctx, &front, &progress.memory).await {
                last = Some(plan);
                break;
            }
            saved = progress.memory.clone();
            record::pending(ctx, key, &front, chart, &saved, &states).await;
        }
        last = Some(plan);
        if is_idle {
            break;
        }
        let caller = caller(ctx, key, &front, chart, &progress, &states, now);
        ctx.ledger.with(key, |entry| *entry.first_write_at.get_or_insert_with(tokio::time::Instant::now));
        apply::run(ctx, &caller, steps, &mut progress).await;
        if progress.lost_lead {
            return (None, "standby");
        }
    }
    let Some(plan) = last else { return (Some(PAUSE), "stuck") };
    if progress.memory != saved {
        remember(ctx, &front, &progress.memory).await;
    }
    record::conclude(ctx, key, &front, &progress.memory, &plan.verdict).await;
    conclude(ctx, key, &front, chart, &progress, &plan).await
}

/// Tells that something may not be read without which nothing can be decided, and tries again.
async fn denied(ctx: &Context, key: &Key, front: &Front, reads: Record, why: &str) -> Option<Duration> {
    ctx.watches.register(&key.holder(), &reads);
    let tries = ctx.ledger.count_try(key, true);
    report::problem(ctx, key, &front.owner, "Forbidden", why).await;
    Some(pause(tries))
}

async fn conclude(
    ctx: &Context,
    key: &Key,
    front: &Front,
    chart: &Loaded,
    progress: &Progress,
    plan: &Plan,
) -> (Option<Duration>, &'static str) {
    // After a restart plugins come a moment later than releases: what was ready is not called anything
    // else before it was judged. The end of the loading wakes the release.
    if is_loading(progress) && was_ready(&front.owner) {
        return (None, "loading");
    }
    let failed = !progress.answers.refusals.is_empty() || matches!(plan.verdict, Verdict::Transient(_));
    let tries = ctx.ledger.count_try(key, failed);
    let outcome = Outcome {
        plan,
        chart: Some(&chart.chart),
        revision: progress.memory.revision,
        tries,
        is_removal: false,
    };
    let told = report::run(ctx, key, front, &outcome).await;
    let result = match plan.verdict {
        Verdict::Ready => "ready",
        Verdict::Pending(_) => "pending",
        Verdict::Transient(_) => "transient",
        Verdict::Fatal(_) => "fatal",
    };
    let again = [plan.recheck, failed.then(|| pause(tries)), told].into_iter().flatten().min();
    (again, result)
}

fn is_loading(progress: &Progress) -> bool {
    let mut blockers = progress.answers.calls.values().flat_map(|answer| answer.verdict.blockers());
    blockers.any(|blocker| blocker.reason == LOADING)
}

/// The owner's status says that it is ready, and is of its present generation.
fn was_ready(owner: &pintle_api::Object) -> bool {
    let number = |pointer: &str| owner.at(pointer).and_then(Value::as_i64);
    let conditions = owner.at("/status/conditions").and_then(Value::as_array);
    let text =
        |condition: &Value, field: &str| condition.get(field).and_then(Value::as_str).map(str::to_owned);
    let is_ready = conditions.into_iter().flatten().any(|condition| {
        text(condition, "type").as_deref() == Some("Ready")
            && text(condition, "status").as_deref() == Some("True")
    });
    is_ready && number("/status/observedGeneration") == number("/metadata/generation")
}

/// One look at the world: pools, rendering, decision. Reads nothing but through `facts`.
fn think(
    ctx: &Context,
    key: &Key,
    front: &Front,
    chart: &Arc<Loaded>,
    progress: &Progress,
    facts: &dyn Facts,
    now: Timestamp,
) -> Thought {
    let pools = Pools::observe(facts, &front.node_selector()).found().unwrap_or_default();
    let mut memory = progress.memory.clone();
    let states = rendered(ctx, key, front, chart, &memory, &pools, facts);
    let mark = revision_mark(front, &states);
    if memory.revision_mark != mark {
        memory.revision += 1;
        memory.revision_mark = mark;
    }
    let before = report::states_before(&front.owner);
    let plan = decide(&Input {
        release: &front.release,
        states: &states,
        pools: &pools,
        memory: &memory,
        answers: &progress.answers,
        facts,
        before: &before,
        now,
    });
    Thought { plan, states }
}

/// The objects of every state; rendered again only when something that goes into them differs.
fn rendered(
    ctx: &Context,
    key: &Key,
    front: &Front,
    chart: &Arc<Loaded>,
    memory: &Memory,
    pools: &Pools,
    facts: &dyn Facts,
) -> Vec<StateInput> {
    let capabilities = ctx.capabilities();
    let is_namespaced = |gvk: &Gvk| ctx.is_namespaced(gvk);
    let mark = input_mark(front, memory, pools, ctx);
    if let Some((known, states)) = ctx.ledger.with(key, |entry| entry.rendered.clone())
        && known == mark
    {
        return states;
    }
    let with = render::Rendering {
        front,
        chart,
        pools,
        memory,
        capabilities: &capabilities,
        facts,
        is_namespaced: &is_namespaced,
    };
    let states = tokio::task::block_in_place(|| render::run(&with));
    let is_whole = states.iter().flat_map(|state| &state.pools).all(|pool| pool.objects.is_ok());
    ctx.ledger.with(key, |entry| entry.rendered = is_whole.then(|| (mark, states.clone())));
    states
}

/// Mark of what goes into a rendering. Status and version of the owner do not: writing a status must
/// not render again.
fn input_mark(front: &Front, memory: &Memory, pools: &Pools, ctx: &Context) -> String {
    let mut owner = (*front.owner).clone();
    owner.remove("status");
    for field in ["managedFields", "resourceVersion", "finalizers"] {
        owner.map_mut(&["metadata"]).remove(field);
    }
    let text = format!(
        "{}|{}|{}|{:?}|{}|{}",
        front.release.chart_digest,
        memory.seed,
        pintle_plan::rendered_mark(&owner),
        pools.pools,
        ctx.generation(),
        Value::Object(front.user_values())
    );
    format!("{:x}", fnv1a(text.as_bytes()))
}

fn revision_mark(front: &Front, states: &[StateInput]) -> String {
    let values = Value::Object(front.user_values()).to_string();
    let text = format!("{}|{values}|{}", front.release.chart_digest, render::manifest_mark(states));
    format!("{:x}", fnv1a(text.as_bytes()))
}

/// A chart or values that changed get a new seed and time; facts of the cluster alone do not.
fn prepare_seed(memory: &mut Memory, front: &Front) {
    let text = format!("{}|{}", front.release.chart_digest, Value::Object(front.user_values()));
    let mark = format!("{:x}", fnv1a(text.as_bytes()));
    if memory.seed_mark != mark || memory.seed.is_empty() {
        memory.seed = hex::encode(rand::random::<[u8; 32]>());
        memory.time = Some(Timestamp::now());
        memory.seed_mark = mark;
    }
}

fn caller<'a>(
    ctx: &'a Context,
    key: &'a Key,
    front: &Front,
    chart: &Loaded,
    progress: &Progress,
    states: &[StateInput],
    now: Timestamp,
) -> Caller<'a> {
    let pools = states.iter().flat_map(|state| &state.pools);
    let own =
        pools.flat_map(|pool| pool.objects.iter().flatten()).map(|rendered| rendered.object.reference());
    let revision = progress.memory.revision;
    Caller {
        ctx,
        key,
        owner: Arc::clone(&front.owner),
        release: pintle_plugin::Release {
            name: front.release.name.clone(),
            namespace: front.release.namespace.clone(),
            chart: chart.chart.name().to_owned(),
            chart_version: chart.chart.metadata.version.clone(),
            revision,
        },
        operation: if revision > 1 { Operation::Upgrade } else { Operation::Install },
        own: Arc::new(own.collect()),
        values: Arc::new(Value::Object(front.user_values())),
        now,
    }
}

/// Memory is stored in the release's namespace, so that must be there first.
fn has_namespace(steps: &[pintle_plan::Step]) -> bool {
    !steps.iter().any(|step| matches!(step, pintle_plan::Step::CreateNamespace(_)))
}

async fn remember(ctx: &Context, front: &Front, memory: &Memory) -> bool {
    match memory::store(ctx, &front.release, memory).await {
        Ok(()) => true,
        Err(err) => {
            tracing::warn!(owner = %front.release.owner, label = err.label(), "could not store the memory of the release");
            false
        }
    }
}

/// Deletes what belongs to a release, states in reverse, and lets the owner go when all is gone.
async fn remove(ctx: &Context, key: &Key, front: &Front) -> Option<Duration> {
    let (stored, reads) = ctx.know(key, |facts| memory::observe(facts, &front.release)).await;
    let mut progress = Progress::new(stored.found().unwrap_or_default());
    for _ in 0..PLANS {
        let now = Timestamp::now();
        let (mut plan, seen) = ctx.know(key, |facts| think_removal(front, &progress, facts, now)).await;
        let mut seen = seen;
        seen.extend(reads.clone());
        ctx.watches.register(&key.holder(), &seen);
        let steps = std::mem::take(&mut plan.steps);
        progress.memory = plan.memory.clone();
        if plan.is_gone {
            return finish_removal(ctx, key, front, &plan).await;
        }
        if steps.is_empty() || !progress.answers.refusals.is_empty() {
            let tries = ctx.ledger.count_try(key, !progress.answers.refusals.is_empty());
            let outcome = Outcome {
                plan: &plan,
                chart: None,
                revision: progress.memory.revision,
                tries,
                is_removal: true,
            };
            let told = report::run(ctx, key, front, &outcome).await;
            let again = (!progress.answers.refusals.is_empty()).then(|| pause(tries));
            return [told, again].into_iter().flatten().min();
        }
        let caller = Caller {
            ctx,
            key,
            owner: Arc::clone(&front.owner),
            release: pintle_plugin::Release::default(),
            operation: Operation::Delete,
            own: Arc::default(),
            values: Arc::default(),
            now,
        };
        apply::run(ctx, &caller, steps, &mut progress).await;
        if progress.lost_lead {
            return None;
        }
    }
    Some(PAUSE)
}

fn think_removal(front: &Front, progress: &Progress, facts: &dyn Facts, now: Timestamp) -> Plan {
    let pools = Pools::observe(facts, &front.node_selector()).found().unwrap_or_default();
    decide_removal(&Input {
        release: &front.release,
        states: &[],
        pools: &pools,
        memory: &progress.memory,
        answers: &progress.answers,
        facts,
        before: &[],
        now,
    })
}

/// Nothing is left: the records of the release go, then the finalizers. An owner that stays, since it
/// only asked for the removal, is told; without a memory it begins anew when it is managed again.
async fn finish_removal(ctx: &Context, key: &Key, front: &Front, plan: &Plan) -> Option<Duration> {
    if let Err(err) = record::forget(ctx, key, front).await {
        tracing::warn!(owner = %front.release.owner, label = err.label(), "could not delete the records of the release");
        return Some(pause(ctx.ledger.count_try(key, true)));
    }
    if !front.owner.is_terminating() {
        let outcome = Outcome { plan, chart: None, revision: 0, tries: 0, is_removal: true };
        return report::run(ctx, key, front, &outcome).await;
    }
    let mut live = Arc::clone(&front.owner);
    for finalizer in [front.finalizer(), names::SRO_FINALIZER_OLD] {
        match ctx.writer.remove_finalizer(&live, finalizer).await {
            Ok(Some(applied)) => live = applied.object,
            Ok(None) => {}
            Err(err) => {
                tracing::debug!(owner = %front.release.owner, label = err.label(), "could not remove the finalizer");
                return Some(pause(ctx.ledger.count_try(key, true)));
            }
        }
    }
    tracing::info!(owner = %front.release.owner, "the release is gone");
    None
}

async fn hold(ctx: &Context, front: &Front) -> Result<(), pintle_cluster::ApiError> {
    ctx.writer.add_finalizer(&front.owner, front.finalizer()).await.map(drop)
}

fn state_of_management(front: &Front) -> &str {
    match &front.kind {
        FrontKind::SpecialResource(spec) => &spec.management_state,
        FrontKind::Watch(_) => "Managed",
    }
}

/// An owner that nothing is done for is still watched: its change wakes it.
fn watch_owner(ctx: &Context, key: &Key, owner: &ObjectRef) {
    let recorder = pintle_api::Recorder::new(&*ctx.caches);
    let _: Answer<Arc<Object>> = recorder.get(owner);
    ctx.watches.register(&key.holder(), &recorder.into_record());
}

fn forget(ctx: &Context, key: &Key) {
    ctx.watches.remove(&key.holder());
    ctx.caches.release(&key.holder());
    if let (Some(entry), Key::Owner(owner)) = (ctx.ledger.forget(key), key) {
        ctx.metrics.forget(&owner.name, &entry.states, &entry.series);
    }
}

fn pause(tries: u32) -> Duration {
    PAUSE.saturating_mul(1 << tries.min(16)).min(LONGEST)
}
