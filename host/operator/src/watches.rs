//! Watches: which vendor's kinds are served, and from which chart.

pub(crate) mod file;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pintle_api::{
    Gvk, Object, ObjectRef, Timestamp,
    watch::{WatchSpec, WatchStatus},
};
use pintle_cluster::{Holder, Interest, Stage};
use pintle_plan::ConditionSet;
use serde_json::Value;

use crate::{
    context::{Context, Key},
    report,
};

/// Watched kinds, by the Watch that binds them.
#[derive(Default)]
pub(crate) struct Bindings {
    by_name: Mutex<HashMap<String, Arc<WatchSpec>>>,
}

// === impl Bindings ===

impl Bindings {
    /// The binding of a kind; of two for the same kind the one with the first name counts.
    pub(crate) fn of(&self, gvk: &Gvk) -> Option<Arc<WatchSpec>> {
        let by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fitting: Vec<_> = by_name.iter().filter(|(_, spec)| kind_of(spec) == *gvk).collect();
        fitting.sort_by_key(|(name, _)| name.as_str());
        fitting.first().map(|(_, spec)| Arc::clone(spec))
    }

    fn bind(&self, name: &str, spec: Arc<WatchSpec>) {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), spec);
    }

    fn unbind(&self, name: &str) -> Option<Arc<WatchSpec>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner).remove(name)
    }
}

/// Brings a Watch to where its object says: its kind is watched, and each owner of it is looked at.
pub(crate) async fn reconcile(ctx: &Context, name: &str) -> Option<Duration> {
    let key = Key::Watch(name.to_owned());
    let target = ObjectRef::new("pintle.dev/v1alpha1", "Watch", name);
    let (object, record) = ctx.know(&key, |facts| facts.get(&target)).await;
    ctx.watches.register(&key.holder(), &record);
    let Some(object) = object.found() else {
        if let Some(spec) = ctx.bindings.unbind(name) {
            wake_owners(ctx, &interest_of(&spec));
        }
        ctx.caches.release(&Holder::Release(format!("owners of {key}")));
        return None;
    };
    let spec: WatchSpec = match serde_json::from_value(object.at("/spec").cloned().unwrap_or_default()) {
        Ok(spec) => expand(spec),
        Err(err) => {
            return tell(ctx, &object, Err(("InvalidSpec", format!("spec cannot be read: {err}")))).await;
        }
    };
    if !spec.service_account_name.is_empty() {
        let message = "spec.serviceAccountName is not served by this version; take it away".to_owned();
        return tell(ctx, &object, Err(("NotServed", message))).await;
    }
    if let Err(message) = one_of_two(&spec) {
        return tell(ctx, &object, Err(("InvalidSpec", message.to_owned()))).await;
    }
    let spec = Arc::new(spec);
    let interest = interest_of(&spec);
    ctx.bindings.bind(name, Arc::clone(&spec));
    ctx.caches.hold(&interest, &Holder::Release(format!("owners of {key}")));
    let standing = match ctx.caches.settled(&interest).await {
        Some(Stage::Synced) => Ok(wake_owners(ctx, &interest)),
        Some(Stage::Denied(why)) => Err(("Forbidden", why.to_string())),
        Some(Stage::KindUnknown) => Err((
            "KindNotInstalled",
            format!("the cluster does not serve {}; install its CRD", interest.gvk()),
        )),
        Some(Stage::Starting) | None => return Some(Duration::from_secs(1)),
    };
    tell(ctx, &object, standing).await
}

/// Either a chart or a plugin says what shall be there.
fn one_of_two(spec: &WatchSpec) -> Result<(), &'static str> {
    match (&spec.reconciler, spec.chart.is_absent()) {
        (None, true) => Err("neither spec.chart nor spec.reconciler is there; name one of them"),
        (Some(_), false) => Err("both spec.chart and spec.reconciler are there; take one of them away"),
        (Some(_), true) if !spec.hooks.is_empty() => {
            Err("spec.hooks are called around a chart's release; take them away beside spec.reconciler")
        }
        _ => Ok(()),
    }
}

