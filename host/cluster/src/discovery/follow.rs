//! Reads again when a CRD or an APIService changed.

use std::{
    sync::{Arc, PoisonError, Weak},
    time::Duration,
};

use pintle_api::{Answer, Gvk, Object};
use tokio::sync::Notify;

use super::Discovery;
use crate::{
    link::Failure,
    read::{Sink, Source, follow},
};

/// Changes of one moment are read as one.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// After a change, discovery lags behind: a CRD is established, then its group is announced. It is read
/// after these pauses, until a reading finds something new twice in a row at most.
const READINGS: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

const WATCHED: [(&str, &str); 2] =
    [("apiextensions.k8s.io/v1", "CustomResourceDefinition"), ("apiregistration.k8s.io/v1", "APIService")];

struct Feed {
    discovery: Weak<Discovery>,
    changed: Arc<Notify>,
    synced: Arc<std::sync::atomic::AtomicUsize>,
}

impl Discovery {
    /// Keeps the kinds up to date from here on: two watches, and a reading after each change. Ends with
    /// the last handle of the cluster.
    pub fn follow(self: &Arc<Self>) {
        let mut followed = self.followed.write().unwrap_or_else(PoisonError::into_inner);
        if !followed.tasks.is_empty() {
            return;
        }
        let (changed, synced) = (Arc::new(Notify::new()), Arc::default());
        for (api_version, kind) in WATCHED {
            let feed = Feed {
                discovery: Arc::downgrade(self),
                changed: Arc::clone(&changed),
                synced: Arc::clone(&synced),
            };
            let gvk = Gvk::new(api_version, kind);
            followed.tasks.push(tokio::spawn(watch(feed, gvk)).abort_handle());
        }
        followed.tasks.push(tokio::spawn(read_again(Arc::downgrade(self), changed)).abort_handle());
    }

    fn set_synced(&self, synced: bool) {
        self.followed.write().unwrap_or_else(PoisonError::into_inner).synced = synced;
    }
}

async fn watch(feed: Feed, gvk: Gvk) {
    loop {
        let Some(discovery) = feed.discovery.upgrade() else { return };
        let link = Arc::clone(&discovery.link);
        if let Answer::Found(served) = discovery.kind(&gvk) {
            drop(discovery);
            let path = served.path(None, None);
            let (fields, labels) = (None, None);
            let source = Source {
                gvk: gvk.clone(),
                resource: served.resource(),
                path,
                fields,
                labels,
                metadata_only: true,
            };
            follow(&link, &source, &feed).await;
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
}

async fn read_again(discovery: Weak<Discovery>, changed: Arc<Notify>) {
    loop {
        changed.notified().await;
        tokio::time::sleep(DEBOUNCE).await;
        for pause in READINGS {
            // What changes meanwhile begins the readings anew.
            if tokio::time::timeout(pause, changed.notified()).await.is_ok() {
                changed.notify_one();
                break;
            }
            let Some(discovery) = discovery.upgrade() else { return };
            if let Err(error) = discovery.refresh().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "discovery failed");
            }
        }
    }
}

impl Sink for Feed {
    fn begin(&self) {}

    fn listed(&self, _: Object) {}

    fn done(&self, _: &str) {
        use std::sync::atomic::Ordering;
        let synced = self.synced.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some(discovery) = self.discovery.upgrade() {
            discovery.set_synced(synced >= WATCHED.len());
        }
        self.changed.notify_one();
    }

    fn applied(&self, _: Object) {
        self.changed.notify_one();
    }

    fn deleted(&self, _: Object) {
        self.changed.notify_one();
    }

    fn failed(&self, failure: &Failure) {
        if matches!(failure.code(), Some(401 | 403))
            && let Some(discovery) = self.discovery.upgrade()
        {
            discovery.set_synced(false);
            tracing::warn!(
                error = failure as &dyn std::error::Error,
                "kinds cannot be watched; unknown ones are looked up every 30 s"
            );
        }
    }
}
