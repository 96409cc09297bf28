//! Why a call gave no answer. The variant alone decides label, retry and breaker.

use std::time::Duration;

use pintle_api::{Blocker, ObjectRef, Verdict};

use super::Report;
use crate::text;

/// When the same call may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// When the owner, the config, the plugin or something that was read changes.
    WhenInputsChange,
    /// Later, with a growing pause.
    WithBackOff,
    /// Not for this operation, which has failed.
    Never,
}

/// Why a call gave no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallFailure {
    /// The guest did what WebAssembly forbids, or panicked.
    #[error("the plugin trapped: {what}{}", last_words(.said))]
    Trap {
        /// The trap.
        what: String,
        /// The last error it logged: in Rust guests the panic's message.
        said: Option<String>,
    },
    /// It asked for more linear memory than it may have.
    #[error("the plugin wanted {wanted} bytes of memory, spec.limits.memory gives {limit}")]
    OutOfMemory {
        /// Bytes it asked for, all memories together.
        wanted: usize,
        /// Bytes it may have.
        limit: usize,
    },
    /// It asked for larger tables than it may have.
    #[error("the plugin wanted {wanted} table elements, at most {limit} are given")]
    OutOfTables {
        /// Elements it asked for, all tables together.
        wanted: usize,
        /// Elements it may have.
        limit: usize,
    },
    /// It held more handles than it may.
    #[error("the plugin wanted more than {limit} handles at once")]
    OutOfHandles {
        /// Handles it may hold.
        limit: usize,
    },
    /// It recursed too deeply.
    #[error("the plugin ran out of stack, {limit} bytes are given")]
    OutOfStack {
        /// Bytes it may have.
        limit: usize,
    },
    /// It did not end in time.
    #[error("the plugin did not end within {limit:?} (spec.limits.timeout)")]
    TimedOut {
        /// The time it may take.
        limit: Duration,
    },
    /// It read more often or more bytes than it may.
    #[error("the plugin read too much: more than {limit} {unit} in one call")]
    ReadBudget {
        /// What it may read.
        limit: usize,
        /// Of what.
        unit: &'static str,
    },
    /// It logged without end.
    #[error("the plugin logged more than {limit} lines in one call")]
    LogFlood {
        /// Lines after which the call ends.
        limit: u32,
    },
    /// What it is given would be too large.
    #[error("the inputs are {size} bytes, a plugin gets at most {limit}")]
    InputTooLarge {
        /// Bytes of input.
        size: usize,
        /// Bytes it may get.
        limit: usize,
    },
    /// The arguments in the annotation are not what it takes.
    #[error("the arguments in the annotation are refused: {0}")]
    Args(String),
    /// What it handed over could not be taken over: too large, not UTF-8, an unknown case.
    #[error("what the plugin returned cannot be taken over: {0}")]
    Unreadable(String),
    /// What it returned breaks the contract.
    #[error("the answer of the plugin is not valid: {0}")]
    InvalidAnswer(String),
    /// It says itself why it gives no answer.
    #[error("the plugin failed: {message}")]
    Guest {
        /// When to call again.
        retry: Retry,
        /// In its words, cleaned.
        message: String,
        /// What it is about.
        blockers: Vec<Blocker>,
        /// What it wants told and kept nevertheless.
        report: Box<Report>,
    },
    /// It has no such function.
    #[error("the plugin does not export {0}; name a plugin that does, or an image that has it")]
    NotExported(&'static str),
    /// The host ended the call: it is shutting down.
    #[error("the call was given up because the host stops")]
    Stopped,
}

fn last_words(said: &Option<String>) -> String {
    said.as_ref().map(|said| format!("; it last said: {said}")).unwrap_or_default()
}

// === impl CallFailure ===

impl CallFailure {
    /// Label of the metric `plugin_calls_total{result}`.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Trap { .. } | Self::OutOfStack { .. } => "trap",
            Self::OutOfMemory { .. } | Self::OutOfTables { .. } => "oom",
            Self::TimedOut { .. } => "timeout",
            Self::ReadBudget { .. }
            | Self::OutOfHandles { .. }
            | Self::LogFlood { .. }
            | Self::InputTooLarge { .. } => "budget",
            Self::Unreadable(_) | Self::InvalidAnswer(_) | Self::Args(_) | Self::NotExported(_) => "invalid",
            Self::Guest { retry: Retry::WithBackOff, .. } => "transient",
            Self::Guest { .. } => "fatal",
            Self::Stopped => "stopped",
        }
    }

    /// CamelCase reason for conditions and blockers.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Trap { .. } => "PluginTrapped",
            Self::OutOfStack { .. } => "PluginOutOfStack",
            Self::OutOfMemory { .. } => "PluginOutOfMemory",
            Self::OutOfTables { .. } => "PluginOutOfTables",
            Self::OutOfHandles { .. } => "PluginOutOfHandles",
            Self::TimedOut { .. } => "PluginTimedOut",
            Self::ReadBudget { .. } => "PluginReadsTooMuch",
            Self::LogFlood { .. } => "PluginLogsTooMuch",
            Self::InputTooLarge { .. } => "PluginInputTooLarge",
            Self::Unreadable(_) | Self::InvalidAnswer(_) => "PluginAnswerInvalid",
            Self::Guest { .. } => "PluginFailed",
            Self::Args(_) => "InvalidArguments",
            Self::NotExported(_) => "PluginLacksFunction",
            Self::Stopped => "PluginStopped",
        }
    }

    /// When the same call may be tried again.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::Guest { retry, .. } => *retry,
            Self::Trap { .. }
            | Self::OutOfMemory { .. }
            | Self::OutOfTables { .. }
            | Self::OutOfHandles { .. }
            | Self::OutOfStack { .. }
            | Self::TimedOut { .. }
            | Self::LogFlood { .. }
            | Self::Stopped => Retry::WithBackOff,
            Self::ReadBudget { .. }
            | Self::InputTooLarge { .. }
            | Self::Unreadable(_)
            | Self::InvalidAnswer(_)
            | Self::Args(_)
            | Self::NotExported(_) => Retry::WhenInputsChange,
        }
    }

    /// True when the breaker of plugin and release counts this.
    #[must_use]
    pub fn trips_breaker(&self) -> bool {
        match self {
            Self::Trap { .. }
            | Self::OutOfMemory { .. }
            | Self::OutOfTables { .. }
            | Self::OutOfHandles { .. }
            | Self::OutOfStack { .. }
            | Self::TimedOut { .. }
            | Self::LogFlood { .. }
            | Self::ReadBudget { .. }
            | Self::Unreadable(_) => true,
            Self::InputTooLarge { .. }
            | Self::InvalidAnswer(_)
            | Self::Args(_)
            | Self::Guest { .. }
            | Self::NotExported(_)
            | Self::Stopped => false,
        }
    }

    /// The failure as a verdict about `target`: never ready, and never without a blocker.
    #[must_use]
    pub fn verdict(&self, plugin: &str, target: &ObjectRef) -> Verdict {
        let mut blockers = match self {
            Self::Guest { blockers, .. } => blockers.clone(),
            _ => Vec::new(),
        };
        if blockers.is_empty() {
            let message = text::said(plugin, &self.to_string());
            blockers.push(Blocker::new(self.reason(), message).on(target.clone()));
        }
        match self.retry() {
            Retry::WithBackOff => Verdict::Transient(blockers),
            Retry::WhenInputsChange | Retry::Never => Verdict::Fatal(blockers),
        }
    }
}
