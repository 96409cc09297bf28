//! The files of a packed chart, read into memory and nowhere else.

mod plain;

use std::io::Read;

use bytes::Bytes;
use flate2::{Crc, Decompress, FlushDecompress, Status, read::GzDecoder};

/// Bytes of all files of an archive together; Helm's limit.
pub const MAX_ARCHIVE: u64 = 100 << 20;
/// Bytes of one file. Helm has had no limit of its own for one file since 4.3; it had 5 MiB.
pub const MAX_FILE: u64 = 32 << 20;
/// Entries of one archive. The largest public charts have 400.
pub const MAX_ENTRIES: usize = 10_000;

/// Bytes of an archive that is unpacked in one piece; the largest public charts have 10 MiB.
const MAX_AT_ONCE: usize = 32 << 20;

/// What is left of the limits: an archive and all archives inside it share one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    bytes: u64,
    entries: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: MAX_ARCHIVE, entries: MAX_ENTRIES }
    }
}

impl Budget {
    /// Counts an entry, whatever it is.
    fn entry(&mut self) -> Result<(), Error> {
        self.entries = self.entries.checked_sub(1).ok_or(Error::TooMany)?;
        Ok(())
    }

    /// Counts a file's bytes and gives its path inside the chart.
    fn path(&mut self, raw: &[u8], size: u64) -> Result<String, Error> {
        let path = path_inside(raw)?;
        if size > MAX_FILE {
            return Err(Error::FileTooLarge { path, size });
        }
        self.bytes = self.bytes.checked_sub(size).ok_or(Error::TooLarge)?;
        Ok(path)
    }
}

/// One file of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Path inside the chart with `/`, as `templates/service.yaml`.
    pub path: String,
    /// Content, without a byte order mark; files of one archive share its bytes.
    pub data: Bytes,
}

/// Why an archive is no chart. Nothing of it was used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not gzip, or not tar inside.
    #[error("the archive is not a tgz: pack the chart folder with `helm package`")]
    NotAnArchive(#[source] std::io::Error),
    /// The end is missing.
    #[error("the archive is truncated: copy or pack it again")]
    Truncated(#[source] std::io::Error),
    /// Nothing in it.
    #[error("the archive has no files: pack the chart folder with `helm package`")]
    Empty,
    /// A path that would leave the chart's folder, is absolute or no text.
    #[error("{path:?} is not inside the chart's folder ({why}): pack the chart folder itself")]
    Path {
        /// As the archive has it.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// One file over [`MAX_FILE`].
    #[error(
        "{path} has {size} bytes, more than the {MAX_FILE} a chart's file may have: leave it out with .helmignore"
    )]
    FileTooLarge {
        /// Path inside the chart.
        path: String,
        /// Its bytes.
        size: u64,
    },
    /// All files together over [`MAX_ARCHIVE`].
    #[error("the archive unpacks to more than {MAX_ARCHIVE} bytes: leave files out with .helmignore")]
    TooLarge,
    /// More than [`MAX_ENTRIES`].
    #[error("the archive has more than {MAX_ENTRIES} entries: leave files out with .helmignore")]
    TooMany,
}

impl File {
    /// A file; a byte order mark at its start is dropped.
    pub fn new(path: impl Into<String>, data: &[u8]) -> Self {
        Self::of(path.into(), Bytes::copy_from_slice(data))
    }

    /// A file of bytes that may be shared.
    fn of(path: String, mut data: Bytes) -> Self {
        if data.starts_with(b"\xef\xbb\xbf") {
            drop(data.split_to(3));
        }
        Self { path, data }
    }

    /// The content as text, with U+FFFD for what is not UTF-8.
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match str::from_utf8(&self.data) {
            Ok(text) => text.into(),
            Err(_) => String::from_utf8_lossy(&self.data),
        }
    }
}

/// The files of a tgz with their paths inside the chart's folder, in the archive's order. Folders and links
/// are left out.
///
/// # Errors
/// When it is no tgz, its end is missing, a path leaves the chart's folder, or a limit is met.
pub fn read_tgz(bytes: &[u8]) -> Result<Vec<File>, Error> {
    read_within(bytes, &mut Budget::default())
}

