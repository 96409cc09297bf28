//! A call as a document: what the plugin was told and read, and what it answered. It holds all that is
//! needed to make the call again elsewhere and to get the same bytes, and no value of a Secret.

mod ask;
mod mask;
mod told;

use std::{sync::Arc, time::Duration};

use pintle_api::{Object, ObjectRef, Record, Timestamp, plugin::PluginSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Call, CallResult, Called, Operation, Plugin, Release, StepClock, input};
pub use ask::{Answered, Ask};
pub use told::told;

/// The format of a transcript, its field `transcript`.
pub const FORMAT: &str = "pintle.dev/transcript/v1";

/// One call of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Transcript {
    /// [`FORMAT`].
    pub transcript: String,
    /// Version of the host that made the call.
    pub host: String,
    /// When the call began.
    pub recorded_at: Timestamp,
    /// Which component was called, and what it was given for all calls.
    pub plugin: Recorded,
    /// What it was told.
    pub call: Told,
    /// What it was asked.
    pub ask: Ask,
    /// Every read with its answer.
    pub reads: Record,
    /// What became of the call, as [`told`] writes it.
    pub answer: Value,
    /// What it used.
    pub cost: Cost,
    /// Why it cannot be made again elsewhere, where it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_replayable: Option<String>,
}

/// The component of a transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// Name of the Plugin object.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// `sha256:…` of the manifest in the registry.
    pub digest: String,
    /// `sha256:…` of the component.
    pub component: String,
    /// Config, grants and limits.
    pub spec: PluginSpec,
}

/// What a call is told, whatever function it calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    operation: Operation,
    release: Release,
    state: String,
    pool: String,
    args: Map<String, Value>,
    owner: Arc<Object>,
    host_fields: Vec<String>,
    values: Value,
    saved: Option<Value>,
    own: Vec<ObjectRef>,
    now: Timestamp,
    elapsed_ms: u64,
    attempt: u32,
}

/// What a call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// Wall time of the call.
    pub microseconds: u64,
    /// High water of linear memory.
    pub memory_bytes: usize,
    /// Reads of objects, lists and logs.
    pub reads: u32,
}

/// What is kept of a call until somebody wants its transcript: it shares what the call shared, so that
/// keeping it costs little.
#[derive(Clone)]
pub struct Kept {
    plugin: Plugin,
    call: Call,
    ask: Ask,
    result: CallResult<Answered>,
    at: Timestamp,
}

/// Why a transcript cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    /// No JSON, or not of this shape.
    #[error("it is no transcript")]
    Shape(#[source] serde_json::Error),
    /// A later format, or none.
    #[error("its field \"transcript\" is {0:?}, this program reads \"{FORMAT}\"")]
    Format(String),
}

// === impl Transcript ===

impl Transcript {
    /// Reads the text of a transcript.
    ///
    /// # Errors
    /// When it is none, or of a later format.
    pub fn parse(text: &str) -> Result<Self, TranscriptError> {
        #[derive(Deserialize)]
        struct Head {
            transcript: String,
        }
        let head: Head = serde_json::from_str(text).map_err(TranscriptError::Shape)?;
        if head.transcript != FORMAT {
            return Err(TranscriptError::Format(crate::text::clean(&head.transcript, 64)));
        }
        serde_json::from_str(text).map_err(TranscriptError::Shape)
    }

    /// Makes the call again with the same inputs, and the recorded answers to reads. A read that was not
    /// recorded ends as [`crate::Outcome::NeedsFacts`].
    ///
    /// # Cancellation
    /// Dropping the future ends the call.
    pub async fn replay(&self, plugin: &Plugin) -> CallResult<Answered> {
        plugin.answer(&self.ask, self.call.call(self.reads.clone())).await
    }

    /// True when a call ended as the recorded one did, to the byte.
    #[must_use]
    pub fn is_reproduced_by(&self, result: &CallResult<Answered>) -> bool {
        input::canonical(&told(result)) == input::canonical(&self.answer)
    }
}

// === impl Kept ===

