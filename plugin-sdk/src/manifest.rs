//! What a plugin says about itself.

use serde::Serialize;

/// Name, version, and what the plugin must be granted. The administrator is shown it; only grants
/// give.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    manifest: &'static str,
    name: String,
    version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    config_schema: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args_schema: Option<Json>,
    needs: Needs,
    reasons: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    applied_fields: Vec<String>,
}

type Json = serde_json::Value;

#[derive(Clone, Debug, Default, Serialize)]
struct Needs {
    read: Vec<ReadAccess>,
    logs: Vec<LogAccess>,
}

/// Objects that a plugin reads besides those of its release.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadAccess {
    api_groups: Vec<String>,
    kinds: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    namespaces: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<String>,
}

/// Pods whose logs a plugin reads.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LogAccess {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    namespaces: Vec<String>,
}

// === impl Manifest ===

impl Manifest {
    /// A manifest that needs nothing.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            manifest: "pintle.dev/manifest/v1",
            name: name.into(),
            version: version.into(),
            description: String::new(),
            config_schema: None,
            args_schema: None,
            needs: Needs::default(),
            reasons: Vec::new(),
            applied_fields: Vec::new(),
        }
    }

    /// A sentence for people.
    #[must_use]
    pub fn description(mut self, description: &str) -> Self {
        description.clone_into(&mut self.description);
        self
    }

    /// JSON Schema (2020-12) of `spec.config`, as text; text that is no JSON is left out.
    #[must_use]
    pub fn config_schema(mut self, schema: &str) -> Self {
        self.config_schema = serde_json::from_str(schema).ok();
        self
    }

    /// Needs to read objects besides those of the release.
    #[must_use]
    pub fn reads(mut self, access: ReadAccess) -> Self {
        self.needs.read.push(access);
        self
    }

    /// Needs to read logs of pods.
    #[must_use]
    pub fn reads_logs(mut self, access: LogAccess) -> Self {
        self.needs.logs.push(access);
        self
    }

    /// The reasons of its blockers and conditions.
    #[must_use]
    pub fn reasons<'a>(mut self, reasons: impl IntoIterator<Item = &'a str>) -> Self {
        self.reasons = reasons.into_iter().map(str::to_owned).collect();
        self
    }

    /// The fields of a target that it looks at: it is given no others, and called again only when
    /// one of them changes.
    #[must_use]
    pub fn looks_at<'a>(mut self, fields: impl IntoIterator<Item = &'a str>) -> Self {
        self.applied_fields = fields.into_iter().map(str::to_owned).collect();
        self
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

// === impl ReadAccess ===

impl ReadAccess {
    /// A kind; the group of the core API is empty.
    #[must_use]
    pub fn to(group: &str, kind: &str) -> Self {
        Self { api_groups: vec![group.to_owned()], kinds: vec![kind.to_owned()], ..Self::default() }
    }

    /// Only in the namespace of the release.
    #[must_use]
    pub fn in_release(mut self) -> Self {
        self.namespaces = vec!["$release".to_owned()];
        self
    }

    /// Only these fields.
    #[must_use]
    pub fn fields(mut self, fields: &[&str]) -> Self {
        self.fields = fields.iter().copied().map(str::to_owned).collect();
        self
    }
}

// === impl LogAccess ===

impl LogAccess {
    /// Pods in the namespace of the release.
    #[must_use]
    pub fn in_release() -> Self {
        Self { namespaces: vec!["$release".to_owned()] }
    }
}
