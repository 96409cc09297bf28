//! What a release must still know after a restart: kept in one Secret of ours.

use std::collections::{BTreeMap, BTreeSet};

use pintle_api::{ObjectRef, Timestamp};
use pintle_chart::manifest::HookEvent;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Step, around::Around, drift::Contest, hook::HookRun, remedy::Remedy};

/// Format of the stored text; one version back is readable.
pub const SCHEMA: u32 = 1;

/// The memory of one release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// Format of this text.
    #[serde(default)]
    pub schema: u32,
    /// Seed of the revision, hexadecimal; random functions of templates draw from it.
    #[serde(default)]
    pub seed: String,
    /// Time of the revision; `now` in templates.
    #[serde(default)]
    pub time: Option<Timestamp>,
    /// Number of the Helm revision; 0 before the first.
    #[serde(default)]
    pub revision: u32,
    /// Mark of chart, user values and manifest of that revision.
    #[serde(default)]
    pub revision_mark: String,
    /// Mark of chart and user values: the seed is new when it changes.
    #[serde(default)]
    pub seed_mark: String,
    /// Revision that seed and time are of: what templates see as `.Release.Revision`.
    #[serde(default)]
    pub seed_revision: u32,
    /// Gates that opened.
    #[serde(default)]
    pub passes: Vec<Pass>,
    /// Builds that an image which cannot be pulled asked for.
    #[serde(default)]
    pub demands: Vec<Demand>,
    /// Applied objects, by the text of their reference.
    #[serde(default)]
    pub objects: BTreeMap<String, Known>,
    /// Pools whose last node left, by key, and when that was seen.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_pools: BTreeMap<String, Timestamp>,
    /// Runs of hooks, of the revision in use and of those that left something behind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookRun>,
    /// What plugins that are called around states have begun, own and keep.
    #[serde(default, skip_serializing_if = "Around::is_empty")]
    pub around: Around,
    /// The resourceVersion it was read at or written with: what is stored next must follow it. Absent while
    /// nothing is stored.
    #[serde(skip)]
    pub version: Option<String>,
    /// What plugins asked to be kept, by the text of the question they were asked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub saved: BTreeMap<String, Saved>,
    /// Mark of the events that came with the last answer to a question: they are told once.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub told: BTreeMap<String, String>,
    /// Plugins that have conditions or a status of their own in the owner's status.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub spoke: BTreeSet<String>,
    /// When each state of the revision in use began, where it must be done in time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub begun: BTreeMap<String, Begun>,
    /// Objects that others change, by the text of their reference.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub contests: BTreeMap<String, Contest>,
    /// Marks of the definitions under `crds/` that were written, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub crds: BTreeMap<String, String>,
    /// What is done about a revision that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    /// The revision after which the release was uninstalled; 0: never. The next one installs it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub base: u32,
    /// The last revision that was ready; 0: none was.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deployed: u32,
    /// Mark of the owner's dependencies once all of them were ready: they are waited for once.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dependencies: String,
    /// Value of `pintle.dev/reconcile-at` that was served last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub asked_at: String,
}

/// When a state began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// For which revision.
    pub revision: u32,
    /// When.
    pub at: Timestamp,
}

/// What a revision does to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words say it")]
pub enum Operation {
    Install,
    Upgrade,
    Rollback,
}

/// What a plugin asked to be kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// Version of the plugin that asked.
    #[serde(default)]
    pub version: String,
    /// What it shall be given with its next call.
    pub value: Value,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A gate that opened, once and for this revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    /// Revision it opened for.
    pub revision: u32,
    /// Name of the state.
    pub state: String,
    /// Key of the pool; empty for all nodes.
    #[serde(default)]
    pub pool: String,
    /// When.
    pub at: Timestamp,
}

/// A build that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Demand {
    /// Vendor that pairs workload and build.
    pub vendor: String,
    /// Key of the pool; empty for all nodes.
    #[serde(default)]
    pub pool: String,
    /// Chart it was asked for.
    pub chart: String,
    /// When.
    pub since: Timestamp,
}

