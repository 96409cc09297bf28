//! From nodes to values: aliases expanded, merges merged, keys made text.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::Value;

use super::error::{Error, Problem};
use super::json::lossy;
use super::node::{Data, Document, MAX_DEPTH, Node, NodeId};
use super::resolve::{Scalar, is_timestamp, resolve};
use crate::value::{Entries, frozen_map, list_value, map_value, nil};

/// What values are made of.
pub(super) trait Target {
    /// A finished value.
    type Out;
    /// The entries of a mapping that is being read.
    type Entries: Default;
    /// Whether it matters what type a plain scalar has.
    const IS_TYPED: bool = true;
    /// A value of null, a bool, a number or text; floats are finite.
    fn scalar(&self, scalar: Scalar, text: Cow<'_, str>) -> Self::Out;
    fn list(&self, items: Vec<Self::Out>) -> Self::Out;
    /// Adds an entry, in place of one of the same key.
    fn insert(&self, entries: &mut Self::Entries, key: Cow<'_, str>, value: Self::Out);
    fn map(&self, entries: Self::Entries) -> Self::Out;
    /// Whether an entry of a mapping so many levels down is of use; else it may be left out.
    fn wants(&self, depth: usize, key: &str) -> bool {
        let (_, _) = (depth, key);
        true
    }
}

/// Go values with every number a `float64`.
pub(super) struct GoValues;

/// The same as a tree that many share.
pub(super) struct FrozenValues;

/// JSON with integers.
pub(super) struct JsonValues;

/// What Helm reads of a manifest to sort it, as JSON: its kind and annotations.
pub(super) struct Heads;

#[expect(clippy::cast_precision_loss, reason = "Go's JSON decoder rounds the same way")]
impl Target for GoValues {
    type Out = Value;
    type Entries = Entries;

    fn scalar(&self, scalar: Scalar, text: Cow<'_, str>) -> Value {
        match scalar {
            Scalar::Null => nil(),
            Scalar::Bool(bool) => Value::from(bool),
            Scalar::Int(int) => Value::from(int as f64),
            Scalar::Uint(uint) => Value::from(uint as f64),
            Scalar::Float(float) => Value::from(float),
            Scalar::Timestamp | Scalar::Str => Value::from(&*text),
        }
    }

    fn list(&self, items: Vec<Value>) -> Value {
        list_value(items)
    }

    fn insert(&self, entries: &mut Entries, key: Cow<'_, str>, value: Value) {
        entries.insert(Arc::from(&*key), value);
    }

    fn map(&self, entries: Entries) -> Value {
        map_value(entries)
    }
}

impl Target for FrozenValues {
    type Out = Value;
    type Entries = Entries;

    fn scalar(&self, scalar: Scalar, text: Cow<'_, str>) -> Value {
        GoValues.scalar(scalar, text)
    }

    fn list(&self, items: Vec<Value>) -> Value {
        GoValues.list(items)
    }

    fn insert(&self, entries: &mut Entries, key: Cow<'_, str>, value: Value) {
        GoValues.insert(entries, key, value);
    }

    fn map(&self, entries: Entries) -> Value {
        frozen_map(Arc::new(entries))
    }
}

impl Target for JsonValues {
    type Out = serde_json::Value;
    type Entries = serde_json::Map<String, serde_json::Value>;

    fn scalar(&self, scalar: Scalar, text: Cow<'_, str>) -> serde_json::Value {
        match scalar {
            Scalar::Null => serde_json::Value::Null,
            Scalar::Bool(bool) => bool.into(),
            Scalar::Int(int) => int.into(),
            Scalar::Uint(uint) => uint.into(),
            Scalar::Float(float) => float.into(),
            Scalar::Timestamp | Scalar::Str => text.into_owned().into(),
        }
    }

    fn list(&self, items: Vec<serde_json::Value>) -> serde_json::Value {
        items.into()
    }

    fn insert(&self, entries: &mut Self::Entries, key: Cow<'_, str>, value: serde_json::Value) {
        entries.insert(key.into_owned(), value);
    }

    fn map(&self, entries: Self::Entries) -> serde_json::Value {
        serde_json::Value::Object(entries)
    }
}

impl Target for Heads {
    type Out = serde_json::Value;
    type Entries = serde_json::Map<String, serde_json::Value>;

    fn scalar(&self, scalar: Scalar, text: Cow<'_, str>) -> serde_json::Value {
        JsonValues.scalar(scalar, text)
    }

    fn list(&self, items: Vec<serde_json::Value>) -> serde_json::Value {
        items.into()
    }

    fn insert(&self, entries: &mut Self::Entries, key: Cow<'_, str>, value: serde_json::Value) {
        JsonValues.insert(entries, key, value);
    }

    fn map(&self, entries: Self::Entries) -> serde_json::Value {
        JsonValues.map(entries)
    }

    fn wants(&self, depth: usize, key: &str) -> bool {
        match depth {
            0 => matches!(key, "apiVersion" | "kind" | "metadata"),
            1 => matches!(key, "name" | "annotations"),
            _ => true,
        }
    }
}

/// The values of a document.
pub(super) fn build<T: Target>(document: &Document, target: &T, name: &str) -> Result<T::Out, Error> {
    let budget = Budget::default();
    let mut builder = Builder { document, target, name, budget, open: Vec::new(), depth: 0 };
    builder.value(document.root())
}

/// How much aliases may expand to, by the rule of Go's library: almost everything in small
/// documents, a tenth in very large ones.
#[derive(Default)]
struct Budget {
    decoded: u32,
    from_aliases: u32,
}

impl Budget {
    fn spend(&mut self, in_alias: bool) -> bool {
        self.decoded = self.decoded.saturating_add(1);
        self.from_aliases = self.from_aliases.saturating_add(u32::from(in_alias));
        let ratio = f64::from(self.from_aliases) / f64::from(self.decoded);
        self.from_aliases <= 100 || self.decoded <= 1000 || ratio <= allowed_ratio(self.decoded)
    }
}

fn allowed_ratio(decoded: u32) -> f64 {
    const LOW: u32 = 400_000;
    const HIGH: u32 = 4_000_000;
    let above = f64::from(decoded.clamp(LOW, HIGH) - LOW);
    0.99 - 0.89 * (above / f64::from(HIGH - LOW))
}

struct Builder<'d, T> {
    document: &'d Document,
    target: &'d T,
    name: &'d str,
    budget: Budget,
    /// Aliases that are being expanded.
    open: Vec<NodeId>,
    depth: usize,
}

impl<T: Target> Builder<'_, T> {
    fn fail<O>(&self, id: NodeId, problem: Problem) -> Result<O, Error> {
        let (line, column) = self.document.node(id).map_or((0, 0), |n| (n.line, n.column));
        Err(Error::new(self.name, problem, line, column))
    }

