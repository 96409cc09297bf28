//! Whether an image is in its registry.

use std::time::Duration;

use crate::{
    Access,
    artifact::{PullError, Registries, parse_reference},
    registry::Session,
};

/// How long a registry may take to say so.
const PATIENCE: Duration = Duration::from_secs(20);

impl Registries {
    /// The digest of the manifest behind a reference, `registry.example/vendor/driver:1.0`; whatever kind of
    /// image it is.
    ///
    /// # Errors
    /// [`PullError::NotFound`] when its registry has no such image; see [`PullError`].
    pub async fn resolve(&self, image: &str, access: &Access) -> Result<String, PullError> {
        let reference = parse_reference(&format!("oci://{image}"))?;
        let failed = |error| PullError::from_remote(&reference, error);
        let asked = async {
            let mut session = Session::new(self.transport(), access, &reference).map_err(failed)?;
            let wanted = reference.digest().or_else(|| reference.tag()).unwrap_or("latest");
            session.manifest_bytes(wanted).await.map(|(_, digest)| digest).map_err(failed)
        };
        let late = || PullError::TimedOut {
            registry: reference.resolve_registry().to_owned(),
            image: image.to_owned(),
            seconds: PATIENCE.as_secs(),
        };
        tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| Err(late()))
    }
}
