//! The way out of a Watch: it stays until no owner of its kind has a release any more, since nobody else would
//! ever let those owners go.

use std::{sync::Arc, time::Duration};

use pintle_api::{Answer, Gvk, Object, ObjectRef, names, watch::WatchSpec};
use pintle_cluster::{ApiError, Cause, Holder, Interest, NoteKind, Stage};

use super::{Binding, Bindings, Going, Turns, interest_of, kind_of, tell, usable, wake_owners};
use crate::{
    context::{Context, Key},
    report,
};

/// Pause before a Watch is looked at again whose owners are being worked on, or could not be let go.
const PAUSE: Duration = Duration::from_secs(1);
/// Tries to hold a Watch that somebody else is writing, and the pause between them.
const TRIES: u32 = 5;
const SOON: Duration = Duration::from_millis(20);
/// Owners that a status names.
const NAMED: usize = 2;

/// Gives the Watch that binds an owner our finalizer, before the owner has one.
///
/// # Errors
/// When it cannot be written; the next pass tries again.
pub(crate) async fn hold(ctx: &Context, owner: &Object) -> Result<(), ApiError> {
    let Some((name, binding)) = ctx.bindings.binding_of(owner) else { return Ok(()) };
    let mut is_held = binding.turns.held.lock().await;
    if *is_held {
        return Ok(());
    }
    let (key, mut tries) = (Key::Watch(name), 0);
    while let Err(err) = hold_watch(ctx, &key).await {
        // Its status is often being written when its first owner comes.
        if tries == TRIES || !matches!(err.cause(), Cause::Stale(_)) {
            return Err(err);
        }
        tries += 1;
        tokio::time::sleep(SOON).await;
    }
    *is_held = true;
    Ok(())
}

async fn hold_watch(ctx: &Context, key: &Key) -> Result<(), ApiError> {
    let Key::Watch(name) = key else { return Ok(()) };
    let target = ObjectRef::new("pintle.dev/v1alpha1", "Watch", name);
    let (watch, _) = ctx.know(key, |facts| facts.get(&target)).await;
    // Kinds of a file have no Watch; and none can be given to a Watch that is being deleted already.
    let Answer::Found(watch) = watch else { return Ok(()) };
    if watch.is_terminating() {
        return Ok(());
    }
    ctx.writer.add_finalizer(&watch, names::WATCH_FINALIZER).await.map(drop)
}

/// True for an owner that we hold: it has a release.
pub(super) fn is_held(owner: &Object) -> bool {
    let held = owner.at("/metadata/finalizers").and_then(|list| list.as_array());
    held.into_iter().flatten().any(|finalizer| finalizer == names::FINALIZER)
}

/// Serves the owners that have releases, and lets the Watch go when none is left.
pub(super) async fn run(ctx: &Context, key: &Key, watch: &Object) -> Option<Duration> {
    let name = watch.name();
    let is_forced = watch.annotation(names::FORCE_DELETE) == Some("true");
    let spec = match usable(watch) {
        Ok(spec) => Arc::new(spec),
        Err((reason, message)) => match ctx.bindings.spec_of(name) {
            Some(before) => before,
            None => return unusable(ctx, watch, is_forced, reason, &message).await,
        },
    };
    let interest = interest_of(&spec);
    let going = if is_forced { Going::Ended } else { Going::Leaving };
    let is_new = ctx.bindings.leave(name, &spec, going);
    ctx.caches.hold(&interest, &Holder::Release(format!("owners of {key}")));
    let stage = ctx.caches.settled(&interest).await;
    ctx.bindings.note_told(name, stage.clone());
    match stage {
        Some(Stage::Synced) => {}
        // What the cluster does not serve has no objects.
        Some(Stage::KindUnknown) => return let_go(ctx, watch).await,
        Some(Stage::Denied(why)) => {
            return tell(ctx, watch, 0, Err(("Forbidden", why.to_string()))).await;
        }
        Some(Stage::Starting) | None => return Some(PAUSE),
    }
    if is_new {
        wake_owners(ctx, &interest);
    }
    let left = owners_left(ctx, name, &interest);
    if !is_forced && !left.is_empty() {
        let message = sentence(&plural(ctx, &spec), &spec.kind, &left);
        let number = u32::try_from(left.len()).unwrap_or(u32::MAX);
        return tell(ctx, watch, number, Err(("Deleting", message))).await;
    }
    // Who is being worked on may be about to be held.
    if ctx.bindings.is_busy(name) {
        return Some(PAUSE);
    }
    if !abandon(ctx, watch, &left).await {
        return Some(PAUSE);
    }
    let_go(ctx, watch).await
}

