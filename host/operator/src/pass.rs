//! One pass over an owner: fetch, map, render, plan, apply, report.

mod consult;
mod look;
mod reconcile;
mod removal;
mod settle;

use std::{sync::Arc, time::Duration};

use pintle_api::{Answer, Facts, Object, ObjectRef, Record};
use pintle_plan::{Memory, Trouble};

use crate::{
    context::{Context, Key},
    fetch,
    front::{Front, FrontKind},
    memory,
    metrics::PassLabels,
    report,
};

/// Plans of one pass; a release that still wants something then goes on in the next.
const PLANS: usize = 64;
/// First pause after a failure that a retry may mend; doubles up to [`LONGEST`].
const PAUSE: Duration = Duration::from_secs(1);
/// Longest pause between two tries.
const LONGEST: Duration = Duration::from_secs(300);

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
            return report::problem(ctx, &key, &live, same("InvalidSpec", &err.to_string())).await;
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
        let again = match front.reconciler() {
            Some(_) => reconcile::finalize(ctx, key, front).await,
            None => removal::run(ctx, key, front).await,
        };
        return (again, "removal");
    }
    if let Err(err) = hold(ctx, front).await {
        tracing::warn!(owner = %front.release.owner, label = err.label(), "could not set the finalizer");
        return (Some(PAUSE), "finalizer");
    }
    if front.reconciler().is_some() {
        return reconcile::run(ctx, key, front).await;
    }
    match fetch::run(ctx, key, front).await {
        Ok((chart, reads)) => settle::run(ctx, key, front, &chart, reads).await,
        Err(problem) => {
            ctx.watches.register(&key.holder(), &problem.reads);
            let tries = ctx.ledger.count_try(key, true);
            report::problem(ctx, key, &front.owner, problem.trouble()).await;
            (problem.may_pass.then(|| pause(tries)), "fetch")
        }
    }
}

/// Tells that something may not be read without which nothing can be decided, and tries again.
async fn denied(ctx: &Context, key: &Key, front: &Front, reads: Record, why: &str) -> Option<Duration> {
    ctx.watches.register(&key.holder(), &reads);
    let tries = ctx.ledger.count_try(key, true);
    report::problem(ctx, key, &front.owner, same("Forbidden", why)).await;
    Some(pause(tries))
}

/// Stores the memory of a release; false when that failed.
async fn remember(ctx: &Context, front: &Front, memory: &mut Memory) -> bool {
    match memory::store(ctx, &front.release, memory).await {
        Ok(()) => true,
        Err(err) => {
            tracing::warn!(owner = %front.release.owner, label = err.label(), "could not store the memory of the release");
            false
        }
    }
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

/// A trouble that has one word for everybody.
fn same<'a>(word: &'a str, message: &'a str) -> Trouble<'a> {
    Trouble { reason: word, word, message }
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
