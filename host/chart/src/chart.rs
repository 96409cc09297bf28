//! A chart in memory: metadata, values, templates, files, and the charts inside it.

use std::{collections::BTreeMap, sync::Arc};

use pintle_template::value::{Frozen, frozen_map};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    archive::{self, Budget, File},
    ignore,
    metadata::{self, Metadata},
    schema::Schema,
    values::{Values, live},
    yaml,
};

/// Charts inside charts inside charts; no public chart has more than four.
const MAX_DEPTH: usize = 16;

/// A chart as it was loaded; nothing about it is decided yet.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// `Chart.yaml`.
    pub metadata: Arc<Metadata>,
    /// `Chart.lock`, as Helm keeps it with a release.
    pub lock: Option<Value>,
    /// `values.yaml`, every number a float, as all renders share it; see [`Chart::values`].
    pub defaults: Frozen,
    /// `values.yaml` as text; empty where there is none.
    pub values_text: String,
    /// `values.schema.json`.
    pub schema: Option<Schema>,
    /// Files under `templates/`, sorted by path.
    pub templates: Vec<File>,
    /// All other files that templates can read, `crds/` among them: in the order of the archive, or of a walk
    /// through the folder.
    pub files: Vec<File>,
    /// Charts under `charts/`, sorted by their folder or archive name.
    pub dependencies: Vec<Arc<Chart>>,
    /// `sha256:…` of the archive, or of a folder's sorted files; empty for charts inside charts.
    pub digest: String,
}

