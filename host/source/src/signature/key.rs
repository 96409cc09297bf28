//! Public keys as cosign writes them: ECDSA, Ed25519 and RSA, in PEM.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha2::{Digest, Sha256};
use sigstore_verify::{
    crypto::{KeyAlgorithm, SigningScheme, verify_signature},
    types::{DerPublicKey, HashAlgorithm, SignatureBytes},
};

/// A key that can verify.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    der: DerPublicKey,
    algorithm: KeyAlgorithm,
}

/// Why a text is no public key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// No PEM of a public key.
    #[error("this is no public key in PEM (`-----BEGIN PUBLIC KEY-----`), as in cosign.pub")]
    Pem(#[source] sigstore_verify::types::Error),
    /// A key that nothing here can verify with.
    #[error("the public key is of a kind that is not served; ECDSA (P-256, P-384), Ed25519 and RSA are")]
    Algorithm(#[source] sigstore_verify::crypto::Error),
}

// === impl PublicKey ===

impl PublicKey {
    /// Reads PEM.
    ///
    /// # Errors
    /// When it is none, or of another algorithm.
    pub fn parse(pem: &str) -> Result<Self, KeyError> {
        Self::of_der(DerPublicKey::from_pem(pem.trim()).map_err(KeyError::Pem)?)
    }

    pub(super) fn of_der(der: DerPublicKey) -> Result<Self, KeyError> {
        let algorithm = KeyAlgorithm::from_spki(&der).map_err(KeyError::Algorithm)?;
        Ok(Self { der, algorithm })
    }

    /// `sha256:…` of the key in DER: how status and policies name it.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        format!("sha256:{}", hex::encode(Sha256::digest(self.der.as_bytes())))
    }

    /// The fingerprint as it is shown, long enough to tell keys apart.
    #[must_use]
    pub fn short(&self) -> String {
        self.fingerprint().chars().take("sha256:".len() + 12).collect()
    }

    /// How a bundle names the key it was made with.
    pub(super) fn hint(&self) -> String {
        BASE64_STANDARD.encode(Sha256::digest(self.der.as_bytes()))
    }

    /// The key as PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.der.to_pem()
    }

    pub(super) fn der(&self) -> &DerPublicKey {
        &self.der
    }

    /// True when this key made the signature of these very bytes.
    pub(super) fn made(&self, signature: &SignatureBytes, bytes: &[u8]) -> bool {
        self.schemes().into_iter().any(|scheme| verify_signature(&self.der, bytes, signature, scheme).is_ok())
    }

    /// What a key of this kind signs with: its own hash, and SHA-256, which cosign takes for every key.
    fn schemes(&self) -> Vec<SigningScheme> {
        let own = self.algorithm.default_signing_scheme();
        let usual = self.algorithm.resolve_signing_scheme(HashAlgorithm::Sha2256).ok();
        std::iter::once(own).chain(usual.filter(|usual| *usual != own)).collect()
    }
}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PublicKey").field(&self.fingerprint()).finish()
    }
}
