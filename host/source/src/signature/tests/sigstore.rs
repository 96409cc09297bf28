//! A small Sigstore of our own: an authority, a log, time stamps, and everything signed by them.

mod stamp;
mod tiles;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, DistinguishedName,
    ExtendedKeyUsagePurpose, IsCa, KeyPair as CertificateKey, SanType,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sigstore_verify::{
    crypto::KeyPair,
    types::{DerCertificate, pae},
};

use stamp::Clock;
pub(super) use tiles::Tampered;
use tiles::Tiles;

use crate::{
    attached::{Attached, Layer},
    bundle::Bundle,
    signature::{
        PrivateKey, TrustRoot,
        attestation::{IN_TOTO, SIGNED},
        simple::{KIND, PAYLOAD, SIGNATURE},
    },
};

/// Who the certificates of the tests are for.
pub(super) const SUBJECT: &str =
    "https://git.example/vendor/plugin/.github/workflows/release.yml@refs/tags/v1";
/// Who vouches for them.
pub(super) const ISSUER: &str = "https://token.git.example";
/// Where certificates say who vouches.
const ISSUER_EXTENSION: [u64; 9] = [1, 3, 6, 1, 4, 1, 57264, 1, 8];
/// What kind of key all that is signed here is signed with.
const KEY_DETAILS: &str = "PKIX_ECDSA_P256_SHA_256";

/// An authority, a log of each kind, and an authority for time stamps.
pub(super) struct Sigstore {
    authority: CertifiedIssuer<'static, CertificateKey>,
    log: KeyPair,
    tiles: Tiles,
    clock: Clock,
}

/// What may be wrong with a signature.
#[derive(Clone)]
pub(super) struct Flaws {
    pub(super) subject: &'static str,
    /// The digest that is signed, where it is not the plugin's.
    pub(super) digest: Option<String>,
    pub(super) predicate: &'static str,
    pub(super) expired: bool,
    pub(super) logged: bool,
    /// It has a time stamp.
    pub(super) stamped: bool,
    /// Bytes of the entry that were not there when the log signed it.
    pub(super) changed_entry: bool,
}

impl Default for Flaws {
    fn default() -> Self {
        let (subject, predicate) = (SUBJECT, SIGNED);
        Self {
            subject,
            digest: None,
            predicate,
            expired: false,
            logged: true,
            stamped: false,
            changed_entry: false,
        }
    }
}

/// What signs, and what a log says it was verified with.
struct Signer {
    key: KeyPair,
    certificate: DerCertificate,
}

