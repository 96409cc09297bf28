//! The composition root: connect, be elected, watch, work, stop.

use std::{future::Future, sync::Arc, time::Duration};

use pintle_api::{Gvk, ObjectRef, names};
use pintle_cluster::{
    Changed, Cluster, ConnectError, Holder, Interest, Leadership, LeaseSettings, Mask, Masks, NoteKind, Seen,
    Wakes,
};
use pintle_plugin::{Engine, EngineError, Options as EngineOptions};
use pintle_source::{Limits, Sources, artifact::Registries};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    charts::Charts,
    code_cache,
    context::{Context, Key},
    images::Images,
    ledger::Ledger,
    metrics::Metrics,
    options::Options,
    pass,
    plugins::{self, Plugins, Shelf},
    queue::Queue,
    record, report,
    server::{self, ServeError},
    watches::{self, Bindings},
};

/// A Watch counts its owners again this long after the first of those that came or went.
const COUNT_PAUSE: Duration = Duration::from_secs(2);

/// Why the operator ended without being asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cluster cannot be reached.
    #[error("could not reach the cluster")]
    Connect(#[from] ConnectError),
    /// Plugins cannot be run.
    #[error("could not start the engine for plugins")]
    Engine(#[from] EngineError),
    /// Nothing can be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Another process leads by now.
    #[error("the lease was lost to another process")]
    LostLead,
}

/// Who a pass over an object is about.
type MakeKey = fn(ObjectRef) -> Key;

/// Kinds of owners of our own, and what is made of one of their objects.
const KINDS: [(&str, &str, MakeKey); 5] = [
    ("sro.openshift.io/v1beta1", "SpecialResource", Key::Owner),
    ("pintle.dev/v1alpha1", "Plugin", |object| Key::Plugin(object.name)),
    ("pintle.dev/v1alpha1", "Watch", |object| Key::Watch(object.name)),
    ("sro.openshift.io/v1beta1", "SpecialResourceModule", Key::NotServed),
    ("sro.openshift.io/v1beta1", "PreflightValidation", Key::NotServed),
];

/// What the caches keep of kinds whose objects are large and change often.
#[must_use]
pub fn masks() -> Masks {
    Masks::default()
        .with(
            "",
            "Node",
            Mask::fields(["/spec/taints", "/spec/unschedulable", "/status/nodeInfo", "/status/allocatable"]),
        )
        .with(
            "",
            "Pod",
            Mask::fields(["/spec/nodeName", "/spec/restartPolicy", "/spec/containers", "/status"]),
        )
}

/// Runs the operator until `stop` is done, then lets the lease go.
///
/// # Errors
/// When it cannot start, or loses its lease; a new process may do better.
///
/// # Cancellation
/// Writes that have started may or may not have happened; the next process finds out.
pub async fn run(options: Options, stop: impl Future<Output = ()>) -> Result<(), Error> {
    let registries = Registries::configured(options.registry_settings(), Limits::default());
    let images = Arc::new(Images::new(registries.clone()));
    let (connect, metrics_at, health_at) =
        (options.connect_options(&images), options.metrics, options.health);
    let cluster = Cluster::connect(connect).await?;
    images.look_into(&cluster.caches);
    let engine = Engine::new(&EngineOptions {
        compiler: options.compiler.clone(),
        schemas: Some(Arc::new(plugins::Schemas)),
        ..EngineOptions::default()
    })?;
    let leadership = match &options.election {
        None => Leadership::always(),
        Some(name) => cluster.campaign(LeaseSettings::new(&options.namespace, name, &options.identity)),
    };
    let (is_ready, ready) = watch::channel(false);
    let (ctx, wakes) =
        context(options, Arc::clone(&cluster), Plugins::new(engine, registries), leadership.clone());
    let mut tasks = JoinSet::new();
    if let Some(address) = metrics_at {
        tasks.spawn(server::metrics(address, Arc::clone(&ctx.metrics)));
    }
    if let Some(address) = health_at {
        tasks.spawn(server::health(address, ready, Arc::clone(&ctx)));
    }
    tokio::pin!(stop);
    let ended = tokio::select! {
        () = &mut stop => Ok(()),
        ended = lead(&ctx, wakes, &leadership, &is_ready) => ended,
        Some(Ok(Err(err))) = tasks.join_next() => Err(err.into()),
    };
    ctx.queue.close();
    leadership.release().await;
    ended
}

/// Waits to be elected, then works until the lease is lost.
async fn lead(
    ctx: &Arc<Context>,
    wakes: Wakes,
    leadership: &Leadership,
    is_ready: &watch::Sender<bool>,
) -> Result<(), Error> {
    // A standby is ready too: it would answer at once.
    is_ready.send_replace(true);
    leadership.elected().await.map_err(|_| Error::LostLead)?;
    ctx.metrics.leader.set(1);
    let mut tasks = JoinSet::new();
    ctx.cluster.discovery.follow();
    code_cache::open(ctx).await;
    tasks.spawn(follow_changes(Arc::clone(ctx)));
    tasks.spawn(follow_wakes(Arc::clone(ctx), wakes));
    tasks.spawn(sweep(Arc::clone(ctx)));
    tasks.spawn(watches::follow_file(Arc::clone(ctx)));
    for _ in 0..ctx.options.workers.max(1) {
        tasks.spawn(work(Arc::clone(ctx)));
    }
    leadership.ended().await;
    ctx.metrics.leader.set(0);
    Err(Error::LostLead)
}

fn context(
    options: Options,
    cluster: Arc<Cluster>,
    plugins: Plugins,
    leadership: Leadership,
) -> (Arc<Context>, Wakes) {
    let counters = Arc::clone(&cluster.counters);
    let metrics = Metrics::new(move || (counters.requests(), counters.writes()));
    let (watches, wakes) = cluster.caches.watch_set();
    let ctx = Context {
        caches: Arc::clone(&cluster.caches),
        writer: cluster.writer(leadership.clone()),
        sources: Sources::new(None),
        charts: Charts::default(),
        plugins,
        shelf: Shelf::new(options.plugin_cache.as_deref().map(code_cache::pulled)),
        metrics,
        queue: Arc::new(Queue::new()),
        ledger: Ledger::default(),
        bindings: Bindings::default(),
        identity: options.identity.clone(),
        watches,
        leadership,
        cluster,
        options,
    };
    (Arc::new(ctx), wakes)
}

/// Starts the watches of owners, and asks for each owner that comes, changes or goes.
async fn follow_changes(ctx: Arc<Context>) {
    let mut changes = ctx.caches.subscribe();
    for (api_version, kind, _) in KINDS {
        let all = Interest::all(Gvk::new(api_version, kind));
        let interest = match ctx.options.selector.as_str() {
            // Plugins serve whoever names them.
            selector if !selector.is_empty() && kind != "Plugin" => all.selecting(selector),
            _ => all,
        };
        ctx.caches.hold(&interest, &Holder::Part("owners"));
    }
    ctx.caches.hold(&record::helm_secrets(), &Holder::Part("releases"));
    watches::bind_file(&ctx, &[], &ctx.options.watches);
    while let Some(changed) = changes.next().await {
        let (interest, object, old, new) = match changed {
            Changed::Object { interest, object, old, new } => (interest, object, old, new),
            Changed::Kind(kind) => {
                ctx.bindings.outdated(&ctx, &kind).into_iter().for_each(|key| ctx.queue.wake(key));
                continue;
            }
            Changed::Text(_) => continue,
        };
        if *interest == record::helm_secrets() {
            wake_owner_of_release(&ctx, old.as_ref(), new.as_ref());
            continue;
        }
        let is_known = old.is_some() && new.is_some();
        match key_of(&ctx, &object) {
            Some(key @ Key::Owner(_)) => owner_changed(&ctx, key, &object.gvk(), is_known),
            Some(key) => ctx.queue.wake(key),
            None => {}
        }
    }
}

fn owner_changed(ctx: &Context, owner: Key, kind: &Gvk, is_known: bool) {
    ctx.bindings.leaving(kind).into_iter().for_each(|key| ctx.queue.wake(key));
    // A change of a known owner wakes it through what it has read.
    if !is_known {
        ctx.queue.wake(owner);
        // Its Watch says how many there are, once for all that come and go together.
        ctx.bindings.of_kind(kind).into_iter().for_each(|key| ctx.queue.wake_after(key, COUNT_PAUSE));
    }
}

/// A record of Helm that somebody else wrote or deleted concerns its owner.
fn wake_owner_of_release(ctx: &Context, old: Option<&Seen>, new: Option<&Seen>) {
    let is_own = new.is_some_and(|seen| seen.object.annotation(names::OWNED_BY).is_some());
    let release = new.or(old).filter(|_| !is_own).and_then(|seen| record::release_of(&seen.object));
    if let Some(key) = release.and_then(|release| ctx.ledger.owner_of(&release)) {
        ctx.queue.wake(key);
    }
}

fn key_of(ctx: &Context, object: &ObjectRef) -> Option<Key> {
    let ours = KINDS
        .iter()
        .find(|(api_version, kind, _)| object.api_version == *api_version && object.kind == *kind);
    match ours {
        Some((_, _, key)) => Some(key(object.clone())),
        None => ctx.bindings.binds(&object.gvk()).then(|| Key::Owner(object.clone())),
    }
}

/// Asks for each key one of whose reads has another answer now.
async fn follow_wakes(ctx: Arc<Context>, mut wakes: Wakes) {
    loop {
        let wake = wakes.next().await;
        if let Some(key) = ctx.key_of_holder(&wake.holder) {
            tracing::trace!(%key, because = ?wake.because, "woken");
            ctx.queue.wake(key);
        }
    }
}

/// Looks at every release now and then without an event; what it finds to do, an event should have told.
async fn sweep(ctx: Arc<Context>) {
    loop {
        let spread = 0.8 + 0.4 * rand::random::<f64>();
        tokio::time::sleep(ctx.options.sweep.mul_f64(spread)).await;
        for key in ctx.ledger.owners() {
            ctx.queue.wake(key);
        }
    }
}

async fn work(ctx: Arc<Context>) {
    while let Some(key) = ctx.queue.next().await {
        let again = match &key {
            Key::Owner(owner) => pass::reconcile(&ctx, owner).await,
            Key::Plugin(name) => plugins::reconcile(&ctx, name).await,
            Key::Component(reference) => plugins::component::reconcile(&ctx, reference).await,
            Key::Watch(name) => watches::reconcile(&ctx, name).await,
            Key::NotServed(object) => tell_not_served(&ctx, &key, object).await,
        };
        ctx.queue.done(&key, again);
    }
}

/// One event for each object of a kind that is accepted and not served yet.
async fn tell_not_served(ctx: &Context, key: &Key, target: &ObjectRef) -> Option<Duration> {
    let (object, _) = ctx.know(key, |facts| facts.get(target)).await;
    let object = object.found()?;
    let uid = object.uid().unwrap_or_default().to_owned();
    if ctx.ledger.with(key, |entry| std::mem::replace(&mut entry.recorded, uid.clone()) != uid) {
        let message =
            format!("objects of kind {} are accepted, and this version does nothing for them", target.kind);
        report::note(ctx, &object, NoteKind::Warning, "NotServedYet", &message).await;
    }
    None
}
