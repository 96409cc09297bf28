//! `images`: whether an image is in its registry, for references within the grants.
//!
//! A reference is compared with the grants before its name goes anywhere: asking is what could be
//! used to reach hosts that nobody meant.

use wasmtime::component::{HasData, Linker};

use super::kube_read::{denied, found};
use crate::{
    bindings::pintle::plugin::{
        images::{self, Image},
        types::ReadError,
    },
    call::Called,
    grants::Scope,
    limits,
    reads::Reads,
    state::State,
    text::clean,
};

/// What a call of this ability works on.
pub(crate) struct Images<'a> {
    reads: &'a mut Reads,
    scope: &'a Scope,
    called: &'a mut Called,
}

impl<'a> Images<'a> {
    pub(crate) fn new(reads: &'a mut Reads, scope: &'a Scope, called: &'a mut Called) -> Self {
        Self { reads, scope, called }
    }
}

impl HasData for Images<'static> {
    type Data<'a> = Images<'a>;
}

pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    images::add_to_linker::<State, Images<'static>>(linker, |state| {
        Images::new(&mut state.reads, &state.scope, &mut state.called)
    })
}

impl images::Host for Images<'_> {
    async fn resolve(&mut self, reference: String) -> wasmtime::Result<Result<Image, ReadError>> {
        self.reads.count_image()?;
        self.called.images = true;
        let resolved = self.scope.check_image(&reference).map_err(denied);
        let resolved = resolved.and_then(|()| found(self.reads.resolve(&reference)));
        if matches!(resolved, Err(ReadError::Unavailable(_))) {
            self.reads.note_unavailable();
        }
        Ok(resolved.map(|text| image(&text)))
    }
}

/// Facts answer with the digest, and the media type after a space where it is known.
fn image(text: &str) -> Image {
    let (digest, media_type) = text.split_once(' ').unwrap_or((text, ""));
    Image { digest: clean(digest, limits::NAME), media_type: clean(media_type, limits::NAME) }
}
