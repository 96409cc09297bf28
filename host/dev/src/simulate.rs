//! What a control plane lacks besides kubelets: images that may be missing, what containers print, and OpenShift's builds.

mod build_run;
mod builds;
mod images;
pub mod kmm;
mod logs;
mod pods;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use kube::Client;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

pub use builds::{BuildFacts, Builds, Outcome, Script};
pub use images::Images;
pub use logs::{Container, Line, PodLogs};

use crate::ControlPlane;
use crate::cluster::Error;
use crate::openshift::Kind;
use kmm::Kmm;

/// The simulators of one control plane. They run while this exists, on the runtime on which they were started.
pub struct Simulators {
    images: Arc<Images>,
    logs: Arc<PodLogs>,
    builds: Option<Arc<Builds>>,
    tasks: Vec<JoinHandle<()>>,
    client: Client,
    runtime: Handle,
    kmm: OnceCell<Kmm>,
}

impl Simulators {
    /// Simulators that watch the pods of `plane`.
    ///
    /// # Errors
    /// No client can be made, or the list of known images in the data folder cannot be read.
    pub fn start(plane: &ControlPlane) -> Result<Self, Error> {
        let client = plane.simulator_client()?;
        let images = Images::open(plane.data_dir().join("images.json"), plane.gated_images())
            .map_err(Error::io("read the list of images"))?;
        let (images, logs) = (Arc::new(images), Arc::new(PodLogs::new(plane.pod_logs(), client.clone())));
        let pods =
            pods::Simulator::new(client.clone(), images.clone(), logs.clone(), plane.timings().clone());
        let mut tasks = vec![tokio::spawn(pods.run())];
        let kept = client.clone();
        let builds = plane.openshift().contains(&Kind::BuildConfig).then(|| {
            let usual = plane.timings().build;
            let builds = Arc::new(Builds::new(client.clone(), usual));
            builds::log_rule(&logs, usual);
            let controller = builds::Controller {
                client,
                builds: builds.clone(),
                images: images.clone(),
                running: HashMap::new(),
            };
            tasks.push(tokio::spawn(controller.run()));
            builds
        });
        Ok(Self {
            images,
            logs,
            builds,
            tasks,
            client: kept,
            runtime: Handle::current(),
            kmm: OnceCell::new(),
        })
    }

    /// The images that can be pulled.
    pub const fn images(&self) -> &Arc<Images> {
        &self.images
    }

    /// OpenShift's builds; `None` on plain Kubernetes.
    pub const fn builds(&self) -> Option<&Arc<Builds>> {
        self.builds.as_ref()
    }

    /// The Kernel Module Management operator: installed, with its kind, when it is first asked for.
    ///
    /// # Errors
    /// The API server refuses the kind.
    pub async fn kmm(&self) -> Result<&Kmm, kube::Error> {
        let install = || async {
            let client = self.client.clone();
            let started = self.runtime.spawn(async move {
                kmm::install(&client).await?;
                Ok(Kmm::start(client))
            });
            started.await.map_err(|error| kube::Error::Service(error.into()))?
        };
        self.kmm.get_or_try_init(install).await
    }

    /// What containers print.
    pub const fn logs(&self) -> &Arc<PodLogs> {
        &self.logs
    }
}

impl fmt::Debug for Simulators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulators")
            .field("images", &self.images)
            .field("builds", &self.builds)
            .finish_non_exhaustive()
    }
}

impl Drop for Simulators {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
