#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

use std::sync::Arc;

use pintle_api::plugin::Grants;
use serde_json::json;

use super::*;
use crate::{call::Checked, grants::Granted};

fn scope() -> Scope {
    let read = json!({"read": [{"apiGroups": [""], "kinds": ["Pod"], "namespaces": ["$release"]}],
        "actions": [{"verbs": ["evict"], "apiGroups": [""], "kinds": ["Pod"], "namespaces": ["$release"]}]});
    let grants: Grants = serde_json::from_value(read).unwrap();
    let own = ObjectRef::new("apps/v1", "DaemonSet", "d").within("n");
    Scope {
        plugin: "p".into(),
        granted: Arc::new(Granted::new(&grants).unwrap()),
        namespace: "n".into(),
        own: Arc::new([own].into()),
    }
}

fn report() -> types::Report {
    types::Report {
        conditions: Vec::new(),
        events: Vec::new(),
        actions: Vec::new(),
        status: None,
        save: None,
        extra: None,
    }
}

fn pending() -> types::Pending {
    types::Pending { blockers: Vec::new(), watch: Vec::new(), recheck_after_ms: None, progress: None }
}

fn pod(name: &str) -> types::ObjectRef {
    types::ObjectRef {
        api_version: "v1".into(),
        kind: "Pod".into(),
        namespace: Some("n".into()),
        name: name.into(),
    }
}

fn blocker(object: Option<types::ObjectRef>, reason: &str, message: &str) -> types::Blocker {
    types::Blocker { object, node: None, reason: reason.into(), message: message.into() }
}

fn answer(pending: types::Pending, report: types::Report) -> Result<Checked, CallFailure> {
    let scope = scope();
    let rules = Rules { scope: &scope, target: ObjectRef::new("apps/v1", "DaemonSet", "d").within("n") };
    let report = rules.report(report)?;
    let (verdict, Hold { watch, recheck, progress, .. }) = rules.verdict(types::Verdict::Pending(pending))?;
    Ok(Checked { verdict, watch, recheck, progress, report })
}

#[track_caller]
fn invalid(ended: Result<Checked, CallFailure>, expected: &str) {
    match ended {
        Err(CallFailure::InvalidAnswer(why)) => {
            assert!(why.contains(expected), "expected {expected:?} in {why:?}")
        }
        other => panic!("expected {expected:?}, got {other:?}"),
    }
}

#[test]
fn texts_are_cut_cleaned_and_begin_with_the_plugins_name() {
    let long = format!("\u{1b}]0;title\u{7}{}", "x".repeat(5_000));
    let blockers = vec![blocker(Some(pod("a")), "Not A Word", &long)];
    let checked = answer(types::Pending { blockers, ..pending() }, report()).unwrap();
    let blocker = &checked.verdict.blockers()[0];
    assert_eq!(blocker.reason, "Other");
    assert!(blocker.message.starts_with("p:  ]0;title xxx"), "{:?}", &blocker.message[..20]);
    assert_eq!(blocker.message.len(), limits::MESSAGE);
}

#[test]
fn too_many_blockers_are_counted_in_the_last_one() {
    let blockers = (0..1_000).map(|at| blocker(Some(pod(&format!("p{at}"))), "A", "b")).collect();
    let checked = answer(types::Pending { blockers, ..pending() }, report()).unwrap();
    let blockers = checked.verdict.blockers();
    assert_eq!(blockers.len(), limits::BLOCKERS);
    assert_eq!(blockers[limits::BLOCKERS - 1].message, "p: waits for 745 more");
}

#[test]
fn names_that_no_object_can_have_are_refused() {
    for name in ["", "a b", "a\u{1b}b", &"x".repeat(limits::NAME + 1)] {
        let blockers = vec![blocker(Some(pod(name)), "A", "b")];
        invalid(answer(types::Pending { blockers, ..pending() }, report()), "impossible part");
    }
}

#[test]
fn a_watch_must_be_granted_and_becomes_the_reads_it_stands_for() {
    let query = |kind: &str, name: Option<&str>| types::ObjectQuery {
        api_version: "v1".into(),
        kind: kind.into(),
        namespace: None,
        name: name.map(str::to_owned),
        label_selector: Some("app=x".into()),
    };
    let watch = |query| answer(types::Pending { watch: vec![query], ..pending() }, report());
    let checked = watch(query("Pod", None)).unwrap();
    let [Read::List(list)] = checked.watch.as_slice() else { panic!("{:?}", checked.watch) };
    assert_eq!((list.namespace.as_deref(), list.label_selector.as_deref()), (Some("n"), Some("app=x")));
    invalid(watch(query("Secret", None)), "a watch is refused: Secret (v1) is not granted");
    invalid(watch(query("Pod", Some("a"))), "a watch is refused: Pod (v1) is not granted");
    let many = vec![query("Pod", None); limits::WATCHES + 1];
    invalid(answer(types::Pending { watch: many, ..pending() }, report()), "at most 64 are taken");
}

