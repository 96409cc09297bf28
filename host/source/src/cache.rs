//! Charts that were fetched, by the digest of their bytes: in memory, and in a folder where one is given.

use std::{
    collections::HashMap,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pintle_chart::{Compiled, digest_of};

/// Charts kept in memory. A cluster runs a handful; beyond that the cache starts anew.
const MAX_CHARTS: usize = 64;
/// Contents whose digest is known.
const MAX_VERSIONS: usize = 1024;

/// Charts by digest.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    folder: Option<PathBuf>,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    digest_to_chart: HashMap<String, Arc<Compiled>>,
    /// What a repository said of a content (an object with its version) to the digest it had.
    version_to_digest: HashMap<String, String>,
}

impl Cache {
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, memory: Mutex::default() }
    }

    /// The chart of a digest, from memory.
    pub(crate) fn chart(&self, digest: &str) -> Option<Arc<Compiled>> {
        self.memory().digest_to_chart.get(digest).cloned()
    }

    /// The chart that a content was when it was last read.
    pub(crate) fn known(&self, version: &str) -> Option<Arc<Compiled>> {
        let memory = self.memory();
        memory.digest_to_chart.get(memory.version_to_digest.get(version)?).cloned()
    }

    pub(crate) fn keep(&self, chart: &Arc<Compiled>, version: Option<String>) {
        let digest = chart.chart().digest.clone();
        let mut memory = self.memory();
        if memory.digest_to_chart.len() >= MAX_CHARTS {
            memory.digest_to_chart.clear();
        }
        if memory.version_to_digest.len() >= MAX_VERSIONS {
            memory.version_to_digest.clear();
        }
        if let Some(version) = version {
            memory.version_to_digest.insert(version, digest.clone());
        }
        memory.digest_to_chart.insert(digest, Arc::clone(chart));
    }

    /// The archive of a digest from the folder; bytes with another digest count for nothing.
    pub(crate) fn archive(&self, digest: &str) -> Option<Vec<u8>> {
        let bytes = fs::read(self.path(digest)?).ok()?;
        (digest_of(&bytes) == digest).then_some(bytes)
    }

    /// Writes an archive into the folder, whole or not at all. A full disk makes the cache useless, not the
    /// operator: the fault is logged.
    pub(crate) fn store(&self, digest: &str, bytes: &[u8]) {
        let Some(path) = self.path(digest).filter(|path| !path.exists()) else { return };
        let unfinished = path.with_extension(format!("{}.part", std::process::id()));
        let written = path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&unfinished, bytes))
            .and_then(|()| fs::rename(&unfinished, &path));
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "cannot keep a chart in the cache folder");
        }
    }

    /// The file of a digest; nothing for what is none, so that no digest is a path.
    fn path(&self, digest: &str) -> Option<PathBuf> {
        let hex = digest.strip_prefix("sha256:")?;
        let is_hex = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        self.folder.as_ref().filter(|_| is_hex).map(|folder| folder.join(format!("{hex}.tgz")))
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
