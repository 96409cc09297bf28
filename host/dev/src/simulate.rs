//! What a control plane lacks besides kubelets: images that may be missing, what containers print, and OpenShift's builds.

mod build_run;
mod builds;
mod images;
pub mod kmm;
mod logs;
mod pods;

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::JoinHandle;

pub use builds::{BuildFacts, Builds, Outcome, Script};
pub use images::Images;
pub use logs::{Container, Line, PodLogs};

use crate::ControlPlane;
use crate::cluster::Error;
use crate::openshift::Kind;

/// The simulators of one control plane. They run while this exists, on the runtime on which they were started.
#[derive(Debug)]
pub struct Simulators {
    images: Arc<Images>,
    logs: Arc<PodLogs>,
    builds: Option<Arc<Builds>>,
    tasks: Vec<JoinHandle<()>>,
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
        Ok(Self { images, logs, builds, tasks })
    }

    /// The images that can be pulled.
    pub const fn images(&self) -> &Arc<Images> {
        &self.images
    }

    /// OpenShift's builds; `None` on plain Kubernetes.
    pub const fn builds(&self) -> Option<&Arc<Builds>> {
        self.builds.as_ref()
    }

    /// What containers print.
    pub const fn logs(&self) -> &Arc<PodLogs> {
        &self.logs
    }
}

impl Drop for Simulators {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
