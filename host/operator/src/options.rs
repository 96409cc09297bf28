//! What an administrator sets.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use pintle_api::watch::WatchSpec;
use pintle_cluster::{ConnectOptions, Reach, Resolve};
use pintle_plugin::Compiler;
use pintle_source::Settings;

use crate::images::Images;

/// What an administrator sets.
pub struct Options {
    /// How the cluster is reached.
    pub reach: Reach,
    /// Where metrics are served; absent: nowhere.
    pub metrics: Option<SocketAddr>,
    /// Where health, readiness and releases are served; absent: nowhere.
    pub health: Option<SocketAddr>,
    /// The operator's own namespace.
    pub namespace: String,
    /// Name of the Lease; absent: no election, for one operator alone.
    pub election: Option<String>,
    /// Name of this operator in the lease and in events, unlike that of any other.
    pub identity: String,
    /// Owners this operator takes care of, by label; empty: all.
    pub selector: String,
    /// Plugins that are not named by digest may be loaded.
    pub allow_unsigned: bool,
    /// Registries that speak plain HTTP, as `host:port`.
    pub plain_http: Vec<String>,
    /// How registries are spoken to, by `host:port`: mirrors, certificates.
    pub registries: BTreeMap<String, Settings>,
    /// Credentials for registries, as container engines keep them; asked after those of a Plugin.
    pub registry_config: Option<PathBuf>,
    /// Authorities and logs for signatures, as `trusted_root.json`, where a Plugin names none; absent: those of
    /// Sigstore's public instance.
    pub trust_root: Option<String>,
    /// Where plugins and their compiled code are kept; absent: nowhere.
    pub plugin_cache: Option<PathBuf>,
    /// Folders that `file://` plugins may lie in; empty: none may.
    pub plugin_folders: Vec<PathBuf>,
    /// Folders that `file://` repositories may lie in; empty: any.
    pub chart_folders: Vec<PathBuf>,
    /// Who compiles plugins.
    pub compiler: Compiler,
    /// Kinds that a watches file binds, besides those of Watch objects.
    pub watches: Vec<WatchSpec>,
    /// How many owners are worked on at once.
    pub workers: usize,
    /// How often a release is looked at without an event.
    pub sweep: Duration,
}

// === impl Options ===

impl Options {
    /// The defaults of one operator alone.
    #[must_use]
    pub fn new(reach: Reach, namespace: &str) -> Self {
        Self {
            reach,
            metrics: None,
            health: None,
            namespace: namespace.to_owned(),
            election: None,
            identity: own_identity(),
            selector: String::new(),
            allow_unsigned: false,
            plain_http: Vec::new(),
            registries: BTreeMap::new(),
            registry_config: None,
            trust_root: None,
            plugin_cache: None,
            plugin_folders: Vec::new(),
            chart_folders: Vec::new(),
            compiler: Compiler::default(),
            watches: Vec::new(),
            workers: 4,
            sweep: Duration::from_secs(600),
        }
    }

    /// How each registry is spoken to: as its settings say, and without TLS where it is named so.
    pub(crate) fn registry_settings(&self) -> BTreeMap<String, Settings> {
        let mut settings = self.registries.clone();
        for host in &self.plain_http {
            settings.entry(host.clone()).or_default().plain_http = true;
        }
        settings
    }

    pub(crate) fn connect_options(&self, images: &Arc<Images>) -> ConnectOptions {
        ConnectOptions {
            reach: self.reach.clone(),
            user_agent: format!("pintle/{}", env!("CARGO_PKG_VERSION")),
            masks: crate::masks(),
            resolver: Some(Arc::clone(images) as Arc<dyn Resolve>),
            ..ConnectOptions::default()
        }
    }
}

/// Name of one run: that of its pod where it has one. Pods that share the network of a node share its
/// name and are all process 1, so a part of it is random.
fn own_identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "pintle".to_owned());
    format!("{host}-{:08x}", rand::random::<u32>())
}
