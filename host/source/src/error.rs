//! Why a chart could not be had: one variant per fault, each with the place and what ends it.

use pintle_chart::{ChartError, RenderError};

use crate::remote::RemoteError;

/// Why a chart could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The url has another shape.
    #[error("{url:?} is no repository: write {expected}")]
    Address {
        /// As given.
        url: String,
        /// The shape it should have.
        expected: &'static str,
    },
    /// A scheme nobody serves.
    #[error(
        "repositories of scheme {scheme} are not served, as {url:?}: use https://HOST/PATH, oci://HOST/PATH, \
         cm://NAMESPACE/NAME or file:///FOLDER"
    )]
    Scheme {
        /// As given.
        url: String,
        /// The scheme in it.
        scheme: String,
    },
    /// The ConfigMap is not there.
    #[error("ConfigMap {object} is missing: create it with `index.yaml` and the chart's tgz as its keys")]
    ConfigMapMissing {
        /// Namespace and name.
        object: String,
    },
    /// The ConfigMap must not be read.
    #[error("ConfigMap {object} may not be read ({right}): give the operator that right")]
    Denied {
        /// Namespace and name.
        object: String,
        /// The right that is missing.
        right: String,
    },
    /// A key of the ConfigMap is not there.
    #[error("{place} has no key {key:?}: add it; it has {}", list(.present))]
    KeyMissing {
        /// The ConfigMap.
        place: String,
        /// The key that was looked for.
        key: String,
        /// The keys there are.
        present: Vec<String>,
    },
    /// The binary content of a key is damaged.
    #[error(
        "{place}: key {key:?} is not base64: create the ConfigMap with `kubectl create configmap --from-file`"
    )]
    KeyBroken {
        /// The ConfigMap.
        place: String,
        /// The key.
        key: String,
        /// What the reader says.
        #[source]
        source: base64::DecodeError,
    },
    /// A folder or file is not there or cannot be read.
    #[error("{path} cannot be read: put the chart repository there")]
    File {
        /// The path.
        path: String,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// A path of an index or a link leads out of the repository.
    #[error("{place}: {path:?} leads out of the repository: name files inside it")]
    Outside {
        /// The repository, or the folder of a chart.
        place: String,
        /// The path or url.
        path: String,
    },
    /// The index is no index.
    #[error("{place}:{line}: the index is broken: write it with `helm repo index`")]
    IndexBroken {
        /// The repository with the name of its index.
        place: String,
        /// Counted from 1; 0 where the reader cannot say.
        line: usize,
        /// What the reader says.
        #[source]
        source: serde_yaml::Error,
    },
    /// The index has an entry that cannot be used.
    #[error("{place}: the entry of {chart} {version} has no urls: write the index with `helm repo index`")]
    NoUrl {
        /// The repository with the name of its index.
        place: String,
        /// Name of the chart.
        chart: String,
        /// Version of the chart.
        version: String,
    },
    /// The chart is not in the repository.
    #[error("{place} has no chart {chart:?}; it has {}", list(.present))]
    ChartMissing {
        /// The repository.
        place: String,
        /// Name of the chart.
        chart: String,
        /// The charts there are.
        present: Vec<String>,
    },
    /// No version of the chart fits.
    #[error("{place} has no version {version:?} of chart {chart}; it has {}", list(.present))]
    VersionMissing {
        /// The repository.
        place: String,
        /// Name of the chart.
        chart: String,
        /// The version or range asked for.
        version: String,
        /// The versions there are, newest first.
        present: Vec<String>,
    },
    /// The version asked for is none.
    #[error("{version:?} is neither a version nor a range, for chart {chart}: write 1.2.3 or >=1.2 <2")]
    Version {
        /// Name of the chart.
        chart: String,
        /// As given.
        version: String,
        /// What is wrong with it.
        #[source]
        source: pintle_chart::semver::Error,
    },
    /// More bytes than may be read.
    #[error("{place} has {size} bytes, more than the {limit} that are read")]
    TooLarge {
        /// The file or key.
        place: String,
        /// Its bytes.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The bytes are others than those named.
    #[error(
        "{place} has digest {found}, but {named_by} says {expected}: one of them is out of date or was tampered with"
    )]
    Digest {
        /// The file or key.
        place: String,
        /// Digest of the bytes.
        found: String,
        /// Digest that was expected.
        expected: String,
        /// `the index`, or `chart.digest`.
        named_by: &'static str,
    },
    /// The bytes are no chart.
    #[error("{place} is no chart")]
    Chart {
        /// The file, key or folder.
        place: String,
        /// What is wrong with it.
        #[source]
        source: ChartError,
    },
    /// The chart cannot be installed.
    #[error("{place} cannot be installed")]
    NotInstallable {
        /// The file, key or folder.
        place: String,
        /// What is wrong with it.
        #[source]
        source: RenderError,
    },
    /// A server did not give what was asked of it.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The registry has no such version.
    #[error("{place} has no version {version:?}: was it pushed, and are name and version right?")]
    NotPushed {
        /// The chart.
        place: String,
        /// The version or digest asked for.
        version: String,
    },
    /// What is in the registry is something else.
    #[error("{place} is no chart: {problem}: push it with `helm push`")]
    NotAChart {
        /// The reference.
        place: String,
        /// What it is.
        problem: String,
    },
    /// A task of ours ended early; this is a fault of ours.
    #[error("reading {place} was interrupted")]
    Interrupted {
        /// What was read.
        place: String,
    },
}

impl Error {
    /// The fault in one CamelCase word: reason of a condition and label of a metric.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Address { .. } => "RepositoryInvalid",
            Self::Scheme { .. } => "RepositoryNotServed",
            Self::ConfigMapMissing { .. } => "ConfigMapMissing",
            Self::Denied { .. } => "ConfigMapDenied",
            Self::KeyMissing { .. } => "KeyMissing",
            Self::KeyBroken { .. } => "KeyBroken",
            Self::File { .. } => "FileUnreadable",
            Self::Outside { .. } => "PathOutside",
            Self::IndexBroken { .. } | Self::NoUrl { .. } => "IndexBroken",
            Self::ChartMissing { .. } => "ChartMissing",
            Self::VersionMissing { .. } | Self::NotPushed { .. } => "VersionMissing",
            Self::Version { .. } => "VersionInvalid",
            Self::TooLarge { .. } => "TooLarge",
            Self::Digest { .. } => "DigestMismatch",
            Self::Chart { .. } | Self::NotAChart { .. } => "ChartBroken",
            Self::Remote(error) => error.reason(),
            Self::NotInstallable { .. } => "ChartNotInstallable",
            Self::Interrupted { .. } => "Interrupted",
        }
    }

    /// True when trying again may help although nothing we watch changes: what lies on a disk or behind a
    /// server may be there the next time.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::File { .. } | Self::Interrupted { .. } => true,
            Self::Remote(error) => error.is_transient(),
            _ => false,
        }
    }

    /// True when only somebody else's server can mend it, whom nobody watches for us: it is asked again,
    /// rarely.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Remote(_) | Self::NotPushed { .. } | Self::NotAChart { .. })
    }
}

/// At most this many names of what there is stand in a message.
const SHOWN: usize = 10;

fn list(names: &[String]) -> String {
    match names.len() {
        0 => "none".to_owned(),
        count if count > SHOWN => {
            let shown = names.get(..SHOWN).unwrap_or_default().join(", ");
            format!("{shown} and {} more", count - SHOWN)
        }
        _ => names.join(", "),
    }
}
