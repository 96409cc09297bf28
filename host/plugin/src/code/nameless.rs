//! Files that nobody else can open.
//!
//! What is mapped from a file is read when it is used, long after it was checked, so nobody may write to that file in
//! between: not who shares the volume of the cache, nor whoever else runs as the same user on it. Entries of the cache
//! have names, so they are never mapped. A copy without a name is: it is in no folder, it cannot get a name, and it
//! cannot be opened to write. Its disk must be one of this machine: what a server hands out is not ours.

use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags, fstatfs};

/// File systems whose bytes come from a disk of this machine, by the magic numbers of `statfs(2)`: ext4, xfs, btrfs,
/// overlayfs. Files of a tmpfs are memory, so nothing would be gained.
const OF_THIS_MACHINE: [u64; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0x794c_7630];

/// A file without a name, gone when nobody has it any more.
pub(super) struct Nameless(File);

// === impl Nameless ===

impl Nameless {
    /// A file with these bytes on the disk of a folder.
    ///
    /// # Errors
    /// When the disk has no such files, is none of this machine, or is full.
    pub(super) fn with(folder: &Path, bytes: &[u8]) -> io::Result<Self> {
        let mut file = open(folder)?;
        file.write_all(bytes)?;
        Ok(Self(file))
    }

    /// Where this process finds it while this value lives.
    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

fn open(folder: &Path) -> io::Result<File> {
    // With EXCL it cannot be linked into a folder; its mode allows nobody to open it again to write.
    let flags = OFlags::TMPFILE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(folder, flags, Mode::RUSR)?);
    let kind = u64::try_from(fstatfs(&file)?.f_type);
    if kind.is_ok_and(|kind| OF_THIS_MACHINE.contains(&kind)) {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::Unsupported, "the cache is not on a disk of this machine"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use std::fs;

    use super::*;

    #[test]
    fn a_file_without_a_name_is_in_no_folder_and_can_get_none() {
        let folder = tempfile::tempdir().unwrap();
        let Ok(file) = Nameless::with(folder.path(), b"code") else {
            // The disk of this machine's temporary files is a tmpfs, or has no files without names.
            return assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        };
        assert_eq!(fs::read(file.path()).unwrap(), b"code");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let link = |flags| {
            let to = folder.path().join("name");
            rustix::fs::linkat(rustix::fs::CWD, file.path(), rustix::fs::CWD, to, flags)
        };
        assert!(link(rustix::fs::AtFlags::SYMLINK_FOLLOW).is_err(), "it got a name");
        let metadata = file.0.metadata().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
        assert_eq!((mode & 0o777, std::os::unix::fs::MetadataExt::nlink(&metadata)), (0o400, 0));
    }

    #[test]
    fn memory_and_places_that_are_not_there_are_refused() {
        assert!(Nameless::with(Path::new("/proc"), b"code").is_err());
        assert!(Nameless::with(Path::new("/nowhere"), b"code").is_err());
    }
}
