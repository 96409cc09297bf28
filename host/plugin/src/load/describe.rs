//! The first call of a plugin: are its types ours, who is it, does it accept its config?

use std::sync::Arc;

use pintle_api::{Record, Timestamp};
use wasmtime::{Store, component::Instance};

use super::{Exports, LoadError};
use crate::{
    Manifest,
    ability::{inputs::Inputs, log::Lines},
    bindings::pintle::plugin::types::Failure,
    call::{Called, StepClock, failure::CallFailure, run::Function},
    grants::Scope,
    limits::{self, CallLimits},
    memo::Asked,
    reads::Reads,
    state::{Memory, State},
    text::clean,
};

/// Tries every exported type, then `describe`, then `validate-config`.
pub(super) struct Describe {
    pub(super) exports: Exports,
    pub(super) config: String,
}

/// What a plugin said on its first call, as it said it.
pub(super) struct Said {
    manifest: String,
    config: Result<(), Failure>,
}

/// What a plugin is, and whether it accepts its config.
pub(super) struct Described {
    pub(super) manifest: Manifest,
    pub(super) config: Result<(), String>,
}

/// The state of a first call: no facts, no grants, no time.
pub(super) fn state(plugin: &Arc<str>, config: &Arc<str>, limits: CallLimits) -> State {
    State {
        inputs: Inputs { config: Arc::clone(config), grants: "{}".into(), ..Inputs::default() },
        scope: Scope::nothing(plugin),
        reads: Reads::new(Arc::new(Record::default())),
        lines: Lines::default(),
        clock: StepClock { now: Timestamp::UNIX_EPOCH, elapsed: Default::default(), attempt: 1 },
        called: Called::default(),
        asked: Asked::default(),
        memory: Memory::new(limits.memory),
        wasi: None,
    }
}

impl Function for Describe {
    type Raw = Result<Said, LoadError>;
    type Answer = Result<Described, LoadError>;

    async fn call(&self, store: &mut Store<State>, instance: &Instance) -> wasmtime::Result<Self::Raw> {
        if let Err(mismatch) = self.exports.try_all(store, instance) {
            return Ok(Err(mismatch));
        }
        let info = match self.exports.plugin_info().load(&mut *store, instance) {
            Ok(info) => info,
            Err(source) => return Ok(Err(LoadError::InterfaceMismatch { interface: "plugin-info", source })),
        };
        let manifest = info.call_describe(&mut *store).await?;
        let config = info.call_validate_config(store, &self.config, &"{}".to_owned()).await?;
        Ok(Ok(Said { manifest, config }))
    }

    fn accept(self, raw: Self::Raw, _: &Scope) -> Result<Self::Answer, CallFailure> {
        Ok(raw.and_then(|Said { manifest, config }| {
            let manifest = Manifest::parse(&manifest).map_err(LoadError::Manifest)?;
            let config = config.map_err(|failure| clean(&failure.message, limits::MESSAGE));
            Ok(Described { manifest, config })
        }))
    }
}
