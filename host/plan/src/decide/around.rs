//! Plugins that are called around the states of a revision, and around all of it.

use std::{collections::BTreeSet, sync::Arc};

use pintle_api::{Object, Verdict, status::Phase};

use super::{Run, view::PoolView};
use crate::{
    Input, PoolInput, Rendered, StateView,
    around::{Course, Declared, Moment, Site, Visitor, declare, of_release},
};

/// View of what comes before the first state.
const BEFORE: &str = "hooks-pre";
/// View of what comes after the last.
const AFTER: &str = "hooks-post";

impl<'a> Run<'a> {
    /// Notes which plugins are called where, and lets go of what belongs to those that no longer are.
    pub(super) fn take_stock_of_plugins(&mut self) {
        let revision = self.memory.asked();
        self.memory.around.going.clear();
        self.memory.around.done.retain(|done| !done.is_removal && done.revision == revision);
        let Some(declared) = declare(self.input) else { return };
        let named: BTreeSet<Site> = declared.iter().map(|declared| declared.site.clone()).collect();
        self.memory.around.declared = declared;
        self.visitor().dissolve_all_but(|site| named.contains(site));
    }

    /// Plugins that are called before any write of the revision. Everything else waits for them.
    pub(super) fn visit_plugins_before(&mut self) {
        let declared = of_release(self.input.around);
        if declared.is_empty() || !self.held.is_empty() {
            return;
        }
        let verdict = match self.ask_in_order(&declared, Moment::Pre, None) {
            Course::Wait(verdict) => verdict,
            Course::Go | Course::LeftOut => Verdict::Ready,
        };
        if !verdict.is_ready() {
            self.held.insert(String::new());
        }
        self.views.push(view_of(BEFORE, &verdict));
    }

    /// Plugins that are called while the release is waited for, and once all of it is ready.
    pub(super) fn visit_plugins_after(&mut self) {
        let declared = of_release(self.input.around);
        if declared.is_empty() {
            return;
        }
        let is_whole = self.views.iter().all(|view| view.phase == Phase::Ready);
        let view = if is_whole && self.steps.is_empty() {
            match self.ask_in_order(&declared, Moment::Post, None) {
                Course::Wait(verdict) => view_of(AFTER, &verdict),
                Course::Go | Course::LeftOut => view_of(AFTER, &Verdict::Ready),
            }
        } else {
            let is_waited_for = self.steps.is_empty()
                && self.views.iter().skip(1).any(|view| !view.blockers.is_empty())
                && self.views.first().is_some_and(|view| view.phase == Phase::Ready);
            let verdict =
                if is_waited_for { self.ask_while_waiting(&declared, None) } else { Verdict::Ready };
            let mut view = view_of(AFTER, &verdict);
            if view.phase == Phase::Ready {
                view.phase = Phase::Waiting;
            }
            view
        };
        self.views.push(view);
    }

    /// Asks before a state. `Some` ends the state's turn: it waits, or is left out.
    pub(super) fn visit_before_state(
        &mut self,
        declared: &[Declared],
        pool: &PoolInput,
        objects: &[Rendered],
    ) -> Option<PoolView> {
        let pre: Vec<Declared> = declared.iter().filter(|declared| declared.pre).cloned().collect();
        match self.ask_in_order(&pre, Moment::Pre, Some(objects)) {
            Course::Go => None,
            Course::LeftOut => {
                let deferred = u32::try_from(objects.len()).unwrap_or(u32::MAX);
                Some(PoolView { deferred, phase: Phase::Ready, ..PoolView::default() })
            }
            Course::Wait(verdict) => {
                self.hold(pool);
                let count = u32::try_from(objects.len()).unwrap_or(u32::MAX);
                Some(PoolView { objects: count, is_incomplete: true, verdict, ..PoolView::default() })
            }
        }
    }

    /// Asks while a state is waited for, or once its gates are open.
    pub(super) fn visit_after_state(
        &mut self,
        declared: &[Declared],
        objects: &[Rendered],
        view: &mut PoolView,
    ) {
        let post: Vec<Declared> = declared.iter().filter(|declared| declared.post).cloned().collect();
        if post.is_empty() || view.writes > 0 || view.is_incomplete {
            return;
        }
        let verdict = if view.is_open() {
            match self.ask_in_order(&post, Moment::Post, Some(objects)) {
                Course::Wait(verdict) => verdict,
                Course::Go | Course::LeftOut => Verdict::Ready,
            }
        } else if view.verdict.blockers().is_empty() {
            Verdict::Ready
        } else {
            self.ask_while_waiting(&post, Some(objects))
        };
        view.is_incomplete |= !verdict.is_ready() && verdict.blockers().is_empty();
        let before = std::mem::replace(&mut view.verdict, Verdict::Ready);
        view.verdict = before.and(verdict);
    }

    /// One after the other; the first that does not go ends it.
    fn ask_in_order(
        &mut self,
        declared: &[Declared],
        moment: Moment,
        objects: Option<&[Rendered]>,
    ) -> Course {
        for Declared { site, .. } in declared {
            let input = self.input;
            match self.visitor().visit(site, moment, || rendered_of(input, objects)) {
                Course::Go => {}
                other => return other,
            }
        }
        Course::Go
    }

    /// Each whose moment after is not over yet; a state that was ready once is nobody's to wait for.
    fn ask_while_waiting(&mut self, declared: &[Declared], objects: Option<&[Rendered]>) -> Verdict {
        let revision = self.memory.asked();
        let mut all = Verdict::Ready;
        for Declared { site, .. } in declared {
            if self.memory.around.done(revision, false, site, Moment::Post).is_some() {
                continue;
            }
            let input = self.input;
            let course = self.visitor().visit(site, Moment::Waiting, || rendered_of(input, objects));
            if let Course::Wait(verdict) = course {
                all = all.and(verdict);
            }
        }
        all
    }

    fn visitor(&mut self) -> Visitor<'a, '_> {
        Visitor {
            input: self.input,
            revision: self.memory.asked(),
            around: &mut self.memory.around,
            steps: &mut self.steps,
            recheck: &mut self.recheck,
            is_removal: false,
            is_steady: false,
        }
    }
}

/// The objects of a state, or of all of them.
fn rendered_of(input: &Input<'_>, objects: Option<&[Rendered]>) -> Vec<Arc<Object>> {
    let copy = |rendered: &Rendered| Arc::new(rendered.object.clone());
    match objects {
        Some(objects) => objects.iter().map(copy).collect(),
        None => {
            let pools = input.states.iter().flat_map(|state| &state.pools);
            pools.filter_map(|pool| pool.objects.as_ref().ok()).flatten().map(copy).collect()
        }
    }
}

/// How the hooks of a moment stand, in the words of a state.
pub(crate) fn view_of(name: &str, verdict: &Verdict) -> StateView {
    let phase = match verdict {
        Verdict::Ready => Phase::Ready,
        Verdict::Pending(blockers) if blockers.is_empty() => Phase::Applying,
        Verdict::Pending(_) => Phase::Pending,
        Verdict::Transient(_) => Phase::Retrying,
        Verdict::Fatal(_) => Phase::Failed,
    };
    StateView { blockers: verdict.blockers().to_vec(), ..StateView::new(name, phase) }
}
