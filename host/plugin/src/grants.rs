//! What an administrator granted to a plugin, read once.

mod image;
mod need;
mod place;
mod scope;
mod writes;

use std::sync::Arc;

use pintle_api::{
    Object,
    plugin::{ActionGrant, ActionVerb, Grants, Identity, LogGrant, ObjectGrant, PartGrant, ReadGrant},
};
use serde_json::{Map, Value};

use crate::{
    mask::{FieldPath, Mask, NotAPath},
    selector::{NotASelector, Selector},
};
pub(crate) use image::{ImagePattern, is_reference};
use place::Place;
pub(crate) use scope::{Denial, Scope};

/// A grant that cannot be given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// Groups and kinds are named one by one.
    #[error("spec.grants.{list}[{at}].{field} has a wildcard, each one must be named")]
    Wildcard {
        /// Which list.
        list: &'static str,
        /// Position in the list.
        at: usize,
        /// `apiGroups` or `kinds`.
        field: &'static str,
    },
    /// A grant of nothing.
    #[error("spec.grants.{list}[{at}].{field} is empty")]
    Nothing {
        /// Which list.
        list: &'static str,
        /// Position in the list.
        at: usize,
        /// Which field.
        field: &'static str,
    },
    /// Kinds of ours decide about rights, so no plugin may write them.
    #[error("spec.grants.{list}[{at}].apiGroups names pintle.dev, whose kinds no plugin may write")]
    Reserved {
        /// Which list.
        list: &'static str,
        /// Position in the list.
        at: usize,
    },
    /// The label selector is none.
    #[error("spec.grants.{list}[{at}].labelSelector cannot be read")]
    Selector {
        /// `read` or `logs`.
        list: &'static str,
        /// Position in the list.
        at: usize,
        /// What is wrong with it.
        source: NotASelector,
    },
    /// A field path is none.
    #[error("spec.grants.{list}[{at}].fields cannot be read")]
    Field {
        /// `read` or `parts`.
        list: &'static str,
        /// Position in the list.
        at: usize,
        /// What is wrong with it.
        source: NotAPath,
    },
    /// An image reference is none, or leaves the host open.
    #[error(
        "spec.grants.images[{at}] is no reference such as registry.example/vendor/*:*, with the host named \
         and without oci://"
    )]
    Image {
        /// Position in the list.
        at: usize,
    },
}

/// The grants of a Plugin, read once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Granted {
    reads: Vec<ReadRule>,
    logs: Vec<LogRule>,
    objects: Vec<Place>,
    parts: Vec<PartRule>,
    actions: Vec<ActionRule>,
    images: Vec<ImagePattern>,
    secrets: Vec<Place>,
}

#[derive(Clone, Debug)]
pub(crate) struct ReadRule {
    place: Place,
    /// As the administrator wrote it, for the API.
    label_selector: Arc<str>,
    selector: Selector,
    mask: Mask,
}

#[derive(Clone, Debug)]
pub(crate) struct LogRule {
    namespaces: Vec<String>,
    pub(crate) selector: Selector,
    pub(crate) identity: Identity,
}

#[derive(Clone, Debug)]
struct PartRule {
    place: Place,
    mask: Mask,
}

#[derive(Clone, Debug)]
struct ActionRule {
    place: Place,
    verbs: Vec<ActionVerb>,
}

// === impl Granted ===

impl Granted {
    /// Reads the grants of a Plugin.
    ///
    /// # Errors
    /// When a grant has a wildcard, names nothing, or has a selector, path or reference that is none.
    pub(crate) fn new(grants: &Grants) -> Result<Self, GrantError> {
        let Grants { read, logs, objects, parts, actions, images, secret_values } = grants;
        let secrets = secret_values.iter().enumerate().map(|(at, grant)| Place::of_secrets(at, grant));
        let images = images.iter().enumerate();
        let images = images.map(|(at, text)| ImagePattern::parse(text).ok_or(GrantError::Image { at }));
        Ok(Self {
            reads: each(read, ReadRule::new)?,
            logs: each(logs, LogRule::new)?,
            objects: each(objects, object_place)?,
            parts: each(parts, PartRule::new)?,
            actions: each(actions, ActionRule::new)?,
            images: images.collect::<Result<_, _>>()?,
            secrets: secrets.collect::<Result<_, _>>()?,
        })
    }
}

