//! What plugins make of the values, and of what was rendered, before anything is decided.

use std::{collections::BTreeSet, sync::Arc};

use pintle_api::{Blocker, Facts, Gvk, Timestamp, Verdict, names};
use pintle_plan::{CallKey, Pools, RenderFault};
use pintle_plugin::{Mapped, Operation, Release, SealedValues, merge_patch};
use serde_json::Value;

use super::settle::Settling;
use crate::{
    edits,
    map::{self, Mapping},
    plugins::{
        About, Caller, Named,
        question::{Function, MapValues, NoAnswer, PostRender, Question},
    },
    render::Raw,
};

impl Settling<'_> {
    /// Asks the mapper plugins in order; each finds the values as the former left them.
    ///
    /// # Errors
    /// When one of them gives no answer: nothing can be rendered then.
    pub(super) async fn map(&mut self, now: Timestamp) -> Result<Mapping, NoAnswer> {
        let mappers = self.front.value_mappers(&self.chart.chart);
        let mut mapping = Mapping::default();
        if mappers.is_empty() {
            return Ok(mapping);
        }
        let sealed = self.shown_values().await?;
        let (mut values, mut pools_of) = (sealed.values().clone(), None);
        for named in &mappers {
            let question = self.question::<MapValues>(named);
            let caller = self.early_caller(values.clone(), now);
            let reply = caller.ask(named, &question, About::default(), &MapValues).await;
            self.progress.hear(self.ctx, &question, &reply);
            let Mapped { values: patch, pools, .. } = reply.answer?;
            let patch = Value::Object(patch);
            merge_patch(&mut values, &patch);
            mapping.patches.push(opened(&sealed, patch, &question)?);
            if !pools.is_empty() {
                refuse_second(pools_of.replace(named.name.clone()), &question)?;
                let opened = pools.into_iter().map(|pool| {
                    let values = opened(&sealed, Value::Object(pool.values), &question)?;
                    Ok(pintle_plugin::Pool { values, ..pool })
                });
                mapping.pools = Some(opened.collect::<Result<_, NoAnswer>>()?);
            }
        }
        Ok(mapping)
    }

    /// Asks the post-renderers in order; each finds what the former left. Gives also a mark of what they
    /// changed.
    ///
    /// # Errors
    /// When one of them gives no answer, or one that cannot be done.
    pub(super) async fn post_render(
        &mut self,
        renderers: &[Named],
        mut raw: Raw,
        now: Timestamp,
    ) -> Result<(Raw, String), NoAnswer> {
        let mut marks = String::new();
        let values = self.shown_values().await?.values().clone();
        for named in renderers {
            let question = self.question::<PostRender>(named);
            let ctx = self.ctx;
            let is_namespaced = |gvk: &Gvk| ctx.is_namespaced(gvk);
            let shown = edits::shown(&raw, &self.front.release.namespace, &is_namespaced);
            let about = About { mark: edits::mark(&shown), ..About::default() };
            let caller = self.early_caller(values.clone(), now);
            let reply = caller.ask(named, &question, about, &PostRender(shown)).await;
            self.progress.hear(self.ctx, &question, &reply);
            let edits = reply.answer?.edits;
            marks.push_str(&format!("{:x}|", pintle_plan::fnv1a(format!("{edits:?}").as_bytes())));
            edits::apply(&mut raw, &named.name, edits)?;
        }
        Ok((raw, marks))
    }

    /// The values as plugins see them, those of Secrets sealed.
    ///
    /// # Errors
    /// When the values do not fit the chart.
    pub(super) async fn shown_values(&mut self) -> Result<SealedValues, NoAnswer> {
        let (front, chart) = (self.front, self.chart);
        let look = |facts: &dyn Facts| {
            let pools = Pools::observe(facts, &front.node_selector()).found().unwrap_or_default();
            map::shown(&map::Sources { front, chart, pools: &pools, facts })
        };
        let (shown, reads) = self.ctx.know(self.key, look).await;
        self.progress.reads.extend(reads);
        shown.map_err(|fault| no_answer_of(&fault))
    }

    fn question<F: Function>(&self, named: &Named) -> Question {
        let key = CallKey {
            plugin: named.name.clone(),
            target: self.front.release.owner.clone(),
            state: String::new(),
            pool: String::new(),
            args: "{}".to_owned(),
        };
        Question { function: F::EXPORT, key }
    }

    /// Who asks before it is known what the release consists of. Revision and operation are those that
    /// templates see: a fact of the cluster alone changes neither.
    fn early_caller(&self, values: Value, now: Timestamp) -> Caller<'_> {
        let memory = &self.progress.memory;
        let revision = memory.seed_revision.max(1);
        let own: BTreeSet<_> = memory.objects.values().map(|known| known.object.clone()).collect();
        Caller {
            ctx: self.ctx,
            key: self.key,
            owner: Arc::clone(&self.front.owner),
            release: self.release(revision),
            operation: if revision > 1 { Operation::Upgrade } else { Operation::Install },
            own: Arc::new(own),
            values: Arc::new(values),
            saved: Arc::new(memory.saved.clone()),
            now,
        }
    }

    /// The release as plugins know it.
    pub(super) fn release(&self, revision: u32) -> Release {
        Release {
            name: self.front.release.name.clone(),
            namespace: self.front.release.namespace.clone(),
            chart: self.chart.chart.name().to_owned(),
            chart_version: self.chart.chart.metadata.version.clone(),
            revision,
        }
    }

    /// Plugins that change what was rendered, in order.
    pub(super) fn post_renderers(&self) -> Vec<Named> {
        Named::of_chart(&self.chart.chart, names::POST_RENDERER)
    }
}

/// A fault of values or templates in the place of an answer.
pub(super) fn no_answer_of(fault: &RenderFault) -> NoAnswer {
    NoAnswer::of(Verdict::fatal(Blocker::new(&fault.reason, &fault.message)))
}

/// What a plugin made of sealed values, with what was sealed back in its place.
fn opened(
    sealed: &SealedValues,
    patch: Value,
    question: &Question,
) -> Result<pintle_chart::Values, NoAnswer> {
    match sealed.open(patch) {
        Ok(Value::Object(values)) => Ok(values),
        Ok(_) => Ok(pintle_chart::Values::new()),
        Err(misplaced) => Err(refused(question, &misplaced.to_string())),
    }
}

fn refuse_second(before: Option<String>, question: &Question) -> Result<(), NoAnswer> {
    let Some(first) = before else { return Ok(()) };
    Err(refused(question, &format!("it makes pools, and so did {first}; one mapper of a release may")))
}

fn refused(question: &Question, why: &str) -> NoAnswer {
    let message = format!("{}: {why}", question.key.plugin);
    let blocker = Blocker::new("PluginAnswerInvalid", message).on(question.key.target.clone());
    NoAnswer::of(Verdict::fatal(blocker))
}
