//! Watches: which vendor's kinds are served, and from which chart.

pub(crate) mod file;
mod leaving;

pub(crate) use leaving::hold;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use pintle_api::{
    Gvk, Object, ObjectRef, Timestamp,
    watch::{WatchSpec, WatchStatus},
};
use pintle_cluster::{Holder, Interest, Stage};
use pintle_plan::ConditionSet;
use serde_json::Value;

use crate::{
    context::{Context, Key},
    queue::Queue,
    report,
    wishes::parse_period,
};

/// How often the watches file is looked at: a mounted ConfigMap takes a minute to change anyway.
const FILE_PERIOD: Duration = Duration::from_secs(2);

/// Watched kinds, by the Watch that binds them.
#[derive(Default)]
pub(crate) struct Bindings {
    by_name: Mutex<HashMap<String, Binding>>,
    /// What the schema of a kind has no place for in a status, as the server says it.
    gaps: Mutex<HashMap<Gvk, BTreeSet<String>>>,
}

/// One Watch.
#[derive(Clone)]
struct Binding {
    spec: Arc<WatchSpec>,
    turns: Arc<Turns>,
    /// How its kind stood when the Watch's status said so; absent before, and for kinds of a file.
    told: Option<Stage>,
}

/// Owners of one Watch that are worked on, and those that wait for it.
#[derive(Default)]
struct Turns {
    inner: Mutex<Round>,
    /// True once the Watch is known to have our finalizer; held by who gives it one.
    held: tokio::sync::Mutex<bool>,
}

#[derive(Default)]
struct Round {
    running: u32,
    waiting: BTreeSet<Key>,
    going: Going,
}

/// How far a Watch is on its way out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Going {
    /// It serves every owner.
    #[default]
    No,
    /// It serves those that have releases.
    Leaving,
    /// It serves nobody any more.
    Ended,
}

/// An owner is being worked on.
pub(crate) struct Turn {
    /// Absent for owners that no Watch binds.
    counted: Option<(Arc<Turns>, Arc<Queue<Key>>)>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some((turns, queue)) = self.counted.take() else { return };
        let next = {
            let mut round = turns.lock();
            round.running = round.running.saturating_sub(1);
            round.waiting.pop_first()
        };
        if let Some(key) = next {
            queue.wake(key);
        }
    }
}

// === impl Turns ===

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Round> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Going ===

impl Going {
    /// Whether an owner is served at this point: one that is held has a release.
    fn serves(self, owner: &Object) -> bool {
        match self {
            Self::No => true,
            Self::Leaving => leaving::is_held(owner),
            Self::Ended => false,
        }
    }
}

// === impl Bindings ===

impl Bindings {
    /// The binding of an owner: its kind is watched, and the Watch selects it. Of two that do, the one with the
    /// first name counts. A Watch that is being deleted takes no new owner.
    pub(crate) fn of(&self, owner: &Object) -> Option<Arc<WatchSpec>> {
        self.binding_of(owner).map(|(_, binding)| binding.spec)
    }

    /// True when owners of the kind are watched.
    pub(crate) fn binds(&self, gvk: &Gvk) -> bool {
        self.lock().values().any(|binding| kind_of(&binding.spec) == *gvk)
    }

    /// A turn of the Watch's own number of them; without one the owner is asked for when another is done. An
    /// owner that no Watch binds has no limit here. A Watch that went meanwhile gives none.
    pub(crate) fn enter(&self, ctx: &Context, owner: &Object, key: &Key) -> Option<Turn> {
        let Some((_, binding)) = self.binding_of(owner) else { return Some(Turn { counted: None }) };
        let mut round = binding.turns.lock();
        if !round.going.serves(owner) {
            return None;
        }
        if binding.spec.max_concurrent_reconciles.is_some_and(|limit| round.running >= limit.max(1)) {
            round.waiting.insert(key.clone());
            return None;
        }
        round.running += 1;
        drop(round);
        Some(Turn { counted: Some((binding.turns, Arc::clone(&ctx.queue))) })
    }

    fn binding_of(&self, owner: &Object) -> Option<(String, Binding)> {
        let by_name = self.lock();
        let fitting = by_name.iter().filter(|(_, binding)| binding.fits(owner));
        let first = fitting.min_by_key(|(name, _)| name.as_str());
        first.map(|(name, binding)| (name.clone(), binding.clone()))
    }

    /// Binds what a Watch says; true when that is news to its owners.
    fn bind(&self, name: &str, spec: Arc<WatchSpec>) -> bool {
        let mut by_name = self.lock();
        // A Watch that went and came again under its name begins anew.
        let known = by_name.get(name).filter(|known| known.turns.lock().going == Going::No);
        let is_new = known.is_none_or(|known| known.spec != spec);
        let turns = known.map(|known| Arc::clone(&known.turns)).unwrap_or_default();
        let told = known.and_then(|known| known.told.clone());
        by_name.insert(name.to_owned(), Binding { spec, turns, told });
        is_new
    }

