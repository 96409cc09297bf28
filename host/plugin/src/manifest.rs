//! What a plugin says about itself: the JSON of `describe`.

use pintle_api::plugin::{LogGrant, ReadGrant};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    grants::Granted,
    limits,
    mask::{FieldPath, Mask},
    text,
};

/// The format of the manifest, its field `manifest`.
const FORMAT: &str = "pintle.dev/manifest/v1";

/// What a plugin says about itself. What it asks for is a wish: only grants give.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// `pintle.dev/manifest/v1`.
    pub manifest: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// A sentence for people.
    #[serde(default)]
    pub description: String,
    /// JSON Schema (2020-12) of `config`.
    #[serde(default)]
    pub config_schema: Option<Value>,
    /// JSON Schema (2020-12) of the arguments in annotations.
    #[serde(default)]
    pub args_schema: Option<Value>,
    /// What it must be granted.
    #[serde(default)]
    pub needs: Needs,
    /// Reasons of its blockers and conditions.
    #[serde(default)]
    pub reasons: Vec<String>,
    /// Paths of a target that it looks at; empty for all.
    #[serde(default)]
    pub applied_fields: Vec<String>,
}

/// What a plugin must be granted to do its work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Needs {
    /// Objects it reads besides those of the release.
    pub read: Vec<ReadGrant>,
    /// Pods whose logs it reads.
    pub logs: Vec<LogGrant>,
    /// Kinds it returns to be applied.
    pub objects: Vec<Value>,
    /// Parts of foreign objects it sets.
    pub parts: Vec<Value>,
    /// Verbs it asks the host to do.
    pub actions: Vec<Value>,
    /// Images it resolves.
    pub images: Vec<Value>,
}

/// What is wrong with a manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Larger than any manifest has reason to be.
    #[error("it is {0} bytes, at most {max} are read", max = limits::MANIFEST)]
    TooLarge(usize),
    /// No JSON, or not of this shape.
    #[error("it is not a manifest")]
    Shape(#[source] serde_json::Error),
    /// A later format, or none.
    #[error("its field \"manifest\" is {0:?}, this host reads \"{FORMAT}\"")]
    Format(String),
    /// A name that cannot be shown or used as a label.
    #[error("its {field} {value:?} is empty, too long or has characters that cannot be shown")]
    Name {
        /// `name` or `version`.
        field: &'static str,
        /// What it says, cleaned.
        value: String,
    },
    /// A path in `appliedFields` is none.
    #[error("its appliedFields cannot be read")]
    Fields(#[source] crate::mask::NotAPath),
}

// === impl Manifest ===

impl Manifest {
    /// Reads what `describe` returned.
    ///
    /// # Errors
    /// When it is too large, no manifest of this format, or has names that cannot be shown.
    pub(crate) fn parse(json: &str) -> Result<Self, ManifestError> {
        if json.len() > limits::MANIFEST {
            return Err(ManifestError::TooLarge(json.len()));
        }
        let mut manifest: Self = serde_json::from_str(json).map_err(ManifestError::Shape)?;
        if manifest.manifest != FORMAT {
            return Err(ManifestError::Format(text::clean(&manifest.manifest, limits::NAME)));
        }
        for (field, value) in [("name", &manifest.name), ("version", &manifest.version)] {
            let cleaned = text::clean(value, limits::NAME);
            if value.is_empty() || cleaned != *value {
                return Err(ManifestError::Name { field, value: cleaned });
            }
        }
        manifest.description = text::clean(&manifest.description, limits::MESSAGE);
        manifest.mask()?;
        Ok(manifest)
    }

    /// The part of targets that the plugin looks at.
    pub(crate) fn mask(&self) -> Result<Mask, ManifestError> {
        let paths = FieldPath::parse_all(&self.applied_fields).map_err(ManifestError::Fields)?;
        Ok(Mask::of(&paths))
    }

    /// What it asks for and no grant gives, as the lines that would give it.
    pub(crate) fn missing(&self, granted: &Granted) -> Vec<String> {
        let reads = self.needs.read.iter().filter(|need| !granted.covers_read(need));
        let logs = self.needs.logs.iter().filter(|need| !granted.covers_logs(need));
        let reads = reads.map(|need| line("read", serde_json::to_value(need)));
        let logs = logs.map(|need| line("logs", serde_json::to_value(need)));
        reads.chain(logs).map(|line| text::clean(&line, limits::MESSAGE)).collect()
    }
}

fn line(list: &str, need: serde_json::Result<Value>) -> String {
    format!("spec.grants.{list}: [{}]", need.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use pintle_api::plugin::Grants;
    use serde_json::json;

    use super::*;

    fn parse(json: &Value) -> Result<Manifest, ManifestError> {
        Manifest::parse(&json.to_string())
    }

    #[test]
    fn what_is_asked_and_not_granted_is_named_as_the_line_that_grants_it() {
        let manifest = parse(&json!({"manifest": FORMAT, "name": "n", "version": "1", "needs": {
            "read": [{"apiGroups": [""], "kinds": ["Pod"], "namespaces": ["$release"], "fields": ["status.phase"]}],
            "logs": [{"namespaces": ["$release"]}]}}))
        .unwrap();
        let missing = |grants: Value| {
            let grants: Grants = serde_json::from_value(grants).unwrap();
            manifest.missing(&Granted::new(&grants).unwrap())
        };
        let none = missing(json!({}));
        assert_eq!(none.len(), 2);
        assert!(
            none.iter().any(|line| line.contains("spec.grants.read: [{") && line.contains("status.phase"))
        );
        let exact = json!({"read": [{"apiGroups": [""], "kinds": ["Pod"], "namespaces": ["$release"],
            "fields": ["status"]}], "logs": [{}]});
        assert_eq!(missing(exact), Vec::<String>::new());
        let elsewhere =
            json!({"read": [{"apiGroups": [""], "kinds": ["Pod"], "namespaces": ["x"]}], "logs": [{}]});
        assert_eq!(missing(elsewhere).len(), 1);
    }

    #[test]
    fn what_is_no_manifest_is_refused() {
        assert!(matches!(Manifest::parse("{"), Err(ManifestError::Shape(_))));
        assert!(matches!(
            Manifest::parse(&" ".repeat(limits::MANIFEST + 1)),
            Err(ManifestError::TooLarge(_))
        ));
        let later = parse(&json!({"manifest": "pintle.dev/manifest/v9", "name": "n", "version": "1"}));
        assert!(matches!(later, Err(ManifestError::Format(_))));
        let escape = parse(&json!({"manifest": FORMAT, "name": "n\u{1b}[2J", "version": "1"}));
        assert!(matches!(escape, Err(ManifestError::Name { field: "name", .. })));
        let path =
            parse(&json!({"manifest": FORMAT, "name": "n", "version": "1", "appliedFields": ["a..b"]}));
        assert!(matches!(path, Err(ManifestError::Fields(_))));
    }
}
