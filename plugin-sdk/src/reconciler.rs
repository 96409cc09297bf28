//! Plugins that are a whole reconciler: what shall be there is a function of what was read.

use serde_json::Value;

use crate::{
    Answer, Blocker, Call, Context, Failure, Live, Ownership, Pending, Plugin,
    bindings::{
        pintle::plugin::types::{self, KeyedObject, Report, Verdict},
        reconciler,
    },
    own::keyed,
    plugin::{Adapter, begin},
    report::tells,
};

/// A plugin that reconciles an owner, which is [`crate::inputs::owner`].
///
/// ```
#[doc = include_str!("../examples/greeter.rs")]
/// # example();
/// ```
pub trait Reconciler: Plugin {
    /// What shall be there; `applied` is what is there of what it wanted at its last call.
    ///
    /// # Errors
    /// When it cannot say; the failure says when to ask again.
    fn reconcile(call: &Call<Self::Config>, applied: &[Live]) -> Result<Desired, Failure>;

    /// What shall still be there while the owner goes. Ready means that the finalizer may go once
    /// nothing is left; without a function of its own nothing shall.
    ///
    /// # Errors
    /// When it cannot say; the failure says when to ask again.
    fn finalize(_call: &Call<Self::Config>, _applied: &[Live]) -> Result<Desired, Failure> {
        Ok(Desired::new(Answer::ready()))
    }
}

/// What shall be there, and whether that is so.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    verdict: Verdict,
    objects: Vec<KeyedObject>,
    report: Report,
}

// === impl Desired ===

impl Desired {
    /// No objects yet, and whether the owner is ready.
    pub fn new(answer: impl Into<Answer>) -> Self {
        let Answer { verdict, report } = answer.into();
        Self { verdict, objects: Vec::new(), report }
    }

    /// Ready, unless there is something to wait for.
    pub fn unless(blockers: impl IntoIterator<Item = Blocker>) -> Self {
        Self::new(Answer::unless(blockers))
    }

    /// An object that shall be there, whole. What a later call does not have is deleted.
    #[must_use]
    pub fn object(mut self, key: impl Into<String>, object: &Value) -> Self {
        self.objects.push(keyed(key, Ownership::Whole, object));
        self
    }

    /// Fields that an object of others shall have.
    #[must_use]
    pub fn part(mut self, key: impl Into<String>, object: &Value) -> Self {
        self.objects.push(keyed(key, Ownership::Part, object));
        self
    }

    /// True when ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.verdict, Verdict::Ready)
    }

    /// What is waited for; nothing when ready.
    #[must_use]
    pub fn pending(&self) -> Option<Pending> {
        match &self.verdict {
            Verdict::Ready => None,
            Verdict::Pending(pending) => Some(Pending(pending.clone())),
        }
    }

    /// Keys and texts of the objects.
    pub fn objects(&self) -> impl Iterator<Item = (&str, &str)> {
        self.objects.iter().map(|object| (object.key.as_str(), object.object.as_str()))
    }
}

tells!(Desired);

/// Asks what shall be there, natively as inside a component.
pub(crate) fn reconcile<P: Reconciler>(
    context: Context,
    applied: Vec<KeyedObject>,
) -> Result<Desired, Failure> {
    P::reconcile(&Call::begin(context)?, &Live::all(applied))
}

/// Asks what shall still be there, natively as inside a component.
pub(crate) fn finalize<P: Reconciler>(
    context: Context,
    applied: Vec<KeyedObject>,
) -> Result<Desired, Failure> {
    P::finalize(&Call::begin(context)?, &Live::all(applied))
}

impl<P: Reconciler> reconciler::Guest for Adapter<P> {
    fn reconcile(context: Context, applied: Vec<KeyedObject>) -> Result<reconciler::Desired, types::Failure> {
        begin();
        Ok(reconcile::<P>(context, applied)?.into())
    }

    fn finalize(context: Context, applied: Vec<KeyedObject>) -> Result<reconciler::Desired, types::Failure> {
        begin();
        Ok(finalize::<P>(context, applied)?.into())
    }
}

impl From<Desired> for reconciler::Desired {
    fn from(Desired { verdict, objects, report }: Desired) -> Self {
        Self { verdict, objects, report }
    }
}
