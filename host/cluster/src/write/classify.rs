//! From what the server answered to a cause.
//!
//! Reasons and details are used where the API has them; for what it only says in words (quota, admission,
//! immutable fields) the words are those of Kubernetes 1.33 to 1.36.

use kube::core::{Status, response::StatusCause};
use pintle_api::ObjectRef;

use super::error::{Cause, FieldConflict, InvalidField};
use crate::link::Failure;

/// What the server says of a JSON patch that does not apply, a failed `test` among them.
const PATCH_FAILED: &str = "the server rejected our request due to an error in our request";

/// Words of messages about fields that cannot be changed, in lower case.
const IMMUTABLE: [&str; 8] = [
    "immutable",
    "may not change once set",
    "may not be changed",
    "cannot be changed",
    "cannot change",
    "updates to ",
    "may not change fields",
    "may not update",
];

pub(super) fn cause(failure: Failure, target: &ObjectRef, account: &str) -> Cause {
    match failure {
        Failure::Status { status, retry_after } => {
            let told = of_status(&status, target, account);
            told.unwrap_or_else(|| match status.code {
                429 => Cause::TooManyRequests { after: retry_after },
                503 if retry_after.is_some() => Cause::TooManyRequests { after: retry_after },
                500..=599 => Cause::Unavailable(status.message.clone()),
                400..=499 => Cause::Refusal(status.message.clone()),
                _ => Cause::Unexpected(Failure::Status { status, retry_after }),
            })
        }
        failure @ (Failure::Unreachable(_) | Failure::Malformed(_)) => Cause::Unreachable(failure),
        failure @ (Failure::Broken(_) | Failure::TimedOut | Failure::Unreadable(_)) => {
            Cause::OutcomeUnknown(Some(failure))
        }
    }
}

fn of_status(status: &Status, target: &ObjectRef, account: &str) -> Option<Cause> {
    let message = status.message.as_str();
    if is_refused(message) {
        return Some(Cause::Refused(message.to_owned()));
    }
    match status.code {
        400 if message.contains("strict decoding error") => Some(Cause::Invalid(vec![whole(message)])),
        401 => Some(Cause::Unauthorized(account.to_owned())),
        403 => Some(forbidden(status, account)),
        404 => Some(missing(status, target)),
        // Until the last object of a kind that goes is gone, its others can be changed and none made.
        405 if message.contains("definition is terminating") => {
            Some(Cause::KindUnknown(target.gvk().to_string()))
        }
        409 => Some(conflict(status)),
        410 => Some(Cause::Gone(message.to_owned())),
        422 => Some(invalid(status)),
        500 if message.contains("failed calling webhook") => Some(Cause::Webhook(message.to_owned())),
        // A server-side apply is refused with 500 where the object does not fit the schema.
        500 if message.contains("failed to create typed patch object") => {
            Some(Cause::Invalid(untyped(message)))
        }
        504 if status.reason == "Timeout" => Some(Cause::OutcomeUnknown(None)),
        _ => None,
    }
}

fn is_refused(message: &str) -> bool {
    let by_webhook = message.contains("admission webhook \"") && message.contains("denied the request");
    let by_policy = message.contains("ValidatingAdmissionPolicy '") && message.contains("denied request");
    by_webhook || by_policy
}

fn forbidden(status: &Status, account: &str) -> Cause {
    let message = status.message.as_str();
    if let Some(ended) = causes(status).iter().find(|cause| cause.reason == "NamespaceTerminating") {
        let name = ended.message.split_whitespace().nth(1).unwrap_or_default();
        return Cause::NamespaceTerminating(name.to_owned());
    }
    if ["exceeded quota", "failed quota", "per Container is", "per Pod is"]
        .iter()
        .any(|words| message.contains(words))
    {
        return Cause::Quota(message.to_owned());
    }
    if let Some(rule) = missing_rule(message, account) {
        return rule;
    }
    if let Some((_, rights)) = message.split_once("attempting to grant RBAC permissions not currently held") {
        let kind = status.details.as_ref().map(|details| details.kind.clone()).unwrap_or_default();
        return Cause::NotHeld {
            account: account.to_owned(),
            resource: format!("{kind}.rbac.authorization.k8s.io"),
            rights: rights.trim_start_matches(':').split_whitespace().collect::<Vec<_>>().join(" "),
        };
    }
    Cause::Refused(message.to_owned())
}

