//! `reconciler`: what should be, as a function of what was read.

use std::time::Duration;

use pintle_api::{ObjectRef, Read, Verdict};
use sha2::Digest as _;
use wasmtime::{Store, component::Instance};

use super::{
    Call, CallResult, Hold, Keyed, Report,
    answer::Rules,
    failure::CallFailure,
    run::{Arguments, Asked, Function, context},
};
use crate::{
    Export, Plugin,
    ability::inputs,
    bindings::{
        exports::pintle::plugin::reconciler::{self as guest, GuestIndices},
        pintle::plugin::types::{Context, Failure, KeyedObject},
    },
    grants::Scope,
    input,
    seal::Seal,
    state::State,
};

/// What a reconciler answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// Ready or pending. When it is finalized: ready means the finalizer may go once no object of
    /// `applied` is left.
    pub verdict: Verdict,
    /// More to watch than what was read; all of it granted.
    pub watch: Vec<Read>,
    /// Call again after this time at the latest; none means on events alone.
    pub recheck: Option<Duration>,
    /// 0 to 100.
    pub progress: Option<u8>,
    /// The whole set of objects that should be; all of them granted.
    pub objects: Vec<Keyed>,
    /// What the plugin wants told, kept and done.
    pub report: Report,
}

/// One call of `reconcile` or `finalize`.
struct Reconcile {
    indices: GuestIndices,
    context: Context,
    is_final: bool,
    applied: Vec<KeyedObject>,
    seal: Seal,
    owner: ObjectRef,
}

impl Plugin {
    /// Asks what should be. `applied` are the live objects of what was last returned.
    ///
    /// # Cancellation
    /// Dropping the future ends the call; nothing was written.
    pub async fn reconcile(&self, call: Call, applied: &[Keyed]) -> CallResult<Desired> {
        self.desired(call, applied, false).await
    }

    /// Asks what shall still be while the owner goes.
    ///
    /// # Cancellation
    /// As [`Plugin::reconcile`].
    pub async fn finalize(&self, call: Call, applied: &[Keyed]) -> CallResult<Desired> {
        self.desired(call, applied, true).await
    }

    async fn desired(&self, call: Call, applied: &[Keyed], is_final: bool) -> CallResult<Desired> {
        let Some(indices) = self.exports().reconciler() else {
            return CallResult::refused(CallFailure::NotExported("reconciler"));
        };
        let mut seal = Seal::default();
        let applied = input::applied(applied, &mut seal, &self.scope(&call));
        if let Err(too_large) = inputs::within(applied.iter().map(|keyed| keyed.object.len()).sum()) {
            return CallResult::refused(too_large);
        }
        let (indices, context, owner) = (indices.clone(), context(&call), call.owner.reference());
        self.ask(Reconcile { indices, context, is_final, applied, seal, owner }, call).await
    }
}

impl Asked for Reconcile {
    const EXPORT: Export = Export::Reconciler;

    fn arguments(&self, hash: &mut Arguments) {
        hash.update([u8::from(self.is_final)]);
        input::hash_applied(&self.applied, hash);
        self.seal.hash_into(hash);
    }

    fn weight(desired: &Desired) -> usize {
        input::weight_of(desired.verdict.blockers(), &desired.watch, &desired.report)
            + input::weight_of_keyed(&desired.objects)
    }

    fn showed_clear_text(&self) -> bool {
        self.seal.showed_clear_text()
    }
}

impl Function for Reconcile {
    type Raw = Result<guest::Desired, Failure>;
    type Answer = Desired;

    async fn call(&self, store: &mut Store<State>, instance: &Instance) -> wasmtime::Result<Self::Raw> {
        let guest = self.indices.load(&mut *store, instance)?;
        if self.is_final {
            guest.call_finalize(store, &self.context, &self.applied).await
        } else {
            guest.call_reconcile(store, &self.context, &self.applied).await
        }
    }

    fn accept(self, raw: Self::Raw, scope: &Scope) -> Result<Desired, CallFailure> {
        let rules = Rules { scope, target: self.owner };
        let guest::Desired { verdict, objects, report } = raw.map_err(|failure| rules.failure(failure))?;
        let (objects, report) = (rules.objects(objects, &self.seal)?, rules.report(report)?);
        let (verdict, Hold { watch, recheck, progress, .. }) = rules.verdict(verdict)?;
        Ok(Desired { verdict, watch, recheck, progress, objects, report })
    }
}
