//! Reads again when a CRD or an APIService changed.

use std::{
    sync::{
        Arc, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
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

/// After a change, discovery lags behind: a CRD is established, then its group is announced, and no event
/// tells of that. So it is read after each of these pauses.
const READINGS: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

/// Longest pause between two readings that fail.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

const WATCHED: [(&str, &str); 2] =
    [("apiextensions.k8s.io/v1", "CustomResourceDefinition"), ("apiregistration.k8s.io/v1", "APIService")];

struct Feed {
    discovery: Weak<Discovery>,
    told: Arc<Told>,
}

/// What the watches tell the reader.
#[derive(Default)]
struct Told {
    news: Notify,
    /// Something changed, rather than a watch having begun.
    changed: AtomicBool,
    /// Lists that were completed.
    lists: AtomicUsize,
}

impl Discovery {
    /// Keeps the kinds up to date from here on: two watches, and a reading after each change. Ends with
    /// the last handle of the cluster.
    pub fn follow(self: &Arc<Self>) {
        let mut followed = self.followed.write().unwrap_or_else(PoisonError::into_inner);
        if !followed.tasks.is_empty() {
            return;
        }
        let told: Arc<Told> = Arc::default();
        for (api_version, kind) in WATCHED {
            let feed = Feed { discovery: Arc::downgrade(self), told: Arc::clone(&told) };
            let gvk = Gvk::new(api_version, kind);
            followed.tasks.push(tokio::spawn(watch(feed, gvk)).abort_handle());
        }
        followed.tasks.push(tokio::spawn(read_again(Arc::downgrade(self), told)).abort_handle());
    }

    /// False when a CRD (`plural.group`) or an APIService (`version.group`) is not among what was read.
    fn serves(&self, object: &Object) -> bool {
        let Some((first, group)) = object.name().split_once('.') else { return true };
        let is_definition = object.kind() == "CustomResourceDefinition";
        self.kinds().iter().any(|served| {
            let step = if is_definition { &served.plural } else { &served.gvk.version };
            step == first && served.gvk.group == group
        })
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

async fn read_again(discovery: Weak<Discovery>, told: Arc<Told>) {
    loop {
        told.news.notified().await;
        tokio::time::sleep(DEBOUNCE).await;
        // A list that is complete says that nothing is missed from here on: one reading is enough.
        let readings = if told.changed.swap(false, Ordering::SeqCst) { READINGS.len() } else { 1 };
        for pause in READINGS.into_iter().take(readings) {
            // What changes meanwhile begins the readings anew.
            if tokio::time::timeout(pause, told.news.notified()).await.is_ok() {
                told.changed.fetch_or(readings > 1, Ordering::SeqCst);
                told.news.notify_one();
                break;
            }
            if read_until_it_succeeds(&discovery).await.is_none() {
                return;
            }
        }
    }
}

/// `None` when nobody needs it any more. A server that is away now is read when it is back, as no event
/// would tell again.
async fn read_until_it_succeeds(discovery: &Weak<Discovery>) -> Option<()> {
    let mut pause = Duration::from_secs(1);
    while let Err(error) = discovery.upgrade()?.refresh().await {
        tracing::warn!(error = &error as &dyn std::error::Error, "discovery failed");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Some(())
}

impl Told {
    fn change(&self) {
        self.changed.store(true, Ordering::SeqCst);
        self.news.notify_one();
    }
}

impl Sink for Feed {
    fn begin(&self) {}

    /// What is listed and not served yet is on its way.
    fn listed(&self, object: Object) {
        let discovery = self.discovery.upgrade();
        if discovery.is_some_and(|discovery| !discovery.serves(&object)) {
            self.told.changed.store(true, Ordering::SeqCst);
        }
    }

    fn done(&self, _: &str) {
        let lists = self.told.lists.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some(discovery) = self.discovery.upgrade() {
            discovery.set_synced(lists >= WATCHED.len());
        }
        self.told.news.notify_one();
    }

    fn applied(&self, _: Object) {
        self.told.change();
    }

    fn deleted(&self, _: Object) {
        self.told.change();
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
