//! A Kubernetes control plane of real components on loopback, which ends with the process that started it.

mod access;
mod components;
mod pki;
mod ports;
mod process;
mod start;
mod state;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;
use std::{fs, io};

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use kube::{Client, Config};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use access::{ADMIN_GROUP, User};
pub use state::{State, StateError};

use crate::audit::Audit;
use crate::binaries::Binaries;
use crate::openshift;
use crate::simulate::Simulators;
use crate::stages::Timings;
use access::{Credential, Endpoint};
use components::Layout;
use process::{Daemon, Group};

/// Images with this prefix are not there until something pushes them: OpenShift's own registry.
pub const INTERNAL_REGISTRY: &str = "image-registry.openshift-image-registry.svc:5000/";

/// The user whose kubeconfig file is given to people.
const ADMIN: &str = "pintle:admin";
const SIMULATOR: &str = "pintle:simulator";

/// Life of a token that [`ControlPlane::service_account`] asks for, in seconds: a day of work.
const TOKEN_SECONDS: i64 = 86_400;

/// What a control plane is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// The programs, from [`crate::binaries::ensure`].
    pub binaries: Binaries,
    /// Where everything is kept. Without one it is a temporary folder, which ends with the control plane.
    pub data_dir: Option<PathBuf>,
    /// It outlives this process; [`State`] finds it again. Needs a `data_dir`.
    pub detach: bool,
    /// An OCI registry beside the API server.
    pub registry: Option<RegistryStorage>,
    /// How long simulated kubelets take.
    pub timings: Timings,
    /// Prefixes of images that are missing until the image simulator has them.
    pub gated_images: Vec<String>,
    /// Users besides the administrator, each with a token.
    pub users: Vec<User>,
    /// The kinds of OpenShift it has; none is plain Kubernetes.
    pub openshift: Vec<openshift::Kind>,
    /// CustomResourceDefinitions that are there before the controllers look for kinds. Kinds installed later are
    /// garbage-collected only after the collector's next look, up to 30 s later.
    pub definitions: Vec<Value>,
}

impl Options {
    /// A control plane for a test: temporary, with a registry in memory, ended with this process.
    pub fn new(binaries: Binaries) -> Self {
        Self {
            binaries,
            data_dir: None,
            detach: false,
            registry: Some(RegistryStorage::Memory),
            timings: Timings::default(),
            gated_images: vec![INTERNAL_REGISTRY.to_owned()],
            users: Vec::new(),
            openshift: openshift::Kind::ALL.to_vec(),
            definitions: Vec::new(),
        }
    }
}

/// Where the registry keeps what is pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryStorage {
    /// Nowhere.
    Memory,
    /// In a folder.
    Folder(PathBuf),
}

/// The ports of one control plane, all on 127.0.0.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) apiserver: u16,
    pub(crate) kubelet: u16,
    pub(crate) registry: u16,
}

/// How long each part took to be ready, from the start of the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// etcd took connections.
    pub etcd: Duration,
    /// The API server called itself ready.
    pub apiserver: Duration,
    /// Controllers, scheduler, kubelets and registry all worked.
    pub all: Duration,
}

/// Why a control plane did not start, or could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file, port or process operation failed.
    #[error("could not {action}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A program ended although it should run.
    #[error("{name} ended ({status}); the last lines of {}:\n{tail}", log.display())]
    Ended {
        /// The program.
        name: String,
        /// Its exit status.
        status: String,
        /// Its log.
        log: PathBuf,
        /// The end of that log.
        tail: String,
    },
    /// Something did not become ready in time.
    #[error("{what} was not ready after {} s", after.as_secs())]
    Late {
        /// What was waited for.
        what: &'static str,
        /// For how long.
        after: Duration,
    },
    /// A request to the API server failed.
    #[error("the local API server refused to {action}")]
    Api {
        /// What was asked for.
        action: &'static str,
        /// Its answer.
        source: Box<kube::Error>,
    },
    /// No such user was named in the options.
    #[error("user {0} has no token here; name it in the options of the control plane")]
    UnknownUser(String),
    /// A detached control plane needs a folder that stays.
    #[error("a detached control plane needs a data folder")]
    DetachedWithoutFolder,
}