/// Why files are no chart.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// The tgz cannot be read.
    #[error("cannot unpack the chart")]
    Archive(#[from] archive::Error),
    /// `.helmignore` cannot be read.
    #[error("cannot leave out ignored files")]
    Ignore(#[from] ignore::Error),
    /// No `Chart.yaml` where one must be.
    #[error("Chart.yaml is missing: it must be at the top of the chart's folder")]
    NoMetadata,
    /// `Chart.yaml` or `requirements.yaml` is wrong.
    #[error("the chart's metadata is wrong")]
    Metadata(#[from] metadata::Error),
    /// `values.yaml` or `Chart.lock` is wrong.
    #[error("{file}:{line}: not readable as YAML")]
    Yaml {
        /// Path inside the chart.
        file: String,
        /// Counted from 1.
        line: usize,
        /// What the reader says.
        #[source]
        source: yaml::Error,
    },
    /// A chart under `charts/` is wrong.
    #[error("charts/{name} of chart {parent} is no chart")]
    Subchart {
        /// Folder or archive under `charts/`.
        name: String,
        /// The chart around it.
        parent: String,
        /// What is wrong.
        #[source]
        source: Box<ChartError>,
    },
    /// More than [`MAX_DEPTH`] charts inside each other.
    #[error("charts are nested more than {MAX_DEPTH} deep")]
    TooDeep,
}

// === impl Chart ===

impl Chart {
    /// The chart in a tgz. `.helmignore` has no effect there, as in Helm.
    ///
    /// # Errors
    /// When the archive or the chart in it is broken.
    pub fn from_archive(bytes: &[u8]) -> Result<Self, ChartError> {
        let mut budget = Budget::default();
        let files = archive::read_within(bytes, &mut budget)?;
        let mut chart = Self::build(files, &mut budget, 0)?;
        chart.digest = digest_of(bytes);
        Ok(chart)
    }

    /// The chart of a folder's files, whose paths are relative to that folder; `.helmignore` is obeyed.
    ///
    /// # Errors
    /// When a file is broken or a limit is met.
    pub fn from_folder(files: Vec<File>) -> Result<Self, ChartError> {
        let mut files = ignore::apply(files)?;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        check_sizes(&files)?;
        let mut hash = Sha256::new();
        for file in &files {
            hash.update(format!("{} {}\n", file.data.len(), file.path));
            hash.update(&file.data);
        }
        let digest = format!("sha256:{}", hex::encode(hash.finalize()));
        // As one walks through folders: `a/x` before `a-b`.
        files.sort_by(|one, other| one.path.split('/').cmp(other.path.split('/')));
        let mut chart = Self::build(files, &mut Budget::default(), 0)?;
        chart.digest = digest;
        Ok(chart)
    }

    /// The name in `Chart.yaml`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// `values.yaml`, every number a float.
    #[must_use]
    pub fn values(&self) -> Values {
        live::to_values(&frozen_map(Arc::clone(&self.defaults))).unwrap_or_default()
    }

    /// The files under `crds/` of this chart alone, in the order of its files.
    pub fn crd_files(&self) -> impl Iterator<Item = &File> {
        let is_manifest = |path: &str| {
            let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
            ["yaml", "yml", "json"].iter().any(|manifest| manifest.eq_ignore_ascii_case(ending))
        };
        self.files.iter().filter(move |file| file.path.starts_with("crds/") && is_manifest(&file.path))
    }

    fn build(files: Vec<File>, budget: &mut Budget, depth: usize) -> Result<Self, ChartError> {
        if depth > MAX_DEPTH {
            return Err(ChartError::TooDeep);
        }
        let file = files.iter().find(|file| file.path == "Chart.yaml").ok_or(ChartError::NoMetadata)?;
        let metadata = Arc::new(Metadata::parse(text_of(file)?)?);
        let mut chart = Self { metadata, ..Self::default() };
        let mut inner: BTreeMap<String, Vec<File>> = BTreeMap::new();
        for file in files {
            chart.place(file, &mut inner)?;
        }
        chart.templates.sort_by(|one, other| one.path.cmp(&other.path));
        for (name, files) in inner {
            if !name.starts_with(['_', '.']) {
                let subchart = chart.subchart(name, files, budget, depth)?;
                chart.dependencies.push(Arc::new(subchart));
            }
        }
        Ok(chart)
    }

    fn place(&mut self, file: File, inner: &mut BTreeMap<String, Vec<File>>) -> Result<(), ChartError> {
        match file.path.as_str() {
            "Chart.yaml" => {}
            "Chart.lock" => self.lock = Some(read_yaml(&file)?),
            "values.yaml" => {
                text_of(&file)?.clone_into(&mut self.values_text);
                self.defaults = live::load(&self.values_text).map_err(|source| at(&file, source))?;
            }
            "values.schema.json" => self.schema = Some(Schema::new(file.data)),
            "requirements.yaml" => {
                Arc::make_mut(&mut self.metadata).add_requirements(text_of(&file)?)?;
                self.keep_if_v1(file);
            }
            "requirements.lock" => {
                self.lock = Some(read_yaml(&file)?);
                self.keep_if_v1(file);
            }
            path if path.starts_with("templates/") => self.templates.push(file),
            path if path.starts_with("charts/") && !path.ends_with(".prov") => {
                let rest = path.strip_prefix("charts/").unwrap_or(path).to_owned();
                let (name, inside) = rest.split_once('/').unwrap_or((rest.as_str(), ""));
                inner
                    .entry(name.to_owned())
                    .or_default()
                    .push(File { path: inside.to_owned(), data: file.data });
            }
            _ => self.files.push(file),
        }
        Ok(())
    }

    fn keep_if_v1(&mut self, file: File) {
        if self.metadata.api_version == "v1" {
            self.files.push(file);
        }
    }

    fn subchart(
        &self,
        name: String,
        files: Vec<File>,
        budget: &mut Budget,
        depth: usize,
    ) -> Result<Self, ChartError> {
        let packed = files.iter().find(|file| file.path.is_empty() && name.ends_with(".tgz"));
        let built = match packed {
            Some(file) => archive::read_within(&file.data, budget)
                .map_err(ChartError::from)
                .and_then(|files| Self::build(files, budget, depth + 1)),
            None => {
                let files = files.into_iter().filter(|file| !file.path.is_empty()).collect();
                Self::build(files, budget, depth + 1)
            }
        };
        let parent = self.metadata.name.clone();
        built.map_err(|source| ChartError::Subchart { name, parent, source: Box::new(source) })
    }
}

/// `sha256:…` of bytes, as repositories and `chart.digest` write it.
#[must_use]
pub fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

fn check_sizes(files: &[File]) -> Result<(), archive::Error> {
    let size = |file: &File| file.data.len() as u64;
    if files.len() > archive::MAX_ENTRIES {
        return Err(archive::Error::TooMany);
    }
    if let Some(file) = files.iter().find(|file| size(file) > archive::MAX_FILE) {
        return Err(archive::Error::FileTooLarge { path: file.path.clone(), size: size(file) });
    }
    if files.iter().map(size).sum::<u64>() > archive::MAX_ARCHIVE {
        return Err(archive::Error::TooLarge);
    }
    Ok(())
}

fn read_yaml(file: &File) -> Result<Value, ChartError> {
    yaml::load(text_of(file)?).map_err(|source| at(file, source))
}

fn text_of(file: &File) -> Result<&str, ChartError> {
    yaml::text_of(&file.data).map_err(|source| at(file, source))
}

fn at(file: &File, source: yaml::Error) -> ChartError {
    ChartError::Yaml { file: file.path.clone(), line: source.line, source }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    /// A chart of files given as (path, text).
    pub(crate) fn chart(files: &[(&str, &str)]) -> Chart {
        Chart::from_folder(files.iter().map(|(path, text)| File::new(*path, text.as_bytes())).collect())
            .unwrap()
    }

    fn error(files: &[(&str, &str)]) -> String {
        let files = files.iter().map(|(path, text)| File::new(*path, text.as_bytes())).collect();
        let mut next: Option<&dyn std::error::Error> = Some(&Chart::from_folder(files).unwrap_err());
        let mut text = String::new();
        while let Some(error) = next {
            text = if text.is_empty() { error.to_string() } else { format!("{text}: {error}") };
            next = error.source();
        }
        text
    }

    const META: &str = "apiVersion: v2\nname: c\nversion: 1.2.3\n";

    #[test]
    fn files_go_where_helm_puts_them() {
        let chart = chart(&[
            ("Chart.yaml", META),
            ("values.yaml", "a: 1\nb: {c: yes}\n"),
            ("values.schema.json", "{}"),
            ("templates/b.yaml", ""),
            ("templates/a.yaml", ""),
            ("README.md", "read"),
            ("crds/x.yaml", "kind: X"),
            ("crds/readme.txt", ""),
            ("charts/sub/Chart.yaml", "name: sub\nversion: 0.1.0\n"),
            ("charts/_old/Chart.yaml", "broken: ["),
        ]);
        let paths = |files: &[File]| files.iter().map(|file| file.path.clone()).collect::<Vec<_>>();
        assert_eq!(paths(&chart.templates), ["templates/a.yaml", "templates/b.yaml"]);
        assert_eq!(paths(&chart.files), ["README.md", "crds/readme.txt", "crds/x.yaml"]);
        assert_eq!(chart.crd_files().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["crds/x.yaml"]);
        assert_eq!(chart.dependencies.len(), 1);
        assert!(chart.values().get("a").unwrap().is_f64());
        assert!(chart.digest.starts_with("sha256:"));
    }

    #[test]
    fn requirements_of_v1_charts_are_dependencies_and_files() {
        let chart = chart(&[
            ("Chart.yaml", "name: c\nversion: 1.0.0\n"),
            ("requirements.yaml", "dependencies:\n- {name: d, version: '*', repository: ''}\n"),
        ]);
        assert_eq!(chart.metadata.dependencies[0].name, "d");
        assert_eq!(chart.files[0].path, "requirements.yaml");
    }

    #[test]
    fn faults_name_the_file_and_the_line() {
        assert_eq!(error(&[("values.yaml", "")]), ChartError::NoMetadata.to_string());
        let text = error(&[("Chart.yaml", META), ("values.yaml", "a: 1\nb: [\n")]);
        assert!(text.starts_with("values.yaml:"), "{text}");
        let text = error(&[("Chart.yaml", META), ("charts/x/Chart.yaml", "name: x\n")]);
        assert!(text.starts_with("charts/x of chart c is no chart"), "{text}");
        assert!(text.contains("Chart.yaml:1: version: is missing"), "{text}");
        let text = error(&[("Chart.yaml", META), ("charts/x.tgz", "not a tgz")]);
        assert!(text.starts_with("charts/x.tgz of chart c is no chart"), "{text}");
    }

    #[test]
    fn the_digest_of_a_folder_does_not_depend_on_the_order_of_its_files() {
        let one = chart(&[("Chart.yaml", META), ("templates/a", "x")]);
        let other = chart(&[("templates/a", "x"), ("Chart.yaml", META)]);
        assert_eq!(one.digest, other.digest);
        assert_ne!(one.digest, chart(&[("Chart.yaml", META), ("templates/a", "y")]).digest);
    }
}
