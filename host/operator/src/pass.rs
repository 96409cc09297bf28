//! One pass over an owner: fetch, map, render, plan, apply, report.

mod consult;
mod dependencies;
mod look;
mod namespace;
mod reconcile;
mod remedy;
mod removal;
mod settle;

use std::{sync::Arc, time::Duration};

use pintle_api::{Answer, Facts, Object, ObjectRef, Record};
use pintle_plan::{Memory, Trouble, remedy::Course};

use crate::{
    context::{Context, Key},
    fetch,
    front::{Front, FrontKind},
    memory,
    metrics::PassLabels,
    report, watches,
    wishes::Pause,
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
    // A Watch says how many of its owners are worked on at once; this one comes again when another is done.
    let _turn = ctx.bindings.enter(ctx, &front.owner, &key)?;
    let (again, result) = pass(ctx, &key, &front).await;
    let front = match front.kind {
        FrontKind::SpecialResource(_) => "specialresource",
        FrontKind::Watch(_) => "watch",
    };
    ctx.metrics.passes.get_or_create(&PassLabels { front, result }).inc();
    ctx.metrics.pass_seconds.observe(started.elapsed().as_secs_f64());
    // Who changed the owner while the pass was under way may be in its record already, and would wake nobody.
    let (now, _) = ctx.know(&key, |facts| facts.get(owner)).await;
    if now.found().is_some_and(|now| asks_for_more(&live, &now)) { Some(Duration::ZERO) } else { again }
}

/// True when the owner asks for something else than it did. What we write into it ourselves asks for nothing.
fn asks_for_more(before: &Object, now: &Object) -> bool {
    let asked = |owner: &Object| {
        let parts = ["/spec", "/metadata/labels", "/metadata/annotations", "/metadata/deletionTimestamp"];
        parts.map(|part| owner.at(part).cloned())
    };
    before.uid() == now.uid() && asked(before) != asked(now)
}

async fn pass(ctx: &Context, key: &Key, front: &Front) -> (Option<Duration>, &'static str) {
    if state_of_management(front) == "Unmanaged" {
        watch_owner(ctx, key, &front.release.owner);
        return (None, "unmanaged");
    }
    if let Some(pause) = front.wishes.pause
        && !(pause == Pause::UntilDeleted && front.owner.is_terminating())
    {
        watch_owner(ctx, key, &front.release.owner);
        report::paused(ctx, key, front).await;
        return (None, "paused");
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
    if must_clear(ctx, key, front).await {
        return (removal::clear(ctx, key, front).await, "uninstall");
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

/// True while a release that failed is being uninstalled before it is tried again.
async fn must_clear(ctx: &Context, key: &Key, front: &Front) -> bool {
    if front.release.policy.remediation.is_none() {
        return false;
    }
    let (memory, _) = ctx.know(key, |facts| memory::observe(facts, &front.release)).await;
    let remedy = memory.found().and_then(|memory| memory.remedy);
    remedy.is_some_and(|remedy| remedy.course == Course::Uninstall)
}

async fn hold(ctx: &Context, front: &Front) -> Result<(), pintle_cluster::ApiError> {
    // First what looks after the owner, so that it does not go before the owner does.
    watches::hold(ctx, &front.owner).await?;
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_or_a_finalizer_asks_for_nothing_and_a_spec_does() {
        let owner = |patch: serde_json::Value| {
            let mut owner = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "uid": "1"}, "spec": {"a": 1}});
            pintle_plugin::merge_patch(&mut owner, &patch);
            Object::new(owner).unwrap()
        };
        let before = owner(json!({}));
        assert!(!asks_for_more(
            &before,
            &owner(json!({"status": {"a": 1}, "metadata": {"finalizers": ["a"]}}))
        ));
        assert!(asks_for_more(&before, &owner(json!({"spec": {"a": 2}}))));
        assert!(asks_for_more(&before, &owner(json!({"metadata": {"annotations": {"a": "1"}}}))));
        assert!(
            !asks_for_more(&before, &owner(json!({"spec": {"a": 2}, "metadata": {"uid": "2"}}))),
            "another one"
        );
    }
}