/// `${NAME}` and `$NAME` in override values are the operator's environment, as the hybrid operator had it.
fn expand(mut spec: WatchSpec) -> WatchSpec {
    for value in spec.override_values.values_mut() {
        if let Value::String(text) = value {
            *text = expand_text(text, variable);
        }
    }
    spec
}

fn expand_text(text: &str, variable: impl Fn(&str) -> String) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let in_braces = after.strip_prefix('{').and_then(|inside| inside.split_once('}'));
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        match in_braces.or_else(|| after.split_at_checked(end).filter(|(name, _)| !name.is_empty())) {
            Some((name, behind)) => {
                out.push_str(&variable(name));
                rest = behind;
            }
            None => {
                out.push('$');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// Binds the kinds of a watches file: nobody can change or delete these while the operator runs.
pub(crate) fn bind_file(ctx: &Context) {
    for (number, spec) in ctx.options.watches.iter().enumerate() {
        let name = format!("entry {} of the watches file", number + 1);
        let spec = Arc::new(spec.clone());
        ctx.bindings.bind(&name, Arc::clone(&spec));
        ctx.caches.hold(&interest_of(&spec), &Holder::Release(format!("owners of {name}")));
    }
}

fn kind_of(spec: &WatchSpec) -> Gvk {
    Gvk { group: spec.group.clone(), version: spec.version.clone(), kind: spec.kind.clone() }
}

/// Owners of a Watch: all of its kind that its selector selects.
pub(crate) fn interest_of(spec: &WatchSpec) -> Interest {
    let all = Interest::all(kind_of(spec));
    match spec.selector.as_ref().map(selector_text).filter(|text| !text.is_empty()) {
        Some(text) => all.selecting(&text),
        None => all,
    }
}

fn selector_text(selector: &k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector) -> String {
    let labels = selector.match_labels.iter().flatten().map(|(key, value)| format!("{key}={value}"));
    let expressions = selector.match_expressions.iter().flatten().map(|expression| {
        let values = expression.values.as_deref().unwrap_or_default().join(",");
        match expression.operator.as_str() {
            "In" => format!("{} in ({values})", expression.key),
            "NotIn" => format!("{} notin ({values})", expression.key),
            "DoesNotExist" => format!("!{}", expression.key),
            _ => expression.key.clone(),
        }
    });
    labels.chain(expressions).collect::<Vec<_>>().join(",")
}

/// Asks for every owner; gives their number.
fn wake_owners(ctx: &Context, interest: &Interest) -> u32 {
    let owners = ctx.caches.objects(interest).found().unwrap_or_default();
    for owner in &owners {
        ctx.queue.wake(Key::Owner(owner.reference()));
    }
    u32::try_from(owners.len()).unwrap_or(u32::MAX)
}

async fn tell(ctx: &Context, object: &Object, standing: Result<u32, (&str, String)>) -> Option<Duration> {
    let before: WatchStatus = object
        .at("/status")
        .and_then(|status| serde_json::from_value(status.clone()).ok())
        .unwrap_or_default();
    let mut conditions = ConditionSet::new(&before.conditions, object.generation(), Timestamp::now());
    match &standing {
        Ok(_) => conditions.set("Ready", true, "Watching", ""),
        Err((reason, message)) => conditions.set("Ready", false, reason, message),
    }
    let status = WatchStatus {
        observed_generation: Some(object.generation()),
        releases: standing.unwrap_or_default(),
        conditions: conditions.into_conditions(),
    };
    if status != before {
        report::write_status(ctx, object, &serde_json::json!(status)).await;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_and_what_is_none_stays() {
        let known = |name: &str| if name == "IMAGE" { "memcached:1".to_owned() } else { String::new() };
        assert_eq!(expand_text("a ${IMAGE} b${NONE}c", known), "a memcached:1 bc");
        assert_eq!(expand_text("$IMAGE/a$", known), "memcached:1/a$");
        assert_eq!(expand_text("${IMAGE", known), "${IMAGE");
    }
}
