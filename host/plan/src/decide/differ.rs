//! Objects that somebody else changed.

use std::{sync::Arc, time::Duration};

use pintle_api::{Answer, Object};

use super::Run;
use crate::{
    ApplyMode, Drift,
    drift::{Contest, taker, without_ignored},
    memory::key_of,
    rendered_mark,
};

impl Run<'_> {
    /// An object that differs is left, and looked at again when its next repair may be made.
    pub(super) fn leave(&mut self, drift: Drift, again: Option<Duration>) {
        if let Some(wait) = again {
            self.wake_within(wait);
        }
        if drift.manager.is_some() || self.input.release.policy.tells_drift {
            self.drift.push(drift);
        }
    }

    /// The object as it is sent, and as it was rendered where that is more. A repair is counted against the
    /// manager that made it necessary.
    pub(super) fn sent(&mut self, rendered: &Object, mode: ApplyMode) -> (Object, Option<Object>) {
        let live = match mode {
            ApplyMode::Repair => self.live(rendered),
            ApplyMode::Create | ApplyMode::Adopt => None,
        };
        let Some(live) = live else { return (rendered.clone(), None) };
        self.count_repair(rendered, &live);
        match without_ignored(&live, rendered, &self.input.release.policy.ignore) {
            Some(sent) => (sent, Some(rendered.clone())),
            None => (rendered.clone(), None),
        }
    }

    fn count_repair(&mut self, rendered: &Object, live: &Object) {
        let (reference, now) = (rendered.reference(), self.input.now);
        let known = self.memory.known(&reference);
        // What the chart changed is no repair.
        if known.is_none_or(|known| known.rendered != rendered_mark(rendered)) {
            return;
        }
        let manager = taker(live, rendered, &self.input.release.policy.ignore);
        let key = key_of(&reference);
        let contest = Contest::after_repair(self.memory.contests.get(&key), manager, now);
        self.memory.contests.insert(key, contest);
    }

    /// Contests that calmed down are forgotten; those that are on are told.
    pub(super) fn tell_contests(&mut self) {
        let now = self.input.now;
        self.memory.contests.retain(|_, contest| contest.is_on(now));
        let fights = self.memory.contests.iter().filter(|(_, contest)| contest.is_fight());
        let told: Vec<_> = fights.map(|(key, contest)| (key.clone(), contest.manager.clone())).collect();
        for (key, manager) in told {
            let known = self.memory.objects.get(&key).map(|known| known.object.clone());
            if let Some(object) = known.filter(|object| self.drift.iter().all(|left| left.object != *object))
            {
                let message = format!("{manager} changes back what is repaired");
                self.drift.push(Drift { object, message, manager: Some(manager) });
            }
        }
    }

    fn live(&self, rendered: &Object) -> Option<Arc<Object>> {
        let reference = rendered.reference();
        match self.input.answers.written.get(&reference) {
            Some(written) => Some(Arc::clone(written)),
            None => match self.input.facts.get(&reference) {
                Answer::Found(live) => Some(live),
                _ => None,
            },
        }
    }
}
