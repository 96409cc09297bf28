//! Compiled code on disk, and what components said on their first call. An entry is machine code, or is believed
//! without asking again, so it is taken only with a MAC that holds what it is of, the engine's settings, the format
//! and every byte; the key is never beside it.

use std::{
    cell::Cell,
    fmt, fs,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
};

use hmac::{Hmac, KeyInit, Mac};
use poly1305::Poly1305;
use sha2::Sha256;

use super::TrustedCode;
use crate::{limits, memo::Hash};

/// Bytes of the name of a format, with which each entry begins.
const FORMAT: usize = 16;
/// Bytes of a MAC.
const MAC: usize = 32;
/// Bytes that a secret has at least.
const SECRET: usize = 32;
/// Bytes before what is kept.
const HEADER: usize = FORMAT + MAC;
/// What the key of the universal hash is derived from.
const HASHING: &[u8] = b"pintle cache: universal hash";

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

thread_local! {
    /// What the last entry was read into: to fault in fresh memory for each takes as long as to read it. The threads
    /// that load are few, and are gone when there is nothing to load.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Machine code of a component.
    Code,
    /// What a component said on its first call.
    Said,
}

/// An entry that is not as it was written.
struct Changed;

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
        if secret.len() < SECRET {
            return Err(too_short);
        }
        Hmac::new_from_slice(secret).map(Self).map_err(|_| too_short)
    }
}

impl CacheKey {
    /// The key of the universal hash. Its results are seen by nobody, so that it may be the same for all entries.
    fn hashing(&self) -> [u8; 32] {
        let mut derived = self.0.clone();
        derived.update(HASHING);
        derived.finalize().into_bytes().into()
    }
}

impl fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CacheKey(..)")
    }
}

// === impl Kind ===

impl Kind {
    /// The name of its format, with the version.
    fn format(self) -> &'static [u8; FORMAT] {
        match self {
            Self::Code => b"pintle code v2\0\0",
            Self::Said => b"pintle said v1\0\0",
        }
    }

    /// How the names of its files end. Code of the format before ended in `.code`, and goes when room is made.
    fn ending(self) -> &'static str {
        match self {
            Self::Code => "code2",
            Self::Said => "said",
        }
    }
}

// === impl Cache ===

impl Cache {
    /// A cache for engines with these settings. The folder is made when it is first written to.
    pub(crate) fn new(options: &CacheOptions, compatibility: Hash) -> Self {
        let CacheOptions { folder, key } = options;
        Self { folder: folder.clone(), key: key.clone(), compatibility, most_bytes: limits::CACHE }
    }

    /// The folder that entries are in.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The code of a component, if it is there as it was written.
    pub(super) fn read(&self, component: &Hash) -> Found {
        match self.entry(Kind::Code, component, BUFFER.take()) {
            Ok(Some(entry)) => Found::Code(TrustedCode::of_verified_cache(entry, HEADER)),
            Ok(None) => Found::Missing,
            Err(Changed) => Found::Changed,
        }
    }

    /// Takes back what an entry was read into, once its code is loaded.
    pub(super) fn give_back(code: TrustedCode) {
        let buffer = code.into_buffer();
        if buffer.capacity() <= limits::CACHE_BUFFER {
            BUFFER.set(buffer);
        }
    }

    /// Keeps the code of a component. What cannot be written is only told: the next start compiles again.
    pub(super) fn write(&self, component: &Hash, code: &TrustedCode) {
        self.keep(Kind::Code, component, code.bytes());
    }

    /// What was said on a first call of this name, if it is there as it was written.
    pub(crate) fn said(&self, name: &Hash) -> Option<String> {
        let mut entry = self.entry(Kind::Said, name, Vec::new()).ok().flatten()?;
        String::from_utf8(entry.split_off(HEADER)).ok()
    }

    /// Keeps what was said on a first call. What cannot be written is only told: the next start asks again.
    pub(crate) fn keep_said(&self, name: &Hash, text: &str) {
        self.keep(Kind::Said, name, text.as_bytes());
    }

    /// A whole entry, its header before what is kept; nothing where there is none.
    fn entry(&self, kind: Kind, of: &Hash, buffer: Vec<u8>) -> Result<Option<Vec<u8>>, Changed> {
        let path = self.path(kind, of);
        let entry = match read_whole(&path, buffer) {
            Ok(entry) => entry,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                tracing::warn!(target: "plugin", error = %error, "the cache for compiled code cannot be read");
                return Ok(None);
            }
        };
        if self.is_ours(kind, of, &entry) {
            return Ok(Some(entry));
        }
        tracing::warn!(
            target: "plugin", entry = %path.display(),
            "compiled code in the cache was changed by somebody else; it is compiled again"
        );
        Err(Changed)
    }

    fn keep(&self, kind: Kind, of: &Hash, bytes: &[u8]) {
        if let Err(error) = self.try_keep(kind, of, bytes) {
            tracing::warn!(target: "plugin", error = %error, "compiled code could not be kept");
        }
    }

    fn try_keep(&self, kind: Kind, of: &Hash, bytes: &[u8]) -> io::Result<()> {
        make_private(&self.folder)?;
        self.make_room(bytes.len() as u64)?;
        let path = self.path(kind, of);
        let unfinished = self.folder.join(unfinished_name());
        let mac = self.mac(kind, of, bytes).finalize().into_bytes();
        let written = write_whole(&unfinished, &[kind.format(), &mac, bytes]);
        let moved = written.and_then(|()| fs::rename(&unfinished, &path));
        if moved.is_err() {
            // Best effort: what is left of it is removed by the next one that makes room.
            drop(fs::remove_file(&unfinished));
        }
        moved
    }

    fn is_ours(&self, kind: Kind, of: &Hash, entry: &[u8]) -> bool {
        let Some((header, bytes)) = entry.split_at_checked(HEADER) else { return false };
        let mac = header.strip_prefix(kind.format());
        mac.is_some_and(|mac| self.mac(kind, of, bytes).verify_slice(mac).is_ok())
    }

    /// A universal hash of the bytes under a pseudo-random function (Wegman and Carter): as hard to forge as the
    /// function, and twice as fast over half a megabyte as the function alone.
    fn mac(&self, kind: Kind, of: &Hash, bytes: &[u8]) -> Hmac<Sha256> {
        let hashed = Poly1305::new(&self.key.hashing().into()).compute_unpadded(bytes);
        let mut mac = self.key.0.clone();
        mac.update(kind.format());
        mac.update(of);
        mac.update(&self.compatibility);
        mac.update(&(bytes.len() as u64).to_le_bytes());
        mac.update(hashed.as_slice());
        mac
    }

    fn path(&self, kind: Kind, of: &Hash) -> PathBuf {
        let [of, settings] = [of, &self.compatibility].map(hex);
        let settings = settings.get(..16).unwrap_or_default().to_owned();
        self.folder.join(format!("{of}-{settings}.{}", kind.ending()))
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

/// The bytes of a file, in place of those in the buffer.
fn read_whole(path: &Path, mut buffer: Vec<u8>) -> io::Result<Vec<u8>> {
    let file = fs::File::open(path)?;
    let most = (HEADER + limits::COMPILED) as u64;
    let size = file.metadata()?.len().min(most);
    buffer.clear();
    buffer.reserve_exact(usize::try_from(size).unwrap_or_default().saturating_add(1));
    file.take(most).read_to_end(&mut buffer)?;
    Ok(buffer)
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
