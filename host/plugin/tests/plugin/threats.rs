//! The threats to an operator that runs foreign code, each with what this crate does about it. What
//! other crates do (registries, signatures, impersonation) is tested there under the same numbers.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use pintle_api::{
    Answer, Facts, Given, LogTail, Object, ObjectRef, PluginPolicy, Query, Read, Record, Timestamp,
    plugin_policy::Signer,
};
use pintle_plugin::{
    Artifact, Call, CallFailure, Churn, Compiler, Edit, Engine, Options, Outcome, Phase, Plugin, Rendered,
    policy::{Candidate, PolicyRefusal, admit},
};
use serde_json::{Value, json};

use crate::{
    canned::canned,
    encode,
    setting::{call, chain, line, load, load_bytes, object, spec, target},
};

const PASSWORD: &str = "aHVudGVyMg==";

fn secret() -> Object {
    object(json!({"apiVersion": "v1", "kind": "Secret", "data": {"password": PASSWORD},
        "metadata": {"name": "p", "namespace": "n", "labels": {"app": "d"}, "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": format!("{{\"data\":\"{PASSWORD}\"}}")}}}))
}

fn knows_secret() -> Record {
    let secret = Arc::new(secret());
    let query =
        Query { api_version: "v1".into(), kind: "Secret".into(), namespace: None, label_selector: None };
    vec![
        (Read::Get(secret.reference()), Given::Object(Answer::Found(Arc::clone(&secret)))),
        (Read::List(query), Given::Objects(Answer::Found(vec![secret]))),
    ]
    .into()
}

async fn said(bytes: Vec<u8>, grants: Value, call: Call) -> String {
    let plugin = load_bytes("p", bytes, &json!({"grants": grants})).await.unwrap();
    line(&plugin.check(call, target()).await)
}

fn policy(spec: Value) -> PluginPolicy {
    PluginPolicy::new("vendor", serde_json::from_value(spec).unwrap())
}

fn candidate(signers: Vec<Signer>) -> Candidate {
    let digest = format!("sha256:{}", "a".repeat(64));
    let reference = format!("oci://r.example/vendor/driver@{digest}");
    Candidate { reference, digest, signers, version: "1.0.0".into() }
}

#[tokio::test]
async fn t1_a_chart_names_no_foreign_component_and_brings_no_rights_through_a_plugin() {
    let foreign = admit(&[], &candidate(Vec::new())).unwrap_err();
    assert!(foreign.to_string().contains("what a PluginPolicy lets it name"), "{foreign}");
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "me"}, "roleRef": {"name": "cluster-admin"}});
    let plugin = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "me"}});
    for (odd, why) in [(binding, "kinds: [ClusterRoleBinding]"), (plugin, "decides about rights")] {
        let answer = json!({"ok": {"outcome": "go", "want": [{"key": "a", "object": odd}]}});
        let hook = load_bytes("p", canned("hooks", "on-phase", &answer), &json!({})).await.unwrap();
        let result = hook.on_phase(call(Record::default()), Phase::Pre, &[], &[]).await;
        assert!(format!("{:?}", result.outcome).contains(why), "{:?}", result.outcome);
    }
}

#[tokio::test]
async fn t2_a_plugin_reads_no_value_of_a_secret() {
    let get = || encode::guest_with("read", &[("\"Pod\"", "\"Secret\"")]);
    let list = || encode::guest("find");
    let grants = json!({"read": [{"apiGroups": [""], "kinds": ["Secret"]}]});
    let own: Arc<_> = Arc::new([secret().reference()].into());
    for (bytes, how) in [(get(), "get"), (list(), "list")] {
        let refused = said(bytes.clone(), json!({}), call(knows_secret())).await;
        assert!(refused.contains("Secret (v1) is not granted"), "{how}: {refused}");
        let as_own = Call { own: Arc::clone(&own), ..call(knows_secret()) };
        let refused = said(bytes.clone(), json!({}), as_own).await;
        assert!(refused.contains("Secret (v1) is not granted"), "own, by {how}: {refused}");
        let masked = said(bytes.clone(), grants.clone(), call(knows_secret())).await;
        assert!(masked.contains("\"password\":\"\"") && !masked.contains(PASSWORD), "{how}: {masked}");
        let selected = json!({"read": [{"apiGroups": [""], "kinds": ["Secret"], "names": ["other"]}]});
        let outside = said(bytes.clone(), selected, call(knows_secret())).await;
        assert!(!outside.contains("password"), "outside of the names, by {how}: {outside}");
        let mut by_name = grants.clone();
        by_name["secretValues"] = json!([{"namespaces": ["n"], "names": ["p"]}]);
        assert!(said(bytes, by_name, call(knows_secret())).await.contains(PASSWORD), "named, by {how}");
    }
    let target = load("echo", &json!({})).await.unwrap();
    let seen = target.check(call(Record::default()), Arc::new(secret())).await;
    assert!(!line(&seen).contains(PASSWORD), "as the target: {}", line(&seen));
    let owner = Call { owner: Arc::new(secret()), ..call(Record::default()) };
    let seen = load("owner", &json!({})).await.unwrap().check(owner, crate::setting::target()).await;
    assert!(!line(&seen).contains(PASSWORD), "as the owner: {}", line(&seen));
}

