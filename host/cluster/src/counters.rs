//! Requests by verb and resource.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, PoisonError},
};

/// What a request does, in the words of the API server's authorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// One object.
    Get,
    /// Objects of one kind.
    List,
    /// Objects of one kind, and what becomes of them.
    Watch,
    /// A new object.
    Create,
    /// A server-side apply or another patch.
    Patch,
    /// A replacement; only leases are replaced.
    Update,
    /// A deletion.
    Delete,
}

/// How many requests were sent, by verb and resource (`daemonsets.apps`, `leases.coordination.k8s.io/…`).
#[derive(Debug, Default)]
pub struct Counters {
    sent: Mutex<BTreeMap<(Verb, String), u64>>,
}

// === impl Verb ===

impl Verb {
    /// The verb as a role names it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }

    /// True when the cluster is another one after it.
    #[must_use]
    pub fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl Counters ===

impl Counters {
    /// Every count, sorted by verb and resource.
    #[must_use]
    pub fn snapshot(&self) -> Vec<(Verb, String, u64)> {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.iter().map(|((verb, resource), count)| (*verb, resource.clone(), *count)).collect()
    }

    /// Requests that change the cluster.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.sum(Verb::is_write)
    }

    /// Requests of any kind.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.sum(|_| true)
    }

    /// Requests of one verb on one resource.
    #[must_use]
    pub fn count(&self, verb: Verb, resource: &str) -> u64 {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.get(&(verb, resource.to_owned())).copied().unwrap_or_default()
    }

    pub(crate) fn add(&self, verb: Verb, resource: &str) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        *sent.entry((verb, resource.to_owned())).or_default() += 1;
    }

    fn sum(&self, counts: impl Fn(Verb) -> bool) -> u64 {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.iter().filter(|((verb, _), _)| counts(*verb)).map(|(_, count)| count).sum()
    }
}