/// [`read_tgz`] for an archive inside a chart.
pub(crate) fn read_within(bytes: &[u8], budget: &mut Budget) -> Result<Vec<File>, Error> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        let cause = std::io::Error::new(std::io::ErrorKind::InvalidData, "no gzip header");
        return Err(Error::NotAnArchive(cause));
    }
    let files = if let Some(unzipped) = unzip_at_once(bytes).map(Bytes::from) {
        read_plain(&unzipped, budget).unwrap_or_else(|| read_entries(&unzipped[..], budget))?
    } else {
        let mut unzipped = GzDecoder::new(bytes).take(MAX_ARCHIVE.saturating_mul(2));
        let files = read_entries(&mut unzipped, budget)?;
        // The checksum stands behind the last entry: without reading up to it a cut is not seen.
        std::io::copy(&mut unzipped, &mut std::io::sink()).map_err(broken)?;
        files
    };
    if files.is_empty() { Err(Error::Empty) } else { Ok(files) }
}

/// The content of a gzip that says the truth about its length and is not huge, which takes half the time of
/// reading it in pieces. `None` for all others, damaged ones too, which are read in pieces.
fn unzip_at_once(bytes: &[u8]) -> Option<Vec<u8>> {
    /// Bytes that one byte of deflate can become.
    const RATIO: usize = 1_032;
    let decoder = flate2::bufread::GzDecoder::new(bytes);
    decoder.header()?;
    let (packed, trailer) = decoder.get_ref().split_last_chunk::<8>()?;
    let [crc, size] =
        [trailer.first_chunk::<4>()?, trailer.last_chunk::<4>()?].map(|it| u32::from_le_bytes(*it));
    let size = usize::try_from(size).ok()?;
    if size > MAX_AT_ONCE || size > packed.len().saturating_mul(RATIO) {
        return None;
    }
    let mut unzipped = Vec::with_capacity(size);
    let mut inflate = Decompress::new(false);
    let status = inflate.decompress_vec(packed, &mut unzipped, FlushDecompress::Finish).ok()?;
    let mut sum = Crc::new();
    sum.update(&unzipped);
    let is_whole = status == Status::StreamEnd
        && usize::try_from(inflate.total_in()) == Ok(packed.len())
        && unzipped.len() == size;
    (is_whole && sum.sum() == crc).then_some(unzipped)
}

/// The files of a tar in memory; `None` when it has more than plain entries, and nothing was counted then.
fn read_plain(unzipped: &Bytes, budget: &mut Budget) -> Option<Result<Vec<File>, Error>> {
    let mut left = *budget;
    let mut files = Vec::new();
    for entry in plain::Entries::of(unzipped) {
        let entry = entry.ok()?;
        let file = left.entry().and_then(|()| match entry.is_file() {
            true => left.path(&entry.path(), entry.data.len() as u64).map(Some),
            false => Ok(None),
        });
        match file {
            Ok(path) => files.extend(path.map(|path| File::of(path, unzipped.slice_ref(entry.data)))),
            Err(error) => return Some(Err(error)),
        }
    }
    *budget = left;
    Some(Ok(files))
}

fn read_entries<R: Read>(unzipped: R, budget: &mut Budget) -> Result<Vec<File>, Error> {
    let mut files = Vec::new();
    let mut archive = tar::Archive::new(unzipped);
    for entry in archive.entries().map_err(broken)? {
        budget.entry()?;
        if let Some(file) = read_entry(entry.map_err(broken)?, budget)? {
            files.push(file);
        }
    }
    Ok(files)
}

fn read_entry<R: Read>(mut entry: tar::Entry<'_, R>, budget: &mut Budget) -> Result<Option<File>, Error> {
    let kind = entry.header().entry_type();
    if !kind.is_file() && !kind.is_contiguous() {
        return Ok(None);
    }
    let size = entry.size();
    let path = budget.path(&entry.path_bytes(), size)?;
    let mut data = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    entry.read_to_end(&mut data).map_err(broken)?;
    Ok(Some(File::of(path, data.into())))
}

/// The path below the archive's one folder; Helm's rules.
fn path_inside(raw: &[u8]) -> Result<String, Error> {
    let refuse = |why| Error::Path { path: String::from_utf8_lossy(raw).into_owned(), why };
    let name = std::str::from_utf8(raw).map_err(|_| refuse("not UTF-8"))?;
    let name = name.replace('\\', "/");
    let (folder, inside) = name.split_once('/').unwrap_or((name.as_str(), ""));
    if folder.is_empty() || inside.starts_with('/') {
        return Err(refuse("absolute path"));
    }
    if folder == "Chart.yaml" || inside.is_empty() {
        return Err(refuse("not in a folder"));
    }
    let path = clean(inside).ok_or_else(|| refuse("parent folder"))?;
    let drive =
        |path: &str| matches!(path.as_bytes(), [letter, b':', b'/', ..] if letter.is_ascii_alphabetic());
    if folder == ".." || drive(&path) || drive(&name) {
        return Err(refuse("names a drive or a parent folder"));
    }
    if path.is_empty() { Err(refuse("not in a folder")) } else { Ok(path) }
}

