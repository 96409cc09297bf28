//! Plugins that are called around the deletion of a release and of its states.

use std::sync::Arc;

use pintle_api::{Answer, Object, Verdict, status::Phase};

use super::Way;
use crate::{
    StateView,
    around::{Course, Declared, Moment, Visitor},
    decide::view_of,
};

impl<'a> Way<'a> {
    /// What plugins were in the middle of when the release was to go: by force everything they own goes at
    /// once, else what belongs to those that are no longer called.
    pub(super) fn let_go_of_plugins(&mut self) {
        self.plan.memory.around.done.retain(|done| done.is_removal);
        let declared = self.plan.memory.around.declared.clone();
        let runs_hooks = self.runs_hooks;
        let verdict = self
            .visitor()
            .dissolve_all_but(|site| runs_hooks && declared.iter().any(|declared| declared.site == *site));
        self.wait_for("plugins", verdict);
    }

    /// Once all is gone nothing that plugins own stays.
    pub(super) fn dissolve_plugins(&mut self) {
        let verdict = self.visitor().dissolve_all_but(|_| false);
        self.wait_for("plugins", verdict);
    }

    fn wait_for(&mut self, name: &str, verdict: Verdict) {
        if !verdict.is_ready() {
            self.is_waiting = true;
            self.plan.states.push(view_of(name, &verdict));
        }
    }

    /// Plugins of the whole release, before its first delete or when all is gone.
    pub(super) fn visit_plugins(&mut self, moment: Moment) {
        let declared = self.declared("", |_| true);
        if !self.runs_hooks || declared.is_empty() || self.is_waiting {
            return;
        }
        let rendered = self.live_objects("");
        let verdict = self.ask_in_order(&declared, moment, &rendered);
        self.is_waiting |= !verdict.is_ready();
        let name = if moment == Moment::Pre { "hooks-pre" } else { "hooks-post" };
        self.plan.states.push(view_of(name, &verdict));
    }

    /// Plugins of the whole release while its objects go: they may add to what is waited for.
    pub(super) fn while_release_goes(&mut self) {
        let declared = self.declared("", |_| true);
        let revision = self.plan.memory.asked();
        let around = &self.plan.memory.around;
        let has_begun =
            |declared: &Declared| around.done(revision, true, &declared.site, Moment::Pre).is_some();
        if declared.is_empty() || !declared.iter().all(has_begun) || !self.plan.steps.is_empty() {
            return;
        }
        let rendered = self.live_objects("");
        let verdict = self.ask_each(&declared, &rendered);
        let mut view = view_of("hooks-post", &verdict);
        if view.phase == Phase::Ready {
            view = StateView::new("hooks-post", Phase::Waiting);
        }
        self.plan.states.push(view);
    }

    /// Asks before the first delete of a state, and notes that it goes.
    pub(super) fn before_state(&mut self, state: &str) -> Verdict {
        if !self.runs_hooks || self.declared(state, |_| true).is_empty() {
            return Verdict::Ready;
        }
        let (declared, rendered) = (self.declared(state, |declared| declared.pre), self.live_objects(state));
        let verdict = self.ask_in_order(&declared, Moment::Pre, &rendered);
        let going = &mut self.plan.memory.around.going;
        if verdict.is_ready() && !going.iter().any(|other| other == state) {
            going.push(state.to_owned());
        }
        verdict
    }

    /// Asks while the objects of a state go.
    pub(super) fn while_state_goes(&mut self, state: &str) -> Verdict {
        let declared = self.declared(state, |declared| declared.post);
        if !self.runs_hooks || declared.is_empty() || !self.plan.steps.is_empty() {
            return Verdict::Ready;
        }
        let rendered = self.live_objects(state);
        self.ask_each(&declared, &rendered)
    }

    /// Asks once all objects of a state are gone.
    pub(super) fn after_state(&mut self, state: &str) -> Verdict {
        let declared = self.declared(state, |declared| declared.post);
        if !self.runs_hooks || declared.is_empty() || !self.plan.steps.is_empty() {
            return Verdict::Ready;
        }
        self.ask_in_order(&declared, Moment::Post, &[])
    }

    fn ask_in_order(&mut self, declared: &[Declared], moment: Moment, rendered: &[Arc<Object>]) -> Verdict {
        for Declared { site, .. } in declared {
            let course = self.visitor().visit(site, moment, || rendered.to_vec());
            if let Course::Wait(verdict) = course {
                return verdict;
            }
        }
        Verdict::Ready
    }

    fn ask_each(&mut self, declared: &[Declared], rendered: &[Arc<Object>]) -> Verdict {
        let mut all = Verdict::Ready;
        for Declared { site, .. } in declared {
            let course = self.visitor().visit(site, Moment::Waiting, || rendered.to_vec());
            if let Course::Wait(verdict) = course {
                all = all.and(verdict);
            }
        }
        all
    }

    fn declared(&self, state: &str, fits: impl Fn(&Declared) -> bool) -> Vec<Declared> {
        let declared = self.plan.memory.around.declared.iter();
        declared.filter(|declared| declared.site.state == state && fits(declared)).cloned().collect()
    }

    /// The objects of a state as they are in the cluster; of all states for an empty name.
    fn live_objects(&self, state: &str) -> Vec<Arc<Object>> {
        let known = self.plan.memory.objects.values();
        let known = known.filter(|known| state.is_empty() || known.state == state);
        let live = known.filter_map(|known| match self.input.facts.get(&known.object) {
            Answer::Found(live) => Some(live),
            _ => None,
        });
        live.collect()
    }

    fn visitor(&mut self) -> Visitor<'a, '_> {
        Visitor {
            input: self.input,
            revision: self.plan.memory.asked(),
            around: &mut self.plan.memory.around,
            steps: &mut self.plan.steps,
            recheck: &mut self.plan.recheck,
            is_removal: true,
            is_steady: false,
        }
    }
}
