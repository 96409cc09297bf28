//! The tasks behind the caches: one for each interest, one that tidies up, one that hears of new kinds.

use std::{
    collections::HashSet,
    sync::{Arc, Weak},
    time::Duration,
};

use pintle_api::{Answer, Gvk, Object};
use tokio::sync::watch;

use super::{
    Caches,
    changes::Changed,
    informer::{Sink, Source, follow},
    store::{Stage, Store},
};
use crate::{
    counters::Verb,
    discovery::Served,
    link::{Failure, Link, Query},
};

/// How often it is looked for interests that nobody holds.
const TIDY: Duration = Duration::from_secs(5);
/// An unknown kind is looked for this often where no watch tells of new ones.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// How often it is asked whether an object is gone, before its DELETED event counts by itself.
const CONFIRMATIONS: u32 = 4;

/// Between the watch and the store of one interest.
struct Feed {
    caches: Weak<Caches>,
    store: Arc<Store>,
    served: Arc<Served>,
}

pub(super) fn start(caches: &Caches, store: Arc<Store>) -> tokio::task::AbortHandle {
    let link = Arc::clone(&caches.link);
    tokio::spawn(run(Weak::clone(&caches.myself), link, store)).abort_handle()
}

/// Follows the kind for as long as it is served, and waits while it is not.
async fn run(caches: Weak<Caches>, link: Arc<Link>, store: Arc<Store>) {
    let gvk = store.interest.gvk.clone();
    loop {
        let Some(strong) = caches.upgrade() else { return };
        let mut generations = strong.discovery.generations();
        let served = strong.discovery.kind(&gvk);
        if let Answer::Found(served) = served {
            drop(strong);
            let feed = Feed { caches: Weak::clone(&caches), store: Arc::clone(&store), served };
            follow(&link, &feed.source(), &feed).await;
            // 404: the kind is gone, or its server is; discovery knows which.
            let Some(strong) = caches.upgrade() else { return };
            if let Err(error) = strong.discovery.refresh().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "discovery failed");
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            continue;
        }
        if served == Answer::KindUnknown && store.enter(Stage::KindUnknown) {
            strong.listeners.tell(&Changed::Kind(gvk.clone()));
        }
        strong.discovery.look_again().await;
        drop(strong);
        let _ = tokio::time::timeout(LOOK_AGAIN, generations.changed()).await;
    }
}

/// Starts what runs once for all interests.
pub(super) fn start_housekeeping(caches: &Caches) {
    tokio::spawn(tidy(Weak::clone(&caches.myself)));
    let known = caches.discovery.kinds().iter().map(|served| served.gvk.clone()).collect();
    let generations = caches.discovery.generations();
    tokio::spawn(hear_of_kinds(Weak::clone(&caches.myself), generations, known));
}

async fn tidy(caches: Weak<Caches>) {
    loop {
        let Some(strong) = caches.upgrade() else { return };
        let pause = TIDY.min(strong.linger.max(Duration::from_millis(10)));
        strong.close_idle();
        strong.rest();
        drop(strong);
        tokio::time::sleep(pause).await;
    }
}

/// Tells which kinds came and went.
async fn hear_of_kinds(caches: Weak<Caches>, mut generations: watch::Receiver<u64>, mut known: HashSet<Gvk>) {
    while generations.changed().await.is_ok() {
        let Some(caches) = caches.upgrade() else { return };
        let now: HashSet<Gvk> = caches.discovery.kinds().iter().map(|served| served.gvk.clone()).collect();
        now.symmetric_difference(&known).for_each(|gvk| caches.listeners.tell(&Changed::Kind(gvk.clone())));
        known = now;
    }
}

// === impl Feed ===

impl Feed {
    fn source(&self) -> Source {
        let interest = &self.store.interest;
        Source {
            gvk: interest.gvk.clone(),
            resource: self.served.resource(),
            path: self.served.path(interest.namespace.as_deref(), None),
            fields: interest.name.as_ref().map(|name| format!("metadata.name={name}")),
            labels: interest.selector.clone(),
            metadata_only: matches!(interest.mask, super::Mask::Metadata | super::Mask::Names),
        }
    }

