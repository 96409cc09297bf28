//! Passwords, keys and ciphers. What is random comes from the seed of the run.

mod certs;
mod der;
mod keys;
mod primes;

use aes::Aes256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cbc::cipher::{Block, BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::args::{bytes, int, text};
use super::encoding::decode_base64;
use super::{INT, LIST, STRING};
use crate::function::{Ctx, Entry, FnError, Param};
use crate::value::{Value, string_value};

const CERTIFICATE: Param = Param::Object(certs::CERTIFICATE);

pub(super) const TABLE: &[Entry] = &[
    Entry::fixed("bcrypt", &[STRING], |ctx, args| Ok(Value::from(bcrypt(ctx, bytes(args, 0)?)?))),
    Entry::fixed("htpasswd", &[STRING, STRING], htpasswd),
    Entry::fixed("derivePassword", &[INT, STRING, STRING, STRING, STRING], derive_password),
    Entry::fixed("encryptAES", &[STRING, STRING], encrypt_aes),
    Entry::fixed("decryptAES", &[STRING, STRING], decrypt_aes),
    Entry::fixed("genPrivateKey", &[STRING], keys::gen_private_key),
    Entry::fixed("genCA", &[STRING, INT], certs::gen_ca),
    Entry::fixed("genCAWithKey", &[STRING, INT, STRING], certs::gen_ca_with_key),
    Entry::fixed("genSelfSignedCert", &[STRING, LIST, LIST, INT], certs::gen_self_signed),
    Entry::fixed(
        "genSelfSignedCertWithKey",
        &[STRING, LIST, LIST, INT, STRING],
        certs::gen_self_signed_with_key,
    ),
    Entry::fixed("genSignedCert", &[STRING, LIST, LIST, INT, CERTIFICATE], certs::gen_signed),
    Entry::fixed(
        "genSignedCertWithKey",
        &[STRING, LIST, LIST, INT, CERTIFICATE, STRING],
        certs::gen_signed_with_key,
    ),
    Entry::fixed("buildCustomCert", &[STRING, STRING], certs::build_custom),
];

type Result<T = Value> = std::result::Result<T, FnError>;

/// Steps of the render's budget that a slow hash or a key takes: some hundred of them are allowed.
const SLOW: u64 = 100_000;

fn bcrypt(ctx: &mut Ctx<'_>, password: &[u8]) -> Result<String> {
    const COST: u32 = 10;
    const LONGEST: usize = 72;
    if password.len() > LONGEST {
        let reason = "bcrypt: password length exceeds 72 bytes";
        return Ok(format!("failed to encrypt string with bcrypt: {reason}"));
    }
    ctx.charge(SLOW)?;
    let mut salt = [0; 16];
    ctx.random(&mut salt);
    let hash = bcrypt::hash_with_salt(password, COST, salt);
    let hash = hash.map_err(|err| FnError::new(err.to_string()))?;
    Ok(hash.format_for_version(bcrypt::Version::TwoA))
}

fn htpasswd(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let user = text(args, 0)?;
    if user.contains(':') {
        return Ok(Value::from(format!("invalid username: {user}")));
    }
    Ok(Value::from(format!("{user}:{}", bcrypt(ctx, bytes(args, 1)?)?)))
}

/// The patterns of passwords by kind: each letter is a class of characters.
fn password_patterns(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        "long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        "medium" => &["CvcnoCvc", "CvcCvcno"],
        "short" => &["Cvcn"],
        "basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        "pin" => &["nnnn"],
        _ => return None,
    })
}

