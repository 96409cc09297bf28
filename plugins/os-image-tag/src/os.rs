//! Which operating system a node runs: labels of node-feature-discovery, else the free text that the
//! kubelet reports.

use std::collections::BTreeMap;

const ID: &str = "feature.node.kubernetes.io/system-os_release.ID";
const VERSION: &str = "feature.node.kubernetes.io/system-os_release.VERSION_ID";

/// Names in the free text with the ID that os-release has for them. CoreOS stands before Red Hat, since
/// its text names both.
const NAMES: [(&str, &str); 9] = [
    ("coreos", "rhcos"),
    ("red hat enterprise linux", "rhel"),
    ("ubuntu", "ubuntu"),
    ("suse linux enterprise", "sles"),
    ("rocky linux", "rocky"),
    ("oracle linux", "ol"),
    ("centos", "centos"),
    ("debian", "debian"),
    ("fedora", "fedora"),
];

/// An operating system and its version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Os {
    pub(crate) id: String,
    pub(crate) version: String,
}

impl Os {
    /// What a node runs.
    ///
    /// # Errors
    /// With the sentence for people when nobody knows that system.
    pub(crate) fn of(labels: &BTreeMap<String, String>, image: &str) -> Result<Self, String> {
        if let (Some(id), Some(version)) = (labels.get(ID), labels.get(VERSION)) {
            return Ok(Self { id: id.clone(), version: version.clone() });
        }
        let text = image.to_lowercase();
        let found = NAMES.iter().find(|(name, _)| text.contains(name));
        let supported = || NAMES.map(|(_, id)| id).join(", ");
        let (_, id) =
            found.ok_or_else(|| format!("OS not supported: {image}; supported: {}", supported()))?;
        let version = version_in(&text).ok_or_else(|| format!("OS without a version: {image}"))?;
        Ok(Self { id: (*id).to_owned(), version })
    }

    /// The tag of vendors' images: of the Red Hat family only the major version counts.
    pub(crate) fn tag(&self) -> String {
        let Self { id, version } = self;
        let is_by_major = matches!(id.as_str(), "rhel" | "rocky" | "ol");
        let version = if is_by_major { version.split('.').next().unwrap_or(version) } else { version };
        format!("{id}{version}")
    }

    /// Name and whole version, `sles-15.7`.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.id, self.version)
    }
}

/// The first number, its second part, and SUSE's service pack as the second part.
fn version_in(text: &str) -> Option<String> {
    let mut words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '.')).peekable();
    let number = words.by_ref().find(|word| word.starts_with(|letter: char| letter.is_ascii_digit()))?;
    if let Some(pack) = words.next().and_then(|word| word.strip_prefix("sp")) {
        return Some(format!("{number}.{pack}"));
    }
    let parts: Vec<&str> = number.split('.').take(2).collect();
    Some(parts.join("."))
}
