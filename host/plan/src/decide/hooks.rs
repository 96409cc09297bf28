//! Hooks before the first state of a revision, and after its last.

use std::time::Duration;

use pintle_api::{Answer, status::Phase};
use pintle_chart::manifest::HookEvent;

use super::Run;
use crate::{HookPhase, Operation, Step, hook};

impl Run<'_> {
    /// Hooks that come before any write of the revision. States wait for them.
    pub(super) fn visit_hooks_before(&mut self) {
        let (operation, skips) = (self.memory.operation(), &self.input.release.policy.skips_hooks);
        let (event, is_skipped) = match operation {
            Operation::Install => (HookEvent::PreInstall, skips.install),
            Operation::Upgrade => (HookEvent::PreUpgrade, skips.upgrade),
            Operation::Rollback => (HookEvent::PreRollback, skips.rollback),
        };
        if is_skipped {
            return;
        }
        let view = hook::run(self.input, event, &mut self.memory, &mut self.steps);
        self.wake_when_late(event);
        if let Some(view) = view {
            if view.phase != Phase::Ready {
                self.held.insert(String::new());
            }
            self.views.push(view);
        }
    }

    /// Hooks that come once every state of the revision is ready.
    pub(super) fn visit_hooks_after(&mut self) {
        let (operation, skips) = (self.memory.operation(), &self.input.release.policy.skips_hooks);
        let (event, is_skipped) = match operation {
            Operation::Install => (HookEvent::PostInstall, skips.install),
            Operation::Upgrade => (HookEvent::PostUpgrade, skips.upgrade),
            Operation::Rollback => (HookEvent::PostRollback, skips.rollback),
        };
        if is_skipped {
            return;
        }
        let is_due = self.steps.is_empty() && self.views.iter().all(|view| view.phase == Phase::Ready);
        self.views.extend(if is_due {
            hook::run(self.input, event, &mut self.memory, &mut self.steps)
        } else {
            hook::waiting(self.input, event)
        });
        self.wake_when_late(event);
    }

    /// A hook that runs is looked at again when its time is up.
    fn wake_when_late(&mut self, event: HookEvent) {
        let Some(limit) = self.input.release.timeout else { return };
        let (revision, now) = (self.memory.revision, self.input.now);
        let running =
            self.memory.hooks.iter().filter(|run| {
                run.revision == revision && run.event == event && run.phase == HookPhase::Running
            });
        let left = running.map(|run| limit - now.duration_since(run.since).as_secs()).min();
        if let Some(left) = left {
            self.wake_within(Duration::from_secs(left.max(0).unsigned_abs()));
        }
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
