//! `inputs`: the large inputs of a call, made into text only when they are asked for.

use std::sync::Arc;

use pintle_api::Object;
use serde::Serialize;
use serde_json::Value;
use wasmtime::component::{HasData, Linker};

use crate::{
    bindings::pintle::plugin::inputs,
    call::failure::CallFailure,
    input, limits,
    memo::{self, Asked, Question},
    state::State,
};

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

/// What a call of this ability works on.
pub(crate) struct View<'a> {
    inputs: &'a Inputs,
    asked: &'a mut Asked,
}

impl HasData for View<'static> {
    type Data<'a> = View<'a>;
}

pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    inputs::add_to_linker::<State, View<'static>>(linker, |state| View {
        inputs: &state.inputs,
        asked: &mut state.asked,
    })
}

// === impl Inputs ===

impl Inputs {
    /// The custom resource as the guest is given it.
    pub(crate) fn owner_text(&self) -> wasmtime::Result<String> {
        json(&self.owner.as_deref().map(|owner| input::owner(owner, &self.host_fields)))
    }

    /// The values as the guest is given them.
    pub(crate) fn values_text(&self) -> wasmtime::Result<String> {
        json(&self.values)
    }

    /// What the plugin kept, as the guest is given it.
    pub(crate) fn saved_text(&self) -> wasmtime::Result<Option<String>> {
        self.saved.as_ref().map(json).transpose()
    }
}

impl inputs::Host for View<'_> {
    async fn owner(&mut self) -> wasmtime::Result<String> {
        let text = self.inputs.owner_text()?;
        self.asked.note(Question::Owner, memo::hash_text(&text));
        Ok(text)
    }

    async fn config(&mut self) -> wasmtime::Result<String> {
        Ok(self.inputs.config.to_string())
    }

    async fn values(&mut self) -> wasmtime::Result<String> {
        let text = self.inputs.values_text()?;
        self.asked.note(Question::Values, memo::hash_text(&text));
        Ok(text)
    }

    async fn saved(&mut self) -> wasmtime::Result<Option<String>> {
        let text = self.inputs.saved_text()?;
        self.asked.note(Question::Saved, memo::hash_text(text.as_deref().unwrap_or_default()));
        Ok(text)
    }

    async fn grants(&mut self) -> wasmtime::Result<String> {
        Ok(self.inputs.grants.to_string())
    }
}

fn json(value: &impl Serialize) -> wasmtime::Result<String> {
    Ok(checked(serde_json::to_string(value)?)?)
}

/// The text, if it is not larger than a guest may be given.
pub(crate) fn checked(text: String) -> Result<String, CallFailure> {
    within(text.len()).map(|()| text)
}

/// Refuses more bytes than a guest may be given.
pub(crate) fn within(size: usize) -> Result<(), CallFailure> {
    if size > limits::INPUT { Err(CallFailure::InputTooLarge { size, limit: limits::INPUT }) } else { Ok(()) }
}
