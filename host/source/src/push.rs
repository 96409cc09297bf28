//! Plugins and signatures into a registry.

use std::time::Duration;

use http::HeaderValue;
use oci_distribution::{
    Client, Reference,
    client::{Certificate, CertificateEncoding, ClientConfig, ClientProtocol},
    errors::OciDistributionError,
    secrets::RegistryAuth,
};
use serde_json::{Value, json};

use crate::{
    access::{Access, Tls},
    artifact::{Credentials, PullError, Registries, parse_reference},
    attached::{Attached, referrers_tag},
    bundle::{Bundle, BundleError, MANIFEST},
    registry::{Session, digest},
    remote::RemoteError,
};

/// How long a push may take.
const PUSH: Duration = Duration::from_secs(120);
/// Media type of an index.
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Writes to one repository.
struct Writer<'a> {
    client: Client,
    reference: &'a Reference,
}

impl Registries {
    /// Pushes a plugin with its signatures, and returns the digest that pins it.
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
        self.push_with(image, bundle, &Access { credentials: credentials.cloned(), ..Access::default() })
            .await
    }

    /// As [`Registries::push`], with certificates and a keyring.
    ///
    /// # Errors
    /// As [`Registries::push`].
    ///
    /// # Cancellation
    /// As [`Registries::push`].
    pub async fn push_with(
        &self,
        image: &str,
        bundle: &Bundle,
        access: &Access,
    ) -> Result<String, BundleError> {
        let reference = parse_reference(image)?;
        if reference.digest().is_some() {
            return Err(BundleError::Pinned { image: image.to_owned() });
        }
        let writer = self.writer(&reference, access).await;
        let blobs = [bundle.component(), bundle.config()];
        let pushed = async {
            writer.manifest(&reference, bundle.manifest(), &blobs).await?;
            for attached in bundle.attached() {
                writer.attached(attached).await?;
            }
            Ok(())
        };
        limited(&reference, pushed).await?;
        self.list(&writer, access, bundle, bundle.attached()).await?;
        Ok(bundle.digest())
    }

    /// Pushes a signature, or whatever else is about a plugin that the registry has.
    ///
    /// # Errors
    /// When it is about another plugin, or the registry refuses.
    ///
    /// # Cancellation
    /// It may be there and not be listed; another push lists it.
    pub async fn attach(
        &self,
        image: &str,
        plugin: &Bundle,
        attached: &Attached,
        access: &Access,
    ) -> Result<(), BundleError> {
        if !attached.is_about(&plugin.digest()) {
            return Err(BundleError::Foreign(plugin.digest()));
        }
        let reference = parse_reference(image)?;
        let writer = self.writer(&reference, access).await;
        limited(&reference, writer.attached(attached)).await?;
        self.list(&writer, access, plugin, std::slice::from_ref(attached)).await
    }

    /// Registries that keep no list of what refers to a digest get one under a tag.
    async fn list(
        &self,
        writer: &Writer<'_>,
        access: &Access,
        plugin: &Bundle,
        attached: &[Attached],
    ) -> Result<(), BundleError> {
        let referrers: Vec<_> = attached.iter().filter(|one| one.tag.is_none()).collect();
        if referrers.is_empty() {
            return Ok(());
        }
        let reference = writer.reference;
        let failed = |error| BundleError::Pull(PullError::from_remote(reference, error));
        let mut session = Session::new(self.transport(), access, reference).map_err(failed)?;
        if session.listed_referrers(&plugin.digest()).await.map_err(failed)?.is_some() {
            return Ok(());
        }
        let tag = referrers_tag(&plugin.digest());
        let mut manifests: Vec<Value> = match session.manifest_bytes(&tag).await {
            Ok((before, _)) => serde_json::from_slice::<Value>(&before)
                .ok()
                .and_then(|index| index.get("manifests").and_then(Value::as_array).cloned())
                .unwrap_or_default(),
            Err(RemoteError::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(failed(error)),
        };
        for one in referrers {
            let known = |listed: &Value| listed.get("digest").and_then(Value::as_str) == Some(&one.digest());
            if !manifests.iter().any(known) {
                manifests.push(one.descriptor());
            }
        }
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}).to_string();
        limited(reference, writer.put(&with_tag(reference, &tag), index.as_bytes(), INDEX)).await
    }

    /// A client that writes; reading has its own, which is careful with what comes.
    async fn writer<'a>(&self, reference: &'a Reference, access: &Access) -> Writer<'a> {
        let registry = reference.resolve_registry();
        let access = self.transport().access_for(registry, access);
        let is_plain =
            access.plain_http || (access.tls == Tls::default() && self.transport().is_plain(registry));
        let protocol = if is_plain { ClientProtocol::Http } else { ClientProtocol::Https };
        let authorities = Some(&access.tls.authorities).filter(|pem| !pem.is_empty());
        let authorities =
            authorities.map(|pem| Certificate { encoding: CertificateEncoding::Pem, data: pem.clone() });
        let client = Client::new(ClientConfig {
            protocol,
            user_agent: "pintle",
            extra_root_certificates: authorities.into_iter().collect(),
            accept_invalid_certificates: access.tls.insecure,
            ..ClientConfig::default()
        });
        let matching = || access.keyring.matching(registry, reference.repository()).into_iter().next();
        let auth = match access.credentials.clone().or_else(matching) {
            Some(with) => RegistryAuth::Basic(with.user, with.password),
            None => RegistryAuth::Anonymous,
        };
        client.store_auth_if_needed(registry, &auth).await;
        Writer { client, reference }
    }
}

impl Writer<'_> {
    async fn attached(&self, attached: &Attached) -> Result<(), OciDistributionError> {
        let place = match &attached.tag {
            Some(tag) => with_tag(self.reference, tag),
            // By its digest in the place of a tag, which is the same address.
            None => with_tag(self.reference, &attached.digest()),
        };
        let blobs: Vec<_> = attached.blobs.iter().map(Vec::as_slice).collect();
        self.manifest(&place, &attached.manifest, &blobs).await
    }

    async fn manifest(
        &self,
        place: &Reference,
        manifest: &[u8],
        blobs: &[&[u8]],
    ) -> Result<(), OciDistributionError> {
        for blob in blobs {
            self.client.push_blob(self.reference, blob.to_vec(), &digest(blob)).await?;
        }
        self.put(place, manifest, MANIFEST).await
    }

    async fn put(
        &self,
        place: &Reference,
        manifest: &[u8],
        media_type: &'static str,
    ) -> Result<(), OciDistributionError> {
        let media_type = HeaderValue::from_static(media_type);
        self.client.push_manifest_raw(place, manifest.to_vec(), media_type).await.map(drop)
    }
}

fn with_tag(reference: &Reference, tag: &str) -> Reference {
    let (registry, repository) = (reference.registry().to_owned(), reference.repository().to_owned());
    Reference::with_tag(registry, repository, tag.to_owned())
}

/// A push that ends, and that says where it was going.
async fn limited(
    reference: &Reference,
    push: impl Future<Output = Result<(), OciDistributionError>>,
) -> Result<(), BundleError> {
    let (registry, image) = (reference.resolve_registry().to_owned(), format!("oci://{}", reference.whole()));
    match tokio::time::timeout(PUSH, push).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(source)) => Err(BundleError::Push { registry, image, source: Box::new(source) }),
        Err(_) => Err(BundleError::TimedOut { registry, image, seconds: PUSH.as_secs() }),
    }
}
