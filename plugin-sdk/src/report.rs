//! What a call wants told and kept, whatever it decides. Every answer has these functions.

use serde_json::Value;

use crate::{Action, ObjectRef, bindings::pintle::plugin::types::Report};

// === impl Action ===

impl Action {
    /// Something the host does once per `key` and release: `evict`, `cordon`, `uncordon`, `delete` or
    /// `restart`. Verbs are granted by name.
    pub fn new(key: impl Into<String>, verb: &str, target: ObjectRef) -> Self {
        Self { key: key.into(), verb: verb.to_owned(), target, arguments: "{}".to_owned() }
    }

    /// With arguments of the verb.
    #[must_use]
    pub fn arguments(mut self, arguments: &Value) -> Self {
        self.arguments = arguments.to_string();
        self
    }
}

/// Nothing to tell.
pub(crate) fn nothing() -> Report {
    Report {
        conditions: Vec::new(),
        events: Vec::new(),
        actions: Vec::new(),
        status: None,
        save: None,
        extra: None,
    }
}

/// Gives types with a field `report` the functions that fill it.
macro_rules! tells {
    ($($answer:ty),+) => {$(
        impl $answer {
            /// Tells a condition, which the host names `<plugin>/<name>`.
            #[must_use]
            pub fn condition(
                mut self,
                name: &str,
                status: $crate::ConditionStatus,
                reason: &str,
                message: impl Into<String>,
            ) -> Self {
                let [name, reason] = [name, reason].map(str::to_owned);
                let condition = $crate::Condition { name, status, reason, message: message.into() };
                self.report.conditions.push(condition);
                self
            }

            /// Tells an event about the owner.
            #[must_use]
            pub fn event(
                mut self,
                kind: $crate::EventKind,
                reason: &str,
                message: impl Into<String>,
            ) -> Self {
                let (reason, message) = (reason.to_owned(), message.into());
                self.report.events.push($crate::Event { kind, reason, message, regarding: None });
                self
            }

            /// Asks the host to do something, at most once per key and release.
            #[must_use]
            pub fn action(mut self, action: $crate::Action) -> Self {
                self.report.actions.push(action);
                self
            }

            /// Merges into the plugin's own part of the status.
            #[must_use]
            pub fn status(mut self, patch: &serde_json::Value) -> Self {
                self.report.status = Some(patch.to_string());
                self
            }

            /// Keeps this for the next call, as [`crate::inputs::saved`]; at most 16 KiB. It is stored
            /// before anything of this answer is done. Null clears it.
            #[must_use]
            pub fn save(mut self, value: &serde_json::Value) -> Self {
                self.report.save = Some(value.to_string());
                self
            }

            /// What is told and kept.
            #[must_use]
            pub fn report(&self) -> &$crate::Report {
                &self.report
            }
        }
    )+};
}
pub(crate) use tells;
