//! Objects that a guest returned: whole ones, and parts of those that exist.

use std::{collections::BTreeSet, sync::Arc};

use pintle_api::{Object, plugin::Identity};

use super::{Checking, Rules, at_most, invalid, is_name, json, key_of};
use crate::{
    bindings::pintle::plugin::types,
    call::{Keyed, Ownership},
    grants::Denial,
    limits,
    seal::Seal,
};

impl Rules<'_> {
    /// The set of objects that a plugin wants there to be, each within the grants.
    pub(crate) fn objects(&self, want: Vec<types::KeyedObject>, seal: &Seal) -> Checking<Vec<Keyed>> {
        at_most(want.len(), limits::OBJECTS, "objects")?;
        let bytes: usize = want.iter().map(|keyed| keyed.object.len()).sum();
        at_most(bytes, limits::OUTPUT, "bytes of objects")?;
        let keyed = want.into_iter().map(|keyed| self.keyed(keyed, seal));
        let keyed = keyed.collect::<Checking<Vec<_>>>()?;
        let (mut keys, mut names) = (BTreeSet::new(), BTreeSet::new());
        for Keyed { key, object, .. } in &keyed {
            if !keys.insert(key) {
                return Err(invalid(format!("two objects have the key {key}")));
            }
            if !names.insert(object.reference()) {
                return Err(invalid(format!("{} is returned twice", object.reference())));
            }
        }
        Ok(keyed)
    }

    fn keyed(&self, keyed: types::KeyedObject, seal: &Seal) -> Checking<Keyed> {
        let types::KeyedObject { key, ownership, object } = keyed;
        let key = key_of(key, "an object")?;
        let object = parse_object(&object, &key, seal)?;
        let (ownership, identity) = match ownership {
            types::Ownership::Whole => (Ownership::Whole, self.scope.check_object(&object)),
            types::Ownership::Part => (Ownership::Part, self.scope.check_part(&object)),
        };
        let identity = identity.map_err(|denial| refused(&object, denial))?;
        Ok(Keyed { key, ownership, object: Arc::new(object), identity })
    }

    /// An object that a post-renderer made of one that was rendered, or added.
    pub(crate) fn edited(
        &self,
        before: Option<&Object>,
        after: &str,
        (key, seal): (&str, &Seal),
    ) -> Checking<(Object, Identity)> {
        let object = parse_object(after, key, seal)?;
        let identity = match before {
            Some(before) => self.scope.check_edit(before, &object).map(|()| Identity::default()),
            None => self.scope.check_object(&object),
        };
        let identity = identity.map_err(|denial| refused(&object, denial))?;
        Ok((object, identity))
    }
}

fn parse_object(text: &str, key: &str, seal: &Seal) -> Checking<Object> {
    let json = json(text, limits::OBJECT, &format!("the object {key}"))?;
    let object = Object::new(json);
    let mut object = object.map_err(|why| invalid(format!("{key} is no object: {why}")))?;
    let reference = object.reference();
    let parts = [Some(&reference.api_version), Some(&reference.kind), reference.namespace.as_ref()];
    let is_named = parts.into_iter().flatten().chain([&reference.name]).all(|part| is_name(part));
    if !is_named {
        return Err(invalid(format!("the object {key} has an empty, too long or impossible name")));
    }
    seal.open(&mut object).map_err(|why| invalid(format!("{reference} is refused: {why}")))?;
    Ok(object)
}

fn refused(object: &Object, Denial(why): Denial) -> super::CallFailure {
    invalid(format!("{} is refused: {why}", object.reference()))
}
