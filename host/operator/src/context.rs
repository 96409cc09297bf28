//! What every pass has at hand.

use std::{fmt, sync::Arc, time::Duration};

use pintle_api::{Facts, ObjectRef, Record, Recorder};
use pintle_cluster::{Caches, Cluster, Holder, Writer};
use pintle_source::Sources;

use crate::{charts::Charts, ledger::Ledger, metrics::Metrics, options::Options, plugins::Plugins, queue::Queue};

/// Rounds in which a step may find reads nobody had looked up.
const ROUNDS: usize = 16;

/// What every pass has at hand.
pub(crate) struct Context {
    pub(crate) options: Options,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) caches: Arc<Caches>,
    pub(crate) writer: Writer,
    pub(crate) sources: Sources,
    pub(crate) charts: Charts,
    pub(crate) plugins: Plugins,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) queue: Arc<Queue<Key>>,
    /// What this process remembers of releases between passes.
    pub(crate) ledger: Ledger,
}

/// Who a pass is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// The owner of a release: a SpecialResource, or an object of a watched kind.
    Owner(ObjectRef),
    /// A Plugin, by name.
    Plugin(String),
    /// A Watch, by name.
    Watch(String),
    /// An object of a kind that is accepted and not served yet.
    NotServed(ObjectRef),
}

// === impl Key ===

impl Key {
    /// Under which name the caches hold what this key reads.
    pub(crate) fn holder(&self) -> Holder {
        match self {
            Self::Plugin(name) => Holder::Plugin(name.clone()),
            Self::Owner(_) | Self::Watch(_) | Self::NotServed(_) => Holder::Release(self.to_string()),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner(owner) | Self::NotServed(owner) => write!(f, "{owner}"),
            Self::Plugin(name) => write!(f, "Plugin {name}"),
            Self::Watch(name) => write!(f, "Watch {name}"),
        }
    }
}

// === impl Context ===

impl Context {
    /// Runs a step over the caches until it finds everything it reads, fetching what nobody had
    /// looked up. Gives the answer, and what was read for it.
    pub(crate) async fn know<T>(&self, key: &Key, step: impl Fn(&dyn Facts) -> T) -> (T, Record) {
        let mut rounds = 0;
        loop {
            let recorder = Recorder::new(&*self.caches);
            let answer = step(&recorder);
            let record = recorder.into_record();
            let needs = record.needs();
            rounds += 1;
            if needs.is_empty() || rounds > ROUNDS {
                return (answer, record);
            }
            self.caches.fetch(&needs, &key.holder()).await;
        }
    }

    /// Asks for a key again after a time.
    pub(crate) fn wake_after(&self, key: &Key, time: Duration) {
        self.queue.wake_after(key.clone(), time);
    }
}
