//! Documents as written: nodes with their places, aliases not yet followed.

use std::collections::HashMap;

use super::events::{Event, Events, Kind};

use super::error::{Error, Problem};

/// Nesting that is still read. Go's parser allows 10,000; nothing in Kubernetes comes near, and
/// printing a value ends at 1,000.
pub(super) const MAX_DEPTH: usize = 500;

/// The index of a node in its document.
pub(super) type NodeId = usize;

/// One document of a stream.
#[derive(Debug)]
pub(super) struct Document {
    nodes: Vec<Node>,
    root: NodeId,
}

/// A node and where it starts, from 0.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) line: u64,
    pub(super) column: u64,
    pub(super) data: Data,
}

/// What a node is.
#[derive(Debug)]
pub(super) enum Data {
    /// Text with its tag; `plain` when neither quotes nor a tag fix its type.
    Scalar { value: String, tag: Option<String>, plain: bool },
    /// Items in order.
    Sequence(Vec<NodeId>),
    /// Keys and values in order, duplicates included.
    Mapping(Vec<(NodeId, NodeId)>),
    /// Another node of the document, by anchor.
    Alias { anchor: String, target: NodeId },
}

/// The documents of a text, one after the other; ends after the first error.
pub(super) struct Documents<'t> {
    events: Events<'t>,
    ended: bool,
}

impl<'t> Documents<'t> {
    pub(super) fn new(text: &'t str, name: &'t str) -> Self {
        Self { events: Events::new(text, name), ended: false }
    }

    fn document(&mut self) -> Result<Option<Document>, Error> {
        loop {
            match self.events.next()?.kind {
                Kind::StreamEnd => return Ok(None),
                Kind::DocumentStart => break,
                _ => {}
            }
        }
        let events = &mut self.events;
        let mut composer = Composer { events, nodes: Vec::new(), anchors: HashMap::new() };
        let root = composer.required_node()?;
        let nodes = composer.nodes;
        // The end is read too: what stands behind a document can make it invalid.
        self.events.next()?;
        Ok(Some(Document { nodes, root }))
    }
}

impl Iterator for Documents<'_> {
    type Item = Result<Document, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let document = self.document().transpose();
        self.ended = !matches!(document, Some(Ok(_)));
        document
    }
}

/// Makes nodes of the events of one document.
struct Composer<'p, 't> {
    events: &'p mut Events<'t>,
    nodes: Vec<Node>,
    anchors: HashMap<String, NodeId>,
}

impl Composer<'_, '_> {
    fn required_node(&mut self) -> Result<NodeId, Error> {
        match self.node(0)? {
            Some(id) => Ok(id),
            // The grammar has a node here, be it an empty scalar.
            None => Ok(self.push(0, 0, None, Data::empty())),
        }
    }

    /// The next node, or `None` where a sequence or mapping ends.
    fn node(&mut self, depth: usize) -> Result<Option<NodeId>, Error> {
        let Event { kind, line, column } = self.events.next()?;
        if depth > MAX_DEPTH {
            return Err(self.events.fail(Problem::Depth(MAX_DEPTH), line, column));
        }
        let id = match kind {
            Kind::Alias { anchor } => match self.anchors.get(&anchor).copied() {
                Some(target) => self.push(line, column, None, Data::Alias { anchor, target }),
                None => {
                    return Err(self.events.fail(Problem::UnknownAnchor(anchor), line, column));
                }
            },
            Kind::Scalar { anchor, tag, value, plain } => {
                self.push(line, column, anchor, Data::Scalar { value, tag, plain })
            }
            Kind::Sequence { anchor } => {
                let id = self.push(line, column, anchor, Data::empty());
                let items = self.items(depth)?;
                self.set(id, Data::Sequence(items))
            }
            Kind::Mapping { anchor } => {
                let id = self.push(line, column, anchor, Data::empty());
                let pairs = self.pairs(depth)?;
                self.set(id, Data::Mapping(pairs))
            }
            Kind::DocumentStart | Kind::End | Kind::StreamEnd => return Ok(None),
        };
        Ok(Some(id))
    }

