//! `readiness`: is the object with the annotation ready?

use std::sync::Arc;

use pintle_api::{Object, ObjectRef};
use wasmtime::{Store, component::Instance};

use super::{
    Call, CallResult, Checked,
    answer::Rules,
    failure::CallFailure,
    run::{Function, context},
};
use crate::{
    Plugin,
    ability::inputs,
    bindings::{
        exports::pintle::plugin::readiness::{Answer, GuestIndices},
        pintle::plugin::types::{Context, Failure},
    },
    grants::Scope,
    input,
    state::State,
};

/// One call of `check`.
struct Check {
    indices: GuestIndices,
    context: Context,
    json: String,
    target: ObjectRef,
}

impl Plugin {
    /// Asks whether `target`, the live object that carries the annotation, is ready.
    ///
    /// The answer is checked and its texts are cleaned. Nothing of the guest outlives the call.
    ///
    /// # Cancellation
    /// Dropping the future ends the call; nothing was written.
    pub async fn check(&self, call: Call, target: Arc<Object>) -> CallResult<Checked> {
        let Some(indices) = self.exports().readiness() else {
            return CallResult::refused(CallFailure::NotExported("readiness"));
        };
        let shown = input::shown(&target, self.applied_fields());
        let json = serde_json::to_string(&shown).unwrap_or_else(|_| "null".to_owned());
        match inputs::checked(json) {
            Err(too_large) => CallResult::refused(too_large),
            Ok(json) => {
                let context = context(&call);
                let check = Check { indices: indices.clone(), context, json, target: target.reference() };
                self.run(check, call).await
            }
        }
    }
}

impl Function for Check {
    type Raw = Result<Answer, Failure>;
    type Answer = Checked;

    async fn call(&self, store: &mut Store<State>, instance: &Instance) -> wasmtime::Result<Self::Raw> {
        let guest = self.indices.load(&mut *store, instance)?;
        guest.call_check(store, &self.context, &self.json).await
    }

    fn accept(self, raw: Self::Raw, scope: &Scope) -> Result<Checked, CallFailure> {
        let rules = Rules { scope, target: self.target };
        match raw {
            Ok(answer) => rules.checked(answer),
            Err(failure) => Err(rules.failure(failure)),
        }
    }
}
