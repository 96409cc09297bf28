//! What a plugin says about itself.

use std::fmt::Write as _;

use crate::config::{Field, schema};

/// Name, version, and what the plugin must be granted. The administrator is shown it; only grants
/// give.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    name: String,
    version: String,
    description: String,
    config_schema: Option<String>,
    args_schema: Option<String>,
    reads: Vec<ReadAccess>,
    logs: Vec<LogAccess>,
    objects: Vec<ObjectAccess>,
    parts: Vec<ObjectAccess>,
    actions: Vec<(Vec<String>, ObjectAccess)>,
    images: Vec<String>,
    reasons: Vec<String>,
    applied_fields: Vec<String>,
}

/// Objects that a plugin reads besides those of its release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadAccess {
    group: String,
    kind: String,
    namespaces: Vec<String>,
    fields: Vec<String>,
}

/// Pods whose logs a plugin reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogAccess {
    namespaces: Vec<String>,
}

/// Kinds that a plugin returns to be made or changed, or to have something done to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectAccess {
    group: String,
    kind: String,
    namespaces: Vec<String>,
    fields: Vec<String>,
}

// === impl Manifest ===

impl Manifest {
    /// A manifest that needs nothing.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }

    /// A sentence for people.
    #[must_use]
    pub fn description(mut self, description: &str) -> Self {
        description.clone_into(&mut self.description);
        self
    }

    /// JSON Schema (2020-12) of `spec.config`, as text. The host refuses text that is no JSON.
    #[must_use]
    pub fn config_schema(mut self, schema: &str) -> Self {
        self.config_schema = Some(schema.to_owned());
        self
    }

    /// JSON Schema (2020-12) of the arguments in annotations, as text.
    #[must_use]
    pub fn args_schema(mut self, schema: &str) -> Self {
        self.args_schema = Some(schema.to_owned());
        self
    }

    /// The config's schema, from its type.
    #[must_use]
    pub fn config<C: Field>(self) -> Self {
        self.config_schema(&schema::<C>())
    }

    /// The schema of the arguments in annotations, from their type.
    #[must_use]
    pub fn args<A: Field>(self) -> Self {
        self.args_schema(&schema::<A>())
    }

    /// Needs to read objects besides those of the release.
    #[must_use]
    pub fn reads(mut self, access: ReadAccess) -> Self {
        self.reads.push(access);
        self
    }

    /// Needs to read logs of pods.
    #[must_use]
    pub fn reads_logs(mut self, access: LogAccess) -> Self {
        self.logs.push(access);
        self
    }

    /// Returns objects of a kind, to be made and kept.
    #[must_use]
    pub fn makes(mut self, access: ObjectAccess) -> Self {
        self.objects.push(access);
        self
    }

    /// Sets fields of objects of others.
    #[must_use]
    pub fn changes(mut self, access: ObjectAccess) -> Self {
        self.parts.push(access);
        self
    }

    /// Asks the host to do something to objects: `evict`, `cordon`, `uncordon`, `delete`, `restart`.
    #[must_use]
    pub fn does<'a>(mut self, verbs: impl IntoIterator<Item = &'a str>, to: ObjectAccess) -> Self {
        self.actions.push((verbs.into_iter().map(str::to_owned).collect(), to));
        self
    }

    /// Looks images up whose references match a pattern; `*` stands for anything.
    #[must_use]
    pub fn resolves(mut self, pattern: &str) -> Self {
        self.images.push(pattern.to_owned());
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

    /// The JSON of `pintle.dev/manifest/v1`. Written out by hand: a serializer would be a third of
    /// the size of a small plugin.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Self { name, version, description, config_schema, args_schema, .. } = self;
        let mut json = String::from("{\"manifest\":\"pintle.dev/manifest/v1\"");
        for (key, text) in [("name", name), ("version", version), ("description", description)] {
            json.push_str(&format!(",\"{key}\":{}", quoted(text)));
        }
        for (key, schema) in [("configSchema", config_schema), ("argsSchema", args_schema)] {
            if let Some(schema) = schema {
                json.push_str(&format!(",\"{key}\":{schema}"));
            }
        }
        let reads = joined(&self.reads, ReadAccess::to_json);
        let logs = joined(&self.logs, LogAccess::to_json);
        let objects = joined(&self.objects, ObjectAccess::to_json);
        let parts = joined(&self.parts, ObjectAccess::to_json);
        let actions = joined(&self.actions, |(verbs, to)| {
            format!("{{\"verbs\":{},{}", list(verbs), to.to_json().trim_start_matches('{'))
        });
        let images = list(&self.images);
        json.push_str(&format!(",\"needs\":{{\"read\":{reads},\"logs\":{logs},\"objects\":{objects}"));
        json.push_str(&format!(",\"parts\":{parts},\"actions\":{actions},\"images\":{images}}}"));
        json.push_str(&format!(",\"reasons\":{}", list(&self.reasons)));
        json.push_str(&format!(",\"appliedFields\":{}}}", list(&self.applied_fields)));
        json
    }
}