fn characters(class: u8) -> &'static [u8] {
    match class {
        b'V' => b"AEIOU",
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'A' => b"AEIOUBCDFGHJKLMNPQRSTVWXYZ",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

/// The password of the Master Password algorithm, version of 2011: always the same for the same
/// counter, kind, secret, user and site.
fn derive_password(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    const SCOPE: &[u8] = b"com.lyndir.masterpassword";
    let (kind, password) = (text(args, 1)?, bytes(args, 2)?);
    let (user, site) = (bytes(args, 3)?, bytes(args, 4)?);
    let Ok(counter) = u32::try_from(int(args, 0)?) else {
        return Err(FnError::arguments());
    };
    let Some(patterns) = password_patterns(&kind) else {
        return Ok(Value::from(format!("cannot find password template {kind}")));
    };
    ctx.charge(SLOW)?;
    let sized = |text: &[u8]| u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes();
    let salt = [SCOPE, &sized(user), user].concat();
    let failed = |err: &dyn std::fmt::Display| FnError::new(err.to_string());
    let params = scrypt::Params::new(15, 8, 2).map_err(|err| failed(&err))?;
    let mut key = [0; 64];
    scrypt::scrypt(password, &salt, &params, &mut key).map_err(|err| failed(&err))?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|err| failed(&err))?;
    mac.update(&[SCOPE, &sized(site), site, &counter.to_be_bytes()].concat());
    let seed = mac.finalize().into_bytes();
    Ok(Value::from(password_of(&seed, patterns)))
}

fn password_of(seed: &[u8], patterns: &[&str]) -> String {
    let pick = |items: usize, byte: u8| usize::from(byte).checked_rem(items).unwrap_or(0);
    let first = seed.first().copied().unwrap_or(0);
    let pattern = patterns.get(pick(patterns.len(), first)).copied().unwrap_or_default();
    let classes = pattern.bytes().map(characters);
    let chosen = classes.zip(seed.iter().skip(1)).filter_map(|(characters, byte)| {
        characters.get(pick(characters.len(), *byte)).map(|byte| char::from(*byte))
    });
    chosen.collect()
}

const BLOCK: usize = 16;

/// A key of 32 bytes: the password, cut or filled with zeros.
fn aes_key(password: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    key.iter_mut().zip(password).for_each(|(key, byte)| *key = *byte);
    key
}

fn blocks(bytes: &[u8]) -> Vec<Block<Aes256>> {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    blocks.iter().map(|block| (*block).into()).collect()
}

fn encrypt_aes(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let (key, plain) = (aes_key(bytes(args, 0)?), bytes(args, 1)?);
    if plain.is_empty() {
        return Ok(Value::from(""));
    }
    ctx.charge(plain.len() as u64 / 16)?;
    let padding = BLOCK - plain.len() % BLOCK;
    let mut padded = plain.to_vec();
    padded.resize(plain.len() + padding, u8::try_from(padding).unwrap_or(0));
    let mut iv = [0; BLOCK];
    ctx.random(&mut iv);
    let mut blocks = blocks(&padded);
    cbc::Encryptor::<Aes256>::new(&key.into(), &iv.into()).encrypt_blocks(&mut blocks);
    let cipher: Vec<u8> = blocks.iter().flat_map(|block| block.iter().copied()).collect();
    ctx.text(STANDARD.encode([iv.as_slice(), &cipher].concat()))
}

fn decrypt_aes(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let (key, encoded) = (aes_key(bytes(args, 0)?), bytes(args, 1)?);
    if encoded.is_empty() {
        return Ok(Value::from(""));
    }
    ctx.charge(encoded.len() as u64 / 16)?;
    let cipher = decode_base64(encoded)
        .map_err(|at| FnError::new(format!("illegal base64 data at input byte {at}")))?;
    let Some((iv, cipher)) = cipher.split_first_chunk::<BLOCK>() else {
        let len = cipher.len();
        let text = format!("runtime error: slice bounds out of range [:16] with capacity {len}");
        return Err(FnError::new(text));
    };
    if cipher.len() % BLOCK != 0 {
        return Err(FnError::new("crypto/cipher: input not full blocks"));
    }
    let mut blocks = blocks(cipher);
    cbc::Decryptor::<Aes256>::new(&key.into(), &(*iv).into()).decrypt_blocks(&mut blocks);
    let plain: Vec<u8> = blocks.iter().flat_map(|block| block.iter().copied()).collect();
    let padding = plain.last().copied().map_or(usize::MAX, usize::from);
    match plain.len().checked_sub(padding) {
        Some(len) => Ok(string_value(plain.get(..len).unwrap_or_default().to_vec())),
        None => Err(FnError::new("runtime error: slice bounds out of range")),
    }
}
