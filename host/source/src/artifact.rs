//! Plugins from OCI registries: one layer of `application/wasm`, named and checked by digest.

use std::{sync::Arc, time::Duration};

use oci_distribution::{
    Client, Reference,
    client::{ClientConfig, ClientProtocol},
    errors::{DigestError, OciDistributionError, OciErrorCode},
    manifest::{OciDescriptor, OciManifest},
    secrets::RegistryAuth,
};
use sha2::{Digest, Sha256};

/// Media type of the only layer of a plugin (CNCF layout of WebAssembly artifacts).
pub(crate) const WASM: &str = "application/wasm";
/// Size of a component, in bytes (`reference/wasm.md` §5).
pub(crate) const MAX_SIZE: i64 = 32 * 1024 * 1024;
/// How long a registry may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a whole pull may take.
const PULL: Duration = Duration::from_secs(60);

/// Pulls components. Cheap to clone.
#[derive(Clone)]
pub struct Registries {
    client: Arc<Client>,
}

/// A component as its registry has it.
#[derive(Clone)]
pub struct Component {
    /// `sha256:…` of the manifest.
    pub digest: String,
    /// The component.
    pub bytes: Arc<[u8]>,
}

/// User and password for one registry.
#[derive(Clone)]
pub struct Credentials {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

/// Why a plugin was not pulled.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The reference is broken.
    #[error(
        "`{image}` is not an image reference: {problem}; write oci://registry/name@sha256:… or oci://registry/name:tag"
    )]
    Reference {
        /// The text.
        image: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The registry does not answer.
    #[error("registry {registry} does not answer; is it up, and may this cluster reach it?")]
    Unreachable {
        /// Host and port.
        registry: String,
        /// What the connection said.
        #[source]
        source: Box<OciDistributionError>,
    },
    /// The registry wants other credentials.
    #[error(
        "registry {registry} refuses to show `{image}`; name a Secret in spec.pullSecrets that may pull it"
    )]
    Unauthorized {
        /// Host and port.
        registry: String,
        /// The reference.
        image: String,
    },
    /// The registry has no such image.
    #[error("registry {registry} has no `{image}`; was it pushed, and is the {part} right?")]
    NotFound {
        /// Host and port.
        registry: String,
        /// The reference.
        image: String,
        /// `digest` or `tag`.
        part: &'static str,
    },
    /// What the registry has is no plugin.
    #[error("`{image}` is not a WebAssembly component artifact: {problem}")]
    NotAPlugin {
        /// The reference.
        image: String,
        /// What it is.
        problem: String,
    },
    /// The bytes are not those of the digest.
    #[error(
        "what came for `{image}` has digest {actual}, {expected} was promised; the registry or what is between is \
         not to be trusted: push it again, or name another image"
    )]
    WrongDigest {
        /// The reference.
        image: String,
        /// What was promised.
        expected: String,
        /// What came.
        actual: String,
    },
    /// Anything else the registry says.
    #[error("registry {registry} failed to give `{image}`")]
    Failed {
        /// Host and port.
        registry: String,
        /// The reference.
        image: String,
        /// What it said.
        #[source]
        source: Box<OciDistributionError>,
    },
    /// It takes too long.
    #[error("registry {registry} took longer than {seconds} s to give `{image}`")]
    TimedOut {
        /// Host and port.
        registry: String,
        /// The reference.
        image: String,
        /// The limit.
        seconds: u64,
    },
}

// === impl Registries ===

impl Registries {
    /// Speaks TLS with every registry but those on this machine and those of `plain_http`, given as
    /// `host:port`.
    #[must_use]
    pub fn new(plain_http: &[String]) -> Self {
        let config = ClientConfig {
            protocol: ClientProtocol::HttpsExcept(plain_http.to_vec()),
            connect_timeout: Some(CONNECT),
            read_timeout: Some(PULL),
            user_agent: "pintle",
            ..ClientConfig::default()
        };
        Self { client: Arc::new(Client::new(config)) }
    }

    /// Pulls a component. A tag is resolved to a digest first, and what is pulled is that digest.
    ///
    /// # Errors
    /// See [`PullError`]; a retry helps where [`PullError::may_pass`] says so.
    pub async fn pull(&self, image: &str, credentials: Option<&Credentials>) -> Result<Component, PullError> {
        let reference = parse_reference(image)?;
        let auth = match credentials {
            Some(with) => RegistryAuth::Basic(with.user.clone(), with.password.clone()),
            None => RegistryAuth::Anonymous,
        };
        match tokio::time::timeout(PULL, self.pull_reference(&reference, &auth)).await {
            Ok(pulled) => pulled,
            Err(_) => Err(PullError::TimedOut {
                registry: reference.resolve_registry().to_owned(),
                image: image.to_owned(),
                seconds: PULL.as_secs(),
            }),
        }
    }

