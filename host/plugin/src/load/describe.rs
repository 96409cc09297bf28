//! The first call of a plugin: are its types ours, who is it, does it accept its config?

use std::sync::Arc;

use pintle_api::{Record, Timestamp, plugin::PluginSpec};
use sha2::{Digest as _, Sha256};
use wasmtime::{Store, component::Instance};

use super::{Exports, LoadError};
use crate::{
    Manifest,
    ability::{inputs::Inputs, log::Lines},
    bindings::pintle::plugin::types::Failure,
    call::{Called, StepClock, failure::CallFailure, run::Function},
    grants::Scope,
    limits::{self, CallLimits},
    memo::{Asked, Hash},
    reads::Reads,
    state::{Memory, State},
    text::clean,
};

/// The text of all interfaces.
const INTERFACES: &str = include_str!("../../../../wit/plugin.wit");

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
    /// The manifest as it was said.
    pub(super) text: String,
    pub(super) config: Result<(), String>,
}

/// What is known of a first call before it is made.
pub(super) enum First {
    /// What was said, and accepted, when the very same call was made before.
    Said(String),
    /// Nothing; what is said is kept under this name.
    New(Hash),
    /// Nothing, and nothing is kept.
    Passing,
}

/// The name under which a first call is kept: all that its answer depends on. It sees the config and nothing else,
/// has only the memory of its limits, and speaks the interfaces of this host.
pub(super) fn name(component: &Hash, spec: &PluginSpec, config: &str) -> Hash {
    let limits = serde_json::to_string(&spec.limits).unwrap_or_default();
    let mut hash = Sha256::new();
    for part in [env!("CARGO_PKG_VERSION"), INTERFACES, config, &limits] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.update([u8::from(spec.wasi)]);
    hash.update(component);
    hash.finalize().into()
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
            let (parsed, text) = (Manifest::parse(&manifest).map_err(LoadError::Manifest)?, manifest);
            let config = config.map_err(|failure| clean(&failure.message, limits::MESSAGE));
            Ok(Described { manifest: parsed, text, config })
        }))
    }
}
