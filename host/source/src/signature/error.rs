//! Why no signature counts.

use super::Fault;

/// Why no signature counts. Only other signatures, or other wishes, mend it.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// Nobody is named who may sign.
    #[error("spec.verify names nobody who may sign; add publicKeys or identities")]
    NobodyWanted,
    /// Identities and logs need somebody who vouches for them.
    #[error(
        "identities and log entries cannot be verified without a trust root; name one in spec.verify.trustRoot"
    )]
    NoRoot,
    /// There is no signature at all.
    #[error(
        "nobody signed {digest}: the registry has neither a Sigstore bundle for it nor a tag sha256-….sig; wanted \
         {wanted}; sign it with `pintle plugin sign` or `cosign sign`, and copy signatures along when it is copied"
    )]
    Unsigned {
        /// Of the manifest.
        digest: String,
        /// Whose signature was wanted.
        wanted: String,
    },
    /// There are signatures, and none counts.
    #[error("no signature of {digest} counts: wanted {wanted}; found {}; {}", list(.faults), fix(.faults))]
    Refused {
        /// Of the manifest.
        digest: String,
        /// Whose signature was wanted.
        wanted: String,
        /// What is wrong with each.
        faults: Vec<Fault>,
    },
}

// === impl VerifyError ===

impl VerifyError {
    /// CamelCase word for conditions.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NobodyWanted => "NoSignerNamed",
            Self::NoRoot => "TrustRootMissing",
            Self::Unsigned { .. } => "SignatureMissing",
            Self::Refused { faults, .. } => worst(faults).map_or("SignatureInvalid", Fault::reason),
        }
    }
}

/// The fault nearest to a signature that counts: its fix is told.
fn worst(faults: &[Fault]) -> Option<&Fault> {
    faults.iter().max_by_key(|fault| fault.nearness())
}

fn fix(faults: &[Fault]) -> &'static str {
    worst(faults).map_or("sign it again", Fault::fix)
}

/// At most so many faults stand in a message.
const SHOWN: usize = 5;

fn list(faults: &[Fault]) -> String {
    let mut texts: Vec<_> = faults.iter().map(ToString::to_string).collect();
    texts.dedup();
    let more = texts.len().saturating_sub(SHOWN);
    texts.truncate(SHOWN);
    let shown = texts.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}
