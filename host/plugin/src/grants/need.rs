//! What a manifest asks for, compared with what was granted.

use pintle_api::plugin::{ActionGrant, LogGrant, ObjectGrant, PartGrant, ReadGrant};

use super::{Granted, place::Place};
use crate::mask::{FieldPath, Mask};

impl Granted {
    /// True when some grant covers all that a manifest asks to read. The label selector is left aside:
    /// a narrower one is the administrator's choice.
    pub(crate) fn covers_read(&self, need: &ReadGrant) -> bool {
        all(&need.api_groups, &need.kinds, |group, kind| {
            let rules = self.reads.iter();
            let rules = rules.filter(|rule| {
                rule.place.is_about(group, kind) && is_in(&rule.place, &need.namespaces, &need.names)
            });
            let mask = rules.fold(Mask::nothing(), |mask, rule| mask.or(rule.mask.clone()));
            shows(&mask, &need.fields)
        })
    }

    /// True when some grant covers the logs that a manifest asks for.
    pub(crate) fn covers_logs(&self, need: &LogGrant) -> bool {
        self.logs.iter().any(|rule| is_within(&need.namespaces, &rule.namespaces))
    }

    /// True when some grant covers the objects that a manifest says it returns.
    pub(crate) fn covers_objects(&self, need: &ObjectGrant) -> bool {
        all(&need.api_groups, &need.kinds, |group, kind| {
            let mut places = self.objects.iter();
            places.any(|place| place.is_about(group, kind) && is_in(place, &need.namespaces, &need.names))
        })
    }

    /// True when some grant covers the fields that a manifest says it sets.
    pub(crate) fn covers_parts(&self, need: &PartGrant) -> bool {
        all(&need.api_groups, &need.kinds, |group, kind| {
            let rules = self.parts.iter();
            let rules = rules.filter(|rule| {
                rule.place.is_about(group, kind) && is_in(&rule.place, &need.namespaces, &need.names)
            });
            let mask = rules.fold(Mask::nothing(), |mask, rule| mask.or(rule.mask.clone()));
            shows(&mask, &need.fields)
        })
    }

    /// True when some grant covers what a manifest wants done.
    pub(crate) fn covers_actions(&self, need: &ActionGrant) -> bool {
        all(&need.api_groups, &need.kinds, |group, kind| {
            let has = |verb| {
                self.actions.iter().any(|rule| {
                    rule.verbs.contains(verb)
                        && rule.place.is_about(group, kind)
                        && is_in(&rule.place, &need.namespaces, &need.names)
                })
            };
            need.verbs.iter().all(has)
        })
    }

    /// True when some grant covers a reference or a pattern of images.
    pub(crate) fn covers_image(&self, need: &str) -> bool {
        self.images.iter().any(|granted| granted.covers(need))
    }
}

fn all(groups: &[String], kinds: &[String], covers: impl Fn(&str, &str) -> bool) -> bool {
    groups.iter().all(|group| kinds.iter().all(|kind| covers(group, kind)))
}

fn shows(mask: &Mask, fields: &[String]) -> bool {
    match FieldPath::parse_all(fields) {
        Ok(fields) if !fields.is_empty() => fields.iter().all(|field| mask.covers(field)),
        _ => *mask == Mask::Whole,
    }
}

fn is_in(place: &Place, namespaces: &[String], names: &[String]) -> bool {
    is_within(namespaces, &place.namespaces) && is_within(names, &place.names)
}

/// True when every wanted entry is given; an empty list means all of them.
fn is_within(wanted: &[String], given: &[String]) -> bool {
    given.is_empty() || (!wanted.is_empty() && wanted.iter().all(|one| given.contains(one)))
}
