//! What decides whether machine code fits an engine, as a SHA-256.

use std::hash::{Hash as _, Hasher};

use sha2::{Digest, Sha256};

use crate::memo::Hash;

/// The hash of all settings of an engine that its machine code depends on: version, features, tunables,
/// target and the features of its processor.
pub(crate) fn compatibility(engine: &wasmtime::Engine) -> Hash {
    let mut hasher = Collect(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.0.finalize().into()
}

/// Takes what is hashed and never ends in a short hash.
struct Collect(Sha256);

impl Hasher for Collect {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}
