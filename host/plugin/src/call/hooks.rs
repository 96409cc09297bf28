//! `hooks`: before a state, while it is waited for, after it; and around the whole release.

use std::sync::Arc;

use pintle_api::{Object, ObjectRef};
use serde::{Deserialize, Serialize};
use sha2::Digest as _;
use wasmtime::{Store, component::Instance};

use super::{
    Call, CallResult, Hold, Keyed, Operation, Report,
    answer::{Rules, invalid},
    failure::CallFailure,
    run::{Arguments, Asked, Function, context},
};
use crate::{
    Export, Plugin,
    ability::inputs,
    bindings::{
        exports::pintle::plugin::hooks::{self as guest, GuestIndices, Step},
        pintle::plugin::types::{Context, Failure, KeyedObject},
    },
    grants::Scope,
    input, limits,
    seal::Seal,
    state::State,
    text,
};

/// When a hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// Before the first write; at deletion before the first delete.
    Pre,
    /// While the gate is pending; at deletion while objects go.
    Waiting,
    /// The gate is ready; at deletion all objects are gone.
    Post,
}

/// What a hook answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Stepped {
    /// What becomes of the state.
    pub outcome: HookOutcome,
    /// The whole set of the hook's own objects from now on; all of them granted.
    pub want: Vec<Keyed>,
    /// What the plugin wants told, kept and done.
    pub report: Report,
}

/// What becomes of a state.
#[derive(Clone, Debug, PartialEq)]
pub enum HookOutcome {
    /// It goes on.
    Go,
    /// It waits.
    Hold(Hold),
    /// It is left out in this revision, for this reason.
    LeaveOut(String),
}

/// One call of `on-phase`.
struct OnPhase {
    indices: GuestIndices,
    context: Context,
    phase: Phase,
    may_leave_out: bool,
    rendered: Vec<String>,
    applied: Vec<KeyedObject>,
    seal: Seal,
    owner: ObjectRef,
}

impl Plugin {
    /// Asks whether a state may go on. `rendered` are the objects of the state, `applied` the live ones
    /// of what the hook last wanted. Values of Secrets are not shown unless a grant names the Secret.
    ///
    /// # Cancellation
    /// Dropping the future ends the call; nothing was written.
    pub async fn on_phase(
        &self,
        call: Call,
        phase: Phase,
        rendered: &[Arc<Object>],
        applied: &[Keyed],
    ) -> CallResult<Stepped> {
        let Some(indices) = self.exports().hooks() else {
            return CallResult::refused(CallFailure::NotExported("hooks"));
        };
        let (mut seal, scope) = (Seal::default(), self.scope(&call));
        let rendered: Vec<_> =
            rendered.iter().map(|object| input::sealed(object, &mut seal, &scope)).collect();
        let applied = input::applied(applied, &mut seal, &scope);
        let size = rendered.iter().chain(applied.iter().map(|keyed| &keyed.object)).map(String::len).sum();
        if let Err(too_large) = inputs::within(size) {
            return CallResult::refused(too_large);
        }
        let brings = matches!(call.operation, Operation::Install | Operation::Upgrade | Operation::Rollback);
        let may_leave_out = phase == Phase::Pre && brings && !call.state.is_empty();
        let (indices, context, owner) = (indices.clone(), context(&call), call.owner.reference());
        let hook = OnPhase { indices, context, phase, may_leave_out, rendered, applied, seal, owner };
        self.ask(hook, call).await
    }
}

impl Asked for OnPhase {
    const EXPORT: Export = Export::Hooks;

    fn arguments(&self, hash: &mut Arguments) {
        hash.update([self.phase as u8]);
        hash.update(self.rendered.len().to_le_bytes());
        for object in &self.rendered {
            hash.update(object.len().to_le_bytes());
            hash.update(object);
        }
        input::hash_applied(&self.applied, hash);
        self.seal.hash_into(hash);
    }

    fn weight(stepped: &Stepped) -> usize {
        let held = match &stepped.outcome {
            HookOutcome::Hold(hold) => input::weight_of(&hold.blockers, &hold.watch, &stepped.report),
            HookOutcome::Go | HookOutcome::LeaveOut(_) => input::weight_of(&[], &[], &stepped.report),
        };
        held + input::weight_of_keyed(&stepped.want)
    }

    fn showed_clear_text(&self) -> bool {
        self.seal.showed_clear_text()
    }
}

impl Function for OnPhase {
    type Raw = Result<Step, Failure>;
    type Answer = Stepped;

    async fn call(&self, store: &mut Store<State>, instance: &Instance) -> wasmtime::Result<Self::Raw> {
        let guest = self.indices.load(&mut *store, instance)?;
        let phase = match self.phase {
            Phase::Pre => guest::Phase::Pre,
            Phase::Waiting => guest::Phase::Waiting,
            Phase::Post => guest::Phase::Post,
        };
        guest.call_on_phase(store, &self.context, phase, &self.rendered, &self.applied).await
    }

    fn accept(self, raw: Self::Raw, scope: &Scope) -> Result<Stepped, CallFailure> {
        let rules = Rules { scope, target: self.owner };
        let Step { outcome, want, report } = raw.map_err(|failure| rules.failure(failure))?;
        let outcome = match outcome {
            guest::Outcome::Go => HookOutcome::Go,
            guest::Outcome::Hold(pending) => HookOutcome::Hold(rules.hold(pending)?),
            guest::Outcome::LeaveOut(why) if self.may_leave_out => {
                HookOutcome::LeaveOut(text::clean(&why, limits::MESSAGE))
            }
            guest::Outcome::LeaveOut(_) => {
                return Err(invalid(
                    "a state can be left out only before it, at install, upgrade and rollback".to_owned(),
                ));
            }
        };
        Ok(Stepped { outcome, want: rules.objects(want, &self.seal)?, report: rules.report(report)? })
    }
}
