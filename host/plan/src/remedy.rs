//! What is done when a revision fails: bounded, remembered, told.

use std::time::Duration;

use pintle_api::{
    Timestamp,
    watch::{Remediation, RemediationStrategy},
};
use serde::{Deserialize, Serialize};

use crate::Memory;

/// Pause before the first retry; doubles up to [`LONGEST`].
const PAUSE: Duration = Duration::from_secs(1);
/// Longest pause between two tries.
const LONGEST: Duration = Duration::from_secs(300);

/// A revision that failed, and what is done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remedy {
    /// Mark of what was to be applied; with another one everything begins anew.
    pub mark: String,
    /// How often it failed.
    pub failures: u32,
    /// The revision that failed last.
    pub revision: u32,
    /// Why, as the status said it.
    pub why: String,
    /// What is done.
    pub course: Course,
}

/// What is done about a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Course {
    /// It is tried again from this time on.
    Wait(Timestamp),
    /// It is being tried again.
    Trying,
    /// An earlier revision is applied as a new one.
    Back {
        /// The earlier revision.
        to: u32,
        /// When what failed is tried again; absent before the rollback is done, and when nothing is tried
        /// any more.
        again: Option<Timestamp>,
        /// Why the rollback failed too; empty while it did not.
        failed: String,
    },
    /// The release is being uninstalled.
    Uninstall,
    /// Nothing more is done.
    Spent,
}

/// What a failure asks for.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// Mark of what was to be applied.
    pub mark: &'a str,
    /// Why it failed.
    pub why: &'a str,
    /// The last revision that was deployed.
    pub deployed: Option<u32>,
    /// When it failed.
    pub now: Timestamp,
}

// === impl Remedy ===

impl Remedy {
    /// The revision that is being gone back to.
    #[must_use]
    pub fn back_to(&self) -> Option<u32> {
        match self.course {
            Course::Back { to, .. } => Some(to),
            _ => None,
        }
    }

    /// When time alone makes something happen.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        match self.course {
            Course::Wait(at) => Some(at),
            Course::Back { again, .. } => again,
            _ => None,
        }
    }

    fn pause(&self) -> Duration {
        PAUSE.saturating_mul(1 << self.failures.saturating_sub(1).min(16)).min(LONGEST)
    }

    fn next_try(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.pause()).unwrap_or(now)
    }
}

/// Decides what is done about the failure of the revision in use. False when it was decided before.
pub fn fail(memory: &mut Memory, policy: &Remediation, failure: Failure<'_>) -> bool {
    let before = memory.remedy.take().filter(|remedy| remedy.mark == failure.mark);
    if let Some(known) = &before
        && matches!(known.course, Course::Wait(_) | Course::Uninstall | Course::Spent)
    {
        memory.remedy = before;
        return false;
    }
    if let Some(Remedy { course: Course::Back { to, failed, .. }, .. }) = &before {
        let (to, is_new) = (*to, failed.is_empty());
        let failed = if is_new { failure.why.to_owned() } else { failed.clone() };
        memory.remedy =
            before.map(|known| Remedy { course: Course::Back { to, again: None, failed }, ..known });
        return is_new;
    }
    let mut remedy = Remedy {
        mark: failure.mark.to_owned(),
        failures: before.map_or(0, |known| known.failures).saturating_add(1),
        revision: memory.revision,
        why: failure.why.to_owned(),
        course: Course::Spent,
    };
    let may_retry = remedy.failures <= policy.retries;
    remedy.course = match (policy.strategy, failure.deployed) {
        (RemediationStrategy::Rollback, Some(to)) => Course::Back { to, again: None, failed: String::new() },
        (RemediationStrategy::Uninstall, _) if may_retry => Course::Uninstall,
        (RemediationStrategy::Rollback, None) if may_retry => Course::Wait(remedy.next_try(failure.now)),
        _ => Course::Spent,
    };
    memory.remedy = Some(remedy);
    true
}

/// Takes note that what was being applied is ready. True when that changed something.
pub fn succeed(memory: &mut Memory, policy: &Remediation, now: Timestamp) -> bool {
    let Some(remedy) = memory.remedy.take() else { return false };
    let Course::Back { to, again: None, failed } = &remedy.course else {
        let is_over = !matches!(remedy.course, Course::Back { .. });
        memory.remedy = (!is_over).then_some(remedy);
        return is_over;
    };
    // A rollback that was mended by waiting is a rollback that is done.
    let was_failed = !failed.is_empty();
    let again = (remedy.failures <= policy.retries).then(|| remedy.next_try(now));
    let changes = again.is_some() || was_failed;
    let course = Course::Back { to: *to, again, failed: String::new() };
    memory.remedy = Some(Remedy { course, ..remedy });
    changes
}

