//! A plugin as it is stored: three blobs named by their digests, in a registry or in a file.
//!
//! The layout is that of the CNCF for WebAssembly artifacts; the file is an OCI image layout in a tar
//! archive, which other tools read too. Equal components with equal annotations give equal bytes.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    time::Duration,
};

use http::HeaderValue;
use oci_distribution::{
    Client, Reference,
    client::{ClientConfig, ClientProtocol},
    errors::OciDistributionError,
    secrets::RegistryAuth,
};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::{
    access::Access,
    artifact::{self, Credentials, MAX_SIZE, PullError, Registries, WASM, parse_reference},
    registry::{self, Session},
};

/// Media type of the manifest.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of the document that lists what a component exports and imports.
const CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// The annotation of an image layout that holds a reference.
const NAME: &str = "org.opencontainers.image.ref.name";
/// How long a push may take.
const PUSH: Duration = Duration::from_secs(120);

/// A plugin's manifest, config and component, as a registry stores them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    manifest: Vec<u8>,
    config: Vec<u8>,
    component: Vec<u8>,
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

#[derive(Deserialize)]
struct Index {
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Manifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: u64,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
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
        Self { manifest: manifest.to_string().into_bytes(), config, component }
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

    /// Writes an OCI image layout as a tar archive, under the reference `name`.
    ///
    /// # Errors
    /// When the archive cannot be written.
    pub fn write(&self, name: &str, out: impl Write) -> Result<(), BundleError> {
        let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [{"mediaType": MANIFEST, "digest": self.digest(), "size": self.manifest.len(),
                "annotations": {NAME: name}}]});
        let blob = |bytes: &[u8]| format!("blobs/sha256/{}", digest_of(bytes).trim_start_matches("sha256:"));
        let files = [
            ("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()),
            ("index.json".to_owned(), index.to_string().into_bytes()),
            (blob(&self.manifest), self.manifest.clone()),
            (blob(&self.config), self.config.clone()),
            (blob(&self.component), self.component.clone()),
        ];
        let mut archive = tar::Builder::new(out);
        let mut write = |path: &str, bytes: &[u8]| {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            header.set_mtime(0);
            archive.append_data(&mut header, path, bytes)
        };
        let written = files.iter().try_for_each(|(path, bytes)| write(path, bytes));
        written
            .and_then(|()| archive.finish())
            .map_err(|source| BundleError::Archive { action: "write", source })
    }

    /// Reads an OCI image layout from a tar archive; gives the reference that it was saved under too.
    /// Every blob is compared with its digest.
    ///
    /// # Errors
    /// When the archive cannot be read, or holds no plugin.
    pub fn read(archive: impl Read) -> Result<(String, Self), BundleError> {
        let mut files =
            read_all(archive).map_err(|source| BundleError::Archive { action: "read", source })?;
        let no = |problem: &str| BundleError::NotALayout(problem.to_owned());
        let index = files.remove("index.json").ok_or_else(|| no("it has no index.json"))?;
        let index: Index = serde_json::from_slice(&index).map_err(|_| no("its index.json is no index"))?;
        let [first] = index.manifests.as_slice() else {
            return Err(no(&format!("it has {} manifests, one is read", index.manifests.len())));
        };
        let mut take = |descriptor: &Descriptor| {
            let path = format!("blobs/sha256/{}", descriptor.digest.trim_start_matches("sha256:"));
            let bytes = files.remove(&path).ok_or_else(|| no(&format!("it has no {path}")))?;
            match digest_of(&bytes) == descriptor.digest {
                true => Ok(bytes),
                false => Err(no(&format!("{path} is not what its name says"))),
            }
        };
        let manifest = take(first)?;
        let parsed: Manifest = serde_json::from_slice(&manifest).map_err(|_| no("its manifest is none"))?;
        let layer = only_layer(&parsed).map_err(BundleError::NotALayout)?;
        let (config, component) = (take(&parsed.config)?, take(layer)?);
        let name = first.annotations.get(NAME).cloned().unwrap_or_default();
        Ok((name, Self { manifest, config, component }))
    }
}

impl Registries {
    /// Pushes a plugin, and returns the digest that pins it.
    ///
    /// # Errors
    /// When the reference is broken or pinned, or the registry refuses.
    ///
    /// # Cancellation
    /// Blobs without a manifest may stay in the registry; nothing pulls them.
    pub async fn push(
        &self,
        image: &str,
        bundle: &Bundle,
        credentials: Option<&Credentials>,
    ) -> Result<String, BundleError> {
        let reference = parse_reference(image)?;
        if reference.digest().is_some() {
            return Err(BundleError::Pinned { image: image.to_owned() });
        }
        let registry = || reference.resolve_registry().to_owned();
        let pushed = tokio::time::timeout(PUSH, self.push_all(&reference, bundle, credentials)).await;
        match pushed {
            Ok(Ok(())) => Ok(bundle.digest()),
            Ok(Err(source)) => {
                let source = Box::new(source);
                Err(BundleError::Push { registry: registry(), image: image.to_owned(), source })
            }
            Err(_) => {
                let image = image.to_owned();
                Err(BundleError::TimedOut { registry: registry(), image, seconds: PUSH.as_secs() })
            }
        }
    }

