//! What plugins said of their own in one pass: conditions, status, events, and what they want kept.

use std::collections::{BTreeMap, BTreeSet};

use pintle_api::{Object, Timestamp, status::Condition};
use pintle_cluster::NoteKind;
use pintle_plan::{ConditionSet, Memory, Saved, fnv1a};
use pintle_plugin::{Event, PluginCondition, Report, Save, merge_patch};
use serde_json::{Map, Value, json};

use super::{component::spoken, question::Question};

/// Fields of an owner's status that no plugin may write: the host writes them.
const HOST_FIELDS: [&str; 4] = ["conditions", "observedGeneration", "states", "revision"];

/// What plugins said of their own in one pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    reports: BTreeMap<Question, Report>,
    /// Events that were not told before, with the plugin they are of.
    due: Vec<Event>,
    /// Plugins that said something once and that the release names no more.
    gone: BTreeSet<String>,
}

// === impl Said ===

impl Said {
    /// Takes over what came with an answer, or with the failure to give one. What is to be kept is in the
    /// memory from here on, so it is stored before anything of the answer is done.
    pub(crate) fn note(&mut self, question: &Question, version: &str, report: &Report, memory: &mut Memory) {
        let key = question.text();
        match &report.save {
            Save::Keep => {}
            Save::Clear => drop(memory.saved.remove(&key)),
            Save::Set(value) => {
                let is_same = memory.saved.get(&key).is_some_and(|saved| saved.value == *value);
                if !is_same {
                    let (version, value) = (version.to_owned(), value.clone());
                    memory.saved.insert(key.clone(), Saved { version, value });
                }
            }
        }
        self.note_events(&format!("{key}|{}", question.key.target), &report.events, memory);
        if !report.conditions.is_empty() || report.status.is_some() {
            memory.spoke.insert(spoken(&question.key.plugin));
        }
        self.reports.insert(question.clone(), report.clone());
    }

    /// Events are told when they come with an answer for the first time, and not with each that follows.
    fn note_events(&mut self, key: &str, events: &[Event], memory: &mut Memory) {
        if events.is_empty() {
            memory.told.remove(key);
            return;
        }
        let mark = format!("{:x}", fnv1a(format!("{events:?}").as_bytes()));
        if memory.told.get(key) != Some(&mark) {
            memory.told.insert(key.to_owned(), mark);
            self.due.extend(events.iter().cloned());
        }
    }

    /// Which plugins the release names: what others said goes, from the status and from the memory. Only
    /// plugins that are known to have spoken count: others write conditions with a slash as well.
    pub(crate) fn only(&mut self, named: &BTreeSet<String>, memory: &mut Memory) {
        let is_named = |key: &String| named.contains(key.split('|').next().unwrap_or_default());
        memory.saved.retain(|key, _| is_named(key));
        memory.told.retain(|key, _| is_named(key));
        let named: BTreeSet<String> = named.iter().map(|name| spoken(name)).collect();
        self.gone = memory.spoke.difference(&named).cloned().collect();
        memory.spoke.retain(|plugin| named.contains(plugin));
    }

    /// Events to be told at the end of the pass.
    pub(crate) fn events(&self) -> &[Event] {
        &self.due
    }

    /// Puts what was said into the status of an owner: conditions under `<plugin>/`, and the status that
    /// belongs to each plugin.
    pub(crate) fn put_into(&self, status: &mut Value, owner: &Object, now: Timestamp) {
        let Value::Object(status) = status else { return };
        let before: Vec<Condition> =
            serde_json::from_value(status.get("conditions").cloned().unwrap_or_default()).unwrap_or_default();
        let mut conditions = ConditionSet::new(&before, owner.generation(), now);
        conditions
            .retain(|condition| plugin_of(&condition.kind).is_none_or(|plugin| !self.gone.contains(plugin)));
        for PluginCondition { kind, status, reason, message } in self.conditions().into_values() {
            conditions.set_if_known(kind, *status, reason, message);
        }
        status.insert("conditions".to_owned(), json!(conditions.into_conditions()));
        if owner.kind() == "SpecialResource" {
            self.put_under_plugins(status);
        } else {
            self.put_beside_ours(status);
        }
    }

