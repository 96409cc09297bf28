//! What a plugin may read: the administrator's grants, checked before each read.

use std::{collections::BTreeSet, sync::Arc};

use pintle_api::{
    Gvk, Object, ObjectRef, Query,
    plugin::{Grants, LogGrant, ReadGrant},
};
use serde_json::{Map, Value};

use crate::{
    mask::{FieldPath, Mask, NotAPath},
    selector::{self, NotASelector, Selector},
};

/// The word in a grant's namespaces that stands for the release's own.
const RELEASE: &str = "$release";

/// A grant that cannot be given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// Groups and kinds are named one by one.
    #[error("spec.grants.read[{at}].{field} has a wildcard, each one must be named")]
    Wildcard {
        /// Position in the list.
        at: usize,
        /// `apiGroups` or `kinds`.
        field: &'static str,
    },
    /// A grant of nothing.
    #[error("spec.grants.read[{at}].{field} is empty")]
    Nothing {
        /// Position in the list.
        at: usize,
        /// `apiGroups` or `kinds`.
        field: &'static str,
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
    #[error("spec.grants.read[{at}].fields cannot be read")]
    Field {
        /// Position in the list.
        at: usize,
        /// What is wrong with it.
        source: NotAPath,
    },
}

/// The grants of a Plugin, read once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Granted {
    reads: Vec<ReadRule>,
    logs: Vec<LogRule>,
}

#[derive(Clone, Debug)]
pub(crate) struct ReadRule {
    grant: ReadGrant,
    selector: Selector,
    mask: Mask,
}

#[derive(Clone, Debug)]
struct LogRule {
    grant: LogGrant,
    selector: Selector,
}

/// What one call may read: the grants, seen from its release.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// Name of the Plugin, for messages.
    pub(crate) plugin: Arc<str>,
    pub(crate) granted: Arc<Granted>,
    /// Namespace of the release.
    pub(crate) namespace: String,
    /// Objects of the release.
    pub(crate) own: Arc<BTreeSet<ObjectRef>>,
}

/// Why a read is not allowed, with the line that would allow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial(pub(crate) String);

/// Rules that allow a read, as far as can be said before it is made.
#[derive(Clone, Debug)]
pub(crate) struct Permit<'a> {
    is_own: bool,
    rules: Vec<&'a ReadRule>,
}

/// One list that a rule allows.
#[derive(Clone, Debug)]
pub(crate) struct Listing<'a> {
    pub(crate) query: Query,
    pub(crate) rule: &'a ReadRule,
}

// === impl Granted ===

impl Granted {
    /// Reads the grants of a Plugin.
    ///
    /// # Errors
    /// When a grant has a wildcard, names nothing, or has a selector or path that is none.
    pub(crate) fn new(grants: &Grants) -> Result<Self, GrantError> {
        let Grants { read, logs } = grants;
        let reads = read.iter().enumerate().map(|(at, grant)| ReadRule::new(at, grant));
        let logs = logs.iter().enumerate().map(|(at, grant)| LogRule::new(at, grant));
        Ok(Self { reads: reads.collect::<Result<_, _>>()?, logs: logs.collect::<Result<_, _>>()? })
    }

    /// True when some grant covers all that a manifest asks for. The label selector is left aside:
    /// a narrower one is the administrator's choice.
    pub(crate) fn covers_read(&self, need: &ReadGrant) -> bool {
        let covers = |group: &str, kind: &str| {
            let rules = self.reads.iter().filter(|rule| rule.is_about(group, kind));
            let rules: Vec<_> =
                rules.filter(|rule| is_within(&need.namespaces, &rule.grant.namespaces)).collect();
            let mask = rules.iter().fold(Mask::nothing(), |mask, rule| mask.or(rule.mask.clone()));
            match FieldPath::parse_all(&need.fields) {
                Ok(fields) if !fields.is_empty() => fields.iter().all(|field| mask.covers(field)),
                _ => mask == Mask::Whole,
            }
        };
        need.api_groups.iter().all(|group| need.kinds.iter().all(|kind| covers(group, kind)))
    }

    /// True when some grant covers the logs that a manifest asks for.
    pub(crate) fn covers_logs(&self, need: &LogGrant) -> bool {
        self.logs.iter().any(|rule| is_within(&need.namespaces, &rule.grant.namespaces))
    }
}

/// True when every wanted namespace is given; an empty list means all of them.
fn is_within(wanted: &[String], given: &[String]) -> bool {
    given.is_empty() || (!wanted.is_empty() && wanted.iter().all(|namespace| given.contains(namespace)))
}

// === impl ReadRule ===

