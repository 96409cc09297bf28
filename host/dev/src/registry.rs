//! Plugins in an OCI registry, in the CNCF layout for WebAssembly artifacts.

use std::collections::BTreeMap;

use oci_distribution::client::{ClientConfig, ClientProtocol, Config, ImageLayer};
use oci_distribution::errors::OciDistributionError;
use oci_distribution::manifest::OciImageManifest;
use oci_distribution::secrets::RegistryAuth;
use oci_distribution::{Client, Reference};
use serde_json::json;
use sha2::{Digest, Sha256};

/// The media type of the configuration of a WebAssembly artifact.
pub const CONFIG_TYPE: &str = "application/vnd.wasm.config.v0+json";
/// The media type of its only layer, a component.
pub const LAYER_TYPE: &str = "application/wasm";

/// A component and what is said about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Artifact {
    /// The bytes of the component.
    pub component: Vec<u8>,
    /// The interfaces it exports.
    pub exports: Vec<String>,
    /// The interfaces it imports.
    pub imports: Vec<String>,
    /// Annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
    /// RFC 3339; without one the artifact says 1970, so that the same component has the same digest.
    pub created: Option<String>,
}

/// Why a push failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The reference is not one.
    #[error("{reference} is no image reference")]
    Reference {
        /// What was given.
        reference: String,
        /// Why it is none.
        source: oci_distribution::ParseError,
    },
    /// The registry refused or could not be reached. A retry helps when it was away.
    #[error("could not push {reference}")]
    Push {
        /// Where to.
        reference: String,
        /// Why not.
        source: Box<OciDistributionError>,
    },
}

/// Pushes a component over plain HTTP, as the local registry speaks it, and returns the manifest's digest (`sha256:…`).
///
/// `reference` is `host:port/repository:tag`, with or without `oci://`.
///
/// # Errors
/// The reference cannot be read, or the registry refused.
///
/// # Cancellation
/// Blobs without a manifest may stay in the registry; nothing can pull them.
pub async fn push(reference: &str, artifact: &Artifact) -> Result<String, Error> {
    let parsed: Reference = reference
        .trim_start_matches("oci://")
        .parse()
        .map_err(|source| Error::Reference { reference: reference.to_owned(), source })?;
    let client = Client::new(ClientConfig { protocol: ClientProtocol::Http, ..ClientConfig::default() });
    let layer = ImageLayer::new(artifact.component.clone(), LAYER_TYPE.to_owned(), None);
    let config = Config::new(build_config(artifact).to_string(), CONFIG_TYPE.to_owned(), None);
    let annotations = (!artifact.annotations.is_empty()).then(|| artifact.annotations.clone());
    let layers = [layer];
    let mut manifest = OciImageManifest::build(&layers, &config, annotations);
    manifest.media_type = Some("application/vnd.oci.image.manifest.v1+json".to_owned());
    let failed = |source| Error::Push { reference: reference.to_owned(), source: Box::new(source) };
    client.push(&parsed, &layers, config, &RegistryAuth::Anonymous, Some(manifest)).await.map_err(failed)?;
    client.fetch_manifest_digest(&parsed, &RegistryAuth::Anonymous).await.map_err(failed)
}

/// The configuration document of the layout.
fn build_config(artifact: &Artifact) -> serde_json::Value {
    json!({
        "created": artifact.created.as_deref().unwrap_or("1970-01-01T00:00:00Z"),
        "architecture": "wasm",
        "os": "wasip2",
        "layerDigests": [format!("sha256:{}", hex::encode(Sha256::digest(&artifact.component)))],
        "component": {"exports": artifact.exports, "imports": artifact.imports},
    })
}
