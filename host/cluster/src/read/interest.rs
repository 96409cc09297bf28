//! What is watched, for whom, and what a read needs.

use pintle_api::{Gvk, ObjectRef, Query};

use super::{mask::Mask, selector::Selector};

/// Who holds an interest; an interest lives as long as somebody does, and a while longer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// A release, by a key of the caller's choice.
    Release(String),
    /// A plugin, by its name.
    Plugin(String),
    /// A part of the operator, by a fixed name: the watches of owners, of plugins.
    Part(&'static str),
}

/// A set of objects that is watched as one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interest {
    pub(crate) gvk: Gvk,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) selector: Option<String>,
    pub(crate) mask: Mask,
}

// === impl Interest ===

impl Interest {
    /// Every object of a kind, whole, in all namespaces.
    #[must_use]
    pub fn all(gvk: Gvk) -> Self {
        Self { gvk, namespace: None, name: None, selector: None, mask: Mask::Whole }
    }

    /// One object alone.
    #[must_use]
    pub fn of_object(target: &ObjectRef) -> Self {
        let (namespace, name) = (target.namespace.clone(), Some(target.name.clone()));
        Self { namespace, name, ..Self::all(target.gvk()) }
    }

    /// What a list reads.
    #[must_use]
    pub fn of_query(query: &Query) -> Self {
        let selector = query.label_selector.clone().filter(|selector| !selector.is_empty());
        let gvk = Gvk::new(&query.api_version, &query.kind);
        Self { namespace: query.namespace.clone(), selector, ..Self::all(gvk) }
    }

    /// The same in one namespace.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// The same, only what the label selector selects.
    #[must_use]
    pub fn selecting(mut self, selector: &str) -> Self {
        self.selector = Some(selector.to_owned());
        self
    }

    /// The same, only what the mask keeps.
    #[must_use]
    pub fn masked(mut self, mask: Mask) -> Self {
        self.mask = mask;
        self
    }

    /// Kind with group and version.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    /// The one object it is about.
    pub(crate) fn object(&self) -> Option<ObjectRef> {
        Some(ObjectRef {
            api_version: self.gvk.api_version(),
            kind: self.gvk.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone()?,
        })
    }

    /// The selector, parsed; an interest whose selector is none is refused by the server with a text.
    pub(crate) fn parsed_selector(&self) -> Selector {
        self.selector.as_deref().and_then(Selector::parse).unwrap_or_default()
    }
}
