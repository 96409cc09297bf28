//! `inputs`: the large inputs of a call, made into text only when they are asked for.

use std::sync::Arc;

use pintle_api::Object;
use serde::Serialize;
use serde_json::Value;
use wasmtime::component::{HasSelf, Linker};

use crate::{bindings::pintle::plugin::inputs, call::failure::CallFailure, input, limits, state::State};

/// The inputs of one call; all but the config and the grants are absent while a plugin is described.
#[derive(Clone, Default)]
pub(crate) struct Inputs {
    pub(crate) owner: Option<Arc<Object>>,
    pub(crate) host_fields: Arc<[String]>,
    pub(crate) config: Arc<str>,
    pub(crate) values: Option<Arc<Value>>,
    pub(crate) saved: Option<Arc<Value>>,
    pub(crate) grants: Arc<str>,
}

pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    inputs::add_to_linker::<State, HasSelf<Inputs>>(linker, |state| &mut state.inputs)
}

impl inputs::Host for Inputs {
    async fn owner(&mut self) -> wasmtime::Result<String> {
        json(&self.owner.as_deref().map(|owner| input::owner(owner, &self.host_fields)))
    }

    async fn config(&mut self) -> wasmtime::Result<String> {
        Ok(self.config.to_string())
    }

    async fn values(&mut self) -> wasmtime::Result<String> {
        json(&self.values)
    }

    async fn saved(&mut self) -> wasmtime::Result<Option<String>> {
        self.saved.as_ref().map(json).transpose()
    }

    async fn grants(&mut self) -> wasmtime::Result<String> {
        Ok(self.grants.to_string())
    }
}

fn json(value: &impl Serialize) -> wasmtime::Result<String> {
    Ok(checked(serde_json::to_string(value)?)?)
}

/// The text, if it is not larger than a guest may be given.
pub(crate) fn checked(text: String) -> Result<String, CallFailure> {
    let size = text.len();
    if size > limits::INPUT {
        Err(CallFailure::InputTooLarge { size, limit: limits::INPUT })
    } else {
        Ok(text)
    }
}