#[tokio::test]
async fn t3_a_plugin_carries_nothing_out_in_logs_events_or_objects() {
    let loud = "x".repeat(1 << 20);
    let event = json!({"kind": "warning", "reason": loud, "message": format!("\u{1b}[2J{loud}"),
        "regarding": {"api-version": "v1", "kind": "Secret", "namespace": "n", "name": "p"}});
    let answer = json!({"ok": {"verdict": "ready", "report": {"events": [event]}}});
    let plugin = load_bytes("p", canned("readiness", "check", &answer), &json!({})).await.unwrap();
    let Outcome::Answered(checked) = plugin.check(call(Record::default()), target()).await.outcome else {
        panic!()
    };
    let event = &checked.report.events[0];
    assert_eq!((event.message.len(), event.reason.as_str(), &event.regarding), (1024, "Other", &None));
    assert!(event.message.starts_with("p:  [2Jxxx"), "{:?}", &event.message[..20]);
    let flood = said(encode::guest("flood"), json!({}), call(Record::default())).await;
    assert!(flood.starts_with("budget"), "{flood}");
    let token = "PintleSecretValue/000000";
    let leak =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": token}});
    let answer = json!({"ok": {"edits": [{"key": "a", "object": leak}]}});
    let renderer =
        load_bytes("p", canned("post-renderer", "post-render", &answer), &json!({})).await.unwrap();
    let rendered = |key: &str, object: Object| Rendered {
        key: key.into(),
        state: "1000".into(),
        pool: String::new(),
        source: String::new(),
        object: Arc::new(object),
    };
    let map = object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}));
    let result = renderer
        .post_render(call(Record::default()), vec![rendered("s", secret()), rendered("a", map)])
        .await;
    assert!(
        format!("{:?}", result.outcome).contains("outside of the place it was in"),
        "{:?}",
        result.outcome
    );
}

/// The world as the account of an owner sees it, who may read nothing; the operator may.
struct OfOwner(Record);

impl Facts for OfOwner {
    fn get(&self, target: &ObjectRef) -> Answer<Arc<Object>> {
        Answer::Denied(format!("the service account of the owner may not get {target}"))
    }

    fn list(&self, _: &Query) -> Answer<Vec<Arc<Object>>> {
        Answer::Denied("the service account of the owner may not list".into())
    }

    fn tail(&self, _: &LogTail) -> Answer<String> {
        Answer::Denied("the service account of the owner may not read logs".into())
    }

    fn resolve(&self, _: &str) -> Answer<String> {
        Answer::NotYet
    }

    fn as_operator(&self) -> Option<&dyn Facts> {
        Some(&self.0)
    }
}

#[tokio::test]
async fn t4_a_grant_lends_an_owner_no_right_of_the_operator_unless_it_says_so() {
    let owner = || call(OfOwner(knows_secret()));
    let get = || encode::guest_with("read", &[("\"Pod\"", "\"Secret\"")]);
    let grant = |identity: &str| {
        json!({"read": [{"apiGroups": [""], "kinds": ["Secret"], "as": identity}],
            "logs": [{"namespaces": ["$release"], "as": identity}]})
    };
    let refused = said(get(), grant("owner"), owner()).await;
    assert!(refused.contains("the service account of the owner may not get"), "{refused}");
    let refused = said(encode::guest("find"), grant("owner"), owner()).await;
    assert!(refused.contains("may not list"), "{refused}");
    let refused = said(encode::guest("tail"), grant("owner"), owner()).await;
    assert!(refused.contains("may not read logs"), "{refused}");
    for bytes in [get(), encode::guest("find")] {
        let shown = said(bytes, grant("operator"), owner()).await;
        assert!(shown.contains("\"password\":\"\""), "{shown}");
    }
}