    fn tell(&self, changed: Option<Changed>) {
        if let (Some(changed), Some(caches)) = (changed, self.caches.upgrade()) {
            caches.listeners.tell(&changed);
        }
    }

    fn enter(&self, stage: Stage) {
        if self.store.enter(stage) {
            self.tell(Some(Changed::Kind(self.store.interest.gvk.clone())));
        }
    }

    /// An object that a selected watch does not show any more may only have lost a label (D5).
    fn lost(&self, object: &Object) {
        let Some(uid) = object.uid() else { return };
        if self.store.is_conclusive() || !self.store.knows(object) {
            self.tell(self.store.forget(&object.reference(), uid));
            return;
        }
        let (caches, store, served) =
            (Weak::clone(&self.caches), Arc::clone(&self.store), Arc::clone(&self.served));
        tokio::spawn(confirm(caches, store, served, object.clone()));
    }

    /// What a person must do about a refusal.
    fn refusal(&self, failure: &Failure) -> Option<Arc<str>> {
        let status = failure.status()?;
        let link = &self.caches.upgrade()?.link;
        let interest = &self.store.interest;
        let resource = self.served.resource();
        let place = match &interest.namespace {
            Some(namespace) => format!(" in namespace {namespace}"),
            None if self.served.namespaced => " in all namespaces".to_owned(),
            None => String::new(),
        };
        let account = &link.account;
        match status.code {
            401 => Some(format!("the API server does not accept the credentials of {account}").into()),
            403 => Some(
                format!(
                    "{account} may not list and watch {resource}{place}; add a rule with the verbs get, list and \
                     watch on {resource} to a role of that account"
                )
                .into(),
            ),
            400 | 405 | 422 => Some(format!("{resource} cannot be watched{place}: {}", status.message).into()),
            _ => None,
        }
    }
}

impl Sink for Feed {
    fn begin(&self) {
        self.store.begin();
    }

    fn listed(&self, object: Object) {
        self.tell(self.store.put(&object));
    }

    fn done(&self, version: &str) {
        self.store.unlisted(version).iter().for_each(|object| self.lost(object));
        self.enter(Stage::Synced);
    }

    fn applied(&self, object: Object) {
        self.tell(self.store.put(&object));
    }

    fn deleted(&self, object: Object) {
        self.lost(&object);
    }

    fn failed(&self, failure: &Failure) {
        if let Some(why) = self.refusal(failure) {
            tracing::warn!(interest = ?self.store.interest, %why, "a watch is refused");
            self.enter(Stage::Denied(why));
        } else {
            tracing::debug!(
                interest = ?self.store.interest, error = failure as &dyn std::error::Error, "a watch broke off"
            );
        }
    }
}

/// One GET decides whether an object is gone or has only left the selector.
async fn confirm(caches: Weak<Caches>, store: Arc<Store>, served: Arc<Served>, object: Object) {
    let mut pause = Duration::from_millis(500);
    let Some(uid) = object.uid().map(str::to_owned) else { return };
    for attempt in 1..=CONFIRMATIONS {
        let Some(link) = caches.upgrade().map(|caches| Arc::clone(&caches.link)) else { return };
        let live = look_up(&link, &served, &object).await;
        let changed = match live {
            Ok(Some(live)) if live.uid() == Some(uid.as_str()) => store.leave(&live),
            Ok(_) => store.forget(&object.reference(), &uid),
            Err(error) if attempt == CONFIRMATIONS => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "could not ask whether an object is gone"
                );
                store.forget(&object.reference(), &uid)
            }
            Err(_) => {
                tokio::time::sleep(pause).await;
                pause *= 2;
                continue;
            }
        };
        if let (Some(changed), Some(caches)) = (changed, caches.upgrade()) {
            caches.listeners.tell(&changed);
        }
        return;
    }
}

async fn look_up(link: &Link, served: &Served, object: &Object) -> Result<Option<Object>, Failure> {
    let request = Query::new(&served.path(object.namespace(), Some(object.name()))).get();
    match link.send(Verb::Get, &served.resource(), request).await {
        Ok(reply) => reply.json().map(Some),
        Err(failure) if failure.code() == Some(404) => Ok(None),
        Err(failure) => Err(failure),
    }
}
