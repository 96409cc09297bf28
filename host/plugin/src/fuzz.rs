//! Each function that a guest can call is given anything: it answers or ends the call, and never panics.

use std::sync::Arc;

use pintle_api::{Answer, Facts, LogTail, Object, ObjectRef, Query, plugin::Grants};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    Manifest,
    ability::{images::Images, inputs::Inputs, kube_read::KubeRead, log::Lines, pod_logs::PodLogs},
    bindings::pintle::plugin::{
        images, kube_read, log, pod_logs,
        types::{self, ObjectQuery},
    },
    call::{Called, answer::Rules},
    grants::{Granted, Scope},
    limits,
    memo::Asked,
    reads::Reads,
    seal::Seal,
};

/// A world in which everything is there.
struct Everything;

fn pod(name: &str) -> Arc<Object> {
    let json = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "n",
        "labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}, null, 3]}});
    Arc::new(Object::new(json).unwrap_or_else(|_| Object::default_of("v1", "Pod", "p")))
}

impl Facts for Everything {
    fn get(&self, target: &ObjectRef) -> Answer<Arc<Object>> {
        Answer::Found(pod(&target.name))
    }

    fn list(&self, _: &Query) -> Answer<Vec<Arc<Object>>> {
        Answer::Found((0..700).map(|at| pod(&at.to_string())).collect())
    }

    fn tail(&self, log: &LogTail) -> Answer<String> {
        Answer::Found("line \u{e4}\n".repeat(log.lines.min(100) as usize))
    }

    fn resolve(&self, image: &str) -> Answer<String> {
        Answer::Found(format!("{image} {image}"))
    }
}

fn scope() -> Scope {
    let grants: Grants = serde_json::from_value(json!({
        "read": [{"apiGroups": [""], "kinds": ["Pod"], "fields": ["metadata", "spec.containers.name"]}],
        "logs": [{"labelSelector": "a=b"}], "images": ["r.example/**"],
        "objects": [{"apiGroups": [""], "kinds": ["Pod"]}],
        "parts": [{"apiGroups": [""], "kinds": ["Pod"], "fields": ["spec"]}]}))
    .unwrap_or_default();
    let granted = Arc::new(Granted::new(&grants).unwrap_or_default());
    Scope { plugin: "p".into(), granted, namespace: "n".into(), own: Arc::default() }
}

/// Any text, and texts that are nearly what is expected.
fn text() -> impl Strategy<Value = String> {
    let near = prop::sample::select(vec![
        "",
        "v1",
        "Pod",
        "n",
        "p",
        "a=b",
        "a in (b,c)",
        "!a",
        "metadata.labels",
        "spec.containers.name",
        "a\\.b",
        ".",
        "..",
        "*",
        "r.example/x:1",
        "r.example/../x",
        "(",
        "[a-z]+",
        "{}",
        "[]",
        "null",
        "1",
        "$release",
        "pintle.dev/v1alpha1",
        "PintleSecretValue/000000",
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}",
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\"},\"spec\":[]}",
    ]);
    prop_oneof![near.prop_map(str::to_owned), any::<String>(), ".{0,300}"]
}

fn reference() -> impl Strategy<Value = types::ObjectRef> {
    (text(), text(), prop::option::of(text()), text()).prop_map(|(api_version, kind, namespace, name)| {
        types::ObjectRef { api_version, kind, namespace, name }
    })
}

fn query() -> impl Strategy<Value = ObjectQuery> {
    let parts =
        (text(), text(), prop::option::of(text()), prop::option::of(text()), prop::option::of(text()));
    parts.prop_map(|(api_version, kind, namespace, name, label_selector)| ObjectQuery {
        api_version,
        kind,
        namespace,
        name,
        label_selector,
    })
}

