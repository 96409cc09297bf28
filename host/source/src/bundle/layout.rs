//! A plugin as a file: an OCI image layout in a tar archive, with all that is attached to it.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Attached, Bundle, BundleError, MANIFEST};
use crate::{
    artifact::{MAX_SIZE, WASM},
    registry::{Descriptor, Manifest, digest},
};

/// The annotation of an image layout that holds a reference, or the tag of what is attached.
const NAME: &str = "org.opencontainers.image.ref.name";
/// Files in a layout: a plugin has five, a signature three.
const MOST_FILES: usize = 256;
/// Bytes of all files: a component, and signatures of a few kilobytes each.
const MOST_BYTES: u64 = MAX_SIZE + (16 << 20);

#[derive(Deserialize)]
struct Index {
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

/// The files of an archive by their paths.
struct Files(BTreeMap<String, Vec<u8>>);

impl Bundle {
    /// Writes an OCI image layout as a tar archive, under the reference `name`, with its signatures.
    ///
    /// # Errors
    /// When the archive cannot be written.
    pub fn write(&self, name: &str, out: impl Write) -> Result<(), BundleError> {
        let own = json!({"mediaType": MANIFEST, "digest": self.digest(), "size": self.manifest.len(),
            "annotations": {NAME: name}});
        let manifests: Vec<_> = std::iter::once(own).chain(self.attached.iter().map(listed)).collect();
        let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": manifests});
        let blob = |bytes: &[u8]| format!("blobs/sha256/{}", digest(bytes).trim_start_matches("sha256:"));
        let attached = self.attached.iter().flat_map(|one| std::iter::once(&one.manifest).chain(&one.blobs));
        let blobs: Vec<_> =
            [&self.manifest, &self.config, &self.component].into_iter().chain(attached).collect();
        let mut files = vec![
            ("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.as_slice()),
            ("index.json".to_owned(), &[]),
        ];
        let index = index.to_string();
        if let Some((_, bytes)) = files.last_mut() {
            *bytes = index.as_bytes();
        }
        for bytes in blobs {
            let path = blob(bytes);
            if files.iter().all(|(known, _)| *known != path) {
                files.push((path, bytes));
            }
        }
        write_all(&files, out).map_err(|source| BundleError::Archive { action: "write", source })
    }

    /// Reads an OCI image layout from a tar archive; gives the reference that it was saved under too.
    /// Every blob is compared with its digest.
    ///
    /// # Errors
    /// When the archive cannot be read, or holds no plugin, or something that is not about it.
    pub fn read(archive: impl Read) -> Result<(String, Self), BundleError> {
        let files = read_all(archive).map_err(|source| BundleError::Archive { action: "read", source })?;
        let files = Files(files);
        let index = files.0.get("index.json").ok_or_else(|| no("it has no index.json"))?;
        let index: Index = serde_json::from_slice(index).map_err(|_| no("its index.json is no index"))?;
        let (own, others): (Vec<_>, Vec<_>) =
            index.manifests.iter().partition(|one| files.plugin(one).is_ok());
        let own = match *own {
            [own] => own,
            [] => match index.manifests.first() {
                Some(first) => return Err(files.plugin(first).err().unwrap_or_else(|| no("it is empty"))),
                None => return Err(no("its index is empty")),
            },
            _ => return Err(no(&format!("it has {} plugins, one is read", own.len()))),
        };
        let mut plugin = files.plugin(own)?;
        for other in others {
            let attached = files.attached(other)?;
            if !attached.is_about(&plugin.digest()) {
                return Err(no(&format!("{} is not about its plugin", other.digest)));
            }
            plugin.attach(attached);
        }
        Ok((own.annotations.get(NAME).cloned().unwrap_or_default(), plugin))
    }
}

impl Files {
    fn take(&self, descriptor: &Descriptor) -> Result<Vec<u8>, BundleError> {
        let path = format!("blobs/sha256/{}", descriptor.digest.trim_start_matches("sha256:"));
        let bytes = self.0.get(&path).ok_or_else(|| no(&format!("it has no {path}")))?;
        match digest(bytes) == descriptor.digest {
            true => Ok(bytes.clone()),
            false => Err(no(&format!("{path} is not what its name says"))),
        }
    }

