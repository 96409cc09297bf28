//! A plugin as it is stored: three blobs named by their digests, in a registry or in a file.
//!
//! The layout is that of the CNCF for WebAssembly artifacts; the file is an OCI image layout in a tar
//! archive, which other tools read too. Equal components with equal annotations give equal bytes. Signatures
//! go with it: in the registry, and in the file.

mod layout;

use std::{collections::BTreeMap, fmt, io};

use oci_distribution::errors::OciDistributionError;
use serde_json::json;

pub use crate::attached::Attached;
use crate::{
    artifact::{PullError, WASM},
    registry::{Manifest, digest as digest_of},
};

/// Media type of the manifest.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of the document that lists what a component exports and imports.
const CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// A plugin's manifest, config and component, as a registry stores them, with its signatures.
#[derive(Clone, PartialEq, Eq)]
pub struct Bundle {
    manifest: Vec<u8>,
    config: Vec<u8>,
    component: Vec<u8>,
    attached: Vec<Attached>,
}

/// A component, and what is said about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// The component.
    pub component: Vec<u8>,
    /// Interfaces that it exports.
    pub exports: Vec<String>,
    /// Interfaces that it imports.
    pub imports: Vec<String>,
    /// Annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
}

/// Why a plugin was not pushed, saved or loaded.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// It was not pulled.
    #[error(transparent)]
    Pull(#[from] PullError),
    /// A digest cannot be pushed to: it follows from the bytes.
    #[error("`{image}` names a digest, which follows from the bytes; push to a tag")]
    Pinned {
        /// The reference.
        image: String,
    },
    /// The registry did not take it.
    #[error("registry {registry} did not take `{image}`; does this account have the right to push there?")]
    Push {
        /// Host and port.
        registry: String,
        /// The reference.
        image: String,
        /// What it said.
        #[source]
        source: Box<OciDistributionError>,
    },
    /// A signature for another plugin.
    #[error("the signature is of another plugin than {0}")]
    Foreign(String),
    /// It takes too long.
    #[error("registry {registry} took longer than {seconds} s to take `{image}`")]
    TimedOut {
        /// Host and port.
        registry: String,
        /// The reference.
        image: String,
        /// The limit.
        seconds: u64,
    },
    /// The archive cannot be written or read.
    #[error("cannot {action} the archive")]
    Archive {
        /// `read` or `write`.
        action: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The archive holds no plugin.
    #[error("the archive holds no plugin: {0}")]
    NotALayout(String),
}

// === impl Bundle ===

impl Bundle {
    /// Builds what a registry stores of a component.
    #[must_use]
    pub fn new(described: Described) -> Self {
        let Described { component, exports, imports, annotations } = described;
        let layer = digest_of(&component);
        let config = json!({"created": "1970-01-01T00:00:00Z", "architecture": "wasm", "os": "wasip2",
            "layerDigests": [layer], "component": {"exports": exports, "imports": imports}});
        let config = config.to_string().into_bytes();
        let mut manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "artifactType": CONFIG,
            "config": {"mediaType": CONFIG, "digest": digest_of(&config), "size": config.len()},
            "layers": [{"mediaType": WASM, "digest": layer, "size": component.len()}]});
        if !annotations.is_empty() {
            manifest["annotations"] = json!(annotations);
        }
        Self { manifest: manifest.to_string().into_bytes(), config, component, attached: Vec::new() }
    }

    /// `sha256:…` of the manifest: what an image reference pins.
    #[must_use]
    pub fn digest(&self) -> String {
        digest_of(&self.manifest)
    }

    /// The component.
    #[must_use]
    pub fn component(&self) -> &[u8] {
        &self.component
    }

    /// The very bytes that its digest is of.
    #[must_use]
    pub fn manifest(&self) -> &[u8] {
        &self.manifest
    }

    /// Annotations of the manifest, each as it stands there.
    #[must_use]
    pub fn annotations(&self) -> BTreeMap<String, String> {
        serde_json::from_slice::<Manifest>(&self.manifest).unwrap_or_default().annotations
    }

    /// Signatures and whatever else is about it.
    #[must_use]
    pub fn attached(&self) -> &[Attached] {
        &self.attached
    }

    /// Adds what is about it; of several under one tag the last stays.
    pub fn attach(&mut self, more: Attached) {
        self.attached.retain(|old| old != &more && (old.tag.is_none() || old.tag != more.tag));
        self.attached.push(more);
    }

    pub(crate) fn from_parts(manifest: Vec<u8>, config: Vec<u8>, component: Vec<u8>) -> Self {
        Self { manifest, config, component, attached: Vec::new() }
    }

    pub(crate) fn with_config(self, config: Vec<u8>) -> Self {
        Self { config, ..self }
    }

    pub(crate) fn config(&self) -> &[u8] {
        &self.config
    }
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bundle")
            .field("digest", &self.digest())
            .field("bytes", &self.component.len())
            .field("attached", &self.attached)
            .finish_non_exhaustive()
    }
}
