//! What [`crate::decide`] concludes.

use std::{sync::Arc, time::Duration};

use pintle_api::{Blocker, Object, ObjectRef, Verdict, status::Phase};
use serde_json::{Map, Value};

use crate::{Act, Ask, Memory, Part, Tell, drift::Drift};

/// One thing to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Make the release's namespace.
    CreateNamespace(Object),
    /// Apply an object; applies of one plan may run at once unless `barrier` says otherwise.
    Apply(Apply),
    /// Set labels on an object that others own.
    Label {
        /// What gets the labels.
        target: ObjectRef,
        /// Keys with their values; without a value the label goes.
        labels: Vec<(String, Option<String>)>,
    },
    /// Take our finalizer of hooks off an object.
    Release(ObjectRef),
    /// Delete an object.
    Delete(Delete),
    /// Ask a plugin.
    Call(Call),
    /// Ask a plugin that is called around a state, or reconciles.
    Ask(Box<Ask>),
    /// Set fields of an object that others own, or give them up.
    Part(Part),
    /// Do what a plugin wants done once.
    Act(Act),
    /// Tell something as an event about the owner.
    Tell(Tell),
}

/// An object to apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Apply {
    /// The object as it shall be.
    pub object: Object,
    /// How.
    pub mode: ApplyMode,
    /// Name of its state.
    pub state: String,
    /// Key of its pool.
    pub pool: String,
    /// Objects of a lower rank are applied before.
    pub rank: u32,
    /// It belongs to the release: it is remembered, repaired, and goes with it. Objects of hooks do not.
    pub is_inventory: bool,
    /// The object as it was rendered, where fields that others may keep were left out of it.
    pub whole: Option<Object>,
    /// What somebody did to it since it was applied, where this puts that right.
    pub repairs: Option<String>,
}

/// How an object is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyMode {
    /// It is not there: without force, since somebody may be quicker.
    Create,
    /// It is ours: with force.
    Repair,
    /// It is there and becomes ours: fields of earlier owners are taken over.
    Adopt,
}

/// An object to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    /// What.
    pub target: ObjectRef,
    /// The very object, where it is known.
    pub uid: Option<String>,
    /// CamelCase word for events and logs: `Pruned`, `Removed`, `ImageBuilt`, `HookDone`.
    pub reason: &'static str,
}

/// A question to a plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Which.
    pub key: CallKey,
    /// The live object that carries the annotation.
    pub target: Arc<Object>,
    /// Seconds since the state was entered.
    pub elapsed_seconds: i64,
}

/// Names one question to a plugin.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey {
    /// Name of the Plugin.
    pub plugin: String,
    /// The object that carries the annotation.
    pub target: ObjectRef,
    /// Name of the state.
    pub state: String,
    /// Key of the pool.
    pub pool: String,
    /// Arguments of the annotation as JSON text.
    pub args: String,
}

/// What a plugin answered, or why it did not.
#[derive(Clone, Debug, PartialEq)]
pub struct CallAnswer {
    /// Its verdict; failures are verdicts too.
    pub verdict: Verdict,
    /// Ask again after this long at the latest; absent: on events alone.
    pub recheck: Option<Duration>,
}

/// How one rendering of a state stands.
#[derive(Clone, Debug, PartialEq)]
pub struct StateView {
    /// Name of the state.
    pub name: String,
    /// Phase over all its pools.
    pub phase: Phase,
    /// Objects whose verdict is ready.
    pub ready: u32,
    /// Objects, deferred ones not counted.
    pub objects: u32,
    /// Objects that wait for a demand.
    pub deferred: u32,
    /// What it waits for.
    pub blockers: Vec<Blocker>,
    /// Readiness by object, for metrics: kind, name before the suffix, namespace, ready.
    pub kinds: Vec<(ObjectRef, bool)>,
}

/// What to do next, and how things stand.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// To be done now, in this order where the rank of applies demands it. Empty: wait.
    pub steps: Vec<Step>,
    /// The memory after this decision; stored before the steps when it differs for good.
    pub memory: Memory,
    /// One entry per state.
    pub states: Vec<StateView>,
    /// Ready, or why not.
    pub verdict: Verdict,
    /// Ask again after this long at the latest; absent: on events alone.
    pub recheck: Option<Duration>,
    /// Objects that differ and are left as they are.
    pub drift: Vec<Drift>,
    /// Nothing is left of the release: finalizers may go.
    pub is_gone: bool,
}

// === impl Call ===

impl CallKey {
    /// Arguments as a JSON mapping.
    #[must_use]
    pub fn arguments(&self) -> Map<String, Value> {
        serde_json::from_str(&self.args).unwrap_or_default()
    }
}

// === impl StateView ===

impl StateView {
    /// A view of nothing yet.
    #[must_use]
    pub fn new(name: &str, phase: Phase) -> Self {
        Self {
            name: name.to_owned(),
            phase,
            ready: 0,
            objects: 0,
            deferred: 0,
            blockers: Vec::new(),
            kinds: Vec::new(),
        }
    }
}

// === impl Apply ===

impl Apply {
    /// The object as it was rendered.
    #[must_use]
    pub fn rendered(&self) -> &Object {
        self.whole.as_ref().unwrap_or(&self.object)
    }
}

// === impl Plan ===

impl Plan {
    /// Name of the first state that is not ready.
    #[must_use]
    pub fn current_state(&self) -> Option<&StateView> {
        self.states.iter().find(|state| state.phase != Phase::Ready)
    }
}
