//! Private keys: RSA, DSA, ECDSA and Ed25519.

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey as EcdhKey};
use num_bigint::BigUint;

use super::der::{OCTETS, SEQUENCE, from_pem, integers, read, tagged, to_pem};
use super::primes::{inverse, is_prime, prime, random_below, small_primes};
use super::{Result, SLOW};
use crate::function::Ctx;
use crate::functions::args::text;
use crate::value::Value;

/// The exponent of every RSA key.
const EXPONENT: u32 = 65_537;

/// A private key as it goes into a Secret: the label of its PEM block and its DER.
#[derive(Debug)]
pub(super) struct PrivateKey {
    pub(super) label: String,
    pub(super) der: Vec<u8>,
}

impl PrivateKey {
    fn new(label: &str, der: Vec<u8>) -> Self {
        Self { label: label.to_owned(), der }
    }

    pub(super) fn pem(&self) -> String {
        to_pem(&self.label, &self.der)
    }
}

pub(super) fn gen_private_key(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let key = match &*text(args, 0)? {
        "" | "rsa" => rsa(ctx, 4096)?,
        "dsa" => dsa(ctx)?,
        "ecdsa" => ecdsa(ctx)?,
        "ed25519" => ed25519(ctx),
        kind => return Ok(Value::from(format!("Unknown type {kind}"))),
    };
    Ok(Value::from(key.pem()))
}

/// An RSA key of so many bits, in PKCS #1.
pub(super) fn rsa(ctx: &mut Ctx<'_>, bits: u64) -> Result<PrivateKey> {
    ctx.charge(SLOW)?;
    let (one, exponent) = (BigUint::from(1u32), BigUint::from(EXPONENT));
    loop {
        let (a, b) = (prime(ctx, bits / 2)?, prime(ctx, bits / 2)?);
        let (p, q) = if a > b { (a, b) } else { (b, a) };
        let (p1, q1) = (&p - &one, &q - &one);
        let modulus = &p * &q;
        let private = inverse(&exponent, &(&p1 * &q1));
        let coefficient = inverse(&q, &p);
        let (Some(private), Some(coefficient)) = (private, coefficient) else {
            continue;
        };
        if modulus.bits() != bits {
            continue;
        }
        let (dp, dq) = (&private % &p1, &private % &q1);
        let numbers = [&BigUint::ZERO, &modulus, &exponent, &private, &p, &q, &dp, &dq, &coefficient];
        return Ok(PrivateKey::new("RSA PRIVATE KEY", integers(&numbers)));
    }
}

/// A DSA key with a modulus of 2,048 bits and a group of 256.
fn dsa(ctx: &mut Ctx<'_>) -> Result<PrivateKey> {
    ctx.charge(SLOW)?;
    let (one, small) = (BigUint::from(1u32), small_primes());
    let q = prime(ctx, 256)?;
    let step = &q * 2u32;
    let p = loop {
        ctx.charge(2048)?;
        let mut start = random_below(ctx, &(&one << 2048u32));
        start.set_bit(2047, true);
        let p = &start - (&start % &step) + &one;
        if p.bits() == 2048 && is_prime(ctx, &p, &small) {
            break p;
        }
    };
    let cofactor = (&p - &one) / &q;
    let mut base = BigUint::from(2u32);
    let g = loop {
        let g = base.modpow(&cofactor, &p);
        if g != one {
            break g;
        }
        base += 1u32;
    };
    let x = random_below(ctx, &(&q - &one)) + &one;
    let y = g.modpow(&x, &p);
    let der = integers(&[&BigUint::ZERO, &p, &q, &g, &y, &x]);
    Ok(PrivateKey::new("DSA PRIVATE KEY", der))
}

/// A P-256 key, in SEC 1 with its curve and public half.
fn ecdsa(ctx: &mut Ctx<'_>) -> Result<PrivateKey> {
    const VERSION: &[u8] = &[2, 1, 1];
    const CURVE: &[u8] = &[0xa0, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    ctx.charge(SLOW / 10)?;
    loop {
        let mut secret = [0; 32];
        ctx.random(&mut secret);
        // A number beyond the curve's order is no key; the next one is as good.
        let Ok(key) = EcdhKey::from_private_key(&ECDH_P256, &secret) else {
            continue;
        };
        let Ok(public) = key.compute_public_key() else {
            continue;
        };
        let bits = tagged(3, &[&[0], public.as_ref()].concat());
        let der = [VERSION, &tagged(OCTETS, &secret), CURVE, &tagged(0xa1, &bits)].concat();
        return Ok(PrivateKey::new("EC PRIVATE KEY", tagged(SEQUENCE, &der)));
    }
}

/// An Ed25519 key, in PKCS #8.
fn ed25519(ctx: &mut Ctx<'_>) -> PrivateKey {
    const HEAD: &[u8] = &[0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let mut secret = [0; 32];
    ctx.random(&mut secret);
    PrivateKey::new("PRIVATE KEY", [HEAD, &secret].concat())
}

/// The key in a PEM text. An RSA key in PKCS #8 comes out in PKCS #1, as Go writes it back.
///
/// # Errors
/// Sprig's text.
pub(super) fn parse(text: &str) -> std::result::Result<PrivateKey, String> {
    let Some((label, der)) = from_pem(text) else {
        return Err("no PEM data in input".to_owned());
    };
    if label != "PRIVATE KEY" && !label.ends_with(" PRIVATE KEY") {
        return Err(format!("no private key data in PEM block of type {label}"));
    }
    match label.trim_end_matches("PRIVATE KEY").trim_end() {
        "" => match unwrapped_rsa(&der) {
            Some(inner) => Ok(PrivateKey::new("RSA PRIVATE KEY", inner)),
            None => Ok(PrivateKey::new(label, der)),
        },
        "RSA" | "EC" | "DSA" => Ok(PrivateKey::new(label, der)),
        kind => Err(format!("invalid private key type {kind}")),
    }
}

/// The PKCS #1 key within a PKCS #8 one.
fn unwrapped_rsa(der: &[u8]) -> Option<Vec<u8>> {
    const RSA: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
    let (_, content, _) = read(der)?;
    let (_, _, rest) = read(content)?;
    let (_, algorithm, rest) = read(rest)?;
    let (_, inner, _) = read(rest)?;
    algorithm.starts_with(RSA).then(|| inner.to_vec())
}