/// An applied object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Its reference.
    pub object: ObjectRef,
    /// Name of its state.
    pub state: String,
    /// Key of its pool; empty for all nodes.
    #[serde(default)]
    pub pool: String,
    /// Mark of the object as it was rendered.
    pub rendered: String,
    /// Mark of the fields the server holds for us.
    pub fields: String,
}

// === impl Known ===

impl Known {
    /// An object of a state for all nodes, of which nobody knows how it was applied.
    #[must_use]
    pub fn unmarked(object: ObjectRef, state: String) -> Self {
        Self { object, state, pool: String::new(), rendered: String::new(), fields: String::new() }
    }
}

// === impl Memory ===

impl Memory {
    /// True when the gate of a state opened for the revision in use.
    #[must_use]
    pub fn has_passed(&self, state: &str, pool: &str) -> bool {
        self.passes
            .iter()
            .any(|pass| pass.revision == self.revision && pass.state == state && pass.pool == pool)
    }

    /// Records that a gate opened; passes of older revisions of that state go.
    pub fn pass(&mut self, state: &str, pool: &str, at: Timestamp) {
        self.passes.retain(|pass| pass.state != state || pass.pool != pool);
        let (state, pool) = (state.to_owned(), pool.to_owned());
        self.passes.push(Pass { revision: self.revision, state, pool, at });
    }

    /// The demand for a vendor's build in a pool of this chart.
    #[must_use]
    pub fn demand(&self, vendor: &str, pool: &str, chart: &str) -> Option<&Demand> {
        let fits = |demand: &&Demand| demand.vendor == vendor && demand.pool == pool && demand.chart == chart;
        self.demands.iter().find(fits)
    }

    /// Records what was applied.
    pub fn know(&mut self, known: Known) {
        self.objects.insert(key_of(&known.object), known);
    }

    /// The memory with the objects that are about to be applied, of which nothing is known yet: who finds it after a
    /// crash knows where to look for them.
    #[must_use]
    pub fn ahead_of(&self, steps: &[Step]) -> Self {
        let mut ahead = self.clone();
        for step in steps {
            if let Step::Apply(apply) = step
                && apply.is_inventory
                && self.known(&apply.object.reference()).is_none()
            {
                let (state, pool) = (apply.state.clone(), apply.pool.clone());
                ahead.know(Known { pool, ..Known::unmarked(apply.object.reference(), state) });
            }
        }
        ahead
    }

    /// What is known of an applied object.
    #[must_use]
    pub fn known(&self, object: &ObjectRef) -> Option<&Known> {
        self.objects.get(&key_of(object))
    }

    /// A repair that was refused changed nothing that anybody could change back.
    pub fn uncount_repair(&mut self, object: &ObjectRef) {
        if let Some(contest) = self.contests.get_mut(&key_of(object)) {
            contest.repairs = contest.repairs.saturating_sub(1);
        }
        self.contests.retain(|_, contest| contest.repairs > 0);
    }

    /// Forgets an object that is gone.
    pub fn forget(&mut self, object: &ObjectRef) {
        self.objects.remove(&key_of(object));
    }

    /// The revision that was asked for: facts of the cluster alone make none, so that what is done once for a
    /// revision is not done again for them. A rollback is one of its own, named by the revision that failed.
    #[must_use]
    pub fn asked(&self) -> u32 {
        let rollback = self.remedy.as_ref().filter(|remedy| remedy.back_to().is_some());
        rollback.map_or(self.seed_revision, |remedy| remedy.revision.saturating_add(1))
    }

    /// What the revision in use does.
    #[must_use]
    pub fn operation(&self) -> Operation {
        if self.remedy.as_ref().is_some_and(|remedy| remedy.back_to().is_some()) {
            Operation::Rollback
        } else if self.revision > self.base.saturating_add(1) {
            Operation::Upgrade
        } else {
            Operation::Install
        }
    }

    /// When a state of the revision in use began: now, when nobody knows better.
    pub fn begin(&mut self, state: &str, now: Timestamp) -> Timestamp {
        let revision = self.revision;
        self.begun.retain(|_, begun| begun.revision == revision);
        self.begun.entry(state.to_owned()).or_insert(Begun { revision, at: now }).at
    }

