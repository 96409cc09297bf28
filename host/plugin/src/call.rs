//! One call of a plugin: what goes in, what comes out.

pub(crate) mod answer;
pub(crate) mod args;
pub(crate) mod failure;
pub(crate) mod hooks;
pub(crate) mod post_renderer;
pub(crate) mod readiness;
pub(crate) mod reconciler;
pub(crate) mod run;
pub(crate) mod saved;
pub(crate) mod value_mapper;

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use pintle_api::{
    Blocker, Facts, Object, ObjectRef, Read, Record, Timestamp, Verdict,
    plugin::{ActionVerb, Identity},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use failure::CallFailure;

/// Everything a call is told, whatever function it calls. Cheap to clone.
#[derive(Clone)]
pub struct Call {
    /// Where reads are answered from.
    pub facts: Arc<dyn Facts>,
    /// What the release is doing.
    pub operation: Operation,
    /// The release the call is for.
    pub release: Release,
    /// Number of the state, `0000`; empty for the whole release.
    pub state: String,
    /// Key of the node pool; empty for all.
    pub pool: String,
    /// Arguments in the annotation that names the plugin.
    pub args: Map<String, Value>,
    /// The custom resource, as it is in the cluster.
    pub owner: Arc<Object>,
    /// Dotted paths of the owner that the host writes itself, such as `status.state`: the plugin
    /// does not see them, so that our own writes never change an input.
    pub host_fields: Arc<[String]>,
    /// Chart values after defaults and earlier mappings.
    pub values: Arc<Value>,
    /// What the plugin asked to be kept.
    pub saved: Option<Arc<Value>>,
    /// Objects of the release: readable without a grant, Secrets excepted.
    pub own: Arc<BTreeSet<ObjectRef>>,
    /// Time and attempts.
    pub clock: StepClock,
}

/// What a release is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    /// Its first revision is on its way.
    Install,
    /// A later revision is on its way.
    Upgrade,
    /// An earlier revision is on its way.
    Rollback,
    /// Nothing new was asked.
    Steady,
    /// It is being removed.
    Delete,
}

/// The release a call is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Release {
    /// Its name.
    pub name: String,
    /// Its namespace: `$release` in grants.
    pub namespace: String,
    /// Name of the chart.
    pub chart: String,
    /// Version of the chart.
    pub chart_version: String,
    /// Its revision, from 1.
    pub revision: u32,
}

/// Time and attempts, constant during a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepClock {
    /// Now.
    pub now: Timestamp,
    /// Since the state was entered.
    pub elapsed: Duration,
    /// From 1.
    pub attempt: u32,
}

/// How a call ended, and what it read and used.
#[derive(Clone, Debug)]
pub struct CallResult<T> {
    /// How it ended.
    pub outcome: Outcome<T>,
    /// Every read with its answer, before masking, misses included: the watch set of the call. It
    /// may hold Secrets where a grant lets the plugin see their keys.
    pub record: Record,
    /// What of the changing world it asked for.
    pub called: Called,
    /// What it used.
    pub stats: Stats,
    /// Log lines over the budget.
    pub log_lines_dropped: u32,
    /// Fingerprint of all that went into the answer and is not the plugin's own doing: without the time
    /// and what it kept. See [`crate::Churn`].
    pub inputs: [u8; 32],
    /// True when an earlier answer was given again, since all that it was made from is the same.
    pub reused: bool,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<T> {
    /// With an answer that was checked.
    Answered(T),
    /// Nobody had looked up these reads: fetch them and call again. The guest was told that they
    /// are unavailable and went on, so that one round finds as many as can be found.
    NeedsFacts(Vec<Read>),
    /// Without an answer.
    Failed(CallFailure),
}

/// What a call asked for that may differ the next time with no object changed. An answer of a call
/// that asked for none of these holds until something in its record changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Called {
    /// Time or attempts, or a clock of WASI.
    pub clock: bool,
    /// Logs of pods.
    pub logs: bool,
    /// Images in registries.
    pub images: bool,
    /// A read was answered with `unavailable`.
    pub unavailable: bool,
    /// It saw values of Secrets in clear text: what it was given must not be written to a file.
    pub secret_values: bool,
}

