//! When an object of a kind Pintle knows is ready.

mod workload;

use std::sync::Arc;

use pintle_api::{Answer, Blocker, Facts, Object, Query, Verdict};
use serde_json::Value;

pub(crate) use workload::selector_text as pods_selector;

/// What a rule may look at.
pub(crate) struct Rule<'a> {
    /// The live object.
    pub(crate) live: &'a Object,
    /// The world, for the pods of a workload.
    pub(crate) facts: &'a dyn Facts,
    /// Whether a workload that nothing asks for is ready.
    pub(crate) empty_is_ready: bool,
}

/// Kinds that are ready as soon as they exist, by group.
const EXIST: [(&str, &[&str]); 14] = [
    (
        "",
        &["ConfigMap", "Secret", "ServiceAccount", "LimitRange", "ResourceQuota", "Endpoints", "PodTemplate"],
    ),
    ("rbac.authorization.k8s.io", &["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]),
    ("security.openshift.io", &["SecurityContextConstraints"]),
    ("image.openshift.io", &["ImageStream"]),
    ("storage.k8s.io", &["CSIDriver", "StorageClass", "CSINode"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    ("networking.k8s.io", &["NetworkPolicy", "IngressClass", "Ingress"]),
    ("admissionregistration.k8s.io", &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]),
    ("batch", &["CronJob"]),
    ("autoscaling", &["HorizontalPodAutoscaler"]),
    ("node.k8s.io", &["RuntimeClass"]),
    ("template.openshift.io", &["Template"]),
    ("monitoring.coreos.com", &["ServiceMonitor", "PrometheusRule", "PodMonitor"]),
    ("discovery.k8s.io", &["EndpointSlice"]),
];

/// Conditions that say that an object of any kind is ready.
const READY_CONDITIONS: [&str; 3] = ["Ready", "Available", "Established"];

/// True when Pintle has a rule for the kind.
#[must_use]
pub fn has_rule(object: &Object) -> bool {
    let gvk = object.gvk();
    exists_is_enough(&gvk.group, &gvk.kind) || rule_of(&gvk.group, &gvk.kind).is_some()
}

/// Judges a live object by the rule for its kind, or by its conditions where there is none.
///
/// A status of an older generation is pending. A kind that has neither rule nor conditions is fatal:
/// nobody could tell, and what is unknown never passes.
#[must_use]
pub fn judge(live: &Object, facts: &dyn Facts, empty_is_ready: bool) -> Verdict {
    let gvk = live.gvk();
    if exists_is_enough(&gvk.group, &gvk.kind) {
        return Verdict::Ready;
    }
    let rule = Rule { live, facts, empty_is_ready };
    match rule_of(&gvk.group, &gvk.kind) {
        Some(judge) => judge(&rule),
        None => by_conditions(&rule),
    }
}

type Judge = fn(&Rule<'_>) -> Verdict;

fn exists_is_enough(group: &str, kind: &str) -> bool {
    EXIST.iter().any(|(known, kinds)| *known == group && kinds.contains(&kind))
}

fn rule_of(group: &str, kind: &str) -> Option<Judge> {
    Some(match (group, kind) {
        ("apps", "DaemonSet") => workload::daemon_set,
        ("apps", "Deployment") => workload::deployment,
        ("apps", "StatefulSet") => workload::stateful_set,
        ("apps", "ReplicaSet") => workload::replica_set,
        ("", "Pod") => workload::pod,
        ("batch", "Job") => workload::job,
        ("build.openshift.io", "BuildConfig") => build_config,
        ("build.openshift.io", "Build") => |rule| judge_build(rule.live),
        ("", "PersistentVolumeClaim") => |rule| in_phase(rule, &["Bound"], &["Lost"]),
        ("", "Namespace") => |rule| in_phase(rule, &["Active"], &[]),
        ("", "Service") => service,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => |rule| condition_is_met(rule, "Established"),
        ("apiregistration.k8s.io", "APIService") => |rule| condition_is_met(rule, "Available"),
        ("policy", "PodDisruptionBudget") => |rule| of_this_generation(rule, || Verdict::Ready),
        _ => return None,
    })
}

/// Pending until the controller of the kind has seen the newest generation.
pub(crate) fn of_this_generation(rule: &Rule<'_>, judge: impl FnOnce() -> Verdict) -> Verdict {
    let (wanted, seen) = (rule.live.generation(), number(rule.live, "/status/observedGeneration"));
    if wanted > 0 && seen.unwrap_or_default() < wanted {
        let message = format!("its controller has not seen generation {wanted} yet");
        return Verdict::pending(Blocker::new("NotObserved", message).on(rule.live.reference()));
    }
    judge()
}

pub(crate) fn number(object: &Object, pointer: &str) -> Option<i64> {
    object.at(pointer).and_then(Value::as_i64)
}

fn in_phase(rule: &Rule<'_>, ready: &[&str], fatal: &[&str]) -> Verdict {
    let phase = rule.live.str_at("/status/phase").unwrap_or_default();
    if ready.contains(&phase) {
        return Verdict::Ready;
    }
    let message =
        if phase.is_empty() { "it has no phase yet".to_owned() } else { format!("its phase is {phase}") };
    let blocker = Blocker::new("NotReady", message).on(rule.live.reference());
    if fatal.contains(&phase) { Verdict::fatal(blocker) } else { Verdict::pending(blocker) }
}

fn service(rule: &Rule<'_>) -> Verdict {
    let is_balanced = rule.live.str_at("/spec/type") == Some("LoadBalancer");
    let has_address = rule.live.at("/status/loadBalancer/ingress").and_then(Value::as_array);
    if !is_balanced || has_address.is_some_and(|list| !list.is_empty()) {
        return Verdict::Ready;
    }
    let message = "no load balancer has given it an address yet";
    Verdict::pending(Blocker::new("NoAddress", message).on(rule.live.reference()))
}

fn condition<'a>(object: &'a Object, kind: &str) -> Option<&'a Value> {
    let conditions = object.at("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
}

fn condition_is_met(rule: &Rule<'_>, kind: &str) -> Verdict {
    let found = condition(rule.live, kind);
    let text = |field: &str| {
        found.and_then(|condition| condition.get(field)).and_then(Value::as_str).unwrap_or_default()
    };
    if text("status") == "True" {
        return Verdict::Ready;
    }
    let message = match text("message") {
        "" => format!("its condition {kind} is not True yet"),
        message => format!("its condition {kind} is not True: {message}"),
    };
    let reason = if text("reason").is_empty() { "NotReady" } else { text("reason") };
    Verdict::pending(Blocker::new(reason, message).on(rule.live.reference()))
}

/// Kinds without a rule: the conditions that every well-kept API has.
fn by_conditions(rule: &Rule<'_>) -> Verdict {
    match READY_CONDITIONS.into_iter().find(|kind| condition(rule.live, kind).is_some()) {
        Some(kind) if rule.live.at("/status/observedGeneration").is_some() => {
            of_this_generation(rule, || condition_is_met(rule, kind))
        }
        Some(kind) => condition_is_met(rule, kind),
        None => {
            let message = format!(
                "nobody can tell when {} is ready: there is no rule for the kind and it has no condition Ready; \
                 name a plugin in `pintle.dev/wait`, or take the gate away",
                rule.live.gvk()
            );
            Verdict::fatal(Blocker::new("GateNotJudgeable", message).on(rule.live.reference()))
        }
    }
}

/// A BuildConfig is ready when the newest of its builds is complete.
fn build_config(rule: &Rule<'_>) -> Verdict {
    let pending =
        |message: &str| Verdict::pending(Blocker::new("NoBuild", message).on(rule.live.reference()));
    match newest_build(rule.live, rule.facts) {
        Answer::Found(Some(newest)) => judge_build(&newest),
        Answer::Found(None) => pending(
            "no build has started; it needs a trigger of type ConfigChange, or a build started by hand",
        ),
        Answer::Denied(why) => Verdict::transient(Blocker::new("Forbidden", why).on(rule.live.reference())),
        Answer::Missing | Answer::KindUnknown | Answer::NotYet => pending("its builds are not known yet"),
    }
}

/// The build of a BuildConfig with the highest number.
pub(crate) fn newest_build(config: &Object, facts: &dyn Facts) -> Answer<Option<Arc<Object>>> {
    let query = Query {
        api_version: config.api_version().to_owned(),
        kind: "Build".to_owned(),
        namespace: config.namespace().map(str::to_owned),
        label_selector: None,
    };
    facts.list(&query).map(|builds| {
        let own = builds.into_iter().filter(|build| is_build_of(build, config));
        own.max_by_key(|build| build_number(build))
    })
}

fn is_build_of(build: &Object, config: &Object) -> bool {
    let owners = build.at("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().any(|owner| {
        owner.get("kind").and_then(Value::as_str) == Some("BuildConfig")
            && owner.get("name").and_then(Value::as_str) == Some(config.name())
    })
}

fn build_number(build: &Object) -> u64 {
    let annotated = build.annotation("openshift.io/build.number");
    annotated.or_else(|| build.name().rsplit('-').next()).and_then(|n| n.parse().ok()).unwrap_or_default()
}

fn judge_build(build: &Object) -> Verdict {
    let phase = build.str_at("/status/phase").unwrap_or("New");
    let why = build.str_at("/status/message").map(|why| format!(": {why}")).unwrap_or_default();
    let blocker = Blocker::new(format!("Build{phase}"), format!("the build is in phase {phase}{why}"))
        .on(build.reference());
    match phase {
        "Complete" => Verdict::Ready,
        "Failed" | "Error" | "Cancelled" => Verdict::fatal(blocker),
        _ => Verdict::pending(blocker),
    }
}
