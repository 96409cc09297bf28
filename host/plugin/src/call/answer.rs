//! What a guest returned, checked against the contract and cleaned for people.

mod objects;

use std::{collections::BTreeSet, time::Duration};

use pintle_api::{Blocker, ObjectRef, Query, Read, Verdict, plugin::ActionVerb};
use serde_json::{Map, Value};

use super::{
    Action, Event, Hold, PluginCondition, Report, Save,
    failure::{CallFailure, Retry},
};
use crate::{
    ability::kube_read::reference,
    bindings::pintle::plugin::types,
    grants::{Denial, Scope},
    limits,
    text::{clean, reason, said},
};

/// What answers are checked against.
pub(crate) struct Rules<'a> {
    /// Grants and objects of the release.
    pub(crate) scope: &'a Scope,
    /// What a blocker is about that names nothing.
    pub(crate) target: ObjectRef,
}

pub(crate) type Checking<T> = Result<T, CallFailure>;

impl Rules<'_> {
    /// Ready, or pending with what is waited for.
    pub(crate) fn verdict(&self, verdict: types::Verdict) -> Checking<(Verdict, Hold)> {
        let mut hold = match verdict {
            types::Verdict::Ready => return Ok((Verdict::Ready, Hold::default())),
            types::Verdict::Pending(pending) => self.hold(pending)?,
        };
        Ok((Verdict::Pending(std::mem::take(&mut hold.blockers)), hold))
    }

    /// What is waited for: never without a blocker.
    pub(crate) fn hold(&self, pending: types::Pending) -> Checking<Hold> {
        let types::Pending { blockers, watch, recheck_after_ms, progress } = pending;
        Ok(Hold {
            blockers: self.at_least_one(self.blockers(blockers)?),
            watch: self.watches(watch)?,
            recheck: recheck_after_ms
                .map(|millis| Duration::from_millis(millis).clamp(limits::RECHECK_MIN, limits::RECHECK_MAX)),
            progress: progress.map(|percent| percent.min(100)),
        })
    }

    /// The failure that a guest reports itself.
    pub(crate) fn failure(&self, failure: types::Failure) -> CallFailure {
        let types::Failure { retry, message, blockers, report } = failure;
        let taken = self.blockers(blockers).and_then(|blockers| Ok((blockers, self.report(report)?)));
        let (blockers, report) = match taken {
            Ok(taken) => taken,
            Err(invalid) => return invalid,
        };
        let retry = match retry {
            types::Retry::WhenInputsChange => Retry::WhenInputsChange,
            types::Retry::WithBackOff => Retry::WithBackOff,
            types::Retry::Never => Retry::Never,
        };
        CallFailure::Guest {
            retry,
            message: clean(&message, limits::MESSAGE),
            blockers,
            report: Box::new(report),
        }
    }

    fn at_least_one(&self, blockers: Vec<Blocker>) -> Vec<Blocker> {
        if !blockers.is_empty() {
            return blockers;
        }
        let message = said(&self.scope.plugin, "says that it is not ready, and not why");
        vec![Blocker::new("PluginPending", message).on(self.target.clone())]
    }

    fn blockers(&self, blockers: Vec<types::Blocker>) -> Checking<Vec<Blocker>> {
        let more = blockers.len().saturating_sub(limits::BLOCKERS);
        let kept = if more > 0 { limits::BLOCKERS - 1 } else { blockers.len() };
        let mut checked: Vec<Blocker> =
            blockers.into_iter().take(kept).map(|blocker| self.blocker(blocker)).collect::<Checking<_>>()?;
        if more > 0 {
            let message = said(&self.scope.plugin, &format!("waits for {} more", more + 1));
            checked.push(Blocker::new("More", message).on(self.target.clone()));
        }
        Ok(checked)
    }

    fn blocker(&self, blocker: types::Blocker) -> Checking<Blocker> {
        let types::Blocker { object, node, reason: word, message } = blocker;
        let object = object.map(|object| named(object, "a blocker")).transpose()?;
        let node = node.filter(|node| !node.is_empty()).map(|node| clean(&node, limits::NAME));
        let object = object.or_else(|| node.is_none().then(|| self.target.clone()));
        Ok(Blocker {
            object,
            node,
            reason: reason(&word),
            message: said(&self.scope.plugin, &message),
            since: None,
        })
    }

    fn watches(&self, watch: Vec<types::ObjectQuery>) -> Checking<Vec<Read>> {
        at_most(watch.len(), limits::WATCHES, "watches")?;
        let watches = watch.into_iter().map(|query| self.watch(query));
        watches.collect::<Checking<Vec<_>>>().map(|watches| watches.into_iter().flatten().collect())
    }

    fn watch(&self, query: types::ObjectQuery) -> Checking<Vec<Read>> {
        let types::ObjectQuery { api_version, kind, namespace, name, label_selector } = query;
        if let Some(name) = name {
            let target = named(types::ObjectRef { api_version, kind, namespace, name }, "a watch")?;
            self.scope.permit(&target, &[]).map_err(refused)?;
            return Ok(vec![Read::Get(target)]);
        }
        let query = Query { api_version, kind, namespace, label_selector };
        let listings = self.scope.listings(&query, &[]).map_err(refused)?;
        let listings = listings.into_iter().map(|listing| Read::List(listing.query));
        let own = self.scope.own_of(&query).cloned().map(Read::Get);
        Ok(listings.chain(own).collect())
    }

    /// What the plugin wants told, kept and done.
    pub(crate) fn report(&self, report: types::Report) -> Checking<Report> {
        let types::Report { conditions, events, actions, status, save, extra } = report;
        at_most(conditions.len(), limits::CONDITIONS, "conditions")?;
        at_most(events.len(), limits::EVENTS, "events")?;
        at_most(actions.len(), limits::ACTIONS, "actions")?;
        self.warn_of_unknown(extra.as_deref())?;
        let conditions = conditions.into_iter().map(|condition| self.condition(condition));
        let events = events.into_iter().map(|event| self.event(event));
        Ok(Report {
            conditions: conditions.collect::<Checking<_>>()?,
            events: events.collect::<Checking<_>>()?,
            actions: self.actions(actions)?,
            status: status.map(|status| object(&status, limits::STATUS, "status")).transpose()?,
            save: saved(save.as_deref())?,
        })
    }

    fn actions(&self, actions: Vec<types::Action>) -> Checking<Vec<Action>> {
        let actions = actions.into_iter().map(|action| self.action(action));
        let actions = actions.collect::<Checking<Vec<_>>>()?;
        let mut keys = BTreeSet::new();
        match actions.iter().find(|action| !keys.insert(action.key.as_str())) {
            Some(twice) => Err(invalid(format!("two actions have the key {}", twice.key))),
            None => Ok(actions),
        }
    }

    fn action(&self, action: types::Action) -> Checking<Action> {
        let types::Action { key, verb: word, target, arguments } = action;
        let key = key_of(key, "an action")?;
        let found = ActionVerb::ALL.into_iter().find(|(_, name)| *name == word);
        let Some((verb, word)) = found else {
            let word = clean(&word, limits::REASON);
            return Err(invalid(format!("{word:?} is nothing that this host can do")));
        };
        let target = named(target, "an action")?;
        let identity = self.scope.check_action((verb, word), &target);
        let identity =
            identity.map_err(|Denial(why)| invalid(format!("the action {word} is refused: {why}")))?;
        let arguments = object(&arguments, limits::ARGUMENTS, "the arguments of an action")?;
        Ok(Action { key, verb, target, arguments, identity })
    }

    fn condition(&self, condition: types::Condition) -> Checking<PluginCondition> {
        let types::Condition { name, status, reason: word, message } = condition;
        let is_word = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric());
        if !is_word || name.len() > limits::REASON {
            return Err(invalid(format!("{:?} is no name of a condition", clean(&name, limits::REASON))));
        }
        Ok(PluginCondition {
            kind: format!("{}/{name}", self.scope.plugin),
            status: match status {
                types::ConditionStatus::Met => Some(true),
                types::ConditionStatus::Unmet => Some(false),
                types::ConditionStatus::Unknown => None,
            },
            reason: reason(&word),
            message: clean(&message, limits::MESSAGE),
        })
    }

    /// An event that is about a foreign object is told about the owner instead.
    fn event(&self, event: types::Event) -> Checking<Event> {
        let types::Event { kind, reason: word, message, regarding } = event;
        let regarding = regarding.map(|regarding| named(regarding, "an event")).transpose()?;
        Ok(Event {
            is_warning: matches!(kind, types::EventKind::Warning),
            reason: reason(&word),
            message: said(&self.scope.plugin, &message),
            regarding: regarding.filter(|regarding| self.scope.own.contains(regarding)),
        })
    }

    fn warn_of_unknown(&self, extra: Option<&str>) -> Checking<()> {
        let Some(extra) = extra else { return Ok(()) };
        for key in object(extra, limits::STATUS, "extra")?.keys() {
            let key = clean(key, limits::NAME);
            tracing::warn!(target: "plugin", plugin = &*self.scope.plugin, key, "this host knows no such key in extra");
        }
        Ok(())
    }
}

