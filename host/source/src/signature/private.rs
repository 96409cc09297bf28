//! Private keys as cosign keeps them: PKCS#8 of an ECDSA key, sealed with a password.

use aws_lc_rs::{
    constant_time,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use poly1305::{Poly1305, universal_hash::KeyInit as _};
use salsa20::{
    XSalsa20,
    cipher::{KeyIvInit as _, StreamCipher as _},
};
use serde::{Deserialize, Serialize};
use sigstore_verify::{crypto::KeyPair, types::SignatureBytes};

use super::{KeyError, PublicKey};

/// What the PEM of a sealed key is called: today, and before cosign 2.
const LABELS: [&str; 2] = ["ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY"];
/// Cost of a guess at the password: what cosign writes.
const COST: u32 = 1 << 16;
/// The greatest cost that is taken from a file: 1 GiB of memory.
const MAX_COST: u32 = 1 << 20;
/// Bytes of the tag before what is sealed.
const TAG: usize = 16;
/// Bytes of a line in PEM.
const LINE: usize = 64;

/// A key that signs.
pub struct PrivateKey {
    pair: KeyPair,
    pkcs8: Vec<u8>,
}

/// Why there is no private key.
#[derive(Debug, thiserror::Error)]
pub enum PrivateKeyError {
    /// Another file.
    #[error("this is no private key of cosign's (`-----BEGIN {}-----`)", LABELS[0])]
    Pem,
    /// The inside of the file.
    #[error("the private key is sealed in a way that is not known: cosign's is scrypt and nacl/secretbox")]
    Format,
    /// The wrong password, or a changed file.
    #[error("the password does not open the private key; cosign's stands in COSIGN_PASSWORD")]
    Password,
    /// Not ECDSA P-256.
    #[error("the private key is not of the kind that cosign makes, ECDSA P-256")]
    Kind(#[source] sigstore_verify::crypto::Error),
    /// Its public key.
    #[error("the private key has no public key that can be used")]
    Public(#[from] KeyError),
    /// Randomness or the backend of the cryptography failed.
    #[error("a key cannot be made on this machine")]
    Make,
    /// The backend of the cryptography failed.
    #[error("the key cannot sign")]
    Sign(#[source] sigstore_verify::crypto::Error),
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    kdf: Kdf,
    cipher: Cipher,
    ciphertext: String,
}

#[derive(Serialize, Deserialize)]
struct Kdf {
    name: String,
    params: Params,
    salt: String,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Params {
    #[serde(rename = "N")]
    n: u32,
    r: u32,
    p: u32,
}

#[derive(Serialize, Deserialize)]
struct Cipher {
    name: String,
    nonce: String,
}

// === impl PrivateKey ===

impl PrivateKey {
    /// A new key.
    ///
    /// # Errors
    /// When this machine gives no randomness.
    pub fn generate() -> Result<Self, PrivateKeyError> {
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let made = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new());
        Self::of_pkcs8(made.map_err(|_| PrivateKeyError::Make)?.as_ref().to_vec())
    }

    /// Opens a file as cosign writes it.
    ///
    /// # Errors
    /// When it is another file, or the password is another.
    pub fn open(pem: &str, password: &[u8]) -> Result<Self, PrivateKeyError> {
        let sealed = LABELS.iter().find_map(|label| unwrap_pem(pem, label)).ok_or(PrivateKeyError::Pem)?;
        let sealed: Sealed = serde_json::from_slice(&sealed).map_err(|_| PrivateKeyError::Format)?;
        let is_known = sealed.kdf.name == "scrypt" && sealed.cipher.name == "nacl/secretbox";
        let decode = |text: &str| BASE64_STANDARD.decode(text).map_err(|_| PrivateKeyError::Format);
        if !is_known {
            return Err(PrivateKeyError::Format);
        }
        let key = derive(password, &decode(&sealed.kdf.salt)?, sealed.kdf.params)?;
        let nonce: [u8; 24] =
            decode(&sealed.cipher.nonce)?.try_into().map_err(|_| PrivateKeyError::Format)?;
        Self::of_pkcs8(unseal(&key, &nonce, &decode(&sealed.ciphertext)?).ok_or(PrivateKeyError::Password)?)
    }

    /// The file, as cosign would read it.
    ///
    /// # Errors
    /// When the password cannot be used.
    pub fn seal(&self, password: &[u8]) -> Result<String, PrivateKeyError> {
        let (salt, nonce): ([u8; 32], [u8; 24]) = (rand::random(), rand::random());
        let params = Params { n: COST, r: 8, p: 1 };
        let key = derive(password, &salt, params)?;
        let sealed = Sealed {
            kdf: Kdf { name: "scrypt".into(), params, salt: BASE64_STANDARD.encode(salt) },
            cipher: Cipher { name: "nacl/secretbox".into(), nonce: BASE64_STANDARD.encode(nonce) },
            ciphertext: BASE64_STANDARD.encode(seal(&key, &nonce, &self.pkcs8)),
        };
        let json = serde_json::to_vec(&sealed).map_err(|_| PrivateKeyError::Format)?;
        Ok(wrap_pem(&json, LABELS[0]))
    }

    /// The key that verifies what this one signs.
    ///
    /// # Errors
    /// When the backend of the cryptography fails.
    pub fn public(&self) -> Result<PublicKey, PrivateKeyError> {
        let der = self.pair.public_key_der().map_err(PrivateKeyError::Sign)?;
        Ok(PublicKey::of_der(der)?)
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> Result<SignatureBytes, PrivateKeyError> {
        self.pair.sign(bytes).map_err(PrivateKeyError::Sign)
    }

    fn of_pkcs8(pkcs8: Vec<u8>) -> Result<Self, PrivateKeyError> {
        let pair = KeyPair::from_pkcs8_der(&pkcs8).map_err(PrivateKeyError::Kind)?;
        Ok(Self { pair, pkcs8 })
    }
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PrivateKey(..)")
    }
}

fn derive(password: &[u8], salt: &[u8], params: Params) -> Result<[u8; 32], PrivateKeyError> {
    let Params { n, r, p } = params;
    // What a file asks for is memory of this machine: 128 * N * r bytes.
    if !n.is_power_of_two() || n > MAX_COST || r != 8 || p != 1 {
        return Err(PrivateKeyError::Format);
    }
    let log = u8::try_from(n.ilog2()).map_err(|_| PrivateKeyError::Format)?;
    let params = scrypt::Params::new(log, r, p).map_err(|_| PrivateKeyError::Format)?;
    let mut key = [0; 32];
    scrypt::scrypt(password, salt, &params, &mut key).map_err(|_| PrivateKeyError::Format)?;
    Ok(key)
}

/// The tag, then what is sealed, as NaCl's secretbox has it.
fn seal(key: &[u8; 32], nonce: &[u8; 24], open: &[u8]) -> Vec<u8> {
    let (mut cipher, tag_key) = start(key, nonce);
    let mut sealed = open.to_vec();
    cipher.apply_keystream(&mut sealed);
    let tag = Poly1305::new(&tag_key.into()).compute_unpadded(&sealed);
    [tag.as_slice(), &sealed].concat()
}

fn unseal(key: &[u8; 32], nonce: &[u8; 24], sealed: &[u8]) -> Option<Vec<u8>> {
    let (tag, sealed) = sealed.split_at_checked(TAG)?;
    let (mut cipher, tag_key) = start(key, nonce);
    let expected = Poly1305::new(&tag_key.into()).compute_unpadded(sealed);
    constant_time::verify_slices_are_equal(expected.as_slice(), tag).ok()?;
    let mut open = sealed.to_vec();
    cipher.apply_keystream(&mut open);
    Some(open)
}

/// The stream; its first 32 bytes are the key of the tag.
fn start(key: &[u8; 32], nonce: &[u8; 24]) -> (XSalsa20, [u8; 32]) {
    let mut cipher = XSalsa20::new(&(*key).into(), &(*nonce).into());
    let mut tag_key = [0; 32];
    cipher.apply_keystream(&mut tag_key);
    (cipher, tag_key)
}

fn wrap_pem(bytes: &[u8], label: &str) -> String {
    let text = BASE64_STANDARD.encode(bytes);
    let mut pem = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem + &format!("-----END {label}-----\n")
}

fn unwrap_pem(pem: &str, label: &str) -> Option<Vec<u8>> {
    let (_, after) = pem.split_once(&format!("-----BEGIN {label}-----"))?;
    let (text, _) = after.split_once(&format!("-----END {label}-----"))?;
    BASE64_STANDARD.decode(text.split_whitespace().collect::<String>()).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn what_is_sealed_is_opened_with_its_password_alone() {
        let key = PrivateKey::generate().unwrap();
        let pem = key.seal(b"hunter2").unwrap();
        assert!(pem.starts_with("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n"), "{pem}");
        let opened = PrivateKey::open(&pem, b"hunter2").unwrap();
        assert_eq!(opened.public().unwrap(), key.public().unwrap());
        let signature = opened.sign(b"bytes").unwrap();
        assert!(key.public().unwrap().made(&signature, b"bytes"));
        assert!(!key.public().unwrap().made(&signature, b"other"));
        assert!(matches!(PrivateKey::open(&pem, b"hunter3"), Err(PrivateKeyError::Password)));
        assert!(matches!(PrivateKey::open("-----BEGIN PRIVATE KEY-----", b""), Err(PrivateKeyError::Pem)));
    }

    #[test]
    fn the_box_is_that_of_nacl() {
        // The published example of NaCl's own tests (`secretbox.c`): key, nonce, and the sealed message's tag.
        let key = hex::decode("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389").unwrap();
        let nonce = hex::decode("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37").unwrap();
        let message = hex::decode(
            "be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a1ac728d45e6c61296cdc3c\
             01233561f41db66cce314adb310e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde048977eb48f5\
             9ffd4924ca1c60902e52f0a089bc76897040e082f937763848645e0705",
        )
        .unwrap();
        let sealed = seal(&key.try_into().unwrap(), &nonce.try_into().unwrap(), &message);
        assert_eq!(hex::encode(&sealed[..TAG]), "f3ffc7703f9400e52a7dfb4b3d3305d9");
    }

    #[test]
    fn a_file_cannot_ask_for_all_memory() {
        let params = Params { n: 1 << 30, r: 8, p: 1 };
        assert!(matches!(derive(b"", b"salt", params), Err(PrivateKeyError::Format)));
    }
}
