//! Who signed a plugin: cosign's signatures, in Sigstore's bundles and in the form before them.
//!
//! Verification needs no network: what a registry holds beside a plugin is in its [`Bundle`], and whom to
//! trust is in [`Wanted`]. Whatever is missing, broken or unknown means that nobody signed.

mod attestation;
mod error;
mod fault;
mod identity;
mod key;
mod private;
mod root;
mod sign;
mod simple;

use pintle_api::plugin_policy::Signer;

use crate::bundle::{Attached, Bundle};
use attestation::Attestation;
pub use error::VerifyError;
pub use fault::Fault;
pub use identity::{IdentityPattern, PatternError};
pub use key::{KeyError, PublicKey};
pub use private::{PrivateKey, PrivateKeyError};
pub use root::{RootError, TrustRoot};
use simple::SimpleSignature;

/// Whose signatures count. One that counts is enough.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Keys.
    pub keys: Vec<PublicKey>,
    /// Identities that a certificate authority of `root` has vouched for.
    pub identities: Vec<IdentityPattern>,
    /// Authorities and logs; without one no identity counts.
    pub root: Option<TrustRoot>,
    /// Signatures by keys must be in a log of `root` too; those by identities always must.
    pub transparency_log: bool,
}

/// Something that may be a signature.
enum Candidate {
    Attestation(Attestation),
    Simple(SimpleSignature),
}

/// Everybody among those wanted who signed the very manifest of this plugin; at least one.
///
/// # Errors
/// When nobody did, or it cannot be shown: what was found, what was wanted, and the fix.
pub fn verify(plugin: &Bundle, wanted: &Wanted) -> Result<Vec<Signer>, VerifyError> {
    let digest = plugin.digest();
    if wanted.keys.is_empty() && wanted.identities.is_empty() {
        return Err(VerifyError::NobodyWanted);
    }
    if wanted.root.is_none() && (wanted.transparency_log || wanted.keys.is_empty()) {
        return Err(VerifyError::NoRoot);
    }
    let found: Vec<_> = plugin.attached().iter().flat_map(candidates).collect();
    if found.is_empty() {
        return Err(VerifyError::Unsigned { digest, wanted: wanted.to_string() });
    }
    let (mut signers, mut faults) = (Vec::new(), Vec::new());
    for candidate in found {
        match candidate.and_then(|candidate| candidate.signer(plugin, wanted)) {
            Ok(signer) if signers.contains(&signer) => {}
            Ok(signer) => signers.push(signer),
            Err(fault) => faults.push(fault),
        }
    }
    if signers.is_empty() {
        return Err(VerifyError::Refused { digest, wanted: wanted.to_string(), faults });
    }
    Ok(signers)
}

/// What the signatures of a plugin say about themselves, a line each. Nothing of it is verified.
#[must_use]
pub fn claims(plugin: &Bundle) -> Vec<String> {
    let found = plugin.attached().iter().flat_map(candidates);
    let line = |candidate: Result<Candidate, Fault>| match candidate {
        Ok(Candidate::Attestation(attestation)) => attestation.claim(),
        Ok(Candidate::Simple(simple)) => simple.claim(),
        Err(fault) => fault.to_string(),
    };
    found.map(line).collect()
}

/// True for the media type of a layer or an artifact that may be a signature.
pub(crate) fn is_signature(media_type: &str) -> bool {
    attestation::is_bundle(media_type) || simple::is_payload(media_type)
}

fn candidates(attached: &Attached) -> Vec<Result<Candidate, Fault>> {
    let bundles = attached.layers_of(attestation::is_bundle).into_iter().map(|layer| {
        let bytes = layer.bytes.ok_or_else(|| Fault::Broken("its bundle is missing".to_owned()))?;
        Attestation::parse(bytes).map(Candidate::Attestation)
    });
    let simple = attached.layers_of(simple::is_payload).into_iter().map(|layer| {
        let bytes = layer.bytes.ok_or_else(|| Fault::Broken("its payload is missing".to_owned()))?;
        SimpleSignature::parse(bytes, &layer.annotations).map(Candidate::Simple)
    });
    bundles.chain(simple).collect()
}

// === impl Candidate ===

impl Candidate {
    fn signer(&self, plugin: &Bundle, wanted: &Wanted) -> Result<Signer, Fault> {
        match self {
            Self::Attestation(attestation) => attestation.signer(plugin, wanted),
            Self::Simple(simple) => simple.signer(plugin, wanted),
        }
    }
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keys = self.keys.iter().map(|key| format!("key {}", key.short()));
        let identities = self.identities.iter().map(ToString::to_string);
        f.write_str(&keys.chain(identities).collect::<Vec<_>>().join(" or "))
    }
}

#[cfg(test)]
mod tests;
