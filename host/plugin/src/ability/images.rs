//! `images`: always denied, because no grant names image references yet; linked so that guests
//! that import it without using it are loaded.

use wasmtime::component::{HasData, Linker};

use super::kube_read::denied;
use crate::{
    bindings::pintle::plugin::{
        images::{self, Image},
        types::ReadError,
    },
    call::Called,
    grants::Scope,
    state::State,
};

/// What a call of this ability works on.
pub(crate) struct Images<'a> {
    scope: &'a Scope,
    called: &'a mut Called,
}

impl HasData for Images<'static> {
    type Data<'a> = Images<'a>;
}

pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    images::add_to_linker::<State, Images<'static>>(linker, |state| Images {
        scope: &state.scope,
        called: &mut state.called,
    })
}

impl images::Host for Images<'_> {
    async fn resolve(&mut self, _reference: String) -> wasmtime::Result<Result<Image, ReadError>> {
        self.called.images = true;
        Ok(Err(denied(self.scope.deny_images())))
    }
}
