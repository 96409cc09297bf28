//! What one render may use of the world, and how much of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::value::{Entries, Value, map_value};

/// Everything a render depends on besides the templates and the data.
///
/// Two renders with equal runs give equal bytes: `now` is [`Run::time`], and random functions draw
/// from [`Run::seed`].
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// How much a render may do.
    pub limits: Limits,
    /// Where random functions start, recorded with the revision.
    pub seed: [u8; 32],
    /// What `now` says, in seconds since 1970 UTC: the time of the revision.
    pub time: i64,
    /// Answers `lookup`.
    pub lookup: &'a dyn Lookup,
    /// Set from another thread, it ends the render with an error at the next step; see [`Cancel`].
    pub cancel: Option<&'a AtomicBool>,
    /// A missing key is an error instead of nil.
    pub strict: bool,
    /// `required` and `fail` do not stop the render.
    pub lint: bool,
}

/// What one render may use up. A limit that is met is an error that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Nodes executed, functions called and loop rounds, with all includes.
    pub steps: u64,
    /// Bytes written to the file, and bytes of any one text a template makes on the way.
    pub output: usize,
    /// Nested includes of one name; Helm's limit.
    pub include_depth: usize,
    /// Nested templates of all names: includes, `template`, `tpl`.
    pub template_depth: usize,
    /// Items of a list a function makes from a number: `until`, `untilStep`, `seq`.
    pub items: usize,
    /// Bytes of a compiled regular expression.
    pub regex: usize,
}

impl Default for Limits {
    /// Ten times what the largest public charts need (kube-prometheus-stack: 3 million steps, 3 MB).
    fn default() -> Self {
        Self {
            steps: 50_000_000,
            output: crate::value::print::MAX_TEXT,
            include_depth: 1_000,
            template_depth: 4_000,
            items: 100_000,
            regex: 10 << 20,
        }
    }
}

/// Ends renders from another thread: who gives up, or minds a deadline, keeps a clone and calls
/// [`Cancel::cancel`]; the render looks at it with each step it pays for.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

/// Answers the function `lookup`.
pub trait Lookup: Sync {
    /// The object as a Go map; the list object when `name` is empty; an empty map when there is none.
    ///
    /// # Errors
    /// When the kind is unknown, the right is missing or the answer is not known yet.
    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Value, LookupError>;
}

/// Why a `lookup` has no answer. The text is shown at the place of the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The object is not in the caches yet; the caller fetches it and renders again.
    #[error("{0} is not known yet")]
    NotYet(String),
    /// The cluster refused.
    #[error("not allowed to read {0}")]
    Denied(String),
    /// Anything else, as the cluster said it.
    #[error("{0}")]
    Failed(String),
}

/// A cluster with nothing in it: what `helm template` sees.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCluster;

impl Lookup for NoCluster {
    fn lookup(&self, _: &str, _: &str, _: &str, _: &str) -> Result<Value, LookupError> {
        Ok(map_value(Entries::new()))
    }
}

// === impl Cancel ===

impl Cancel {
    /// A handle that has cancelled nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends every render that has this handle with [`crate::ErrorKind::Cancelled`], also those that begin
    /// later.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// For [`Run::cancel`].
    #[must_use]
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }
}

// === impl Run ===

impl<'a> Run<'a> {
    /// A run at the epoch, with a zero seed and default limits.
    pub fn new(lookup: &'a dyn Lookup) -> Self {
        Self {
            limits: Limits::default(),
            seed: [0; 32],
            time: 0,
            lookup,
            cancel: None,
            strict: false,
            lint: false,
        }
    }

    /// Whether the caller has given up.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The seed makes passwords: it is no text for a log.
        f.debug_struct("Run").field("limits", &self.limits).field("time", &self.time).finish()
    }
}
