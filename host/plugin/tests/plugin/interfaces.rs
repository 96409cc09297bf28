//! Each interface is callable, and what comes back is checked against the grants.

use std::{sync::Arc, time::Duration};

use pintle_api::{
    Object, Read, Record, Verdict,
    plugin::{ActionVerb, Identity},
};
use pintle_plugin::{
    Call, CallFailure, CallResult, Edit, Export, HookOutcome, Keyed, Operation, Outcome, Ownership, Phase,
    Plugin, Rendered, Save, merge_patch,
};
use serde_json::{Value, json};

use crate::{
    canned::{canned, canned_with},
    setting::{call, load, load_bytes, object},
};

async fn plugin(interface: &str, function: &str, answer: Value, grants: Value) -> Plugin {
    load_bytes("p", canned(interface, function, &answer), &json!({"grants": grants})).await.unwrap()
}

fn answered<T: std::fmt::Debug>(result: CallResult<T>) -> T {
    match result.outcome {
        Outcome::Answered(answer) => answer,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn invalid<T: std::fmt::Debug>(result: CallResult<T>, expected: &str) {
    match result.outcome {
        Outcome::Failed(CallFailure::InvalidAnswer(why)) => {
            assert!(why.contains(expected), "expected {expected:?} in {why:?}");
        }
        other => panic!("expected {expected:?}, got {other:?}"),
    }
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

fn maps() -> Value {
    json!({"objects": [{"apiGroups": [""], "kinds": ["ConfigMap"], "namespaces": ["$release"]}]})
}

fn rendered(key: &str, json: Value) -> Rendered {
    Rendered {
        key: key.into(),
        state: "1000".into(),
        pool: String::new(),
        source: "templates/1000-a.yaml".into(),
        object: Arc::new(object(json)),
    }
}

fn during(operation: Operation) -> Call {
    Call { operation, ..call(Record::default()) }
}

#[tokio::test]
async fn a_value_mapper_returns_a_merge_patch_and_pools() {
    let answer = json!({"ok": {"values": {"image": {"tag": "5.14"}, "gone": null}, "pools": [
        {"key": "k5-14", "node-selector": [["kernel", "5.14"]], "values": {"kernel": "5.14"}}]}});
    let plugin = plugin("value-mapper", "map-values", answer, json!({})).await;
    let mapped = answered(plugin.map_values(call(Record::default())).await);
    let mut values = json!({"image": {"tag": "1", "name": "x"}, "gone": 1});
    merge_patch(&mut values, &Value::Object(mapped.values));
    assert_eq!(values, json!({"image": {"tag": "5.14", "name": "x"}}));
    assert_eq!(mapped.pools[0].key, "k5-14");
    assert_eq!(mapped.pools[0].values["kernel"], "5.14");
}

#[tokio::test]
async fn what_a_value_mapper_returns_must_be_a_mapping_and_its_pools_labels() {
    let check = async |ok: Value, expected: &str| {
        let plugin = plugin("value-mapper", "map-values", json!({"ok": ok}), json!({})).await;
        invalid(plugin.map_values(call(Record::default())).await, expected);
    };
    check(json!({"values": "[]"}), "the values is not a JSON object").await;
    check(json!({"values": "{"}), "the values is not JSON").await;
    check(json!({"values": "[".repeat(10_000)}), "recursion limit").await;
    let odd = json!({"values": "{}", "pools": [{"key": "Not_A_Label", "values": "{}"}]});
    check(odd, "no DNS label of at most 20 characters").await;
}

#[tokio::test]
async fn a_post_renderer_replaces_drops_and_adds_within_its_grants() {
    let mut changed = config_map("a");
    changed["data"]["a"] = json!("changed");
    let answer = json!({"ok": {"edits": [{"key": "a", "object": changed}, {"key": "b"},
        {"key": "new", "state": "2000", "object": config_map("c")}]}});
    let before = || vec![rendered("a", config_map("a")), rendered("b", config_map("b"))];
    let granted = plugin("post-renderer", "post-render", answer.clone(), maps()).await;
    let edits = answered(granted.post_render(call(Record::default()), before()).await).edits;
    let [Edit::Replace { key, object }, Edit::Drop { key: dropped }, Edit::Add { state, identity, .. }] =
        &edits[..]
    else {
        panic!("{edits:?}")
    };
    assert_eq!((key.as_str(), dropped.as_str(), state.as_str()), ("a", "b", "2000"));
    assert_eq!(object.str_at("/data/a"), Some("changed"));
    assert_eq!(*identity, Identity::Owner);
    let refused = plugin("post-renderer", "post-render", answer, json!({})).await;
    let line = "spec.grants.objects of Plugin p would: - {apiGroups: [\"\"], kinds: [ConfigMap], namespaces: [$release]}";
    invalid(refused.post_render(call(Record::default()), before()).await, line);
}

#[tokio::test]
async fn a_post_renderer_cannot_move_objects_or_bring_kinds_of_ours() {
    let check = async |edits: Value, expected: &str| {
        let answer = json!({"ok": {"edits": edits}});
        let plugin = plugin("post-renderer", "post-render", answer, json!({})).await;
        let before = vec![rendered("a", config_map("a"))];
        invalid(plugin.post_render(call(Record::default()), before).await, expected);
    };
    let ours = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "x"}});
    check(json!([{"key": "n", "state": "1000", "object": ours}]), "decides about rights").await;
    check(json!([{"key": "a", "object": config_map("other")}]), "spec.grants.objects").await;
    check(json!([{"key": "a", "state": "2000", "object": config_map("a")}]), "an edit cannot change").await;
    check(json!([{"key": "gone"}]), "nothing of that key was rendered").await;
    check(json!([{"key": "a"}, {"key": "a"}]), "a is edited twice").await;
    check(json!([{"key": "a", "object": "{}"}]), "a is no object: apiVersion is missing").await;
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    check(json!([{"key": "a", "object": nameless}]), "impossible name").await;
}

