//! What every pass has at hand.

use std::{fmt, sync::Arc};

use pintle_api::{Answer, Facts, Gvk, Object, ObjectRef, Record, Recorder};
use pintle_chart::{Capabilities, capabilities::KubeVersion};
use pintle_cluster::{Caches, Cluster, Holder, Leadership, WatchSet, Writer};
use pintle_source::Sources;

use crate::{
    charts::Charts,
    front::{Front, FrontError},
    ledger::Ledger,
    metrics::Metrics,
    options::Options,
    plugins::{Plugins, Shelf, component},
    queue::Queue,
    watches::Bindings,
};

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
    pub(crate) shelf: Shelf,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) queue: Arc<Queue<Key>>,
    /// What this process remembers of releases between passes.
    pub(crate) ledger: Ledger,
    /// Which vendor's kinds are served.
    pub(crate) bindings: Bindings,
    /// Who is woken by what.
    pub(crate) watches: Arc<WatchSet>,
    pub(crate) leadership: Leadership,
    /// Name of this process in events and the lease.
    pub(crate) identity: String,
}

/// Who a pass is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// The owner of a release: a SpecialResource, or an object of a watched kind.
    Owner(ObjectRef),
    /// A Plugin, by name.
    Plugin(String),
    /// A component that charts name themselves, by reference.
    Component(String),
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
            Self::Plugin(name) | Self::Component(name) => Holder::Plugin(name.clone()),
            Self::Owner(_) | Self::Watch(_) | Self::NotServed(_) => Holder::Release(self.to_string()),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner(owner) | Self::NotServed(owner) => write!(f, "{owner}"),
            Self::Plugin(name) => write!(f, "Plugin {name}"),
            Self::Component(reference) => write!(f, "component {reference}"),
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

    /// The release an owner asks for; nothing when no Watch binds its kind any more.
    pub(crate) fn front_of(&self, owner: &Arc<Object>) -> Option<Result<Front, FrontError>> {
        if owner.kind() == "SpecialResource" && owner.gvk().group == "sro.openshift.io" {
            return Some(Front::of_special_resource(Arc::clone(owner)));
        }
        let watch = self.bindings.of(&owner.gvk())?;
        Some(Front::of_watched(Arc::clone(owner), watch))
    }

    /// What the cluster can do, as charts see it.
    pub(crate) fn capabilities(&self) -> Capabilities {
        let Some(known) = self.cluster.discovery.capabilities() else { return Capabilities::default() };
        match KubeVersion::parse(&known.version.git_version) {
            Ok(kube_version) => Capabilities { kube_version, api_versions: known.api_versions.clone() },
            Err(_) => Capabilities { api_versions: known.api_versions.clone(), ..Capabilities::default() },
        }
    }

    /// Counts up each time the cluster serves other kinds.
    pub(crate) fn generation(&self) -> u64 {
        *self.cluster.discovery.generations().borrow()
    }

    /// Whether objects of a kind live in namespaces; nothing for kinds nobody serves.
    pub(crate) fn is_namespaced(&self, gvk: &Gvk) -> Option<bool> {
        match self.cluster.discovery.kind(gvk) {
            Answer::Found(served) => Some(served.namespaced),
            _ => None,
        }
    }

    /// True while this process may write.
    pub(crate) fn leads(&self) -> bool {
        self.leadership.leads()
    }

    /// The key that holds reads under this name.
    pub(crate) fn key_of_holder(&self, holder: &Holder) -> Option<Key> {
        match holder {
            Holder::Plugin(name) if component::is_reference(name) => Some(Key::Component(name.clone())),
            Holder::Plugin(name) => Some(Key::Plugin(name.clone())),
            Holder::Release(text) => self.ledger.key_of(text),
            Holder::Part(_) => None,
        }
    }
}