    /// Of several answers of one plugin with the same condition, the worst counts.
    fn conditions(&self) -> BTreeMap<&str, &PluginCondition> {
        let mut worst: BTreeMap<&str, &PluginCondition> = BTreeMap::new();
        for condition in self.reports.values().flat_map(|report| &report.conditions) {
            let known = worst.entry(&condition.kind).or_insert(condition);
            if urgency(condition.status) > urgency(known.status) {
                *known = condition;
            }
        }
        worst
    }

    /// A SpecialResource has a place for each plugin.
    fn put_under_plugins(&self, status: &mut Map<String, Value>) {
        let mut own = status.get("plugins").cloned().unwrap_or_else(|| json!({}));
        if let Value::Object(own) = &mut own {
            own.retain(|plugin, _| !self.gone.contains(plugin));
        }
        for (plugin, patch) in self.patches() {
            merge_patch(&mut own, &json!({plugin: patch}));
        }
        if own != json!({}) || status.contains_key("plugins") {
            status.insert("plugins".to_owned(), own);
        }
    }

    /// The status of a vendor's kind is the vendor's, but for the fields that tell how the release stands.
    fn put_beside_ours(&self, status: &mut Map<String, Value>) {
        let mut whole = Value::Object(std::mem::take(status));
        for (_, patch) in self.patches() {
            let mut patch = patch.clone();
            patch.retain(|field, _| !HOST_FIELDS.contains(&field.as_str()));
            merge_patch(&mut whole, &Value::Object(patch));
        }
        if let Value::Object(whole) = whole {
            *status = whole;
        }
    }

    fn patches(&self) -> impl Iterator<Item = (String, &Map<String, Value>)> {
        let reports = self.reports.iter();
        reports.filter_map(|(question, report)| Some((spoken(&question.key.plugin), report.status.as_ref()?)))
    }
}

/// Whether an event tells of the usual or of trouble.
pub(crate) fn kind_of(event: &Event) -> NoteKind {
    if event.is_warning { NoteKind::Warning } else { NoteKind::Normal }
}

/// The plugin a condition is of; nothing for those of the host.
fn plugin_of(condition: &str) -> Option<&str> {
    condition.split_once('/').map(|(plugin, _)| plugin)
}