#[tokio::test]
async fn a_post_renderer_sees_tokens_for_the_values_of_secrets_and_they_come_back() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "data": {"password": "aHVudGVyMg=="}, "stringData": {"plain": "hunter2"}});
    let shows = load("input", &json!({})).await.unwrap();
    let seen = shows.post_render(call(Record::default()), vec![rendered("s", secret.clone())]).await;
    let Outcome::Failed(failure) = &seen.outcome else { panic!("{seen:?}") };
    assert!(failure.to_string().contains("PintleSecretValue/000000"), "{failure}");
    assert!(!failure.to_string().contains("hunter2") && !failure.to_string().contains("aHVudGVyMg"));
    assert!(!seen.called.secret_values);
    let echo = load("render-echo", &json!({})).await.unwrap();
    let objects = vec![rendered("s", secret.clone()), rendered("a", config_map("a"))];
    let edits = answered(echo.post_render(call(Record::default()), objects).await).edits;
    let [Edit::Replace { object: first, .. }, Edit::Replace { object: second, .. }] = &edits[..] else {
        panic!("{edits:?}")
    };
    assert_eq!(first.to_value(), secret);
    assert_eq!(second.to_value(), config_map("a"));
    let grants = json!({"grants": {"secretValues": [{"namespaces": ["$release"], "names": ["s"]}]}});
    let granted = load("input", &grants).await.unwrap();
    let seen = granted.post_render(call(Record::default()), vec![rendered("s", secret)]).await;
    assert!(format!("{:?}", seen.outcome).contains("aHVudGVyMg"), "{seen:?}");
    assert!(seen.called.secret_values, "its transcript cannot be replayed elsewhere");
}

#[tokio::test]
async fn a_secret_value_that_changed_is_another_input_though_the_guest_cannot_see_it() {
    let echo = load("render-echo", &json!({})).await.unwrap();
    let secret = |value: &str| {
        let data =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": value}});
        vec![rendered("s", data)]
    };
    for value in ["b25l", "dHdv"] {
        let result = echo.post_render(call(Record::default()), secret(value)).await;
        assert!(!result.reused);
        let Edit::Replace { object, .. } = &answered(result).edits[0] else { panic!() };
        assert_eq!(object.str_at("/data/a"), Some(value));
    }
}

#[tokio::test]
async fn a_hook_holds_with_blockers_and_wants_objects() {
    let answer = json!({"ok": {"outcome": {"hold": {"blockers": [{"node": "n1", "reason": "Draining",
        "message": "two pods left"}], "recheck-after-ms": 5000}},
        "want": [{"key": "job", "ownership": "whole", "object": config_map("job")}],
        "report": {"save": {"step": 1}, "events": [{"kind": "normal", "reason": "Began", "message": "m"}]}}});
    let plugin = plugin("hooks", "on-phase", answer, maps()).await;
    let result = plugin.on_phase(during(Operation::Upgrade), Phase::Pre, &[], &[]).await;
    let stepped = answered(result);
    let HookOutcome::Hold(hold) = stepped.outcome else { panic!("{:?}", stepped.outcome) };
    assert_eq!(hold.blockers[0].message, "p: two pods left");
    assert_eq!(hold.recheck, Some(Duration::from_secs(5)));
    assert_eq!(stepped.want[0].ownership, Ownership::Whole);
    assert_eq!(stepped.want[0].object.name(), "job");
    assert_eq!(stepped.report.save, Save::Set(json!({"step": 1})));
    assert_eq!(stepped.report.events[0].reason, "Began");
}

