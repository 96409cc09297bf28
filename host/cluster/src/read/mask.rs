//! Which fields of an object the caches keep.

use std::collections::{BTreeMap, BTreeSet};

use pintle_api::{Gvk, Object, names};
use serde_json::{Map, Value, json};

/// What is kept of an object. `apiVersion`, `kind` and `metadata` always are; of the `managedFields` of
/// others only manager and operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mask {
    /// Every field.
    #[default]
    Whole,
    /// Nothing but the metadata; the server sends no more either.
    Metadata,
    /// Which objects there are: of the metadata no more than tells one from another, and whose it is. No read is
    /// answered from it but that there is no such object.
    Names,
    /// The metadata and these fields, as JSON pointers through mappings: `/spec/taints`.
    Fields(BTreeSet<String>),
}

/// A mask for each kind; a kind that is not named is kept whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masks {
    by_kind: BTreeMap<(String, String), Mask>,
}

// === impl Masks ===

impl Masks {
    /// The same masks with one more; the version of the kind does not matter.
    #[must_use]
    pub fn with(mut self, group: &str, kind: &str, mask: Mask) -> Self {
        self.by_kind.insert((group.to_owned(), kind.to_owned()), mask);
        self
    }

    /// Keeps this of a kind as well; true when that is more than was kept.
    pub(super) fn widen(&mut self, group: &str, kind: &str, more: &Mask) -> bool {
        let Some(mask) = self.by_kind.get_mut(&(group.to_owned(), kind.to_owned())) else { return false };
        let is_more = !mask.covers(more);
        if is_more {
            *mask = mask.and(more);
        }
        is_more
    }

    /// The mask of a kind.
    #[must_use]
    pub fn of(&self, gvk: &Gvk) -> Mask {
        self.by_kind.get(&(gvk.group.clone(), gvk.kind.clone())).cloned().unwrap_or_default()
    }
}

// === impl Mask ===

impl Mask {
    /// The metadata and these fields.
    #[must_use]
    pub fn fields<'a>(pointers: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Fields(pointers.into_iter().map(str::to_owned).collect())
    }

    /// True when whoever asks with `other` is served by what this mask keeps.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole, _) | (_, Self::Names) => true,
            (Self::Metadata | Self::Fields(_), Self::Metadata) => true,
            (Self::Fields(own), Self::Fields(asked)) => {
                asked.iter().all(|path| own.iter().any(|kept| is_below(path, kept)))
            }
            (Self::Metadata | Self::Names | Self::Fields(_), _) => false,
        }
    }

    /// What either of both keeps.
    fn and(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Fields(own), Self::Fields(others)) => Self::Fields(own.union(others).cloned().collect()),
            _ if self.covers(other) => self.clone(),
            _ => other.clone(),
        }
    }

    /// The object without what the mask drops.
    #[must_use]
    pub fn apply(&self, mut object: Object) -> Object {
        drop_foreign_fields(&mut object);
        let pointers = match self {
            Self::Whole => return object,
            Self::Names => return named(&object).unwrap_or(object),
            Self::Metadata => &BTreeSet::new(),
            Self::Fields(pointers) => pointers,
        };
        let mut kept = Map::new();
        for field in ["apiVersion", "kind", "metadata"] {
            if let Some(value) = object.json().get(field) {
                kept.insert(field.to_owned(), value.clone());
            }
        }
        for pointer in pointers {
            if let Some(value) = object.at(pointer) {
                insert_at(&mut kept, pointer, value);
            }
        }
        Object::new(Value::Object(kept)).unwrap_or(object)
    }
}

/// `apiVersion` and `kind`, which object it is and whose.
fn named(object: &Object) -> Option<Object> {
    let kept = |from: &Map<String, Value>, fields: &[&str]| -> Map<String, Value> {
        let fields = fields.iter().filter_map(|field| Some(((*field).to_owned(), from.get(*field)?.clone())));
        fields.collect()
    };
    let metadata = object.json().get("metadata")?.as_object()?;
    let mut metadata = kept(metadata, &["name", "namespace", "uid", "resourceVersion"]);
    if let Some(owner) = object.label(names::OWNER) {
        metadata.insert("labels".to_owned(), json!({names::OWNER: owner}));
    }
    let mut named = kept(object.json(), &["apiVersion", "kind"]);
    named.insert("metadata".to_owned(), Value::Object(metadata));
    Object::new(Value::Object(named)).ok()
}

