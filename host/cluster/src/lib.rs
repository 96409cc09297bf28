//! The cluster: one way to watch it, one way to write to it, and who may write at a time.
//!
//! [`Cluster::connect`] opens a connection and learns what the server serves. [`Cluster::caches`]
//! answers [`pintle_api::Facts`] from watches, [`Cluster::writer`] is the only thing in the workspace
//! that writes, [`Cluster::campaign`] takes part in leader election. No controller logic lives here.

mod connect;
mod counters;
mod discovery;
mod lease;
mod link;
mod read;
mod survey;
mod write;

pub use connect::{ConnectError, ConnectOptions, Reach};
pub use counters::{Counters, Verb};
pub use discovery::{Capabilities, Discovery, DiscoveryError, Served, ServerVersion};
pub use lease::{Leadership, LeaseSettings, NotLeading, Permit};
pub use link::Failure;
pub use read::{
    CacheSize, Caches, Changed, Changes, Holder, Interest, Mask, Masks, Resolve, Seen, Stage, Wake, Wakes,
    WatchSet, answer_fingerprint, object_fingerprint,
};
pub use survey::Survey;
pub use write::{
    ApiError, Applied, Apply, Cause, Delete, Deleted, Expect, FieldConflict, InvalidField, Note, NoteKind,
    Patch, Propagation, Retry, Writer, applied_fingerprint,
};

use std::sync::Arc;

/// A connection to one cluster with everything that is built on it.
pub struct Cluster {
    /// Answers reads from watches.
    pub caches: Arc<Caches>,
    /// What the server serves.
    pub discovery: Arc<Discovery>,
    /// Requests by verb and resource since the connection was opened.
    pub counters: Arc<Counters>,
    link: Arc<link::Link>,
}

impl Cluster {
    /// Connects, learns the account's name and what the server serves. Starts no watch but those of
    /// [`Discovery`], and these only with [`Discovery::follow`].
    ///
    /// # Errors
    /// When no configuration is found or the server does not answer; a retry helps only for the latter.
    pub async fn connect(options: ConnectOptions) -> Result<Arc<Self>, ConnectError> {
        let ConnectOptions { reach, user_agent, masks, resolver, linger } = options;
        let link = Arc::new(connect::open(reach, &user_agent).await?);
        let discovery = Discovery::new(Arc::clone(&link));
        discovery.refresh().await.map_err(ConnectError::Discover)?;
        let caches = Caches::new(Arc::clone(&link), Arc::clone(&discovery), masks, resolver, linger);
        let counters = Arc::clone(&link.counters);
        Ok(Arc::new(Self { caches, discovery, counters, link }))
    }

    /// Writes as long as `leadership` allows; each response is put into the caches at once.
    #[must_use]
    pub fn writer(&self, leadership: Leadership) -> Writer {
        Writer::new(Arc::clone(&self.link), Arc::clone(&self.discovery), Arc::clone(&self.caches), leadership)
    }

    /// Starts to take part in the election of a leader and goes on until released or dropped.
    #[must_use]
    pub fn campaign(&self, settings: LeaseSettings) -> Leadership {
        Leadership::campaign(Arc::clone(&self.link), settings)
    }

    /// The name the server knows this account by, as `system:serviceaccount:pintle-system:pintle`.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.link.account
    }
}
