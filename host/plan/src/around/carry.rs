//! What was written down is carried out: objects brought about or let go, deeds done.

use std::time::Duration;

use pintle_api::{Answer, Blocker, ObjectRef, Verdict};

use super::{Act, ActVerb, Deed, DeedRun, Site, visit::Visitor};
use crate::{Cause, Refusal, Step, verdict_of};

/// How long after a disruption budget said no an eviction is tried again: nothing tells when it would say yes.
const EVICT_AGAIN: Duration = Duration::from_secs(5);

/// How far the carrying out has come.
#[derive(Debug)]
pub(crate) struct Carried {
    /// What stands in its way.
    pub(super) verdict: Verdict,
    /// There are steps to be taken, or reads nobody had looked up yet.
    pub(super) is_busy: bool,
}

impl Visitor<'_, '_> {
    /// Plans what is left of what was written down for a site.
    pub(crate) fn carry_out(&mut self, site: &Site) -> Carried {
        let mut carried = Carried { verdict: Verdict::Ready, is_busy: false };
        if self.around.site(site).is_none() {
            return carried;
        }
        let mut memory = self.around.take(site);
        let manager = site.manager(&self.input.release.owner_uid);
        memory.owned.retain_mut(|owned| self.carry_object(owned, &manager, &mut carried));
        for deed in memory.deeds.iter_mut().filter(|deed| !deed.is_done) {
            self.carry_deed(&site.plugin, deed, &mut carried);
        }
        self.around.put(memory);
        carried
    }

    fn carry_deed(&mut self, plugin: &str, deed: &mut DeedRun, carried: &mut Carried) {
        let result = self.input.answers.acted.get(&(plugin.to_owned(), deed.key.clone()));
        match result {
            Some(None) => deed.is_done = true,
            Some(Some(refusal)) => self.conclude_deed(deed, refusal, carried),
            None => {
                carried.is_busy = true;
                let DeedRun { key, verb, target, uid, arguments, .. } = deed.clone();
                let deed = Deed { key, verb, target, arguments };
                self.steps.push(Step::Act(Act { plugin: plugin.to_owned(), deed, uid }));
            }
        }
    }

    fn conclude_deed(&mut self, deed: &mut DeedRun, refusal: &Refusal, carried: &mut Carried) {
        match refusal.cause {
            Cause::TooManyRequests if deed.verb == ActVerb::Evict => {
                let message = format!(
                    "a disruption budget does not let it be evicted now: {}; it is tried again",
                    refusal.message
                );
                let blocker = Blocker::new("DisruptionBudget", message).on(deed.target.clone());
                carried.add(Verdict::pending(blocker));
                self.wake_within(EVICT_AGAIN);
            }
            // Nobody can do it any more; the plugin is told by what it reads.
            Cause::Invalid | Cause::Immutable | Cause::KindUnknown => deed.is_done = true,
            _ => carried.add(verdict_of(refusal, &deed.target)),
        }
    }

    /// Writes down what is to be done, unless it was before. Only what is there can be evicted or deleted, and
    /// only the very object that is there now.
    pub(super) fn begin_deed(&self, memory: &mut super::SiteMemory, deed: &Deed) -> Option<Carried> {
        if memory.has_deed(&deed.key) || self.around.has_deed(&memory.site.plugin, &deed.key) {
            return None;
        }
        let mut carried = Carried { verdict: Verdict::Ready, is_busy: false };
        match self.input.facts.get(&deed.target) {
            Answer::Found(live) => memory.begin(deed, live.uid().map(str::to_owned)),
            Answer::Missing | Answer::KindUnknown => {
                memory.begin(deed, None);
                if let Some(begun) = memory.deeds.last_mut() {
                    begun.is_done = true;
                }
            }
            Answer::NotYet => carried.is_busy = true,
            Answer::Denied(why) => carried.deny(&deed.target, why),
        }
        (carried.is_busy || !carried.verdict.is_ready()).then_some(carried)
    }
}

// === impl Carried ===

impl Carried {
    pub(super) fn add(&mut self, verdict: Verdict) {
        let before = std::mem::replace(&mut self.verdict, Verdict::Ready);
        self.verdict = before.and(verdict);
    }

    pub(super) fn deny(&mut self, object: &ObjectRef, why: String) {
        self.add(Verdict::transient(Blocker::new("Forbidden", why).on(object.clone())));
    }

    /// Nothing is left to do.
    pub(crate) fn is_done(&self) -> bool {
        !self.is_busy && self.verdict.is_ready()
    }

    /// What it is waited for; pending without a blocker while steps are taken.
    pub(crate) fn into_verdict(self) -> Verdict {
        if self.is_busy { self.verdict.and(Verdict::Pending(Vec::new())) } else { self.verdict }
    }
}
