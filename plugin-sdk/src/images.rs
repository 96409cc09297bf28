//! Whether an image is in its registry. References are granted by pattern.

use crate::{host, kube::ReadError};

/// Digest (`sha256:…`) and media type of an image's manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// `sha256:…`
    pub digest: String,
    /// Of the manifest; empty when the registry does not say.
    pub media_type: String,
}

/// The image behind a reference.
///
/// # Errors
/// `NotFound` when its registry has no such image; when it is not granted, or the registry is out of
/// reach.
pub fn resolve(reference: &str) -> Result<Image, ReadError> {
    let found = host::resolve(reference)?;
    Ok(Image { digest: found.digest, media_type: found.media_type })
}
