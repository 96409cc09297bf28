//! The release's namespace: there before anything else, never taken over.

use pintle_api::{Answer, Blocker, Object, ObjectRef, names};

use super::Run;
use crate::{Flavor, Step, compare::terminating};

impl Run<'_> {
    pub(super) fn visit_namespace(&mut self) {
        let name = self.input.release.namespace.clone();
        let target = ObjectRef::new("v1", "Namespace", &name);
        let is_special_resource = matches!(self.input.release.flavor, Flavor::SpecialResource { .. });
        let makes_it = is_special_resource || self.input.release.policy.makes_namespace;
        match self.input.facts.get(&target) {
            Answer::Found(live) if live.is_terminating() => self.stop(namespace_terminating(&live)),
            Answer::Found(live) => self.mark_namespace(is_special_resource, &live),
            Answer::NotYet => {
                self.held.insert(String::new());
            }
            Answer::Missing if makes_it => {
                let blocker = match self.input.answers.refusals.get(&target) {
                    Some(refusal) => Blocker::new(refusal.cause.reason(), &refusal.message),
                    None => {
                        self.steps
                            .push(Step::CreateNamespace(self.new_namespace(&name, is_special_resource)));
                        Blocker::new("NamespaceMissing", "it is being made")
                    }
                };
                self.stop(blocker.on(target));
            }
            Answer::Missing | Answer::KindUnknown => {
                let message = format!("namespace {name} is not there; create it");
                self.stop(Blocker::new("NamespaceMissing", message).on(target));
            }
            Answer::Denied(why) => self.stop(Blocker::new("Forbidden", why).on(target)),
        }
    }

    fn stop(&mut self, blocker: Blocker) {
        self.held.insert(String::new());
        self.prelude.push(blocker);
    }

    /// SRO's label, as a share of ours in an object that is not ours.
    fn mark_namespace(&mut self, is_special_resource: bool, live: &Object) {
        if let Some(refusal) = self.input.answers.refusals.get(&live.reference()) {
            self.prelude.push(Blocker::new(refusal.cause.reason(), &refusal.message).on(live.reference()));
        } else if is_special_resource && live.label(names::SRO_OWNED) != Some("true") {
            let labels = vec![(names::SRO_OWNED.to_owned(), Some("true".to_owned()))];
            self.steps.push(Step::Label { target: live.reference(), labels });
        }
    }

    fn new_namespace(&self, name: &str, is_special_resource: bool) -> Object {
        let mut object = Object::default_of("v1", "Namespace", name);
        if is_special_resource {
            object.set_label(names::SRO_OWNED, "true");
            object.set_label("openshift.io/cluster-monitoring", "true");
        }
        object.set_annotation(names::CREATED_BY, &self.input.release.owner_uid);
        object.set_annotation(names::OWNED_BY, &self.input.release.owner.to_string());
        object
    }
}

/// What the namespace controller says that it waits for, where it says so.
fn namespace_terminating(live: &Object) -> Blocker {
    let conditions = live.at("/status/conditions").and_then(serde_json::Value::as_array);
    let text = |condition: &serde_json::Value, field: &str| {
        condition.get(field).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    };
    let met = conditions.into_iter().flatten().filter(|condition| text(condition, "status") == "True");
    let said: Vec<_> = met.map(|condition| text(condition, "message")).collect();
    let mut blocker = terminating(live);
    blocker.message = "it is being deleted; it is made anew once it is gone".to_owned();
    if !said.is_empty() {
        blocker.message.push_str(&format!(". What holds it: {}", said.join("; ")));
    }
    blocker
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_namespace_that_is_being_deleted_says_what_holds_it() {
        let namespace = |conditions| {
            let json = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"},
                "status": {"conditions": conditions}});
            namespace_terminating(&Object::new(json).unwrap()).message
        };
        let held = namespace(json!([
            {"type": "NamespaceContentRemaining", "status": "True", "message": "configmaps. has 1"},
            {"type": "NamespaceDeletionContentFailure", "status": "False", "message": "All content deleted"}
        ]));
        assert!(held.ends_with("What holds it: configmaps. has 1"), "{held}");
        assert!(!namespace(json!([])).contains("What holds it"));
    }
}