    fn data(&self, id: NodeId) -> Result<&Data, Error> {
        let node: Option<&Node> = self.document.node(id);
        node.map(|node| &node.data).map_or_else(
            || self.fail(id, Problem::Syntax("did not find expected node content".to_owned())),
            Ok,
        )
    }

    fn value(&mut self, id: NodeId) -> Result<T::Out, Error> {
        self.enter(id)?;
        let document = self.document;
        let value = match document.node(id).map(|node| &node.data) {
            Some(Data::Scalar { value, tag, plain }) => {
                let (scalar, text) = self.scalar(id, value, tag.as_deref(), *plain)?;
                self.target.scalar(self.finite(id, scalar)?, Cow::Owned(text))
            }
            Some(Data::Sequence(items)) => {
                let items = items.iter().map(|item| self.value(*item)).collect::<Result<_, _>>()?;
                self.target.list(items)
            }
            Some(Data::Mapping(pairs)) => {
                let mut entries = T::Entries::default();
                self.mapping(pairs, &mut entries)?;
                self.target.map(entries)
            }
            Some(Data::Alias { anchor, target }) => {
                self.open_alias(id, anchor)?;
                let value = self.value(*target)?;
                self.open.pop();
                value
            }
            None => self.target.scalar(Scalar::Null, Cow::Borrowed("")),
        };
        self.depth -= 1;
        Ok(value)
    }

