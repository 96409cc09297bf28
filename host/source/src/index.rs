//! `index.yaml` of a chart repository, and which entry a version means.

use std::collections::BTreeMap;

use pintle_chart::semver::{Constraint, Version};
use serde::Deserialize;

use crate::error::Error;

/// Name of the index in every repository.
pub(crate) const INDEX: &str = "index.yaml";
/// Bytes of an index; the largest public ones have 15 MB.
pub(crate) const MAX_INDEX: u64 = 20 << 20;

/// The charts of a repository.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Index {
    #[serde(default)]
    entries: BTreeMap<String, Option<Vec<Option<Entry>>>>,
}

/// One version of a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Entry {
    pub(crate) version: String,
    pub(crate) urls: Vec<String>,
    pub(crate) digest: String,
}

impl Index {
    /// Reads an index.
    ///
    /// # Errors
    /// When it is no YAML of that form, with the line.
    pub(crate) fn parse(text: &str, place: &str) -> Result<Self, Error> {
        let index: Option<Self> = serde_yaml::from_str(text).map_err(|source| Error::IndexBroken {
            place: place.to_owned(),
            line: source.location().map_or(0, |at| at.line()),
            source,
        })?;
        Ok(index.unwrap_or_default())
    }

    /// An index made from what lies in a folder.
    pub(crate) fn of(entries: impl IntoIterator<Item = (String, Entry)>) -> Self {
        let mut index = Self::default();
        for (name, entry) in entries {
            index.entries.entry(name).or_default().get_or_insert_default().push(Some(entry));
        }
        index
    }

    /// The entry that a version or range means, as Helm chooses: the very text first, then the newest that
    /// fits. An empty version means the newest release.
    ///
    /// # Errors
    /// When the chart or the version is not there, or the version is none.
    pub(crate) fn find(&self, chart: &str, version: &str, place: &str) -> Result<&Entry, Error> {
        let Some(entries) = self.entries.get(chart) else {
            let present = self.entries.keys().cloned().collect();
            return Err(Error::ChartMissing { place: place.to_owned(), chart: chart.to_owned(), present });
        };
        let constraint =
            Constraint::parse(if version.is_empty() { "*" } else { version }).map_err(|source| {
                Error::Version { chart: chart.to_owned(), version: version.to_owned(), source }
            })?;
        let entries = newest_first(entries.iter().flatten().flatten());
        let exact = entries.iter().find(|(_, entry)| entry.version == version);
        let found = exact.or_else(|| entries.iter().find(|(parsed, _)| constraint.matches(parsed)));
        found.map(|(_, entry)| *entry).ok_or_else(|| Error::VersionMissing {
            place: place.to_owned(),
            chart: chart.to_owned(),
            version: version.to_owned(),
            present: entries.iter().map(|(_, entry)| entry.version.clone()).collect(),
        })
    }
}

/// Entries whose version can be read; others count for nothing, as in Helm.
fn newest_first<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<(Version, &'a Entry)> {
    let readable = entries.filter_map(|entry| Some((Version::parse(&entry.version).ok()?, entry)));
    let mut entries: Vec<_> = readable.collect();
    entries.sort_by(|(one, _), (other, _)| other.cmp(one));
    entries
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    const TEXT: &str = "apiVersion: v1\nentries:\n  a:\n  - {version: 1.2.0, urls: [a-1.2.0.tgz]}\n  \
        - {version: v1.5.0, urls: [x], digest: d}\n  - {version: 2.0.0-rc.1, urls: [y]}\n  - null\n  \
        - {version: banana, urls: [z]}\n  - {version: 1.10.0, urls: [w]}\n  b: []\n  c:\ngenerated: \"2026-01-01\"\n";

    #[track_caller]
    fn found(version: &str) -> String {
        Index::parse(TEXT, "p").unwrap().find("a", version, "p").unwrap().version.clone()
    }

    #[test]
    fn a_version_means_what_it_means_to_helm() {
        for (version, expected) in [
            ("", "1.10.0"),
            ("*", "1.10.0"),
            ("1.5.0", "v1.5.0"),
            ("v1.5.0", "v1.5.0"),
            ("1.2.0", "1.2.0"),
            ("~1.2", "1.2.0"),
            ("^1", "1.10.0"),
            ("<1.10", "v1.5.0"),
            (">0-0", "2.0.0-rc.1"),
            ("2.0.0-rc.1", "2.0.0-rc.1"),
        ] {
            assert_eq!(found(version), expected, "{version}");
        }
    }

    #[test]
    fn what_is_not_there_is_named_with_what_is() {
        let index = Index::parse(TEXT, "p").unwrap();
        let says = |chart, version| index.find(chart, version, "cm://ns/n").unwrap_err().to_string();
        assert_eq!(says("z", ""), "cm://ns/n has no chart \"z\"; it has a, b, c");
        assert_eq!(
            says("a", "3"),
            "cm://ns/n has no version \"3\" of chart a; it has 2.0.0-rc.1, 1.10.0, v1.5.0, 1.2.0"
        );
        assert_eq!(says("b", ""), "cm://ns/n has no version \"\" of chart b; it has none");
        assert!(says("a", "one").starts_with("\"one\" is neither a version nor a range, for chart a: "));
    }

    #[test]
    fn a_broken_index_names_its_line() {
        for (text, says) in [
            ("entries:\n  a:\n  - version: [1]\n", "p:3: the index is broken"),
            ("entries:\n- a\n", "p:2: the index is broken"),
            ("a: [\n", "p:2: the index is broken"),
        ] {
            let error = Index::parse(text, "p").unwrap_err().to_string();
            assert!(error.starts_with(says), "{error:?} starts with {says:?}");
        }
        assert!(Index::parse("", "p").unwrap().entries.is_empty());
    }
}