// === impl ReadAccess ===

impl ReadAccess {
    /// A kind; the group of the core API is empty.
    #[must_use]
    pub fn to(group: &str, kind: &str) -> Self {
        Self { group: group.to_owned(), kind: kind.to_owned(), ..Self::default() }
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

    fn to_json(&self) -> String {
        let Self { group, kind, namespaces, fields } = self;
        let (group, kind, namespaces, fields) = (quoted(group), quoted(kind), list(namespaces), list(fields));
        format!(
            "{{\"apiGroups\":[{group}],\"kinds\":[{kind}],\"namespaces\":{namespaces},\"fields\":{fields}}}"
        )
    }
}

// === impl LogAccess ===

impl LogAccess {
    /// Pods in the namespace of the release.
    #[must_use]
    pub fn in_release() -> Self {
        Self { namespaces: vec!["$release".to_owned()] }
    }

    fn to_json(&self) -> String {
        format!("{{\"namespaces\":{}}}", list(&self.namespaces))
    }
}

// === impl ObjectAccess ===

impl ObjectAccess {
    /// A kind; the group of the core API is empty.
    #[must_use]
    pub fn to(group: &str, kind: &str) -> Self {
        Self { group: group.to_owned(), kind: kind.to_owned(), ..Self::default() }
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

    fn to_json(&self) -> String {
        let Self { group, kind, namespaces, fields } = self;
        let mut json = format!("{{\"apiGroups\":[{}],\"kinds\":[{}]", quoted(group), quoted(kind));
        for (key, texts) in [("namespaces", namespaces), ("fields", fields)] {
            if !texts.is_empty() {
                json.push_str(&format!(",\"{key}\":{}", list(texts)));
            }
        }
        json + "}"
    }
}

fn list(texts: &[String]) -> String {
    joined(texts, |text| quoted(text))
}

fn joined<T>(items: &[T], to_json: impl Fn(&T) -> String) -> String {
    let items: Vec<String> = items.iter().map(to_json).collect();
    format!("[{}]", items.join(","))
}

/// Text as JSON.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            // Writing to a string does not fail.
            control if control.is_control() => drop(write!(quoted, "\\u{:04x}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_manifest_is_json_whatever_is_in_its_texts() {
        let manifest = Manifest::new("n\"\\\n", "0.1.0")
            .description("ä\u{1}")
            .config_schema(r#"{"type": "object"}"#)
            .reads(ReadAccess::to("apps", "DaemonSet").in_release().fields(&["status"]))
            .reads_logs(LogAccess::in_release())
            .makes(ObjectAccess::to("batch", "Job").in_release())
            .changes(ObjectAccess::to("", "Node").fields(&["metadata.labels.a"]))
            .does(["delete", "evict"], ObjectAccess::to("", "Pod").in_release())
            .resolves("registry.example/*")
            .reasons(["A", "B"])
            .looks_at(["status"]);
        let expected = json!({"manifest": "pintle.dev/manifest/v1", "name": "n\"\\\n", "version": "0.1.0",
            "description": "ä\u{1}", "configSchema": {"type": "object"}, "needs": {
                "read": [{"apiGroups": ["apps"], "kinds": ["DaemonSet"], "namespaces": ["$release"],
                    "fields": ["status"]}],
                "logs": [{"namespaces": ["$release"]}],
                "objects": [{"apiGroups": ["batch"], "kinds": ["Job"], "namespaces": ["$release"]}],
                "parts": [{"apiGroups": [""], "kinds": ["Node"], "fields": ["metadata.labels.a"]}],
                "actions": [{"verbs": ["delete", "evict"], "apiGroups": [""], "kinds": ["Pod"],
                    "namespaces": ["$release"]}],
                "images": ["registry.example/*"]},
            "reasons": ["A", "B"], "appliedFields": ["status"]});
        assert_eq!(serde_json::from_str::<Value>(&manifest.to_json()).unwrap(), expected);
    }
}