    fn items(&mut self, depth: usize) -> Result<Vec<NodeId>, Error> {
        let mut items = Vec::new();
        while let Some(item) = self.node(depth + 1)? {
            items.push(item);
        }
        Ok(items)
    }

    fn pairs(&mut self, depth: usize) -> Result<Vec<(NodeId, NodeId)>, Error> {
        let mut pairs = Vec::new();
        while let Some(key) = self.node(depth + 1)? {
            let Some(value) = self.node(depth + 1)? else {
                break;
            };
            pairs.push((key, value));
        }
        Ok(pairs)
    }

    /// Adds a node; its anchor is known from here on, within the node too.
    fn push(&mut self, line: u64, column: u64, anchor: Option<String>, data: Data) -> NodeId {
        let id = self.nodes.len();
        self.nodes.push(Node { line, column, data });
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, id);
        }
        id
    }

    fn set(&mut self, id: NodeId, data: Data) -> NodeId {
        if let Some(node) = self.nodes.get_mut(id) {
            node.data = data;
        }
        id
    }
}

// === impl Data ===

impl Data {
    fn empty() -> Self {
        Self::Scalar { value: String::new(), tag: None, plain: true }
    }

    /// Whether a key asks for a merge: `<<`, not in quotes.
    pub(super) fn is_merge(&self) -> bool {
        match self {
            Self::Scalar { value, tag, plain } => {
                let tagged = tag.as_deref() == Some("tag:yaml.org,2002:merge");
                value == "<<" && (*plain || tagged)
            }
            _ => false,
        }
    }
}

// === impl Document ===

impl Document {
    pub(super) fn root(&self) -> NodeId {
        self.root
    }

    pub(super) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id)
    }

    /// The line (from 1) of the first node.
    pub(super) fn line(&self) -> u64 {
        self.node(self.root).map_or(1, |node| node.line + 1)
    }

    /// The line (from 1) of the value at a path.
    pub(super) fn line_of(&self, path: &[&str]) -> Option<u64> {
        let mut id = self.root;
        let mut line = self.node(id)?.line;
        for part in path {
            let (at, value) = self.child(id, part)?;
            line = self.node(at)?.line;
            id = value;
        }
        Some(line + 1)
    }

    /// The node that names a child (its key, or the item itself) and the child.
    fn child(&self, id: NodeId, part: &str) -> Option<(NodeId, NodeId)> {
        match &self.resolved(id)?.data {
            Data::Sequence(items) => {
                let item = *items.get(part.parse::<usize>().ok()?)?;
                Some((item, item))
            }
            Data::Mapping(pairs) => {
                let last = pairs.iter().rev().find(|(key, _)| self.is_key(*key, part));
                last.copied().or_else(|| self.merged_child(pairs, part))
            }
            Data::Scalar { .. } | Data::Alias { .. } => None,
        }
    }

    fn merged_child(&self, pairs: &[(NodeId, NodeId)], part: &str) -> Option<(NodeId, NodeId)> {
        let is_merge = |id: NodeId| self.node(id).is_some_and(|node| node.data.is_merge());
        let merged = pairs.iter().rev().find(|(key, _)| is_merge(*key))?.1;
        match &self.resolved(merged)?.data {
            Data::Mapping(pairs) => pairs.iter().rev().find(|(key, _)| self.is_key(*key, part)).copied(),
            Data::Sequence(items) => items.iter().find_map(|item| match &self.resolved(*item)?.data {
                Data::Mapping(pairs) => pairs.iter().rev().find(|(key, _)| self.is_key(*key, part)).copied(),
                _ => None,
            }),
            _ => None,
        }
    }

    fn is_key(&self, id: NodeId, name: &str) -> bool {
        matches!(self.resolved(id).map(|node| &node.data), Some(Data::Scalar { value, .. }) if value == name)
    }

    fn resolved(&self, id: NodeId) -> Option<&Node> {
        let node = self.node(id)?;
        match node.data {
            Data::Alias { target, .. } => self.node(target),
            _ => Some(node),
        }
    }
}
