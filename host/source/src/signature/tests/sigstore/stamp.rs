//! An authority for time stamps (RFC 3161), as far as one stamp needs it.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair as CertificateKey,
};
use sha2::{Digest, Sha256};
use sigstore_verify::crypto::KeyPair;

/// When all stamps are from.
const TIME: &[u8] = b"20250601000000Z";
/// Name of the authority above the one that stamps.
const NAME: &str = "time";
/// Serial number of the certificate that stamps.
const SERIAL: u8 = 7;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 2;
const OCTETS: u8 = 4;
const OID: u8 = 6;
/// A field by its number, with what is in it.
const FIRST: u8 = 0xa0;

const SHA_256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
const ECDSA_SHA_256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
const STAMP_INFO: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x04];
/// Under which policy stamps are given; any will do.
const POLICY: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xbf, 0x30, 0x02];
const CONTENT_TYPE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x03];
const MESSAGE_DIGEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x04];

/// An authority for time stamps.
pub(super) struct Clock {
    /// The certificate that stamps, and the one above it.
    pub(super) chain: [Vec<u8>; 2],
    key: KeyPair,
}

impl Clock {
    pub(super) fn new() -> Self {
        let named = |name: &str| {
            let mut named = DistinguishedName::new();
            named.push(DnType::CommonName, name);
            named
        };
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = named(NAME);
        let above = CertifiedIssuer::self_signed(params, CertificateKey::generate().unwrap()).unwrap();
        let key = CertificateKey::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = named("stamps");
        params.serial_number = Some(vec![SERIAL].into());
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::TimeStamping];
        let own = params.signed_by(&key, &above).unwrap();
        let key = KeyPair::from_pkcs8_der(&key.serialize_der()).unwrap();
        Self { chain: [own.der().to_vec(), above.der().to_vec()], key }
    }

    /// A token that says when these bytes were there.
    pub(super) fn stamp(&self, bytes: &[u8]) -> Vec<u8> {
        let sha_256 = der(SEQUENCE, &[&der(OID, &[SHA_256])]);
        let imprint = der(SEQUENCE, &[&sha_256, &der(OCTETS, &[&Sha256::digest(bytes)])]);
        let one = der(INTEGER, &[&[1]]);
        let info = der(SEQUENCE, &[&one, &der(OID, &[POLICY]), &imprint, &one, &der(0x18, &[TIME])]);
        let attribute = |kind: &[u8], value: &[u8]| der(SEQUENCE, &[&der(OID, &[kind]), &der(SET, &[value])]);
        let attributes = [
            attribute(CONTENT_TYPE, &der(OID, &[STAMP_INFO])),
            attribute(MESSAGE_DIGEST, &der(OCTETS, &[&Sha256::digest(&info)])),
        ]
        .concat();
        let signature = self.key.sign(&der(SET, &[&attributes])).unwrap();
        let name = der(SEQUENCE, &[&der(OID, &[&[0x55, 4, 3]]), &der(0x0c, &[NAME.as_bytes()])]);
        let issuer = der(SEQUENCE, &[&der(SET, &[&name])]);
        let signer = der(
            SEQUENCE,
            &[
                &one,
                &der(SEQUENCE, &[&issuer, &der(INTEGER, &[&[SERIAL]])]),
                &sha_256,
                &der(FIRST, &[&attributes]),
                &der(SEQUENCE, &[&der(OID, &[ECDSA_SHA_256])]),
                &der(OCTETS, &[signature.as_bytes()]),
            ],
        );
        let content = der(SEQUENCE, &[&der(OID, &[STAMP_INFO]), &der(FIRST, &[&der(OCTETS, &[&info])])]);
        let signed =
            der(SEQUENCE, &[&der(INTEGER, &[&[3]]), &der(SET, &[&sha_256]), &content, &der(SET, &[&signer])]);
        der(SEQUENCE, &[&der(OID, &[SIGNED_DATA]), &der(FIRST, &[&signed])])
    }
}

/// A value of DER: its tag, its length, its parts.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let length = match u8::try_from(body.len()) {
        Ok(short) if short < 0x80 => vec![short],
        Ok(long) => vec![0x81, long],
        Err(_) => [&[0x82], u16::try_from(body.len()).unwrap().to_be_bytes().as_slice()].concat(),
    };
    [&[tag], length.as_slice(), &body].concat()
}
