//! What the server serves: kinds, their scope and plural, and the capabilities charts ask for.
//!
//! Two requests read everything. [`Discovery::follow`] watches the metadata of CRDs and APIServices
//! and reads again when one changes, so nothing is asked while nothing changes (D12).

mod follow;
mod table;

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use pintle_api::{Answer, Gvk};
use tokio::sync::{Mutex, watch};

pub use table::{Capabilities, Served, ServerVersion};
use table::{Groups, Table};

use crate::{
    counters::Verb,
    link::{Failure, Link, Query},
};

/// Aggregated discovery: stable since Kubernetes 1.30.
const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// An unknown kind is worth a new look after this time where nothing tells of changes.
const STALE: Duration = Duration::from_secs(30);

/// The kinds the server serves, kept up to date once [`Discovery::follow`] was called.
pub struct Discovery {
    link: Arc<Link>,
    table: RwLock<Option<Arc<Table>>>,
    /// Serves as a queue too: who comes while another reads takes that reading.
    reading: Mutex<()>,
    generation: watch::Sender<u64>,
    followed: RwLock<Followed>,
}

/// Whether changes are told.
#[derive(Default)]
struct Followed {
    tasks: Vec<tokio::task::AbortHandle>,
    /// Both watches stand; without them unknown kinds are looked up again when asked for.
    synced: bool,
}

/// Why the server does not say what it serves.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// No answer to the request for kinds.
    #[error("could not read the list of kinds")]
    Kinds(#[source] Failure),
    /// No answer to the request for the version.
    #[error("could not read the server's version")]
    Version(#[source] Failure),
}

impl Discovery {
    pub(crate) fn new(link: Arc<Link>) -> Arc<Self> {
        let (generation, _) = watch::channel(0);
        let (table, reading, followed) = Default::default();
        Arc::new(Self { link, table, reading, generation, followed })
    }

    /// The resource of a kind, `KindUnknown` when it is not served, `NotYet` before the first reading.
    #[must_use]
    pub fn kind(&self, gvk: &Gvk) -> Answer<Arc<Served>> {
        match self.table() {
            None => Answer::NotYet,
            Some(table) => {
                table.kinds.get(gvk).map_or(Answer::KindUnknown, |served| Answer::Found(Arc::clone(served)))
            }
        }
    }

    /// Every kind that is served, one version each.
    #[must_use]
    pub fn kinds(&self) -> Vec<Arc<Served>> {
        self.table().map(|table| table.kinds.values().cloned().collect()).unwrap_or_default()
    }

    /// The preferred version of a kind of a group, where it is served.
    #[must_use]
    pub fn preferred(&self, group: &str, kind: &str) -> Option<Arc<Served>> {
        let table = self.table()?;
        let gvk = table.preferred.get(&(group.to_owned(), kind.to_owned()))?;
        table.kinds.get(gvk).cloned()
    }

    /// Version and API versions as Helm's `.Capabilities`; `None` before the first reading.
    #[must_use]
    pub fn capabilities(&self) -> Option<Arc<Capabilities>> {
        self.table().map(|table| Arc::clone(&table.capabilities))
    }

    /// Counts readings that found other kinds than the one before; a receiver wakes for each.
    #[must_use]
    pub fn generations(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Reads everything anew. Who calls while another reading runs waits for it and takes its result.
    ///
    /// # Errors
    /// When the server does not answer; a retry helps.
    pub async fn refresh(&self) -> Result<(), DiscoveryError> {
        let asked = Instant::now();
        let _turn = self.reading.lock().await;
        if self.table().is_some_and(|table| table.read_at > asked) {
            return Ok(());
        }
        let table = self.read().await?;
        self.replace(table);
        Ok(())
    }

    /// Reads anew for a kind that is not served, where no watch tells when that changes and the last
    /// reading is older than 30 s.
    pub(crate) async fn look_again(&self) {
        let synced = self.followed.read().unwrap_or_else(PoisonError::into_inner).synced;
        let fresh = self.table().is_some_and(|table| synced || table.read_at.elapsed() < STALE);
        if !fresh && let Err(error) = self.refresh().await {
            tracing::warn!(error = &error as &dyn std::error::Error, "discovery failed");
        }
    }

    async fn read(&self) -> Result<Table, DiscoveryError> {
        let read_at = Instant::now();
        let groups = async {
            let core = self.ask::<Groups>("/api", ACCEPT).await?;
            let named = self.ask::<Groups>("/apis", ACCEPT).await?;
            Ok::<_, Failure>([core, named])
        };
        let groups = groups.await.map_err(DiscoveryError::Kinds)?;
        let version = match self.capabilities() {
            // The version of a server only changes with its process, which ends every connection; it is
            // read again with the next refresh after a restart of ours.
            Some(known) => known.version.clone(),
            None => self.ask("/version", "application/json").await.map_err(DiscoveryError::Version)?,
        };
        Ok(Table::build(&groups, version, self.table().as_deref(), read_at))
    }

    async fn ask<T: serde::de::DeserializeOwned>(&self, path: &str, accept: &str) -> Result<T, Failure> {
        self.link.send(Verb::Get, "discovery", Query::new(path).get_as(accept)).await?.json()
    }

    fn replace(&self, table: Table) {
        let mut slot = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let same = slot.as_ref().is_some_and(|old| old.kinds == table.kinds);
        *slot = Some(Arc::new(table));
        drop(slot);
        if !same {
            self.generation.send_modify(|generation| *generation += 1);
        }
    }

    fn table(&self) -> Option<Arc<Table>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Discovery {
    fn drop(&mut self) {
        let followed = self.followed.get_mut().unwrap_or_else(PoisonError::into_inner);
        followed.tasks.drain(..).for_each(|task| task.abort());
    }
}