/// The path without `.`, `..` and doubled `/`; nothing when it would leave its folder.
fn clean(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn broken(error: std::io::Error) -> Error {
    let text = error.to_string();
    let cut = error.kind() == std::io::ErrorKind::UnexpectedEof
        || ["unexpected EOF", "unexpected end", "failed to read entire block", "corrupt"]
            .iter()
            .any(|sign| text.contains(sign));
    if cut { Error::Truncated(error) } else { Error::NotAnArchive(error) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    /// A tgz with these entries, whatever their names: the header's bytes are written as they are.
    fn tgz(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, data) in entries {
            let mut header = tar::Header::new_gnu();
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(data.len() as u64);
            header.set_entry_type(tar::EntryType::Regular);
            header.set_cksum();
            builder.append(&header, *data).unwrap();
        }
        zip(&builder.into_inner().unwrap())
    }

    fn zip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn paths(bytes: &[u8]) -> Vec<String> {
        read_tgz(bytes).unwrap().into_iter().map(|file| file.path).collect()
    }

    #[test]
    fn files_lose_the_folder_of_the_archive() {
        let bytes = tgz(&[
            ("c/Chart.yaml", b"a"),
            ("c/templates/./x.yaml", b"b"),
            ("c\\values.yaml", b"\xef\xbb\xbfk"),
        ]);
        assert_eq!(paths(&bytes), ["Chart.yaml", "templates/x.yaml", "values.yaml"]);
        assert_eq!(&*read_tgz(&bytes).unwrap()[2].data, b"k");
    }

    #[test]
    fn plain_entries_are_read_as_by_the_crate_and_others_left_to_it() {
        let mut builder = tar::Builder::new(Vec::new());
        let deep = format!("c/{}x.yaml", "folder/".repeat(20));
        for (mut header, path, data) in [
            (tar::Header::new_ustar(), "c/Chart.yaml", &b"name: c"[..]),
            (tar::Header::new_ustar(), deep.as_str(), &[7; 512][..]),
            (tar::Header::new_gnu(), "c/templates/a", &[8; 513][..]),
            (tar::Header::new_old(), "c/empty", &b""[..]),
        ] {
            header.set_size(data.len() as u64);
            header.set_path(path).unwrap();
            header.set_cksum();
            builder.append(&header, data).unwrap();
        }
        let plain = Bytes::from(builder.get_ref().clone());
        let whole = Bytes::from(builder.into_inner().unwrap());
        let by_crate = read_entries(&whole[..], &mut Budget::default()).unwrap();
        assert_eq!((by_crate.len(), by_crate[1].path.len()), (4, deep.len() - 2));
        for tar in [&plain, &whole] {
            assert_eq!(read_plain(tar, &mut Budget::default()).unwrap().unwrap(), by_crate);
        }
        assert!(read_plain(&plain.slice(..plain.len() - 1), &mut Budget::default()).is_none());
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(1);
        builder.append_data(&mut header, format!("c/{}", "long".repeat(50)), &b"x"[..]).unwrap();
        let long = Bytes::from(builder.into_inner().unwrap());
        assert!(read_plain(&long, &mut Budget::default()).is_none());
    }

    #[test]
    fn paths_that_leave_the_folder_are_refused_by_name() {
        for path in [
            "c/../../etc/passwd",
            "c//etc/passwd",
            "/etc/passwd",
            "../c/Chart.yaml",
            "c/templates/../../x",
            "c/C:/x",
            "Chart.yaml",
            "c\\..\\..\\x",
            "c/..",
        ] {
            let error = read_tgz(&tgz(&[(path, b"x")])).unwrap_err();
            assert!(matches!(error, Error::Path { .. }), "{path}: {error}");
            assert!(error.to_string().contains(&format!("{path:?}")), "{error}");
        }
    }

    #[test]
    fn an_archive_that_was_cut_anywhere_is_an_error() {
        let noise: Vec<u8> =
            (0..9_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
        let whole = tgz(&[("c/Chart.yaml", b"name: c"), ("c/noise", &noise)]);
        for length in (20..whole.len()).step_by(997).chain([whole.len() - 1, whole.len() - 9]) {
            let error = read_tgz(&whole[..length]).unwrap_err();
            assert!(matches!(error, Error::Truncated(_)), "{length} of {}: {error:?}", whole.len());
        }
    }

    #[test]
    fn what_is_no_archive_is_said_so() {
        for bytes in [&b"apiVersion: v2"[..], b"", &zip(&[7; 2048])] {
            let error = read_tgz(bytes).unwrap_err();
            assert!(matches!(error, Error::NotAnArchive(_)), "{error:?}");
        }
        assert!(matches!(read_tgz(&zip(&[0; 1024])), Err(Error::Empty)));
    }

    #[test]
    fn links_and_folders_are_left_out() {
        let mut builder = tar::Builder::new(Vec::new());
        for (kind, name) in [
            (tar::EntryType::Symlink, "c/link"),
            (tar::EntryType::Link, "c/hard"),
            (tar::EntryType::Directory, "c/d/"),
        ] {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_path(name).unwrap();
            header.set_link_name("/etc/passwd").unwrap();
            header.set_size(0);
            header.set_cksum();
            builder.append(&header, &[][..]).unwrap();
        }
        let mut header = tar::Header::new_gnu();
        header.set_path("c/Chart.yaml").unwrap();
        header.set_size(1);
        header.set_cksum();
        builder.append(&header, &b"x"[..]).unwrap();
        assert_eq!(paths(&zip(&builder.into_inner().unwrap())), ["Chart.yaml"]);
    }

    /// Cut, bent and lengthened copies of a good archive: an answer or an error, never a panic, and never
    /// more than the limits.
    #[test]
    fn damaged_archives_are_errors_or_read_within_the_limits() {
        let good = tgz(&[("c/Chart.yaml", b"name: c\nversion: 1.0.0\n"), ("c/templates/a.yaml", b"a: 1\n")]);
        let unzipped = {
            let mut bytes = Vec::new();
            GzDecoder::new(&good[..]).read_to_end(&mut bytes).unwrap();
            bytes
        };
        let mut next = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = |below: usize| {
            next ^= next << 13;
            next ^= next >> 7;
            next ^= next << 17;
            usize::try_from(next % below as u64).unwrap()
        };
        for round in 0..3_000 {
            // Half of them are bent inside, where the checksum of gzip does not protect the headers of tar.
            let inside = round % 2 == 0;
            let mut bytes = if inside { unzipped.clone() } else { good.clone() };
            for _ in 0..=random(4) {
                let at = random(bytes.len());
                match random(4) {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes.insert(at, u8::try_from(random(256)).unwrap()),
                    _ => bytes[at] = u8::try_from(random(256)).unwrap(),
                }
            }
            let bytes = if inside { zip(&bytes) } else { bytes };
            if let Ok(files) = read_tgz(&bytes) {
                let inside = |path: &str| !path.starts_with('/') && !path.split('/').any(|part| part == "..");
                assert!(files.iter().all(|file| inside(&file.path)));
                drop(crate::Chart::from_archive(&bytes));
            }
        }
    }

    #[test]
    fn only_archives_that_say_the_truth_are_unpacked_at_once() {
        let good = tgz(&[("c/Chart.yaml", b"name: c\nversion: 1.0.0\n")]);
        let unzipped = unzip_at_once(&good).unwrap();
        let mut wanted = Vec::new();
        GzDecoder::new(&good[..]).read_to_end(&mut wanted).unwrap();
        assert_eq!(unzipped, wanted);
        for at in [good.len() - 1, good.len() - 3, good.len() - 8, good.len() / 2] {
            let mut bent = good.clone();
            bent[at] ^= 0x41;
            assert_eq!(unzip_at_once(&bent), None, "{at}");
        }
        assert_eq!(unzip_at_once(&[&good[..], b"more"].concat()), None);
        assert_eq!(unzip_at_once(&good[..good.len() - 9]), None);
    }

    #[test]
    fn limits_are_errors_that_name_them() {
        let large = vec![0; usize::try_from(MAX_FILE).unwrap() + 1];
        let error = read_tgz(&tgz(&[("c/big", &large)])).unwrap_err();
        assert!(matches!(&error, Error::FileTooLarge { path, .. } if path == "big"), "{error}");
        let file = vec![0; usize::try_from(MAX_FILE).unwrap()];
        let names: Vec<String> = (0..21).map(|n| format!("c/{n}")).collect();
        let many: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &file[..])).collect();
        assert!(matches!(read_tgz(&tgz(&many)), Err(Error::TooLarge)));
        let names: Vec<String> = (0..=MAX_ENTRIES).map(|n| format!("c/{n}")).collect();
        let many: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
        assert!(matches!(read_tgz(&tgz(&many)), Err(Error::TooMany)));
    }
}
