//! What a release needs next.

mod around;
mod crds;
mod differ;
mod gates;
mod hooks;
mod namespace;
mod prune;
mod view;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use pintle_api::{Answer, Blocker, Object, ObjectRef, Verdict, names, status::Phase};

pub(crate) use self::around::view_of;
use self::{differ::Sent, view::PoolView};
use crate::{
    Apply, ApplyMode, CRDS, Cause, Delete, Demand, Drift, Input, Memory, Plan, PoolInput, Rendered,
    StateInput, StateView, Step,
    around::of_state,
    build,
    compare::{Standing, compare},
    removal::is_mark_of,
    verdict_of,
};

/// Groups of kinds that only OpenShift serves; elsewhere their objects are left out.
const OPENSHIFT_GROUPS: [&str; 6] = [
    "build.openshift.io",
    "image.openshift.io",
    "security.openshift.io",
    "route.openshift.io",
    "config.openshift.io",
    "template.openshift.io",
];

/// Decides what a release needs next.
///
/// States are taken in order, each pool by itself. An object that is not as it shall be is a step;
/// a state whose objects are all as they shall be is judged by its gates; an open gate is recorded
/// and the next state may start in the same plan. Reads that nobody had looked up yet leave the
/// plan incomplete: the caller fetches them and decides again before it executes a step.
#[must_use]
pub fn decide(input: &Input<'_>) -> Plan {
    let mut memory = input.memory.clone();
    loop {
        let mut run = Run::new(input, memory);
        run.take_stock();
        run.visit_namespace();
        run.forget_old_hooks();
        run.take_stock_of_plugins();
        run.visit_plugins_before();
        run.visit_hooks_before();
        input.states.iter().for_each(|state| run.visit(state));
        run.visit_hooks_after();
        run.visit_plugins_after();
        if !run.has_new_demand {
            return run.finish();
        }
        memory = run.memory;
    }
}

struct Run<'a> {
    input: &'a Input<'a>,
    memory: Memory,
    steps: Vec<Step>,
    views: Vec<StateView>,
    /// Blockers of the release itself, told with its first state.
    prelude: Vec<Blocker>,
    /// Pools whose later states may not go on; the empty key stands for all nodes.
    held: BTreeSet<String>,
    /// Pools in which something that had passed is no longer ready: what has not started waits.
    regressed: BTreeSet<String>,
    /// Objects seen so far: an object that every pool renders belongs to the first.
    seen: BTreeSet<ObjectRef>,
    /// Every rendered object.
    rendered: BTreeSet<ObjectRef>,
    /// State labels of nodes, all passed states together.
    node_to_labels: BTreeMap<String, BTreeSet<String>>,
    recheck: Option<Duration>,
    drift: Vec<Drift>,
    has_new_demand: bool,
    has_fault: bool,
}

/// One object of a state whose rendering is in place.
struct InPlace<'a> {
    rendered: &'a Rendered,
    live: Arc<Object>,
}

impl<'a> Run<'a> {
    fn new(input: &'a Input<'a>, memory: Memory) -> Self {
        let pools = input.states.iter().flat_map(|state| &state.pools);
        let objects = pools.filter_map(|pool| pool.objects.as_ref().ok()).flatten();
        Self {
            input,
            memory,
            steps: Vec::new(),
            views: Vec::new(),
            prelude: Vec::new(),
            held: BTreeSet::new(),
            regressed: BTreeSet::new(),
            seen: BTreeSet::new(),
            rendered: objects.map(|rendered| rendered.object.reference()).collect(),
            node_to_labels: BTreeMap::new(),
            recheck: None,
            drift: Vec::new(),
            has_new_demand: false,
            has_fault: false,
        }
    }

    fn visit(&mut self, state: &StateInput) {
        let mut views: Vec<_> = state.pools.iter().map(|pool| self.visit_pool(state, pool)).collect();
        if views.is_empty() {
            self.held.insert(String::new());
            views.push(PoolView::without_nodes());
        }
        let mut view = view::join(&state.name, views);
        if self.views.is_empty() {
            view.blockers.splice(0..0, self.prelude.drain(..));
        }
        self.views.push(view);
    }