fn saved(save: Option<&str>) -> Checking<Save> {
    let Some(save) = save else { return Ok(Save::Keep) };
    Ok(match json(save, limits::SAVE, "save")? {
        Value::Null => Save::Clear,
        value => Save::Set(value),
    })
}

/// A key that stays readable in messages, labels and logs.
fn key_of(key: String, whose: &str) -> Checking<String> {
    let is_key =
        !key.is_empty() && key.len() <= limits::NAME && key.chars().all(|letter| letter.is_ascii_graphic());
    if is_key { Ok(key) } else { Err(invalid(format!("{whose} has a key that is empty, too long or odd"))) }
}

pub(super) fn object(text: &str, most: usize, what: &str) -> Checking<Map<String, Value>> {
    match json(text, most, what)? {
        Value::Object(map) => Ok(map),
        _ => Err(invalid(format!("{what} is not a JSON object"))),
    }
}

pub(super) fn json(text: &str, most: usize, what: &str) -> Checking<Value> {
    if text.len() > most {
        return Err(invalid(format!("{what} is {} bytes, at most {most} are taken", text.len())));
    }
    serde_json::from_str(text).map_err(|error| invalid(format!("{what} is not JSON: {error}")))
}

fn named(target: types::ObjectRef, whose: &str) -> Checking<ObjectRef> {
    let target = reference(target);
    let ObjectRef { api_version, kind, namespace, name } = &target;
    let parts = [Some(api_version), Some(kind), namespace.as_ref(), Some(name)];
    if parts.into_iter().flatten().all(|part| is_name(part)) {
        return Ok(target);
    }
    Err(invalid(format!("{whose} names an object with an empty, too long or impossible part")))
}

fn is_name(part: &str) -> bool {
    let letters =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '/' | ':' | '_');
    !part.is_empty() && part.len() <= limits::NAME && part.chars().all(letters)
}

pub(super) fn at_most(count: usize, most: usize, what: &str) -> Checking<()> {
    if count > most { Err(invalid(format!("{count} {what}, at most {most} are taken"))) } else { Ok(()) }
}

fn refused(Denial(why): Denial) -> CallFailure {
    invalid(format!("a watch is refused: {why}"))
}

pub(super) fn invalid(what: String) -> CallFailure {
    CallFailure::InvalidAnswer(what)
}

#[cfg(test)]
mod tests;
