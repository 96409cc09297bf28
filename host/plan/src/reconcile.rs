//! An owner that a plugin alone reconciles: what shall be there is what it says.

use std::time::Duration;

use pintle_api::{Blocker, Verdict};

use crate::{
    Input, Memory, Named, Plan, Reference, Step,
    around::{Course, Declared, Done, Moment, Role, Site, Visitor},
    decide::view_of,
};

/// Decides what the owner of a reconciler needs next.
#[must_use]
pub fn decide_reconciling(input: &Input<'_>, reference: &Reference) -> Plan {
    let (site, mut memory) = (site_of(reference), input.memory.clone());
    let revision = memory.revision;
    memory.around.done.retain(|done| done.revision == revision);
    let is_steady = memory.around.done(revision, false, &site, Moment::Waiting).is_some();
    let mut run = Run::new(input, memory, false, is_steady);
    run.visitor().dissolve_all_but(|other| *other == site);
    let course = run.visitor().visit(&site, Moment::Waiting, Vec::new);
    let is_ready = course == Course::Go;
    if is_ready && !is_steady {
        let moment = Moment::Waiting;
        run.memory.around.done.push(Done {
            revision,
            is_removal: false,
            site: site.clone(),
            moment,
            left_out: None,
        });
    }
    run.finish(&site.plugin, course)
}

/// Decides what the owner of a reconciler needs next on its way out: what its plugin still wants stays until it
/// wants nothing more, and everything is gone before the owner is let go. By force nobody is asked.
#[must_use]
pub fn decide_finalizing(input: &Input<'_>, reference: &Reference) -> Plan {
    let (site, mut memory) = (site_of(reference), input.memory.clone());
    let declared = Declared { site: site.clone(), pre: false, post: true, missing: None };
    memory.around.declared = vec![declared];
    let mut run = Run::new(input, memory, true, false);
    let left = run.visitor().dissolve_all_but(|other| *other == site && !input.release.is_forced_out);
    let course = if input.release.is_forced_out {
        if left.is_ready() { Course::Go } else { Course::Wait(left) }
    } else {
        match run.visitor().visit(&site, Moment::Waiting, Vec::new) {
            Course::Go => run.let_go(&site),
            other => other,
        }
    };
    let is_gone = course == Course::Go && run.steps.is_empty();
    Plan { is_gone, ..run.finish(&site.plugin, course) }
}

fn site_of(reference: &Reference) -> Site {
    let Reference { named: Named { plugin, args }, config, .. } = reference.clone();
    Site { role: Role::Reconciler, plugin, config, args, state: String::new(), pool: String::new() }
}

struct Run<'a> {
    input: &'a Input<'a>,
    memory: Memory,
    steps: Vec<Step>,
    recheck: Option<Duration>,
    is_removal: bool,
    is_steady: bool,
}

// === impl Run ===

impl<'a> Run<'a> {
    fn new(input: &'a Input<'a>, memory: Memory, is_removal: bool, is_steady: bool) -> Self {
        Self { input, memory, steps: Vec::new(), recheck: None, is_removal, is_steady }
    }

    fn visitor(&mut self) -> Visitor<'a, '_> {
        Visitor {
            input: self.input,
            revision: self.memory.revision,
            around: &mut self.memory.around,
            steps: &mut self.steps,
            recheck: &mut self.recheck,
            is_removal: self.is_removal,
            is_steady: self.is_steady,
        }
    }

    /// The plugin lets the owner go, once nothing is left of what it wants.
    fn let_go(&self, site: &Site) -> Course {
        let owned = self.memory.around.site(site).into_iter().flat_map(|memory| &memory.owned);
        let left = owned.map(|owned| {
            let message = format!("Plugin {} still wants it; the owner goes when it is gone", site.plugin);
            Blocker::new("StillWanted", message).on(owned.object.clone())
        });
        let left: Vec<_> = left.collect();
        if left.is_empty() { Course::Go } else { Course::Wait(Verdict::Pending(left)) }
    }

    fn finish(self, name: &str, course: Course) -> Plan {
        let verdict = match course {
            Course::Wait(verdict) => verdict,
            Course::Go | Course::LeftOut if self.steps.is_empty() => Verdict::Ready,
            Course::Go | Course::LeftOut => Verdict::Pending(Vec::new()),
        };
        let view = view_of(name, &verdict);
        Plan {
            steps: self.steps,
            memory: self.memory,
            states: vec![view],
            verdict,
            recheck: self.recheck,
            is_gone: false,
        }
    }
}
