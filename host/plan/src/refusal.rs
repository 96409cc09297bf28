//! One table from what the API server refuses to a verdict.

use pintle_api::{Blocker, ObjectRef, Verdict};

/// A write that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why, in one word.
    pub cause: Cause,
    /// What the server said, on one line.
    pub message: String,
}

/// Why the API server refuses a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Another manager holds a field.
    Conflict,
    /// The kind is not served.
    KindUnknown,
    /// The namespace is not there.
    NamespaceMissing,
    /// The namespace is being deleted.
    NamespaceTerminating,
    /// A rule of RBAC is missing.
    Forbidden,
    /// A quota is used up.
    Quota,
    /// The object does not fit its schema.
    Invalid,
    /// A field that cannot change would change.
    Immutable,
    /// The server asks for a pause.
    TooManyRequests,
    /// An admission webhook failed or refused.
    Webhook,
    /// Nobody knows whether the write was done.
    TimedOut,
    /// The server cannot be reached or failed.
    Unavailable,
}

// === impl Cause ===

impl Cause {
    /// CamelCase word for blockers and metrics.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Conflict => "OwnedByOther",
            Self::KindUnknown => "KindNotInstalled",
            Self::NamespaceMissing => "NamespaceMissing",
            Self::NamespaceTerminating => "NamespaceTerminating",
            Self::Forbidden => "Forbidden",
            Self::Quota => "QuotaExceeded",
            Self::Invalid => "Invalid",
            Self::Immutable => "ImmutableField",
            Self::TooManyRequests => "ServerBusy",
            Self::Webhook => "WebhookFailed",
            Self::TimedOut => "OutcomeUnknown",
            Self::Unavailable => "ServerUnavailable",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Conflict => "set `adopt: Force` on the owner, or remove the field there",
            Self::KindUnknown => "install its CustomResourceDefinition",
            Self::NamespaceMissing => "create the namespace, or let the chart name another",
            Self::NamespaceTerminating => "wait until it is gone, or find what holds it",
            Self::Forbidden => "add the rule to the operator's role",
            Self::Quota => "raise the quota, or free what it counts",
            Self::Invalid => "mend the template",
            Self::Immutable => "delete the object: it is made anew",
            Self::Webhook => "see the webhook's own pods",
            Self::TooManyRequests | Self::TimedOut | Self::Unavailable => "it is tried again",
        }
    }
}

/// What a refusal says about readiness: whether waiting, retrying or a person mends it.
#[must_use]
pub fn verdict_of(refusal: &Refusal, object: &ObjectRef) -> Verdict {
    let message = format!("{}; {}", refusal.message, refusal.cause.advice());
    let blocker = Blocker::new(refusal.cause.reason(), message).on(object.clone());
    match refusal.cause {
        Cause::KindUnknown | Cause::NamespaceMissing | Cause::NamespaceTerminating | Cause::Quota => {
            Verdict::pending(blocker)
        }
        Cause::TooManyRequests | Cause::Webhook | Cause::TimedOut | Cause::Unavailable | Cause::Forbidden => {
            Verdict::transient(blocker)
        }
        Cause::Conflict | Cause::Invalid | Cause::Immutable => Verdict::fatal(blocker),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_asked_only_for_what_waiting_cannot_mend() {
        let object = ObjectRef::new("v1", "ConfigMap", "a").within("b");
        let verdict = |cause| verdict_of(&Refusal { cause, message: "no".into() }, &object);
        assert!(matches!(verdict(Cause::Invalid), Verdict::Fatal(_)));
        assert!(matches!(verdict(Cause::KindUnknown), Verdict::Pending(_)));
        assert!(matches!(verdict(Cause::TimedOut), Verdict::Transient(_)));
        let immutable = verdict(Cause::Immutable);
        let said = immutable.blockers().first().map(|blocker| blocker.message.as_str());
        assert_eq!(said, Some("no; delete the object: it is made anew"), "no annotation that nobody serves");
        let forbidden = verdict(Cause::Forbidden);
        assert_eq!(forbidden.blockers().first().map(|b| b.reason.as_str()), Some("Forbidden"));
    }
}