    fn visit_pool(&mut self, state: &StateInput, pool: &PoolInput) -> PoolView {
        if self.must_wait(state, pool) {
            self.hold(pool);
            return PoolView::waiting(pool);
        }
        let objects = match &pool.objects {
            Ok(objects) => objects,
            Err(fault) => {
                self.has_fault = true;
                self.hold(pool);
                let blocker = Blocker::new(&fault.reason, &fault.message);
                return self.conclude(state, pool, PoolView::failed(Verdict::fatal(blocker)));
            }
        };
        if let Some(refused) = gates::refuse_broken(objects) {
            self.has_fault = true;
            self.hold(pool);
            return self.conclude(state, pool, PoolView::failed(refused));
        }
        let declared = match of_state(&state.name, pool, objects) {
            Ok(declared) => declared,
            Err(refused) => {
                self.has_fault = true;
                self.hold(pool);
                return self.conclude(state, pool, PoolView::failed(refused));
            }
        };
        if let Some(view) = self.visit_before_state(&declared, pool, objects) {
            return self.conclude(state, pool, view);
        }
        let mut view = PoolView::default();
        if state.name == CRDS {
            self.put_crds_in_place(state, objects, &mut view);
            self.settle(state, pool, &mut view);
            return self.conclude(state, pool, view);
        }
        let in_place = self.put_in_place(state, pool, objects, &mut view);
        self.judge(state, pool, &in_place, &mut view);
        self.visit_after_state(&declared, objects, &mut view);
        self.settle(state, pool, &mut view);
        self.conclude(state, pool, view)
    }

    /// A state waits for those before it; one that has started only for those that never passed.
    fn must_wait(&self, state: &StateInput, pool: &PoolInput) -> bool {
        let concerns = |set: &BTreeSet<String>| {
            set.contains("") || set.contains(&pool.pool) || (pool.pool.is_empty() && !set.is_empty())
        };
        let has_started = self.memory.has_passed(&state.name, &pool.pool)
            || self.memory.objects.values().any(|known| known.state == state.name && known.pool == pool.pool);
        concerns(&self.held) || (!has_started && concerns(&self.regressed))
    }

    fn hold(&mut self, pool: &PoolInput) {
        self.held.insert(pool.pool.clone());
    }