/// Reads `User "u" cannot patch resource "daemonsets" in API group "apps" in the namespace "n"`.
fn missing_rule(message: &str, account: &str) -> Option<Cause> {
    let (_, rest) = message.split_once(" cannot ")?;
    let (verb, rest) = rest.split_once(" resource \"")?;
    let (resource, rest) = rest.split_once('"')?;
    let group =
        rest.split_once("in API group \"").and_then(|(_, rest)| rest.split_once('"')).map(|(group, _)| group);
    let namespace = rest.split_once("in the namespace \"").and_then(|(_, rest)| rest.split_once('"'));
    let group = group.filter(|group| !group.is_empty()).map(|group| format!(".{group}")).unwrap_or_default();
    Some(Cause::Forbidden {
        account: account.to_owned(),
        verb: verb.to_owned(),
        resource: format!("{resource}{group}"),
        namespace: namespace.map(|(namespace, _)| namespace.to_owned()),
        message: message.to_owned(),
    })
}

fn missing(status: &Status, target: &ObjectRef) -> Cause {
    let Some(details) = &status.details else { return Cause::KindUnknown(target.gvk().to_string()) };
    let is_target = details.name == target.name;
    if details.kind == "namespaces" && !(is_target && target.kind == "Namespace") {
        return Cause::NamespaceMissing(details.name.clone());
    }
    if is_target { Cause::NotFound } else { Cause::KindUnknown(target.gvk().to_string()) }
}

fn conflict(status: &Status) -> Cause {
    if status.reason == "AlreadyExists" {
        return Cause::AlreadyExists;
    }
    let held = causes(status).iter().filter(|cause| cause.reason == "FieldManagerConflict");
    let fields: Vec<FieldConflict> = held.map(field_conflict).collect();
    if fields.is_empty() { Cause::Stale(status.message.clone()) } else { Cause::Conflict(fields) }
}

/// Reads `conflict with "kubectl-edit" using apps/v1`.
fn field_conflict(cause: &StatusCause) -> FieldConflict {
    let manager = cause.message.split('"').nth(1).unwrap_or("another manager");
    FieldConflict { manager: manager.to_owned(), field: cause.field.clone() }
}

fn invalid(status: &Status) -> Cause {
    if status.message == PATCH_FAILED || status.message.contains("testing path") {
        return Cause::Stale("it changed since it was read".to_owned());
    }
    let fields: Vec<InvalidField> = causes(status)
        .iter()
        .map(|cause| InvalidField { path: cause.field.clone(), message: cause.message.clone() })
        .collect();
    // An apply that names a uid meets another object of the name.
    if fields.iter().any(|field| field.path == "metadata.uid") {
        return Cause::Stale("another object has the name by now".to_owned());
    }
    let fields = if fields.is_empty() { vec![whole(&status.message)] } else { fields };
    let says = |field: &InvalidField, words: &str| field.message.to_lowercase().contains(words);
    let frozen: Vec<InvalidField> =
        fields.iter().filter(|field| IMMUTABLE.iter().any(|words| says(field, words))).cloned().collect();
    if frozen.is_empty() { Cause::Invalid(fields) } else { Cause::Immutable(frozen) }
}