    fn enter(&mut self, id: NodeId) -> Result<(), Error> {
        if !self.budget.spend(!self.open.is_empty()) {
            return self.fail(id, Problem::Aliases);
        }
        self.depth += 1;
        // Aliases of aliases can nest deeper than the text does.
        if self.depth > 2 * MAX_DEPTH {
            return self.fail(id, Problem::Depth(MAX_DEPTH));
        }
        Ok(())
    }

    fn open_alias(&mut self, id: NodeId, anchor: &str) -> Result<(), Error> {
        if self.open.contains(&id) {
            return self.fail(id, Problem::Cycle(anchor.to_owned()));
        }
        self.open.push(id);
        Ok(())
    }

    /// Sets the pairs in order, so that the last of equal keys wins and a merge overrides what
    /// stands before it.
    fn mapping(&mut self, pairs: &[(NodeId, NodeId)], entries: &mut T::Entries) -> Result<(), Error> {
        for (key, value) in pairs {
            if self.data(*key)?.is_merge() {
                self.merge(*value, entries)?;
                continue;
            }
            let key = self.key(*key)?;
            let value = self.value(*value)?;
            self.target.insert(entries, Cow::Borrowed(&key), value);
        }
        Ok(())
    }

    fn merge(&mut self, id: NodeId, entries: &mut T::Entries) -> Result<(), Error> {
        let document = self.document;
        match document.node(id).map(|node| &node.data) {
            Some(Data::Sequence(items)) => {
                // Earlier items take precedence, so they come last.
                items.iter().rev().try_for_each(|item| self.merge_one(*item, entries))
            }
            _ => self.merge_one(id, entries),
        }
    }

    fn merge_one(&mut self, id: NodeId, entries: &mut T::Entries) -> Result<(), Error> {
        self.enter(id)?;
        let document = self.document;
        match document.node(id).map(|node| &node.data) {
            Some(Data::Mapping(pairs)) => self.mapping(pairs, entries)?,
            Some(Data::Alias { anchor, target }) => {
                self.open_alias(id, anchor)?;
                match document.node(*target).map(|node| &node.data) {
                    Some(Data::Mapping(pairs)) => self.mapping(pairs, entries)?,
                    _ => return self.fail(id, Problem::Merge),
                }
                self.open.pop();
            }
            _ => return self.fail(id, Problem::Merge),
        }
        self.depth -= 1;
        Ok(())
    }

    fn key(&mut self, id: NodeId) -> Result<Arc<str>, Error> {
        self.enter(id)?;
        let document = self.document;
        let key = match document.node(id).map(|node| &node.data) {
            Some(Data::Scalar { value, tag, plain }) => {
                let (scalar, text) = self.scalar(id, value, tag.as_deref(), *plain)?;
                self.key_text(id, &scalar, text)?
            }
            Some(Data::Alias { anchor, target }) => {
                self.open_alias(id, anchor)?;
                let key = self.key(*target)?;
                self.open.pop();
                key
            }
            Some(Data::Sequence(_)) => return self.fail(id, Problem::CompositeKey("a list")),
            Some(Data::Mapping(_)) => return self.fail(id, Problem::CompositeKey("a mapping")),
            None => Arc::default(),
        };
        self.depth -= 1;
        Ok(key)
    }

