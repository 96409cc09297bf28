//! Go's values on [`minijinja::Value`]: what a Go template sees of data.
//!
//! | Go | here |
//! |---|---|
//! | nil interface | `None` ([`nil`]) |
//! | no value at all | `Undefined` ([`invalid`]) |
//! | `bool`, `float64`, `string` | native |
//! | `int`, `int64`, `uint64` | native `i64`, `i128`, `u64`: see [`mod@number`] |
//! | `string` that is not UTF-8 | native bytes |
//! | `[]byte` | [`ByteSlice`] |
//! | `map[string]T`, `[]T` | [`Map`], [`List`] |
//! | structs, and anything with methods | [`object::GoObject`] |
//!
//! Native maps and sequences of minijinja never enter: they are not shared by
//! reference, and `set $d` must be seen through every name of `$d`.

pub mod cycle;
pub mod float;
mod natural;
pub mod number;
pub mod object;
pub mod print;
pub mod types;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub use minijinja::Value;
use minijinja::value::{DynObject, Enumerator, Object, ObjectExt, ObjectRepr, ValueKind};

pub use natural::natural;
pub use number::{Number, int, int64, number};
pub use object::{GoObject, as_object, object_value};
pub use print::{print, print_value};
pub use types::{kind_of, type_of};

/// The entries of a [`Map`], in the order Go ranges over them: by byte.
pub type Entries = BTreeMap<Arc<str>, Value>;

/// The Go type of a map, as far as templates can tell maps apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapType {
    /// `map[string]interface {}`
    #[default]
    Any,
    /// `common.Values`, the type of `.Values` and of the root.
    Values,
    /// `map[string]string`: a missing key is `""`, not nil.
    Strings,
}

/// The Go type of a list, as far as templates can tell lists apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// `[]interface {}`
    #[default]
    Any,
    /// A nil `[]interface {}`: without items, and `null` in JSON and YAML.
    Nil,
    /// `[]string`
    Strings,
    /// `[]int`
    Ints,
    /// `[][]interface {}`
    Lists,
}

/// A Go map: every clone of its [`Value`] is the same map, and mutation through one is seen by all.
#[derive(Debug, Default)]
pub struct Map {
    entries: RwLock<Body>,
    /// The map whose entries these are, where this is another type's name for it.
    seen: Option<Arc<Map>>,
    ty: MapType,
    /// A nil map of Go: empty, and `null` in JSON and YAML.
    is_null: bool,
}

/// The entries of a map: its own, or those of a frozen tree until somebody wants a map of it.
#[derive(Debug, Default)]
pub struct Body {
    /// Empty as long as the map is frozen.
    own: Entries,
    frozen: Option<Frozen>,
}

/// Entries that maps of many renders share, with all that is in them. Templates never see the maps and lists in
/// it: each map that is made of it gets its own when one of them is asked for, one level at a time.
pub type Frozen = Arc<Entries>;

/// A Go slice. Its items do not change; what is in them may.
#[derive(Debug, Default)]
pub struct List {
    items: Vec<Value>,
    ty: ListType,
}

/// A Go `[]byte`.
#[derive(Clone, Debug)]
pub struct ByteSlice(pub Arc<[u8]>);

/// Go's nil interface.
pub fn nil() -> Value {
    Value::from(())
}

/// Go's invalid value: there is nothing, not even a nil.
pub fn invalid() -> Value {
    Value::UNDEFINED
}

/// Whether the value is nil or absent: what functions mean by nil.
pub fn is_nil(value: &Value) -> bool {
    value.is_none() || value.is_undefined()
}

/// A new `map[string]interface {}`.
pub fn map_value(entries: Entries) -> Value {
    Value::from_object(Map::new(entries, MapType::Any))
}

/// A nil map of the given type: an empty one that is `null` in JSON and YAML.
pub fn nil_map(ty: MapType) -> Value {
    Value::from_object(Map { entries: RwLock::default(), seen: None, ty, is_null: true })
}

/// A new `map[string]interface {}` with the entries of a frozen tree.
pub fn frozen_map(entries: Frozen) -> Value {
    let body = Body { own: Entries::new(), frozen: Some(entries) };
    let entries = RwLock::new(body);
    Value::from_object(Map { entries, seen: None, ty: MapType::Any, is_null: false })
}