fn urgency(status: Option<bool>) -> u8 {
    match status {
        Some(true) => 0,
        None => 1,
        Some(false) => 2,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use pintle_api::ObjectRef;
    use pintle_plan::CallKey;
    use pintle_plugin::Export;

    use super::*;

    fn question(plugin: &str, target: &str) -> Question {
        let key = CallKey {
            plugin: plugin.to_owned(),
            target: ObjectRef::new("v1", "ConfigMap", target),
            state: "0000-a".to_owned(),
            pool: String::new(),
            args: "{}".to_owned(),
        };
        Question { function: Export::Readiness, key }
    }

    fn condition(kind: &str, status: Option<bool>) -> PluginCondition {
        let (reason, message) = ("Word".to_owned(), "text".to_owned());
        PluginCondition { kind: kind.to_owned(), status, reason, message }
    }

    fn owner(kind: &str) -> Object {
        Object::new(json!({"apiVersion": "a/v1", "kind": kind, "metadata": {"name": "o", "generation": 3}}))
            .unwrap()
    }

    fn put(said: &Said, mut status: Value, kind: &str) -> Value {
        said.put_into(&mut status, &owner(kind), Timestamp::UNIX_EPOCH);
        status
    }

    fn statuses(status: &Value) -> Vec<(String, String)> {
        let list = status["conditions"].as_array().unwrap().iter();
        list.map(|c| (c["type"].as_str().unwrap().to_owned(), c["status"].as_str().unwrap().to_owned()))
            .collect()
    }

    fn foreign() -> Value {
        let time = "1970-01-01T00:00:00Z";
        let one = |kind: &str| json!({"type": kind, "status": "True", "reason": "R", "message": "", "lastTransitionTime": time});
        json!({"conditions": [one("Ready"), one("vendor.example/Own"), one("old/Loaded")]})
    }

    #[test]
    fn of_two_answers_with_one_condition_the_worst_counts() {
        let (mut said, mut memory) = (Said::default(), Memory::default());
        for (target, status) in [("a", Some(true)), ("b", Some(false)), ("c", None)] {
            let report = Report { conditions: vec![condition("p/Loaded", status)], ..Report::default() };
            said.note(&question("p", target), "1", &report, &mut memory);
        }
        let status = put(&said, json!({}), "Memcached");
        assert_eq!(statuses(&status), [("p/Loaded".to_owned(), "False".to_owned())]);
        assert_eq!(status["conditions"][0]["observedGeneration"], 3);
    }

    #[test]
    fn what_a_plugin_said_goes_once_it_is_named_no_more_and_what_others_said_stays() {
        let (mut said, mut memory) = (Said::default(), Memory::default());
        memory.spoke = BTreeSet::from(["old".to_owned(), "p".to_owned()]);
        let saved = Saved { version: String::new(), value: json!(1) };
        memory.saved = ["old", "p"].map(|name| (question(name, "a").text(), saved.clone())).into();
        said.only(&BTreeSet::from(["p".to_owned()]), &mut memory);
        let mut status = foreign();
        status["plugins"] = json!({"old": {"a": 1}, "p": {"b": 2}});
        let status = put(&said, status, "SpecialResource");
        let kinds: Vec<_> = statuses(&status).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, ["Ready", "vendor.example/Own"]);
        assert_eq!(status["plugins"], json!({"p": {"b": 2}}));
        assert_eq!(memory.saved.into_keys().collect::<Vec<_>>(), [question("p", "a").text()]);
    }

    #[test]
    fn status_is_merged_where_it_belongs_and_never_over_ours() {
        let (mut said, mut memory) = (Said::default(), Memory::default());
        let patch = json!({"nodes": ["a"], "gone": null, "conditions": [], "states": 3});
        let report = Report { status: patch.as_object().cloned(), ..Report::default() };
        said.note(&question("p", "a"), "1", &report, &mut memory);
        let before = json!({"states": [], "gone": 1, "kept": 2});
        let vendor = put(&said, before, "Memcached");
        assert_eq!(vendor, json!({"states": [], "kept": 2, "nodes": ["a"], "conditions": []}));
        let own = put(&said, json!({"plugins": {"p": {"gone": 1}}}), "SpecialResource");
        assert_eq!(own["plugins"]["p"], json!({"nodes": ["a"], "conditions": [], "states": 3}));
        assert_eq!(put(&said, own.clone(), "SpecialResource"), own, "the same again is no change");
    }

    #[test]
    fn events_are_told_when_they_come_and_not_with_each_answer() {
        let mut memory = Memory::default();
        let event = |message: &str| Event {
            is_warning: false,
            reason: "Loaded".to_owned(),
            message: message.to_owned(),
            regarding: None,
        };
        let mut told = |messages: &[&str]| {
            let mut said = Said::default();
            let events = messages.iter().map(|message| event(message)).collect();
            let report = Report { events, ..Report::default() };
            said.note(&question("p", "a"), "1", &report, &mut memory);
            said.events().len()
        };
        assert_eq!([told(&["one"]), told(&["one"]), told(&["other"])], [1, 0, 1]);
        assert_eq!([told(&[]), told(&["other"])], [0, 1], "it came again");
    }

    #[test]
    fn what_is_kept_is_written_only_when_it_differs() {
        let (mut said, mut memory) = (Said::default(), Memory::default());
        let mut note = |save: Save, version: &str| {
            said.note(&question("p", "a"), version, &Report { save, ..Report::default() }, &mut memory);
            memory.saved.values().next().cloned()
        };
        let first = note(Save::Set(json!({"n": 1})), "1");
        assert_eq!(first, Some(Saved { version: "1".to_owned(), value: json!({"n": 1}) }));
        assert_eq!(note(Save::Set(json!({"n": 1})), "2"), first);
        assert_eq!(note(Save::Keep, "2"), first);
        assert_eq!(note(Save::Clear, "2"), None);
    }
}