/// A Watch that says nothing of use, and whose owners nobody knows.
async fn unusable(
    ctx: &Context,
    watch: &Object,
    is_forced: bool,
    reason: &str,
    message: &str,
) -> Option<Duration> {
    if is_forced {
        return let_go(ctx, watch).await;
    }
    let message = format!(
        "{message}; until then its owners are not known: correct it, or annotate the Watch {}: \"true\"",
        names::FORCE_DELETE
    );
    tell(ctx, watch, 0, Err((reason, message))).await
}

/// Owners that are held and that no other Watch would serve.
fn owners_left(ctx: &Context, name: &str, interest: &Interest) -> Vec<Arc<Object>> {
    let mut owners = ctx.caches.objects(interest).found().unwrap_or_default();
    owners.retain(|owner| is_held(owner) && !ctx.bindings.is_served_by_another(name, owner));
    owners.sort_by_key(|owner| named(owner));
    owners
}

/// Lets owners go; their objects are left as they are. False when one could not be let go.
async fn abandon(ctx: &Context, watch: &Object, owners: &[Arc<Object>]) -> bool {
    let mut is_done = true;
    for owner in owners {
        if let Err(err) = free(ctx, owner).await {
            tracing::warn!(owner = %owner.reference(), label = err.label(), "could not remove the finalizer");
            is_done = false;
        }
    }
    if is_done && !owners.is_empty() {
        let names = list(owners);
        let message =
            format!("{names}: let go as {} asks; their objects are left running", names::FORCE_DELETE);
        report::note(ctx, watch, NoteKind::Warning, "ReleasesLeftBehind", &message).await;
    }
    is_done
}

/// Takes our finalizers from an owner.
async fn free(ctx: &Context, owner: &Arc<Object>) -> Result<(), ApiError> {
    let mut live = Arc::clone(owner);
    for finalizer in [names::FINALIZER].into_iter().chain(names::HYBRID_FINALIZERS) {
        if let Some(applied) = ctx.writer.remove_finalizer(&live, finalizer).await? {
            live = applied.object;
        }
    }
    Ok(())
}

async fn let_go(ctx: &Context, watch: &Object) -> Option<Duration> {
    match ctx.writer.remove_finalizer(watch, names::WATCH_FINALIZER).await {
        Ok(_) => None,
        Err(err) => {
            tracing::debug!(watch = watch.name(), label = err.label(), "could not remove the finalizer");
            Some(PAUSE)
        }
    }
}

/// What the API calls objects of the kind.
fn plural(ctx: &Context, spec: &WatchSpec) -> String {
    match ctx.cluster.discovery.kind(&kind_of(spec)) {
        Answer::Found(served) => served.plural.clone(),
        _ => format!("objects of kind {}", spec.kind),
    }
}

/// `3 memcacheds still have releases: shop/a, shop/b and 1 more; …`
fn sentence(plural: &str, kind: &str, left: &[Arc<Object>]) -> String {
    let (what, them, whose) = match left.len() {
        1 => (format!("1 {} still has a release", kind.to_lowercase()), "it", "its"),
        number => (format!("{number} {plural} still have releases"), "them", "their"),
    };
    format!(
        "{what}: {}; delete {them}, or annotate the Watch {}: \"true\" to leave {whose} objects running",
        list(left),
        names::FORCE_DELETE
    )
}

