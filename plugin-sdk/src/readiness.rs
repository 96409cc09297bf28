//! Plugins that say whether an object is ready.

use crate::{
    Answer, Call, Context, Failure, Json, Plugin,
    bindings::{pintle::plugin::types, readiness},
    plugin::{Adapter, begin},
};

/// A plugin that says whether the object with the annotation is ready.
pub trait Readiness: Plugin {
    /// Is the target, the live object, ready? The same inputs and reads must have the same answer.
    ///
    /// # Errors
    /// When it cannot say; the failure says when to ask again.
    fn check(call: &Call<Self::Config>, target: &Json) -> Result<Answer, Failure>;
}

/// Answers one question, natively as inside a component.
pub(crate) fn check<P: Readiness>(context: Context, target: String) -> Result<Answer, Failure> {
    P::check(&Call::begin(context)?, &Json::new("the target", target))
}

impl<P: Readiness> readiness::Guest for Adapter<P> {
    fn check(context: Context, target: String) -> Result<readiness::Answer, types::Failure> {
        begin();
        let Answer { verdict, report } = check::<P>(context, target)?;
        Ok(readiness::Answer { verdict, report })
    }
}