/// A value of a frozen tree as one that may change: its maps and lists are new ones.
pub fn thawed(value: &Value) -> Value {
    if let Some(entries) = as_map(value).and_then(Map::frozen) {
        return frozen_map(entries);
    }
    match as_list(value) {
        Some(list) if list.items.iter().any(is_container) => {
            typed_list(list.items.iter().map(thawed).collect(), list.ty)
        }
        _ => value.clone(),
    }
}

/// A new map of the given type.
pub fn typed_map(entries: Entries, ty: MapType) -> Value {
    Value::from_object(Map::new(entries, ty))
}

/// The same map under another Go type, as a conversion gives it: what is set through one is seen through
/// both. Nothing for what is no map.
pub fn retyped(value: &Value, ty: MapType) -> Option<Value> {
    let map = value.downcast_object::<Map>()?;
    if map.ty == ty {
        return Some(value.clone());
    }
    let whole = map.seen.clone().unwrap_or(map);
    Some(Value::from_object(Map { entries: RwLock::default(), seen: Some(whole), ty, is_null: false }))
}

/// A new `[]interface {}`.
pub fn list_value(items: Vec<Value>) -> Value {
    Value::from_object(List::new(items, ListType::Any))
}

/// A new list of the given type.
pub fn typed_list(items: Vec<Value>, ty: ListType) -> Value {
    Value::from_object(List::new(items, ty))
}

/// A new `[]string`.
pub fn string_list<S: Into<Value>>(items: impl IntoIterator<Item = S>) -> Value {
    typed_list(items.into_iter().map(Into::into).collect(), ListType::Strings)
}

/// A new `[]byte`.
pub fn bytes_value(bytes: impl Into<Arc<[u8]>>) -> Value {
    Value::from_object(ByteSlice(bytes.into()))
}

/// A Go string of any bytes: native text where they are UTF-8.
pub fn string_value(bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(err) => Value::from_bytes(err.into_bytes()),
    }
}

/// The map in a value.
pub fn as_map(value: &Value) -> Option<&Map> {
    value.downcast_object_ref()
}

/// The list in a value, of whatever element type.
pub fn as_list(value: &Value) -> Option<&List> {
    value.downcast_object_ref()
}

/// The `[]byte` in a value.
pub fn as_byte_slice(value: &Value) -> Option<&[u8]> {
    value.downcast_object_ref::<ByteSlice>().map(|b| &*b.0)
}

/// The bytes of a Go string; `None` for everything else, `[]byte` included.
pub fn as_string(value: &Value) -> Option<&[u8]> {
    value.as_bytes()
}

/// Whether the value is a Go string.
pub fn is_string(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::String | ValueKind::Bytes)
}

/// The text of a Go string, with U+FFFD for what is not UTF-8; `None` for everything else.
pub fn as_text(value: &Value) -> Option<Cow<'_, str>> {
    match value.as_str() {
        Some(text) => Some(Cow::Borrowed(text)),
        None => value.as_bytes().map(String::from_utf8_lossy),
    }
}

/// Go's truth of a value: false, 0, nil and what has no items are false; structs are true.
pub fn is_true(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None | ValueKind::Invalid => false,
        ValueKind::Bool => value.is_true(),
        ValueKind::Number => number(value).is_some_and(|n| !n.is_zero()),
        ValueKind::String | ValueKind::Bytes => value.as_bytes().is_some_and(|b| !b.is_empty()),
        _ => has_items(value),
    }
}

/// Sprig's emptiness, which `default`, `coalesce` and `empty` use: the opposite of [`is_true`].
pub fn is_empty(value: &Value) -> bool {
    !is_true(value)
}

fn has_items(value: &Value) -> bool {
    if let Some(map) = as_map(value) {
        !map.is_empty()
    } else if let Some(list) = as_list(value) {
        !list.items().is_empty()
    } else if let Some(bytes) = as_byte_slice(value) {
        !bytes.is_empty()
    } else if let Some(object) = as_object(value) {
        object.is_true()
    } else {
        value.is_true()
    }
}

// === impl Map ===

impl Map {
    /// A map with these entries.
    pub fn new(entries: Entries, ty: MapType) -> Self {
        let body = Body { own: entries, frozen: None };
        Self { entries: RwLock::new(body), seen: None, ty, is_null: false }
    }