#[tokio::test]
async fn a_state_is_left_out_only_before_it_and_never_while_it_is_deleted() {
    let leave =
        plugin("hooks", "on-phase", json!({"ok": {"outcome": {"leave-out": "no gpu"}}}), json!({})).await;
    let ask = async |operation, phase, state: &str| {
        let call = Call { state: state.into(), ..during(operation) };
        leave.on_phase(call, phase, &[], &[]).await
    };
    for operation in [Operation::Install, Operation::Upgrade, Operation::Rollback] {
        let stepped = answered(ask(operation, Phase::Pre, "1000").await);
        assert_eq!(stepped.outcome, HookOutcome::LeaveOut("no gpu".into()));
    }
    for (operation, phase, state) in [
        (Operation::Upgrade, Phase::Waiting, "1000"),
        (Operation::Upgrade, Phase::Post, "1000"),
        (Operation::Steady, Phase::Pre, "1000"),
        (Operation::Delete, Phase::Pre, "1000"),
        (Operation::Install, Phase::Pre, ""),
    ] {
        invalid(ask(operation, phase, state).await, "a state can be left out only before it");
    }
}

#[tokio::test]
async fn objects_of_a_hook_need_a_grant_and_keys_of_their_own() {
    let check = async |want: Value, grants: Value, expected: &str| {
        let answer = json!({"ok": {"outcome": "go", "want": want}});
        let plugin = plugin("hooks", "on-phase", answer, grants).await;
        invalid(plugin.on_phase(during(Operation::Install), Phase::Pre, &[], &[]).await, expected);
    };
    let one = |key: &str, object: Value| json!({"key": key, "object": object});
    check(json!([one("a", config_map("a"))]), json!({}), "spec.grants.objects of Plugin p would").await;
    let twice = json!([one("a", config_map("a")), one("a", config_map("b"))]);
    check(twice, maps(), "two objects have the key a").await;
    let same = json!([one("a", config_map("a")), one("b", config_map("a"))]);
    check(same, maps(), "is returned twice").await;
    check(json!([one("", config_map("a"))]), maps(), "a key that is empty").await;
    let part = json!([{"key": "n", "ownership": "part", "object":
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {"x": "y"}}}}]);
    check(part, maps(), "spec.grants.parts of Plugin p would: - {apiGroups: [\"\"], kinds: [Node], fields: [metadata.labels.x]}").await;
    let many = (0..600).map(|at| one(&at.to_string(), config_map(&at.to_string()))).collect::<Value>();
    check(many, maps(), "600 objects, at most 512 are taken").await;
}

#[tokio::test]
async fn a_reconciler_returns_the_whole_set_with_actions_and_status() {
    let answer = json!({"ok": {"verdict": {"pending": {"blockers": [], "watch": [{"api-version": "v1", "kind": "Pod"}]}},
        "objects": [{"key": "m", "object": config_map("m")}, {"key": "n", "ownership": "part", "object":
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {"x": "y"}}}}],
        "report": {"status": {"phase": "Up"}, "conditions": [{"name": "Backup", "status": "met", "reason": "Done"}],
            "actions": [{"key": "1", "verb": "restart", "target": {"api-version": "apps/v1", "kind": "Deployment",
                "namespace": "n", "name": "d"}, "arguments": {"grace": 3}}]}}});
    let grants = json!({"objects": maps()["objects"], "parts": [{"apiGroups": [""], "kinds": ["Node"],
        "fields": ["metadata.labels.x"], "as": "operator"}], "read": [{"apiGroups": [""], "kinds": ["Pod"]}],
        "actions": [{"verbs": ["restart"], "apiGroups": ["apps"], "kinds": ["Deployment"]}]});
    for is_final in [false, true] {
        let function = if is_final { "finalize" } else { "reconcile" };
        let plugin = plugin("reconciler", function, answer.clone(), grants.clone()).await;
        let asked = during(Operation::Steady);
        let result =
            if is_final { plugin.finalize(asked, &[]).await } else { plugin.reconcile(asked, &[]).await };
        let desired = answered(result);
        assert!(
            matches!(&desired.verdict, Verdict::Pending(blockers) if blockers[0].reason == "PluginPending")
        );
        assert!(matches!(&desired.watch[..], [Read::List(query)] if query.kind == "Pod"));
        assert_eq!(desired.objects.len(), 2);
        assert_eq!(
            (desired.objects[1].ownership, desired.objects[1].identity),
            (Ownership::Part, Identity::Operator)
        );
        assert_eq!(desired.report.actions[0].verb, ActionVerb::Restart);
        assert_eq!(desired.report.actions[0].arguments["grace"], 3);
        assert_eq!(desired.report.conditions[0].kind, "p/Backup");
        assert_eq!(desired.report.status.as_ref().unwrap()["phase"], "Up");
    }
}

