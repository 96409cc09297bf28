//! Rules for what runs pods.

use pintle_api::{Answer, Blocker, Object, Query, Verdict};
use serde_json::Value;

use super::{Rule, condition, number, of_this_generation};

pub(super) fn daemon_set(rule: &Rule<'_>) -> Verdict {
    of_this_generation(rule, || {
        let count = |field: &str| number(rule.live, &format!("/status/{field}")).unwrap_or_default();
        let wanted = count("desiredNumberScheduled");
        if wanted == 0 {
            return judge_empty(rule, "no node matches its node selector and tolerations");
        }
        if count("numberAvailable") < wanted {
            return waits_for_pods(rule, count("numberAvailable"), wanted);
        }
        if count("updatedNumberScheduled") < wanted {
            return outdated(rule, count("updatedNumberScheduled"), wanted);
        }
        Verdict::Ready
    })
}

pub(super) fn deployment(rule: &Rule<'_>) -> Verdict {
    of_this_generation(rule, || {
        if let Some(condition) = condition(rule.live, "Progressing")
            && condition.get("reason").and_then(Value::as_str) == Some("ProgressDeadlineExceeded")
        {
            let message = "its rollout made no progress within its deadline";
            let stuck = Verdict::transient(
                Blocker::new("ProgressDeadlineExceeded", message).on(rule.live.reference()),
            );
            return stuck.and(by_replicas(rule));
        }
        by_replicas(rule)
    })
}

fn by_replicas(rule: &Rule<'_>) -> Verdict {
    let wanted = number(rule.live, "/spec/replicas").unwrap_or(1);
    let count = |field: &str| number(rule.live, &format!("/status/{field}")).unwrap_or_default();
    if wanted == 0 {
        return judge_empty(rule, "it asks for no replicas");
    }
    let ready = count("updatedReplicas").min(count("availableReplicas"));
    if ready < wanted {
        return waits_for_pods(rule, ready, wanted);
    }
    if count("replicas") > wanted {
        let message = format!("{} pods of its old revision are still there", count("replicas") - wanted);
        return Verdict::pending(Blocker::new("OldPods", message).on(rule.live.reference()));
    }
    Verdict::Ready
}

pub(super) fn stateful_set(rule: &Rule<'_>) -> Verdict {
    of_this_generation(rule, || {
        let wanted = number(rule.live, "/spec/replicas").unwrap_or(1);
        let count = |field: &str| number(rule.live, &format!("/status/{field}")).unwrap_or_default();
        if wanted == 0 {
            return judge_empty(rule, "it asks for no replicas");
        }
        if count("readyReplicas") < wanted {
            return waits_for_pods(rule, count("readyReplicas"), wanted);
        }
        let partition = number(rule.live, "/spec/updateStrategy/rollingUpdate/partition").unwrap_or_default();
        let is_rolled_out =
            rule.live.str_at("/status/updateRevision") == rule.live.str_at("/status/currentRevision");
        if is_rolled_out || count("updatedReplicas") >= wanted - partition {
            return Verdict::Ready;
        }
        outdated(rule, count("updatedReplicas"), wanted - partition)
    })
}

pub(super) fn replica_set(rule: &Rule<'_>) -> Verdict {
    of_this_generation(rule, || {
        let wanted = number(rule.live, "/spec/replicas").unwrap_or(1);
        let available = number(rule.live, "/status/availableReplicas").unwrap_or_default();
        match wanted {
            0 => judge_empty(rule, "it asks for no replicas"),
            _ if available < wanted => waits_for_pods(rule, available, wanted),
            _ => Verdict::Ready,
        }
    })
}

/// A pod that runs to its end is ready when it succeeded, any other when it is Ready.
pub(super) fn pod(rule: &Rule<'_>) -> Verdict {
    let runs_once = matches!(rule.live.str_at("/spec/restartPolicy"), Some("Never" | "OnFailure"));
    let phase = rule.live.str_at("/status/phase").unwrap_or("Pending");
    match (phase, runs_once) {
        ("Succeeded", _) => Verdict::Ready,
        ("Failed", _) => Verdict::fatal(pod_blocker(rule.live)),
        ("Running", false) if pod_is_ready(rule.live) => Verdict::Ready,
        _ => Verdict::pending(pod_blocker(rule.live)),
    }
}

pub(super) fn job(rule: &Rule<'_>) -> Verdict {
    let is_true = |kind: &str| {
        condition(rule.live, kind).and_then(|c| c.get("status")).and_then(Value::as_str) == Some("True")
    };
    if is_true("Complete") || is_true("SuccessCriteriaMet") {
        return Verdict::Ready;
    }
    if is_true("Failed") {
        let why = condition(rule.live, "Failed").and_then(|c| c.get("message")).and_then(Value::as_str);
        let message = format!("the job failed: {}", why.unwrap_or("no reason is given"));
        return Verdict::fatal(Blocker::new("JobFailed", message).on(rule.live.reference()));
    }
    waits_for_pods(
        rule,
        number(rule.live, "/status/succeeded").unwrap_or_default(),
        number(rule.live, "/spec/completions").unwrap_or(1),
    )
}