fn is_below(path: &str, kept: &str) -> bool {
    path.strip_prefix(kept).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn insert_at(into: &mut Map<String, Value>, pointer: &str, value: &Value) {
    let mut steps: Vec<String> =
        pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    let Some(last) = steps.pop() else { return };
    let mut map = into;
    for step in steps {
        let slot = map.entry(step).or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(next) = slot else { return };
        map = next;
    }
    map.insert(last, value.clone());
}

/// The field lists of managers are half of what an object weighs: they are kept as texts, those of others not at all. They are read only of objects that
/// we apply, and only for fields that we could have lost to them: those of a status never are.
fn drop_foreign_fields(object: &mut Object) {
    let metadata = object.map_mut(&["metadata"]);
    let Some(Value::Array(entries)) = metadata.get_mut("managedFields") else { return };
    let text = |entry: &Map<String, Value>, field: &str| {
        entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let is_applied = entries.iter().filter_map(Value::as_object).any(|entry| {
        text(entry, "manager") == names::MANAGER
            && text(entry, "operation") == "Apply"
            && text(entry, "subresource").is_empty()
    });
    for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
        let is_kept = is_ours(&text(entry, "manager"))
            || (is_applied && matches!(text(entry, "subresource").as_str(), "" | "scale"));
        if !is_kept {
            entry.remove("fieldsV1");
            entry.remove("fieldsType");
        } else if let Some(fields @ Value::Object(_)) = entry.get_mut("fieldsV1") {
            *fields = Value::String(fields.to_string());
        }
    }
}

/// True for `pintle` and `pintle-<owner uid>`.
pub(crate) fn is_ours(manager: &str) -> bool {
    manager.strip_prefix(names::MANAGER).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    fn node() -> Object {
        Object::new(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "n", "managedFields": [
                {"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {}}},
                {"manager": "pintle-1", "operation": "Apply", "fieldsV1": {"f:metadata": {}}}
            ]},
            "spec": {"taints": [], "podCIDR": "10.0.0.0/24"},
            "status": {"nodeInfo": {"kernelVersion": "5"}, "conditions": []}
        }))
        .unwrap()
    }

    #[test]
    fn a_mask_keeps_what_it_names_and_the_metadata() {
        let kept = Mask::fields(["/spec/taints", "/status/nodeInfo", "/status/absent"]).apply(node());
        assert_eq!(kept.str_at("/status/nodeInfo/kernelVersion"), Some("5"));
        assert!(kept.at("/spec/taints").is_some());
        assert!(kept.at("/spec/podCIDR").is_none() && kept.at("/status/conditions").is_none());
        assert!(Mask::Metadata.apply(node()).at("/status").is_none());
        let named = Mask::Names.apply(node());
        assert_eq!(named.to_value(), json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}));
    }

    #[test]
    fn only_our_own_managed_fields_stay_with_their_fields() {
        let kept = Mask::Whole.apply(node());
        assert!(kept.at("/metadata/managedFields/0/fieldsV1").is_none());
        assert_eq!(kept.str_at("/metadata/managedFields/0/manager"), Some("kubelet"));
        assert!(kept.at("/metadata/managedFields/1/fieldsV1").is_some());
        assert!(is_ours("pintle-1") && !is_ours("pintlepirate"));
    }

    #[test]
    fn of_an_object_we_apply_it_is_known_who_holds_what_but_the_status() {
        let mut applied = node();
        applied.map_mut(&["metadata"]).insert(
            "managedFields".to_owned(),
            json!([
                {"manager": "pintle", "operation": "Apply", "fieldsV1": {"f:data": {}}},
                {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {}}},
                {"manager": "autoscaler", "operation": "Update", "subresource": "scale", "fieldsV1": {"f:spec": {}}},
                {"manager": "kubelet", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}}
            ]),
        );
        let kept = Mask::Whole.apply(applied);
        for (at, is_there) in [(0, true), (1, true), (2, true), (3, false)] {
            assert_eq!(
                kept.at(&format!("/metadata/managedFields/{at}/fieldsV1")).is_some(),
                is_there,
                "{at}"
            );
        }
    }

    #[test]
    fn who_holds_what_is_kept_as_a_text_that_says_the_same() {
        let kept = Mask::Whole.apply(node());
        let entry = kept.at("/metadata/managedFields/1").unwrap();
        assert_eq!(entry["fieldsV1"], json!(r#"{"f:metadata":{}}"#));
        assert_eq!(*pintle_api::held_fields(entry).unwrap(), json!({"f:metadata": {}}));
        assert_eq!(Mask::Whole.apply(kept.clone()), kept);
    }

    #[test]
    fn a_mask_is_widened_by_what_it_does_not_keep_and_a_kind_kept_whole_is_not() {
        let (node, pod) = (Gvk::new("v1", "Node"), Gvk::new("v1", "Pod"));
        let mut masks = Masks::default().with("", "Node", Mask::fields(["/spec/taints", "/status"]));
        assert!(!masks.widen("", "Node", &Mask::fields(["/status/conditions"])));
        assert!(!masks.widen("", "Pod", &Mask::Whole) && masks.of(&pod) == Mask::Whole);
        assert!(masks.widen("", "Node", &Mask::fields(["/spec/podCIDR"])));
        assert_eq!(masks.of(&node), Mask::fields(["/spec/podCIDR", "/spec/taints", "/status"]));
        assert!(masks.widen("", "Node", &Mask::Whole) && masks.of(&node) == Mask::Whole);
    }

    #[test]
    fn a_wider_mask_covers_a_narrower_one() {
        let status = Mask::fields(["/status"]);
        assert!(status.covers(&Mask::fields(["/status/phase"])) && status.covers(&Mask::Metadata));
        assert!(!status.covers(&Mask::fields(["/statusx"])) && !status.covers(&Mask::Whole));
        assert!(Mask::Metadata.covers(&Mask::Names) && !Mask::Names.covers(&Mask::Metadata));
    }
}