impl Sigstore {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, CertificateKey::generate().unwrap()).unwrap();
        let (log, tiles) = (KeyPair::generate_ecdsa_p256().unwrap(), Tiles::new());
        Self { authority, log, tiles, clock: Clock::new() }
    }

    /// The document that says to trust them all.
    pub(super) fn document(&self) -> Value {
        let since = json!({"start": "2020-01-01T00:00:00Z"});
        let log = self.log.public_key_der().unwrap();
        let key = json!({"rawBytes": log.to_base64(), "keyDetails": KEY_DETAILS, "validFor": since});
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [{"baseUrl": "https://log.example", "hashAlgorithm": "SHA2_256", "publicKey": key,
                "logId": {"keyId": BASE64_STANDARD.encode(self.log_id())}}, self.tiles.document()],
            "certificateAuthorities": [{"subject": {"organization": "o", "commonName": "c"},
                "uri": "https://ca.example", "validFor": since,
                "certChain": {"certificates": [{"rawBytes": BASE64_STANDARD.encode(self.authority.der())}]}}],
            "ctlogs": [],
            "timestampAuthorities": [{"subject": {"organization": "o", "commonName": "t"}, "uri": "https://time.example",
                "validFor": since, "certChain": {"certificates": self.clock.chain.clone().map(
                    |one| json!({"rawBytes": BASE64_STANDARD.encode(one)}))}}],
        })
    }

    pub(super) fn root(&self) -> TrustRoot {
        TrustRoot::parse(&self.document().to_string()).unwrap()
    }

    /// A bundle of today's version by an identity.
    pub(super) fn attest(&self, plugin: &Bundle, flaws: &Flaws) -> Attached {
        let signer = self.signer(flaws);
        let payload = statement(plugin, flaws);
        let signature = signer.key.sign(&pae(IN_TOTO, &payload)).unwrap().to_base64();
        let entry = self.entry(&dsse_body(&payload, &signature, &signer.certificate.to_pem()), "dsse", flaws);
        let mut material = json!({"certificate": {"rawBytes": signer.certificate.to_base64()}});
        if flaws.stamped {
            let stamp =
                BASE64_STANDARD.encode(self.clock.stamp(&BASE64_STANDARD.decode(&signature).unwrap()));
            material["timestampVerificationData"] =
                json!({"rfc3161Timestamps": [{"signedTimestamp": stamp}]});
        }
        attached(plugin, material, entry.into_iter().filter(|_| flaws.logged), &payload, &signature)
    }

    /// A bundle by a key, with an entry in the log.
    pub(super) fn attest_with_key(&self, plugin: &Bundle, key: &PrivateKey, flaws: &Flaws) -> Attached {
        let payload = statement(plugin, flaws);
        let signature = key.sign(&pae(IN_TOTO, &payload)).unwrap().to_base64();
        let body = dsse_body(&payload, &signature, &key.public().unwrap().pem());
        let entry = self.entry(&body, "dsse", flaws);
        let material = json!({"publicKey": {"hint": "key"}});
        attached(plugin, material, entry.into_iter().filter(|_| flaws.logged), &payload, &signature)
    }

    /// A bundle by an identity, with an entry in the log of the second kind.
    pub(super) fn attest_in_tiles(&self, plugin: &Bundle, flaws: &Flaws, tampered: Tampered) -> Attached {
        let signer = self.signer(flaws);
        let payload = statement(plugin, flaws);
        let signed = pae(IN_TOTO, &payload);
        let signature = signer.key.sign(&signed).unwrap();
        let (text, certificate) =
            (signature.to_base64(), json!({"rawBytes": signer.certificate.to_base64()}));
        let verifier = json!({"keyDetails": KEY_DETAILS, "x509Certificate": certificate});
        let entry = self.tiles.entry((&Sha256::digest(&signed), &text), &verifier, tampered);
        let mut material = json!({"certificate": certificate});
        if flaws.stamped {
            let stamped = if tampered == Tampered::OtherStamp { b"other" } else { signature.as_bytes() };
            let stamp = BASE64_STANDARD.encode(self.clock.stamp(stamped));
            material["timestampVerificationData"] =
                json!({"rfc3161Timestamps": [{"signedTimestamp": stamp}]});
        }
        attached(plugin, material, std::iter::once(entry), &payload, &text)
    }

    /// A bundle by a key, with an entry in the log of the second kind and no time stamp.
    pub(super) fn attest_with_key_in_tiles(
        &self,
        plugin: &Bundle,
        key: &PrivateKey,
        tampered: Tampered,
    ) -> Attached {
        let payload = statement(plugin, &Flaws::default());
        let signed = pae(IN_TOTO, &payload);
        let signature = key.sign(&signed).unwrap().to_base64();
        let public = BASE64_STANDARD.encode(key.public().unwrap().der().as_bytes());
        let verifier = json!({"keyDetails": KEY_DETAILS, "publicKey": {"rawBytes": public}});
        let entry = self.tiles.entry((&Sha256::digest(&signed), &signature), &verifier, tampered);
        let material = json!({"publicKey": {"hint": "key"}});
        attached(plugin, material, std::iter::once(entry), &payload, &signature)
    }

    /// The older form, by an identity.
    pub(super) fn sign_simply(&self, plugin: &Bundle, flaws: &Flaws) -> Attached {
        let signer = self.signer(flaws);
        let digest = flaws.digest.clone().unwrap_or_else(|| plugin.digest());
        let payload = json!({"critical": {"identity": {"docker-reference": "r.example/p"},
            "image": {"docker-manifest-digest": digest}, "type": KIND}, "optional": null});
        let payload = payload.to_string().into_bytes();
        let signature = signer.key.sign(&payload).unwrap().to_base64();
        let pem = signer.certificate.to_pem();
        let body = json!({"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": {
            "data": {"hash": {"algorithm": "sha256", "value": hex::encode(Sha256::digest(&payload))}},
            "signature": {"content": signature, "publicKey": {"content": BASE64_STANDARD.encode(&pem)}}}});
        let body = body.to_string();
        let time = now();
        let promise = json!({"SignedEntryTimestamp": self.promise(&body, time).to_base64(), "Payload": {
            "body": BASE64_STANDARD.encode(&body), "integratedTime": time, "logIndex": 0,
            "logID": hex::encode(self.log_id())}});
        let mut layer = Layer::new(PAYLOAD, payload);
        layer.annotations = [
            (SIGNATURE, signature),
            ("dev.sigstore.cosign/certificate", pem),
            ("dev.sigstore.cosign/chain", self.authority.pem()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into();
        if flaws.logged {
            layer.annotations.insert("dev.sigstore.cosign/bundle".to_owned(), promise.to_string());
        }
        Attached::signatures(plugin, None, layer)
    }

    fn signer(&self, flaws: &Flaws) -> Signer {
        let key = CertificateKey::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.subject_alt_names = vec![SanType::URI(flaws.subject.try_into().unwrap())];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        let issuer = [&[0x0c, u8::try_from(ISSUER.len()).unwrap()], ISSUER.as_bytes()].concat();
        params.custom_extensions = vec![CustomExtension::from_oid_content(&ISSUER_EXTENSION, issuer)];
        params.not_before = rcgen::date_time_ymd(2024, 1, 1);
        params.not_after = rcgen::date_time_ymd(if flaws.expired { 2025 } else { 2999 }, 1, 1);
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        Signer {
            key: KeyPair::from_pkcs8_der(&key.serialize_der()).unwrap(),
            certificate: DerCertificate::new(certificate.der().to_vec()),
        }
    }

    /// An entry of a log that has no other one: its root is the hash of its only leaf.
    fn entry(&self, body: &str, kind: &str, flaws: &Flaws) -> Vec<Value> {
        let time = now();
        let root = Sha256::digest([&[0], body.as_bytes()].concat());
        let note = format!("log.example\n1\n{}\n", BASE64_STANDARD.encode(root));
        let signature = self.log.sign(note.as_bytes()).unwrap();
        let signature = [&self.log_id()[..4], signature.as_bytes()].concat();
        let note = format!("{note}\n— log.example {}\n", BASE64_STANDARD.encode(signature));
        let shown = if flaws.changed_entry { body.replace("0.0.1", "0.0.1 ") } else { body.to_owned() };
        vec![json!({
            "logIndex": "0", "logId": {"keyId": BASE64_STANDARD.encode(self.log_id())},
            "kindVersion": {"kind": kind, "version": "0.0.1"}, "integratedTime": time.to_string(),
            "inclusionPromise": {"signedEntryTimestamp": self.promise(body, time).to_base64()},
            "inclusionProof": {"logIndex": "0", "rootHash": BASE64_STANDARD.encode(root), "treeSize": "1",
                "hashes": [], "checkpoint": {"envelope": note}},
            "canonicalizedBody": BASE64_STANDARD.encode(shown),
        })]
    }

    /// The log's signature of an entry with its time, as RFC 8785 orders it.
    fn promise(&self, body: &str, time: u64) -> sigstore_verify::types::SignatureBytes {
        let (body, id) = (BASE64_STANDARD.encode(body), hex::encode(self.log_id()));
        let payload = format!(r#"{{"body":"{body}","integratedTime":{time},"logID":"{id}","logIndex":0}}"#);
        self.log.sign(payload.as_bytes()).unwrap()
    }

    fn log_id(&self) -> Vec<u8> {
        Sha256::digest(self.log.public_key_der().unwrap().as_bytes()).to_vec()
    }
}

fn statement(plugin: &Bundle, flaws: &Flaws) -> Vec<u8> {
    let digest = flaws.digest.clone().unwrap_or_else(|| plugin.digest());
    json!({"_type": "https://in-toto.io/Statement/v1",
        "subject": [{"digest": {"sha256": digest.trim_start_matches("sha256:")}}],
        "predicateType": flaws.predicate, "predicate": {}})
    .to_string()
    .into_bytes()
}

fn dsse_body(payload: &[u8], signature: &str, verifier: &str) -> String {
    let hash = |bytes: &[u8]| json!({"algorithm": "sha256", "value": hex::encode(Sha256::digest(bytes))});
    json!({"apiVersion": "0.0.1", "kind": "dsse", "spec": {
        "envelopeHash": hash(b"envelope"), "payloadHash": hash(payload),
        "signatures": [{"signature": signature, "verifier": BASE64_STANDARD.encode(verifier)}]}})
    .to_string()
}

fn attached(
    plugin: &Bundle,
    mut material: Value,
    entries: impl Iterator<Item = Value>,
    payload: &[u8],
    signature: &str,
) -> Attached {
    const KIND: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
    material["tlogEntries"] = entries.collect();
    let bundle = json!({"mediaType": KIND, "verificationMaterial": material, "dsseEnvelope": {
        "payloadType": IN_TOTO, "payload": BASE64_STANDARD.encode(payload), "signatures": [{"sig": signature}]}});
    Attached::referrer(plugin, KIND, &[], Layer::new(KIND, bundle.to_string().into_bytes()))
}

fn now() -> u64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs()
}