fn judge_empty(rule: &Rule<'_>, why: &str) -> Verdict {
    if rule.empty_is_ready {
        return Verdict::Ready;
    }
    Verdict::pending(Blocker::new("NothingWanted", why).on(rule.live.reference()))
}

/// Pending, with one blocker for each pod that is not ready, or one for the workload.
fn waits_for_pods(rule: &Rule<'_>, ready: i64, wanted: i64) -> Verdict {
    let mut blockers: Vec<_> = match pods_of(rule) {
        Answer::Found(pods) => pods
            .iter()
            .filter(|pod| !pod_is_ready(pod) && !pod.is_terminating())
            .map(|pod| pod_blocker(pod))
            .collect(),
        Answer::Denied(why) => vec![Blocker::new("Forbidden", why).on(rule.live.reference())],
        _ => Vec::new(),
    };
    if blockers.is_empty() {
        let message = format!("{ready} of {wanted} pods are available");
        blockers.push(Blocker::new("PodsNotReady", message).on(rule.live.reference()));
    }
    Verdict::Pending(blockers)
}

fn outdated(rule: &Rule<'_>, updated: i64, wanted: i64) -> Verdict {
    let message = match rule.live.str_at("/spec/updateStrategy/type") {
        Some("OnDelete") => format!(
            "{updated} of {wanted} pods are of the newest revision; delete the others to replace them"
        ),
        _ => format!("{updated} of {wanted} pods are of the newest revision"),
    };
    Verdict::pending(Blocker::new("OldPods", message).on(rule.live.reference()))
}

/// The pods a workload selects.
pub(crate) fn pods_of(rule: &Rule<'_>) -> Answer<Vec<std::sync::Arc<Object>>> {
    let Some(label_selector) = selector_text(rule.live) else { return Answer::Missing };
    rule.facts.list(&Query {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        namespace: rule.live.namespace().map(str::to_owned),
        label_selector: Some(label_selector),
    })
}

/// `spec.selector` of a workload as the API takes it; nothing where it selects nothing.
pub(crate) fn selector_text(workload: &Object) -> Option<String> {
    let labels = workload.at("/spec/selector/matchLabels").and_then(Value::as_object);
    let equal = labels.into_iter().flatten().filter_map(|(k, v)| Some(format!("{k}={}", v.as_str()?)));
    let expressions = workload.at("/spec/selector/matchExpressions").and_then(Value::as_array);
    let sets = expressions.into_iter().flatten().filter_map(expression_text);
    let parts: Vec<_> = equal.chain(sets).collect();
    (!parts.is_empty()).then(|| parts.join(","))
}

fn expression_text(expression: &Value) -> Option<String> {
    let key = expression.get("key")?.as_str()?;
    let values = expression.get("values").and_then(Value::as_array);
    let values: Vec<_> = values.into_iter().flatten().filter_map(Value::as_str).collect();
    Some(match expression.get("operator")?.as_str()? {
        "In" => format!("{key} in ({})", values.join(",")),
        "NotIn" => format!("{key} notin ({})", values.join(",")),
        "Exists" => key.to_owned(),
        "DoesNotExist" => format!("!{key}"),
        _ => return None,
    })
}

fn pod_is_ready(pod: &Object) -> bool {
    condition(pod, "Ready").and_then(|c| c.get("status")).and_then(Value::as_str) == Some("True")
}

/// What a pod waits for: the reason of its first container that is not running, or its phase.
fn pod_blocker(pod: &Object) -> Blocker {
    let phase = pod.str_at("/status/phase").unwrap_or("Pending");
    let (reason, message) = match waiting_container(pod) {
        Some((container, reason, message)) => (reason, format!("container {container}: {message}")),
        None => match condition(pod, "PodScheduled")
            .filter(|c| c.get("status").and_then(Value::as_str) == Some("False"))
        {
            Some(unscheduled) => (
                unscheduled.get("reason").and_then(Value::as_str).unwrap_or("Unschedulable").to_owned(),
                unscheduled.get("message").and_then(Value::as_str).unwrap_or("it has no node").to_owned(),
            ),
            None => ("PodNotReady".to_owned(), format!("the pod is {phase} and not ready")),
        },
    };
    let blocker = Blocker::new(reason, message).on(pod.reference());
    match pod.str_at("/spec/nodeName") {
        Some(node) => blocker.at_node(node),
        None => blocker,
    }
}

/// (container, reason, message) of the first container that waits or ended badly.
fn waiting_container(pod: &Object) -> Option<(String, String, String)> {
    let lists = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let statuses = lists.iter().filter_map(|list| pod.at(list).and_then(Value::as_array)).flatten();
    statuses.into_iter().find_map(|status| {
        let name = status.get("name").and_then(Value::as_str).unwrap_or_default();
        let bad = status.pointer("/state/waiting").or_else(|| {
            status
                .pointer("/state/terminated")
                .filter(|end| end.get("exitCode").and_then(Value::as_i64) != Some(0))
        })?;
        let reason = bad.get("reason").and_then(Value::as_str).unwrap_or("Waiting");
        let message =
            bad.get("message").and_then(Value::as_str).filter(|text| !text.is_empty()).unwrap_or(reason);
        Some((name.to_owned(), reason.to_owned(), message.to_owned()))
    })
}