fn run<T>(call: impl Future<Output = T>) -> T {
    // No function of the host waits for anything.
    let mut call = std::pin::pin!(call);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match call.as_mut().poll(&mut context) {
        std::task::Poll::Ready(done) => done,
        std::task::Poll::Pending => unreachable!("a function of the host waited"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn kube_read_get(target in reference(), fields in prop::collection::vec(text(), 0..5)) {
        let (mut reads, scope) = (Reads::new(Arc::new(Everything)), scope());
        let (called, asked) = (&mut Called::default(), &mut Asked::default());
        let mut host = KubeRead { reads: &mut reads, scope: &scope, called, asked };
        drop(run(kube_read::Host::get(&mut host, target, fields)));
    }

    #[test]
    fn kube_read_find(
        query in query(), fields in prop::collection::vec(text(), 0..5), most in any::<u32>(),
        token in prop::option::of(prop_oneof![text(), any::<u64>().prop_map(|number| number.to_string())]),
    ) {
        let (mut reads, scope) = (Reads::new(Arc::new(Everything)), scope());
        let (called, asked) = (&mut Called::default(), &mut Asked::default());
        let mut host = KubeRead { reads: &mut reads, scope: &scope, called, asked };
        let page = run(kube_read::Host::find(&mut host, query, fields, most, token));
        if let Ok(Ok(page)) = page {
            prop_assert!(page.items.len() <= limits::PAGE);
        }
    }

    #[test]
    fn pod_logs_tail_and_search(
        pod in reference(), container in prop::option::of(text()), pattern in text(),
        numbers in any::<(u32, u32, bool)>(),
    ) {
        let (mut reads, scope) = (Reads::new(Arc::new(Everything)), scope());
        let mut called = Called::default();
        let mut host = PodLogs::new(&mut reads, &scope, &mut called);
        let (lines, bytes, previous) = numbers;
        drop(run(pod_logs::Host::tail(&mut host, pod.clone(), container.clone(), previous, lines, bytes)));
        drop(run(pod_logs::Host::search(&mut host, pod, container, pattern)));
    }

    #[test]
    fn images_resolve(reference in text()) {
        let (mut reads, scope) = (Reads::new(Arc::new(Everything)), scope());
        let mut called = Called::default();
        let mut host = Images::new(&mut reads, &scope, &mut called);
        drop(run(images::Host::resolve(&mut host, reference)));
    }

    #[test]
    fn log_emit(message in text(), fields in prop::collection::vec((text(), text()), 0..20)) {
        let mut lines = Lines::default();
        drop(run(log::Host::emit(&mut lines, log::Level::Info, message, fields)));
    }

    #[test]
    fn inputs_of_any_values(values in text()) {
        let values = serde_json::from_str::<Value>(&values).unwrap_or(Value::String(values));
        let inputs = Inputs { values: Some(Arc::new(values)), ..Inputs::default() };
        prop_assert!(inputs.values_text().is_ok() && inputs.owner_text().is_ok());
    }

    #[test]
    fn what_is_returned(
        objects in prop::collection::vec((text(), any::<bool>(), text()), 0..4), condition in text(),
        target in reference(), verb in text(), watch in query(), status in text(),
    ) {
        let scope = scope();
        let rules = Rules { scope: &scope, target: ObjectRef::new("v1", "Pod", "p") };
        let ownership = |part| if part { types::Ownership::Part } else { types::Ownership::Whole };
        let want = objects.into_iter().map(|(key, part, object)| types::KeyedObject {
            key, ownership: ownership(part), object,
        });
        drop(rules.objects(want.collect(), &Seal::default()));
        let action = types::Action { key: verb.clone(), verb, target: target.clone(), arguments: status.clone() };
        let event = types::Event {
            kind: types::EventKind::Normal, reason: condition.clone(), message: condition.clone(),
            regarding: Some(target.clone()),
        };
        let condition = types::Condition {
            name: condition.clone(), status: types::ConditionStatus::Met, reason: condition.clone(), message: condition,
        };
        drop(rules.report(types::Report {
            conditions: vec![condition], events: vec![event], actions: vec![action],
            status: Some(status.clone()), save: Some(status.clone()), extra: Some(status),
        }));
        let blocker = types::Blocker { object: Some(target), node: None, reason: String::new(), message: String::new() };
        drop(rules.hold(types::Pending {
            blockers: vec![blocker], watch: vec![watch], recheck_after_ms: Some(u64::MAX), progress: Some(255),
        }));
    }

    #[test]
    fn a_manifest_of_anything(json in text()) {
        drop(Manifest::parse(&json));
        let wrapped = format!("{{\"manifest\":\"pintle.dev/manifest/v1\",\"name\":\"n\",\"version\":\"1\",\"needs\":{json}}}");
        drop(Manifest::parse(&wrapped));
    }
}
