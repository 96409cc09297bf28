//! Signing with a key of one's own: a bundle among the referrers, and the older form under its tag.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::json;
use sigstore_verify::types::{
    Bundle as SigstoreBundle, DsseEnvelope, DsseSignature, KeyId, MediaType, PayloadBytes,
    PublicKeyIdentifier, SignatureContent, VerificationMaterial, VerificationMaterialContent, pae,
};

use super::{
    PrivateKey, PrivateKeyError,
    attestation::{IN_TOTO, SIGNED},
    simple::{KIND, PAYLOAD, SIGNATURE},
};
use crate::{
    attached::{Attached, Layer},
    bundle::Bundle,
};

impl PrivateKey {
    /// A bundle that says "this is signed", as an artifact that refers to the plugin.
    ///
    /// # Errors
    /// When the backend of the cryptography fails.
    pub fn attest(&self, plugin: &Bundle) -> Result<Attached, PrivateKeyError> {
        let digest = plugin.digest();
        let hex = digest.strip_prefix("sha256:").unwrap_or(&digest);
        let statement = json!({"_type": "https://in-toto.io/Statement/v1",
            "subject": [{"digest": {"sha256": hex}}], "predicateType": SIGNED, "predicate": {}});
        let payload = statement.to_string().into_bytes();
        let signature = self.sign(&pae(IN_TOTO, &payload))?;
        let signature = DsseSignature::new(signature, KeyId::default());
        let envelope = DsseEnvelope::new(IN_TOTO, PayloadBytes::new(payload), signature);
        let key = PublicKeyIdentifier::new(self.public()?.hint());
        let material = VerificationMaterial::new(VerificationMaterialContent::PublicKey(key));
        let bundle =
            SigstoreBundle::new(MediaType::Bundle0_3, material, SignatureContent::DsseEnvelope(envelope));
        let bytes = serde_json::to_vec(&bundle).map_err(|_| PrivateKeyError::Format)?;
        let kind = MediaType::Bundle0_3.as_str();
        let annotations = [
            ("dev.sigstore.bundle.content", "dsse-envelope"),
            ("dev.sigstore.bundle.predicateType", SIGNED),
            ("org.opencontainers.image.created", "1970-01-01T00:00:00Z"),
        ];
        Ok(Attached::referrer(plugin, kind, &annotations, Layer::new(kind, bytes)))
    }

    /// The older form, for verifiers that know no bundles: what is there under its tag is kept.
    ///
    /// # Errors
    /// When the backend of the cryptography fails.
    pub fn sign_simply(
        &self,
        plugin: &Bundle,
        reference: &str,
        before: Option<&Attached>,
    ) -> Result<Attached, PrivateKeyError> {
        let payload = json!({"critical": {"identity": {"docker-reference": reference},
            "image": {"docker-manifest-digest": plugin.digest()}, "type": KIND}, "optional": null});
        let payload = payload.to_string().into_bytes();
        let signature = BASE64_STANDARD.encode(self.sign(&payload)?.as_bytes());
        let layer =
            Layer { annotations: [(SIGNATURE.to_owned(), signature)].into(), ..Layer::new(PAYLOAD, payload) };
        Ok(Attached::signatures(plugin, before, layer))
    }
}
