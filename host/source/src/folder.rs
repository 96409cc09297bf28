//! Charts in a folder: with an `index.yaml`, or simply lying there, packed or not.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use pintle_chart::{
    File, Metadata,
    archive::{MAX_ARCHIVE, MAX_ENTRIES, MAX_FILE},
};

use crate::{
    error::Error,
    index::{Entry, INDEX, Index, MAX_INDEX},
};

/// Folders inside each other; a chart's own have three.
const MAX_DEPTH: usize = 32;

/// A folder of charts. All of it reads from a disk: call it where that may block.
pub(crate) struct Repository {
    root: PathBuf,
}

/// What lies where an entry points.
pub(crate) enum Content {
    /// A tgz.
    Archive(Vec<u8>),
    /// The files of an unpacked chart.
    Files(Vec<File>),
}

impl Repository {
    /// Finds the folder.
    ///
    /// # Errors
    /// When it is not there.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let root = path.canonicalize().map_err(|source| unreadable(path, source))?;
        Ok(Self { root })
    }

    /// The repository as a url.
    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.root.display())
    }

    /// The index in the folder; without one, what the charts say that lie there and may be `chart`: folders
    /// and archives whose name starts with it.
    ///
    /// # Errors
    /// When the index is broken or the folder cannot be read.
    pub(crate) fn index(&self, chart: &str) -> Result<Index, Error> {
        let path = self.root.join(INDEX);
        if path.is_file() {
            let bytes = read(&path, MAX_INDEX)?;
            return Index::parse(&String::from_utf8_lossy(&bytes), &path.display().to_string());
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(|source| unreadable(&self.root, source))? {
            let name = entry.map_err(|source| unreadable(&self.root, source))?.file_name();
            let Some(name) = name.to_str().filter(|name| name.starts_with(chart)) else { continue };
            found.extend(self.candidate(name)?);
        }
        Ok(Index::of(found))
    }

    /// The chart that lies under a name: nothing for what is no chart.
    fn candidate(&self, name: &str) -> Result<Option<(String, Entry)>, Error> {
        let path = self.root.join(name);
        let text = if path.is_dir() {
            match read(&path.join("Chart.yaml"), MAX_FILE) {
                Ok(bytes) => bytes,
                Err(_) => return Ok(None),
            }
        } else if name.ends_with(".tgz") {
            let place = path.display().to_string();
            let files = pintle_chart::archive::read_tgz(&read(&path, MAX_ARCHIVE)?)
                .map_err(|source| Error::Chart { place, source: source.into() })?;
            match files.into_iter().find(|file| file.path == "Chart.yaml") {
                Some(file) => file.data.to_vec(),
                None => return Ok(None),
            }
        } else {
            return Ok(None);
        };
        let metadata = Metadata::parse(&String::from_utf8_lossy(&text))
            .map_err(|source| Error::Chart { place: path.display().to_string(), source: source.into() })?;
        let entry = Entry { version: metadata.version, urls: vec![name.to_owned()], digest: String::new() };
        Ok(Some((metadata.name, entry)))
    }

    /// What a url of the index points to, which must be inside the folder.
    ///
    /// # Errors
    /// When it is outside, missing or too large.
    pub(crate) fn content(&self, url: &str) -> Result<(String, Content), Error> {
        let path = self.locate(url)?;
        let place = path.display().to_string();
        if path.is_dir() {
            let mut files = Vec::new();
            let mut left = MAX_ARCHIVE;
            collect(&path, &path, 0, &mut left, &mut files)?;
            return Ok((place, Content::Files(files)));
        }
        Ok((place, Content::Archive(read(&path, MAX_ARCHIVE)?)))
    }

    fn locate(&self, url: &str) -> Result<PathBuf, Error> {
        let outside = || Error::Outside { place: self.url(), path: url.to_owned() };
        let relative = match url.strip_prefix("file://") {
            Some(path) => Path::new(path),
            None if url.contains("://") => return Err(outside()),
            None => Path::new(url),
        };
        if relative.components().any(|part| part == Component::ParentDir) {
            return Err(outside());
        }
        let path = self.root.join(relative);
        let real = path.canonicalize().map_err(|source| unreadable(&path, source))?;
        if real.starts_with(&self.root) { Ok(real) } else { Err(outside()) }
    }
}

/// All files below a folder, by their paths from `top`. Links are followed as far as they stay inside.
fn collect(
    top: &Path,
    folder: &Path,
    depth: usize,
    left: &mut u64,
    files: &mut Vec<File>,
) -> Result<(), Error> {
    let too_large =
        || Error::TooLarge { place: top.display().to_string(), size: MAX_ARCHIVE + 1, limit: MAX_ARCHIVE };
    if depth > MAX_DEPTH {
        return Err(Error::Outside { place: top.display().to_string(), path: folder.display().to_string() });
    }
    for entry in fs::read_dir(folder).map_err(|source| unreadable(folder, source))? {
        let path = entry.map_err(|source| unreadable(folder, source))?.path();
        let real = path.canonicalize().map_err(|source| unreadable(&path, source))?;
        if !real.starts_with(top) {
            return Err(Error::Outside {
                place: top.display().to_string(),
                path: path.display().to_string(),
            });
        }
        if real.is_dir() {
            collect(top, &path, depth + 1, left, files)?;
            continue;
        }
        if files.len() >= MAX_ENTRIES {
            return Err(too_large());
        }
        let bytes = read(&real, MAX_FILE)?;
        *left = left.checked_sub(bytes.len() as u64).ok_or_else(too_large)?;
        let inside = path.strip_prefix(top).unwrap_or(&path).components();
        let inside: Vec<_> = inside.map(|part| part.as_os_str().to_string_lossy()).collect();
        files.push(File::new(inside.join("/"), &bytes));
    }
    Ok(())
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let size = fs::metadata(path).map_err(|source| unreadable(path, source))?.len();
    if size > limit {
        return Err(Error::TooLarge { place: path.display().to_string(), size, limit });
    }
    fs::read(path).map_err(|source| unreadable(path, source))
}

fn unreadable(path: &Path, source: std::io::Error) -> Error {
    Error::File { path: path.display().to_string(), source }
}