    fn manifest(&self, descriptor: &Descriptor) -> Result<(Vec<u8>, Manifest), BundleError> {
        let bytes = self.take(descriptor)?;
        let read = serde_json::from_slice(&bytes).map_err(|_| no("its manifest is none"))?;
        Ok((bytes, read))
    }

    fn plugin(&self, descriptor: &Descriptor) -> Result<Bundle, BundleError> {
        let (manifest, read) = self.manifest(descriptor)?;
        let layer = only_layer(&read).map_err(BundleError::NotALayout)?;
        let config = read.config.as_ref().ok_or_else(|| no("its manifest names no config"))?;
        Ok(Bundle::from_parts(manifest, self.take(config)?, self.take(layer)?))
    }

    fn attached(&self, descriptor: &Descriptor) -> Result<Attached, BundleError> {
        let (manifest, read) = self.manifest(descriptor)?;
        let blobs = read.config.iter().chain(&read.layers).map(|blob| self.take(blob));
        let tag = descriptor.annotations.get(NAME).cloned();
        Ok(Attached { tag, blobs: blobs.collect::<Result<_, _>>()?, manifest })
    }
}

fn no(problem: &str) -> BundleError {
    BundleError::NotALayout(problem.to_owned())
}

/// How the index of a layout lists what is attached: with its tag, where it has one.
fn listed(attached: &Attached) -> Value {
    let mut descriptor = attached.descriptor();
    if let Some(tag) = &attached.tag {
        descriptor["annotations"][NAME] = json!(tag);
    }
    descriptor
}

fn only_layer(manifest: &Manifest) -> Result<&Descriptor, String> {
    match manifest.layers.as_slice() {
        [layer] if layer.media_type != WASM => Err(format!("its layer is of type {}", layer.media_type)),
        [layer] if layer.size > MAX_SIZE => Err(format!("its layer has {} bytes", layer.size)),
        [layer] => Ok(layer),
        layers => Err(format!("it has {} layers, one is allowed", layers.len())),
    }
}

fn write_all(files: &[(String, &[u8])], out: impl Write) -> io::Result<()> {
    let mut archive = tar::Builder::new(out);
    for (path, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        archive.append_data(&mut header, path, *bytes)?;
    }
    archive.finish()
}

/// Every file of a tar archive, none larger than a component may be, and not more than such a layout has.
fn read_all(archive: impl Read) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let (mut files, mut left) = (BTreeMap::new(), MOST_BYTES);
    for entry in tar::Archive::new(archive).entries()? {
        let entry = entry?;
        if files.len() == MOST_FILES || entry.size() > left.min(MAX_SIZE) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too large for a plugin"));
        }
        left -= entry.size();
        let path = entry.path()?.to_string_lossy().trim_start_matches("./").to_owned();
        let mut bytes = Vec::new();
        entry.take(MAX_SIZE).read_to_end(&mut bytes)?;
        files.insert(path, bytes);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests stop at the first surprise")]
    use super::*;
    use crate::{bundle::Described, signature::PrivateKey};

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
    fn signatures_are_saved_and_those_of_others_are_refused() {
        let (mut plugin, key) = (bundle(b"component"), PrivateKey::generate().unwrap());
        plugin.attach(key.attest(&plugin).unwrap());
        plugin.attach(key.sign_simply(&plugin, "r.example/p", None).unwrap());
        let (_, loaded) = Bundle::read(saved(&plugin).as_slice()).unwrap();
        assert_eq!(loaded, plugin);
        let mut other = bundle(b"other");
        other.attach(plugin.attached()[0].clone());
        let error = Bundle::read(saved(&other).as_slice()).unwrap_err().to_string();
        assert!(error.contains("is not about its plugin"), "{error}");
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
