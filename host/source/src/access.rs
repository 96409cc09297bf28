//! With which user, which authorities and which protocol a server is asked.

use std::{fmt, sync::Arc};

use crate::keyring::Keyring;

/// User and password for one registry or repository.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Credentials {
    /// The user.
    pub user: String,
    /// The password, or a token that stands for one.
    pub password: String,
}

/// How a server is spoken to. The default: no credentials, the authorities of this machine, TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// For the very server that is named; never for another one, see [`Access::pass_credentials`].
    pub credentials: Option<Credentials>,
    /// Credentials of several servers; asked where `credentials` has none.
    pub keyring: Arc<Keyring>,
    /// `credentials` are also for the other hosts an index points to, as Helm's `--pass-credentials`.
    pub pass_credentials: bool,
    /// Certificates.
    pub tls: Tls,
    /// A registry (`oci://`) is spoken to without TLS.
    pub plain_http: bool,
}

/// Whom to trust, and as whom to be trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tls {
    /// Certificates of authorities as PEM, besides those of this machine; empty: none.
    pub authorities: Vec<u8>,
    /// Our certificate and its key as PEM, one after the other; empty: none.
    pub identity: Vec<u8>,
    /// The server's certificate is not checked.
    pub insecure: bool,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Credentials {
    /// The value of the header `Authorization`.
    pub(crate) fn basic(&self) -> String {
        use base64::{Engine as _, prelude::BASE64_STANDARD};
        format!("Basic {}", BASE64_STANDARD.encode(format!("{}:{}", self.user, self.password)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_in_what_is_logged() {
        let credentials = Credentials { user: "ann".into(), password: "hunter2".into() };
        let access = Access { credentials: Some(credentials), ..Access::default() };
        let shown = format!("{access:?}");
        assert!(shown.contains("ann") && !shown.contains("hunter2"), "{shown}");
    }
}