#[test]
fn t5_a_moved_tag_or_another_blob_is_not_what_was_let_in() {
    let key = Signer::Key("sha256:k".into());
    let policies = [policy(json!({"match": {"images": ["r.example/**"], "signers": [{"key": "sha256:k"}]}}))];
    assert!(admit(&policies, &candidate(vec![key.clone()])).is_ok());
    let tag =
        Candidate { reference: "oci://r.example/vendor/driver:1".into(), ..candidate(vec![key.clone()]) };
    assert!(matches!(admit(&policies, &tag), Err(PolicyRefusal::NotPinned { .. })));
    let swapped = Candidate { digest: format!("sha256:{}", "b".repeat(64)), ..candidate(vec![key]) };
    assert!(matches!(admit(&policies, &swapped), Err(PolicyRefusal::NotPinned { .. })));
}

#[test]
fn t6_what_could_not_be_verified_is_refused() {
    let policies = [policy(json!({"match": {"images": ["r.example/**"], "signers": [{"key": "sha256:k"}]}}))];
    let refused = admit(&policies, &candidate(Vec::new()));
    assert!(matches!(refused, Err(PolicyRefusal::NotSigned { .. })), "{refused:?}");
}

/// Facts that note each name that was to be resolved.
#[derive(Clone, Default)]
struct Noted(Arc<Mutex<Vec<String>>>);

impl Facts for Noted {
    fn get(&self, _: &ObjectRef) -> Answer<Arc<Object>> {
        Answer::Missing
    }

    fn list(&self, _: &Query) -> Answer<Vec<Arc<Object>>> {
        Answer::Missing
    }

    fn tail(&self, _: &LogTail) -> Answer<String> {
        Answer::Missing
    }

    fn resolve(&self, image: &str) -> Answer<String> {
        self.0.lock().unwrap().push(image.to_owned());
        Answer::Found("sha256:abc application/vnd.oci.image.index.v1+json".into())
    }
}

#[tokio::test]
async fn t7_no_name_is_resolved_for_a_plugin_before_a_grant_covers_it() {
    let ask = async |image: &str, grants: Value| {
        let noted = Noted::default();
        let guest = encode::guest_with("resolve", &[("r.example/vendor/driver:1", image)]);
        let said = said(guest, grants, call(noted.clone())).await;
        let names = noted.0.lock().unwrap().clone();
        (said, names)
    };
    let granted = || json!({"images": ["r.example/vendor/*"]});
    let (found, names) = ask("r.example/vendor/driver:1", granted()).await;
    assert!(found.ends_with("failed: sha256:abc"), "{found}");
    assert_eq!(names, ["r.example/vendor/driver:1"]);
    let (refused, names) = ask("r.example/vendor/driver:1", json!({})).await;
    assert!(
        refused.contains("spec.grants.images of Plugin p would: - r.example/vendor/driver:1"),
        "{refused}"
    );
    assert!(names.is_empty());
    for odd in [
        "169.254.169.254/latest/meta-data",
        "r.example:80/vendor/x",
        "http://r.example/vendor/x",
        "r.example/vendor/../admin",
        "r.example.evil.test/vendor/x",
        "r.example/vendor/a/b",
    ] {
        let (refused, names) = ask(odd, granted()).await;
        assert!(names.is_empty() && refused.contains("Plugin p"), "{odd}: {refused}");
    }
}

#[tokio::test]
async fn t8_each_resource_has_a_bound_and_an_end() {
    let rows = [
        ("loop", "timeout"),
        ("fill", "timeout"),
        ("grow", "oom"),
        ("tables", "oom"),
        ("recursion", "trap"),
        ("huge", "invalid"),
        ("flood", "budget"),
        ("reads", "budget"),
        ("watches", "invalid"),
        ("wasi-handles", "budget WithBackOff: the plugin wanted more than 128 handles"),
    ];
    for (name, expected) in rows {
        let plugin = load(name, &json!({"wasi": true})).await.unwrap();
        let began = Instant::now();
        let line = line(&plugin.check(call(Record::default()), target()).await);
        assert!(line.starts_with(expected), "{name}: expected {expected}, got {line}");
        assert!(began.elapsed() < Duration::from_secs(3), "{name}: {:?}", began.elapsed());
    }
}

