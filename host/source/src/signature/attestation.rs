//! Sigstore's bundles: a signature with what is needed to verify it, offline.

use pintle_api::plugin_policy::Signer;
use serde::Deserialize;
use sigstore_verify::{
    CertificateError, Error as SigstoreError, PublicKeyVerificationPolicy, TimestampError,
    TransparencyLogError, VerificationResult,
    crypto::parse_certificate_info,
    types::{
        Bundle as SigstoreBundle, DerCertificate, DsseEnvelope, SignatureContent,
        bundle::VerificationMaterialContent,
    },
};

use super::{Fault, PublicKey, TrustRoot, Wanted};
use crate::bundle::Bundle;

/// Media type of a bundle, as an artifact and as a layer; its version is in it.
const TYPE: &str = "application/vnd.dev.sigstore.bundle";
/// What the payload of a signed statement is.
pub(super) const IN_TOTO: &str = "application/vnd.in-toto+json";
/// What a statement is about that says "this is signed", and nothing else.
pub(super) const SIGNED: &str = "https://sigstore.dev/cosign/sign/v1";
/// Characters of foreign texts that stand in a message.
const SHOWN: usize = 200;

/// A bundle that could be read.
pub(super) struct Attestation(SigstoreBundle);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(default)]
    predicate_type: String,
    #[serde(default)]
    subject: Vec<Subject>,
}

#[derive(Deserialize)]
struct Subject {
    #[serde(default)]
    digest: std::collections::BTreeMap<String, String>,
}

/// True for the media type of a bundle, of any version.
pub(super) fn is_bundle(media_type: &str) -> bool {
    media_type.starts_with(TYPE)
}

// === impl Attestation ===

impl Attestation {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let broken = |problem: String| Fault::Broken(shown(&problem));
        let text = std::str::from_utf8(bytes).map_err(|error| broken(error.to_string()))?;
        SigstoreBundle::from_json(text).map(Self).map_err(|error| broken(error.to_string()))
    }

    /// Whom it says it is by; nothing of it is verified.
    pub(super) fn claim(&self) -> String {
        match (self.hint(), self.0.signing_certificate()) {
            (Some(hint), _) => format!("bundle, by a key ({hint:?})"),
            (None, certificate) => format!("bundle, by {}", certificate.map_or_else(String::new, claimed)),
        }
    }

    pub(super) fn signer(&self, plugin: &Bundle, wanted: &Wanted) -> Result<Signer, Fault> {
        match self.hint() {
            Some(_) if wanted.keys.is_empty() => Err(Fault::OtherKind("a key".to_owned())),
            Some(hint) => self.key(hint, plugin, wanted).map(|key| Signer::Key(key.fingerprint())),
            None => self.identity(plugin, wanted),
        }
    }

    fn hint(&self) -> Option<&str> {
        match &self.0.verification_material.content {
            VerificationMaterialContent::PublicKey(key) => Some(&key.hint),
            _ => None,
        }
    }

    fn key<'a>(&self, hint: &str, plugin: &Bundle, wanted: &'a Wanted) -> Result<&'a PublicKey, Fault> {
        let made = |key: &&PublicKey| match &self.0.content {
            SignatureContent::DsseEnvelope(envelope) => key.made(&envelope.signature.sig, &envelope.pae()),
            SignatureContent::MessageSignature(message) => key.made(&message.signature, plugin.manifest()),
            _ => false,
        };
        let key = wanted.keys.iter().find(made).ok_or_else(|| Fault::OtherKey(shown(hint)))?;
        self.check_statement(plugin)?;
        match &wanted.root {
            Some(root) if wanted.transparency_log => {
                let policy = PublicKeyVerificationPolicy::new(key.der().clone());
                root.verifier().verify(plugin.manifest(), &self.0, &policy).map_err(|error| fault(&error))?;
            }
            _ => {}
        }
        Ok(key)
    }

    fn identity(&self, plugin: &Bundle, wanted: &Wanted) -> Result<Signer, Fault> {
        let Some(root) = wanted.root.as_ref().filter(|_| !wanted.identities.is_empty()) else {
            return Err(Fault::OtherKind(self.0.signing_certificate().map_or_else(String::new, claimed)));
        };
        // First what it is about: a wrong digest is said as such, not as a broken signature.
        let stated = self.check_statement(plugin);
        let signer = certified(root, plugin.manifest(), &self.0, wanted);
        match (signer, stated) {
            (Ok(signer), Ok(())) => Ok(signer),
            (Ok(_) | Err(Fault::Invalid(_)), Err(fault)) | (Err(fault), _) => Err(fault),
        }
    }

    /// A statement must say that this very manifest is signed.
    fn check_statement(&self, plugin: &Bundle) -> Result<(), Fault> {
        let SignatureContent::DsseEnvelope(envelope) = &self.0.content else { return Ok(()) };
        let statement = statement(envelope)?;
        let digest = plugin.digest();
        let named: Vec<_> =
            statement.subject.iter().filter_map(|subject| subject.digest.get("sha256")).collect();
        if !named.iter().any(|named| digest.strip_prefix("sha256:") == Some(named.as_str())) {
            let first = named.first().map_or_else(|| "none".to_owned(), |named| format!("sha256:{named}"));
            return Err(Fault::OtherDigest(shown(&first)));
        }
        match statement.predicate_type == SIGNED {
            true => Ok(()),
            false => Err(Fault::OtherStatement(shown(&statement.predicate_type))),
        }
    }
}

