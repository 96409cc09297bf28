//! Cosign's signatures before bundles: a payload that names a digest, signed, under the tag `sha256-….sig`.

use std::collections::BTreeMap;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use pintle_api::plugin_policy::Signer;
use serde::Deserialize;
use serde_json::{Value, json};
use sigstore_verify::{
    PublicKeyVerificationPolicy,
    types::{Bundle as SigstoreBundle, DerCertificate, SignatureBytes},
};

use super::{
    Fault, PublicKey, Wanted,
    attestation::{certified, claimed, fault, shown},
};
use crate::{bundle::Bundle, registry::digest};

/// Media type of the layer that is the payload.
pub(super) const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// What a payload says that it is.
pub(super) const KIND: &str = "cosign container image signature";
/// The annotation with the signature in base64.
pub(super) const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// The annotation with the certificate in PEM.
const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";
/// The annotation with the authorities between, in PEM.
const CHAIN: &str = "dev.sigstore.cosign/chain";
/// The annotation with the log's promise.
const PROMISE: &str = "dev.sigstore.cosign/bundle";

/// A payload with what its annotations say.
pub(super) struct SimpleSignature {
    payload: Vec<u8>,
    signature: SignatureBytes,
    certificate: Option<DerCertificate>,
    chain: Vec<DerCertificate>,
    promise: Option<Promise>,
}

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

/// What a log promised: to have the entry.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Promise {
    signed_entry_timestamp: String,
    payload: Entry,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    body: String,
    integrated_time: i64,
    log_index: i64,
    #[serde(rename = "logID")]
    log_id: String,
}

/// True for the media type of a payload.
pub(super) fn is_payload(media_type: &str) -> bool {
    media_type == PAYLOAD
}

// === impl SimpleSignature ===

impl SimpleSignature {
    pub(super) fn parse(payload: &[u8], annotations: &BTreeMap<String, String>) -> Result<Self, Fault> {
        let broken = |what: &str| Fault::Broken(format!("its annotation {what} cannot be read"));
        let text = annotations.get(SIGNATURE).ok_or_else(|| broken(SIGNATURE))?;
        let signature = SignatureBytes::from_base64(text).map_err(|_| broken(SIGNATURE))?;
        let certificate = annotations.get(CERTIFICATE).filter(|text| !text.is_empty());
        let certificate = certificate.map(|text| DerCertificate::from_pem(text.trim())).transpose();
        let promise = annotations.get(PROMISE).filter(|text| !text.is_empty());
        let promise = promise.map(|text| serde_json::from_str(text)).transpose();
        let chain = annotations.get(CHAIN).map_or(Ok(Vec::new()), |text| certificates(text));
        Ok(Self {
            payload: payload.to_vec(),
            signature,
            certificate: certificate.map_err(|_| broken(CERTIFICATE))?,
            chain: chain.map_err(|_| broken(CHAIN))?,
            promise: promise.map_err(|_| broken(PROMISE))?,
        })
    }

    /// Whom it says it is by; nothing of it is verified.
    pub(super) fn claim(&self) -> String {
        let by = self.certificate.as_ref().map_or_else(|| "a key".to_owned(), claimed);
        format!("simple signature, by {by}")
    }

    pub(super) fn signer(&self, plugin: &Bundle, wanted: &Wanted) -> Result<Signer, Fault> {
        match &self.certificate {
            None if wanted.keys.is_empty() => Err(Fault::OtherKind("a key".to_owned())),
            None => self.key(plugin, wanted).map(|key| Signer::Key(key.fingerprint())),
            Some(certificate) => self.identity(certificate, plugin, wanted),
        }
    }

    fn key<'a>(&self, plugin: &Bundle, wanted: &'a Wanted) -> Result<&'a PublicKey, Fault> {
        let made = |key: &&PublicKey| key.made(&self.signature, &self.payload);
        let key = wanted.keys.iter().find(made).ok_or_else(|| Fault::OtherKey(String::new()))?;
        self.check_payload(plugin)?;
        match &wanted.root {
            Some(root) if wanted.transparency_log => {
                let bundle = self.as_bundle(&json!({"publicKey": {"hint": ""}}))?;
                let policy = PublicKeyVerificationPolicy::new(key.der().clone());
                root.verifier()
                    .verify(self.payload.as_slice(), &bundle, &policy)
                    .map_err(|error| fault(&error))?;
            }
            _ => {}
        }
        Ok(key)
    }

    fn identity(
        &self,
        certificate: &DerCertificate,
        plugin: &Bundle,
        wanted: &Wanted,
    ) -> Result<Signer, Fault> {
        let Some(root) = wanted.root.as_ref().filter(|_| !wanted.identities.is_empty()) else {
            return Err(Fault::OtherKind(claimed(certificate)));
        };
        let chain: Vec<_> = std::iter::once(certificate).chain(&self.chain).collect();
        let chain: Vec<_> = chain.iter().map(|one| json!({"rawBytes": one})).collect();
        let bundle = self.as_bundle(&json!({"x509CertificateChain": {"certificates": chain}}))?;
        let signer = certified(root, &self.payload, &bundle, wanted)?;
        self.check_payload(plugin)?;
        Ok(signer)
    }

    fn check_payload(&self, plugin: &Bundle) -> Result<(), Fault> {
        let payload: Payload = serde_json::from_slice(&self.payload)
            .map_err(|error| Fault::Broken(shown(&error.to_string())))?;
        let Critical { image, kind } = payload.critical;
        if image.digest != plugin.digest() {
            return Err(Fault::OtherDigest(shown(&image.digest)));
        }
        if kind == KIND { Ok(()) } else { Err(Fault::OtherStatement(shown(&kind))) }
    }

    /// The same as a bundle of the first version, whose time is the log's promise.
    fn as_bundle(&self, material: &Value) -> Result<SigstoreBundle, Fault> {
        let Some(Promise { signed_entry_timestamp, payload }) = &self.promise else {
            return Err(Fault::NotLogged("it has no promise of a log".to_owned()));
        };
        let broken = |problem: String| Fault::Broken(shown(&problem));
        let log_id = hex::decode(&payload.log_id).map_err(|error| broken(error.to_string()))?;
        let hash = hex::decode(digest(&self.payload).trim_start_matches("sha256:")).unwrap_or_default();
        let mut bundle = json!({
            "mediaType": "application/vnd.dev.sigstore.bundle+json;version=0.1",
            "verificationMaterial": {"tlogEntries": [{
                "logIndex": payload.log_index.to_string(),
                "logId": {"keyId": BASE64_STANDARD.encode(log_id)},
                "kindVersion": {"kind": "hashedrekord", "version": "0.0.1"},
                "integratedTime": payload.integrated_time.to_string(),
                "inclusionPromise": {"signedEntryTimestamp": signed_entry_timestamp},
                "canonicalizedBody": payload.body,
            }]},
            "messageSignature": {
                "messageDigest": {"algorithm": "SHA2_256", "digest": BASE64_STANDARD.encode(hash)},
                "signature": self.signature.to_base64(),
            },
        });
        let fields = material.as_object().into_iter().flatten();
        for (key, value) in fields {
            bundle["verificationMaterial"][key] = value.clone();
        }
        serde_json::from_value(bundle).map_err(|error| broken(error.to_string()))
    }
}

/// Certificates of a PEM text, one after the other.
fn certificates(text: &str) -> Result<Vec<DerCertificate>, sigstore_verify::types::Error> {
    const END: &str = "-----END CERTIFICATE-----";
    let blocks = text.split_inclusive(END).map(str::trim).filter(|block| !block.is_empty());
    blocks.map(DerCertificate::from_pem).collect()
}