#[tokio::test]
async fn t9_what_advisories_were_about_is_off_in_the_engine() {
    let features = [
        ("memory64", "(memory i64 1)"),
        ("shared memory", "(memory 1 1 shared)"),
        ("two memories", "(memory 1) (memory 1)"),
        ("tail calls", "(func $f (return_call $f))"),
        (
            "relaxed SIMD",
            "(func (drop (i8x16.relaxed_swizzle (v128.const i64x2 0 0) (v128.const i64x2 0 0))))",
        ),
        ("collected types", "(type (struct (field i32)))"),
        ("exceptions", "(tag $e)"),
        (
            "wide arithmetic",
            "(func (param i64 i64) (drop (drop (i64.mul_wide_s (local.get 0) (local.get 1)))))",
        ),
        ("custom page sizes", "(memory 1 (pagesize 1))"),
        ("stack switching", "(type $f (func)) (type $c (cont $f))"),
    ];
    for (feature, code) in features {
        let Ok(bytes) = wat::parse_str(format!("(component (core module {code}))")) else {
            panic!("{feature}: the test's own text is wrong")
        };
        let refused = load_bytes("p", bytes, &json!({})).await.unwrap_err();
        assert_eq!(refused.reason(), "NotCompiled", "{feature}: {}", chain(&refused));
    }
    let async_function = "(component (core module $m (func (export \"f\"))) (core instance $i (instantiate $m)) \
        (func (export \"f\") async (canon lift (core func $i \"f\") async)))";
    if let Ok(bytes) = wat::parse_str(async_function) {
        assert_eq!(load_bytes("p", bytes, &json!({})).await.unwrap_err().reason(), "NotCompiled");
    }
}

#[tokio::test]
async fn t10_changed_code_in_the_cache_is_never_run() {
    let folder = tempfile::tempdir().unwrap();
    crate::compiler::flip_each(folder.path(), 1024).await;
}

#[tokio::test]
async fn t10_code_that_was_checked_is_what_runs_though_the_cache_is_changed_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    crate::compiler::overwrite_beneath(folder.path()).await;
}

#[tokio::test]
async fn t11_nothing_of_one_tenant_reaches_another() {
    let counts = load("count", &json!({})).await.unwrap();
    for revision in 0..50 {
        // Another revision is another call, so that none is answered from before.
        let base = call(Record::default());
        let release = pintle_plugin::Release { revision, ..base.release.clone() };
        let result = counts.check(Call { release, ..base }, target()).await;
        assert!(!result.reused && line(&result) == "Ready", "{}", line(&result));
    }
    let guest = encode::guest_with("look", &[("\"Pod\"", "\"Secret\"")]);
    let granted = json!({"grants": {"read": [{"apiGroups": [""], "kinds": ["Secret"]}]}});
    let first = load_bytes("p", guest, &granted).await.unwrap();
    assert!(!first.check(call(knows_secret()), target()).await.reused);
    assert!(first.check(call(knows_secret()), target()).await.reused);
    let without = first.rebind(&spec(&json!({}))).await.unwrap();
    assert!(!without.check(call(knows_secret()), target()).await.reused, "other grants");
    let denied = first.check(call(OfOwner(Record::default())), target()).await;
    assert!(!denied.reused, "an owner who may not read what the answer was made from");
}

