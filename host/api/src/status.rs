//! The part of status that every owner of a release has.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Blocker;

/// One condition, as every Kubernetes API writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// CamelCase name, unique in its list.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// CamelCase word for machines.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// When `status` last changed.
    #[schemars(with = "String")]
    pub last_transition_time: Timestamp,
    /// The generation of the object that this was concluded from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// How far a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// A state before it has not passed.
    Waiting,
    /// Its objects are being written.
    Applying,
    /// Its objects are written, its gate is not open.
    Pending,
    /// Its gate opened for this revision.
    Ready,
    /// Its gate opened for this revision, and something in it is no longer ready.
    Regressed,
    /// A retry may mend it.
    Retrying,
    /// A person must change something.
    Failed,
}

/// One ordered state of a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateStatus {
    /// `0000-buildconfig`: the file without its ending, or the name of the group; `rest` for what
    /// has no state.
    pub name: String,
    /// How far it is.
    pub phase: Phase,
    /// Objects whose verdict is ready.
    pub ready: u32,
    /// Objects of the state, deferred ones not counted.
    pub objects: u32,
    /// Objects that wait for a demand, such as a BuildConfig until its image cannot be pulled.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deferred: u32,
    /// Since when it is in this phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// The first ten things it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<Blocker>,
    /// How many things it waits for in all, where that is more than ten.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_blockers: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}
