//! Randomness that depends on the seed of the run and the file alone.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::args::{int, text};
use super::{INT, STRING};
use crate::function::{Ctx, Entry, FnError};
use crate::value::Value;

pub(super) const TABLE: &[Entry] = &[
    Entry::fixed("randAlphaNum", &[INT], |ctx, args| rand_text(ctx, args, ALPHA_NUM)),
    Entry::fixed("randAlpha", &[INT], |ctx, args| rand_text(ctx, args, ALPHA)),
    Entry::fixed("randNumeric", &[INT], |ctx, args| rand_text(ctx, args, DIGITS)),
    Entry::fixed("randAscii", &[INT], |ctx, args| rand_text(ctx, args, ASCII)),
    Entry::fixed("randBytes", &[INT], rand_bytes),
    Entry::fixed("randInt", &[INT, INT], rand_int),
    Entry::fixed("shuffle", &[STRING], shuffle),
    Entry::fixed("uuidv4", &[], uuidv4),
];

const ALPHA: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &str = "0123456789";
const ALPHA_NUM: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const ASCII: &str =
    " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";

type Result<T = Value> = std::result::Result<T, FnError>;

/// The next random number below a bound, each equally likely.
pub(super) fn below(ctx: &mut Ctx<'_>, bound: u64) -> u64 {
    if bound < 2 {
        return 0;
    }
    // Numbers of the last, incomplete round are drawn again.
    let rounds = u64::MAX - u64::MAX % bound;
    loop {
        let mut bytes = [0; 8];
        ctx.random(&mut bytes);
        let number = u64::from_le_bytes(bytes);
        if number < rounds {
            return number % bound;
        }
    }
}

fn size(ctx: &mut Ctx<'_>, count: i64) -> Result<usize> {
    let count = usize::try_from(count).unwrap_or(0);
    ctx.check_items(count)?;
    ctx.charge(count as u64)?;
    Ok(count)
}

/// A negative count is an error Sprig swallows: no text.
fn rand_text(ctx: &mut Ctx<'_>, args: &[Value], alphabet: &str) -> Result {
    let count = size(ctx, int(args, 0)?)?;
    let mut out = String::with_capacity(count);
    for _ in 0..count {
        let index = usize::try_from(below(ctx, alphabet.len() as u64)).unwrap_or(0);
        out.extend(alphabet.as_bytes().get(index).map(|byte| char::from(*byte)));
    }
    Ok(Value::from(out))
}

fn rand_bytes(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let count = int(args, 0)?;
    if count < 0 {
        return Err(FnError::new("runtime error: makeslice: len out of range"));
    }
    let mut bytes = vec![0; size(ctx, count)?];
    ctx.random(&mut bytes);
    Ok(Value::from(STANDARD.encode(bytes)))
}

fn rand_int(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let (min, max) = (int(args, 0)?, int(args, 1)?);
    match max.checked_sub(min).and_then(|range| u64::try_from(range).ok()) {
        Some(range) if range > 0 => {
            let number = i64::try_from(below(ctx, range)).unwrap_or(0);
            Ok(Value::from(min.wrapping_add(number)))
        }
        _ => Err(FnError::new("invalid argument to Intn")),
    }
}

fn shuffle(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let mut chars: Vec<char> = text(args, 0)?.chars().collect();
    ctx.charge(chars.len() as u64)?;
    for last in (1..chars.len()).rev() {
        let other = usize::try_from(below(ctx, last as u64 + 1)).unwrap_or(0);
        chars.swap(last, other);
    }
    Ok(Value::from(chars.into_iter().collect::<String>()))
}

fn uuidv4(ctx: &mut Ctx<'_>, _: &[Value]) -> Result {
    let mut bytes = [0; 16];
    ctx.random(&mut bytes);
    // Version 4, variant 1 of RFC 9562.
    let bits = u128::from_be_bytes(bytes) & !(0xf << 76) & !(0x3 << 62) | (4 << 76) | (2 << 62);
    let hex = format!("{bits:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    let parts = parts.map(|range| hex.get(range).unwrap_or_default());
    Ok(Value::from(parts.join("-")))
}
