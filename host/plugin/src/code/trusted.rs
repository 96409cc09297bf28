//! The one place with unsafe code: machine code becomes a component.
//!
//! Machine code can do anything, so what is loaded is only what our compiler made in this process or
//! its child, or what the cache gave back with a MAC that only we can make.

use std::path::Path;

use wasmtime::component::Component;

#[cfg(target_os = "linux")]
use super::nameless::Nameless;

/// Machine code that our compiler made: what follows the first so many of these bytes.
pub(super) struct TrustedCode(Vec<u8>, usize);

impl TrustedCode {
    /// What the compiler just made, here or in our child.
    pub(super) fn of_compiler(code: Vec<u8>) -> Self {
        Self(code, 0)
    }

    /// What the cache gave back behind a header; only [`super::cache`] calls this, after it compared the
    /// MAC.
    pub(super) fn of_verified_cache(entry: Vec<u8>, header: usize) -> Self {
        Self(entry, header)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.0.get(self.1..).unwrap_or_default()
    }

    /// The memory it was in.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.0
    }

    /// Makes a component of it. With a folder its memory is that of a file there which has no name: pages that are not
    /// used can go, and only what is used of it is ever read in.
    ///
    /// # Errors
    /// When it was made for an engine with other settings or of another version.
    pub(super) fn load(
        &self,
        engine: &wasmtime::Engine,
        folder: Option<&Path>,
    ) -> wasmtime::Result<Component> {
        match folder.map(|folder| self.load_mapped(engine, folder)) {
            Some(Ok(component)) => Ok(component),
            // A disk that is full, read-only, of another machine, or from which nothing may be run; no Linux.
            Some(Err(error)) => {
                tracing::debug!(target: "plugin", error = %error, "compiled code is kept in memory");
                self.load_copied(engine)
            }
            None => self.load_copied(engine),
        }
    }

    #[cfg(target_os = "linux")]
    fn load_mapped(&self, engine: &wasmtime::Engine, folder: &Path) -> wasmtime::Result<Component> {
        let file = Nameless::with(folder, self.bytes())?;
        #[expect(unsafe_code, reason = "the bytes are our compiler's own: see the module")]
        // SAFETY: the type is made only from the compiler's output and from bytes whose MAC was compared. They were
        // just written to a file that was never open to anybody else and that nobody can open to write.
        let component = unsafe { Component::deserialize_file(engine, file.path()) }?;
        let image = component.image_range();
        let size = image.end.addr() - image.start.addr();
        #[expect(unsafe_code, reason = "the component is there for as long as its memory is looked at")]
        // SAFETY: this is the memory of the component above, mapped and read-only.
        let now = unsafe { std::slice::from_raw_parts(image.start, size) };
        // Code that was fitted to where it lies would be read in again as it was before.
        if now == self.bytes() {
            #[expect(unsafe_code, reason = "the memory holds what its file holds: see above")]
            // SAFETY: as above, and it was compared with what was written to the file: its pages come back from there
            // when they are used.
            let rests = unsafe {
                rustix::mm::madvise(image.start.cast_mut().cast(), size, rustix::mm::Advice::LinuxDontNeed)
            };
            rests?;
        }
        Ok(component)
    }

    #[cfg(not(target_os = "linux"))]
    fn load_mapped(&self, _: &wasmtime::Engine, _: &Path) -> wasmtime::Result<Component> {
        Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into())
    }

    fn load_copied(&self, engine: &wasmtime::Engine) -> wasmtime::Result<Component> {
        #[expect(unsafe_code, reason = "the bytes are our compiler's own: see the module")]
        // SAFETY: the type is made only from the compiler's output and from bytes whose MAC was compared,
        // and the bytes are in memory that nobody else writes to.
        unsafe {
            Component::deserialize(engine, self.bytes())
        }
    }
}
