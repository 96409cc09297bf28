//! What a guest logs reaches our log, as its own words and not as ours.

use std::{
    io,
    sync::{Arc, Mutex},
};

use pintle_api::Record;
use serde_json::{Value, json};

use crate::setting::{call, load, target};

/// Keeps what is written.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().map_err(|_| io::ErrorKind::Other)?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log of one call, as JSON lines.
async fn logged(name: &str, facts: Record) -> Vec<Value> {
    let plugin =
        load(name, &json!({"wasi": true, "grants": {"read": [{"apiGroups": [""], "kinds": ["Pod"]}]}}))
            .await
            .unwrap();
    let kept = Kept::default();
    let writer = kept.clone();
    let subscriber = tracing_subscriber::fmt().json().with_writer(move || writer.clone()).finish();
    let guard = tracing::subscriber::set_default(subscriber);
    plugin.check(call(facts), target()).await;
    drop(guard);
    let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_line_names_its_plugin_and_keeps_its_fields_to_itself() {
    let lines = logged("fields", Record::default()).await;
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["level"], "WARN");
    assert_eq!(lines[0]["target"], "plugin");
    let expected = json!({"plugin": "fields", "release": "r", "fields": "{\"node\":\"a b\"}", "message": "slow [2J node"});
    assert_eq!(lines[0]["fields"], expected);
}

#[tokio::test]
async fn a_call_that_will_be_made_again_logs_once() {
    assert_eq!(logged("chatty", Record::default()).await.len(), 100);
    assert_eq!(logged("read", Record::default()).await.len(), 0);
}

#[tokio::test]
async fn what_a_guest_prints_is_logged_line_by_line_and_cleaned() {
    let lines = logged("wasi-prints", Record::default()).await;
    let messages: Vec<_> = lines.iter().map(|line| &line["fields"]["message"]).collect();
    assert_eq!(messages, ["hello [2J", "second"]);
    assert_eq!(lines[0]["level"], "INFO");
}