/// Begins the next try where its time has come. What was to be applied has another mark: all is forgotten.
pub fn resume(memory: &mut Memory, mark: &str, now: Timestamp) {
    let Some(remedy) = &mut memory.remedy else { return };
    if remedy.mark != mark {
        memory.remedy = None;
        return;
    }
    if remedy.due().is_some_and(|due| due <= now) {
        remedy.course = Course::Trying;
        memory.revision_mark.clear();
    }
}

/// Takes note that the release was uninstalled: what follows is an installation again, the next of the tries that
/// are left.
pub fn uninstalled(memory: &mut Memory) {
    memory.base = memory.revision;
    memory.seed_mark.clear();
    memory.deployed = 0;
    memory.revision_mark.clear();
    memory.passes.clear();
    memory.objects.clear();
    memory.hooks.clear();
    if let Some(remedy) = &mut memory.remedy {
        remedy.course = Course::Trying;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    const MARK: &str = "m";

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn fails(memory: &mut Memory, policy: &Remediation, deployed: Option<u32>, second: i64) -> bool {
        fail(memory, policy, Failure { mark: MARK, why: "broken", deployed, now: at(second) })
    }

    fn course(memory: &Memory) -> Course {
        memory.remedy.as_ref().unwrap().course.clone()
    }

    #[test]
    fn an_upgrade_goes_back_and_is_tried_again_as_often_as_allowed() {
        let policy = Remediation { retries: 1, strategy: RemediationStrategy::Rollback };
        let mut memory = Memory { revision: 2, revision_mark: MARK.into(), ..Memory::default() };
        assert!(fails(&mut memory, &policy, Some(1), 10));
        assert_eq!(memory.remedy.as_ref().unwrap().back_to(), Some(1));
        memory.revision = 3;
        assert!(succeed(&mut memory, &policy, at(20)));
        assert_eq!(course(&memory), Course::Back { to: 1, again: Some(at(21)), failed: String::new() });
        resume(&mut memory, MARK, at(20));
        assert!(matches!(course(&memory), Course::Back { .. }), "its time has not come");
        resume(&mut memory, MARK, at(21));
        assert_eq!((course(&memory), memory.revision_mark.as_str()), (Course::Trying, ""));
        memory.revision = 4;
        assert!(fails(&mut memory, &policy, Some(3), 30));
        assert_eq!(memory.remedy.as_ref().unwrap().back_to(), Some(3));
        assert!(!succeed(&mut memory, &policy, at(40)), "nothing is tried a third time");
        assert_eq!(memory.remedy.as_ref().unwrap().due(), None);
        resume(&mut memory, "other values", at(50));
        assert_eq!(memory.remedy, None, "a new input begins anew");
    }

    #[test]
    fn a_rollback_that_fails_too_is_the_end() {
        let policy = Remediation { retries: 5, strategy: RemediationStrategy::Rollback };
        let mut memory = Memory { revision: 2, ..Memory::default() };
        fails(&mut memory, &policy, Some(1), 10);
        assert!(fails(&mut memory, &policy, Some(1), 11));
        assert_eq!(course(&memory), Course::Back { to: 1, again: None, failed: "broken".into() });
        assert!(!fails(&mut memory, &policy, Some(1), 12), "it is told once");
        assert!(succeed(&mut memory, &policy, at(13)), "unless waiting mends it");
    }

    #[test]
    fn an_installation_is_tried_again_and_then_left_to_be_looked_at() {
        for (strategy, first) in [
            (RemediationStrategy::Rollback, Course::Wait(at(11))),
            (RemediationStrategy::Uninstall, Course::Uninstall),
        ] {
            let policy = Remediation { retries: 1, strategy };
            let mut memory = Memory { revision: 1, ..Memory::default() };
            assert!(fails(&mut memory, &policy, None, 10));
            assert_eq!(course(&memory), first);
            assert!(!fails(&mut memory, &policy, None, 10), "once for each try");
            if strategy == RemediationStrategy::Uninstall {
                uninstalled(&mut memory);
                assert_eq!((memory.base, course(&memory)), (1, Course::Trying));
            }
            resume(&mut memory, MARK, at(11));
            assert_eq!(course(&memory), Course::Trying);
            memory.revision = 2;
            assert!(fails(&mut memory, &policy, None, 20));
            assert_eq!(course(&memory), Course::Spent);
        }
    }

    #[test]
    fn what_succeeds_forgets_that_it_failed() {
        let policy = Remediation { retries: 1, strategy: RemediationStrategy::Rollback };
        let mut memory = Memory::default();
        fails(&mut memory, &policy, None, 1);
        resume(&mut memory, MARK, at(100));
        assert!(succeed(&mut memory, &policy, at(101)) && memory.remedy.is_none());
    }
}