    /// The run of a hook for the revision in use.
    #[must_use]
    pub fn hook(&self, event: HookEvent, object: &ObjectRef) -> Option<&HookRun> {
        self.hooks
            .iter()
            .find(|run| run.revision == self.revision && run.event == event && run.object == *object)
    }

    /// Records that a hook begins.
    pub fn note_hook(&mut self, run: HookRun) {
        self.hooks.retain(|old| old.object != run.object || old.event != run.event);
        self.hooks.push(run);
    }

    /// The run of a hook for the revision in use.
    pub(crate) fn hook_mut(&mut self, event: HookEvent, object: &ObjectRef) -> Option<&mut HookRun> {
        let revision = self.revision;
        let mut runs = self.hooks.iter_mut();
        runs.find(|run| run.revision == revision && run.event == event && run.object == *object)
    }

    /// True when what must survive a crash differs. Marks of objects need not: they are found again at the
    /// price of a request.
    #[must_use]
    pub fn differs_for_good(&self, other: &Self) -> bool {
        let lasting = |memory: &Self| {
            let keys: Vec<_> = memory.left_pools.keys().cloned().collect();
            (
                (memory.seed.clone(), memory.time, memory.revision, memory.revision_mark.clone()),
                (memory.passes.clone(), memory.demands.clone(), memory.hooks.clone(), keys),
                (memory.begun.clone(), memory.remedy.clone(), memory.base, memory.deployed),
                (memory.around.clone(), memory.saved.clone()),
            )
        };
        lasting(self) != lasting(other)
    }

    /// True when nothing but marks of objects differs.
    #[must_use]
    pub fn differs_in_marks_alone(&self, other: &Self) -> bool {
        let unmarked = |memory: &Self| {
            let mut memory = memory.clone();
            for known in memory.objects.values_mut() {
                known.rendered.clear();
                known.fields.clear();
            }
            memory
        };
        self != other && unmarked(self) == unmarked(other)
    }
}

/// Text under which an object is kept.
pub(crate) fn key_of(object: &ObjectRef) -> String {
    let namespace = object.namespace.as_deref().unwrap_or_default();
    format!("{}/{}/{namespace}/{}", object.gvk().group, object.kind, object.name)
}

#[cfg(test)]
mod tests {
    use pintle_api::Object;

    use super::*;
    use crate::{Apply, ApplyMode};

    fn apply(name: &str, is_inventory: bool) -> Step {
        let (state, pool) = ("0000".to_owned(), String::new());
        let object = Object::default_of("v1", "ConfigMap", name);
        Step::Apply(Apply {
            object,
            mode: ApplyMode::Create,
            state,
            pool,
            rank: 0,
            is_inventory,
            whole: None,
            repairs: None,
        })
    }

    fn known(name: &str, rendered: &str) -> Known {
        Known {
            object: ObjectRef::new("v1", "ConfigMap", name),
            state: "0000".into(),
            pool: String::new(),
            rendered: rendered.into(),
            fields: rendered.into(),
        }
    }

    #[test]
    fn what_is_about_to_be_applied_is_known_ahead_and_differs_in_marks_alone_once_it_was() {
        let mut memory = Memory::default();
        memory.know(known("old", "1"));
        let ahead = memory.ahead_of(&[apply("old", true), apply("new", true), apply("hook", false)]);
        assert_eq!(ahead.known(&known("old", "").object), Some(&known("old", "1")), "what is known stays");
        assert_eq!(ahead.known(&known("new", "").object), Some(&known("new", "")));
        assert_eq!(ahead.objects.len(), 2, "objects of hooks are not the release's");
        assert!(!memory.differs_in_marks_alone(&ahead), "an object more is more than a mark");
        memory.know(known("new", "1"));
        assert!(memory.differs_in_marks_alone(&ahead));
        assert!(!ahead.differs_in_marks_alone(&ahead));
        let more = Memory { revision: 1, ..memory.clone() };
        assert!(!more.differs_in_marks_alone(&ahead), "a revision is more than a mark");
    }
}
