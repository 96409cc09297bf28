//! The little of DER and PEM that keys need.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use num_bigint::BigUint;

pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const OCTETS: u8 = 0x04;

/// A value with its tag and length.
pub(super) fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match u8::try_from(content.len()) {
        Ok(len) if len < 0x80 => out.push(len),
        _ => {
            let len = content.len().to_be_bytes();
            let len: Vec<u8> = len.iter().copied().skip_while(|byte| *byte == 0).collect();
            out.push(0x80 | u8::try_from(len.len()).unwrap_or(0));
            out.extend(len);
        }
    }
    out.extend(content);
    out
}

/// A positive integer.
pub(super) fn integer(number: &BigUint) -> Vec<u8> {
    let mut bytes = number.to_bytes_be();
    if bytes.first().is_none_or(|byte| *byte >= 0x80) {
        bytes.insert(0, 0);
    }
    tagged(2, &bytes)
}

/// A sequence of integers.
pub(super) fn integers(numbers: &[&BigUint]) -> Vec<u8> {
    tagged(SEQUENCE, &numbers.iter().flat_map(|number| integer(number)).collect::<Vec<_>>())
}

/// The first value: its tag, its content, and what follows it.
pub(super) fn read(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (len, rest) = rest.split_first()?;
    let (len, rest) = match len {
        0..0x80 => (usize::from(*len), rest),
        _ => {
            let (bytes, rest) = rest.split_at_checked(usize::from(len & 0x7f))?;
            let len = bytes
                .iter()
                .try_fold(0usize, |len, byte| len.checked_mul(256)?.checked_add(usize::from(*byte)));
            (len?, rest)
        }
    };
    let (content, rest) = rest.split_at_checked(len)?;
    Some((*tag, content, rest))
}

/// A PEM block, in lines of 64.
pub(super) fn to_pem(label: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    for line in encoded.as_bytes().chunks(64) {
        out.extend(line.iter().map(|byte| char::from(*byte)));
        out.push('\n');
    }
    out.push_str(&format!("-----END {label}-----\n"));
    out
}

/// Label and content of the first PEM block.
pub(super) fn from_pem(text: &str) -> Option<(&str, Vec<u8>)> {
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    // Headers end with an empty line.
    let body = body.split_once("\n\n").filter(|(head, _)| head.contains(':')).map_or(body, |(_, body)| body);
    let clean: String = body.split_whitespace().collect();
    Some((label, STANDARD.decode(clean).ok()?))
}
