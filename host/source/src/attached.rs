//! What a registry holds beside a plugin: manifests of their own, found by reference or by a tag.

use std::{collections::BTreeMap, fmt};

use serde_json::{Value, json};

use crate::{
    bundle::{Bundle, MANIFEST},
    registry::{Descriptor, Manifest, digest},
};

/// The configuration of an artifact that has none.
pub(crate) const EMPTY: &[u8] = b"{}";
/// Its media type.
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
/// The configuration of the image that older signatures pretend to be.
const IMAGE_CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// An artifact that is about a plugin: a manifest with its blobs.
#[derive(Clone, PartialEq, Eq)]
pub struct Attached {
    /// The tag it is found by; none where the registry lists what refers to the plugin.
    pub(crate) tag: Option<String>,
    pub(crate) manifest: Vec<u8>,
    pub(crate) blobs: Vec<Vec<u8>>,
}

/// A layer that is to be attached.
pub(crate) struct Layer {
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) annotations: BTreeMap<String, String>,
}

/// A layer that is attached.
pub(crate) struct Part<'a> {
    /// Nothing where the blob is not there.
    pub(crate) bytes: Option<&'a [u8]>,
    pub(crate) annotations: BTreeMap<String, String>,
}

/// The tag under which older signatures of a digest are.
pub(crate) fn signature_tag(digest: &str) -> String {
    format!("{}.sig", referrers_tag(digest))
}

/// The tag with the list of what refers to a digest, in registries that keep none.
pub(crate) fn referrers_tag(digest: &str) -> String {
    digest.replacen(':', "-", 1)
}

// === impl Layer ===

impl Layer {
    pub(crate) fn new(media_type: &'static str, bytes: Vec<u8>) -> Self {
        Self { media_type, bytes, annotations: BTreeMap::new() }
    }

    fn descriptor(&self) -> Value {
        let mut descriptor =
            json!({"mediaType": self.media_type, "digest": digest(&self.bytes), "size": self.bytes.len()});
        if !self.annotations.is_empty() {
            descriptor["annotations"] = json!(self.annotations);
        }
        descriptor
    }
}

// === impl Attached ===

impl Attached {
    /// An artifact of one layer that refers to the plugin.
    pub(crate) fn referrer(plugin: &Bundle, kind: &str, annotations: &[(&str, &str)], layer: Layer) -> Self {
        let annotations: BTreeMap<_, _> = annotations.iter().copied().collect();
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "artifactType": kind,
            "config": {"mediaType": EMPTY_TYPE, "digest": digest(EMPTY), "size": EMPTY.len()},
            "layers": [layer.descriptor()],
            "subject": {"mediaType": MANIFEST, "digest": plugin.digest(), "size": plugin.manifest().len()},
            "annotations": annotations});
        let blobs = vec![EMPTY.to_vec(), layer.bytes];
        Self { tag: None, manifest: manifest.to_string().into_bytes(), blobs }
    }

    /// The artifact under the tag of older signatures: those before, and one more.
    pub(crate) fn signatures(plugin: &Bundle, before: Option<&Self>, layer: Layer) -> Self {
        let old = before.map(Self::read).unwrap_or_default().layers;
        let find =
            |layer: &Descriptor| before?.blobs.iter().find(|blob| digest(blob) == layer.digest).cloned();
        let old = old.into_iter().filter_map(|layer| find(&layer).map(|blob| (json!(layer), blob)));
        let new = std::iter::once((layer.descriptor(), layer.bytes));
        let (layers, blobs): (Vec<Value>, Vec<Vec<u8>>) = old.chain(new).unzip();
        let digests: Vec<_> = layers.iter().map(|layer| layer["digest"].clone()).collect();
        let history = vec![json!({"created": "0001-01-01T00:00:00Z"}); layers.len()];
        let config = json!({"architecture": "", "created": "0001-01-01T00:00:00Z", "history": history, "os": "",
            "rootfs": {"type": "layers", "diff_ids": digests}, "config": {}});
        let config = config.to_string().into_bytes();
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": IMAGE_CONFIG, "digest": digest(&config), "size": config.len()},
            "layers": layers});
        let blobs = std::iter::once(config).chain(blobs).collect();
        let tag = Some(signature_tag(&plugin.digest()));
        Self { tag, manifest: manifest.to_string().into_bytes(), blobs }
    }

    /// `sha256:…` of its manifest.
    #[must_use]
    pub fn digest(&self) -> String {
        digest(&self.manifest)
    }

    /// The layers of a media type.
    pub(crate) fn layers_of(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Part<'_>> {
        let layers = self.read().layers.into_iter().filter(|layer| is_wanted(&layer.media_type));
        let part = |layer: Descriptor| Part {
            bytes: self.blobs.iter().find(|blob| digest(blob) == layer.digest).map(Vec::as_slice),
            annotations: layer.annotations,
        };
        layers.map(part).collect()
    }

    /// How an index lists it.
    pub(crate) fn descriptor(&self) -> Value {
        let Manifest { artifact_type, annotations, .. } = self.read();
        let mut descriptor =
            json!({"mediaType": MANIFEST, "digest": self.digest(), "size": self.manifest.len()});
        if !artifact_type.is_empty() {
            descriptor["artifactType"] = json!(artifact_type);
        }
        if !annotations.is_empty() {
            descriptor["annotations"] = json!(annotations);
        }
        descriptor
    }

    /// True when it is about this digest.
    pub(crate) fn is_about(&self, plugin: &str) -> bool {
        match &self.tag {
            Some(tag) => *tag == signature_tag(plugin),
            None => self.read().subject.is_some_and(|subject| subject.digest == plugin),
        }
    }

    pub(crate) fn read(&self) -> Manifest {
        serde_json::from_slice(&self.manifest).unwrap_or_default()
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attached")
            .field("tag", &self.tag)
            .field("digest", &self.digest())
            .finish_non_exhaustive()
    }
}