#[tokio::test]
async fn a_function_that_is_not_exported_is_not_called() {
    let mapper = plugin("value-mapper", "map-values", json!({"ok": {"values": "{}"}}), json!({})).await;
    assert_eq!(mapper.offers(), [Export::ValueMapper]);
    let asked = || call(Record::default());
    let failures = [
        format!("{:?}", mapper.post_render(asked(), Vec::new()).await.outcome),
        format!("{:?}", mapper.on_phase(asked(), Phase::Pre, &[], &[]).await.outcome),
        format!("{:?}", mapper.reconcile(asked(), &[]).await.outcome),
        format!("{:?}", mapper.finalize(asked(), &[]).await.outcome),
    ];
    for (failure, name) in failures.iter().zip(["post-renderer", "hooks", "reconciler", "reconciler"]) {
        assert_eq!(*failure, format!("Failed(NotExported({name:?}))"));
    }
}

#[tokio::test]
async fn a_failure_of_any_interface_is_in_the_plugins_words() {
    let failure = json!({"err": {"retry": "never", "message": "no licence", "blockers": [{"reason": "Licence",
        "message": "buy one"}]}});
    let hook = plugin("hooks", "on-phase", failure, json!({})).await;
    let result = hook.on_phase(during(Operation::Install), Phase::Pre, &[], &[]).await;
    let Outcome::Failed(failure) = &result.outcome else { panic!("{result:?}") };
    assert_eq!(failure.to_string(), "the plugin failed: no licence");
    let owner = call(Record::default()).owner.reference();
    assert!(
        matches!(failure.verdict("p", &owner), Verdict::Fatal(blockers) if blockers[0].message == "p: buy one")
    );
}

#[tokio::test]
async fn inputs_over_the_limit_are_refused_before_the_guest_runs() {
    let echo = load("render-echo", &json!({})).await.unwrap();
    let mut large = config_map("a");
    large["data"]["a"] = json!("x".repeat(1_400_000));
    let objects: Vec<_> = (0..4).map(|at| rendered(&at.to_string(), large.clone())).collect();
    let result = echo.post_render(call(Record::default()), objects).await;
    assert!(
        matches!(result.outcome, Outcome::Failed(CallFailure::InputTooLarge { .. })),
        "{:?}",
        result.outcome
    );
}

#[tokio::test]
async fn live_objects_are_given_with_their_keys() {
    let hook = plugin("hooks", "on-phase", json!({"ok": {"outcome": "go"}}), json!({})).await;
    let live = Keyed {
        key: "job".into(),
        ownership: Ownership::Whole,
        object: Arc::new(object(config_map("job"))),
        identity: Identity::Owner,
    };
    let ask = async |applied: &[Keyed], rendered: &[Arc<Object>]| {
        hook.on_phase(during(Operation::Install), Phase::Waiting, rendered, applied).await
    };
    assert!(!ask(std::slice::from_ref(&live), &[]).await.reused);
    assert!(ask(std::slice::from_ref(&live), &[]).await.reused, "nothing changed");
    let changed = Keyed { object: Arc::new(object(config_map("other"))), ..live.clone() };
    assert!(!ask(&[changed], &[]).await.reused);
    assert!(!ask(&[], &[Arc::clone(&live.object)]).await.reused);
}

#[tokio::test]
async fn arguments_are_checked_with_the_schema_and_by_the_plugin() {
    let manifest = json!({"argsSchema": {"type": "object", "required": ["pool"]}});
    let answer = json!({"ok": {"verdict": "ready"}});
    let bytes = canned_with("readiness", "check", &answer, &manifest);
    let plugin = load_bytes("p", bytes, &json!({})).await.unwrap();
    let with = |args: Value| Call { args: args.as_object().unwrap().clone(), ..call(Record::default()) };
    let refused = plugin.check(with(json!({})), crate::setting::target()).await;
    let Outcome::Failed(failure) = refused.outcome else { panic!() };
    assert_eq!(failure.to_string(), "the arguments in the annotation are refused: \"pool\" is missing");
    assert_eq!(failure.reason(), "InvalidArguments");
    assert!(plugin.check(with(json!({"pool": "a"})), crate::setting::target()).await.stats.memory > 0);
    let picky = load("args", &json!({})).await.unwrap();
    let refused = picky.check(with(json!({"a": 1})), crate::setting::target()).await;
    assert_eq!(
        crate::setting::line(&refused),
        "invalid WhenInputsChange: the arguments in the annotation are refused: no arguments, please"
    );
    let none = picky.check(with(json!({})), crate::setting::target()).await;
    assert_eq!(crate::setting::line(&none), "Ready");
}
