//! Opens the connection: from where, as whom, with which limits.

use std::{path::PathBuf, sync::Arc, time::Duration};

use http::HeaderValue;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

use crate::{
    counters::{Counters, Verb},
    discovery::DiscoveryError,
    link::{Failure, Link, Query},
    read::{Masks, Resolve},
};

/// How long a TCP and TLS handshake may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Interests nobody holds live this long (D28).
const LINGER: Duration = Duration::from_secs(60);

/// Where the cluster is.
#[derive(Clone, Debug, Default)]
pub enum Reach {
    /// `KUBECONFIG` or the user's kubeconfig, else the service account of the pod.
    #[default]
    Infer,
    /// The service account of the pod.
    InCluster,
    /// A kubeconfig file, and a context in it other than its current one.
    File {
        /// Path of the kubeconfig.
        path: PathBuf,
        /// Name of the context.
        context: Option<String>,
    },
    /// A configuration made by the caller; its retries are turned off and its user agent is set.
    Given(Box<kube::Config>),
}

/// What a connection is made of.
pub struct ConnectOptions {
    /// Where the cluster is.
    pub reach: Reach,
    /// `User-Agent` of each request; the audit log shows it.
    pub user_agent: String,
    /// Which fields the caches keep, by kind.
    pub masks: Masks,
    /// Who asks registries for digests; without one each such read is denied.
    pub resolver: Option<Arc<dyn Resolve>>,
    /// How long an interest lives that nobody holds.
    pub linger: Duration,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No kubeconfig, and this is no pod of a cluster.
    #[error("found no configuration for a cluster")]
    Infer(#[source] Box<kube::config::InferConfigError>),
    /// The service account's files or variables are not there.
    #[error("found no service account; is this a pod?")]
    InCluster(#[source] Box<kube::config::InClusterError>),
    /// The kubeconfig does not exist or says something impossible.
    #[error("could not use kubeconfig {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
    /// Certificates, tokens or the user agent cannot be used.
    #[error("could not set up the client")]
    Client(#[source] Box<kube::Error>),
    /// The user agent holds what no header may.
    #[error("the user agent is no header value")]
    UserAgent,
    /// The server does not answer or does not know the account.
    #[error("could not ask the API server who this account is")]
    Account(#[source] Failure),
    /// The server does not say what it serves.
    #[error("could not learn what the API server serves")]
    Discover(#[source] DiscoveryError),
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            reach: Reach::default(),
            user_agent: concat!("pintle/", env!("CARGO_PKG_VERSION")).to_owned(),
            masks: Masks::default(),
            resolver: None,
            linger: LINGER,
        }
    }
}

pub(crate) async fn open(reach: Reach, user_agent: &str) -> Result<Link, ConnectError> {
    let mut config = configuration(reach).await?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    // Each caller decides what to do on 429 and 503; a hidden retry of a write would outlive a lease.
    config.default_retry = false;
    let agent = HeaderValue::from_str(user_agent).map_err(|_| ConnectError::UserAgent)?;
    config.headers.push((http::header::USER_AGENT, agent));
    let client = kube::Client::try_from(config).map_err(|e| ConnectError::Client(Box::new(e)))?;
    let mut link = Link { client, account: String::new(), counters: Arc::new(Counters::default()) };
    link.account = who_am_i(&link).await.map_err(ConnectError::Account)?;
    Ok(link)
}

async fn configuration(reach: Reach) -> Result<kube::Config, ConnectError> {
    match reach {
        Reach::Infer => kube::Config::infer().await.map_err(|e| ConnectError::Infer(Box::new(e))),
        Reach::InCluster => kube::Config::incluster().map_err(|e| ConnectError::InCluster(Box::new(e))),
        Reach::File { path, context } => {
            let wrong = |source| ConnectError::File { path: path.clone(), source: Box::new(source) };
            let file = Kubeconfig::read_from(&path).map_err(wrong)?;
            let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
            let wrong = |source| ConnectError::File { path: path.clone(), source: Box::new(source) };
            kube::Config::from_custom_kubeconfig(file, &options).await.map_err(wrong)
        }
        Reach::Given(config) => Ok(*config),
    }
}

/// The name the server gives this account: messages about missing rights quote it.
async fn who_am_i(link: &Link) -> Result<String, Failure> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let request = Query::new(path).post(&review);
    let reply = link.send(Verb::Create, "selfsubjectreviews.authentication.k8s.io", request).await?;
    let review: serde_json::Value = reply.json()?;
    let name = review.pointer("/status/userInfo/username").and_then(serde_json::Value::as_str);
    Ok(name.unwrap_or("this account").to_owned())
}
