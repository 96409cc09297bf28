//! Plugins on disk, each with its signatures in one archive, by the digest of its manifest.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::bundle::{Bundle, BundleError};

/// Bytes of all archives together; the oldest go first.
const MOST_BYTES: u64 = 512 << 20;

/// A folder with plugins that were pulled. What is in it is believed only as far as its digests fit; who
/// signed is verified each time.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

// === impl Store ===

impl Store {
    /// Nothing is made or read yet.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The plugin of a digest, as it was pulled; one that was changed since counts for nothing.
    #[must_use]
    pub fn get(&self, digest: &str) -> Option<Bundle> {
        let path = self.path(digest)?;
        let archive = fs::File::open(&path).ok()?;
        match Bundle::read(io::BufReader::new(archive)) {
            Ok((_, plugin)) if plugin.digest() == digest => Some(plugin),
            Ok(_) => refuse(&path, "it holds another plugin than its name says"),
            Err(BundleError::Archive { source, .. }) => refuse(&path, &source.to_string()),
            Err(error) => refuse(&path, &error.to_string()),
        }
    }

    /// Keeps a plugin. A folder that is full or cannot be written to makes the store useless and nothing else;
    /// the log says so.
    pub fn put(&self, plugin: &Bundle) {
        let Some(path) = self.path(&plugin.digest()) else { return };
        if let Err(error) = self.write(&path, plugin) {
            tracing::warn!(path = %path.display(), %error, "a plugin cannot be kept in the cache");
        }
    }

    fn write(&self, path: &Path, plugin: &Bundle) -> io::Result<()> {
        let mut archive = Vec::new();
        plugin.write("", &mut archive).map_err(io::Error::other)?;
        fs::create_dir_all(&self.folder)?;
        self.make_room(archive.len() as u64)?;
        let unfinished = path.with_extension(format!("{}.part", std::process::id()));
        let written = fs::File::create(&unfinished).and_then(|mut file| {
            file.write_all(&archive)?;
            file.sync_all()
        });
        let moved = written.and_then(|()| fs::rename(&unfinished, path));
        if moved.is_err() {
            // Best effort: what is left of it is overwritten by the next one.
            drop(fs::remove_file(&unfinished));
        }
        moved
    }

    fn make_room(&self, wanted: u64) -> io::Result<()> {
        let about = |entry: io::Result<fs::DirEntry>| -> io::Result<(SystemTime, u64, PathBuf)> {
            let entry = entry?;
            let metadata = entry.metadata()?;
            Ok((metadata.modified()?, metadata.len(), entry.path()))
        };
        let mut entries: Vec<_> = fs::read_dir(&self.folder)?.filter_map(|entry| about(entry).ok()).collect();
        entries.sort_unstable();
        let mut used: u64 = entries.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in entries {
            if used.saturating_add(wanted) <= MOST_BYTES {
                break;
            }
            fs::remove_file(path)?;
            used = used.saturating_sub(size);
        }
        Ok(())
    }

    /// The file of a digest; nothing for what is none, so that no digest is a path.
    fn path(&self, digest: &str) -> Option<PathBuf> {
        let digits = digest.strip_prefix("sha256:")?;
        let is_hex = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| self.folder.join(format!("{digits}.tar")))
    }
}

fn refuse(path: &Path, problem: &str) -> Option<Bundle> {
    tracing::warn!(path = %path.display(), problem, "a plugin in the cache is not used; it is pulled again");
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;
    use crate::{bundle::Described, signature::PrivateKey};

    fn plugin() -> Bundle {
        let mut plugin =
            Bundle::new(Described { component: b"\0asm component".to_vec(), ..Described::default() });
        let key = PrivateKey::generate().unwrap();
        plugin.attach(key.attest(&plugin).unwrap());
        plugin
    }

    #[test]
    fn a_plugin_is_kept_with_its_signatures_and_a_changed_one_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let (store, plugin) = (Store::new(folder.path().join("plugins")), plugin());
        assert_eq!(store.get(&plugin.digest()), None);
        store.put(&plugin);
        assert_eq!(store.get(&plugin.digest()).unwrap(), plugin);
        let path = store.path(&plugin.digest()).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.windows(9).position(|part| part == b"component").unwrap();
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(store.get(&plugin.digest()), None);
        store.put(&plugin);
        assert!(store.get(&plugin.digest()).is_some());
    }

    #[test]
    fn another_plugin_under_a_digest_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let (store, plugin) = (Store::new(folder.path().to_owned()), plugin());
        store.put(&plugin);
        let other = format!("sha256:{}", "0".repeat(64));
        fs::rename(store.path(&plugin.digest()).unwrap(), store.path(&other).unwrap()).unwrap();
        assert_eq!(store.get(&other), None);
        assert_eq!(store.path("sha256:../../etc/passwd"), None);
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_is_survived() {
        let folder = tempfile::tempdir().unwrap();
        // A file where the folder should be: as a read-only or a full disk, and also for who may do anything.
        fs::write(folder.path().join("plugins"), "").unwrap();
        let (store, plugin) = (Store::new(folder.path().join("plugins")), plugin());
        store.put(&plugin);
        assert_eq!(store.get(&plugin.digest()), None);
    }
}
