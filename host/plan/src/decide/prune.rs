//! Objects that left the chart.

use std::{collections::BTreeSet, time::Duration};

use pintle_api::{Answer, Gvk, Object, ObjectRef, Query, names};

use super::Run;
use crate::{Delete, Known, PoolInput, StateInput, Step, dress::IN_STATE};

/// How long the objects of a pool stay after its last node left.
const LINGER: Duration = Duration::from_secs(600);

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
            self.memory.know(Known::unmarked(reference, state.to_owned()));
        }
    }

    /// What a state applied and no longer renders goes at the end of its gate.
    pub(super) fn prune(&mut self, state: &StateInput, pool: &PoolInput) {
        let left = self.known_where(|known| known.state == state.name && known.pool == pool.pool);
        left.into_iter().for_each(|known| self.prune_one(&known));
    }

    /// What states and pools applied that are gone themselves goes once everything else is ready. A pool
    /// has ten minutes to come back: its nodes may only be away for an upgrade.
    pub(super) fn prune_leftovers(&mut self) {
        let states = self.input.states;
        let is_there =
            |key: &str| states.iter().any(|state| state.pools.iter().any(|pool| pool.pool == *key));
        self.memory.left_pools.retain(|key, _| !is_there(key));
        if self.has_fault || !self.held.is_empty() {
            return;
        }
        let left = self.known_where(|known| {
            !states.iter().any(|state| {
                state.name == known.state && state.pools.iter().any(|pool| pool.pool == known.pool)
            })
        });
        for known in left {
            if states.iter().all(|state| state.name != known.state) || self.has_stayed_away(&known.pool) {
                self.prune_one(&known);
            }
        }
        let known: BTreeSet<_> = self.memory.objects.values().map(|known| known.pool.clone()).collect();
        self.memory.left_pools.retain(|key, _| known.contains(key));
        self.memory.passes.retain(|pass| states.iter().any(|state| state.name == pass.state));
    }

    /// True once the last node of a pool has been away for long enough.
    fn has_stayed_away(&mut self, pool: &str) -> bool {
        if pool.is_empty() {
            return true;
        }
        let now = self.input.now;
        let since = *self.memory.left_pools.entry(pool.to_owned()).or_insert(now);
        let left = LINGER.saturating_sub(now.duration_since(since).try_into().unwrap_or_default());
        if !left.is_zero() {
            self.wake_within(left);
        }
        left.is_zero()
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
        let release = self.input.release;
        let is_helms = || {
            live.label(names::OWNER).is_none()
                && live.annotation(names::HELM_RELEASE_NAME) == Some(&release.name)
                && live.annotation(names::HELM_RELEASE_NAMESPACE) == Some(&release.namespace)
        };
        let is_ours = live.label(names::OWNER) == Some(&release.owner_uid) || is_helms();
        is_ours && live.annotation(names::HELM_RESOURCE_POLICY) != Some("keep")
    }
}
