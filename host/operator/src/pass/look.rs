//! One look at the world: what the release shall be, and what it needs next.

use std::{collections::BTreeSet, sync::Arc};

use pintle_api::{Facts, Gvk, Record, Timestamp, names};
use pintle_plan::{
    Input, Memory, Operation, Plan, Pool, Pools, Reference, RenderFault, Term, decide, fnv1a, hold,
    parse_gate, parse_plugins,
    remedy::{self, Remedy},
};

use super::{remedy::back_mark, settle::Settling};
use crate::{
    context::Context,
    front::{Front, FrontKind},
    map::Mapping,
    plugins::{Named, question::NoAnswer},
    render::{self, Objects, Raw, Rendering, kept::Rendition, patience},
    report,
};

/// What was concluded from one look at the world.
pub(super) struct Thought {
    pub(super) plan: Plan,
    /// What the release shall be; absent when a plugin that takes part in that gave no answer.
    pub(super) objects: Option<Arc<Objects>>,
}

/// What goes into a rendering besides what is known from the start.
struct Ground {
    mapping: Mapping,
    pools: Pools,
    /// The pools that states fan out over.
    fan: Result<Vec<Pool>, RenderFault>,
}

impl Settling<'_> {
    /// Values, rendering, decision. What was read wakes the release from now on.
    pub(super) async fn think(&mut self, now: Timestamp) -> Thought {
        let mut reads = Record::default();
        let thought = match self.objects(now, &mut reads).await {
            Ok(asked) => {
                let (objects, mark) = self.wanted(asked, now);
                let plan = self.decide(&objects, mark, now, &mut reads).await;
                Thought { plan, objects: Some(objects) }
            }
            Err(no_answer) => Thought { plan: self.hold(no_answer), objects: None },
        };
        reads.extend(self.watched.clone());
        reads.extend(self.progress.reads.clone());
        self.ctx.watches.register(&self.key.holder(), &reads);
        thought
    }

    /// What the owner asks for, or an earlier revision while that failed; and its mark.
    fn wanted(&mut self, asked: Arc<Objects>, now: Timestamp) -> (Arc<Objects>, String) {
        let mark = revision_mark(self.front, &asked);
        let memory = &mut self.progress.memory;
        let wish = memory.seed_mark.clone();
        remedy::resume(memory, &wish, now);
        let back_to = memory.remedy.as_ref().and_then(Remedy::back_to);
        match (&self.back, back_to) {
            (Some(back), Some(to)) => (Arc::clone(back), back_mark(&mark, to)),
            _ => (asked, mark),
        }
    }

    /// What the release shall be. Nothing is rendered again while nothing that goes into it differs.
    async fn objects(&mut self, now: Timestamp, reads: &mut Record) -> Result<Arc<Objects>, NoAnswer> {
        if !self.waits.is_ready() {
            return Err(NoAnswer::of(self.waits.clone()));
        }
        let mapping = self.map(now).await?;
        let ground = self.ground(mapping, reads).await;
        let mark = self.input_mark(&ground);
        let renderers = self.post_renderers();
        if renderers.is_empty() {
            return Ok(self.rendered(&ground, mark, reads).await);
        }
        let raw = self.raw(&ground, &mark, reads).await;
        self.post_rendered(&ground, (raw, mark), &renderers, now).await
    }

    async fn ground(&self, mapping: Mapping, reads: &mut Record) -> Ground {
        let selector = self.front.node_selector();
        let look = |facts: &dyn Facts| {
            let pools = Pools::observe(facts, &selector).found().unwrap_or_default();
            let fan = mapping.fan(facts, &selector, &pools);
            (pools, fan)
        };
        let ((pools, fan), seen) = self.ctx.know(self.key, look).await;
        reads.extend(seen);
        Ground { mapping, pools, fan }
    }

    async fn rendered(&self, ground: &Ground, mark: String, reads: &mut Record) -> Arc<Objects> {
        if let Some(objects) = self.kept(&mark) {
            return objects;
        }
        let render = |facts: &dyn Facts| {
            self.with_rendering(ground, facts, |with| render::finish(with, render::run(with)))
        };
        let (objects, seen) = self.ctx.know(self.key, render).await;
        reads.extend(seen);
        self.keep(mark, objects)
    }

    /// What the chart says, for post-renderers to change.
    async fn raw(&self, ground: &Ground, mark: &str, reads: &mut Record) -> Raw {
        if let Some((known, raw)) = self.ctx.ledger.with(self.key, |entry| entry.raw.clone())
            && known == mark
        {
            return raw;
        }
        let render = |facts: &dyn Facts| self.with_rendering(ground, facts, render::run);
        let (raw, seen) = self.ctx.know(self.key, render).await;
        reads.extend(seen);
        let kept = raw.is_whole().then(|| (mark.to_owned(), raw.clone()));
        self.ctx.ledger.with(self.key, |entry| entry.raw = kept);
        raw
    }

    async fn post_rendered(
        &mut self,
        ground: &Ground,
        (raw, mark): (Raw, String),
        renderers: &[Named],
        now: Timestamp,
    ) -> Result<Arc<Objects>, NoAnswer> {
        let (raw, changes) = self.post_render(renderers, raw, now).await?;
        let mark = format!("{mark}|{changes}");
        if let Some(objects) = self.kept(&mark) {
            return Ok(objects);
        }
        let objects =
            self.with_rendering(ground, &*self.ctx.caches, |with| render::finish(with, raw.clone()));
        Ok(self.keep(mark, objects))
    }

    fn keep(&self, mark: String, objects: Objects) -> Arc<Objects> {
        let objects = Arc::new(objects);
        let kept = objects.is_whole().then(|| Rendition::new(mark, &objects));
        self.ctx.ledger.with(self.key, |entry| entry.rendered = kept);
        objects
    }

    fn kept(&self, mark: &str) -> Option<Arc<Objects>> {
        self.ctx.ledger.with(self.key, |entry| entry.rendered.as_ref()?.of(mark))
    }

    fn with_rendering<T>(
        &self,
        ground: &Ground,
        facts: &dyn Facts,
        work: impl FnOnce(&Rendering<'_>) -> T,
    ) -> T {
        let ctx = self.ctx;
        patience::run(patience::PATIENCE, nobody_waits(ctx), |cancel| {
            work(&Rendering {
                front: self.front,
                chart: self.chart,
                pools: &ground.pools,
                fan: &ground.fan,
                mapping: &ground.mapping,
                memory: &self.progress.memory,
                capabilities: &ctx.capabilities(),
                facts,
                cancel,
                is_namespaced: &|gvk: &Gvk| ctx.is_namespaced(gvk),
            })
        })
    }

    /// The next steps. Reads nothing but through facts.
    async fn decide(&self, objects: &Objects, mark: String, now: Timestamp, reads: &mut Record) -> Plan {
        let front = self.front;
        let mut memory = self.progress.memory.clone();
        // What a Watch cannot render is no revision: nothing of it is applied.
        let is_one = objects.is_whole() || !front.is_watched();
        if memory.revision_mark != mark && is_one {
            memory.revision += 1;
            memory.revision_mark = mark;
        }
        let before = report::states_before(&front.owner);
        let around = self.around();
        let look = |facts: &dyn Facts| {
            let pools = Pools::observe(facts, &front.node_selector()).found().unwrap_or_default();
            decide(&Input {
                release: &front.release,
                states: &objects.states,
                hooks: &objects.hooks,
                around: &around,
                pools: &pools,
                memory: &memory,
                answers: &self.progress.answers,
                facts,
                before: &before,
                now,
            })
        };
        let (plan, seen) = self.ctx.know(self.key, look).await;
        reads.extend(seen);
        plan
    }

    /// Plugins around the release, as the chart names them that its objects are of. Where their names cannot be
    /// read nothing of the chart is rendered, and so nothing goes on without them.
    fn around(&self) -> Vec<Reference> {
        let is_back = self.progress.memory.operation() == Operation::Rollback;
        let recorded = self.back.as_ref().filter(|_| is_back).and_then(|back| back.chart.as_ref());
        let chart = recorded.map_or(&*self.chart.chart.metadata, |chart| &chart.metadata);
        self.front.around(chart).unwrap_or_default()
    }

    /// Everything stays as it is while it is not known what it shall be.
    fn hold(&self, no_answer: NoAnswer) -> Plan {
        let before = report::states_before(&self.front.owner);
        let names: Vec<&str> = self.chart.states.iter().map(|state| state.name.as_str()).collect();
        let NoAnswer { verdict, recheck, .. } = no_answer;
        hold(&names, &before, &self.progress.memory, verdict, recheck)
    }

    /// Mark of what goes into a rendering. Status and version of the owner do not: writing a status must
    /// not render again.
    fn input_mark(&self, ground: &Ground) -> String {
        let (front, ctx) = (self.front, self.ctx);
        let mut owner = (*front.owner).clone();
        owner.remove("status");
        for field in ["managedFields", "resourceVersion", "finalizers"] {
            owner.map_mut(&["metadata"]).remove(field);
        }
        let crds = match &front.kind {
            FrontKind::Watch(watch) => watch.crds,
            FrontKind::SpecialResource(_) => None,
        };
        let text = format!(
            "{}|{crds:?}|{}|{}|{:?}|{:?}|{}|{}|{}",
            front.release.chart_digest,
            self.progress.memory.seed,
            pintle_plan::rendered_mark(&owner),
            ground.pools.pools,
            ground.fan,
            ctx.generation(),
            front.values_mark(),
            ground.mapping.mark()
        );
        format!("{:x}", fnv1a(text.as_bytes()))
    }

    /// Every plugin that the release names, wherever.
    pub(super) fn named_plugins(&self, objects: &Objects) -> BTreeSet<String> {
        let mappers = self.front.value_mappers(&self.chart.chart).into_iter().chain(self.post_renderers());
        let gates = objects.all().filter_map(|rendered| parse_gate(&rendered.object, false).ok());
        let waited = gates.flat_map(|gate| gate.terms).filter_map(|term| match term {
            Term::Plugin { name, .. } => Some(name),
            Term::Builtin { .. } | Term::Logs { .. } => None,
        });
        let around = self.around().into_iter().map(|reference| reference.named.plugin);
        mappers.map(|named| named.name).chain(waited).chain(around).chain(around_states(objects)).collect()
    }
}

/// Plugins that objects name as hooks of their states.
fn around_states(objects: &Objects) -> impl Iterator<Item = String> {
    let named = objects.all().flat_map(|rendered| {
        [names::PRE, names::POST].map(|annotation| {
            let text = rendered.object.annotation(annotation)?;
            parse_plugins(annotation, text).ok()
        })
    });
    named.flatten().flatten().map(|named| named.plugin)
}

/// Done when this process no longer leads, or ends.
fn nobody_waits(ctx: &Context) -> impl Future<Output = ()> + Send + use<> {
    let (leadership, queue) = (ctx.leadership.clone(), Arc::clone(&ctx.queue));
    async move {
        tokio::select! {
            () = leadership.ended() => {}
            () = queue.closed() => {}
        }
    }
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