impl ReadRule {
    fn new(at: usize, grant: &ReadGrant) -> Result<Self, GrantError> {
        for (field, list) in [("apiGroups", &grant.api_groups), ("kinds", &grant.kinds)] {
            if list.is_empty() {
                return Err(GrantError::Nothing { at, field });
            }
            if list.iter().any(|entry| entry.contains('*')) {
                return Err(GrantError::Wildcard { at, field });
            }
        }
        let selector = Selector::parse(&grant.label_selector).map_err(|source| GrantError::Selector {
            list: "read",
            at,
            source,
        })?;
        let fields =
            FieldPath::parse_all(&grant.fields).map_err(|source| GrantError::Field { at, source })?;
        Ok(Self { grant: grant.clone(), selector, mask: Mask::of(&fields) })
    }

    fn is_about(&self, group: &str, kind: &str) -> bool {
        self.grant.api_groups.iter().any(|one| one == group) && self.grant.kinds.iter().any(|one| one == kind)
    }

    fn allows_name(&self, name: &str) -> bool {
        self.grant.names.is_empty() || self.grant.names.iter().any(|one| one == name)
    }

    /// What this rule shows of an object, nothing when it does not select it.
    pub(crate) fn mask_of(&self, object: &Object) -> Option<&Mask> {
        let is_selected = self.allows_name(object.name()) && self.selector.matches(labels(object));
        is_selected.then_some(&self.mask)
    }
}

// === impl LogRule ===

impl LogRule {
    fn new(at: usize, grant: &LogGrant) -> Result<Self, GrantError> {
        let selector = Selector::parse(&grant.label_selector).map_err(|source| GrantError::Selector {
            list: "logs",
            at,
            source,
        })?;
        Ok(Self { grant: grant.clone(), selector })
    }
}

// === impl Scope ===

impl Scope {
    /// The scope of a plugin that is only described: nothing can be read.
    pub(crate) fn nothing(plugin: &Arc<str>) -> Self {
        let (granted, own) = (Arc::default(), Arc::default());
        Self { plugin: Arc::clone(plugin), granted, namespace: String::new(), own }
    }

