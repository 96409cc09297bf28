//! A control plane that outlives the process that started it: found again, and stopped.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::access::{Credential, Endpoint};
use super::components::Layout;
use super::process::Daemon;
use super::{ControlPlane, Phases, Ports};
use crate::cache;
use crate::openshift;
use crate::stages::Timings;

/// The format of the file; another number is another format.
const VERSION: u32 = 1;

/// What is known of a detached control plane, as it stands in a file.
#[derive(Debug, Serialize, Deserialize)]
pub struct State {
    version: u32,
    data_dir: PathBuf,
    endpoint: Endpoint,
    ports: Ports,
    with_registry: bool,
    credentials: Vec<Credential>,
    timings: Timings,
    gated_images: Vec<String>,
    openshift: Vec<openshift::Kind>,
    phases: Phases,
    daemons: Vec<Daemon>,
}

/// Why the file of a detached control plane cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The file cannot be read or written.
    #[error("could not use {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file was written by another version.
    #[error("{} has format {found} and this program reads {VERSION}; stop what runs with the program that started it", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The format found.
        found: u32,
    },
    /// This control plane was not started detached.
    #[error("the control plane ends with this process, so there is nothing to find again")]
    NotDetached,
}

impl State {
    /// Where `pintle dev` keeps it: one detached control plane a user.
    ///
    /// # Errors
    /// There is no cache folder.
    pub fn default_path() -> io::Result<PathBuf> {
        Ok(cache::root()?.join("dev").join("state.json"))
    }

    /// The state in a file, `None` when there is no file.
    ///
    /// # Errors
    /// The file cannot be read or has another format.
    pub fn load(path: &Path) -> Result<Option<Self>, StateError> {
        let failed = |source| StateError::File { path: path.to_path_buf(), source };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let document: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
        let found =
            document["version"].as_u64().and_then(|found| u32::try_from(found).ok()).unwrap_or_default();
        if found != VERSION {
            return Err(StateError::Format { path: path.to_path_buf(), found });
        }
        serde_json::from_value(document).map(Some).map_err(|error| failed(error.into()))
    }

    /// Whether every program still runs.
    pub fn is_running(&self) -> bool {
        self.daemons.iter().all(|daemon| daemon.process().is_running())
    }

    /// Name, pid and whether it runs, of each program.
    pub fn programs(&self) -> Vec<(&str, i32, bool)> {
        let describe = |daemon: &'_ Daemon| (daemon.process().pid(), daemon.process().is_running());
        self.daemons
            .iter()
            .map(|daemon| {
                let (pid, running) = describe(daemon);
                (daemon.name(), pid, running)
            })
            .collect()
    }

    /// The folder with everything in it.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The control plane itself; dropping it leaves it running, [`ControlPlane::stop`] ends it.
    ///
    /// # Errors
    /// The data folder is gone.
    pub fn attach(self) -> io::Result<ControlPlane> {
        Ok(ControlPlane {
            layout: Layout::new(self.data_dir)?,
            endpoint: self.endpoint,
            ports: self.ports,
            with_registry: self.with_registry,
            credentials: self.credentials,
            timings: self.timings,
            gated_images: self.gated_images,
            openshift: self.openshift,
            phases: self.phases,
            simulators: None,
            daemons: Mutex::new(self.daemons),
            group: None,
            scratch: None,
        })
    }
}

impl ControlPlane {
    /// Writes the file by which another process finds this control plane, readable by its owner only: tokens are in it.
    ///
    /// # Errors
    /// The control plane is not detached, or the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), StateError> {
        if matches!(self.group, Some(super::Group::Tied(_))) {
            return Err(StateError::NotDetached);
        }
        let failed = |source| StateError::File { path: path.to_path_buf(), source };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let daemons = self.daemons.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let document = serde_json::json!({
            "version": VERSION,
            "data_dir": self.layout.root(),
            "endpoint": self.endpoint,
            "ports": self.ports,
            "with_registry": self.with_registry,
            "credentials": self.credentials,
            "timings": self.timings,
            "gated_images": self.gated_images,
            "openshift": self.openshift,
            "phases": self.phases,
            "daemons": *daemons,
        });
        super::pki::write_secret(path, &document.to_string()).map_err(failed)
    }
}
