//! What a plugin says about itself.

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
    reads: Vec<Access>,
    logs: Vec<Access>,
    objects: Vec<Access>,
    parts: Vec<Access>,
    actions: Vec<Access>,
    images: Vec<String>,
    reasons: Vec<String>,
    applied_fields: Vec<String>,
}

/// Objects that a plugin reads besides those of its release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadAccess(Access);

/// Pods whose logs a plugin reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogAccess(Access);

/// Kinds that a plugin returns to be made or changed, or to have something done to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectAccess(Access);

/// One thing that a plugin needs, as the manifest has it. A list that is empty is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Access {
    verbs: Vec<String>,
    groups: Vec<String>,
    kinds: Vec<String>,
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
        self.reads.push(access.0);
        self
    }

    /// Needs to read logs of pods.
    #[must_use]
    pub fn reads_logs(mut self, access: LogAccess) -> Self {
        self.logs.push(access.0);
        self
    }

    /// Returns objects of a kind, to be made and kept.
    #[must_use]
    pub fn makes(mut self, access: ObjectAccess) -> Self {
        self.objects.push(access.0);
        self
    }

    /// Sets fields of objects of others.
    #[must_use]
    pub fn changes(mut self, access: ObjectAccess) -> Self {
        self.parts.push(access.0);
        self
    }

    /// Asks the host to do something to objects: `evict`, `cordon`, `uncordon`, `delete`, `restart`.
    #[must_use]
    pub fn does<'a>(mut self, verbs: impl IntoIterator<Item = &'a str>, to: ObjectAccess) -> Self {
        self.actions.push(Access { verbs: verbs.into_iter().map(str::to_owned).collect(), ..to.0 });
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
    #[inline(never)]
    pub fn to_json(&self) -> String {
        let Self { name, version, description, config_schema, args_schema, .. } = self;
        let mut json = String::from("{\"manifest\":\"pintle.dev/manifest/v1\"");
        for (key, text) in [("name", name), ("version", version), ("description", description)] {
            put(&mut json, &[",\"", key, "\":"]);
            put_quoted(&mut json, text);
        }
        for (key, schema) in [("configSchema", config_schema), ("argsSchema", args_schema)] {
            if let Some(schema) = schema {
                put(&mut json, &[",\"", key, "\":", schema]);
            }
        }
        for (key, accesses) in [
            (",\"needs\":{\"read\":[", &self.reads),
            ("],\"logs\":[", &self.logs),
            ("],\"objects\":[", &self.objects),
            ("],\"parts\":[", &self.parts),
            ("],\"actions\":[", &self.actions),
        ] {
            put(&mut json, &[key]);
            put_accesses(&mut json, accesses);
        }
        for (key, texts) in [
            ("],\"images\":[", &self.images),
            ("]},\"reasons\":[", &self.reasons),
            ("],\"appliedFields\":[", &self.applied_fields),
        ] {
            put(&mut json, &[key]);
            put_list(&mut json, texts);
        }
        put(&mut json, &["]}"]);
        json
    }
}

// === impl Access ===

impl Access {
    fn to(group: &str, kind: &str) -> Self {
        Self { groups: vec![group.to_owned()], kinds: vec![kind.to_owned()], ..Self::default() }
    }

    fn in_release(mut self) -> Self {
        self.namespaces = vec!["$release".to_owned()];
        self
    }

    fn fields(mut self, fields: &[&str]) -> Self {
        self.fields = fields.iter().copied().map(str::to_owned).collect();
        self
    }
}

impl ReadAccess {
    /// A kind; the group of the core API is empty.
    #[must_use]
    pub fn to(group: &str, kind: &str) -> Self {
        Self(Access::to(group, kind))
    }

    /// Only in the namespace of the release.
    #[must_use]
    pub fn in_release(self) -> Self {
        Self(self.0.in_release())
    }

    /// Only these fields.
    #[must_use]
    pub fn fields(self, fields: &[&str]) -> Self {
        Self(self.0.fields(fields))
    }
}

impl LogAccess {
    /// Pods in the namespace of the release.
    #[must_use]
    pub fn in_release() -> Self {
        Self(Access::default().in_release())
    }
}

impl ObjectAccess {
    /// A kind; the group of the core API is empty.
    #[must_use]
    pub fn to(group: &str, kind: &str) -> Self {
        Self(Access::to(group, kind))
    }

    /// Only in the namespace of the release.
    #[must_use]
    pub fn in_release(self) -> Self {
        Self(self.0.in_release())
    }

    /// Only these fields.
    #[must_use]
    pub fn fields(self, fields: &[&str]) -> Self {
        Self(self.0.fields(fields))
    }
}

fn put_accesses(json: &mut String, accesses: &[Access]) {
    for (at, Access { verbs, groups, kinds, namespaces, fields }) in accesses.iter().enumerate() {
        let mut before = if at == 0 { "{\"" } else { ",{\"" };
        for (key, texts) in [
            ("verbs", verbs),
            ("apiGroups", groups),
            ("kinds", kinds),
            ("namespaces", namespaces),
            ("fields", fields),
        ] {
            if !texts.is_empty() {
                put(json, &[before, key, "\":["]);
                put_list(json, texts);
                before = "],\"";
            }
        }
        put(json, &["]}"]);
    }
}

fn put_list(json: &mut String, texts: &[String]) {
    for (at, text) in texts.iter().enumerate() {
        put(json, &[if at == 0 { "" } else { "," }]);
        put_quoted(json, text);
    }
}

/// Appends texts. One call of it is a tenth of what `format!` is in a component.
#[inline(never)]
pub(crate) fn put(json: &mut String, texts: &[&str]) {
    for text in texts {
        json.push_str(text);
    }
}

/// Appends a text as JSON.
#[inline(never)]
pub(crate) fn put_quoted(json: &mut String, text: &str) {
    const HEX: [&str; 16] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f"];
    put(json, &["\""]);
    for letter in text.chars() {
        match letter {
            '"' => put(json, &["\\\""]),
            '\\' => put(json, &["\\\\"]),
            '\0'..='\x1f' => put(json, &["\\u00", HEX[letter as usize >> 4], HEX[letter as usize & 15]]),
            other => put_letter(json, other),
        }
    }
    put(json, &["\""]);
}

/// Appends a letter.
#[inline(never)]
pub(crate) fn put_letter(json: &mut String, letter: char) {
    json.push(letter);
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
