//! The folder where expensive things are kept between runs: outside the source tree, shared by all checkouts.
//!
//! Standard library only: `tests/xtask`, which has no dependencies, includes this file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::{env, io};

/// The cache folder of Pintle: `$XDG_CACHE_HOME/pintle`, else `~/.cache/pintle`.
///
/// # Errors
/// Neither variable is set. A retry does not help.
pub fn root() -> io::Result<PathBuf> {
    let named = |key: &str| env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("XDG_CACHE_HOME")
        .or_else(|| named("HOME").map(|home| home.join(".cache")))
        .map(|base| base.join("pintle"))
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                "neither XDG_CACHE_HOME nor HOME is set, so there is no place for built tools",
            )
        })
}

/// The same sixteen hexadecimal digits for the same parts, on every machine and with every compiler.
///
/// FNV-1a, 64 bits: it names folders and guards against nothing.
pub fn fingerprint(parts: &[&str]) -> String {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let separated = parts.iter().flat_map(|part| part.bytes().chain([0]));
    let hash = separated.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    format!("{hash:016x}")
}

/// Held while one process fills a folder of the cache; released when dropped, and by the kernel when the process ends.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "the open file is the lock")] File);

impl Lock {
    /// Waits until no other process holds the lock file `path`; `waiting` is called once when it is held.
    ///
    /// # Errors
    /// The file cannot be made or locked.
    pub fn acquire(path: &Path, waiting: &mut dyn FnMut()) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        if file.try_lock().is_err() {
            waiting();
            file.lock()?;
        }
        Ok(Self(file))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn a_fingerprint_is_stable_and_sees_where_parts_end() {
        assert_eq!(fingerprint(&[]), "cbf29ce484222325");
        assert_eq!(fingerprint(&["a"]), fingerprint(&["a"]));
        assert_ne!(fingerprint(&["ab", "c"]), fingerprint(&["a", "bc"]));
    }

    #[test]
    fn a_second_holder_waits_for_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/lock");
        let first = Lock::acquire(&path, &mut || unreachable!("nobody else holds it")).unwrap();
        let (told, waits) = std::sync::mpsc::channel();
        let second = std::thread::spawn(move || {
            let lock = Lock::acquire(&path, &mut || told.send("waiting").unwrap()).unwrap();
            told.send("held").unwrap();
            lock
        });
        assert_eq!(waits.recv().unwrap(), "waiting");
        assert!(waits.try_recv().is_err(), "the first still holds the lock");
        drop(first);
        assert_eq!(waits.recv().unwrap(), "held");
        drop(second.join().unwrap());
    }
}