    /// Whether it is `null` in JSON and YAML: a nil map into which nothing was put.
    pub(crate) fn is_null(&self) -> bool {
        self.is_null && self.is_empty()
    }

    /// The Go type of the map.
    pub fn ty(&self) -> MapType {
        self.ty
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Value> {
        let body = self.peek();
        let value = body.known().get(key)?;
        if body.frozen.is_none() || !is_container(value) {
            return Some(value.clone());
        }
        drop(body);
        self.read().get(key).cloned()
    }

    /// The value of a key, or what Go gives for a missing one: nil, or `""` in a `map[string]string`.
    pub fn get_or_zero(&self, key: &str) -> Value {
        self.get(key).unwrap_or_else(|| self.zero())
    }

    /// The zero value of the element type.
    pub fn zero(&self) -> Value {
        match self.ty {
            MapType::Strings => Value::from(""),
            MapType::Any | MapType::Values => nil(),
        }
    }

    /// Sets a key and returns what was there.
    pub fn insert(&self, key: impl Into<Arc<str>>, value: Value) -> Option<Value> {
        self.write().insert(key.into(), value)
    }

    /// Removes a key and returns what was there.
    pub fn remove(&self, key: &str) -> Option<Value> {
        self.write().remove(key)
    }

    /// Whether the key is there, be its value nil.
    pub fn contains_key(&self, key: &str) -> bool {
        self.peek().known().contains_key(key)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.peek().known().len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.peek().known().is_empty()
    }

    /// The keys in order.
    pub fn keys(&self) -> Vec<Arc<str>> {
        self.peek().known().keys().cloned().collect()
    }

    /// A copy of the entries as they are now (values stay shared): take it before running anything
    /// that may change the map.
    pub fn snapshot(&self) -> Vec<(Arc<str>, Value)> {
        self.read().iter().map(|(k, v)| (Arc::clone(k), v.clone())).collect()
    }

    /// As [`Map::snapshot`] for who only reads: maps and lists in it may be those of a frozen tree, and must not
    /// reach a template.
    pub fn glance(&self) -> Vec<(Arc<str>, Value)> {
        self.peek().known().iter().map(|(k, v)| (Arc::clone(k), v.clone())).collect()
    }

    /// The entries of a frozen tree, as long as the map has no own.
    pub fn frozen(&self) -> Option<Frozen> {
        self.peek().frozen.clone()
    }

    /// The entries for reading; hold it shortly and call nothing that could write the map.
    pub fn read(&self) -> RwLockReadGuard<'_, Body> {
        if self.peek().frozen.is_some() {
            drop(self.write());
        }
        self.peek()
    }

    /// The entries for writing; hold it shortly and call nothing that could read the map.
    pub fn write(&self) -> RwLockWriteGuard<'_, Body> {
        let mut body = self.whole().entries.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(frozen) = body.frozen.take() {
            body.own = frozen.iter().map(|(key, value)| (Arc::clone(key), thawed(value))).collect();
        }
        body
    }

    fn peek(&self) -> RwLockReadGuard<'_, Body> {
        self.whole().entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The map that has the entries.
    fn whole(&self) -> &Self {
        self.seen.as_deref().unwrap_or(self)
    }
}

impl Body {
    /// All entries, be they frozen.
    fn known(&self) -> &Entries {
        self.frozen.as_deref().unwrap_or(&self.own)
    }
}

impl Deref for Body {
    type Target = Entries;

    fn deref(&self) -> &Entries {
        &self.own
    }
}

impl DerefMut for Body {
    fn deref_mut(&mut self) -> &mut Entries {
        &mut self.own
    }
}

impl<K: Into<Arc<str>>> FromIterator<(K, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(entries: I) -> Self {
        Self::new(entries.into_iter().map(|(k, v)| (k.into(), v)).collect(), MapType::Any)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::from_object(map)
    }
}

impl Object for Map {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.get(key)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.keys().into_iter().map(Value::from).collect())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.len())
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        let body = self.entries.get_mut().unwrap_or_else(PoisonError::into_inner);
        if body.own.values().any(is_container) {
            unravel(std::mem::take(&mut body.own).into_values().collect());
        }
    }
}

// === impl List ===

