//! Whether something is ready, in four words, and what is waited for.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ObjectRef;

/// One thing a gate is waiting for: an object, or a sentence a person can act on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    /// What is waited for, where it is an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    /// The node it concerns, where it concerns one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// CamelCase word for machines.
    pub reason: String,
    /// A sentence for people: what is wrong, and what would end it.
    pub message: String,
    /// When this blocker was first seen without a gap since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
}

/// What is known about readiness. Unknown is pending, never ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is as it should be.
    Ready,
    /// It is on its way.
    Pending(Vec<Blocker>),
    /// It failed in a way that a retry may mend.
    Transient(Vec<Blocker>),
    /// It failed; a person must change something.
    Fatal(Vec<Blocker>),
}

// === impl Blocker ===

impl Blocker {
    /// A blocker that is a sentence; see the other methods to name object and node.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { object: None, node: None, reason: reason.into(), message: message.into(), since: None }
    }

    /// The same blocker about an object.
    #[must_use]
    pub fn on(mut self, object: ObjectRef) -> Self {
        self.object = Some(object);
        self
    }

    /// The same blocker about a node.
    #[must_use]
    pub fn at_node(mut self, node: impl Into<String>) -> Self {
        self.node = Some(node.into());
        self
    }

    /// True when both speak of the same thing, whatever their message and time.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.object, &self.node, &self.reason) == (&other.object, &other.node, &other.reason)
    }
}

// === impl Verdict ===

impl Verdict {
    /// Pending for one reason.
    #[must_use]
    pub fn pending(blocker: Blocker) -> Self {
        Self::Pending(vec![blocker])
    }

    /// Failed for one reason that a retry may mend.
    #[must_use]
    pub fn transient(blocker: Blocker) -> Self {
        Self::Transient(vec![blocker])
    }

    /// Failed for one reason that a person must mend.
    #[must_use]
    pub fn fatal(blocker: Blocker) -> Self {
        Self::Fatal(vec![blocker])
    }

    /// True for [`Verdict::Ready`] alone.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready)
    }

    /// What is waited for; empty when ready.
    #[must_use]
    pub fn blockers(&self) -> &[Blocker] {
        match self {
            Self::Ready => &[],
            Self::Pending(blockers) | Self::Transient(blockers) | Self::Fatal(blockers) => blockers,
        }
    }

    /// Both must hold: the graver word, the blockers of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let graver = self.gravity().max(other.gravity());
        let mut blockers = self.into_blockers();
        for blocker in other.into_blockers() {
            if !blockers.contains(&blocker) {
                blockers.push(blocker);
            }
        }
        match graver {
            0 => Self::Ready,
            1 => Self::Pending(blockers),
            2 => Self::Transient(blockers),
            _ => Self::Fatal(blockers),
        }
    }

    fn gravity(&self) -> u8 {
        match self {
            Self::Ready => 0,
            Self::Pending(_) => 1,
            Self::Transient(_) => 2,
            Self::Fatal(_) => 3,
        }
    }

    fn into_blockers(self) -> Vec<Blocker> {
        match self {
            Self::Ready => Vec::new(),
            Self::Pending(blockers) | Self::Transient(blockers) | Self::Fatal(blockers) => blockers,
        }
    }
}

impl FromIterator<Verdict> for Verdict {
    fn from_iter<I: IntoIterator<Item = Self>>(verdicts: I) -> Self {
        verdicts.into_iter().fold(Self::Ready, Self::and)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graver_verdict_wins_and_no_blocker_is_lost() {
        let slow = Verdict::pending(Blocker::new("Slow", "a"));
        let broken = Verdict::fatal(Blocker::new("Broken", "b"));
        let both = Verdict::Ready.and(slow).and(broken);
        assert!(matches!(&both, Verdict::Fatal(blockers) if blockers.len() == 2));
        assert!([Verdict::Ready, Verdict::Ready].into_iter().collect::<Verdict>().is_ready());
    }
}
