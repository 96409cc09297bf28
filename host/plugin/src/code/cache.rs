//! Compiled code on disk. An entry is machine code, so it is loaded only with a MAC that holds the
//! component, the engine's settings, the format and every byte; the key is never beside it.

use std::{
    fmt, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::TrustedCode;
use crate::{limits, memo::Hash};

/// What each entry begins with: its format.
const FORMAT: &[u8; 16] = b"pintle code v1\0\0";
/// Bytes of a MAC.
const MAC: usize = 32;
/// Bytes before the code.
const HEADER: usize = FORMAT.len() + MAC;

/// Where compiled code is kept.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// A folder that is ours alone; made if it is not there.
    pub folder: PathBuf,
    /// What entries are authenticated with. Whoever knows it can make the operator run anything.
    pub key: CacheKey,
}

/// The secret that entries of a cache are authenticated with.
#[derive(Clone)]
pub struct CacheKey(Hmac<Sha256>);

/// A key that could be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key of the cache for compiled code has {0} bytes, at least 32 are needed")]
pub struct ShortKey(usize);

/// The cache of one engine.
pub(crate) struct Cache {
    folder: PathBuf,
    key: CacheKey,
    compatibility: Hash,
    most_bytes: u64,
}

/// What is in the cache.
pub(super) enum Found {
    Code(TrustedCode),
    Missing,
    /// An entry that is not as it was written.
    Changed,
}

// === impl CacheKey ===

impl CacheKey {
    /// Takes a secret.
    ///
    /// # Errors
    /// When it is shorter than 32 bytes.
    pub fn new(secret: &[u8]) -> Result<Self, ShortKey> {
        let too_short = ShortKey(secret.len());
        if secret.len() < MAC {
            return Err(too_short);
        }
        Hmac::new_from_slice(secret).map(Self).map_err(|_| too_short)
    }
}

impl fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CacheKey(..)")
    }
}

// === impl Cache ===

impl Cache {
    /// A cache for engines with these settings. The folder is made when it is first written to.
    pub(crate) fn new(options: &CacheOptions, compatibility: Hash) -> Self {
        let CacheOptions { folder, key } = options;
        Self { folder: folder.clone(), key: key.clone(), compatibility, most_bytes: limits::CACHE }
    }

    /// The code of a component, if it is there as it was written.
    pub(super) fn read(&self, component: &Hash) -> Found {
        let path = self.path(component);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Found::Missing,
            Err(error) => {
                tracing::warn!(target: "plugin", error = %error, "the cache for compiled code cannot be read");
                return Found::Missing;
            }
        };
        match self.verified(component, bytes) {
            Some(code) => Found::Code(code),
            None => {
                tracing::warn!(
                    target: "plugin", entry = %path.display(),
                    "compiled code in the cache was changed by somebody else; it is compiled again"
                );
                Found::Changed
            }
        }
    }

    /// Keeps the code of a component. What cannot be written is only told: the next start compiles again.
    pub(super) fn write(&self, component: &Hash, code: &TrustedCode) {
        if let Err(error) = self.try_write(component, code) {
            tracing::warn!(target: "plugin", error = %error, "compiled code could not be kept");
        }
    }

    fn try_write(&self, component: &Hash, code: &TrustedCode) -> io::Result<()> {
        make_private(&self.folder)?;
        self.make_room(code.bytes().len() as u64)?;
        let path = self.path(component);
        let unfinished = self.folder.join(unfinished_name());
        let mac = self.mac(component, code.bytes()).finalize().into_bytes();
        let written = write_whole(&unfinished, &[FORMAT, &mac, code.bytes()]);
        let moved = written.and_then(|()| fs::rename(&unfinished, &path));
        if moved.is_err() {
            // Best effort: what is left of it is removed by the next one that makes room.
            drop(fs::remove_file(&unfinished));
        }
        moved
    }

    fn verified(&self, component: &Hash, bytes: Vec<u8>) -> Option<TrustedCode> {
        let (header, code) = bytes.split_at_checked(HEADER)?;
        let mac = header.strip_prefix(FORMAT)?;
        self.mac(component, code).verify_slice(mac).ok()?;
        Some(TrustedCode::of_verified_cache(bytes, HEADER))
    }

    fn mac(&self, component: &Hash, code: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.key.0.clone();
        mac.update(FORMAT);
        mac.update(component);
        mac.update(&self.compatibility);
        mac.update(&(code.len() as u64).to_le_bytes());
        mac.update(code);
        mac
    }

    fn path(&self, component: &Hash) -> PathBuf {
        let [component, settings] = [component, &self.compatibility].map(hex);
        let settings = settings.get(..16).unwrap_or_default().to_owned();
        self.folder.join(format!("{component}-{settings}.code"))
    }

    /// Removes the oldest entries until there is room for one more.
    fn make_room(&self, wanted: u64) -> io::Result<()> {
        let mut entries: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(&self.folder)?
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let metadata = entry.metadata().ok()?;
                Some((metadata.modified().ok()?, metadata.len(), entry.path()))
            })
            .collect();
        entries.sort_unstable();
        let mut used: u64 = entries.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in entries {
            if used.saturating_add(wanted) <= self.most_bytes {
                break;
            }
            fs::remove_file(path)?;
            used -= size;
        }
        Ok(())
    }
}

fn hex(hash: &Hash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A name that no other write has, in this process or another.
fn unfinished_name() -> String {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    format!(".{}-{}.unfinished", std::process::id(), WRITES.fetch_add(1, Ordering::Relaxed))
}

fn write_whole(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o400);
    let mut file = options.open(path)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.sync_all()
}

fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests;
