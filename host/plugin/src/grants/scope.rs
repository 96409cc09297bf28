//! What one call may read: the grants, seen from its release.

use std::{collections::BTreeSet, sync::Arc};

use pintle_api::{Gvk, Object, ObjectRef, Query, plugin::Identity};

use super::{
    Granted, LogRule, ReadRule, is_secret,
    place::{Place, RELEASE},
};
use crate::{
    mask::{FieldPath, Mask},
    selector,
};

/// What one call may read and return: the grants, seen from its release.
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

/// Why something is not allowed, with the line that would allow it.
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
            rule.place.is_about(&gvk.group, &gvk.kind)
                && self.is_in(&rule.place, target.namespace.as_deref(), &target.name)
        });
        let permit = Permit { is_own: self.is_readable_own(target), rules: rules.collect() };
        if !permit.is_own && permit.rules.is_empty() {
            return Err(self.deny("read", &gvk, target.namespace.as_deref(), ""));
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
        let rules = self.granted.reads.iter().filter(|rule| rule.place.is_about(&gvk.group, &gvk.kind));
        let listings: Vec<_> = rules.flat_map(|rule| self.listings_of(rule, query)).collect();
        let has_own = self.own_of(query).next().is_some();
        if listings.is_empty() && !has_own {
            return Err(self.deny("read", &gvk, query.namespace.as_deref(), ""));
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

    /// The rules that allow logs of pods in a namespace; what each selects is still to be checked.
    pub(crate) fn log_rules(&self, namespace: &str) -> Result<Vec<&LogRule>, Denial> {
        let rules = self.granted.logs.iter();
        let rules: Vec<_> =
            rules.filter(|rule| self.allows_namespace(&rule.namespaces, Some(namespace))).collect();
        if rules.is_empty() { Err(self.deny_logs(namespace)) } else { Ok(rules) }
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

    /// True when the values of this Secret are shown in clear text.
    pub(crate) fn shows_values(&self, namespace: Option<&str>, name: &str) -> bool {
        let namespace = namespace.or(Some(&self.namespace));
        self.granted.secrets.iter().any(|place| self.is_in(place, namespace, name))
    }

    pub(super) fn is_in(&self, place: &Place, namespace: Option<&str>, name: &str) -> bool {
        self.allows_namespace(&place.namespaces, namespace) && place.allows_name(name)
    }

    fn listings_of<'a>(&self, rule: &'a ReadRule, query: &Query) -> Vec<Listing<'a>> {
        let granted = &rule.place.namespaces;
        let namespaces: Vec<Option<String>> = match &query.namespace {
            Some(asked) if self.allows_namespace(granted, Some(asked)) => vec![Some(asked.clone())],
            Some(_) => Vec::new(),
            None if granted.is_empty() => vec![None],
            None => granted.iter().map(|granted| Some(self.resolve(granted).to_owned())).collect(),
        };
        let asked = query.label_selector.as_deref().unwrap_or_default();
        let label_selector = selector::both(&rule.label_selector, asked);
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

    /// The sentence for a kind that no grant of a list gives.
    pub(super) fn deny(&self, list: &str, gvk: &Gvk, namespace: Option<&str>, more: &str) -> Denial {
        let Gvk { group, kind, .. } = gvk;
        let namespaces = namespace.map(|namespace| format!(", namespaces: [{}]", self.as_granted(namespace)));
        let namespaces = namespaces.unwrap_or_default();
        let plugin = &self.plugin;
        Denial(format!(
            "{gvk} is not granted; this line under spec.grants.{list} of Plugin {plugin} would: \
             - {{apiGroups: [\"{group}\"], kinds: [{kind}]{namespaces}{more}}}"
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

    /// Whose rights the read is made with: the operator's where one of the rules says so.
    pub(crate) fn identity(&self) -> Identity {
        self.rules.iter().map(|rule| rule.identity()).max().unwrap_or_default()
    }

    fn widest(&self) -> Mask {
        if self.is_own {
            return Mask::Whole;
        }
        self.rules.iter().fold(Mask::nothing(), |mask, rule| mask.or(rule.mask.clone()))
    }
}
