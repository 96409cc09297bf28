//! A call as a document: made again with the same bytes, and without a value of a Secret in it.

use std::sync::Arc;

use pintle_api::{Answer, Given, Query, Read, Record, plugin::Identity};
use pintle_plugin::{
    Call, Keyed, Outcome, Ownership, Phase, Plugin, Rendered,
    transcript::{Answered, Ask, Kept, Transcript},
};
use serde_json::{Value, json};

use crate::{
    canned::canned,
    setting::{call, load, load_bytes, object, target},
};

fn secret() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"},
        "data": {"password": "aHVudGVyMg=="}})
}

fn config_map() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "n"}, "data": {}})
}

fn keyed(json: Value) -> Keyed {
    Keyed {
        key: "k".into(),
        ownership: Ownership::Whole,
        object: Arc::new(object(json)),
        identity: Identity::Owner,
    }
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

/// Makes a call, writes it down, reads that again, and makes it once more.
async fn round(plugin: &Plugin, call: Call, ask: Ask) -> Transcript {
    let result = plugin.answer(&ask, call.clone()).await;
    assert!(matches!(result.outcome, Outcome::Answered(_)), "{:?}", result.outcome);
    let transcript = Kept::new(plugin, &call, ask, &result).transcript();
    let text = serde_json::to_string(&transcript).unwrap();
    assert!(!text.contains("aHVudGVyMg") && !text.contains("hunter2"), "{text}");
    let read = Transcript::parse(&text).unwrap();
    assert_eq!(read, transcript);
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    let again = read.replay(plugin).await;
    assert!(read.is_reproduced_by(&again), "{:?}", again.outcome);
    transcript
}

#[tokio::test]
async fn a_call_of_every_function_is_reproduced_to_the_byte() {
    let maps = json!({"objects": [{"apiGroups": [""], "kinds": ["ConfigMap", "Secret"], "namespaces": ["$release"]}]});
    let made = |name: &str| {
        json!([{"key": "k", "object": {"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "n"}}}])
    };
    let applied = || vec![keyed(config_map()), keyed(secret())];
    let check = Ask::Check { target: target() };
    let on_phase = Ask::OnPhase {
        phase: Phase::Waiting,
        rendered: vec![Arc::new(object(secret()))],
        applied: applied(),
    };
    let objects = vec![rendered("a", config_map()), rendered("b", secret())];
    for (interface, function, answer, ask) in [
        ("value-mapper", "map-values", json!({"ok": {"values": "{\"a\":1}"}}), Ask::MapValues),
        (
            "post-renderer",
            "post-render",
            json!({"ok": {"edits": [{"key": "a"}]}}),
            Ask::PostRender { objects },
        ),
        (
            "readiness",
            "check",
            json!({"ok": {"verdict": {"pending": {"blockers": [{"reason": "R", "message": "m"}]}},
                "report": {"save": {"n": 1}}}}),
            check,
        ),
        ("hooks", "on-phase", json!({"ok": {"outcome": "go", "want": made("h")}}), on_phase),
        (
            "reconciler",
            "reconcile",
            json!({"ok": {"verdict": "ready", "objects": made("r")}}),
            Ask::Reconcile { applied: applied() },
        ),
        ("reconciler", "finalize", json!({"ok": {"verdict": "ready"}}), Ask::Finalize { applied: applied() }),
    ] {
        let bytes = canned(interface, function, &answer);
        let plugin = load_bytes("p", bytes, &json!({"grants": maps})).await.unwrap();
        let transcript = round(&plugin, call(Record::default()), ask).await;
        assert_eq!(transcript.not_replayable, None, "{function}");
        assert!(transcript.ask.word().starts_with(function), "{function}");
    }
}

#[tokio::test]
async fn reads_with_their_answers_go_along_and_secrets_are_masked_in_them() {
    let grants = json!({"read": [{"apiGroups": [""], "kinds": ["Pod", "Secret"]}]});
    let plugin = load("find", &json!({"grants": grants})).await.unwrap();
    let mut facts = Record::default();
    let all = |kind: &str| Query {
        api_version: "v1".into(),
        kind: kind.into(),
        namespace: None,
        label_selector: None,
    };
    for (kind, item) in [("Pod", config_map()), ("Secret", secret())] {
        let list = vec![Arc::new(object(item))];
        facts.insert(Read::List(all(kind)), Given::Objects(Answer::Found(list)));
    }
    let ask = Ask::Check { target: target() };
    let result = plugin.answer(&ask, call(facts.clone())).await;
    // Whatever this guest asks, and be it denied or unknown: it is written down and ends the same again.
    let mut kept = result.clone();
    kept.record = facts;
    let transcript = Kept::new(&plugin, &call(Record::default()), ask, &kept).transcript();
    let text = serde_json::to_string(&transcript).unwrap();
    assert!(text.contains("\"password\":\"\"") && !text.contains("aHVudGVyMg"), "{text}");
    assert!(transcript.is_reproduced_by(&transcript.replay(&plugin).await));
    // A read that was not recorded is not guessed.
    let mut other = transcript;
    other.reads = Record::default();
    let unknown = other.replay(&plugin).await;
    assert!(matches!(unknown.outcome, Outcome::NeedsFacts(_)), "{:?}", unknown.outcome);
}

#[tokio::test]
async fn a_call_that_may_have_seen_a_secret_is_not_replayable_and_keeps_nothing_it_said() {
    let answer = json!({"ok": {"verdict": "ready", "report": {"save": {"token": "hunter2"},
        "status": {"seen": "hunter2"}}}});
    let grants = json!({"secretValues": [{"names": ["s"]}]});
    let plugin =
        load_bytes("p", canned("readiness", "check", &answer), &json!({"grants": grants})).await.unwrap();
    let before = Call { saved: Some(Arc::new(json!({"token": "hunter2"}))), ..call(Record::default()) };
    let ask = Ask::Check { target: Arc::new(object(secret())) };
    let result = plugin.answer(&ask, before.clone()).await;
    assert!(matches!(result.outcome, Outcome::Answered(Answered::Checked(_))), "{:?}", result.outcome);
    let transcript = Kept::new(&plugin, &before, ask, &result).transcript();
    let text = serde_json::to_string(&transcript).unwrap();
    assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
    assert!(transcript.not_replayable.is_some_and(|why| why.contains("may see values of Secrets")));
    assert_eq!(transcript.answer, json!({"verdict": "ready"}));
}

#[test]
fn what_is_no_transcript_is_refused() {
    assert_eq!(Transcript::parse("{").unwrap_err().to_string(), "it is no transcript");
    let later = Transcript::parse("{\"transcript\": \"pintle.dev/transcript/v9\"}").unwrap_err();
    assert!(later.to_string().contains("v9\", this program reads \"pintle.dev/transcript/v1\""), "{later}");
}

#[tokio::test]
async fn calls_that_ask_the_same_have_the_same_key() {
    let answer = json!({"ok": {"verdict": "ready"}});
    let plugin = load_bytes("p", canned("readiness", "check", &answer), &json!({})).await.unwrap();
    let key = |call: Call, name: &str| {
        let about = object(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}));
        let ask = Ask::Check { target: Arc::new(about) };
        let plugin = &plugin;
        async move {
            let result = plugin.answer(&ask, call.clone()).await;
            Kept::new(plugin, &call, ask, &result).key()
        }
    };
    let first = key(call(Record::default()), "a").await;
    assert_eq!(first, key(call(Record::default()), "a").await);
    assert_ne!(first, key(call(Record::default()), "b").await);
    let other = Call { state: "2000".into(), ..call(Record::default()) };
    assert_ne!(first, key(other, "a").await);
}