    /// The rules that allow one object and these fields of it.
    ///
    /// # Errors
    /// When none does, or a field is not among what they show.
    pub(crate) fn permit(&self, target: &ObjectRef, fields: &[FieldPath]) -> Result<Permit<'_>, Denial> {
        let gvk = target.gvk();
        let rules = self.granted.reads.iter().filter(|rule| {
            rule.is_about(&gvk.group, &gvk.kind)
                && self.allows_namespace(&rule.grant.namespaces, target.namespace.as_deref())
                && rule.allows_name(&target.name)
        });
        let permit = Permit { is_own: self.is_readable_own(target), rules: rules.collect() };
        if !permit.is_own && permit.rules.is_empty() {
            return Err(self.deny_kind(&gvk, target.namespace.as_deref()));
        }
        self.check_fields(&permit.widest(), fields, &gvk)?;
        Ok(permit)
    }

    /// The lists that together are the query within the grants; none when only objects of the
    /// release can be in it.
    ///
    /// # Errors
    /// When neither a grant nor an object of the release is about this kind and namespace, or a
    /// field is not among what the grants show.
    pub(crate) fn listings(&self, query: &Query, fields: &[FieldPath]) -> Result<Vec<Listing<'_>>, Denial> {
        let gvk = Gvk::new(&query.api_version, &query.kind);
        let rules = self.granted.reads.iter().filter(|rule| rule.is_about(&gvk.group, &gvk.kind));
        let listings: Vec<_> = rules.flat_map(|rule| self.listings_of(rule, query)).collect();
        let has_own = self.own_of(query).next().is_some();
        if listings.is_empty() && !has_own {
            return Err(self.deny_kind(&gvk, query.namespace.as_deref()));
        }
        let shown = if has_own {
            Mask::Whole
        } else {
            listings.iter().fold(Mask::nothing(), |mask, listing| mask.or(listing.rule.mask.clone()))
        };
        self.check_fields(&shown, fields, &gvk)?;
        Ok(listings)
    }

    /// Objects of the release that a query of this kind and namespace may find.
    pub(crate) fn own_of(&self, query: &Query) -> impl Iterator<Item = &ObjectRef> {
        self.own.iter().filter(|own| {
            own.api_version == query.api_version
                && own.kind == query.kind
                && (query.namespace.is_none() || query.namespace == own.namespace)
                && self.is_readable_own(own)
        })
    }

    /// Whether logs of a pod may be read: yes, no, or only when its labels are like this.
    pub(crate) fn log_rules(&self, namespace: &str) -> Result<Vec<&Selector>, Denial> {
        let rules = self.granted.logs.iter();
        let rules = rules.filter(|rule| self.allows_namespace(&rule.grant.namespaces, Some(namespace)));
        let selectors: Vec<_> = rules.map(|rule| &rule.selector).collect();
        if selectors.is_empty() { Err(self.deny_logs(namespace)) } else { Ok(selectors) }
    }

    /// The sentence for logs that no grant gives.
    pub(crate) fn deny_logs(&self, namespace: &str) -> Denial {
        let namespace = self.as_granted(namespace);
        let plugin = &self.plugin;
        Denial(format!(
            "logs are not granted; this line under spec.grants.logs of Plugin {plugin} would: \
             - {{namespaces: [{namespace}]}}"
        ))
    }

    /// The sentence for an object whose labels no grant selects.
    pub(crate) fn deny_object(&self, target: &ObjectRef) -> Denial {
        Denial(format!(
            "{target} is outside of the label selectors in spec.grants.read of Plugin {}",
            self.plugin
        ))
    }

    /// The sentence for images that no grant gives.
    pub(crate) fn deny_images(&self) -> Denial {
        Denial(format!("images are not granted to Plugin {}", self.plugin))
    }

    fn listings_of<'a>(&self, rule: &'a ReadRule, query: &Query) -> Vec<Listing<'a>> {
        let namespaces: Vec<Option<String>> = match &query.namespace {
            Some(asked) if self.allows_namespace(&rule.grant.namespaces, Some(asked)) => {
                vec![Some(asked.clone())]
            }
            Some(_) => Vec::new(),
            None if rule.grant.namespaces.is_empty() => vec![None],
            None => {
                rule.grant.namespaces.iter().map(|granted| Some(self.resolve(granted).to_owned())).collect()
            }
        };
        let asked = query.label_selector.as_deref().unwrap_or_default();
        let label_selector = selector::both(&rule.grant.label_selector, asked);
        let listing = |namespace| {
            let query = Query { namespace, label_selector: label_selector.clone(), ..query.clone() };
            Listing { query, rule }
        };
        namespaces.into_iter().map(listing).collect()
    }

    fn is_readable_own(&self, target: &ObjectRef) -> bool {
        !is_secret(&target.api_version, &target.kind) && self.own.contains(target)
    }

    fn allows_namespace(&self, granted: &[String], asked: Option<&str>) -> bool {
        granted.is_empty() || asked.is_some_and(|asked| granted.iter().any(|one| self.resolve(one) == asked))
    }

    fn resolve<'a>(&'a self, granted: &'a str) -> &'a str {
        if granted == RELEASE { &self.namespace } else { granted }
    }

    fn as_granted<'a>(&self, namespace: &'a str) -> &'a str {
        if namespace == self.namespace { RELEASE } else { namespace }
    }

    fn check_fields(&self, shown: &Mask, fields: &[FieldPath], gvk: &Gvk) -> Result<(), Denial> {
        let Some(beyond) = fields.iter().find(|field| !shown.covers(field)) else { return Ok(()) };
        let plugin = &self.plugin;
        Err(Denial(format!(
            "{beyond} of {gvk} is not among the fields in spec.grants.read of Plugin {plugin}"
        )))
    }

    fn deny_kind(&self, gvk: &Gvk, namespace: Option<&str>) -> Denial {
        let Gvk { group, kind, .. } = gvk;
        let namespaces = namespace.map(|namespace| format!(", namespaces: [{}]", self.as_granted(namespace)));
        let namespaces = namespaces.unwrap_or_default();
        let plugin = &self.plugin;
        Denial(format!(
            "{gvk} is not granted; this line under spec.grants.read of Plugin {plugin} would: \
             - {{apiGroups: [\"{group}\"], kinds: [{kind}]{namespaces}}}"
        ))
    }
}

// === impl Permit ===

impl Permit<'_> {
    /// What the rules show of an object now that its labels are known; nothing when none selects it.
    pub(crate) fn mask_of(&self, object: &Object) -> Option<Mask> {
        if self.is_own {
            return Some(Mask::Whole);
        }
        let masks = self.rules.iter().filter_map(|rule| rule.mask_of(object)).cloned();
        masks.reduce(Mask::or)
    }

    fn widest(&self) -> Mask {
        if self.is_own {
            return Mask::Whole;
        }
        self.rules.iter().fold(Mask::nothing(), |mask, rule| mask.or(rule.mask.clone()))
    }
}

/// True for Secrets of the core API.
pub(crate) fn is_secret(api_version: &str, kind: &str) -> bool {
    api_version == "v1" && kind == "Secret"
}

/// The labels of an object.
pub(crate) fn labels(object: &Object) -> Option<&Map<String, Value>> {
    object.at("/metadata/labels").and_then(Value::as_object)
}
