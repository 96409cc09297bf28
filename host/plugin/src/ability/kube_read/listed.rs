//! What a query found, in order, so that its pages are cut from one list.

use std::sync::Arc;

use pintle_api::Object;

use crate::{
    bindings::pintle::plugin::types::ObjectQuery,
    mask::{FieldPath, Mask},
};

/// Objects of several lists, each with what may be shown of it. Most have one of few masks.
#[derive(Default)]
pub(super) struct Gathered {
    objects: Vec<(Arc<Object>, usize)>,
    masks: Vec<Mask>,
}

/// What a query found, for as long as its pages are asked for.
pub(crate) struct Listed {
    query: ObjectQuery,
    fields: Vec<String>,
    gathered: Gathered,
}

// === impl Gathered ===

impl Gathered {
    /// Adds objects, of which the fields of the mask are shown.
    pub(super) fn add_all(&mut self, objects: impl IntoIterator<Item = Arc<Object>>, mask: &Mask) {
        let mask = self.number(mask);
        self.objects.extend(objects.into_iter().map(|object| (object, mask)));
    }

    /// The same in the order of namespace and name, each object once with all that is shown of it, and of that only
    /// what was asked for.
    pub(super) fn narrowed(mut self, fields: &[FieldPath]) -> Self {
        // A list is in this order mostly, and one list has each object once.
        if !self.is_in_order() {
            self.merge();
        }
        self.masks.iter_mut().for_each(|mask| *mask = mask.narrowed(fields));
        self
    }

    fn is_in_order(&self) -> bool {
        let mut places = self.objects.iter().map(|(object, _)| place(object));
        let Some(first) = places.next() else { return true };
        places.try_fold(first, |before, place| (before < place).then_some(place)).is_some()
    }

    fn merge(&mut self) {
        self.objects.sort_by(|(one, _), (other, _)| place(one).cmp(&place(other)));
        let mut merged: Vec<(Arc<Object>, usize)> = Vec::with_capacity(self.objects.len());
        for (object, mask) in std::mem::take(&mut self.objects) {
            match merged.last_mut().filter(|(last, _)| place(last) == place(&object)) {
                Some((_, known)) if *known == mask => {}
                Some((_, known)) => *known = self.both(*known, mask),
                None => merged.push((object, mask)),
            }
        }
        self.objects = merged;
    }

    fn number(&mut self, mask: &Mask) -> usize {
        let known = self.masks.iter().rposition(|known| known == mask);
        known.unwrap_or_else(|| {
            self.masks.push(mask.clone());
            self.masks.len() - 1
        })
    }

    fn both(&mut self, one: usize, other: usize) -> usize {
        let mask = |at: usize| self.masks.get(at).cloned().unwrap_or_else(Mask::nothing);
        let both = mask(one).or(mask(other));
        self.number(&both)
    }
}

fn place(object: &Object) -> (&str, &str) {
    (object.namespace().unwrap_or_default(), object.name())
}

// === impl Listed ===

impl Listed {
    pub(super) fn new(query: &ObjectQuery, fields: &[String], gathered: Gathered) -> Self {
        Self { query: query.clone(), fields: fields.to_vec(), gathered }
    }

    /// True for a page of this very question.
    pub(crate) fn is_of(&self, query: &ObjectQuery, fields: &[String]) -> bool {
        let ObjectQuery { api_version, kind, namespace, name, label_selector } = &self.query;
        *api_version == query.api_version
            && *kind == query.kind
            && *namespace == query.namespace
            && *name == query.name
            && *label_selector == query.label_selector
            && self.fields == fields
    }

    pub(super) fn len(&self) -> usize {
        self.gathered.objects.len()
    }

    /// The objects after so many, each with what is shown of it.
    pub(super) fn from(&self, skip: usize) -> impl Iterator<Item = (&Object, &Mask)> {
        let Gathered { objects, masks } = &self.gathered;
        objects.iter().skip(skip).filter_map(|(object, mask)| Some((&**object, masks.get(*mask)?)))
    }
}