    fn key_text(&self, id: NodeId, scalar: &Scalar, text: String) -> Result<Arc<str>, Error> {
        Ok(match scalar {
            Scalar::Str | Scalar::Timestamp => text.into(),
            Scalar::Bool(true) => "true".into(),
            Scalar::Bool(false) => "false".into(),
            Scalar::Int(int) => int.to_string().into(),
            Scalar::Float(float) => float_key(*float).into(),
            Scalar::Null => return self.fail(id, Problem::Key("%!s(<nil>)")),
            Scalar::Uint(_) => return self.fail(id, Problem::Key("uint64")),
        })
    }

    /// Type and text of a scalar with its tag.
    fn scalar(
        &self,
        id: NodeId,
        value: &str,
        tag: Option<&str>,
        plain: bool,
    ) -> Result<(Scalar, String), Error> {
        let Some(tag) = tag else {
            let scalar = if plain { resolve(value) } else { Scalar::Str };
            return Ok((scalar, value.to_owned()));
        };
        let scalar = match tag.strip_prefix("tag:yaml.org,2002:") {
            Some("binary") => return self.binary(id, value),
            Some(kind @ ("bool" | "int" | "float" | "null" | "timestamp")) => match tagged(kind, value) {
                Ok(scalar) => scalar,
                Err(problem) => return self.fail(id, problem),
            },
            _ => Scalar::Str,
        };
        Ok((scalar, value.to_owned()))
    }

    fn binary(&self, id: NodeId, value: &str) -> Result<(Scalar, String), Error> {
        let text: String = value.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
        match STANDARD.decode(text) {
            Ok(bytes) => Ok((Scalar::Str, lossy(&bytes).into_owned())),
            Err(_) => self.fail(id, Problem::Binary),
        }
    }

    fn finite(&self, id: NodeId, scalar: Scalar) -> Result<Scalar, Error> {
        match scalar {
            Scalar::Float(float) if float.is_nan() => self.fail(id, Problem::Number("NaN")),
            Scalar::Float(f64::INFINITY) => self.fail(id, Problem::Number("+Inf")),
            Scalar::Float(f64::NEG_INFINITY) => self.fail(id, Problem::Number("-Inf")),
            scalar => Ok(scalar),
        }
    }
}

/// A scalar under a tag of a scalar type.
#[expect(clippy::cast_precision_loss, reason = "Go converts the same way")]
fn tagged(kind: &str, value: &str) -> Result<Scalar, Problem> {
    let resolved = resolve(value);
    let (found, fits) = match &resolved {
        Scalar::Null => ("!!null", kind == "null"),
        Scalar::Bool(_) => ("!!bool", kind == "bool"),
        Scalar::Int(_) | Scalar::Uint(_) => ("!!int", kind == "int"),
        Scalar::Float(_) => ("!!float", kind == "float"),
        Scalar::Timestamp => ("!!timestamp", kind == "timestamp"),
        Scalar::Str => ("!!str", false),
    };
    match (&resolved, kind) {
        _ if fits => Ok(resolved),
        (Scalar::Int(int), "float") => Ok(Scalar::Float(*int as f64)),
        (Scalar::Timestamp, _) if !is_timestamp(value) => Ok(Scalar::Str),
        _ => {
            let wanted = match kind {
                "bool" => "!!bool",
                "int" => "!!int",
                "float" => "!!float",
                "null" => "!!null",
                _ => "!!timestamp",
            };
            Err(Problem::Tag(found, value.to_owned(), wanted))
        }
    }
}

/// A float as a key: the digits of a `float32`, by Go's rule for `%g`.
#[expect(clippy::cast_possible_truncation, reason = "Go's library formats keys in 32 bits")]
fn float_key(float: f64) -> String {
    if float.is_nan() {
        return ".nan".to_owned();
    }
    let short = float as f32;
    if short.is_infinite() {
        return if short > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    // The digits of the short float, read as a long one, print as themselves.
    let digits = short.to_string().parse().unwrap_or(float);
    crate::value::float::float_text(digits)
}
