//! Plugins out of a registry, with what is signed of them.

use oci_distribution::Reference;

use crate::{
    access::Access,
    artifact::{Component, Credentials, MAX_SIZE, PULL, PullError, Registries, only_layer, parse_reference},
    attached::{Attached, EMPTY, signature_tag},
    bundle::{Bundle, BundleError},
    registry::{Descriptor, Manifest, Session, digest},
    remote::RemoteError,
    signature::is_signature,
};

/// Bytes of a configuration, and of a blob that is attached: a bundle with a chain and a proof has ten thousand.
const MAX_ATTACHED: u64 = 1 << 20;
/// What is looked at of all that refers to a plugin.
const MOST_ATTACHED: usize = 32;

/// Which parts of a plugin are pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// The plugin alone.
    Plugin,
    /// The plugin, and what may be a signature of it.
    WithSignatures,
}

impl Registries {
    /// Pulls a component. A tag is resolved to a digest first, and what is pulled is that digest.
    ///
    /// # Errors
    /// See [`PullError`]; a retry helps where [`PullError::may_pass`] says so.
    pub async fn pull(&self, image: &str, credentials: Option<&Credentials>) -> Result<Component, PullError> {
        self.pull_with(image, &Access { credentials: credentials.cloned(), ..Access::default() }).await
    }

    /// As [`Registries::pull`], with several credentials that are tried in turn, and with certificates.
    ///
    /// # Errors
    /// As [`Registries::pull`].
    pub async fn pull_with(&self, image: &str, access: &Access) -> Result<Component, PullError> {
        let plugin = self.pull_plugin(image, access, Parts::Plugin).await?;
        Ok(Component { digest: plugin.digest(), bytes: plugin.component().into() })
    }

    /// Pulls a plugin with everything that is stored of it, signatures too, so that it can be saved.
    ///
    /// # Errors
    /// As [`Registries::pull`].
    pub async fn pull_bundle(
        &self,
        image: &str,
        credentials: Option<&Credentials>,
    ) -> Result<Bundle, BundleError> {
        let access = Access { credentials: credentials.cloned(), ..Access::default() };
        Ok(self.pull_plugin(image, &access, Parts::WithSignatures).await?)
    }

    /// Pulls a plugin from the first of its mirrors that has it, else from its own registry.
    ///
    /// # Errors
    /// As [`Registries::pull`]: what the registry itself says.
    pub async fn pull_plugin(&self, image: &str, access: &Access, parts: Parts) -> Result<Bundle, PullError> {
        let reference = parse_reference(image)?;
        for mirror in self.transport().mirrors(&reference) {
            // Credentials that are given for the registry are not for others.
            let access = Access { credentials: None, ..access.clone() };
            match self.pull_in_time(&mirror, &access, parts).await {
                Ok(plugin) => return Ok(plugin),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        image,
                        mirror = mirror.registry(),
                        error,
                        "a mirror does not give the plugin"
                    );
                }
            }
        }
        self.pull_in_time(&reference, access, parts).await
    }

    async fn pull_in_time(
        &self,
        reference: &Reference,
        access: &Access,
        parts: Parts,
    ) -> Result<Bundle, PullError> {
        match tokio::time::timeout(PULL, self.pull_parts(reference, access, parts)).await {
            Ok(pulled) => pulled,
            Err(_) => Err(PullError::TimedOut {
                registry: reference.resolve_registry().to_owned(),
                image: reference.whole(),
                seconds: PULL.as_secs(),
            }),
        }
    }

    async fn pull_parts(
        &self,
        reference: &Reference,
        access: &Access,
        parts: Parts,
    ) -> Result<Bundle, PullError> {
        let failed = |error| PullError::from_remote(reference, error);
        let no =
            |problem: &str| PullError::NotAPlugin { image: reference.whole(), problem: problem.to_owned() };
        let mut session = Session::new(self.transport(), access, reference).map_err(failed)?;
        let wanted = reference.digest().or_else(|| reference.tag()).unwrap_or("latest");
        let (manifest, _) = session.manifest_bytes(wanted).await.map_err(failed)?;
        let read: Manifest = serde_json::from_slice(&manifest).map_err(|_| no("its manifest is none"))?;
        let layer = only_layer(reference, &read)?;
        let component = session.blob(layer, MAX_SIZE).await.map_err(failed)?;
        let mut plugin = Bundle::from_parts(manifest, Vec::new(), component);
        if parts == Parts::WithSignatures {
            let config = read.config.as_ref().ok_or_else(|| no("its manifest names no config"))?;
            plugin = plugin.with_config(session.blob(config, MAX_ATTACHED).await.map_err(failed)?);
            for attached in session.attached(&plugin.digest()).await.map_err(failed)? {
                plugin.attach(attached);
            }
        }
        Ok(plugin)
    }

    /// The older signatures of a plugin, which all are under one tag.
    ///
    /// # Errors
    /// As [`Registries::pull`].
    pub async fn simple_signatures(
        &self,
        image: &str,
        plugin: &Bundle,
        access: &Access,
    ) -> Result<Option<Attached>, PullError> {
        let reference = parse_reference(image)?;
        let failed = |error| PullError::from_remote(&reference, error);
        let mut session = Session::new(self.transport(), access, &reference).map_err(failed)?;
        session.tagged(signature_tag(&plugin.digest())).await.map_err(failed)
    }
}

impl Session<'_> {
    /// What may be a signature of a digest: among its referrers, in the list under its tag, and in the form
    /// before both.
    async fn attached(&mut self, plugin: &str) -> Result<Vec<Attached>, RemoteError> {
        let mut attached = Vec::new();
        let referrers = self.referrers(plugin).await?;
        let may_be_one = |one: &&Descriptor| one.artifact_type.is_empty() || is_signature(&one.artifact_type);
        for one in referrers.iter().filter(may_be_one).take(MOST_ATTACHED) {
            match self.whole(&one.digest, None).await {
                // A list may name what it likes.
                Ok(found) => attached.extend(found.filter(|found| found.is_about(plugin))),
                Err(error) if error.is_transient() || matches!(error, RemoteError::Unauthorized { .. }) => {
                    return Err(error);
                }
                // One that is broken, or too large, must not hide the others.
                Err(error) => tracing::debug!(digest = one.digest, %error, "a referrer cannot be used"),
            }
        }
        attached.extend(self.tagged(signature_tag(plugin)).await?);
        Ok(attached)
    }

    async fn tagged(&mut self, tag: String) -> Result<Option<Attached>, RemoteError> {
        match self.whole(&tag.clone(), Some(tag)).await {
            Err(RemoteError::NotFound { .. }) => Ok(None),
            found => found,
        }
    }

    /// An artifact with its blobs, when it has layers that may be signatures.
    async fn whole(&mut self, of: &str, tag: Option<String>) -> Result<Option<Attached>, RemoteError> {
        let (manifest, _) = self.manifest_bytes(of).await?;
        let Ok(read) = serde_json::from_slice::<Manifest>(&manifest) else { return Ok(None) };
        if !read.layers.iter().any(|layer| is_signature(&layer.media_type)) {
            return Ok(None);
        }
        let mut blobs = Vec::new();
        for blob in read.config.iter().chain(read.layers.iter().take(MOST_ATTACHED)) {
            let bytes = match blob.digest == digest(EMPTY) {
                true => EMPTY.to_vec(),
                false => self.blob(blob, MAX_ATTACHED).await?,
            };
            blobs.push(bytes);
        }
        Ok(Some(Attached { tag, manifest, blobs }))
    }
}