    async fn pull_reference(
        &self,
        reference: &Reference,
        auth: &RegistryAuth,
    ) -> Result<Component, PullError> {
        let (manifest, digest) = self
            .client_for(reference)
            .pull_manifest(reference, auth)
            .await
            .map_err(|err| failed(reference, err))?;
        let layer = only_layer(reference, &manifest)?;
        let mut bytes = Vec::new();
        let pinned = reference.clone_with_digest(digest.clone());
        self.client_for(reference)
            .pull_blob(&pinned, layer, &mut bytes)
            .await
            .map_err(|err| failed(reference, err))?;
        let actual = format!("sha256:{}", hex::encode(Sha256::digest(&bytes)));
        if actual != layer.digest {
            let (image, expected) = (reference.whole(), layer.digest.clone());
            return Err(PullError::WrongDigest { image, expected, actual });
        }
        Ok(Component { digest, bytes: bytes.into() })
    }

    /// Registries of this machine speak plain HTTP, as container engines have it.
    pub(crate) fn client_for(&self, reference: &Reference) -> Client {
        let registry = reference.resolve_registry();
        let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
        if !matches!(host, "127.0.0.1" | "localhost" | "[::1]") {
            return Client::clone(&self.client);
        }
        let config = ClientConfig {
            protocol: ClientProtocol::Http,
            connect_timeout: Some(CONNECT),
            read_timeout: Some(PULL),
            user_agent: "pintle",
            ..ClientConfig::default()
        };
        Client::new(config)
    }
}

// === impl PullError ===

impl PullError {
    /// CamelCase word for conditions.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Reference { .. } => "InvalidReference",
            Self::Unreachable { .. } | Self::TimedOut { .. } => "RegistryUnreachable",
            Self::Unauthorized { .. } => "Unauthorized",
            Self::NotFound { .. } => "NotFound",
            Self::NotAPlugin { .. } => "NotAPlugin",
            Self::WrongDigest { .. } => "WrongDigest",
            Self::Failed { .. } => "PullFailed",
        }
    }

    /// True where time alone may mend it.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        !matches!(self, Self::Reference { .. } | Self::NotAPlugin { .. })
    }
}

/// True for a reference that names its bytes.
#[must_use]
pub fn is_pinned(image: &str) -> bool {
    image.contains("@sha256:")
}

/// Host and port of the registry of a reference.
///
/// # Errors
/// When the reference is broken.
pub fn registry_of(image: &str) -> Result<String, PullError> {
    parse_reference(image).map(|reference| reference.resolve_registry().to_owned())
}

pub(crate) fn parse_reference(image: &str) -> Result<Reference, PullError> {
    let broken = |problem: String| PullError::Reference { image: image.to_owned(), problem };
    let Some(name) = image.strip_prefix("oci://") else {
        return Err(broken("it does not begin with oci://".into()));
    };
    name.parse::<Reference>().map_err(|err| broken(err.to_string()))
}

fn only_layer<'a>(reference: &Reference, manifest: &'a OciManifest) -> Result<&'a OciDescriptor, PullError> {
    let refuse = |problem: String| PullError::NotAPlugin { image: reference.whole(), problem };
    let OciManifest::Image(manifest) = manifest else {
        return Err(refuse("it is an index of several images".to_owned()));
    };
    let [layer] = manifest.layers.as_slice() else {
        return Err(refuse(format!("it has {} layers, one is allowed", manifest.layers.len())));
    };
    if layer.media_type != WASM {
        return Err(refuse(format!("its layer is of type {}, {WASM} is wanted", layer.media_type)));
    }
    if layer.size > MAX_SIZE {
        return Err(refuse(format!("its layer has {} bytes, {MAX_SIZE} are allowed", layer.size)));
    }
    Ok(layer)
}

pub(crate) fn failed(reference: &Reference, source: OciDistributionError) -> PullError {
    let (registry, image) = (reference.resolve_registry().to_owned(), reference.whole());
    let part = if reference.digest().is_some() { "digest" } else { "tag" };
    match &source {
        OciDistributionError::RequestError(err) if err.is_connect() || err.is_timeout() => {
            PullError::Unreachable { registry, source: Box::new(source) }
        }
        OciDistributionError::ImageManifestNotFoundError(_)
        | OciDistributionError::ServerError { code: 404, .. } => {
            PullError::NotFound { registry, image, part }
        }
        OciDistributionError::AuthenticationFailure(_) | OciDistributionError::UnauthorizedError { .. } => {
            PullError::Unauthorized { registry, image }
        }
        OciDistributionError::RegistryError { envelope, .. }
            if envelope.errors.iter().any(|err| is_missing(&err.code)) =>
        {
            PullError::NotFound { registry, image, part }
        }
        OciDistributionError::DigestError(DigestError::VerificationError { expected, actual }) => {
            PullError::WrongDigest { image, expected: expected.clone(), actual: actual.clone() }
        }
        _ => PullError::Failed { registry, image, source: Box::new(source) },
    }
}

fn is_missing(code: &OciErrorCode) -> bool {
    matches!(code, OciErrorCode::ManifestUnknown | OciErrorCode::NameUnknown | OciErrorCode::BlobUnknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_says_what_is_wrong_with_it() {
        for image in ["registry/name", "oci://", "oci://registry/Name With Spaces"] {
            let said = parse_reference(image).map(|_| ()).map_err(|err| err.to_string());
            assert!(said.is_err_and(|text| text.contains("is not an image reference")), "{image}");
        }
        assert!(is_pinned("oci://r/n@sha256:0000") && !is_pinned("oci://r/n:1.0"));
    }
}