    async fn push_all(
        &self,
        reference: &Reference,
        bundle: &Bundle,
        credentials: Option<&Credentials>,
    ) -> Result<(), OciDistributionError> {
        let client = self.client_for(reference);
        client.store_auth_if_needed(reference.resolve_registry(), &auth(credentials)).await;
        for blob in [&bundle.component, &bundle.config] {
            client.push_blob(reference, blob.clone(), &digest_of(blob)).await?;
        }
        let media_type = HeaderValue::from_static(MANIFEST);
        client.push_manifest_raw(reference, bundle.manifest.clone(), media_type).await.map(drop)
    }

    /// Pulls a plugin with everything that is stored of it, so that it can be saved.
    ///
    /// # Errors
    /// As [`Registries::pull`].
    pub async fn pull_bundle(
        &self,
        image: &str,
        credentials: Option<&Credentials>,
    ) -> Result<Bundle, BundleError> {
        let reference = parse_reference(image)?;
        let access = Access { credentials: credentials.cloned(), ..Access::default() };
        let failed = |error| PullError::from_remote(&reference, error);
        let no =
            |problem: &str| PullError::NotAPlugin { image: image.to_owned(), problem: problem.to_owned() };
        let mut session = Session::new(self.transport(), &access, &reference).map_err(failed)?;
        let wanted = reference.digest().or_else(|| reference.tag()).unwrap_or("latest");
        let (manifest, _) = session.manifest_bytes(wanted).await.map_err(failed)?;
        let parsed: registry::Manifest =
            serde_json::from_slice(&manifest).map_err(|_| no("its manifest is none"))?;
        let layer = artifact::only_layer(&reference, &parsed)?;
        let described = parsed.config.as_ref().ok_or_else(|| no("its manifest names no config"))?;
        let component = session.blob(layer, MAX_SIZE).await.map_err(failed)?;
        let config = session.blob(described, MAX_SIZE).await.map_err(failed)?;
        Ok(Bundle { manifest, config, component })
    }

    /// A client that writes; reading has its own, which is careful with what comes.
    fn client_for(&self, reference: &Reference) -> Client {
        let is_plain = self.transport().is_plain(reference.resolve_registry());
        let protocol = if is_plain { ClientProtocol::Http } else { ClientProtocol::Https };
        Client::new(ClientConfig { protocol, user_agent: "pintle", ..ClientConfig::default() })
    }
}

fn auth(credentials: Option<&Credentials>) -> RegistryAuth {
    match credentials {
        Some(with) => RegistryAuth::Basic(with.user.clone(), with.password.clone()),
        None => RegistryAuth::Anonymous,
    }
}

fn only_layer(manifest: &Manifest) -> Result<&Descriptor, String> {
    match manifest.layers.as_slice() {
        [layer] if layer.media_type != WASM => Err(format!("its layer is of type {}", layer.media_type)),
        [layer] if layer.size > MAX_SIZE => Err(format!("its layer has {} bytes", layer.size)),
        [layer] => Ok(layer),
        layers => Err(format!("it has {} layers, one is allowed", layers.len())),
    }
}

/// Every file of a tar archive, none larger than a component may be, and not more than such a layout has.
fn read_all(archive: impl Read) -> io::Result<BTreeMap<String, Vec<u8>>> {
    const MOST: usize = 32;
    let limit = MAX_SIZE;
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(archive).entries()? {
        let entry = entry?;
        if files.len() == MOST || entry.size() > limit {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too large for a plugin"));
        }
        let path = entry.path()?.to_string_lossy().trim_start_matches("./").to_owned();
        let mut bytes = Vec::new();
        entry.take(limit).read_to_end(&mut bytes)?;
        files.insert(path, bytes);
    }
    Ok(files)
}

fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests stop at the first surprise")]
    use super::*;

    fn bundle(component: &[u8]) -> Bundle {
        let annotations = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        Bundle::new(Described { component: component.to_vec(), annotations, ..Described::default() })
    }

    fn saved(bundle: &Bundle) -> Vec<u8> {
        let mut archive = Vec::new();
        bundle.write("oci://r.example/p:1", &mut archive).unwrap();
        archive
    }

    #[test]
    fn what_is_saved_is_loaded_with_the_same_digest() {
        let bundle = bundle(b"component");
        assert_eq!(saved(&bundle), saved(&bundle.clone()));
        let (name, loaded) = Bundle::read(saved(&bundle).as_slice()).unwrap();
        assert_eq!((name.as_str(), &loaded), ("oci://r.example/p:1", &bundle));
        assert_ne!(loaded.digest(), super::tests::bundle(b"other").digest());
    }

    #[test]
    fn a_flipped_byte_in_an_archive_is_found() {
        let mut archive = saved(&bundle(b"component-of-some-length"));
        let at = archive.windows(9).rposition(|bytes| bytes == b"component").unwrap();
        archive[at] ^= 1;
        let error = Bundle::read(archive.as_slice()).unwrap_err().to_string();
        assert!(error.contains("is not what its name says"), "{error}");
    }

    #[test]
    fn what_is_no_layout_says_what_is_missing() {
        let mut empty = tar::Builder::new(Vec::new());
        empty.finish().unwrap();
        let error = Bundle::read(empty.into_inner().unwrap().as_slice()).unwrap_err().to_string();
        assert_eq!(error, "the archive holds no plugin: it has no index.json");
    }
}
