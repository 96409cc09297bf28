//! Objects of a plugin's own: made, repaired, pruned; and fields of objects that others own.

use std::sync::Arc;

use pintle_api::{
    Answer, Blocker, Object, ObjectRef, Verdict, names,
    watch::{Adopt, DriftIgnore},
};
use serde_json::{Map, Value};

use super::{Held, Owned, Part, SiteMemory, Wanted, carry::Carried, visit::Visitor};
use crate::{
    Apply, ApplyMode, Delete, Marks, Step,
    compare::{Standing, compare_known, fields_mark_of, kind_unknown, owned_by_other, terminating},
    fnv1a, held_mark, rendered_mark, verdict_of,
};

/// Mark of fields that were given up.
const GIVEN_UP: &str = "-";

impl Visitor<'_, '_> {
    /// Brings one object to where it was written down that it shall be. False when nothing is left of it.
    pub(super) fn carry_object(&mut self, owned: &mut Owned, manager: &str, carried: &mut Carried) -> bool {
        if owned.is_leaving {
            return if owned.is_part {
                self.give_up(owned, manager, carried)
            } else {
                self.drop_object(owned, carried)
            };
        }
        if owned.is_begun {
            if owned.is_part {
                self.set_part(owned, manager, carried);
            } else {
                self.put_whole(owned, carried);
            }
        }
        true
    }

    fn put_whole(&mut self, owned: &mut Owned, carried: &mut Carried) {
        let Some(body) = owned.body.clone().and_then(|body| Object::new(body).ok()) else { return };
        let mark = rendered_mark(&body);
        if let Some(applied) = self.applied(&owned.object, "", &mark) {
            return owned.settle(mark, applied.fields.clone());
        }
        if let Some(refusal) = self.input.answers.refusals.get(&owned.object) {
            return carried.add(verdict_of(refusal, &owned.object));
        }
        match compare_known(self.input, &body, Some((&owned.rendered, &owned.fields))) {
            Standing::InSync(live) => {
                owned.settle(mark, held_mark(&live, &body, &self.input.release.policy.ignore));
            }
            // Differences that are to be left alone are left here too.
            Standing::Left(..) | Standing::Remove => {}
            Standing::NotYet => carried.is_busy = true,
            Standing::Held(verdict) => carried.add(verdict),
            Standing::Write(ApplyMode::Adopt) if self.input.release.adopt != Adopt::Force => {
                if let Answer::Found(live) = self.live(&owned.object) {
                    let nobody = "somebody who did not mark it";
                    carried.add(Verdict::fatal(owned_by_other(&live, nobody)));
                }
            }
            Standing::Write(mode) => {
                carried.is_busy = true;
                let (state, pool) = (String::new(), String::new());
                self.steps.push(Step::Apply(Apply {
                    object: body,
                    mode,
                    state,
                    pool,
                    rank: 0,
                    is_inventory: false,
                    whole: None,
                    repairs: None,
                }));
            }
        }
    }

    fn set_part(&mut self, owned: &mut Owned, manager: &str, carried: &mut Carried) {
        let Some(body) = owned.body.clone().and_then(|body| Object::new(body).ok()) else { return };
        let mark = rendered_mark(&body);
        if let Some(refusal) = self.input.answers.refusals.get(&owned.object) {
            return carried.add(verdict_of(refusal, &owned.object));
        }
        if let Some(applied) = self.applied(&owned.object, manager, &mark) {
            return owned.settle(mark, applied.fields.clone());
        }
        match self.live(&owned.object) {
            Answer::Found(live) => {
                carried.is_busy = true;
                let uid = live.uid().unwrap_or_default().to_owned();
                self.steps.push(Step::Part(Part { manager: manager.to_owned(), object: body, uid, mark }));
            }
            Answer::Missing => {
                let message = "it is not there; the plugin sets fields of it once it is";
                carried.add(Verdict::pending(Blocker::new("PartMissing", message).on(owned.object.clone())));
            }
            Answer::KindUnknown => carried.add(Verdict::pending(kind_unknown(&body))),
            Answer::Denied(why) => carried.deny(&owned.object, why),
            Answer::NotYet => carried.is_busy = true,
        }
    }