/// What a call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Wall time from instantiation to the checked answer.
    pub duration: Duration,
    /// Wall time before that, waiting for a slot.
    pub queued: Duration,
    /// High water of linear memory, in bytes.
    pub memory: usize,
    /// Reads of objects, lists and logs.
    pub reads: u32,
    /// Bytes handed to the plugin by reads.
    pub read_bytes: usize,
}

/// The answer of a readiness check.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Ready or pending; a plugin that failed is [`Outcome::Failed`].
    pub verdict: Verdict,
    /// More to watch than what was read; all of it granted.
    pub watch: Vec<Read>,
    /// Call again after this time at the latest; none means on events alone.
    pub recheck: Option<Duration>,
    /// 0 to 100.
    pub progress: Option<u8>,
    /// What the plugin wants told and kept.
    pub report: Report,
}

/// What is waited for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hold {
    /// What is waited for; never empty in an answer.
    pub blockers: Vec<Blocker>,
    /// More to watch than what was read; all of it granted.
    pub watch: Vec<Read>,
    /// Call again after this time at the latest; none means on events alone.
    pub recheck: Option<Duration>,
    /// 0 to 100.
    pub progress: Option<u8>,
}

/// An object that belongs to a plugin: returned by it, and given to it again as it is in the cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Keyed {
    /// Stays the same over calls.
    pub key: String,
    /// Whether all of the object is the plugin's.
    pub ownership: Ownership,
    /// The object.
    pub object: Arc<Object>,
    /// Whose rights it is applied with.
    pub identity: Identity,
}

/// How much of an object belongs to a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ownership {
    /// All of it: it is made, repaired and pruned.
    Whole,
    /// The fields it sets, of an object that exists: giving them up never deletes it.
    Part,
}

/// What a plugin wants done once.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// It is done at most once for this key and the release.
    pub key: String,
    /// What is done.
    pub verb: ActionVerb,
    /// To which object.
    pub target: ObjectRef,
    /// How.
    pub arguments: Map<String, Value>,
    /// Whose rights it is done with.
    pub identity: Identity,
}

/// What a plugin wants told and kept, checked and cleaned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Conditions, their names under `<plugin>/`.
    pub conditions: Vec<PluginCondition>,
    /// Events about the owner or objects of the release.
    pub events: Vec<Event>,
    /// What is to be done once; all of it granted.
    pub actions: Vec<Action>,
    /// Merge patch (RFC 7396) over the status that belongs to the plugin.
    pub status: Option<Map<String, Value>>,
    /// What shall be kept for the next call.
    pub save: Save,
}

/// What becomes of what a plugin keeps.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Save {
    /// It stays as it is.
    #[default]
    Keep,
    /// It is forgotten.
    Clear,
    /// It is replaced.
    Set(Value),
}

/// A condition of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginCondition {
    /// `<plugin>/<name>`.
    pub kind: String,
    /// Met, unmet, or unknown.
    pub status: Option<bool>,
    /// CamelCase word.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

/// An event of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// True for a warning.
    pub is_warning: bool,
    /// CamelCase word.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// An object of the release; none for the owner.
    pub regarding: Option<ObjectRef>,
}

// === impl Call ===

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, release, state, pool, args, .. } = self;
        f.debug_struct("Call")
            .field("operation", operation)
            .field("release", release)
            .field("state", state)
            .field("pool", pool)
            .field("args", args)
            .finish_non_exhaustive()
    }
}

// === impl CallResult ===

impl<T> CallResult<T> {
    /// The same result with its answer made into another.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> CallResult<U> {
        let Self { outcome, record, called, stats, log_lines_dropped, inputs, reused } = self;
        let outcome = match outcome {
            Outcome::Answered(answer) => Outcome::Answered(make(answer)),
            Outcome::NeedsFacts(reads) => Outcome::NeedsFacts(reads),
            Outcome::Failed(failure) => Outcome::Failed(failure),
        };
        CallResult { outcome, record, called, stats, log_lines_dropped, inputs, reused }
    }
}

// === impl Called ===

impl Called {
    /// True when the answer holds until something that was read changes.
    #[must_use]
    pub fn is_pure(self) -> bool {
        let Self { clock, logs, images, unavailable, secret_values: _ } = self;
        !(clock || logs || images || unavailable)
    }
}
