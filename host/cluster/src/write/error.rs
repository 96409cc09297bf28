//! Why a write did not happen, by cause, and what to do about it.

use std::{fmt, time::Duration};

use pintle_api::ObjectRef;

use crate::{counters::Verb, lease::NotLeading, link::Failure};

/// A write that did not happen, or of which nobody knows. It names the object; `source()` says more.
#[derive(Debug)]
pub struct ApiError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    verb: Verb,
    target: ObjectRef,
    cause: Cause,
}

/// A field that another manager holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldConflict {
    /// Who holds it, as `kubectl-edit`.
    pub manager: String,
    /// Path as the server writes it, `.spec.replicas`.
    pub field: String,
}

/// A field with a value the server does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidField {
    /// Path as the server writes it, `spec.template.spec.containers[0].image`; empty where it names none.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

/// The causes that lead to different verdicts (D10).
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// 409 of a server-side apply: other managers hold fields with other values.
    #[error("{}", conflicts(.0))]
    Conflict(Vec<FieldConflict>),
    /// 409 or a failed test: the object is another version, another uid, or exists where it must not.
    #[error("the object is not the one that was read: {0}")]
    Stale(String),
    /// 409 of a create.
    #[error("an object of this name exists already")]
    AlreadyExists,
    /// The server does not serve the kind.
    #[error("the cluster does not serve the kind {0}; install its CustomResourceDefinition")]
    KindUnknown(String),
    /// 404 of the object itself.
    #[error("it does not exist")]
    NotFound,
    /// 404 of the namespace.
    #[error("namespace {0} does not exist; create it")]
    NamespaceMissing(String),
    /// 403 because the namespace is being deleted.
    #[error("namespace {0} is being deleted; wait until it is gone")]
    NamespaceTerminating(String),
    /// 403 of RBAC, with the rule to add.
    #[error("{account} may not {verb} {resource}{place}; add this rule to a role of that account", place = place(.namespace))]
    Forbidden {
        /// Account that lacks the right.
        account: String,
        /// Verb it needs.
        verb: String,
        /// Resource as `daemonsets.apps`, with its subresource where that is meant.
        resource: String,
        /// Namespace it needs it in.
        namespace: Option<String>,
        /// What the server said, which also names rights that a role would pass on.
        message: String,
    },
    /// 403 of the API server itself: a role or binding would pass on what its author does not hold.
    #[error(
        "{account} may not write {resource} that grant what it does not hold itself; add to a role of that \
         account: {rights}"
    )]
    NotHeld {
        /// Account that lacks the rights.
        account: String,
        /// Resource that was to be written.
        resource: String,
        /// The rights, as the server names them.
        rights: String,
    },
    /// 403 of a ResourceQuota or LimitRange.
    #[error("a quota forbids it: {0}")]
    Quota(String),
    /// A webhook or an admission policy said no.
    #[error("admission refused it: {0}")]
    Refused(String),
    /// 422 with fields.
    #[error("{}", invalid(.0))]
    Invalid(Vec<InvalidField>),
    /// 422 because a field cannot be changed after creation.
    #[error("{}", invalid(.0))]
    Immutable(Vec<InvalidField>),
    /// 429.
    #[error("the API server asks to slow down")]
    TooManyRequests {
        /// When it wants to be asked again.
        after: Option<Duration>,
    },
    /// 500 because a webhook could not be called.
    #[error("an admission webhook could not be called: {0}")]
    Webhook(String),
    /// The request was sent and nobody knows what became of it; read before writing again.
    #[error("the outcome is unknown")]
    OutcomeUnknown(#[source] Option<Failure>),
    /// 410.
    #[error("what the request refers to is gone: {0}")]
    Gone(String),
    /// 401.
    #[error("the API server does not accept the credentials of {0}")]
    Unauthorized(String),
    /// 503 and other answers that pass.
    #[error("the API server cannot serve the request now: {0}")]
    Unavailable(String),
    /// The request was not sent.
    #[error("could not reach the API server")]
    Unreachable(#[source] Failure),
    /// This process may not write.
    #[error("this process does not lead")]
    NotLeading(#[source] NotLeading),
    /// 400, 405, 413, 415: the request itself is wrong.
    #[error("the API server refused the request: {0}")]
    Refusal(String),
    /// Anything else.
    #[error("the API server answered what it never should")]
    Unexpected(#[source] Failure),
}

/// What a caller may do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Nothing helps until somebody changes something: input, rights, quota, the other object.
    WhenChanged,
    /// The same again, with a growing interval.
    Later,
    /// The same again after this time.
    After(Duration),
    /// Read the object, then decide anew.
    Reread,
    /// Not at all by this process.
    Never,
}

// === impl ApiError ===

impl ApiError {
    pub(crate) fn new(verb: Verb, target: ObjectRef, cause: Cause) -> Self {
        Self(Box::new(Inner { verb, target, cause }))
    }

    /// Why.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.0.cause
    }

    /// What was to be written.
    #[must_use]
    pub fn target(&self) -> &ObjectRef {
        &self.0.target
    }

    /// What was to be done with it.
    #[must_use]
    pub fn verb(&self) -> Verb {
        self.0.verb
    }

    /// See [`Cause::label`].
    #[must_use]
    pub fn label(&self) -> &'static str {
        self.0.cause.label()
    }

    /// See [`Cause::retry`].
    #[must_use]
    pub fn retry(&self) -> Retry {
        self.0.cause.retry()
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { verb, target, cause } = &*self.0;
        write!(f, "could not {verb} {target}: {cause}")
    }
}