#[test]
fn recheck_stays_between_a_second_and_an_hour() {
    for (asked, given) in [(0, 1), (1_500, 1), (u64::MAX, 3_600)] {
        let checked =
            answer(types::Pending { recheck_after_ms: Some(asked), ..pending() }, report()).unwrap();
        assert_eq!(checked.recheck.unwrap().as_secs(), given);
    }
}

#[test]
fn what_is_kept_is_json_of_bounded_size() {
    let save = |text: &str| answer(pending(), types::Report { save: Some(text.into()), ..report() });
    assert_eq!(save("null").unwrap().report.save, Save::Clear);
    assert_eq!(save("{\"a\":1}").unwrap().report.save, Save::Set(json!({"a": 1})));
    assert_eq!(answer(pending(), report()).unwrap().report.save, Save::Keep);
    invalid(save("{"), "save is not JSON");
    invalid(save(&format!("\"{}\"", "x".repeat(limits::SAVE))), "at most 16384 are taken");
    invalid(save(&"[".repeat(10_000)), "save is not JSON");
    let status = |text: &str| answer(pending(), types::Report { status: Some(text.into()), ..report() });
    invalid(status("[]"), "status is not a JSON object");
    assert!(status("{\"a\":null}").is_ok());
}

#[test]
fn conditions_are_under_the_plugins_name_and_events_about_the_release() {
    let condition = |name: &str| types::Condition {
        name: name.into(),
        status: types::ConditionStatus::Met,
        reason: "R".into(),
        message: "m".into(),
    };
    let event = |regarding| types::Event {
        kind: types::EventKind::Warning,
        reason: "R".into(),
        message: "m".into(),
        regarding: Some(regarding),
    };
    let own = types::ObjectRef { api_version: "apps/v1".into(), kind: "DaemonSet".into(), ..pod("d") };
    let events = vec![event(own), event(pod("foreign"))];
    let told = types::Report { conditions: vec![condition("Loaded")], events, ..report() };
    let told = answer(pending(), told).unwrap().report;
    assert_eq!(told.conditions[0].kind, "p/Loaded");
    assert_eq!(told.events[0].regarding.as_ref().unwrap().name, "d");
    assert_eq!(told.events[1].regarding, None, "an event about a foreign object is told about the owner");
    for name in ["", "pintle.dev/Ready", "a b"] {
        let told = types::Report { conditions: vec![condition(name)], ..report() };
        invalid(answer(pending(), told), "is no name of a condition");
    }
}

fn action(key: &str, verb: &str, target: types::ObjectRef) -> types::Action {
    types::Action { key: key.into(), verb: verb.into(), target, arguments: "{}".into() }
}

fn report_of(actions: Vec<types::Action>) -> Result<Checked, CallFailure> {
    answer(pending(), types::Report { actions, ..report() })
}

#[test]
fn actions_are_granted_by_verb_and_no_two_have_one_key() {
    let evict = report_of(vec![action("a", "evict", pod("x")), action("b", "evict", pod("y"))]).unwrap();
    assert_eq!(evict.report.actions.len(), 2);
    assert_eq!(evict.report.actions[0].verb, ActionVerb::Evict);
    invalid(
        report_of(vec![action("a", "delete", pod("x"))]),
        "spec.grants.actions of Plugin p would: - {apiGroups",
    );
    invalid(
        report_of(vec![action("a", "explode", pod("x"))]),
        "\"explode\" is nothing that this host can do",
    );
    let twice = vec![action("a", "evict", pod("x")), action("a", "evict", pod("y"))];
    invalid(report_of(twice), "two actions have the key a");
    invalid(report_of(vec![action("", "evict", pod("x"))]), "an action has a key that is empty");
    let many = (0..=limits::ACTIONS).map(|at| action(&at.to_string(), "evict", pod("x")));
    invalid(report_of(many.collect()), "17 actions, at most 16 are taken");
}

#[test]
fn a_failure_says_when_to_ask_again_and_its_verdict_is_never_ready() {
    let scope = scope();
    let target = ObjectRef::new("apps/v1", "DaemonSet", "d").within("n");
    let rules = Rules { scope: &scope, target: target.clone() };
    let failure = |retry| {
        let message = "no\u{7}good".to_owned();
        rules.failure(types::Failure { retry, message, blockers: Vec::new(), report: report() })
    };
    let cases = [
        (types::Retry::WithBackOff, Retry::WithBackOff, true),
        (types::Retry::WhenInputsChange, Retry::WhenInputsChange, false),
        (types::Retry::Never, Retry::Never, false),
    ];
    for (given, expected, is_transient) in cases {
        let failure = failure(given);
        assert_eq!(failure.retry(), expected);
        let verdict = failure.verdict("p", &target);
        assert_eq!(matches!(verdict, Verdict::Transient(_)), is_transient);
        assert_eq!(verdict.blockers()[0].message, "p: the plugin failed: no good");
        assert_eq!(verdict.blockers()[0].object, Some(target.clone()));
    }
}