impl Error {
    pub(crate) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }

    pub(crate) fn api(action: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Api { action, source: Box::new(source) }
    }
}

/// A running control plane. Unless it is detached it ends when this is dropped, and when this process ends in any way.
#[derive(Debug)]
pub struct ControlPlane {
    layout: Layout,
    endpoint: Endpoint,
    ports: Ports,
    with_registry: bool,
    credentials: Vec<Credential>,
    timings: Timings,
    gated_images: Vec<String>,
    openshift: Vec<openshift::Kind>,
    phases: Phases,
    simulators: Option<Simulators>,
    daemons: Mutex<Vec<Daemon>>,
    group: Option<Group>,
    /// Removed after everything has ended.
    scratch: Option<tempfile::TempDir>,
}

impl ControlPlane {
    /// A control plane whose API server, controllers, scheduler, kubelets and registry are all ready.
    ///
    /// # Errors
    /// A program could not be started, ended early ([`Error::Ended`] shows its log) or was not ready in time.
    ///
    /// # Cancellation
    /// What was started ends when the future is dropped, unless it is detached.
    pub async fn start(options: Options) -> Result<Self, Error> {
        start::run(options).await
    }

    /// One control plane for all tests of this process; the first caller's options hold. It lives on a runtime of its
    /// own, since each test's runtime ends with the test, and ends with the process.
    ///
    /// # Panics
    /// Never itself; it ends the process with a message when the control plane cannot start, because no test could run.
    pub fn shared(options: fn() -> Options) -> &'static Self {
        static SHARED: OnceLock<ControlPlane> = OnceLock::new();
        SHARED.get_or_init(|| match start::on_own_runtime(options) {
            Ok(plane) => plane,
            Err(error) => {
                let causes = std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
                let causes: String = causes.map(|cause| format!(": {cause}")).collect();
                eprintln!("no control plane for the tests: {error}{causes}");
                std::process::exit(1);
            }
        })
    }

    /// The address of the API server.
    pub fn url(&self) -> String {
        self.endpoint.url()
    }

    /// How long the start took.
    pub const fn phases(&self) -> Phases {
        self.phases
    }

    /// The folder with everything in it.
    pub fn data_dir(&self) -> &Path {
        self.layout.root()
    }

    /// The kubeconfig file of the administrator, for kubectl.
    pub fn kubeconfig(&self) -> PathBuf {
        self.layout.kubeconfig(ADMIN)
    }

    /// `host:port` of the registry, which speaks plain HTTP; `None` when the options had none.
    pub fn registry(&self) -> Option<String> {
        self.with_registry.then(|| format!("127.0.0.1:{}", self.ports.registry))
    }

    /// A client of the administrator. Each call makes a new one, bound to the calling runtime.
    ///
    /// # Errors
    /// The certificate of the control plane cannot be read.
    pub fn client(&self) -> Result<Client, Error> {
        Client::try_from(self.config(ADMIN)?).map_err(Error::api("make a client"))
    }

    /// The client configuration of a user of the options.
    ///
    /// # Errors
    /// There is no such user.
    pub fn config(&self, user: &str) -> Result<Config, Error> {
        let known = self.credentials.iter().find(|known| known.user.name == user);
        let token = known.ok_or_else(|| Error::UnknownUser(user.to_owned()))?.token.clone();
        self.endpoint.config(token).map_err(Error::io("read the certificate of the control plane"))
    }

    /// The kubeconfig file of a user of the options.
    ///
    /// # Errors
    /// There is no such user.
    pub fn kubeconfig_of(&self, user: &str) -> Result<PathBuf, Error> {
        let known = self.credentials.iter().any(|known| known.user.name == user);
        known.then(|| self.layout.kubeconfig(user)).ok_or_else(|| Error::UnknownUser(user.to_owned()))
    }

    /// A bearer token of a ServiceAccount that exists, valid for a day.
    ///
    /// # Errors
    /// There is no such ServiceAccount.
    pub async fn token_for(&self, namespace: &str, service_account: &str) -> Result<String, Error> {
        let accounts = Api::<ServiceAccount>::namespaced(self.client()?, namespace);
        let request = TokenRequest {
            spec: TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..TokenRequestSpec::default() },
            ..TokenRequest::default()
        };
        let answer = accounts.create_token_request(service_account, &PostParams::default(), &request).await;
        let status = answer.map_err(Error::api("make a token for the service account"))?.status;
        Ok(status.map(|status| status.token).unwrap_or_default())
    }

    /// The client configuration of a ServiceAccount that exists.
    ///
    /// # Errors
    /// There is no such ServiceAccount.
    pub async fn service_account(&self, namespace: &str, name: &str) -> Result<Config, Error> {
        let token = self.token_for(namespace, name).await?;
        self.endpoint.config(token).map_err(Error::io("read the certificate of the control plane"))
    }

    /// Writes a kubeconfig file for a ServiceAccount that exists, for a process of its own.
    ///
    /// # Errors
    /// There is no such ServiceAccount, or the file cannot be written.
    pub async fn write_service_account_kubeconfig(
        &self,
        namespace: &str,
        name: &str,
        path: &Path,
    ) -> Result<(), Error> {
        let token = self.token_for(namespace, name).await?;
        let credential =
            Credential { user: User::plain(format!("system:serviceaccount:{namespace}:{name}")), token };
        self.endpoint.write_kubeconfig(path, &credential).map_err(Error::io("write a kubeconfig file"))
    }

    /// What the API server was asked, by whom.
    pub fn audit(&self) -> Audit {
        Audit::new(self.layout.audit_log())
    }

    /// A client for the simulators, whose requests are not in the audit log.
    pub(crate) fn simulator_client(&self) -> Result<Client, Error> {
        Client::try_from(self.config(SIMULATOR)?).map_err(Error::api("make a client"))
    }

    /// The certificate that signed the API server's, as PEM.
    pub(crate) fn authority(&self) -> io::Result<Vec<u8>> {
        fs::read(&self.endpoint.authority)
    }

    /// The folder of the logs of simulated pods.
    pub(crate) fn pod_logs(&self) -> PathBuf {
        self.layout.pod_logs()
    }

    /// What decides which images are missing; `None` when another process simulates.
    pub fn simulators(&self) -> Option<&Simulators> {
        self.simulators.as_ref()
    }

    /// Simulates from now on in this process; for a control plane that was started by another.
    ///
    /// # Errors
    /// As [`Simulators::start`].
    pub fn simulate(&mut self) -> Result<(), Error> {
        self.simulators = Some(Simulators::start(self)?);
        Ok(())
    }

    /// How long the simulated kubelets take.
    pub const fn timings(&self) -> &Timings {
        &self.timings
    }

    /// The kinds of OpenShift it has.
    pub fn openshift(&self) -> &[openshift::Kind] {
        &self.openshift
    }

    /// The prefixes of images that may be missing.
    pub fn gated_images(&self) -> &[String] {
        &self.gated_images
    }

    /// The pids of the programs by name.
    pub fn processes(&self) -> Vec<(String, i32)> {
        let daemons = self.daemons.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        daemons.iter().map(|daemon| (daemon.name().to_owned(), daemon.process().pid())).collect()
    }

    /// Nothing when all programs run.
    ///
    /// # Errors
    /// [`Error::Ended`] with the end of the log of the first that does not.
    pub fn check(&self) -> Result<(), Error> {
        let mut daemons = self.daemons.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        start::check(&mut daemons)
    }

    /// Ends all programs, those that need the others first, and removes a temporary folder.
    pub async fn stop(mut self) {
        let mut daemons =
            std::mem::take(self.daemons.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner));
        // etcd comes first in the list and is needed by the others until they have ended.
        let mut others = daemons.split_off(daemons.len().min(1));
        process::end(&mut others).await;
        process::end(&mut daemons).await;
        if let Some(group) = self.group.take() {
            group.close();
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if let Some(group @ Group::Tied(_)) = self.group.take() {
            group.close();
        }
        if let Some(scratch) = self.scratch.take() {
            // The keeper has removed it already when the group was tied.
            drop(fs::remove_dir_all(scratch.path()));
        }
    }
}
