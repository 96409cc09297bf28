//! Hooks before the first state of a revision, and after its last.

use pintle_api::{Answer, status::Phase};
use pintle_chart::manifest::HookEvent;

use super::Run;
use crate::{Step, hook};

impl Run<'_> {
    /// Hooks that come before any write of the revision. States wait for them.
    pub(super) fn visit_hooks_before(&mut self) {
        let event = if self.memory.is_upgrade() { HookEvent::PreUpgrade } else { HookEvent::PreInstall };
        let view = hook::run(self.input, event, &mut self.memory, &mut self.steps);
        if let Some(view) = view {
            if view.phase != Phase::Ready {
                self.held.insert(String::new());
            }
            self.views.push(view);
        }
    }

    /// Hooks that come once every state of the revision is ready.
    pub(super) fn visit_hooks_after(&mut self) {
        let event = if self.memory.is_upgrade() { HookEvent::PostUpgrade } else { HookEvent::PostInstall };
        let is_due = self.steps.is_empty() && self.views.iter().all(|view| view.phase == Phase::Ready);
        self.views.extend(if is_due {
            hook::run(self.input, event, &mut self.memory, &mut self.steps)
        } else {
            hook::waiting(self.input, event)
        });
    }

    /// What hooks of an earlier revision left held is let go; then their runs are forgotten.
    pub(super) fn forget_old_hooks(&mut self) {
        let revision = self.memory.revision;
        let (old, new) =
            std::mem::take(&mut self.memory.hooks).into_iter().partition(|run| run.revision != revision);
        self.memory.hooks = new;
        for run in Vec::<crate::HookRun>::into_iter(old) {
            match self.input.facts.get(&run.object) {
                Answer::Found(live) if hook::is_held(&live) && !hook::is_of(&live, self.memory.revision) => {
                    self.steps.push(Step::Release(run.object.clone()));
                    self.memory.hooks.push(run);
                }
                Answer::NotYet | Answer::Denied(_) => self.memory.hooks.push(run),
                Answer::Found(_) | Answer::Missing | Answer::KindUnknown => {}
            }
        }
    }
}
