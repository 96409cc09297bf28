//! What is wrong with one signature.

/// What is wrong with one signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It cannot be read.
    #[error("one that cannot be read ({0})")]
    Broken(String),
    /// It signs a statement about the plugin, which says something else than that it is signed.
    #[error("an attestation of type {0:?}, which is no signature")]
    OtherStatement(String),
    /// None of the keys that are wanted made it.
    #[error("one by another key{}", hint(.0))]
    OtherKey(String),
    /// It is of a key, and only identities are wanted; or the other way round.
    #[error("one by {0}, where none is wanted")]
    OtherKind(String),
    /// A signer that is wanted signed something else.
    #[error("one of another digest, {0}")]
    OtherDigest(String),
    /// An authority vouched for somebody else.
    #[error("one by {subject} of {issuer}")]
    OtherIdentity {
        /// Whom the certificate names.
        subject: String,
        /// Who vouched.
        issuer: String,
    },
    /// The certificate was not valid when it was used.
    #[error("one by a certificate that was not valid at the time ({0})")]
    Expired(String),
    /// The certificate is of nobody whom the trust root knows.
    #[error("one by a certificate that the trust root does not vouch for ({0})")]
    Untrusted(String),
    /// No log of the trust root has it.
    #[error("one without an entry in a log of the trust root ({0})")]
    NotLogged(String),
    /// Nobody says when it was made.
    #[error("one without a time that the trust root vouches for ({0})")]
    NoTime(String),
    /// The bytes are not what was signed.
    #[error("one that does not fit what it signs ({0})")]
    Invalid(String),
}

fn hint(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text:?})") }
}

// === impl Fault ===

impl Fault {
    /// CamelCase word for conditions.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Broken(_) | Self::Invalid(_) | Self::OtherStatement(_) => "SignatureInvalid",
            Self::OtherKey(_) | Self::OtherKind(_) | Self::OtherIdentity { .. } => "SignerNotTrusted",
            Self::OtherDigest(_) => "SignatureOfOtherDigest",
            Self::Expired(_) => "CertificateExpired",
            Self::Untrusted(_) => "CertificateNotTrusted",
            Self::NotLogged(_) => "LogEntryMissing",
            Self::NoTime(_) => "SigningTimeMissing",
        }
    }

    /// What would mend it.
    #[must_use]
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Broken(_) | Self::Invalid(_) => "sign it again",
            Self::OtherStatement(_) => "sign it with `pintle plugin sign` or `cosign sign`",
            Self::OtherKey(_) => "have it signed by one of them, or add the key to spec.verify.publicKeys",
            Self::OtherKind(_) => "have it signed by one of them, or add the signer to spec.verify",
            Self::OtherDigest(_) => "sign this digest, or name the digest that was signed",
            Self::OtherIdentity { .. } => {
                "have it signed by one of them, or add the identity to spec.verify.identities"
            }
            Self::Expired(_) => "sign it again with a certificate that is valid",
            Self::Untrusted(_) => "name the trust root of this authority in spec.verify.trustRoot",
            Self::NotLogged(_) => "sign it again with an upload to that log",
            Self::NoTime(_) => "sign it again with a log entry or a time stamp",
        }
    }

    /// The greater, the nearer it is to a signature that counts.
    pub(super) fn nearness(&self) -> u8 {
        match self {
            Self::Broken(_) => 0,
            Self::OtherStatement(_) => 1,
            Self::OtherKind(_) => 2,
            Self::OtherKey(_) => 3,
            Self::Invalid(_) => 4,
            Self::Untrusted(_) => 5,
            Self::NoTime(_) => 6,
            Self::Expired(_) => 7,
            Self::OtherIdentity { .. } => 8,
            Self::NotLogged(_) => 9,
            Self::OtherDigest(_) => 10,
        }
    }
}
