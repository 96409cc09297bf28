//! Large primes drawn from the seed of a run.
//!
//! No crate of keys takes a source of randomness that lasts over releases, and a key that changes
//! with the same seed would roll every pod that mounts it.

use num_bigint::{BigInt, BigUint};

use super::Result;
use crate::function::Ctx;

/// Primes below this are tried as divisors before the costly test.
const SIEVE: u32 = 4_000;

/// Rounds of Miller and Rabin's test with random bases. FIPS 186-5, table B.1, asks 4 for 1,024
/// bits; Go makes 20.
const ROUNDS: usize = 20;

/// A number of exactly so many bits, its two highest set so that a product of two keeps its size.
fn candidate(ctx: &mut Ctx<'_>, bits: u64) -> BigUint {
    let mut bytes = vec![0; usize::try_from(bits.div_ceil(8)).unwrap_or(0)];
    ctx.random(&mut bytes);
    let mut number = BigUint::from_bytes_be(&bytes) >> (bytes.len() as u64 * 8 - bits);
    number.set_bit(bits - 1, true);
    number.set_bit(bits - 2, true);
    number.set_bit(0, true);
    number
}

/// A prime of exactly so many bits.
pub(super) fn prime(ctx: &mut Ctx<'_>, bits: u64) -> Result<BigUint> {
    let small = small_primes();
    loop {
        ctx.charge(bits)?;
        let number = candidate(ctx, bits);
        if is_prime(ctx, &number, &small) {
            return Ok(number);
        }
    }
}

pub(super) fn small_primes() -> Vec<u32> {
    (3..SIEVE)
        .step_by(2)
        .filter(|n| (3..*n).step_by(2).take_while(|d| d * d <= *n).all(|d| n % d != 0))
        .collect()
}

/// Whether an odd number is a prime, but for a chance of 4^-20.
pub(super) fn is_prime(ctx: &mut Ctx<'_>, number: &BigUint, small: &[u32]) -> bool {
    let zero = BigUint::ZERO;
    if small.iter().any(|prime| number % *prime == zero) {
        return false;
    }
    let one = BigUint::from(1u32);
    let minus_one = number - &one;
    let shift = minus_one.trailing_zeros().unwrap_or(0);
    let odd = &minus_one >> shift;
    (0..ROUNDS).all(|_| {
        let base = random_below(ctx, &(&minus_one - 2u32)) + 2u32;
        let mut power = base.modpow(&odd, number);
        let mut passes = power == one || power == minus_one;
        for _ in 1..shift {
            if passes {
                break;
            }
            power = &power * &power % number;
            passes = power == minus_one;
        }
        passes
    })
}

/// A number below a bound; eight bytes more than needed make each as good as equally likely.
pub(super) fn random_below(ctx: &mut Ctx<'_>, bound: &BigUint) -> BigUint {
    let len = usize::try_from(bound.bits().div_ceil(8)).unwrap_or(0) + 8;
    let mut bytes = vec![0; len];
    ctx.random(&mut bytes);
    BigUint::from_bytes_be(&bytes) % bound
}

/// The number whose product with the first leaves 1.
pub(super) fn inverse(number: &BigUint, modulus: &BigUint) -> Option<BigUint> {
    let one = BigInt::from(1);
    let (mut old, mut rest) = (BigInt::from(modulus.clone()), BigInt::from(number % modulus));
    let (mut old_factor, mut factor) = (BigInt::ZERO, one.clone());
    while rest != BigInt::ZERO {
        let quotient = &old / &rest;
        let next = &old - &quotient * &rest;
        old = std::mem::replace(&mut rest, next);
        let next = &old_factor - quotient * &factor;
        old_factor = std::mem::replace(&mut factor, next);
    }
    let modulus = BigInt::from(modulus.clone());
    let positive = ((old_factor % &modulus) + &modulus) % &modulus;
    (old == one).then(|| positive.to_biguint()).flatten()
}