#[test]
fn t12_an_old_or_withdrawn_component_is_refused_though_it_was_signed() {
    let key = vec![Signer::Key("sha256:k".into())];
    let policies = |more: Value| {
        let mut spec = json!({"match": {"images": ["r.example/**"], "signers": [{"key": "sha256:k"}]}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        [policy(spec)]
    };
    let newer = policies(json!({"minVersion": "1.0.1"}));
    assert!(matches!(admit(&newer, &candidate(key.clone())), Err(PolicyRefusal::TooOld { .. })));
    let withdrawn = policies(json!({"deniedDigests": [candidate(Vec::new()).digest]}));
    assert!(matches!(admit(&withdrawn, &candidate(key)), Err(PolicyRefusal::Withdrawn { .. })));
}

#[tokio::test]
async fn t13_a_plugin_that_changes_its_mind_without_a_reason_is_told_apart() {
    let plugin = load("clock", &json!({})).await.unwrap();
    let mut churn = Churn::default();
    let mut restless = false;
    for attempt in 1..20_u32 {
        let mut asked = call(Record::default());
        asked.clock.attempt = 1 + attempt % 2;
        let result = plugin.check(asked, target()).await;
        let answer = u64::from(line(&result) == "Ready");
        restless |= churn.told(result.inputs, answer, Timestamp::UNIX_EPOCH);
    }
    assert!(restless, "it flips between ready and pending with the same inputs");
}

#[tokio::test]
async fn t14_a_finalizer_works_without_registry_and_compiler_and_a_failing_one_never_says_ready() {
    let folder = tempfile::tempdir().unwrap();
    let options = crate::compiler::options(folder.path());
    let answer = json!({"ok": {"verdict": "ready"}});
    let bytes: Arc<[u8]> = canned("reconciler", "finalize", &answer).into();
    let artifact = || Artifact { name: "p".into(), digest: "sha256:0".into(), bytes: Arc::clone(&bytes) };
    Plugin::load(&Engine::new(&options).unwrap(), artifact(), &spec(&json!({}))).await.unwrap();
    let compiler = Compiler::Child { program: "/no/compiler/any/more".into(), args: Vec::new() };
    let engine = Engine::new(&Options { compiler, ..options }).unwrap();
    let plugin = Plugin::load(&engine, artifact(), &spec(&json!({}))).await.unwrap();
    let Outcome::Answered(desired) = plugin.finalize(call(Record::default()), &[]).await.outcome else {
        panic!()
    };
    assert!(desired.verdict.is_ready());
    let Outcome::Failed(failure) = plugin.reconcile(call(Record::default()), &[]).await.outcome else {
        panic!("the other function traps")
    };
    assert!(matches!(failure, CallFailure::Trap { .. }));
    assert!(!failure.verdict("p", &target().reference()).is_ready());
}

#[tokio::test]
async fn t15_texts_of_a_plugin_cannot_pass_for_somebody_elses() {
    let odd = "\u{1b}]0;x\u{7}\u{202e}Ready\nkubelet: all is well\u{2028}";
    let odd = &format!("{odd}{}", "x".repeat(5_000));
    let answer = json!({"ok": {"verdict": {"pending": {"blockers": [{"reason": odd, "message": odd}]}},
        "report": {"conditions": [{"name": "Ready", "status": "met", "reason": odd, "message": odd}],
            "events": [{"reason": "Fine", "message": odd}]}}});
    let plugin = load_bytes("p", canned("readiness", "check", &answer), &json!({})).await.unwrap();
    let Outcome::Answered(checked) = plugin.check(call(Record::default()), target()).await.outcome else {
        panic!()
    };
    let (condition, event) = (&checked.report.conditions[0], &checked.report.events[0]);
    let blocker = &checked.verdict.blockers()[0];
    assert_eq!(condition.kind, "p/Ready", "a condition of the host has no such name");
    assert_eq!((condition.reason.as_str(), blocker.reason.as_str()), ("Other", "Other"));
    for text in [&condition.message, &event.message, &blocker.message] {
        assert!(text.len() <= 1024 && !text.chars().any(char::is_control), "{text:?}");
        assert!(!text.contains(['\u{202e}', '\u{2028}']), "{text:?}");
    }
    assert!(event.message.starts_with("p: ") && blocker.message.starts_with("p: "));
    assert_eq!(plugin.known_reason("Fine"), "Other", "a label of a metric is only what the manifest lists");
}

#[tokio::test]
async fn a_dropped_object_is_gone_whoever_rendered_it() {
    let answer = json!({"ok": {"edits": [{"key": "s"}]}});
    let plugin = load_bytes("p", canned("post-renderer", "post-render", &answer), &json!({})).await.unwrap();
    let rendered = Rendered {
        key: "s".into(),
        state: "1000".into(),
        pool: String::new(),
        source: String::new(),
        object: Arc::new(secret()),
    };
    let Outcome::Answered(edited) = plugin.post_render(call(Record::default()), vec![rendered]).await.outcome
    else {
        panic!()
    };
    assert_eq!(edited.edits, [Edit::Drop { key: "s".into() }]);
}
