//! Charts in memory: the chart `steps` of the fixtures, and what a test breaks in it.

use std::path::PathBuf;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_chart::File;
use pintle_source::{Packed, index, pack};
use serde_json::{Map, Value, json};

/// The file of `steps` that a fault replaces.
const SECOND: &str = "templates/1000-second.yaml";

/// The files of a chart.
#[derive(Clone)]
pub(crate) struct Chart {
    files: Vec<File>,
}

/// A chart repository in a ConfigMap, before it is applied.
pub(crate) struct Repository {
    /// Text of `index.yaml`.
    pub(crate) index: String,
    /// Archives by file name.
    pub(crate) archives: Vec<(String, Vec<u8>)>,
}

/// The text of a fixture.
pub(crate) fn fixture(path: &str) -> String {
    let path = fixtures().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()))
}

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

// === impl Chart ===

impl Chart {
    /// The chart `steps`: states 0000, 1000 and 2000 of one ConfigMap each.
    pub(crate) fn steps() -> Self {
        let folder = "charts/steps";
        let paths =
            ["Chart.yaml", "values.yaml", "templates/0000-first.yaml", SECOND, "templates/2000-third.yaml"];
        let file = |path: &&str| File::new(*path, fixture(&format!("{folder}/{path}")).as_bytes());
        Self { files: paths.iter().map(file).collect() }
    }

    /// The same chart with the second state of a fault.
    pub(crate) fn with_fault(name: &str) -> Self {
        let mut chart = Self::steps();
        chart.put(SECOND, fixture(&format!("faults/{name}.yaml")).as_bytes());
        chart
    }

    /// Adds or replaces a file.
    pub(crate) fn put(&mut self, path: &str, data: &[u8]) {
        self.files.retain(|file| file.path != path);
        self.files.push(File::new(path, data));
    }

    /// The repository that holds this chart alone.
    pub(crate) fn repository(self) -> Repository {
        let packed = pack(self.files).unwrap();
        let index = index(std::slice::from_ref(&packed), None).unwrap();
        let Packed { file_name, bytes, .. } = packed;
        Repository { index, archives: vec![(file_name, bytes)] }
    }
}

// === impl Repository ===

impl Repository {
    /// Replaces the only archive, and takes its digest out of the index: the archive itself is the fault.
    pub(crate) fn with_archive(mut self, bytes: Vec<u8>) -> Self {
        self.archives[0].1 = bytes;
        self.index = self
            .index
            .lines()
            .filter(|line| !line.trim_start().starts_with("digest:"))
            .collect::<Vec<_>>()
            .join("\n");
        self
    }

    /// The ConfigMap that `cm://` reads.
    pub(crate) fn config_map(&self, namespace: &str) -> Value {
        let archives =
            self.archives.iter().map(|(name, bytes)| (name.clone(), json!(BASE64_STANDARD.encode(bytes))));
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "chart", "namespace": namespace},
            "data": {"index.yaml": self.index},
            "binaryData": archives.collect::<Map<String, Value>>()
        })
    }
}

/// A tgz with one file under exactly this path.
pub(crate) fn tgz(path: &str, data: &[u8]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    // The builder itself would refuse a path that leaves the folder.
    header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
    header.set_size(data.len() as u64);
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(0o644);
    header.set_cksum();
    builder.append(&header, data).unwrap();
    let tar = builder.into_inner().unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, &tar).unwrap();
    encoder.finish().unwrap()
}