    /// Notes how the kind of a Watch stands; true when it stood otherwise.
    fn note_told(&self, name: &str, stage: Option<Stage>) -> bool {
        let mut by_name = self.lock();
        let Some(binding) = by_name.get_mut(name) else { return false };
        let differs = binding.told != stage;
        binding.told = stage;
        differs
    }

    /// The Watches of a kind.
    pub(crate) fn of_kind(&self, gvk: &Gvk) -> Vec<Key> {
        let by_name = self.lock();
        let of_kind = by_name.iter().filter(|(_, binding)| kind_of(&binding.spec) == *gvk);
        of_kind.map(|(name, _)| Key::Watch(name.clone())).collect()
    }

    /// Watches whose kind stands otherwise than they say: it came or went.
    pub(crate) fn outdated(&self, ctx: &Context, kind: &Gvk) -> Vec<Key> {
        let is_outdated = |binding: &Binding| {
            kind_of(&binding.spec) == *kind
                && binding.told.is_some()
                && binding.told != ctx.caches.stage(&interest_of(&binding.spec))
        };
        let by_name = self.lock();
        let outdated = by_name.iter().filter(|(_, binding)| is_outdated(binding));
        outdated.map(|(name, _)| Key::Watch(name.clone())).collect()
    }

    fn unbind(&self, name: &str) -> Option<Arc<WatchSpec>> {
        self.lock().remove(name).map(|binding| binding.spec)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Binding>> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Binding ===

impl Binding {
    /// True when its Watch serves this owner.
    fn fits(&self, owner: &Object) -> bool {
        kind_of(&self.spec) == owner.gvk()
            && selects(self.spec.selector.as_ref(), owner)
            && self.turns.lock().going.serves(owner)
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
    if object.is_terminating() {
        return leaving::run(ctx, &key, &object).await;
    }
    let spec = match usable(&object) {
        Ok(spec) => spec,
        Err(trouble) => return tell(ctx, &object, 0, Err(trouble)).await,
    };
    let spec = Arc::new(spec);
    let interest = interest_of(&spec);
    let is_new = ctx.bindings.bind(name, Arc::clone(&spec));
    ctx.caches.hold(&interest, &Holder::Release(format!("owners of {key}")));
    let stage = ctx.caches.settled(&interest).await;
    let stood_otherwise = ctx.bindings.note_told(name, stage.clone());
    let mut releases = 0;
    let standing = match stage {
        Some(Stage::Synced) => {
            let owners = ctx.caches.objects(&interest).found().unwrap_or_default();
            releases = u32::try_from(owners.len()).unwrap_or(u32::MAX);
            if is_new || stood_otherwise {
                wake_owners(ctx, &interest);
            }
            Ok(())
        }
        Some(Stage::Denied(why)) => Err(("Forbidden", why.to_string())),
        Some(Stage::KindUnknown) => Err((
            "KindNotInstalled",
            format!("the cluster does not serve {}; install its CRD", interest.gvk()),
        )),
        Some(Stage::Starting) | None => return Some(Duration::from_secs(1)),
    };
    tell(ctx, &object, releases, standing).await
}

/// The spec of a Watch, or the reason and message of what cannot be used in it.
fn usable(watch: &Object) -> Result<WatchSpec, (&'static str, String)> {
    let spec = watch.at("/spec").cloned().unwrap_or_default();
    let spec: WatchSpec = match serde_json::from_value(spec) {
        Ok(spec) => expand(spec),
        Err(err) => return Err(("InvalidSpec", format!("spec cannot be read: {err}"))),
    };
    if !spec.service_account_name.is_empty() {
        let message = "spec.serviceAccountName is not served by this version; take it away".to_owned();
        return Err(("NotServed", message));
    }
    match refuse(&spec).or_else(|| one_of_two(&spec).err().map(str::to_owned)) {
        Some(message) => Err(("InvalidSpec", message)),
        None => Ok(spec),
    }
}

/// What cannot be used in a Watch, and the fix.
fn refuse(spec: &WatchSpec) -> Option<String> {
    let period = &spec.reconcile_period;
    if !period.is_empty() && parse_period(period).is_none() {
        return Some(format!("spec.reconcilePeriod: `{period}` is not a time; write 90s, 10m or 1h"));
    }
    let rules = spec.drift_detection.iter().flat_map(|drift| &drift.ignore);
    let mut paths = rules.flat_map(|rule| &rule.paths);
    paths.find(|path| !path.starts_with('/')).map(|path| {
        format!("spec.driftDetection.ignore: `{path}` is not a JSON pointer; write it as /spec/replicas")
    })
}

/// Remembers what the schema of an owner's kind has no place for; its Watch tells it.
pub(crate) fn note_gaps(ctx: &Context, owner: &Object, warnings: &[String]) {
    let mut gaps = ctx.bindings.gaps.lock().unwrap_or_else(PoisonError::into_inner);
    let known = gaps.entry(owner.gvk()).or_default();
    let before = known.len();
    known.extend(warnings.iter().cloned());
    if known.len() == before {
        return;
    }
    let names: Vec<_> =
        ctx.bindings.lock().iter().map(|(name, binding)| (name.clone(), kind_of(&binding.spec))).collect();
    for (name, _) in names.into_iter().filter(|(_, kind)| *kind == owner.gvk()) {
        ctx.queue.wake(Key::Watch(name));
    }
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

/// Binds the kinds of a watches file, instead of those it named before.
pub(crate) fn bind_file(ctx: &Context, before: &[WatchSpec], now: &[WatchSpec]) {
    for spec in before.iter().filter(|spec| now.iter().all(|other| kind_of(other) != kind_of(spec))) {
        let name = name_in_file(spec);
        ctx.bindings.unbind(&name);
        wake_owners(ctx, &interest_of(spec));
        ctx.caches.release(&Holder::Release(format!("owners of {name}")));
    }
    for spec in now.iter().filter(|spec| !before.contains(spec)) {
        let (name, spec) = (name_in_file(spec), Arc::new(spec.clone()));
        let holder = Holder::Release(format!("owners of {name}"));
        ctx.caches.release(&holder);
        ctx.bindings.bind(&name, Arc::clone(&spec));
        ctx.caches.hold(&interest_of(&spec), &holder);
        wake_owners(ctx, &interest_of(&spec));
    }
}

fn name_in_file(spec: &WatchSpec) -> String {
    format!("{} of the watches file", kind_of(spec))
}

/// Follows the watches file: what is added, changed or taken away counts from then on. A file that cannot be
/// used changes nothing, and the log says why.
pub(crate) async fn follow_file(ctx: Arc<Context>) {
    let Some(path) = ctx.options.watches_file.clone() else { return };
    let (mut bound, mut last) = (ctx.options.watches.clone(), String::new());
    loop {
        tokio::time::sleep(FILE_PERIOD).await;
        let text = tokio::fs::read_to_string(&path).await.unwrap_or_default();
        if text == last {
            continue;
        }
        last = text;
        let named = path.clone();
        let read = tokio::task::spawn_blocking(move || file::read(&named)).await;
        match read {
            Ok(Ok(specs)) if specs != bound => {
                tracing::info!(file = %path.display(), kinds = specs.len(), "the watches file is another one");
                bind_file(&ctx, &bound, &specs);
                bound = specs;
            }
            Ok(Ok(_)) | Err(_) => {}
            Ok(Err(err)) => {
                let why = crate::error_text::one_line(&err);
                tracing::warn!(file = %path.display(), "the watches file cannot be used; what it said before counts: {why}");
            }
        }
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

/// True when the labels of an owner are those that are asked for.
fn selects(selector: Option<&LabelSelector>, owner: &Object) -> bool {
    let Some(selector) = selector else { return true };
    let labels = selector.match_labels.iter().flatten().all(|(key, value)| owner.label(key) == Some(value));
    labels
        && selector.match_expressions.iter().flatten().all(|expression| {
            let found = owner.label(&expression.key);
            let is_in =
                found.is_some_and(|found| expression.values.iter().flatten().any(|value| value == found));
            match expression.operator.as_str() {
                "In" => is_in,
                "NotIn" => !is_in,
                "DoesNotExist" => found.is_none(),
                _ => found.is_some(),
            }
        })
}

fn selector_text(selector: &LabelSelector) -> String {
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

/// Asks for every owner.
fn wake_owners(ctx: &Context, interest: &Interest) {
    let owners = ctx.caches.objects(interest).found().unwrap_or_default();
    owners.iter().for_each(|owner| ctx.queue.wake(Key::Owner(owner.reference())));
}

fn gaps(ctx: &Context, watch: &Object) -> Option<String> {
    let text = |field: &str| watch.str_at(&format!("/spec/{field}")).unwrap_or_default().to_owned();
    let kind = Gvk { group: text("group"), version: text("version"), kind: text("kind") };
    let gaps = ctx.bindings.gaps.lock().unwrap_or_else(PoisonError::into_inner);
    let found = gaps.get(&kind)?;
    let told: Vec<&str> = found.iter().map(String::as_str).collect();
    Some(format!("the schema of {kind} has no place for parts of the status: {}", told.join("; ")))
}

/// Writes the status of a Watch with so many owners: it watches, or why not.
async fn tell(
    ctx: &Context,
    object: &Object,
    releases: u32,
    standing: Result<(), (&str, String)>,
) -> Option<Duration> {
    let before: WatchStatus = object
        .at("/status")
        .and_then(|status| serde_json::from_value(status.clone()).ok())
        .unwrap_or_default();
    let mut conditions = ConditionSet::new(&before.conditions, object.generation(), Timestamp::now());
    match &standing {
        Ok(()) => conditions.set("Ready", true, "Watching", ""),
        Err((reason, message)) => conditions.set("Ready", false, reason, message),
    }
    match gaps(ctx, object) {
        Some(message) => conditions.set("StatusSchemaIncomplete", true, "FieldsDropped", &message),
        None => conditions.remove("StatusSchemaIncomplete"),
    }
    let status = WatchStatus {
        observed_generation: Some(object.generation()),
        releases,
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
