//! What is done when a revision of a Watch release fails: going back, uninstalling, trying again.

use std::time::Duration;

use pintle_api::{Gvk, Object, Timestamp, Verdict};
use pintle_chart::release::Record;
use pintle_plan::{
    CRDS, Memory, Plan, PoolInput, Pools, RenderFault, StateInput,
    remedy::{self, Course, Failure},
};

use crate::{
    context::{Context, Key},
    front::Front,
    record,
    render::Objects,
};

/// The objects of the revision that is being gone back to; nothing where none is.
pub(super) async fn back(ctx: &Context, key: &Key, front: &Front, memory: &Memory) -> Option<Objects> {
    let to = memory.remedy.as_ref()?.back_to()?;
    let objects = match record::read(ctx, key, front, to).await {
        Some(record) => objects_of(ctx, front, &record),
        None => {
            let message =
                format!("the record of revision {to} cannot be read; change the chart or the values");
            Err(RenderFault { reason: "RecordLost".to_owned(), message })
        }
    };
    Some(objects.unwrap_or_else(|fault| Objects {
        states: vec![state(pintle_plan::REST, Err(fault))],
        ..Objects::default()
    }))
}

fn objects_of(ctx: &Context, front: &Front, record: &Record) -> Result<Objects, RenderFault> {
    let is_namespaced = |object: &Object| {
        let gvk: Gvk = object.gvk();
        ctx.is_namespaced(&gvk).unwrap_or(true)
    };
    let dressed = record::rendered(record, front, &is_namespaced);
    let (rendered, hooks) = dressed.map_err(|err| RenderFault {
        reason: "RecordLost".to_owned(),
        message: format!("revision {}: {err}", record.version),
    })?;
    let mut states: Vec<StateInput> = Vec::new();
    for (name, one) in rendered.into_iter().filter(|(name, _)| name != CRDS) {
        match states.iter_mut().find(|state| state.name == name) {
            Some(known) => {
                let objects = known.pools.iter_mut().filter_map(|pool| pool.objects.as_mut().ok());
                objects.for_each(|objects| objects.push(one.clone()));
            }
            None => states.push(state(&name, Ok(vec![one]))),
        }
    }
    let chart = Some(record.chart.clone());
    Ok(Objects { states, hooks, notes: record.info.notes.clone(), chart })
}

fn state(name: &str, objects: Result<Vec<pintle_plan::Rendered>, RenderFault>) -> StateInput {
    let nodes = Pools::default().nodes();
    let pool = PoolInput { pool: String::new(), nodes, objects };
    StateInput { name: name.to_owned(), label: String::new(), pools: vec![pool] }
}

/// What follows from how the pass ended; a time when something is to be done then.
pub(super) fn conclude(
    ctx: &Context,
    front: &Front,
    memory: &mut Memory,
    plan: &Plan,
    is_whole: bool,
) -> Option<Duration> {
    let policy = front.release.policy.remediation.as_ref()?;
    let now = Timestamp::now();
    let has_changed = match &plan.verdict {
        // What cannot be rendered changed nothing: there is nothing to go back from.
        Verdict::Fatal(blockers) if is_whole && memory.deployed != memory.revision => {
            let why = blockers.first().map(|blocker| match &blocker.object {
                Some(object) => format!("{object}: {}", blocker.message),
                None => blocker.message.clone(),
            });
            let why = why.unwrap_or_default();
            let known = Some(memory.deployed).filter(|revision| *revision > 0);
            let deployed = known.or_else(|| record::deployed_before(ctx, front, memory.revision));
            let deployed = deployed.filter(|revision| *revision > memory.base);
            let mark = mark_of(memory);
            remedy::fail(memory, policy, Failure { mark: &mark, why: &why, deployed, now })
        }
        Verdict::Ready => remedy::succeed(memory, policy, now),
        _ => false,
    };
    if has_changed {
        tracing::info!(owner = %front.release.owner, remedy = ?memory.remedy, "remediation");
        let acts = memory.remedy.as_ref().is_some_and(|remedy| {
            matches!(&remedy.course, Course::Back { failed, again: None, .. } if failed.is_empty())
                || remedy.course == Course::Uninstall
        });
        if acts {
            return Some(Duration::ZERO);
        }
    }
    let due = memory.remedy.as_ref()?.due()?;
    Some(due.duration_since(now).try_into().unwrap_or_default())
}

/// Mark of what the owner asks for: chart and values, not what they rendered to. A template may show the number
/// of its revision, and a second try is no other wish.
fn mark_of(memory: &Memory) -> String {
    memory.seed_mark.clone()
}

/// Mark of a revision that goes back.
pub(super) fn back_mark(mark: &str, to: u32) -> String {
    format!("{mark} back to {to}")
}
