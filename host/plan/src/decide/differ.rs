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

/// An object as it is sent.
pub(super) struct Sent {
    pub(super) object: Object,
    /// As it was rendered, where that is more.
    pub(super) whole: Option<Object>,
    /// What somebody did to it, where it was applied before as it is.
    pub(super) repairs: Option<String>,
}

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

    /// The object as it is sent. A repair is counted against the manager that made it necessary.
    pub(super) fn sent(&mut self, rendered: &Object, mode: ApplyMode) -> Sent {
        let as_rendered = |repairs| Sent { object: rendered.clone(), whole: None, repairs };
        let live = match mode {
            ApplyMode::Repair => self.live(rendered),
            ApplyMode::Create if self.was_applied(rendered) => {
                return as_rendered(Some("it was deleted".to_owned()));
            }
            ApplyMode::Create | ApplyMode::Adopt => None,
        };
        let Some(live) = live else { return as_rendered(None) };
        let manager = self.count_repair(rendered, &live);
        let repairs = manager.map(|manager| format!("{manager} changed fields of it"));
        match without_ignored(&live, rendered, &self.input.release.policy.ignore) {
            Some(sent) => Sent { object: sent, whole: Some(rendered.clone()), repairs },
            None => as_rendered(repairs),
        }
    }

    /// True for an object that was applied as it is now; what the chart changed is no repair.
    fn was_applied(&self, rendered: &Object) -> bool {
        let known = self.memory.known(&rendered.reference());
        known.is_some_and(|known| known.rendered == rendered_mark(rendered))
    }

    /// The manager that is repaired against, where it is a repair.
    fn count_repair(&mut self, rendered: &Object, live: &Object) -> Option<String> {
        let (reference, now) = (rendered.reference(), self.input.now);
        if !self.was_applied(rendered) {
            return None;
        }
        let manager = taker(live, rendered, &self.input.release.policy.ignore);
        let key = key_of(&reference);
        let contest = Contest::after_repair(self.memory.contests.get(&key), manager.clone(), now);
        self.memory.contests.insert(key, contest);
        Some(manager)
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
