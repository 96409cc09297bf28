//! The way out of a release.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use pintle_api::{Facts, ObjectRef, Timestamp, names};
use pintle_plan::{Hook, Input, Memory, Plan, Pools, decide_removal, remedy};
use pintle_plugin::Operation;
use serde_json::Value;

use super::{PAUSE, PLANS, dependencies, namespace, pause, remember};
use crate::{
    apply::{self, Progress},
    context::{Context, Key},
    front::Front,
    memory,
    plugins::{Caller, said::Said},
    record, report,
    report::Outcome,
};

/// How far a release is on its way out.
enum Way {
    /// Nothing is left of it.
    Gone(Box<Plan>),
    /// It is looked at again after this time, or on an event.
    Waiting(Option<Duration>),
}

/// Deletes what belongs to a release, states in reverse, and lets the owner go when all is gone.
pub(super) async fn run(ctx: &Context, key: &Key, front: &Front) -> Option<Duration> {
    match leave(ctx, key, front).await {
        Way::Gone(plan) => finish(ctx, key, front, &plan).await,
        Way::Waiting(again) => again,
    }
}

/// Uninstalls a release that failed, so that it can be installed again. The records stay.
pub(super) async fn clear(ctx: &Context, key: &Key, front: &Front) -> Option<Duration> {
    match leave(ctx, key, front).await {
        Way::Gone(plan) => {
            let mut memory = plan.memory;
            remedy::uninstalled(&mut memory);
            let is_stored = remember(ctx, front, &mut memory).await;
            Some(if is_stored { Duration::ZERO } else { PAUSE })
        }
        Way::Waiting(again) => again,
    }
}

async fn leave(ctx: &Context, key: &Key, front: &Front) -> Way {
    let (stored, reads) = ctx.know(key, |facts| memory::observe(facts, &front.release)).await;
    let mut saved = stored.found().unwrap_or_default();
    let mut progress = Progress::new(saved.clone(), &front.release.policy.ignore);
    let Recalled { hooks, own } = recall(ctx, key, front, &mut progress).await;
    for _ in 0..PLANS {
        let now = Timestamp::now();
        let look = |facts: &dyn Facts| think(front, &hooks, &progress, facts, now);
        let (mut plan, mut seen) = ctx.know(key, look).await;
        seen.extend(reads.clone());
        seen.extend(progress.reads.clone());
        ctx.watches.register(&key.holder(), &seen);
        let steps = std::mem::take(&mut plan.steps);
        progress.memory = plan.memory.clone();
        if plan.is_gone {
            return Way::Gone(Box::new(plan));
        }
        let has_refusals = !progress.answers.refusals.is_empty();
        if steps.is_empty() || has_refusals {
            if progress.memory.differs_for_good(&saved) {
                remember(ctx, front, &mut progress.memory).await;
            }
            let tries = ctx.ledger.count_try(key, has_refusals);
            let revision = progress.memory.revision;
            let said = &progress.said;
            let outcome = Outcome { plan: &plan, chart: None, revision, tries, is_removal: true, said };
            let told = report::run(ctx, key, front, &outcome).await;
            let again = has_refusals.then(|| pause(tries));
            return Way::Waiting([told, again, plan.recheck].into_iter().flatten().min());
        }
        if progress.memory.differs_for_good(&saved) {
            // A hook whose begin is not stored might run twice. In a namespace that is going, where nothing
            // can be stored, none is begun.
            if !remember(ctx, front, &mut progress.memory).await {
                return Way::Waiting(Some(pause(ctx.ledger.count_try(key, true))));
            }
            saved = progress.memory.clone();
        }
        apply::run(ctx, &caller(ctx, key, front, &progress.memory, &own, now), steps, &mut progress).await;
        if progress.lost_lead {
            return Way::Waiting(None);
        }
    }
    Way::Waiting(Some(PAUSE))
}

/// What the last revision was made of.
#[derive(Default)]
struct Recalled {
    hooks: Vec<Hook>,
    /// Its objects, gone or not: a plugin may always look whether one of them is still there.
    own: BTreeSet<ObjectRef>,
}

/// The last revision. Its objects are remembered again where the memory was lost.
async fn recall(ctx: &Context, key: &Key, front: &Front, progress: &mut Progress) -> Recalled {
    let Some(record) = record::newest(ctx, key, front).await else { return Recalled::default() };
    let objects = record::objects(&record);
    let own = objects.iter().map(|known| known.object.clone()).collect();
    if progress.memory.objects.is_empty() {
        objects.into_iter().for_each(|known| progress.memory.know(known));
        progress.memory.revision = progress.memory.revision.max(record.version);
    }
    Recalled { hooks: record::hooks(&record), own }
}

fn caller<'a>(
    ctx: &'a Context,
    key: &'a Key,
    front: &Front,
    memory: &Memory,
    recalled: &BTreeSet<ObjectRef>,
    now: Timestamp,
) -> Caller<'a> {
    let owned = memory.around.owned().filter(|owned| !owned.is_part).map(|owned| owned.object.clone());
    let own = memory.objects.values().map(|known| known.object.clone()).chain(owned);
    let own = own.chain(recalled.iter().cloned());
    Caller {
        ctx,
        key,
        owner: Arc::clone(&front.owner),
        release: pintle_plugin::Release {
            name: front.release.name.clone(),
            namespace: front.release.namespace.clone(),
            chart: front.chart.name.clone(),
            chart_version: front.chart.version.clone(),
            revision: memory.revision,
        },
        operation: Operation::Delete,
        own: Arc::new(own.collect()),
        values: Arc::new(Value::Object(front.user_values())),
        saved: Arc::new(memory.saved.clone()),
        now,
    }
}

fn think(front: &Front, hooks: &[Hook], progress: &Progress, facts: &dyn Facts, now: Timestamp) -> Plan {
    let pools = Pools::observe(facts, &front.node_selector()).found().unwrap_or_default();
    decide_removal(&Input {
        release: &front.release,
        states: &[],
        hooks,
        around: &[],
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
pub(super) async fn finish(ctx: &Context, key: &Key, front: &Front, plan: &Plan) -> Option<Duration> {
    let space = match front.owner.is_terminating() {
        true => namespace::look(ctx, key, front, plan).await,
        false => namespace::End::None,
    };
    if let namespace::End::Later(again) = space {
        return again;
    }
    if let Err(err) = record::forget(ctx, key, front).await {
        tracing::warn!(owner = %front.release.owner, label = err.label(), "could not delete the records of the release");
        return Some(pause(ctx.ledger.count_try(key, true)));
    }
    dependencies::forget(ctx, key, front).await;
    if !front.owner.is_terminating() {
        let said = &Said::default();
        let outcome = Outcome { plan, chart: None, revision: 0, tries: 0, is_removal: true, said };
        return report::run(ctx, key, front, &outcome).await;
    }
    if !namespace::end(ctx, front, space).await {
        return Some(pause(ctx.ledger.count_try(key, true)));
    }
    let mut live = Arc::clone(&front.owner);
    let all = [front.finalizer(), names::SRO_FINALIZER_OLD].into_iter().chain(names::HYBRID_FINALIZERS);
    for finalizer in all {
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