/// The identity of a certificate that the root vouches for, when it is one of those wanted.
pub(super) fn certified(
    root: &TrustRoot,
    signed: &[u8],
    bundle: &SigstoreBundle,
    wanted: &Wanted,
) -> Result<Signer, Fault> {
    let result: VerificationResult = root.certified(signed, bundle).map_err(|error| fault(&error))?;
    let subject = result.identity().map(ToString::to_string).unwrap_or_default();
    let issuer = result.issuer().unwrap_or_default().to_owned();
    let is_wanted = wanted.identities.iter().any(|pattern| pattern.matches(&issuer, &subject));
    match is_wanted && result.certificate_verified() {
        true => Ok(Signer::Identity { issuer, subject }),
        false => Err(Fault::OtherIdentity { subject: shown(&subject), issuer: shown(&issuer) }),
    }
}

fn statement(envelope: &DsseEnvelope) -> Result<Statement, Fault> {
    if envelope.payload_type != IN_TOTO {
        return Err(Fault::OtherStatement(shown(&envelope.payload_type)));
    }
    serde_json::from_slice(envelope.payload.as_bytes())
        .map_err(|error| Fault::Broken(shown(&error.to_string())))
}

/// What a certificate says about itself.
pub(super) fn claimed(certificate: &DerCertificate) -> String {
    let Ok(info) = parse_certificate_info(certificate) else { return "a broken certificate".to_owned() };
    let subject = info.identity.map(|subject| subject.to_string()).unwrap_or_default();
    format!("{} of {}", shown(&subject), shown(&info.issuer.unwrap_or_default()))
}

/// The fault that an error of the verifier is.
pub(super) fn fault(error: &SigstoreError) -> Fault {
    let text = shown(&error.to_string());
    match error {
        SigstoreError::ArtifactMismatch(_) => Fault::Invalid(text),
        SigstoreError::Certificate(
            CertificateError::Expired { .. } | CertificateError::NotYetValid { .. },
        ) => Fault::Expired(text),
        SigstoreError::Certificate(CertificateError::ChainInvalid(problem)) if is_about_time(problem) => {
            Fault::Expired(text)
        }
        SigstoreError::Certificate(CertificateError::Malformed(_)) => Fault::Broken(text),
        SigstoreError::Certificate(_) => Fault::Untrusted(text),
        SigstoreError::TransparencyLog(TransparencyLogError::IntegratedTime(_)) => Fault::Expired(text),
        SigstoreError::TransparencyLog(TransparencyLogError::MalformedEntry(_)) => Fault::Broken(text),
        SigstoreError::TransparencyLog(_) => Fault::NotLogged(text),
        SigstoreError::Timestamp(TimestampError::NoVerifiedTimestamp(_)) => Fault::NoTime(text),
        SigstoreError::Timestamp(_) => Fault::NoTime(text),
        SigstoreError::Bundle(
            sigstore_verify::bundle::Error::MissingInclusionProof(_)
            | sigstore_verify::bundle::Error::MissingInclusionPromise(_)
            | sigstore_verify::bundle::Error::MissingSigningTimeEvidence,
        ) => Fault::NotLogged(text),
        _ => Fault::Invalid(text),
    }
}

/// webpki has no word of its own for it that the verifier hands on.
fn is_about_time(problem: &str) -> bool {
    problem.contains("CertExpired") || problem.contains("CertNotValidYet")
}

/// A foreign text as it stands in messages.
pub(super) fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(SHOWN).collect()
}
