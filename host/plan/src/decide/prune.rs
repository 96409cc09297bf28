//! Objects that left the chart.

use std::collections::BTreeSet;

use pintle_api::{Answer, Gvk, Object, ObjectRef, Query, names};

use super::Run;
use crate::{Delete, Known, PoolInput, StateInput, Step, dress::IN_STATE};

impl Run<'_> {
    /// Finds what carries the owner's mark in the cluster, so that a lost memory orphans nothing. One
    /// list for each kind also is what wakes the release when one of its objects changes.
    pub(super) fn take_stock(&mut self) {
        let known = self.memory.objects.values().map(|known| known.object.gvk());
        let kinds: BTreeSet<Gvk> = known.chain(self.rendered.iter().map(ObjectRef::gvk)).collect();
        for kind in kinds {
            let own = self.input.facts.list(&Query {
                api_version: kind.api_version(),
                kind: kind.kind.clone(),
                namespace: None,
                label_selector: Some(format!("{}={}", names::OWNER, self.input.release.owner_uid)),
            });
            for live in own.found().unwrap_or_default() {
                self.recall(&live);
            }
        }
    }

    fn recall(&mut self, live: &Object) {
        let reference = live.reference();
        let Some(state) = live.annotation(IN_STATE) else { return };
        if self.memory.known(&reference).is_none() && !self.rendered.contains(&reference) {
            let (state, pool) = (state.to_owned(), String::new());
            self.memory.know(Known {
                object: reference,
                state,
                pool,
                rendered: String::new(),
                fields: String::new(),
            });
        }
    }

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