impl List {
    /// A list of these items.
    pub fn new(items: Vec<Value>, ty: ListType) -> Self {
        Self { items, ty }
    }

    /// The Go type of the list.
    pub fn ty(&self) -> ListType {
        self.ty
    }

    /// The items.
    pub fn items(&self) -> &[Value] {
        &self.items
    }
}

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.items.get(key.as_usize()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.items.len())
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if self.items.iter().any(is_container) {
            unravel(std::mem::take(&mut self.items));
        }
    }
}

fn is_container(value: &Value) -> bool {
    as_map(value).is_some() || as_list(value).is_some()
}

/// Drops values with a worklist instead of the stack: a template can nest a million maps.
fn unravel(mut pending: Vec<Value>) {
    while let Some(value) = pending.pop() {
        if let Some(map) = value.downcast_object::<Map>() {
            drop(value);
            if let Some(mut map) = Arc::into_inner(map) {
                let body = map.entries.get_mut().unwrap_or_else(PoisonError::into_inner);
                pending.extend(std::mem::take(&mut body.own).into_values());
            }
        } else if let Some(list) = value.downcast_object::<List>() {
            drop(value);
            if let Some(mut list) = Arc::into_inner(list) {
                pending.append(&mut list.items);
            }
        }
    }
}

// === impl ByteSlice ===

impl Object for ByteSlice {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get(key.as_usize()?).map(|b| number::byte(*b))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.mapped_enumerator(|this| Box::new(this.0.iter().map(|b| number::byte(*b))))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.0.len())
    }
}

/// Whether two values are the same map or list, not merely equal ones.
pub fn same_object(a: &Value, b: &Value) -> bool {
    match (a.as_object(), b.as_object()) {
        (Some(a), Some(b)) => address(a) == address(b),
        _ => false,
    }
}

fn address(object: &DynObject) -> Option<*const ()> {
    if let Some(map) = object.downcast_ref::<Map>() {
        Some(std::ptr::from_ref(map.whole()).cast())
    } else {
        object.downcast_ref::<List>().map(|list| std::ptr::from_ref(list).cast())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    fn tree() -> Frozen {
        let inner = frozen_map(Arc::new(Entries::from([("k".into(), "v".into())])));
        let list = list_value(vec![frozen_map(Frozen::default())]);
        let scalars = list_value(vec!["a".into()]);
        let entries = [("inner", inner), ("list", list), ("scalars", scalars), ("text", "t".into())];
        Arc::new(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    #[test]
    fn maps_of_one_frozen_tree_do_not_see_what_others_change() {
        let tree = tree();
        let (one, other) = (frozen_map(Arc::clone(&tree)), frozen_map(tree));
        let (one, other) = (as_map(&one).unwrap(), as_map(&other).unwrap());
        as_map(&one.get("inner").unwrap()).unwrap().insert("k", "changed".into());
        let item = as_list(&one.get("list").unwrap()).unwrap().items()[0].clone();
        as_map(&item).unwrap().insert("new", true.into());
        one.remove("text");
        let text = |map: &Map| print::display(&map.get("inner").unwrap());
        assert_eq!((text(one), text(other)), ("map[k:changed]".to_owned(), "map[k:v]".to_owned()));
        let list = print::display(&other.get("list").unwrap());
        assert_eq!((list.as_str(), other.len(), one.len()), ("[map[]]", 4, 3));
    }

    #[test]
    fn a_map_in_a_frozen_tree_is_the_same_one_at_each_look() {
        let map = frozen_map(tree());
        let map = as_map(&map).unwrap();
        assert!(same_object(&map.get("inner").unwrap(), &map.get("inner").unwrap()));
        let by_snapshot = map.snapshot().into_iter().find(|(key, _)| &**key == "inner").unwrap().1;
        assert!(same_object(&map.get("inner").unwrap(), &by_snapshot));
    }

    #[test]
    fn a_map_stays_frozen_until_a_map_or_list_of_it_is_asked_for() {
        let map = frozen_map(tree());
        let map = as_map(&map).unwrap();
        assert_eq!((map.len(), map.contains_key("inner"), map.glance().len()), (4, true, 4));
        assert_eq!(map.get("text"), Some("t".into()));
        assert!(map.frozen().is_some());
        assert!(map.get("list").is_some());
        assert!(map.frozen().is_none());
    }
}
