//! Objects that left the chart.

use pintle_api::{Answer, Object, names};

use super::Run;
use crate::{Delete, Known, PoolInput, StateInput, Step};

impl Run<'_> {
    /// What a state applied and no longer renders goes at the end of its gate.
    pub(super) fn prune(&mut self, state: &StateInput, pool: &PoolInput) {
        let left = self.known_where(|known| known.state == state.name && known.pool == pool.pool);
        left.into_iter().for_each(|known| self.prune_one(&known));
    }

    /// What states and pools applied that are gone themselves goes once everything else is ready.
    pub(super) fn prune_leftovers(&mut self) {
        if self.has_fault || !self.held.is_empty() {
            return;
        }
        let states = self.input.states;
        let left = self.known_where(|known| {
            !states.iter().any(|state| {
                state.name == known.state && state.pools.iter().any(|pool| pool.pool == known.pool)
            })
        });
        left.into_iter().for_each(|known| self.prune_one(&known));
        self.memory.passes.retain(|pass| states.iter().any(|state| state.name == pass.state));
    }

    fn known_where(&self, fits: impl Fn(&Known) -> bool) -> Vec<Known> {
        let known = self.memory.objects.values();
        known.filter(|known| fits(known) && !self.rendered.contains(&known.object)).cloned().collect()
    }

    fn prune_one(&mut self, known: &Known) {
        match self.input.facts.get(&known.object) {
            Answer::Found(live) if self.may_delete(&live) => {
                if !live.is_terminating() {
                    let (target, uid) = (known.object.clone(), live.uid().map(str::to_owned));
                    self.steps.push(Step::Delete(Delete { target, uid, reason: "Pruned" }));
                }
            }
            Answer::Found(_) | Answer::Missing | Answer::KindUnknown => self.memory.forget(&known.object),
            Answer::NotYet | Answer::Denied(_) => {}
        }
    }

    fn may_delete(&self, live: &Object) -> bool {
        let is_ours = live.label(names::OWNER) == Some(&self.input.release.owner_uid);
        is_ours && live.annotation(names::HELM_RESOURCE_POLICY) != Some("keep")
    }
}
