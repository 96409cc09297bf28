//! What one call may return: objects, parts of objects, actions; and the images it may look up.

use pintle_api::{
    Gvk, Object, ObjectRef,
    plugin::{ActionVerb, Identity},
};
use serde_json::{Map, Value};

use super::{
    Denial, Scope, is_reference,
    place::{Place, is_reserved},
};
use crate::mask::Mask;

/// The group whose kinds give rights away.
const RBAC: &str = "rbac.authorization.k8s.io";

impl Scope {
    /// Whose rights a whole object is made with.
    ///
    /// # Errors
    /// When no grant gives it; kinds of ours are never given.
    pub(crate) fn check_object(&self, object: &Object) -> Result<Identity, Denial> {
        let gvk = object.gvk();
        self.refuse_ours(&gvk)?;
        let rules = self.granted.objects.iter();
        let found = rules.filter(|place| self.is_at(place, &gvk, object)).map(|place| place.identity).max();
        found.ok_or_else(|| self.deny("objects", &gvk, Some(self.namespace_of(object)), ""))
    }

    /// Whether what was rendered as `before` may become `after`: an object that stays the same one may
    /// change, unless it gives rights away; anything else is a new object.
    ///
    /// # Errors
    /// When a grant is missing.
    pub(crate) fn check_edit(&self, before: &Object, after: &Object) -> Result<(), Denial> {
        let gvk = after.gvk();
        self.refuse_ours(&gvk)?;
        let is_same = gvk == before.gvk()
            && after.name() == before.name()
            && self.namespace_of(after) == self.namespace_of(before);
        if is_same && (gvk.group != RBAC || before == after) {
            return Ok(());
        }
        self.check_object(after).map(|_| ())
    }

    /// Whose rights fields of an object are set with.
    ///
    /// # Errors
    /// When no grant gives one of the fields.
    pub(crate) fn check_part(&self, object: &Object) -> Result<Identity, Denial> {
        let gvk = object.gvk();
        self.refuse_ours(&gvk)?;
        let rules = self.granted.parts.iter();
        let rules: Vec<_> = rules.filter(|rule| self.is_at(&rule.place, &gvk, object)).collect();
        let mask = rules.iter().fold(Mask::nothing(), |mask, rule| mask.or(rule.mask.clone()));
        match mask.first_beyond(&without_names(object)) {
            None if rules.is_empty() => Err(self.deny("parts", &gvk, object.namespace(), "")),
            None => Ok(rules.iter().map(|rule| rule.place.identity).max().unwrap_or_default()),
            Some(path) => Err(self.deny("parts", &gvk, object.namespace(), &format!(", fields: [{path}]"))),
        }
    }

    /// Whose rights something is done to an object with.
    ///
    /// # Errors
    /// When no grant gives it.
    pub(crate) fn check_action(
        &self,
        (verb, word): (ActionVerb, &str),
        target: &ObjectRef,
    ) -> Result<Identity, Denial> {
        let gvk = target.gvk();
        self.refuse_ours(&gvk)?;
        let namespace = target.namespace.as_deref();
        let rules = self.granted.actions.iter().filter(|rule| {
            rule.verbs.contains(&verb)
                && rule.place.is_about(&gvk.group, &gvk.kind)
                && self.is_in(&rule.place, namespace, &target.name)
        });
        let found = rules.map(|rule| rule.place.identity).max();
        found.ok_or_else(|| self.deny("actions", &gvk, namespace, &format!(", verbs: [{word}]")))
    }

    /// Whether an image may be looked up; asked before its name goes anywhere.
    ///
    /// # Errors
    /// When it is no reference, or no grant is about it.
    pub(crate) fn check_image(&self, reference: &str) -> Result<(), Denial> {
        let plugin = &self.plugin;
        if !is_reference(reference) {
            return Err(Denial(format!(
                "what Plugin {plugin} asks for is no reference that names its registry, such as \
                 registry.example/vendor/driver:1.0"
            )));
        }
        if self.granted.images.iter().any(|pattern| pattern.matches(reference)) {
            return Ok(());
        }
        Err(Denial(format!(
            "the image is not granted; this line under spec.grants.images of Plugin {plugin} would: \
             - {reference}"
        )))
    }

    /// The namespace an object will be in: the release's where it names none.
    fn namespace_of<'a>(&'a self, object: &'a Object) -> &'a str {
        object.namespace().unwrap_or(&self.namespace)
    }

    fn is_at(&self, place: &Place, gvk: &Gvk, object: &Object) -> bool {
        place.is_about(&gvk.group, &gvk.kind)
            && self.is_in(place, Some(self.namespace_of(object)), object.name())
    }

    /// A plugin that could write these could grant itself rights.
    fn refuse_ours(&self, gvk: &Gvk) -> Result<(), Denial> {
        if is_reserved(&gvk.group) {
            let plugin = &self.plugin;
            return Err(Denial(format!(
                "{gvk} decides about rights, so no plugin may return it; Plugin {plugin} did"
            )));
        }
        Ok(())
    }
}

/// The fields that an object sets, without those that only name it.
fn without_names(object: &Object) -> Map<String, Value> {
    let mut set = object.json().clone();
    set.remove("apiVersion");
    set.remove("kind");
    if let Some(metadata) = set.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("name");
        metadata.remove("namespace");
        if metadata.is_empty() {
            set.remove("metadata");
        }
    }
    set
}

#[cfg(test)]
mod tests;
