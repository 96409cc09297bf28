//! Which images can be pulled.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use tokio::sync::watch;

/// The images of a simulated cluster. Only those with a gated prefix can be missing; all others can be pulled.
#[derive(Debug)]
pub struct Images {
    gated: Vec<String>,
    known: Mutex<BTreeSet<String>>,
    /// Counts changes, so that waiting pulls can be tried again.
    changes: watch::Sender<u64>,
    /// Keeps the list for another process that simulates later.
    path: PathBuf,
}

impl Images {
    pub(super) fn open(path: PathBuf, gated: &[String]) -> io::Result<Self> {
        let known = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeSet::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { gated: gated.to_vec(), known: Mutex::new(known), changes: watch::Sender::new(0), path })
    }

    /// Makes an image pullable, as a push to its registry does.
    ///
    /// # Errors
    /// The list cannot be written.
    pub fn add(&self, reference: impl Into<String>) -> io::Result<()> {
        let reference = reference.into();
        self.change(|known| {
            known.insert(reference);
        })
    }

    /// Makes an image unknown again: pods that run keep running, new ones cannot start.
    ///
    /// # Errors
    /// The list cannot be written.
    pub fn remove(&self, reference: &str) -> io::Result<()> {
        self.change(|known| {
            known.remove(reference);
        })
    }

    /// Whether a pull of the image succeeds.
    pub fn can_pull(&self, reference: &str) -> bool {
        !self.is_gated(reference) || self.known().contains(reference)
    }

    /// Whether the image can be missing at all.
    pub fn is_gated(&self, reference: &str) -> bool {
        self.gated.iter().any(|prefix| reference.starts_with(prefix.as_str()))
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<String>)) -> io::Result<()> {
        let mut known = self.known();
        change(&mut known);
        fs::write(&self.path, serde_json::to_vec(&*known)?)?;
        drop(known);
        self.changes.send_modify(|count| *count += 1);
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn only_gated_images_can_be_missing_and_the_list_survives_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let open =
            || Images::open(folder.path().join("images.json"), &["internal:5000/".to_owned()]).unwrap();
        let images = open();
        assert!(images.can_pull("registry.example/a:1"));
        assert!(!images.can_pull("internal:5000/ns/a:1"));
        images.add("internal:5000/ns/a:1").unwrap();
        assert!(images.can_pull("internal:5000/ns/a:1") && !images.can_pull("internal:5000/ns/a:2"));
        assert!(open().can_pull("internal:5000/ns/a:1"));
        images.remove("internal:5000/ns/a:1").unwrap();
        assert!(!open().can_pull("internal:5000/ns/a:1"));
    }
}
