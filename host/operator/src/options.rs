//! What an administrator sets.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use pintle_cluster::ConnectOptions;

/// What an administrator sets.
pub struct Options {
    /// How the cluster is reached.
    pub connect: ConnectOptions,
    /// Where metrics are served; absent: nowhere.
    pub metrics: Option<SocketAddr>,
    /// Where health, readiness and releases are served; absent: nowhere.
    pub health: Option<SocketAddr>,
    /// The operator's own namespace.
    pub namespace: String,
    /// Name of the Lease; absent: no election, for one operator alone.
    pub election: Option<String>,
    /// Owners this operator takes care of, by label; empty: all.
    pub selector: String,
    /// Plugins that are not named by digest may be loaded.
    pub allow_unsigned: bool,
    /// Registries that speak plain HTTP, as `host:port`.
    pub plain_http: Vec<String>,
    /// Folders that `file://` repositories may lie in; empty: any.
    pub chart_folders: Vec<PathBuf>,
    /// How many owners are worked on at once.
    pub workers: usize,
    /// How often a release is looked at without an event.
    pub sweep: Duration,
}
