//! `readiness`: is the object with the annotation ready?

use std::sync::Arc;

use pintle_api::{Object, ObjectRef};
use sha2::Digest as _;
use wasmtime::{Store, component::Instance};

use super::{
    Call, CallResult, Checked, Hold,
    answer::Rules,
    failure::CallFailure,
    run::{Arguments, Asked, Function, context},
};
use crate::{
    Export, Plugin,
    ability::inputs,
    bindings::{
        exports::pintle::plugin::readiness::{Answer, GuestIndices},
        pintle::plugin::types::{Context, Failure},
    },
    grants::Scope,
    input::{self, Text},
    state::State,
};

/// One call of `check`.
struct Check {
    indices: GuestIndices,
    context: Context,
    text: Text,
    is_clear: bool,
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
        let texts = (self.engine().texts(), self.binding());
        let shown = input::kept_text(texts, &target, self.applied_fields(), &self.scope(&call));
        let (text, is_clear) = shown.unwrap_or_else(|_| (Text::new("null".to_owned()), false));
        if let Err(too_large) = inputs::within(text.json.len()) {
            return CallResult::refused(too_large);
        }
        let (indices, context, target) = (indices.clone(), context(&call), target.reference());
        self.ask(Check { indices, context, text, is_clear, target }, call).await
    }
}

impl Asked for Check {
    const EXPORT: Export = Export::Readiness;

    fn arguments(&self, hash: &mut Arguments) {
        hash.update(self.text.digest);
    }

    fn weight(checked: &Checked) -> usize {
        input::weight_of(checked.verdict.blockers(), &checked.watch, &checked.report)
    }

    fn showed_clear_text(&self) -> bool {
        self.is_clear
    }
}

impl Function for Check {
    type Raw = Result<Answer, Failure>;
    type Answer = Checked;

    async fn call(&self, store: &mut Store<State>, instance: &Instance) -> wasmtime::Result<Self::Raw> {
        let guest = self.indices.load(&mut *store, instance)?;
        guest.call_check(store, &self.context, &self.text.json).await
    }

    fn accept(self, raw: Self::Raw, scope: &Scope) -> Result<Checked, CallFailure> {
        let rules = Rules { scope, target: self.target };
        let Answer { verdict, report } = raw.map_err(|failure| rules.failure(failure))?;
        let report = rules.report(report)?;
        let (verdict, Hold { watch, recheck, progress, .. }) = rules.verdict(verdict)?;
        Ok(Checked { verdict, watch, recheck, progress, report })
    }
}
