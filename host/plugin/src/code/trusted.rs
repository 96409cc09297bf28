//! The one place with unsafe code: machine code becomes a component.
//!
//! Machine code can do anything, so what is loaded is only what our compiler made in this process or
//! its child, or what the cache gave back with a MAC that only we can make.

use wasmtime::component::Component;

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

    /// Makes a component of it.
    ///
    /// # Errors
    /// When it was made for an engine with other settings or of another version.
    pub(super) fn load(&self, engine: &wasmtime::Engine) -> wasmtime::Result<Component> {
        #[expect(unsafe_code, reason = "the bytes are our compiler's own: see the module")]
        // SAFETY: the type is made only from the compiler's output and from bytes whose MAC was compared,
        // and the bytes are in memory that nobody else writes to.
        unsafe {
            Component::deserialize(engine, self.bytes())
        }
    }
}