    /// Deletes an object that left the set. On the way out it must be gone before anything goes on.
    fn drop_object(&mut self, owned: &Owned, carried: &mut Carried) -> bool {
        match self.live(&owned.object) {
            Answer::Missing | Answer::KindUnknown => false,
            Answer::Found(live) if !self.may_drop(&live) => false,
            Answer::Found(live) if live.is_terminating() => {
                if self.is_removal {
                    carried.add(Verdict::pending(terminating(&live)));
                }
                self.is_removal
            }
            Answer::Found(live) => {
                if let Some(refusal) = self.input.answers.refusals.get(&owned.object) {
                    carried.add(verdict_of(refusal, &owned.object));
                } else {
                    carried.is_busy = true;
                    let (target, uid) = (owned.object.clone(), live.uid().map(str::to_owned));
                    self.steps.push(Step::Delete(Delete { target, uid, reason: "HookDone" }));
                }
                true
            }
            Answer::NotYet => {
                carried.is_busy = true;
                true
            }
            Answer::Denied(why) => {
                carried.deny(&owned.object, why);
                true
            }
        }
    }

    fn may_drop(&self, live: &Object) -> bool {
        let is_ours = live.label(names::OWNER) == Some(&self.input.release.owner_uid);
        is_ours && !is_kept(live)
    }

    /// Gives up the fields of a part. The object stays, whatever becomes of it.
    fn give_up(&mut self, owned: &Owned, manager: &str, carried: &mut Carried) -> bool {
        match self.live(&owned.object) {
            Answer::Missing | Answer::KindUnknown => false,
            Answer::Found(live) => {
                let holds = !fields_mark_of(&live, manager).is_empty();
                if !holds || self.applied(&owned.object, manager, GIVEN_UP).is_some() {
                    return false;
                }
                if let Some(refusal) = self.input.answers.refusals.get(&owned.object) {
                    carried.add(verdict_of(refusal, &owned.object));
                    return true;
                }
                carried.is_busy = true;
                let ObjectRef { api_version, kind, namespace, name } = &owned.object;
                let mut object = Object::default_of(api_version, kind, name);
                if let Some(namespace) = namespace {
                    let namespace = Value::from(namespace.as_str());
                    object.map_mut(&["metadata"]).insert("namespace".to_owned(), namespace);
                }
                let uid = live.uid().unwrap_or_default().to_owned();
                let mark = GIVEN_UP.to_owned();
                self.steps.push(Step::Part(Part { manager: manager.to_owned(), object, uid, mark }));
                true
            }
            Answer::NotYet => {
                carried.is_busy = true;
                true
            }
            Answer::Denied(why) => {
                carried.deny(&owned.object, why);
                true
            }
        }
    }

    /// Writes down the set of objects from now on. What is not in it leaves.
    pub(super) fn write_down(&self, memory: &mut SiteMemory, want: &[&Wanted]) {
        for owned in &mut memory.owned {
            let stays = |wanted: &&&Wanted| {
                wanted.object.reference() == owned.object && wanted.is_part == owned.is_part
            };
            if !want.iter().any(|wanted| stays(&wanted)) {
                owned.leave();
            }
        }
        let manager = memory.site.manager(&self.input.release.owner_uid);
        for wanted in want {
            let reference = wanted.object.reference();
            let found = memory
                .owned
                .iter_mut()
                .find(|owned| owned.object == reference && owned.is_part == wanted.is_part);
            match found {
                None => memory.owned.push(Owned::begun(wanted)),
                Some(owned) if self.is_as_wanted(owned, wanted, &manager) => {
                    owned.key.clone_from(&wanted.key)
                }
                Some(owned) => {
                    let (rendered, fields) = (owned.rendered.clone(), owned.fields.clone());
                    *owned = Owned { rendered, fields, ..Owned::begun(wanted) };
                }
            }
        }
    }

    fn is_as_wanted(&self, owned: &Owned, wanted: &Wanted, manager: &str) -> bool {
        if owned.is_leaving {
            return false;
        }
        let mark = rendered_mark(&wanted.object);
        if owned.is_begun {
            let body = owned.body.clone().and_then(|body| Object::new(body).ok());
            return body.is_some_and(|body| rendered_mark(&body) == mark);
        }
        let manager = if owned.is_part { manager } else { names::MANAGER };
        let is_in_place = |live: Arc<Object>| fields_mark_of(&live, manager) == owned.fields;
        owned.rendered == mark && self.live(&owned.object).found().is_some_and(is_in_place)
    }

