//! Events for people; when one is due is the caller's to decide.

use jiff::Timestamp;
use pintle_api::{Object, ObjectRef, names};
use serde_json::{Value, json};

use super::{ApiError, Writer};
use crate::counters::Verb;

/// Longest message of an event, in bytes, that the API takes.
const MESSAGE: usize = 1024;

/// Whether an event tells of the usual or of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// As intended.
    Normal,
    /// Somebody may have to act.
    Warning,
}

/// One event about an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// What it is about.
    pub regarding: ObjectRef,
    /// uid of what it is about; `kubectl describe` finds events by it.
    pub uid: Option<String>,
    /// Normal or Warning.
    pub kind: NoteKind,
    /// CamelCase word for machines.
    pub reason: String,
    /// CamelCase word for what was being done.
    pub action: String,
    /// A sentence for people; cut at 1 KiB.
    pub message: String,
    /// When it happened.
    pub at: Timestamp,
    /// Which process reports it.
    pub reporter: String,
}

impl Writer {
    /// Creates one `events.k8s.io/v1` Event in the namespace of the object, or in `default` for objects of
    /// cluster scope.
    ///
    /// # Errors
    /// See [`super::Cause`]. An event that could not be written is no reason to stop.
    ///
    /// # Cancellation
    /// The event may or may not have been written.
    pub async fn event(&self, note: &Note) -> Result<(), ApiError> {
        let body = body(note);
        let target = ObjectRef::new("events.k8s.io/v1", "Event", &note.regarding.name);
        let event = Object::new(body).map_err(|e| super::unfit(Verb::Create, &target, &e))?;
        self.create(&event).await.map(drop)
    }
}

fn body(note: &Note) -> Value {
    let namespace = note.regarding.namespace.as_deref().unwrap_or("default");
    let kind = match note.kind {
        NoteKind::Normal => "Normal",
        NoteKind::Warning => "Warning",
    };
    // Names of events are DNS subdomains; those of RBAC objects may hold colons.
    let prefix: String =
        note.regarding.name.chars().map(|c| if c == ':' { '.' } else { c }).take(200).collect();
    let mut regarding = json!({
        "apiVersion": note.regarding.api_version, "kind": note.regarding.kind, "name": note.regarding.name,
    });
    if let Value::Object(regarding) = &mut regarding {
        let optional = [("namespace", &note.regarding.namespace), ("uid", &note.uid)];
        for (field, value) in optional.into_iter().filter_map(|(field, value)| Some((field, value.as_ref()?)))
        {
            regarding.insert(field.to_owned(), Value::from(value.as_str()));
        }
    }
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": format!("{}-", prefix.trim_end_matches('.')), "namespace": namespace},
        "eventTime": micros(note.at),
        "type": kind,
        "reason": note.reason,
        "action": note.action,
        "note": cut(&note.message),
        "regarding": regarding,
        "reportingController": names::MANAGER,
        "reportingInstance": note.reporter,
    })
}

/// RFC 3339 with six digits, which is what MicroTime takes.
pub(super) fn micros(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

fn cut(message: &str) -> &str {
    let mut end = message.len().min(MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.get(..end).unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_between_characters() {
        let long = "ä".repeat(600);
        assert_eq!(cut(&long).len(), 1024);
        assert_eq!(cut("short"), "short");
    }
}
