//! Any Kubernetes object as JSON, and the ways to name one.

use std::{borrow::Cow, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// A kind with its group and version; the group of the core API is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Gvk {
    /// API group, empty for the core API.
    pub group: String,
    /// Version inside the group.
    pub version: String,
    /// Kind in the singular, as manifests write it.
    pub kind: String,
}

/// The name of one object: kind with version, namespace when it has one, name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// `apps/v1`, or `v1` for the core API.
    pub api_version: String,
    /// Kind in the singular.
    pub kind: String,
    /// Absent for objects of cluster scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `metadata.name`.
    pub name: String,
}

/// The fields that an entry of `managedFields` holds. Caches keep the tree as a text, which is a tenth of its weight.
#[must_use]
pub fn held_fields(entry: &Value) -> Option<Cow<'_, Value>> {
    match entry.get("fieldsV1")? {
        Value::String(text) => serde_json::from_str(text).ok().map(Cow::Owned),
        tree => Some(Cow::Borrowed(tree)),
    }
}

/// A Kubernetes object as JSON that is known to have an `apiVersion`, a `kind` and a `metadata`.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    json: Map<String, Value>,
}

/// What makes a document unfit to be a Kubernetes object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnObject {
    /// The document is a list, a string, a number.
    #[error("the document is not a mapping")]
    NotAMapping,
    /// A field that each object needs is absent, empty or not a string.
    #[error("{0} is missing")]
    Missing(&'static str),
}

// === impl Gvk ===

impl Gvk {
    /// Splits `apps/v1` and a kind; what has no slash is of the core API.
    #[must_use]
    pub fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    /// `apps/v1`, or `v1` for the core API.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            write!(f, "{} ({})", self.kind, self.version)
        } else {
            write!(f, "{} ({}/{})", self.kind, self.group, self.version)
        }
    }
}

// === impl ObjectRef ===