impl std::error::Error for ApiError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.0.cause)
    }
}

// === impl Cause ===

impl Cause {
    /// A word for metrics.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Conflict(_) => "conflict",
            Self::Stale(_) => "stale",
            Self::AlreadyExists => "already_exists",
            Self::KindUnknown(_) => "kind_unknown",
            Self::NotFound => "not_found",
            Self::NamespaceMissing(_) => "namespace_missing",
            Self::NamespaceTerminating(_) => "namespace_terminating",
            Self::Forbidden { .. } | Self::NotHeld { .. } => "forbidden",
            Self::Quota(_) => "quota",
            Self::Refused(_) => "refused",
            Self::Invalid(_) => "invalid",
            Self::Immutable(_) => "immutable",
            Self::TooManyRequests { .. } => "too_many_requests",
            Self::Webhook(_) => "webhook",
            Self::OutcomeUnknown(_) => "outcome_unknown",
            Self::Gone(_) => "gone",
            Self::Unauthorized(_) => "unauthorized",
            Self::Unavailable(_) => "unavailable",
            Self::Unreachable(_) => "unreachable",
            Self::NotLeading(_) => "not_leading",
            Self::Refusal(_) => "refusal",
            Self::Unexpected(_) => "unexpected",
        }
    }

    /// What may be done about it.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::Conflict(_) | Self::Invalid(_) | Self::Immutable(_) | Self::Refusal(_) => {
                Retry::WhenChanged
            }
            Self::Stale(_)
            | Self::AlreadyExists
            | Self::NotFound
            | Self::OutcomeUnknown(_)
            | Self::Gone(_) => Retry::Reread,
            // Nothing tells when a quota, a role, a webhook or a policy changes, so they are asked again.
            Self::Forbidden { .. } | Self::NotHeld { .. } => Retry::Later,
            Self::Quota(_) | Self::Refused(_) | Self::KindUnknown(_) => Retry::Later,
            Self::NamespaceMissing(_) | Self::NamespaceTerminating(_) | Self::Webhook(_) => Retry::Later,
            Self::Unauthorized(_) | Self::Unavailable(_) | Self::Unreachable(_) | Self::Unexpected(_) => {
                Retry::Later
            }
            Self::TooManyRequests { after } => after.map_or(Retry::Later, Retry::After),
            Self::NotLeading(_) => Retry::Never,
        }
    }
}

fn place(namespace: &Option<String>) -> String {
    namespace.as_ref().map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default()
}

fn conflicts(fields: &[FieldConflict]) -> String {
    if fields.is_empty() {
        return "another manager holds its fields".to_owned();
    }
    let fields: Vec<String> =
        fields.iter().map(|held| format!("{} is held by {}", held.field, held.manager)).collect();
    fields.join(", ")
}

fn invalid(fields: &[InvalidField]) -> String {
    let said = fields.iter().map(|field| match field.path.as_str() {
        "" => field.message.clone(),
        path => format!("{path}: {}", field.message),
    });
    said.collect::<Vec<_>>().join(", ")
}
