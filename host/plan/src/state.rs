//! What [`crate::decide`] looks at.

use std::{collections::BTreeMap, sync::Arc};

use pintle_api::{
    Facts, Object, ObjectRef, Timestamp,
    status::StateStatus,
    watch::{Adopt, DriftIgnore, Remediation},
};

use serde::{Deserialize, Serialize};

use crate::{AskKey, CallAnswer, CallKey, Flavor, Hook, Memory, Pools, Reference, Refusal, Told};

/// One chart, one set of values, one target namespace, one owner.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// Name of the release.
    pub name: String,
    /// Namespace of the release.
    pub namespace: String,
    /// The owner.
    pub owner: ObjectRef,
    /// Its uid.
    pub owner_uid: String,
    /// Digest of the chart.
    pub chart_digest: String,
    /// What made the release.
    pub flavor: Flavor,
    /// When objects that exist already are taken over.
    pub adopt: Adopt,
    /// True when every object whose kind has a builtin rule is gated.
    pub gates_all: bool,
    /// Differences from what was applied are left alone.
    pub leaves_drift: bool,
    /// What is done about differences and failures.
    pub policy: Policy,
    /// The owner asks to go without hooks.
    pub is_forced_out: bool,
    /// How long a state may take, in seconds; absent: without end.
    pub timeout: Option<i64>,
}

/// What is done about differences and failures, beyond the usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Differences that do not count.
    pub ignore: Vec<DriftIgnore>,
    /// Differences that are left alone are told.
    pub tells_drift: bool,
    /// What is done when a revision fails.
    pub remediation: Option<Remediation>,
    /// Operations whose hooks do not run.
    pub skips_hooks: SkipsHooks,
    /// Objects whose immutable fields changed are deleted and made anew.
    pub recreates: bool,
    /// Definitions under `crds/` are changed when the chart changes them.
    pub replaces_crds: bool,
    /// The release's namespace is made when it is missing.
    pub makes_namespace: bool,
}

/// Operations whose hooks do not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words say it")]
pub struct SkipsHooks {
    pub install: bool,
    pub upgrade: bool,
    pub rollback: bool,
    pub uninstall: bool,
}

/// An object as it shall be, and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rendered {
    /// The object, dressed.
    pub object: Object,
    /// `templates/1000-driver-container.yaml`.
    pub source: String,
}

/// Why a state could not be rendered. Nothing of the state is touched then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderFault {
    /// CamelCase word for machines.
    pub reason: String,
    /// The error with file, line, column, on one line.
    pub message: String,
}

/// One rendering of a state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolInput {
    /// Key of the pool; empty for all nodes.
    pub pool: String,
    /// Nodes this rendering is for, sorted.
    pub nodes: Vec<String>,
    /// Its objects in the order they are applied.
    pub objects: Result<Vec<Rendered>, RenderFault>,
}

/// One ordered state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateInput {
    /// `0000-buildconfig`, `rest` for what has no state.
    pub name: String,
    /// The four digits of SRO's node label; empty where there is none.
    pub label: String,
    /// One entry, or one for each pool.
    pub pools: Vec<PoolInput>,
}

/// How an object was right after it was applied. What a cache shows later may have been edited since, and would hide
/// the edit if it were taken for ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    pub(crate) rendered: String,
    pub(crate) fields: String,
}

/// What came of the steps of this pass.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// Writes the API server refused, by object.
    pub refusals: BTreeMap<ObjectRef, Refusal>,
    /// Answers of plugins.
    pub calls: BTreeMap<CallKey, CallAnswer>,
    /// Live objects as writes returned them, newer than any cache.
    pub written: BTreeMap<ObjectRef, Arc<Object>>,
    /// The objects outside of the inventory, and the parts, that were applied, by object and manager.
    pub applied: BTreeMap<(ObjectRef, String), Marks>,
    /// Answers of plugins that are called around states, or reconcile.
    pub told: BTreeMap<AskKey, Told>,
    /// What came of deeds, by plugin and key; nothing means done.
    pub acted: BTreeMap<(String, String), Option<Refusal>>,
}

/// Everything a decision is made from.
pub struct Input<'a> {
    /// The release.
    pub release: &'a Release,
    /// Its states in order.
    pub states: &'a [StateInput],
    /// Hooks of the chart, or of the revision that is to go.
    pub hooks: &'a [Hook],
    /// Plugins that are called around the whole release.
    pub around: &'a [Reference],
    /// Nodes it may use.
    pub pools: &'a Pools,
    /// What it remembers.
    pub memory: &'a Memory,
    /// What came of the steps of this pass.
    pub answers: &'a Answers,
    /// The world.
    pub facts: &'a dyn Facts,
    /// The states as they were last reported.
    pub before: &'a [StateStatus],
    /// The time of the decision.
    pub now: Timestamp,
}

/// Name of the state of the files under `crds/` of a chart: they come first and belong to nobody.
pub const CRDS: &str = "crds";
/// Name of the state of everything that has none.
pub const REST: &str = "rest";
