//! Base64, base32 and checksums.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::STRING;
use super::args::bytes;
use crate::function::{Ctx, Entry, FnError};
use crate::value::{Value, string_value};

pub(super) const TABLE: &[Entry] = &[
    Entry::fixed("b64enc", &[STRING], b64enc),
    Entry::fixed("b64dec", &[STRING], b64dec),
    Entry::fixed("b32enc", &[STRING], b32enc),
    Entry::fixed("b32dec", &[STRING], b32dec),
    Entry::fixed("sha1sum", &[STRING], |_, args| Ok(hex(&Sha1::digest(bytes(args, 0)?)))),
    Entry::fixed("sha256sum", &[STRING], |_, args| Ok(hex(&Sha256::digest(bytes(args, 0)?)))),
    Entry::fixed("sha512sum", &[STRING], |_, args| Ok(hex(&Sha512::digest(bytes(args, 0)?)))),
    Entry::fixed("adler32sum", &[STRING], adler32sum),
];

type Result = std::result::Result<Value, FnError>;

fn hex(digest: &[u8]) -> Value {
    let mut out = String::with_capacity(digest.len() * 2);
    for byte in digest {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    Value::from(out)
}

fn adler32sum(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    const MODULUS: u32 = 65_521;
    let (mut low, mut high) = (1u32, 0u32);
    for byte in bytes(args, 0)? {
        low = (low + u32::from(*byte)) % MODULUS;
        high = (high + low) % MODULUS;
    }
    Ok(Value::from(((high << 16) | low).to_string()))
}

fn b64enc(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    ctx.text(STANDARD.encode(bytes(args, 0)?))
}

/// A text that cannot be decoded becomes Go's error text, as in sprig.
fn b64dec(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(match decode_base64(bytes(args, 0)?) {
        Ok(bytes) => string_value(bytes),
        Err(at) => Value::from(format!("illegal base64 data at input byte {at}")),
    })
}

/// Go's decoder, which skips line breaks and does not mind bits behind the last byte.
///
/// # Errors
/// The position Go names.
pub(super) fn decode_base64(text: &[u8]) -> std::result::Result<Vec<u8>, usize> {
    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical);
    let clean: Vec<u8> = text.iter().copied().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
    let engine = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    engine.decode(clean).map_err(|_| decode_fault(text, 4, is_base64, &[2, 3]))
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

/// Where Go's decoders stop: at the first byte that fits nowhere, or where a group breaks off.
fn decode_fault(text: &[u8], group: usize, known: fn(u8) -> bool, padded: &[usize]) -> usize {
    let mut filled = 0;
    let mut start = 0;
    let significant = text.iter().enumerate().filter(|(_, b)| !matches!(b, b'\r' | b'\n'));
    let significant: Vec<(usize, u8)> = significant.map(|(at, byte)| (at, *byte)).collect();
    for (index, (at, byte)) in significant.iter().enumerate() {
        if filled == 0 {
            start = *at;
        }
        if known(*byte) {
            filled = (filled + 1) % group;
            continue;
        }
        if *byte != b'=' || !padded.contains(&filled) {
            return *at;
        }
        let rest = significant.get(index + 1..).unwrap_or_default();
        let missing = group - filled - 1;
        let marks = rest.iter().take(missing).take_while(|(_, byte)| *byte == b'=').count();
        if marks < missing {
            return rest.get(marks).map_or(text.len(), |(at, _)| at - 1);
        }
        return rest.get(missing).map_or(start, |(at, _)| *at);
    }
    // The text ends within a group.
    text.len() - filled
}

fn b32enc(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut out = String::new();
    for chunk in bytes(args, 0)?.chunks(5) {
        let bits = chunk.iter().fold(0u64, |bits, byte| (bits << 8) | u64::from(*byte));
        let bits = bits << (8 * (5 - chunk.len()));
        let digits = (chunk.len() * 8).div_ceil(5);
        for digit in 0..8 {
            let index = (bits >> (35 - 5 * digit)) & 31;
            let c = ALPHABET.get(usize::try_from(index).unwrap_or(0)).copied().unwrap_or(b'=');
            out.push(if digit < digits { char::from(c) } else { '=' });
        }
    }
    ctx.text(out)
}

fn b32dec(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let text = bytes(args, 0)?;
    Ok(match decode_base32(text) {
        Some(bytes) => string_value(bytes),
        None => {
            let known = |byte: u8| base32_digit(byte).is_some();
            let at = decode_fault(text, 8, known, &[2, 4, 5, 7]);
            Value::from(format!("illegal base32 data at input byte {at}"))
        }
    })
}

fn base32_digit(byte: u8) -> Option<u64> {
    match byte {
        b'A'..=b'Z' => Some(u64::from(byte - b'A')),
        b'2'..=b'7' => Some(u64::from(byte - b'2') + 26),
        _ => None,
    }
}

/// The bytes up to the first group with padding, behind which Go reads no further.
fn decode_base32(text: &[u8]) -> Option<Vec<u8>> {
    let clean: Vec<u8> = text.iter().copied().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
    let mut out = Vec::new();
    for (index, group) in clean.chunks(8).enumerate() {
        let digits = group.iter().position(|byte| *byte == b'=').unwrap_or(group.len());
        let padding = group.get(digits..)?.iter().all(|byte| *byte == b'=');
        let behind = clean.len() - (index * 8 + digits).min(clean.len());
        if group.len() < 8 || !padding || (digits < 8 && (behind > 8 || ![2, 4, 5, 7].contains(&digits))) {
            return None;
        }
        let mut bytes = group.get(..digits)?.iter();
        let bits = bytes.try_fold(0u64, |bits, byte| Some((bits << 5) | base32_digit(*byte)?))?;
        let bits = bits << (5 * (8 - digits));
        out.extend(bits.to_be_bytes().get(3..3 + digits * 5 / 8)?);
        if digits < 8 {
            break;
        }
    }
    Some(out)
}