    /// Its own objects as they are in the cluster; nothing while that is not known.
    pub(super) fn held(&self, memory: Option<&SiteMemory>) -> Option<Vec<Held>> {
        let mut all = Vec::new();
        for owned in memory.into_iter().flat_map(|memory| &memory.owned).filter(|owned| !owned.is_leaving) {
            match self.live(&owned.object) {
                Answer::NotYet => return None,
                Answer::Found(live) => {
                    let object = if owned.is_part { Arc::new(part_of(&live, owned)) } else { live };
                    all.push(Held { key: owned.key.clone(), is_part: owned.is_part, object });
                }
                Answer::Missing | Answer::KindUnknown | Answer::Denied(_) => {}
            }
        }
        Some(all)
    }

    /// How it was when this pass applied what has the mark.
    fn applied(&self, object: &ObjectRef, manager: &str, mark: &str) -> Option<&Marks> {
        let key = (object.clone(), manager.to_owned());
        self.input.answers.applied.get(&key).filter(|applied| applied.rendered == mark)
    }

    pub(super) fn live(&self, target: &ObjectRef) -> Answer<Arc<Object>> {
        let seen = self.input.facts.get(target);
        match self.input.answers.written.get(target) {
            // The caches see an answer as soon as a write has it; only before they follow the kind are they behind.
            Some(written) if !matches!(seen, Answer::Found(_)) => Answer::Found(Arc::clone(written)),
            _ => seen,
        }
    }
}

/// An annotation keeps it when everything else of a hook goes.
pub(super) fn is_kept(object: &Object) -> bool {
    object.annotation(names::HELM_RESOURCE_POLICY) == Some("keep")
}

/// Mark of objects as they are in the cluster.
pub(super) fn mark_of(held: &[Held]) -> u64 {
    let texts = held.iter().map(|held| {
        let object = &held.object;
        let version = if held.is_part {
            rendered_mark(object)
        } else {
            object.resource_version().unwrap_or_default().to_owned()
        };
        format!("{}|{}|{version}", held.key, object.uid().unwrap_or_default())
    });
    fnv1a(texts.collect::<Vec<_>>().join("|").as_bytes())
}

/// The fields of an object that a plugin set: the rest of it was not granted.
fn part_of(live: &Object, owned: &Owned) -> Object {
    let Some(Value::Object(body)) = &owned.body else { return live.clone() };
    let mut map = project(live.json(), body);
    for field in ["apiVersion", "kind"] {
        map.insert(field.to_owned(), live.json().get(field).cloned().unwrap_or_default());
    }
    Object::new(Value::Object(map)).unwrap_or_else(|_| live.clone())
}

fn project(live: &Map<String, Value>, body: &Map<String, Value>) -> Map<String, Value> {
    let kept = body.iter().filter_map(|(key, wanted)| {
        let value = match (live.get(key)?, wanted) {
            (Value::Object(live), Value::Object(wanted)) => Value::Object(project(live, wanted)),
            (live, _) => live.clone(),
        };
        Some((key.clone(), value))
    });
    kept.collect()
}

// === impl Marks ===

impl Marks {
    /// Of an object of ours, whatever is ignored in it.
    #[must_use]
    pub fn of_object(applied: &Object, rendered: &Object, rules: &[DriftIgnore]) -> Self {
        Self { rendered: rendered_mark(rendered), fields: held_mark(applied, rendered, rules) }
    }

    /// Of the fields of a part.
    #[must_use]
    pub fn of_part(applied: &Object, part: &Part) -> Self {
        Self { rendered: part.mark.clone(), fields: fields_mark_of(applied, &part.manager) }
    }
}

// === impl Owned ===

impl Owned {
    fn settle(&mut self, rendered: String, fields: String) {
        (self.rendered, self.fields, self.is_begun) = (rendered, fields, false);
        if !self.is_part {
            self.body = None;
        }
    }

    pub(super) fn leave(&mut self) {
        (self.is_leaving, self.is_begun) = (true, false);
        self.body = None;
    }
}