fn each<G, R>(grants: &[G], read: impl Fn(usize, &G) -> Result<R, GrantError>) -> Result<Vec<R>, GrantError> {
    grants.iter().enumerate().map(|(at, grant)| read(at, grant)).collect()
}

fn object_place(at: usize, grant: &ObjectGrant) -> Result<Place, GrantError> {
    let ObjectGrant { api_groups, kinds, namespaces, names, identity } = grant;
    Place::new(("objects", at), (api_groups, kinds), (namespaces, names), *identity)?
        .for_writes("objects", at)
}

// === impl ReadRule ===

impl ReadRule {
    fn new(at: usize, grant: &ReadGrant) -> Result<Self, GrantError> {
        let ReadGrant { api_groups, kinds, namespaces, names, label_selector, fields, identity } = grant;
        let list = "read";
        let place = Place::new((list, at), (api_groups, kinds), (namespaces, names), *identity)?;
        let selector =
            Selector::parse(label_selector).map_err(|source| GrantError::Selector { list, at, source })?;
        let fields = FieldPath::parse_all(fields).map_err(|source| GrantError::Field { list, at, source })?;
        Ok(Self { place, label_selector: label_selector.as_str().into(), selector, mask: Mask::of(&fields) })
    }

    /// What this rule shows of an object, nothing when it does not select it.
    pub(crate) fn mask_of(&self, object: &Object) -> Option<&Mask> {
        self.selects(object).then_some(&self.mask)
    }

    /// True when it selects this object of a kind and namespace that it is about.
    pub(crate) fn selects(&self, object: &Object) -> bool {
        self.place.allows_name(object.name()) && self.selector.selects(object)
    }

    /// What it shows of the objects that it selects.
    pub(crate) fn mask(&self) -> &Mask {
        &self.mask
    }

    /// Whose rights it is used with.
    pub(crate) fn identity(&self) -> Identity {
        self.place.identity
    }
}

// === impl LogRule ===

impl LogRule {
    fn new(at: usize, grant: &LogGrant) -> Result<Self, GrantError> {
        let LogGrant { namespaces, label_selector, identity } = grant;
        let selector = Selector::parse(label_selector).map_err(|source| GrantError::Selector {
            list: "logs",
            at,
            source,
        })?;
        Ok(Self { namespaces: namespaces.clone(), selector, identity: *identity })
    }
}

// === impl PartRule ===

impl PartRule {
    fn new(at: usize, grant: &PartGrant) -> Result<Self, GrantError> {
        let PartGrant { api_groups, kinds, namespaces, names, fields, identity } = grant;
        let list = "parts";
        let place = Place::new((list, at), (api_groups, kinds), (namespaces, names), *identity)?
            .for_writes(list, at)?;
        if fields.is_empty() {
            return Err(GrantError::Nothing { list, at, field: "fields" });
        }
        let fields = FieldPath::parse_all(fields).map_err(|source| GrantError::Field { list, at, source })?;
        Ok(Self { place, mask: Mask::of(&fields) })
    }
}

// === impl ActionRule ===

impl ActionRule {
    fn new(at: usize, grant: &ActionGrant) -> Result<Self, GrantError> {
        let ActionGrant { verbs, api_groups, kinds, namespaces, names, identity } = grant;
        let list = "actions";
        let place = Place::new((list, at), (api_groups, kinds), (namespaces, names), *identity)?
            .for_writes(list, at)?;
        if verbs.is_empty() {
            return Err(GrantError::Nothing { list, at, field: "verbs" });
        }
        Ok(Self { place, verbs: verbs.clone() })
    }
}

/// True for Secrets of the core API.
pub(crate) fn is_secret(api_version: &str, kind: &str) -> bool {
    api_version == "v1" && kind == "Secret"
}

/// The labels of an object.
pub(crate) fn labels(object: &Object) -> Option<&Map<String, Value>> {
    object.json().get("metadata")?.get("labels")?.as_object()
}
