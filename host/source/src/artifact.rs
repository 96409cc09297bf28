//! Plugins from OCI registries: one layer of `application/wasm`, named and checked by digest.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use oci_distribution::Reference;

pub use crate::access::{Access, Credentials, Tls};
pub use crate::pull::Parts;
use crate::{
    registry::{Descriptor, Manifest},
    remote::RemoteError,
    settings::Settings,
    transport::{Limits, Transport},
};

/// Media type of the only layer of a plugin (CNCF layout of WebAssembly artifacts).
pub(crate) const WASM: &str = "application/wasm";
/// Size of a component, in bytes (`reference/wasm.md` §5).
pub(crate) const MAX_SIZE: u64 = 32 * 1024 * 1024;
/// How long a whole pull may take.
pub(crate) const PULL: Duration = Duration::from_secs(60);

/// Asks registries and repositories: for plugins by itself, for charts through [`crate::Sources`]. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub struct Registries {
    transport: Arc<Transport>,
}

/// A component as its registry has it.
#[derive(Clone)]
pub struct Component {
    /// `sha256:…` of the manifest.
    pub digest: String,
    /// The component.
    pub bytes: Arc<[u8]>,
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
        source: Box<RemoteError>,
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
        source: Box<RemoteError>,
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

impl Default for Registries {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl Registries {
    /// Speaks TLS with every registry but those on this machine and those of `plain_http`, given as
    /// `host:port`.
    #[must_use]
    pub fn new(plain_http: &[String]) -> Self {
        Self::with_limits(plain_http, Limits::default())
    }

    /// As [`Registries::new`], with other patience.
    #[must_use]
    pub fn with_limits(plain_http: &[String], limits: Limits) -> Self {
        let plain = |host: &String| (host.clone(), Settings { plain_http: true, ..Settings::default() });
        Self::configured(plain_http.iter().map(plain).collect(), limits)
    }

    /// Speaks with each registry as its settings say, by `host:port`.
    #[must_use]
    pub fn configured(settings: BTreeMap<String, Settings>, limits: Limits) -> Self {
        Self { transport: Arc::new(Transport::new(settings, limits)) }
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }
}

// === impl PullError ===

impl PullError {
    pub(crate) fn from_remote(reference: &Reference, error: RemoteError) -> Self {
        let (registry, image) = (reference.resolve_registry().to_owned(), reference.whole());
        let part = if reference.digest().is_some() { "digest" } else { "tag" };
        match error {
            RemoteError::Unreachable { .. } => Self::Unreachable { registry, source: Box::new(error) },
            RemoteError::TimedOut { seconds, .. } => Self::TimedOut { registry, image, seconds },
            RemoteError::NotFound { .. } => Self::NotFound { registry, image, part },
            RemoteError::Unauthorized { .. } => Self::Unauthorized { registry, image },
            RemoteError::Digest { expected, actual, .. } => Self::WrongDigest { image, expected, actual },
            _ => Self::Failed { registry, image, source: Box::new(error) },
        }
    }

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

pub(crate) fn only_layer<'a>(
    reference: &Reference,
    manifest: &'a Manifest,
) -> Result<&'a Descriptor, PullError> {
    let refuse = |problem: String| PullError::NotAPlugin { image: reference.whole(), problem };
    if manifest.manifests.is_some() {
        return Err(refuse("it is an index of several images".to_owned()));
    }
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
