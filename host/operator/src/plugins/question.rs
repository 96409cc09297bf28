//! Questions to plugins, and what is common to their answers.

use std::{future::Future, sync::Arc, time::Duration};

use pintle_api::{Object, Read, Record, Verdict};
use pintle_plan::CallKey;
use pintle_plugin::{
    Call, CallResult, Checked, Export, Mapped, Plugin, PostRendered, Rendered, Report,
    transcript::{self, Ask},
};

/// Names one question to a plugin.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Question {
    /// Which function is asked.
    pub(crate) function: Export,
    /// Which plugin, and about what.
    pub(crate) key: CallKey,
}

/// A function of plugins with its inputs of this call.
pub(crate) trait Function: Sync {
    /// Which.
    const EXPORT: Export;
    /// What it gives.
    type Answer: Answered + Into<transcript::Answered>;

    /// The question as a transcript has it; nothing where it is not kept.
    fn recorded(&self) -> Option<Ask> {
        None
    }

    /// Calls it once.
    fn call(&self, plugin: &Plugin, call: Call) -> impl Future<Output = CallResult<Self::Answer>> + Send;
}

/// What every answer has.
pub(crate) trait Answered: Clone + Send + Sync + 'static {
    /// What the plugin wants told and kept.
    fn report(&self) -> &Report;

    /// More to watch than what was read.
    fn watch(&self) -> &[Read] {
        &[]
    }

    /// Ask again after this long at the latest.
    fn recheck(&self) -> Option<Duration> {
        None
    }

    /// True when nobody waits any more: logs and registries need not be followed then.
    fn is_settled(&self) -> bool {
        false
    }
}

/// What came of a question.
pub(crate) struct Reply<T> {
    /// The answer, or why there is none.
    pub(crate) answer: Result<T, NoAnswer>,
    /// Everything that was read for it: a change of any of it wakes the release.
    pub(crate) reads: Record,
}

/// Why a plugin gave no answer.
#[derive(Clone, Debug)]
pub(crate) struct NoAnswer {
    /// Never ready, and never without a blocker.
    pub(crate) verdict: Verdict,
    /// Ask again after this long at the latest; absent: on events alone.
    pub(crate) recheck: Option<Duration>,
    /// What the plugin wants told nevertheless.
    pub(crate) report: Option<Box<Report>>,
}

/// Is the object ready?
pub(crate) struct Check(pub(crate) Arc<Object>);

/// Which values has the chart?
pub(crate) struct MapValues;

/// What becomes of what was rendered?
pub(crate) struct PostRender(pub(crate) Vec<Rendered>);

// === impl Question ===

impl Question {
    /// The text under which what the plugin keeps is found again: the same for the same plugin, function,
    /// state, pool and arguments.
    pub(crate) fn text(&self) -> String {
        let CallKey { plugin, state, pool, args, .. } = &self.key;
        format!("{plugin}|{}|{state}|{pool}|{args}", self.function.as_str())
    }
}

// === impl NoAnswer ===

impl NoAnswer {
    /// One that time or an event ends.
    pub(crate) fn of(verdict: Verdict) -> Self {
        Self { verdict, recheck: None, report: None }
    }
}

impl Function for Check {
    const EXPORT: Export = Export::Readiness;
    type Answer = Checked;

    fn recorded(&self) -> Option<Ask> {
        Some(Ask::Check { target: Arc::clone(&self.0) })
    }

    async fn call(&self, plugin: &Plugin, call: Call) -> CallResult<Checked> {
        plugin.check(call, Arc::clone(&self.0)).await
    }
}

impl Function for MapValues {
    const EXPORT: Export = Export::ValueMapper;
    type Answer = Mapped;

    fn recorded(&self) -> Option<Ask> {
        Some(Ask::MapValues)
    }

    async fn call(&self, plugin: &Plugin, call: Call) -> CallResult<Mapped> {
        plugin.map_values(call).await
    }
}

impl Function for PostRender {
    const EXPORT: Export = Export::PostRenderer;
    type Answer = PostRendered;

    fn recorded(&self) -> Option<Ask> {
        Some(Ask::PostRender { objects: self.0.clone() })
    }

    async fn call(&self, plugin: &Plugin, call: Call) -> CallResult<PostRendered> {
        plugin.post_render(call, self.0.clone()).await
    }
}

impl Answered for Checked {
    fn report(&self) -> &Report {
        &self.report
    }

    fn watch(&self) -> &[Read] {
        &self.watch
    }

    fn recheck(&self) -> Option<Duration> {
        self.recheck
    }

    fn is_settled(&self) -> bool {
        self.verdict.is_ready()
    }
}

impl Answered for Mapped {
    fn report(&self) -> &Report {
        &self.report
    }
}

impl Answered for PostRendered {
    fn report(&self) -> &Report {
        &self.report
    }
}