impl Kept {
    /// Keeps a call that was made.
    #[must_use]
    pub fn new<T: Clone + Into<Answered>>(
        plugin: &Plugin,
        call: &Call,
        ask: Ask,
        result: &CallResult<T>,
    ) -> Self {
        let at = call.clock.now;
        // Everything that was read is in the record; the caches must not live as long as this.
        let call = Call { facts: Arc::new(Record::default()), ..call.clone() };
        Self { plugin: plugin.clone(), call, ask, result: result.clone().map(Into::into), at }
    }

    /// What tells calls apart that ask the same again and again: function, release, state, pool, arguments
    /// and target.
    #[must_use]
    pub fn key(&self) -> String {
        let Call { release, state, pool, args, .. } = &self.call;
        let args = Value::Object(args.clone());
        let Release { name, namespace, .. } = release;
        let target = self.ask.target().map(|target| target.to_string()).unwrap_or_default();
        let parts = [self.ask.word(), namespace, name, state, pool, &target].map(Value::from);
        input::canonical(&Value::Array(parts.into_iter().chain([args]).collect()))
    }

    /// The plugin that was called.
    #[must_use]
    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    /// The whole call without values of Secrets.
    #[must_use]
    pub fn transcript(&self) -> Transcript {
        let Self { plugin, call, ask, result, at } = self;
        let spec = PluginSpec { pull_secrets: Vec::new(), ..plugin.spec().clone() };
        let Called { secret_values, .. } = result.called;
        // What a plugin kept, said or returned may repeat what it once saw.
        let not_replayable = (secret_values || !spec.grants.secret_values.is_empty())
            .then(|| "the plugin may see values of Secrets, which are not written to files".to_owned());
        let mut told_call = Told::of(call);
        let mut answer = told(result);
        if not_replayable.is_some() {
            told_call.saved = None;
            let verdict = answer.get("verdict").cloned().unwrap_or_default();
            answer = serde_json::json!({"verdict": verdict});
        }
        Transcript {
            transcript: FORMAT.to_owned(),
            host: env!("CARGO_PKG_VERSION").to_owned(),
            recorded_at: *at,
            plugin: Recorded {
                name: plugin.name().to_owned(),
                version: plugin.manifest().version.clone(),
                digest: plugin.digest().to_owned(),
                component: plugin.component_digest(),
                spec,
            },
            call: told_call,
            ask: mask::ask(ask),
            reads: mask::record(&result.record),
            answer,
            cost: Cost {
                microseconds: u64::try_from(result.stats.duration.as_micros()).unwrap_or(u64::MAX),
                memory_bytes: result.stats.memory,
                reads: result.stats.reads,
            },
            not_replayable,
        }
    }
}

// === impl Told ===

impl Told {
    fn of(call: &Call) -> Self {
        let Call {
            operation, release, state, pool, args, owner, host_fields, values, saved, own, clock, ..
        } = call.clone();
        let StepClock { now, elapsed, attempt } = clock;
        Self {
            operation,
            release,
            state,
            pool,
            args,
            owner: Arc::new(mask::object(&owner)),
            host_fields: host_fields.to_vec(),
            values: Value::clone(&values),
            saved: saved.map(|saved| Value::clone(&saved)),
            own: own.iter().cloned().collect(),
            now,
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            attempt,
        }
    }

    /// The release, as `namespace/name`.
    #[must_use]
    pub fn release_name(&self) -> String {
        format!("{}/{}", self.release.namespace, self.release.name)
    }

    /// Release and state, for people: `namespace/name state 1000`.
    #[must_use]
    pub fn place(&self) -> String {
        let Self { release, state, pool, .. } = self;
        let state = if state.is_empty() { String::new() } else { format!(" state {state}") };
        let pool = if pool.is_empty() { String::new() } else { format!(" pool {pool}") };
        format!("{}/{}{state}{pool}", release.namespace, release.name)
    }

    fn call(&self, facts: Record) -> Call {
        let Self { operation, release, state, pool, args, owner, host_fields, values, saved, own, .. } =
            self.clone();
        let (elapsed, attempt) = (Duration::from_millis(self.elapsed_ms), self.attempt);
        Call {
            facts: Arc::new(facts),
            operation,
            release,
            state,
            pool,
            args,
            owner,
            host_fields: host_fields.into(),
            values: Arc::new(values),
            saved: saved.map(Arc::new),
            own: Arc::new(own.into_iter().collect()),
            clock: StepClock { now: self.now, elapsed, attempt },
        }
    }
}