/// Reads `failed to create typed patch object (n/d; apps/v1, Kind=Deployment): .spec.x: field not declared`,
/// and the list of such lines after `errors:`.
fn untyped(message: &str) -> Vec<InvalidField> {
    let said = message.split_once("): ").map_or(message, |(_, said)| said);
    let field = |line: &str| {
        let (path, text) = line.trim().split_once(": ").filter(|(path, _)| path.starts_with('.'))?;
        Some(InvalidField { path: path.trim_start_matches('.').to_owned(), message: text.to_owned() })
    };
    let lines = said.strip_prefix("errors:").unwrap_or(said).lines().filter(|line| !line.trim().is_empty());
    lines.map(field).collect::<Option<Vec<_>>>().unwrap_or_else(|| vec![whole(said)])
}

fn whole(message: &str) -> InvalidField {
    InvalidField { path: String::new(), message: message.to_owned() }
}

fn causes(status: &Status) -> &[StatusCause] {
    status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::write::error::Retry;

    fn of(status: serde_json::Value, retry_after: Option<u64>) -> Cause {
        let failure =
            Failure::of_status(serde_json::from_value(status).unwrap(), retry_after.map(Duration::from_secs));
        cause(failure, &ObjectRef::new("v1", "ConfigMap", "a").within("n"), "me")
    }

    /// Answers that a healthy server does not give on demand.
    #[test]
    fn each_answer_becomes_the_cause_with_its_label_and_retry() {
        let details = json!({"retryAfterSeconds": 7});
        let cases = [
            (json!({"code": 401, "reason": "Unauthorized"}), None, "unauthorized", Retry::Later),
            (json!({"code": 410, "reason": "Gone"}), None, "gone", Retry::Reread),
            (
                json!({"code": 405, "message": "create not allowed while custom resource definition is terminating"}),
                None,
                "kind_unknown",
                Retry::Later,
            ),
            (json!({"code": 413, "message": "too large"}), None, "refusal", Retry::WhenChanged),
            (json!({"code": 429}), Some(3), "too_many_requests", Retry::After(Duration::from_secs(3))),
            (
                json!({"code": 429, "details": details}),
                None,
                "too_many_requests",
                Retry::After(Duration::from_secs(7)),
            ),
            (json!({"code": 429}), None, "too_many_requests", Retry::Later),
            (json!({"code": 500, "reason": "InternalError"}), None, "unavailable", Retry::Later),
            (json!({"code": 503}), Some(1), "too_many_requests", Retry::After(Duration::from_secs(1))),
            (json!({"code": 503}), None, "unavailable", Retry::Later),
            (json!({"code": 504, "reason": "Timeout"}), None, "outcome_unknown", Retry::Reread),
            (json!({"code": 302}), None, "unexpected", Retry::Later),
        ];
        for (status, after, label, retry) in cases {
            let cause = of(status.clone(), after);
            assert_eq!((cause.label(), cause.retry()), (label, retry), "{status}");
        }
    }

    #[test]
    fn a_request_that_timed_out_has_an_unknown_outcome() {
        let target = ObjectRef::new("v1", "ConfigMap", "a");
        assert_eq!(cause(Failure::TimedOut, &target, "me").label(), "outcome_unknown");
    }

    #[test]
    fn rights_that_a_role_would_pass_on_are_named() {
        let message = "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"u\" (groups=[\"g\"]) is \
                       attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"a.example\"], \
                       Resources:[\"things\"], Verbs:[\"use\"]}";
        let cause = of(json!({"code": 403, "message": message, "details": {"kind": "roles"}}), None);
        let text = cause.to_string();
        let rights = r#"{APIGroups:["a.example"], Resources:["things"], Verbs:["use"]}"#;
        assert!(text.contains(rights) && text.contains("roles.rbac.authorization.k8s.io"), "{text}");
    }

    #[test]
    fn a_right_at_the_scope_of_the_cluster_has_no_namespace() {
        let message = "nodes \"n\" is forbidden: User \"u\" cannot patch resource \"nodes\" in API group \"\" at \
                       the cluster scope";
        let Cause::Forbidden { resource, namespace, verb, .. } =
            of(json!({"code": 403, "message": message}), None)
        else {
            panic!("not forbidden")
        };
        assert_eq!((verb.as_str(), resource.as_str(), namespace), ("patch", "nodes", None));
    }
}