/// The first names, and how many more there are.
fn list(owners: &[Arc<Object>]) -> String {
    let names: Vec<String> = owners.iter().take(NAMED).map(|owner| named(owner)).collect();
    match owners.len().saturating_sub(NAMED) {
        0 => names.join(" and "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

fn named(owner: &Object) -> String {
    match owner.namespace() {
        Some(namespace) => format!("{namespace}/{}", owner.name()),
        None => owner.name().to_owned(),
    }
}

impl Bindings {
    /// Watches of a kind that wait for their owners to go.
    pub(crate) fn leaving(&self, kind: &Gvk) -> Vec<Key> {
        let by_name = self.lock();
        let leaving = by_name.iter().filter(|(_, binding)| {
            kind_of(&binding.spec) == *kind && binding.turns.lock().going != Going::No
        });
        leaving.map(|(name, _)| Key::Watch(name.clone())).collect()
    }

    /// Binds what is on its way out; true when that is news to its owners.
    fn leave(&self, name: &str, spec: &Arc<WatchSpec>, going: Going) -> bool {
        let mut by_name = self.lock();
        let known = by_name.get(name).cloned();
        let is_same = known.as_ref().is_some_and(|known| known.spec == *spec);
        // Who is worked on counts on.
        let (turns, told) = known.map(|known| (known.turns, known.told)).unwrap_or_default();
        let before = std::mem::replace(&mut turns.lock().going, going);
        by_name.insert(name.to_owned(), Binding { spec: Arc::clone(spec), turns, told });
        !is_same || before != going
    }

    fn spec_of(&self, name: &str) -> Option<Arc<WatchSpec>> {
        self.lock().get(name).map(|binding| Arc::clone(&binding.spec))
    }

    fn turns_of(&self, name: &str) -> Option<Arc<Turns>> {
        self.lock().get(name).map(|binding| Arc::clone(&binding.turns))
    }

    /// True while an owner of a Watch is worked on.
    fn is_busy(&self, name: &str) -> bool {
        self.turns_of(name).is_some_and(|turns| turns.lock().running > 0)
    }

    fn is_served_by_another(&self, name: &str, owner: &Object) -> bool {
        self.lock().iter().any(|(other, binding)| other != name && binding.fits(owner))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    fn owner(name: &str, finalizers: &[&str]) -> Arc<Object> {
        let metadata = json!({"name": name, "namespace": "shop", "finalizers": finalizers});
        Arc::new(
            Object::new(json!({"apiVersion": "a.b/v1", "kind": "Memcached", "metadata": metadata})).unwrap(),
        )
    }

    #[test]
    fn who_is_left_is_told_with_the_way_on() {
        let all: Vec<_> = ["a", "b", "c"].map(|name| owner(name, &[])).into();
        let say = |number: usize| sentence("memcacheds", "Memcached", &all[..number]);
        let way_on = "or annotate the Watch pintle.dev/force-delete: \"true\" to leave";
        assert_eq!(
            say(3),
            format!(
                "3 memcacheds still have releases: shop/a, shop/b and 1 more; delete them, {way_on} their objects running"
            )
        );
        assert!(say(2).starts_with("2 memcacheds still have releases: shop/a and shop/b; delete them"));
        assert_eq!(
            say(1),
            format!("1 memcached still has a release: shop/a; delete it, {way_on} its objects running")
        );
    }

    #[test]
    fn a_watch_that_leaves_serves_those_it_holds_and_another_takes_the_rest() {
        let bindings = Bindings::default();
        let spec = |period: &str| {
            let spec =
                json!({"group": "a.b", "version": "v1", "kind": "Memcached", "reconcilePeriod": period});
            Arc::new(serde_json::from_value::<WatchSpec>(spec).unwrap())
        };
        let (held, new) = (owner("a", &[names::FINALIZER]), owner("b", &["other"]));
        bindings.bind("first", spec("1m"));
        assert!(bindings.leave("first", &spec("1m"), Going::Leaving), "news to its owners");
        assert!(!bindings.leave("first", &spec("1m"), Going::Leaving));
        assert!(bindings.of(&held).is_some() && bindings.of(&new).is_none());
        assert_eq!(bindings.leaving(&held.gvk()), [Key::Watch("first".to_owned())]);
        assert!(!bindings.is_served_by_another("first", &held));

        bindings.bind("second", spec("2m"));
        assert!(bindings.is_served_by_another("first", &held));
        assert_eq!(bindings.of(&held).unwrap().reconcile_period, "1m");
        assert_eq!(bindings.of(&new).unwrap().reconcile_period, "2m");
        assert!(bindings.leave("first", &spec("1m"), Going::Ended));
        assert_eq!(bindings.of(&held).unwrap().reconcile_period, "2m");
    }
}
