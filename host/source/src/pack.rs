//! Chart folders as archives and repositories: the same files always give the same bytes.

use std::{collections::BTreeMap, io::Write};

use flate2::{Compression, GzBuilder};
use pintle_chart::{Chart, ChartError, File, Metadata, digest_of, ignore};
use serde::Serialize;

/// A packed chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed {
    /// `name-version.tgz`, as `helm package` names it.
    pub file_name: String,
    /// The archive.
    pub bytes: Vec<u8>,
    /// `sha256:…` of the archive.
    pub digest: String,
    /// `Chart.yaml`
    pub metadata: Metadata,
}

/// Why a folder was not packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The files are no chart.
    #[error("the folder is no chart")]
    Chart(#[from] ChartError),
    /// Some files cannot be left out as `.helmignore` says.
    #[error("the folder has a broken .helmignore")]
    Ignore(#[from] ignore::Error),
    /// Nothing can be written.
    #[error("cannot write the archive")]
    Write(#[from] std::io::Error),
    /// The index has no form in YAML.
    #[error("cannot write the index")]
    Index(#[from] serde_yaml::Error),
}

#[derive(Serialize)]
struct Index<'a> {
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    entries: BTreeMap<&'a str, Vec<IndexEntry<'a>>>,
}

#[derive(Serialize)]
struct IndexEntry<'a> {
    #[serde(flatten)]
    metadata: &'a Metadata,
    digest: &'a str,
    urls: Vec<String>,
}

/// Packs a chart folder's files (paths relative to it) as `helm package` does: `.helmignore` is obeyed, all
/// lies in one folder of the chart's name. Files are sorted and without times, so equal files give equal
/// bytes.
///
/// # Errors
/// When the files are no chart that Pintle could install.
pub fn pack(files: Vec<File>) -> Result<Packed, PackError> {
    let metadata = Metadata::clone(&Chart::from_folder(files.clone())?.metadata);
    let mut files = ignore::apply(files)?;
    // Chart.yaml first, as Helm: a reader of a cut archive then knows at least what it was.
    files.sort_by(|one, other| {
        (one.path != "Chart.yaml", &one.path).cmp(&(other.path != "Chart.yaml", &other.path))
    });
    let zipped = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    let mut archive = tar::Builder::new(zipped);
    for file in &files {
        let mut header = tar::Header::new_gnu();
        header.set_size(file.data.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_entry_type(tar::EntryType::Regular);
        archive.append_data(&mut header, format!("{}/{}", metadata.name, file.path), &*file.data)?;
    }
    let mut zipped = archive.into_inner()?;
    zipped.flush()?;
    let bytes = zipped.finish()?;
    let file_name = format!("{}-{}.tgz", metadata.name, metadata.version);
    Ok(Packed { file_name, digest: digest_of(&bytes), bytes, metadata })
}

/// The `index.yaml` of a repository that holds these archives; `url` stands before their names, without one
/// they are relative.
///
/// # Errors
/// When a chart's metadata has no form in YAML.
pub fn index(packed: &[Packed], url: Option<&str>) -> Result<String, PackError> {
    let mut entries: BTreeMap<&str, Vec<IndexEntry<'_>>> = BTreeMap::new();
    for chart in packed {
        let place = match url {
            Some(url) => format!("{}/{}", url.trim_end_matches('/'), chart.file_name),
            None => chart.file_name.clone(),
        };
        let digest = chart.digest.strip_prefix("sha256:").unwrap_or(&chart.digest);
        let entry = IndexEntry { metadata: &chart.metadata, digest, urls: vec![place] };
        entries.entry(&chart.metadata.name).or_default().push(entry);
    }
    Ok(serde_yaml::to_string(&Index { api_version: "v1", entries })?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    fn files() -> Vec<File> {
        let text = "apiVersion: v2\nname: c\nversion: 1.2.3\nappVersion: \"1.10\"\n";
        vec![
            File::new("templates/x.yaml", b"kind: X"),
            File::new("Chart.yaml", text.as_bytes()),
            File::new(".helmignore", b"*.bak\n"),
            File::new("old.bak", b"gone"),
        ]
    }

    #[test]
    fn equal_files_give_equal_bytes_in_any_order() {
        let one = pack(files()).unwrap();
        let other = pack(files().into_iter().rev().collect()).unwrap();
        assert_eq!(one, other);
        assert_eq!(one.file_name, "c-1.2.3.tgz");
        let read = Chart::from_archive(&one.bytes).unwrap();
        assert_eq!((read.name(), read.digest.as_str()), ("c", one.digest.as_str()));
        let left: Vec<_> = read.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(left, [".helmignore"]);
    }

    #[test]
    fn an_index_finds_what_was_packed() {
        let packed = pack(files()).unwrap();
        let text = index(std::slice::from_ref(&packed), Some("cm://ns/n")).unwrap();
        let read = crate::index::Index::parse(&text, "p").unwrap();
        let entry = read.find("c", "1.x", "p").unwrap();
        assert_eq!(entry.urls, ["cm://ns/n/c-1.2.3.tgz"]);
        assert_eq!(format!("sha256:{}", entry.digest), packed.digest);
        assert!(text.contains("appVersion: '1.10'"), "{text}");
    }

    #[test]
    fn what_is_no_chart_is_not_packed() {
        assert!(matches!(
            pack(vec![File::new("values.yaml", b"")]),
            Err(PackError::Chart(ChartError::NoMetadata))
        ));
    }
}
