//! What a plugin says about itself: the JSON of `describe`.

use pintle_api::plugin::{ActionGrant, Grants, LogGrant, ObjectGrant, PartGrant, ReadGrant};
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
    pub objects: Vec<ObjectGrant>,
    /// Parts of foreign objects it sets.
    pub parts: Vec<PartGrant>,
    /// What it asks the host to do.
    pub actions: Vec<ActionGrant>,
    /// Images it looks up.
    pub images: Vec<String>,
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
        let Needs { read, logs, objects, parts, actions, images } = &self.needs;
        let mut missing = lines("read", read.iter().filter(|need| !granted.covers_read(need)));
        missing.extend(lines("logs", logs.iter().filter(|need| !granted.covers_logs(need))));
        missing.extend(lines("objects", objects.iter().filter(|need| !granted.covers_objects(need))));
        missing.extend(lines("parts", parts.iter().filter(|need| !granted.covers_parts(need))));
        missing.extend(lines("actions", actions.iter().filter(|need| !granted.covers_actions(need))));
        missing.extend(lines("images", images.iter().filter(|need| !granted.covers_image(need))));
        missing
    }

    /// All that it asks for, as the lines that would give it.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.missing(&Granted::default())
    }
}

/// Grants as the lines that an administrator writes.
pub(crate) fn granted_lines(grants: &Grants) -> Vec<String> {
    let Grants { read, logs, objects, parts, actions, images, secret_values } = grants;
    let mut all = lines("read", read.iter());
    all.extend(lines("logs", logs.iter()));
    all.extend(lines("objects", objects.iter()));
    all.extend(lines("parts", parts.iter()));
    all.extend(lines("actions", actions.iter()));
    all.extend(lines("images", images.iter()));
    all.extend(lines("secretValues", secret_values.iter()));
    all
}

fn lines<'a, T: Serialize + 'a>(list: &str, entries: impl Iterator<Item = &'a T>) -> Vec<String> {
    let entries = entries.map(|entry| serde_json::to_value(entry).unwrap_or_default());
    entries.map(|entry| text::clean(&format!("spec.grants.{list}: [{entry}]"), limits::MESSAGE)).collect()
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
    fn writes_and_images_are_asked_for_as_reads_are() {
        let needs = json!({
            "objects": [{"apiGroups": [""], "kinds": ["ConfigMap"], "namespaces": ["$release"]}],
            "parts": [{"apiGroups": [""], "kinds": ["Node"], "fields": ["metadata.labels.a"]}],
            "actions": [{"verbs": ["evict", "delete"], "apiGroups": [""], "kinds": ["Pod"]}],
            "images": ["r.example/vendor/*"]});
        let manifest =
            parse(&json!({"manifest": FORMAT, "name": "n", "version": "1", "needs": needs})).unwrap();
        assert_eq!(manifest.asked().len(), 4);
        let missing = |grants: Value| {
            let grants: Grants = serde_json::from_value(grants).unwrap();
            manifest.missing(&Granted::new(&grants).unwrap())
        };
        assert_eq!(missing(needs.clone()), Vec::<String>::new());
        let mut fewer = needs.clone();
        fewer["actions"][0]["verbs"] = json!(["evict"]);
        assert_eq!(
            missing(fewer),
            [
                "spec.grants.actions: [{\"apiGroups\":[\"\"],\"kinds\":[\"Pod\"],\"verbs\":[\"evict\",\"delete\"]}]"
            ]
        );
        let wider = json!({"objects": [{"apiGroups": [""], "kinds": ["ConfigMap"]}], "parts": [],
            "actions": needs["actions"], "images": ["r.example/**"]});
        let lines = missing(wider);
        assert!(lines.len() == 2 && lines[0].starts_with("spec.grants.parts"), "{lines:?}");
        assert!(lines[1].contains("r.example/vendor/*"), "{lines:?}");
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
