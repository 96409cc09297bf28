//! Definitions under `crds/` of a chart: made before everything else, shared by all releases, never deleted.

use std::sync::Arc;

use pintle_api::{Answer, Blocker, Object, Verdict};

use super::{Run, view::PoolView};
use crate::{
    Apply, ApplyMode, Rendered, StateInput, Step,
    compare::{kind_unknown, terminating},
    judge, rendered_mark, verdict_of,
};

impl Run<'_> {
    /// Makes what is missing. What is there is changed only where that is asked for, and once for each text:
    /// releases that ask for different ones do not fight.
    pub(super) fn put_crds_in_place(
        &mut self,
        state: &StateInput,
        objects: &[Rendered],
        view: &mut PoolView,
    ) {
        for Rendered { object, .. } in objects {
            let reference = object.reference();
            view.objects += 1;
            if let Some(refusal) = self.input.answers.refusals.get(&reference) {
                self.memory.crds.remove(&reference.name);
                view.add(&reference, verdict_of(refusal, &reference));
                continue;
            }
            let live = match self.input.answers.written.get(&reference) {
                Some(written) => Answer::Found(Arc::clone(written)),
                None => self.input.facts.get(&reference),
            };
            match live {
                Answer::Missing => self.write_crd(state, object, ApplyMode::Create, view),
                Answer::Found(live) if live.is_terminating() => {
                    view.add(&reference, Verdict::pending(terminating(&live)));
                }
                Answer::Found(_) if self.replaces(object) => {
                    self.write_crd(state, object, ApplyMode::Repair, view);
                }
                Answer::Found(live) => view.add(&reference, judge(&live, self.input.facts, true)),
                Answer::NotYet => view.is_incomplete = true,
                Answer::KindUnknown => view.add(&reference, Verdict::pending(kind_unknown(object))),
                Answer::Denied(why) => {
                    let blocker = Blocker::new("Forbidden", why).on(reference.clone());
                    view.add(&reference, Verdict::transient(blocker));
                }
            }
        }
    }

    fn replaces(&self, object: &Object) -> bool {
        let written = self.memory.crds.get(object.name());
        self.input.release.policy.replaces_crds && written != Some(&rendered_mark(object))
    }

    fn write_crd(&mut self, state: &StateInput, object: &Object, mode: ApplyMode, view: &mut PoolView) {
        view.writes += 1;
        self.memory.crds.insert(object.name().to_owned(), rendered_mark(object));
        self.steps.push(Step::Apply(Apply {
            object: object.clone(),
            mode,
            state: state.name.clone(),
            pool: String::new(),
            rank: 0,
            is_inventory: false,
            whole: None,
            repairs: None,
        }));
    }
}
