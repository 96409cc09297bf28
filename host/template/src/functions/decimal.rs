//! Decimal numbers of any size, which `addf` and its kin compute in: `addf 0.1 0.2` is 0.3.

use num_bigint::BigInt;
use num_bigint::Sign;

use crate::function::FnError;
use crate::value::float::shortest;

/// Digits behind the point that a division keeps.
const PRECISION: i32 = 16;

/// `digits × 10^exponent`.
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    digits: BigInt,
    exponent: i32,
}

impl Decimal {
    /// The shortest decimal number that reads as this float.
    ///
    /// # Errors
    /// For what is no number.
    pub(super) fn of(float: f64) -> Result<Self, FnError> {
        if !float.is_finite() {
            let text = crate::value::float::float_text(float);
            return Err(FnError::new(format!("Cannot create a Decimal from {text}")));
        }
        let decimal = shortest(float);
        let digits: BigInt = decimal.digits.parse().unwrap_or_default();
        let digits = if decimal.negative { -digits } else { digits };
        let len = i32::try_from(decimal.digits.len()).unwrap_or(0);
        Ok(Self { digits, exponent: decimal.point - len })
    }

    pub(super) fn add(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        Self { digits: self.at(exponent) + other.at(exponent), exponent }
    }

    pub(super) fn sub(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        Self { digits: self.at(exponent) - other.at(exponent), exponent }
    }

    pub(super) fn mul(&self, other: &Self) -> Self {
        let exponent = self.exponent.saturating_add(other.exponent);
        Self { digits: &self.digits * &other.digits, exponent }
    }

    /// The quotient with sixteen places, rounded half away from zero.
    ///
    /// # Errors
    /// For a division by zero.
    pub(super) fn div(&self, other: &Self) -> Result<Self, FnError> {
        if other.digits.sign() == Sign::NoSign {
            return Err(FnError::new("decimal division by 0"));
        }
        let shift = self.exponent - other.exponent + PRECISION;
        let power = BigInt::from(10).pow(shift.unsigned_abs());
        let (dividend, divisor) = match shift {
            0.. => (&self.digits * power, other.digits.clone()),
            _ => (self.digits.clone(), &other.digits * power),
        };
        let (mut quotient, rest) = (&dividend / &divisor, &dividend % &divisor);
        if rest.magnitude() * 2u32 >= *divisor.magnitude() {
            quotient += if dividend.sign() == divisor.sign() { 1 } else { -1 };
        }
        Ok(Self { digits: quotient, exponent: -PRECISION })
    }

    /// The nearest float.
    pub(super) fn to_float(&self) -> f64 {
        format!("{}e{}", self.digits, self.exponent).parse().unwrap_or(f64::NAN)
    }

    fn at(&self, exponent: i32) -> BigInt {
        &self.digits * BigInt::from(10).pow((self.exponent - exponent).unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

    use super::*;

    #[test]
    fn decimals_have_no_binary_dust() {
        let decimal = |float| Decimal::of(float).unwrap();
        assert_eq!(decimal(0.1).add(&decimal(0.2)).to_float(), 0.3);
        assert_eq!(decimal(1.1).mul(&decimal(1.1)).to_float(), 1.21);
        assert_eq!(decimal(3.0).sub(&decimal(0.9)).to_float(), 2.1);
        assert_eq!(decimal(1.0).div(&decimal(3.0)).unwrap().to_float(), 0.333_333_333_333_333_3);
        assert_eq!(decimal(-2.0).div(&decimal(3.0)).unwrap().to_float(), -0.666_666_666_666_666_7);
        assert_eq!(decimal(1e20).div(&decimal(1e-5)).unwrap().to_float(), 1e25);
        assert!(decimal(1.0).div(&decimal(0.0)).is_err());
        assert!(Decimal::of(f64::NAN).is_err());
    }
}
