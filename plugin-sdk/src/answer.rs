//! What a plugin answers: ready, pending with blockers, or why it cannot say.

use std::{fmt, time::Duration};

use serde_json::Value;

use crate::bindings::{
    exports::pintle::plugin::readiness,
    pintle::plugin::types::{
        self, Blocker, Condition, ConditionStatus, Event, EventKind, ObjectQuery, ObjectRef, Report, Retry,
        Verdict,
    },
};

/// Ready or pending, and what else is to be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    verdict: Verdict,
    report: Report,
}

/// What is being waited for.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending(types::Pending);

/// Why there is no answer. It alone says when the host asks again.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    retry: Retry,
    message: String,
    blockers: Vec<Blocker>,
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
        Self { verdict: Verdict::Ready, report: no_report() }
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

    /// Tells a condition, which the host names `<plugin>/<name>`.
    #[must_use]
    pub fn condition(mut self, name: &str, status: ConditionStatus, reason: &str, message: &str) -> Self {
        let [name, reason, message] = [name, reason, message].map(str::to_owned);
        self.report.conditions.push(Condition { name, status, reason, message });
        self
    }

    /// Tells an event about the owner.
    #[must_use]
    pub fn event(mut self, kind: EventKind, reason: &str, message: &str) -> Self {
        let (reason, message) = (reason.to_owned(), message.to_owned());
        self.report.events.push(Event { kind, reason, message, regarding: None });
        self
    }

    /// Merges into the plugin's own part of the status.
    #[must_use]
    pub fn status(mut self, patch: &Value) -> Self {
        self.report.status = Some(patch.to_string());
        self
    }

    /// Keeps this for the next call, as [`crate::inputs::saved`]; at most 16 KiB. Null clears it.
    #[must_use]
    pub fn save(mut self, value: &Value) -> Self {
        self.report.save = Some(value.to_string());
        self
    }
}

impl From<Pending> for Answer {
    fn from(Pending(pending): Pending) -> Self {
        Self { verdict: Verdict::Pending(pending), report: no_report() }
    }
}

impl From<Answer> for readiness::Answer {
    fn from(Answer { verdict, report }: Answer) -> Self {
        Self { verdict, report }
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
        Self { retry: Retry::WhenInputsChange, message: message.into(), blockers: Vec::new() }
    }

    /// It may go better the next time.
    pub fn for_now(message: impl Into<String>) -> Self {
        Self { retry: Retry::WithBackOff, message: message.into(), blockers: Vec::new() }
    }

    /// The operation has failed.
    pub fn for_good(message: impl Into<String>) -> Self {
        Self { retry: Retry::Never, message: message.into(), blockers: Vec::new() }
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
    fn from(Failure { retry, message, blockers }: Failure) -> Self {
        Self { retry, message, blockers, report: no_report() }
    }
}

fn no_report() -> Report {
    Report {
        conditions: Vec::new(),
        events: Vec::new(),
        actions: Vec::new(),
        status: None,
        save: None,
        extra: None,
    }
}
