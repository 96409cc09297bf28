//! What a plugin answers: ready, pending with blockers, or why it cannot say.

use std::{fmt, time::Duration};

use crate::{
    bindings::pintle::plugin::types::{self, Blocker, ObjectQuery, ObjectRef, Report, Retry, Verdict},
    report::{self, tells},
};

/// Ready or pending, and what else is to be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub(crate) verdict: Verdict,
    pub(crate) report: Report,
}

/// What is being waited for.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending(pub(crate) types::Pending);

/// Why there is no answer. It alone says when the host asks again.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    retry: Retry,
    message: String,
    blockers: Vec<Blocker>,
    // In a box, since every function of a plugin may return it.
    report: Box<Report>,
}

// === impl ObjectRef ===

impl ObjectRef {
    /// An object of cluster scope; see [`ObjectRef::within`].
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self { api_version: api_version.into(), kind: kind.into(), namespace: None, name: name.into() }
    }

    /// The same inside a namespace.
    #[must_use]
    pub fn within(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }
}

// === impl Blocker ===

impl Blocker {
    /// One thing that is waited for: a CamelCase word for machines, a sentence for people. It is
    /// about the target unless [`Blocker::on`] or [`Blocker::at_node`] says otherwise.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { object: None, node: None, reason: reason.into(), message: message.into() }
    }

    /// The same about an object.
    #[must_use]
    pub fn on(mut self, object: ObjectRef) -> Self {
        self.object = Some(object);
        self
    }

    /// The same about a node.
    #[must_use]
    pub fn at_node(mut self, node: impl Into<String>) -> Self {
        self.node = Some(node.into());
        self
    }
}

// === impl Answer ===

impl Answer {
    /// It is as it should be.
    #[must_use]
    pub fn ready() -> Self {
        Self { verdict: Verdict::Ready, report: report::nothing() }
    }

    /// Ready, unless there is something to wait for.
    pub fn unless(blockers: impl IntoIterator<Item = Blocker>) -> Self {
        let blockers: Vec<Blocker> = blockers.into_iter().collect();
        if blockers.is_empty() { Self::ready() } else { Pending::new(blockers).into() }
    }

    /// True when ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.verdict, Verdict::Ready)
    }

    /// What is waited for; empty when ready.
    #[must_use]
    pub fn blockers(&self) -> &[Blocker] {
        match &self.verdict {
            Verdict::Ready => &[],
            Verdict::Pending(pending) => &pending.blockers,
        }
    }
}

tells!(Answer, Failure);

impl From<Pending> for Answer {
    fn from(Pending(pending): Pending) -> Self {
        Self { verdict: Verdict::Pending(pending), report: report::nothing() }
    }
}

// === impl Pending ===

impl Pending {
    /// Waits for these; name at least one.
    #[must_use]
    pub fn new(blockers: Vec<Blocker>) -> Self {
        Self(types::Pending { blockers, watch: Vec::new(), recheck_after_ms: None, progress: None })
    }

    /// Waits for one object.
    pub fn on(object: ObjectRef, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(vec![Blocker::new(reason, message).on(object)])
    }

    /// What is waited for.
    #[must_use]
    pub fn blockers(&self) -> &[Blocker] {
        &self.0.blockers
    }

    /// Watches more than what was read, which is watched anyway.
    #[must_use]
    pub fn watch(mut self, query: ObjectQuery) -> Self {
        self.0.watch.push(query);
        self
    }

    /// Asks to be called again after this time, for what has no events. The host takes 1 s to 1 h.
    #[must_use]
    pub fn recheck(mut self, after: Duration) -> Self {
        self.0.recheck_after_ms = Some(u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Says how far it is, in percent.
    #[must_use]
    pub fn progress(mut self, percent: u8) -> Self {
        self.0.progress = Some(percent);
        self
    }
}

// === impl Failure ===

impl Failure {
    /// A person must change the resource, the config or the grants first.
    pub fn until_changed(message: impl Into<String>) -> Self {
        Self::new(Retry::WhenInputsChange, message.into())
    }

    /// It may go better the next time.
    pub fn for_now(message: impl Into<String>) -> Self {
        Self::new(Retry::WithBackOff, message.into())
    }

    /// The operation has failed.
    pub fn for_good(message: impl Into<String>) -> Self {
        Self::new(Retry::Never, message.into())
    }

    fn new(retry: Retry, message: String) -> Self {
        Self { retry, message, blockers: Vec::new(), report: Box::new(report::nothing()) }
    }

    /// Names what the failure is about.
    #[must_use]
    pub fn about(mut self, blocker: Blocker) -> Self {
        self.blockers.push(blocker);
        self
    }

    /// When the host asks again.
    #[must_use]
    pub fn retry(&self) -> Retry {
        self.retry
    }

    /// What it is about.
    #[must_use]
    pub fn blockers(&self) -> &[Blocker] {
        &self.blockers
    }

    /// What went wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for types::Failure {
    fn from(Failure { retry, message, blockers, report }: Failure) -> Self {
        Self { retry, message, blockers, report: *report }
    }
}
