//! Why a server did not give what was asked of it: the address without credentials, the answer, the fix.

use std::error::Error as _;

use http::StatusCode;

/// Why a server did not give what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// No url, or one of another scheme.
    #[error("{url:?} cannot be fetched ({problem}): write https://HOST/PATH")]
    Url {
        /// As given, without credentials.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Certificates or keys that were given cannot be used.
    #[error("the {what} cannot be used: give certificates and keys as PEM")]
    Pem {
        /// `certificate authority`, or `client certificate`.
        what: &'static str,
        /// What the reader says.
        #[source]
        source: reqwest::Error,
    },
    /// No connection.
    #[error("{url} does not answer; is it up, and may it be reached from here?")]
    Unreachable {
        /// What was asked for.
        url: String,
        /// What the connection said.
        #[source]
        source: reqwest::Error,
    },
    /// A certificate nobody here trusts.
    #[error("{url} has a certificate that is not trusted here: name the authority that signed it")]
    Certificate {
        /// What was asked for.
        url: String,
        /// What is wrong with it.
        #[source]
        source: reqwest::Error,
    },
    /// Something else than TLS on that port.
    #[error("{url} does not speak TLS: if plain HTTP is meant, name its host as one that speaks it")]
    NotTls {
        /// What was asked for.
        url: String,
        /// What the connection said.
        #[source]
        source: reqwest::Error,
    },
    /// 401 or 403, with all credentials there are.
    #[error("{url} answered {status}: give user and password that may read it")]
    Unauthorized {
        /// What was asked for.
        url: String,
        /// The status.
        status: StatusCode,
    },
    /// 404 or 410.
    #[error("{url} answered {status}: nothing of that name is there")]
    NotFound {
        /// What was asked for.
        url: String,
        /// The status.
        status: StatusCode,
    },
    /// Any other status.
    #[error("{url} answered {status}{said}")]
    Status {
        /// What was asked for.
        url: String,
        /// The status.
        status: StatusCode,
        /// The beginning of the answer, after a colon; empty where there was none.
        said: String,
    },
    /// More bytes than are read.
    #[error("{url} gave more than the {limit} bytes that are read")]
    TooLarge {
        /// What was asked for.
        url: String,
        /// The limit.
        limit: u64,
    },
    /// The end of the answer is missing.
    #[error("{url} broke off in the middle of its answer")]
    Truncated {
        /// What was asked for.
        url: String,
        /// What the connection said.
        #[source]
        source: reqwest::Error,
    },
    /// The answer did not come in time.
    #[error("{url} took longer than {seconds} s")]
    TimedOut {
        /// What was asked for.
        url: String,
        /// The limit.
        seconds: u64,
    },
    /// Too many redirects, or one that cannot be followed.
    #[error("{url} leads from one address to the next without an end, at last to {last}")]
    Redirects {
        /// What was asked for.
        url: String,
        /// The last address.
        last: String,
    },
    /// From TLS to plain HTTP, or to another scheme.
    #[error("{url} leads to {to}, which is not followed: it gives up TLS or is no web address")]
    Downgrade {
        /// What was asked for.
        url: String,
        /// Where it leads.
        to: String,
    },
    /// A registry that sends credentials where they must not go.
    #[error("{url} wants tokens from {realm}, where no credentials are sent: {why}")]
    Realm {
        /// What was asked for.
        url: String,
        /// The address in the challenge.
        realm: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An answer of another form.
    #[error("{url} answered with something else than {expected}")]
    Answer {
        /// What was asked for.
        url: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The bytes are others than those named.
    #[error(
        "what came from {url} has digest {actual}, {expected} was promised; the server or what is between is not to \
         be trusted"
    )]
    Digest {
        /// What was asked for.
        url: String,
        /// What was promised.
        expected: String,
        /// What came.
        actual: String,
    },
}

impl RemoteError {
    /// True where time alone may mend it: the next attempt may be answered.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Truncated { .. } | Self::TimedOut { .. } => true,
            Self::Status { status, .. } => {
                status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
            }
            _ => false,
        }
    }

    /// The fault in one CamelCase word.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Url { .. } => "RepositoryInvalid",
            Self::Pem { .. } => "CertificateInvalid",
            Self::Unreachable { .. } | Self::TimedOut { .. } => "RepositoryUnreachable",
            Self::Certificate { .. } | Self::NotTls { .. } => "CertificateUntrusted",
            Self::Unauthorized { .. } => "Unauthorized",
            Self::NotFound { .. } => "NotFound",
            Self::TooLarge { .. } => "TooLarge",
            Self::Digest { .. } => "DigestMismatch",
            Self::Status { .. } | Self::Truncated { .. } | Self::Answer { .. } => "RepositoryFailed",
            Self::Redirects { .. } | Self::Downgrade { .. } | Self::Realm { .. } => "RepositoryUntrusted",
        }
    }

    /// Which fault of a request that had no answer.
    pub(crate) fn of_request(url: String, error: reqwest::Error, seconds: u64) -> Self {
        let source = error.without_url();
        match tls_fault(&source) {
            Some(rustls::Error::InvalidMessage(_)) => Self::NotTls { url, source },
            Some(_) => Self::Certificate { url, source },
            None if source.is_timeout() && !source.is_connect() => Self::TimedOut { url, seconds },
            None => Self::Unreachable { url, source },
        }
    }
}

/// What TLS said, somewhere below an error of a request.
fn tls_fault(error: &reqwest::Error) -> Option<&rustls::Error> {
    let mut next = error.source();
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        // An error of input and output has the error it was made from inside, not below it.
        if let Some(inside) = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            if let Some(found) = inside.downcast_ref::<rustls::Error>() {
                return Some(found);
            }
            if let Some(deeper) = inside.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref)
                && let Some(found) = deeper.downcast_ref::<rustls::Error>()
            {
                return Some(found);
            }
        }
        next = cause.source();
    }
    None
}
