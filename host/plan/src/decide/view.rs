//! How a rendering of a state stands, while it is decided about.

use pintle_api::{Blocker, ObjectRef, Verdict, status::Phase};

use crate::{PoolInput, StateView};

pub(super) struct PoolView {
    pub(super) phase: Phase,
    pub(super) objects: u32,
    pub(super) ready: u32,
    pub(super) deferred: u32,
    pub(super) writes: u32,
    /// Something was not looked up yet, or a plugin has not answered.
    pub(super) is_incomplete: bool,
    pub(super) verdict: Verdict,
    pub(super) kinds: Vec<(ObjectRef, bool)>,
}

impl Default for PoolView {
    fn default() -> Self {
        Self {
            phase: Phase::Waiting,
            objects: 0,
            ready: 0,
            deferred: 0,
            writes: 0,
            is_incomplete: false,
            verdict: Verdict::Ready,
            kinds: Vec::new(),
        }
    }
}

impl PoolView {
    pub(super) fn waiting(pool: &PoolInput) -> Self {
        let objects = pool.objects.as_ref().map_or(0, Vec::len);
        Self { objects: u32::try_from(objects).unwrap_or(u32::MAX), is_incomplete: true, ..Self::default() }
    }

    /// A state that is rendered per pool, and no node makes a pool: nothing is unloaded for it.
    pub(super) fn without_nodes() -> Self {
        let message = "no node matches spec.nodeSelector without a taint that keeps workloads away; label or untaint one";
        let verdict = Verdict::pending(Blocker::new("NoMatchingNodes", message));
        Self { phase: Phase::Pending, verdict, ..Self::default() }
    }

    pub(super) fn failed(verdict: Verdict) -> Self {
        Self { phase: Phase::Failed, verdict, ..Self::default() }
    }

    pub(super) fn add(&mut self, object: &ObjectRef, verdict: Verdict) {
        let is_ready = verdict.is_ready();
        self.ready += u32::from(is_ready);
        self.kinds.push((object.clone(), is_ready));
        let verdict = std::mem::replace(&mut self.verdict, Verdict::Ready).and(verdict);
        self.verdict = verdict;
    }

    pub(super) fn is_open(&self) -> bool {
        self.writes == 0 && !self.is_incomplete && self.verdict.is_ready()
    }

    pub(super) fn phase_of(&self, had_passed: bool) -> Phase {
        match &self.verdict {
            _ if self.is_open() => Phase::Ready,
            Verdict::Fatal(_) => Phase::Failed,
            Verdict::Transient(_) => Phase::Retrying,
            Verdict::Pending(_) if had_passed => Phase::Regressed,
            Verdict::Pending(_) if self.writes == 0 => Phase::Pending,
            Verdict::Ready if self.writes == 0 => Phase::Pending,
            Verdict::Ready | Verdict::Pending(_) => Phase::Applying,
        }
    }
}

/// One entry for a state, from its pools: the furthest behind decides the phase.
pub(super) fn join(name: &str, pools: Vec<PoolView>) -> StateView {
    let mut joined = StateView::new(name, Phase::Ready);
    for pool in pools {
        if urgency(pool.phase) > urgency(joined.phase) {
            joined.phase = pool.phase;
        }
        joined.ready += pool.ready;
        joined.objects += pool.objects;
        joined.deferred += pool.deferred;
        joined.blockers.extend(pool.verdict.blockers().iter().cloned());
        joined.kinds.extend(pool.kinds);
    }
    joined
}

fn urgency(phase: Phase) -> u8 {
    match phase {
        Phase::Ready => 0,
        Phase::Waiting => 1,
        Phase::Regressed => 2,
        Phase::Pending => 3,
        Phase::Applying => 4,
        Phase::Retrying => 5,
        Phase::Failed => 6,
    }
}

/// The verdict a view stands for.
pub(super) fn verdict_of_view(view: &StateView) -> Verdict {
    let blockers: Vec<Blocker> = view.blockers.clone();
    match view.phase {
        Phase::Ready if blockers.is_empty() => Verdict::Ready,
        Phase::Ready | Phase::Waiting | Phase::Applying | Phase::Pending | Phase::Regressed => {
            Verdict::Pending(blockers)
        }
        Phase::Retrying => Verdict::Transient(blockers),
        Phase::Failed => Verdict::Fatal(blockers),
    }
}
