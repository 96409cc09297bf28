#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

use pintle_plugin_sdk::{Outcome, Retry, fake::Host};

use super::*;

fn rendered() -> [Value; 2] {
    let set = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "driver"},
        "spec": {"selector": {"matchLabels": {"app": "driver"}}, "template": {}}});
    let config = json!({"apiVersion": "build.openshift.io/v1", "kind": "BuildConfig",
        "metadata": {"name": "driver-build"}, "spec": {"runPolicy": "Serial", "triggers": [],
            "strategy": {"dockerStrategy": {}}, "output": {"to": {"kind": "ImageStreamTag", "name": "d:1"}}}});
    [set, config]
}

fn pod(node: &str, reason: Option<&str>) -> Value {
    let state = reason.map_or(json!({"running": {}}), |reason| json!({"waiting": {"reason": reason}}));
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("driver-{node}"),
        "namespace": "namespace", "labels": {"app": "driver"}},
        "status": {"containerStatuses": [{"name": "c", "image": "d:1", "state": state}]}})
}

fn host() -> Host {
    Host::new().objects([pod("a", Some("ImagePullBackOff")), pod("b", None), pod("c", Some("ErrImagePull"))])
}

fn build(phase: &str) -> [(&'static str, Value); 1] {
    [("build", json!({"status": {"phase": phase, "message": "no space"}}))]
}

fn waiting(host: Host, applied: impl IntoIterator<Item = (&'static str, Value)>) -> Result<Step, Failure> {
    host.on_phase::<BuildOnPullFailure>(Phase::Waiting, rendered(), applied)
}

/// Name of the Build that is wanted, and what is kept.
#[track_caller]
fn wanted(step: &Step) -> (String, String) {
    let Outcome::Hold(_) = step.outcome() else { panic!("{:?}", step.outcome()) };
    let (_, text) = step.wanted().next().unwrap();
    let object: Value = serde_json::from_str(text).unwrap();
    (object["metadata"]["name"].as_str().unwrap().to_owned(), step.report().save.clone().unwrap())
}

#[test]
fn an_image_that_cannot_be_pulled_is_built_from_the_build_config_of_the_state() {
    let step = waiting(host(), []).unwrap();
    assert_eq!(wanted(&step), ("driver-build-pintle-1-1".into(), r#"{"attempt":1}"#.into()));
    let build: Value = serde_json::from_str(step.wanted().next().unwrap().1).unwrap();
    assert_eq!(
        build["spec"],
        json!({"strategy": {"dockerStrategy": {}},
        "output": {"to": {"kind": "ImageStreamTag", "name": "d:1"}}})
    );
}

#[test]
fn a_build_that_runs_stays_wanted_and_a_failed_one_is_tried_again() {
    let kept = || host().saved(json!({"attempt": 1}));
    assert_eq!(wanted(&waiting(kept(), build("Running")).unwrap()).0, "driver-build-pintle-1-1");
    assert_eq!(wanted(&waiting(kept(), build("Failed")).unwrap()).0, "driver-build-pintle-1-2");
}

#[test]
fn the_number_of_builds_is_bounded() {
    let last = host().saved(json!({"attempt": 3}));
    let failure = waiting(last.clone(), build("Failed")).unwrap_err();
    assert_eq!((failure.retry(), failure.message()), (Retry::Never, "build 3 of 3 has failed: no space"));
    assert_eq!(waiting(last, []).unwrap_err().message(), "d:1 cannot be pulled after 3 builds");
}

#[test]
fn after_a_build_the_pods_that_back_off_are_started_again() {
    let step = waiting(host().saved(json!({"attempt": 1})), build("Complete")).unwrap();
    assert_eq!(*step.outcome(), Outcome::Go);
    let keys: Vec<&str> = step.report().actions.iter().map(|action| action.key.as_str()).collect();
    assert_eq!(keys, ["restart-driver-a-1", "restart-driver-c-1"]);
    let saved: Value = serde_json::from_str(step.report().save.as_deref().unwrap()).unwrap();
    let again = waiting(host().saved(saved), []).unwrap();
    assert_eq!((again.outcome(), again.wanted().count()), (&Outcome::Go, 0), "while those pods still go");
}

#[test]
fn nothing_is_built_where_every_image_is_there_or_outside_of_the_wait() {
    let step = waiting(Host::new().object(pod("b", None)), []).unwrap();
    assert_eq!((step.outcome(), step.wanted().count()), (&Outcome::Go, 0));
    let pre = host().on_phase::<BuildOnPullFailure>(Phase::Pre, rendered(), []).unwrap();
    assert_eq!(*pre.outcome(), Outcome::Go);
}

#[test]
fn a_state_without_a_build_config_says_so() {
    let [set, _] = rendered();
    let failure = host().on_phase::<BuildOnPullFailure>(Phase::Waiting, [set], []).unwrap_err();
    assert_eq!(failure.blockers()[0].reason, "NoBuildConfig");
}
