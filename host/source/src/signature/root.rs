//! Whom to trust: authorities, logs and time stamps, as a document of Sigstore's.

use std::{fmt, sync::Arc};

use sigstore_verify::{
    VerificationPolicy, VerificationResult, Verifier,
    trust_root::{SIGSTORE_PRODUCTION_TRUSTED_ROOT, TrustedRoot},
    types::Bundle as SigstoreBundle,
};

/// Authorities, logs and time stamps that are trusted. Cheap to clone.
#[derive(Clone)]
pub struct TrustRoot(Arc<Parts>);

struct Parts {
    verifier: Verifier,
    has_logs: bool,
    has_certificate_logs: bool,
}

/// Why a document is no trust root.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// No such document.
    #[error("this is no trust root; it is JSON of type application/vnd.dev.sigstore.trustedroot+json")]
    Document(#[source] sigstore_verify::trust_root::Error),
    /// Something in it cannot be used.
    #[error("the trust root cannot be used")]
    Content(#[source] Box<sigstore_verify::Error>),
    /// It vouches for nothing.
    #[error(
        "the trust root names neither a log nor an authority for time stamps: no signature would have a time"
    )]
    Timeless,
}

// === impl TrustRoot ===

impl TrustRoot {
    /// Reads `trusted_root.json`.
    ///
    /// # Errors
    /// When it is none, or something in it cannot be used.
    pub fn parse(json: &str) -> Result<Self, RootError> {
        let root = TrustedRoot::from_json(json).map_err(RootError::Document)?;
        let verifier = Verifier::new(&root).map_err(|error| RootError::Content(Box::new(error)))?;
        if root.tlogs.is_empty() && root.timestamp_authorities.is_empty() {
            return Err(RootError::Timeless);
        }
        let (has_logs, has_certificate_logs) = (!root.tlogs.is_empty(), !root.ctlogs.is_empty());
        Ok(Self(Arc::new(Parts { verifier, has_logs, has_certificate_logs })))
    }

    /// The public instance of Sigstore, as it was when this version was made.
    ///
    /// # Errors
    /// Never, unless the document that is built in is broken.
    pub fn public() -> Result<Self, RootError> {
        Self::parse(SIGSTORE_PRODUCTION_TRUSTED_ROOT)
    }

    pub(super) fn verifier(&self) -> &Verifier {
        &self.0.verifier
    }

    /// Verifies a signature by certificate. What a root has not at all, it cannot ask for: one without logs of
    /// certificates, or without logs of signatures, is of a company's own Sigstore.
    pub(super) fn certified(
        &self,
        signed: &[u8],
        bundle: &SigstoreBundle,
    ) -> Result<VerificationResult, sigstore_verify::Error> {
        let mut policy = VerificationPolicy::any_identity();
        if !self.0.has_certificate_logs {
            policy = policy.skip_sct();
        }
        if !self.0.has_logs {
            policy = policy.skip_tlog_unsafe();
        }
        self.0.verifier.verify(signed, bundle, &policy)
    }
}

impl fmt::Debug for TrustRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrustRoot(..)")
    }
}