impl ObjectRef {
    /// A reference to an object of cluster scope; see [`ObjectRef::within`].
    #[must_use]
    pub fn new(api_version: &str, kind: &str, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: name.to_owned(),
        }
    }

    /// The same reference inside a namespace.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Kind with group and version.
    #[must_use]
    pub fn gvk(&self) -> Gvk {
        Gvk::new(&self.api_version, &self.kind)
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

// === impl Object ===

impl Object {
    /// Checks that the JSON can be a Kubernetes object; a missing `metadata` is made.
    ///
    /// # Errors
    /// When it is no mapping, or has no `apiVersion` or `kind`.
    pub fn new(json: Value) -> Result<Self, NotAnObject> {
        let Value::Object(mut json) = json else { return Err(NotAnObject::NotAMapping) };
        for field in ["apiVersion", "kind"] {
            if json.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
                return Err(NotAnObject::Missing(field));
            }
        }
        if !json.get("metadata").is_some_and(Value::is_object) {
            json.insert("metadata".to_owned(), Value::Object(Map::new()));
        }
        Ok(Self { json })
    }

    /// An object that has nothing but its name.
    #[must_use]
    pub fn default_of(api_version: &str, kind: &str, name: &str) -> Self {
        let text = |text: &str| Value::from(text);
        let metadata = Map::from_iter([("name".to_owned(), text(name))]);
        let json = Map::from_iter([
            ("apiVersion".to_owned(), text(api_version)),
            ("kind".to_owned(), text(kind)),
            ("metadata".to_owned(), Value::Object(metadata)),
        ]);
        Self { json }
    }

    /// The whole object.
    #[must_use]
    pub fn json(&self) -> &Map<String, Value> {
        &self.json
    }

    /// The whole object as a JSON value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::Object(self.json.clone())
    }

    /// The whole object as a JSON value, without a copy.
    #[must_use]
    pub fn into_value(self) -> Value {
        Value::Object(self.json)
    }

    /// `apps/v1`, or `v1` for the core API.
    #[must_use]
    pub fn api_version(&self) -> &str {
        self.json.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
    }

    /// Kind in the singular.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.json.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    /// Kind with group and version.
    #[must_use]
    pub fn gvk(&self) -> Gvk {
        Gvk::new(self.api_version(), self.kind())
    }

    /// `metadata.name`, empty when the server shall make one.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata_str("name").unwrap_or_default()
    }

    /// `metadata.namespace`, absent for cluster scope and before a default is set.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.metadata_str("namespace").filter(|namespace| !namespace.is_empty())
    }

    /// `metadata.uid`, absent for what is only rendered.
    #[must_use]
    pub fn uid(&self) -> Option<&str> {
        self.metadata_str("uid")
    }

    /// `metadata.resourceVersion`, absent for what is only rendered.
    #[must_use]
    pub fn resource_version(&self) -> Option<&str> {
        self.metadata_str("resourceVersion")
    }

    /// `metadata.generation`, 0 where the kind has none.
    #[must_use]
    pub fn generation(&self) -> i64 {
        self.at("/metadata/generation").and_then(Value::as_i64).unwrap_or_default()
    }

    /// True once a deletion was asked for and finalizers still hold it.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.metadata_str("deletionTimestamp").is_some()
    }

    /// The name of this object for reads, messages and inventories.
    #[must_use]
    pub fn reference(&self) -> ObjectRef {
        ObjectRef {
            api_version: self.api_version().to_owned(),
            kind: self.kind().to_owned(),
            namespace: self.namespace().map(str::to_owned),
            name: self.name().to_owned(),
        }
    }

    /// One label's value.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.entry("labels", key)
    }

    /// One annotation's value.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.entry("annotations", key)
    }

    /// Sets a label.
    pub fn set_label(&mut self, key: &str, value: &str) {
        self.set_entry("labels", key, value);
    }

    /// Sets an annotation.
    pub fn set_annotation(&mut self, key: &str, value: &str) {
        self.set_entry("annotations", key, value);
    }

    /// The value at a JSON pointer.
    #[must_use]
    pub fn at(&self, pointer: &str) -> Option<&Value> {
        let mut steps = pointer.strip_prefix('/')?.split('/').map(unescape);
        let first = self.json.get(steps.next()?.as_str())?;
        steps.try_fold(first, |value, step| match value {
            Value::Object(map) => map.get(step.as_str()),
            Value::Array(list) => list.get(step.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// The text at a JSON pointer.
    #[must_use]
    pub fn str_at(&self, pointer: &str) -> Option<&str> {
        self.at(pointer).and_then(Value::as_str)
    }

    /// The mapping at a path of keys, made where it is missing; anything else in the way is replaced.
    pub fn map_mut(&mut self, path: &[&str]) -> &mut Map<String, Value> {
        path.iter().fold(&mut self.json, |map, key| {
            let slot = map.entry((*key).to_owned()).or_insert(Value::Null);
            if !slot.is_object() {
                *slot = Value::Object(Map::new());
            }
            match slot {
                Value::Object(map) => map,
                _ => unreachable!("the slot was just made a mapping"),
            }
        })
    }

    /// Sets one top-level field, such as `status`.
    pub fn set(&mut self, field: &str, value: Value) {
        self.json.insert(field.to_owned(), value);
    }

    /// Removes one top-level field.
    pub fn remove(&mut self, field: &str) {
        self.json.remove(field);
    }

    fn metadata_str(&self, field: &str) -> Option<&str> {
        self.json.get("metadata")?.get(field)?.as_str()
    }

    fn entry(&self, map: &str, key: &str) -> Option<&str> {
        self.json.get("metadata")?.get(map)?.get(key)?.as_str()
    }

    fn set_entry(&mut self, map: &str, key: &str, value: &str) {
        self.map_mut(&["metadata", map]).insert(key.to_owned(), Value::from(value));
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_without_kind_is_refused_by_name() {
        let refused = Object::new(json!({"apiVersion": "v1"}));
        assert_eq!(refused, Err(NotAnObject::Missing("kind")));
        assert_eq!(Object::new(json!([])), Err(NotAnObject::NotAMapping));
    }

    #[test]
    fn pointers_reach_keys_with_slashes_and_list_elements() {
        let object = Object::new(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "labels": {"pintle.dev/owner": "u"}},
            "spec": {"containers": [{"name": "x"}]}
        }))
        .unwrap();
        assert_eq!(object.str_at("/metadata/labels/pintle.dev~1owner"), Some("u"));
        assert_eq!(object.str_at("/spec/containers/0/name"), Some("x"));
        assert_eq!(object.str_at("/spec/containers/7/name"), None);
        assert_eq!(object.label("pintle.dev/owner"), Some("u"));
    }

    #[test]
    fn a_path_through_a_scalar_is_made_a_mapping() {
        let mut object =
            Object::new(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": 3}})).unwrap();
        object.set_label("a", "b");
        assert_eq!(object.label("a"), Some("b"));
    }

    #[test]
    fn references_print_as_people_say_them() {
        let pod = ObjectRef::new("v1", "Pod", "p").within("ns");
        assert_eq!(pod.to_string(), "Pod ns/p");
        assert_eq!(Gvk::new("apps/v1", "DaemonSet").to_string(), "DaemonSet (apps/v1)");
    }
}
