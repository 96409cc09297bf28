//! One look at the world: what the release shall be, and what it needs next.

use std::sync::Arc;

use pintle_api::{Facts, Gvk, Timestamp};
use pintle_plan::{
    Input, Memory, Plan, Pools, decide, fnv1a,
    remedy::{self, Remedy},
};

use super::remedy::back_mark;
use crate::{
    apply::Progress,
    charts::Loaded,
    context::{Context, Key},
    front::Front,
    render::{self, Objects},
    report,
};

/// What was concluded from one look at the world.
pub(super) struct Thought {
    pub(super) plan: Plan,
    pub(super) objects: Objects,
}

/// Who looks, and what is known so far.
pub(super) struct Look<'a> {
    pub(super) ctx: &'a Context,
    pub(super) key: &'a Key,
    pub(super) front: &'a Front,
    pub(super) chart: &'a Arc<Loaded>,
    pub(super) progress: &'a Progress,
    /// The objects of an earlier revision, while one is gone back to.
    pub(super) back: Option<&'a Objects>,
    pub(super) now: Timestamp,
}

// === impl Look ===

impl Look<'_> {
    /// Pools, rendering, decision. Reads nothing but through `facts`.
    pub(super) fn think(&self, facts: &dyn Facts) -> Thought {
        let front = self.front;
        let pools = Pools::observe(facts, &front.node_selector()).found().unwrap_or_default();
        let mut memory = self.progress.memory.clone();
        let (objects, mark) = self.wanted(&mut memory, &pools, facts);
        // What a Watch cannot render is no revision: nothing of it is applied.
        let is_one = objects.is_whole() || !front.is_watched();
        if memory.revision_mark != mark && is_one {
            memory.revision += 1;
            memory.revision_mark = mark;
        }
        let before = report::states_before(&front.owner);
        let plan = decide(&Input {
            release: &front.release,
            states: &objects.states,
            hooks: &objects.hooks,
            pools: &pools,
            memory: &memory,
            answers: &self.progress.answers,
            facts,
            before: &before,
            now: self.now,
        });
        Thought { plan, objects }
    }

    /// The objects that are to be in the cluster, and their mark: what the owner asks for, or an earlier
    /// revision while that failed.
    fn wanted(&self, memory: &mut Memory, pools: &Pools, facts: &dyn Facts) -> (Objects, String) {
        let asked = self.rendered(memory, pools, facts);
        let mark = revision_mark(self.front, &asked);
        remedy::resume(memory, &mark, self.now);
        let back_to = memory.remedy.as_ref().and_then(Remedy::back_to);
        match (self.back, back_to) {
            (Some(back), Some(to)) => (back.clone(), back_mark(&mark, to)),
            _ => (asked, mark),
        }
    }

    /// The objects of every state; rendered again only when something that goes into them differs.
    fn rendered(&self, memory: &Memory, pools: &Pools, facts: &dyn Facts) -> Objects {
        let (ctx, key) = (self.ctx, self.key);
        let mark = input_mark(self.front, memory, pools, ctx);
        if let Some((known, objects)) = ctx.ledger.with(key, |entry| entry.rendered.clone())
            && known == mark
        {
            return objects;
        }
        let with = render::Rendering {
            front: self.front,
            chart: self.chart,
            pools,
            memory,
            capabilities: &ctx.capabilities(),
            facts,
            is_namespaced: &|gvk: &Gvk| ctx.is_namespaced(gvk),
        };
        let objects = tokio::task::block_in_place(|| render::run(&with));
        ctx.ledger.with(key, |entry| entry.rendered = objects.is_whole().then(|| (mark, objects.clone())));
        objects
    }
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
        front.values_mark()
    );
    format!("{:x}", fnv1a(text.as_bytes()))
}

fn revision_mark(front: &Front, objects: &Objects) -> String {
    let text = format!("{}|{}|{}", front.release.chart_digest, front.values_mark(), objects.mark());
    format!("{:x}", fnv1a(text.as_bytes()))
}

/// A chart or values that changed get a new seed, a new time, and are rendered as the revision that
/// follows; facts of the cluster alone change none of these.
pub(super) fn prepare_seed(memory: &mut Memory, front: &Front) {
    let text = format!("{}|{}", front.release.chart_digest, front.values_mark());
    let mark = format!("{:x}", fnv1a(text.as_bytes()));
    if memory.seed_mark != mark || memory.seed.is_empty() {
        memory.seed = hex::encode(rand::random::<[u8; 32]>());
        memory.time = Some(Timestamp::now());
        memory.seed_mark = mark;
        memory.seed_revision = memory.revision + 1;
    }
}
