//! Plugins that are called around a state, or around the whole release.

use serde_json::Value;

use crate::{
    Call, Context, Failure, Json, Live, Ownership, Pending, Phase, Plugin,
    bindings::{
        hooks::{self, Outcome},
        pintle::plugin::types::{self, KeyedObject, Report},
    },
    own::keyed,
    plugin::{Adapter, begin},
    report::{self, tells},
};

/// A plugin that is called around a state. It writes nothing: it says what shall be there meanwhile.
///
/// ```
#[doc = include_str!("../examples/backup_first.rs")]
/// # example();
/// ```
pub trait Hooks: Plugin {
    /// What shall happen now. It may be asked again with the same inputs, and must then answer the
    /// same; what it wants is made once.
    ///
    /// # Errors
    /// When it cannot say; the failure says when to ask again.
    fn on_phase(call: &Call<Self::Config>, around: &Around) -> Result<Step, Failure>;
}

/// What a hook is called around.
#[derive(Clone, Debug, PartialEq)]
pub struct Around {
    /// Before, while waiting, or after.
    pub phase: Phase,
    /// Objects of the state, as rendered.
    pub rendered: Vec<Json>,
    /// What the hook wanted at its last call, as it is in the cluster.
    pub applied: Vec<Live>,
}

/// Go on, hold, or leave out; and what shall be there meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    outcome: Outcome,
    want: Vec<KeyedObject>,
    report: Report,
}

// === impl Step ===

impl Step {
    /// Go on.
    #[must_use]
    pub fn go() -> Self {
        Self::new(Outcome::Go)
    }

    /// Not yet.
    #[must_use]
    pub fn hold(Pending(pending): Pending) -> Self {
        Self::new(Outcome::Hold(pending))
    }

    /// This state is not for this cluster. Only before a state at install, upgrade and rollback.
    pub fn leave_out(why: impl Into<String>) -> Self {
        Self::new(Outcome::LeaveOut(why.into()))
    }

    /// An object that shall be there. What is wanted is the whole set: what a later call does not want
    /// is deleted, and after [`Step::go`] all of it.
    #[must_use]
    pub fn want(mut self, key: impl Into<String>, object: &Value) -> Self {
        self.want.push(keyed(key, Ownership::Whole, object));
        self
    }

    /// Fields that an object of others shall have meanwhile.
    #[must_use]
    pub fn part(mut self, key: impl Into<String>, object: &Value) -> Self {
        self.want.push(keyed(key, Ownership::Part, object));
        self
    }

    /// What was decided.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Keys and texts of the objects that shall be there.
    pub fn wanted(&self) -> impl Iterator<Item = (&str, &str)> {
        self.want.iter().map(|object| (object.key.as_str(), object.object.as_str()))
    }

    fn new(outcome: Outcome) -> Self {
        Self { outcome, want: Vec::new(), report: report::nothing() }
    }
}

tells!(Step);

/// Takes one step, natively as inside a component.
pub(crate) fn step<P: Hooks>(
    context: Context,
    phase: Phase,
    rendered: Vec<String>,
    applied: Vec<KeyedObject>,
) -> Result<Step, Failure> {
    let rendered = rendered.into_iter().map(|object| Json::new("a rendered object", object)).collect();
    P::on_phase(&Call::begin(context)?, &Around { phase, rendered, applied: Live::all(applied) })
}

impl<P: Hooks> hooks::Guest for Adapter<P> {
    fn on_phase(
        context: Context,
        phase: Phase,
        rendered: Vec<String>,
        applied: Vec<KeyedObject>,
    ) -> Result<hooks::Step, types::Failure> {
        begin();
        let Step { outcome, want, report } = step::<P>(context, phase, rendered, applied)?;
        Ok(hooks::Step { outcome, want, report })
    }
}