    /// Compares every object and plans the writes that bring it where it shall be.
    fn put_in_place<'o>(
        &mut self,
        state: &StateInput,
        pool: &PoolInput,
        objects: &'o [Rendered],
        view: &mut PoolView,
    ) -> Vec<InPlace<'o>> {
        let (mut in_place, mut rank, mut last_kind) = (Vec::new(), 0, "");
        for rendered in objects {
            let reference = rendered.object.reference();
            if !self.seen.insert(reference.clone()) {
                continue;
            }
            if last_kind != rendered.object.kind() {
                (rank, last_kind) = (rank + 1, rendered.object.kind());
            }
            if self.is_deferred(pool, &rendered.object) {
                view.deferred += 1;
                view.kinds.push((reference, false));
                continue;
            }
            view.objects += 1;
            match self.standing(&rendered.object) {
                Standing::InSync(live) => in_place.push(InPlace { rendered, live }),
                Standing::NotYet => view.is_incomplete = true,
                Standing::Remove => {
                    view.writes += 1;
                    let delete = Delete { target: reference, uid: None, reason: "Recreated" };
                    self.steps.push(Step::Delete(delete));
                }
                Standing::Held(verdict) => view.add(&reference, verdict),
                Standing::Left(live, drift, again) => {
                    self.leave(drift, again);
                    match live {
                        Some(live) => in_place.push(InPlace { rendered, live }),
                        None => view.add(&reference, Verdict::Ready),
                    }
                }
                Standing::Write(mode) => {
                    view.writes += 1;
                    view.kinds.push((reference, false));
                    let (state, pool) = (state.name.clone(), pool.pool.clone());
                    let Sent { object, whole, repairs } = self.sent(&rendered.object, mode);
                    self.steps.push(Step::Apply(Apply {
                        object,
                        mode,
                        state,
                        pool,
                        rank,
                        is_inventory: true,
                        whole,
                        repairs,
                    }));
                }
            }
        }
        in_place
    }

    fn standing(&self, object: &Object) -> Standing {
        let reference = object.reference();
        match self.input.answers.refusals.get(&reference) {
            Some(refusal) if refusal.cause == Cause::Immutable && self.input.release.policy.recreates => {
                Standing::Remove
            }
            Some(refusal) => Standing::Held(verdict_of(refusal, &reference)),
            None => compare(self.input, object),
        }
    }

    /// Objects a state passes without: builds nobody needs yet, and what only OpenShift serves.
    fn is_deferred(&self, pool: &PoolInput, object: &Object) -> bool {
        let live = || self.input.facts.get(&object.reference());
        if OPENSHIFT_GROUPS.contains(&object.gvk().group.as_str()) && live() == Answer::KindUnknown {
            return true;
        }
        let Some(vendor) = build::vendor(object).filter(|_| build::is_on_demand(object)) else {
            return false;
        };
        let release = self.input.release;
        let is_demanded = self.memory.demand(vendor, &pool.pool, &release.chart_digest).is_some();
        let is_ours = |live: &Object| live.label(names::OWNER) == Some(&release.owner_uid);
        !is_demanded && !live().found().is_some_and(|live| is_ours(&live))
    }

    fn judge(&mut self, state: &StateInput, pool: &PoolInput, objects: &[InPlace<'_>], view: &mut PoolView) {
        let is_settled = view.writes == 0 && !view.is_incomplete;
        for object in objects {
            let verdict = if is_settled { self.gate(state, pool, object) } else { Verdict::Ready };
            view.add(&object.live.reference(), verdict);
            if is_settled {
                self.demand_build(pool, object);
            }
        }
    }

    /// An image that cannot be pulled asks for the build that makes it; once the build is complete,
    /// pods that were there before are replaced, so that nobody waits for a kubelet's back-off.
    fn demand_build(&mut self, pool: &PoolInput, object: &InPlace<'_>) {
        let Some(vendor) = build::vendor(&object.live).filter(|_| build::may_demand(&object.live)) else {
            return;
        };
        let Some(config) = self.build_of(vendor, pool) else { return };
        if crate::judge(&object.live, self.input.facts, true).is_ready() {
            return;
        }
        let stuck = build::pods_without_image(&object.live, self.input.facts).found().unwrap_or_default();
        if stuck.is_empty() {
            return;
        }
        let chart = self.input.release.chart_digest.clone();
        if self.memory.demand(vendor, &pool.pool, &chart).is_none() {
            let (vendor, pool) = (vendor.to_owned(), pool.pool.clone());
            self.memory.demands.retain(|demand| demand.vendor != vendor || demand.pool != pool);
            self.memory.demands.push(Demand { vendor, pool, chart, since: self.input.now });
            self.has_new_demand = true;
            return;
        }
        let Some(built_at) = build::completed_at(&config, self.input.facts) else { return };
        self.steps
            .extend(stuck.iter().filter(|pod| build::is_older(pod, built_at)).map(|pod| build::replace(pod)));
    }

    /// The rendered BuildConfig that is paired with a workload.
    fn build_of(&self, vendor: &str, pool: &PoolInput) -> Option<Object> {
        let pools = self.input.states.iter().flat_map(|state| &state.pools);
        let rendered =
            pools.filter(|other| other.pool == pool.pool || other.pool.is_empty() || pool.pool.is_empty());
        let mut objects = rendered.filter_map(|pool| pool.objects.as_ref().ok()).flatten();
        let is_pair = |object: &Object| build::is_on_demand(object) && build::vendor(object) == Some(vendor);
        objects.find(|rendered| is_pair(&rendered.object)).map(|rendered| rendered.object.clone())
    }

    /// Records an open gate, or holds what comes after a closed one.
    fn settle(&mut self, state: &StateInput, pool: &PoolInput, view: &mut PoolView) {
        let is_open = view.is_open();
        let had_passed = self.memory.has_passed(&state.name, &pool.pool);
        if is_open && !had_passed {
            self.memory.pass(&state.name, &pool.pool, self.input.now);
        }
        if is_open {
            self.prune(state, pool);
        } else if had_passed {
            self.regressed.insert(pool.pool.clone());
        } else {
            self.hold(pool);
        }
        if (is_open || had_passed) && !state.label.is_empty() {
            let label = format!("{}{}-{}", names::SRO_NODE_STATE, self.input.release.name, state.label);
            for node in &pool.nodes {
                self.node_to_labels.entry(node.clone()).or_default().insert(label.clone());
            }
        }
    }

    /// Gives the view its phase, and fails it when its time is up.
    fn conclude(&mut self, state: &StateInput, pool: &PoolInput, mut view: PoolView) -> PoolView {
        let had_passed = self.memory.has_passed(&state.name, &pool.pool);
        if let Some(limit) = self.input.release.timeout
            && !had_passed
            && !view.is_open()
        {
            let since = self.memory.begin(&state.name, self.input.now);
            let left = limit - self.input.now.duration_since(since).as_secs();
            if left <= 0 {
                let message = format!("the state was not ready within {limit} s; it is still watched");
                view.verdict = Verdict::fatal(Blocker::new("TimedOut", message)).and(view.verdict);
            } else {
                self.wake_within(Duration::from_secs(left.unsigned_abs()));
            }
        }
        view.phase = view.phase_of(had_passed);
        view
    }

    fn wake_within(&mut self, time: Duration) {
        self.recheck = Some(self.recheck.map_or(time, |earlier| earlier.min(time)));
    }

    fn finish(mut self) -> Plan {
        if let Some(first) = self.views.first_mut() {
            first.blockers.splice(0..0, self.prelude.drain(..));
        }
        self.label_nodes();
        self.prune_leftovers();
        self.tell_contests();
        let verdict = self.views.iter().map(view::verdict_of_view).collect::<Verdict>();
        let verdict = match (verdict, self.steps.is_empty()) {
            (Verdict::Ready, false) => Verdict::Pending(Vec::new()),
            (verdict, _) => verdict,
        };
        Plan {
            steps: self.steps,
            memory: self.memory,
            states: self.views,
            verdict,
            recheck: self.recheck,
            drift: self.drift,
            is_gone: false,
        }
    }

    /// Labels every node of passed states; nothing is withdrawn when a state regresses.
    fn label_nodes(&mut self) {
        for (node, wanted) in &self.node_to_labels {
            let present = self.input.pools.node_to_marks.get(node);
            if wanted.iter().all(|label| present.is_some_and(|present| present.contains(label))) {
                continue;
            }
            let target = ObjectRef::new("v1", "Node", node);
            if let Some(refusal) = self.input.answers.refusals.get(&target) {
                if let Some(view) = self.views.last_mut() {
                    view.phase = Phase::Retrying;
                    view.blockers.extend(verdict_of(refusal, &target).blockers().iter().cloned());
                }
                continue;
            }
            let release = &self.input.release.name;
            let is_left = |mark: &&String| is_mark_of(mark, release) && !wanted.contains(*mark);
            let left = present.into_iter().flatten().filter(is_left);
            let set = wanted.iter().map(|label| (label.clone(), Some("Ready".to_owned())));
            let labels = set.chain(left.map(|mark| (mark.clone(), None))).collect();
            self.steps.push(Step::Label { target, labels });
        }
    }
}

// === impl ApplyMode ===

impl ApplyMode {
    /// True when fields that others hold are taken over.
    #[must_use]
    pub fn is_forced(self) -> bool {
        matches!(self, Self::Repair | Self::Adopt)
    }
}

#[cfg(test)]
mod tests;
