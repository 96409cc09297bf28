//! Go's number types in a value that knows only numbers.
//!
//! Templates compare, print and add `int` and `int64` alike; only `kindOf`,
//! `typeOf` and `%T` tell them apart. The width minijinja stores an integer in
//! carries the type (64 bits signed for `int`, 128 for `int64`, unsigned 64 for `uint64`, unsigned
//! 128 for `uint8`), so arithmetic never meets a wrapper object.

use std::fmt;

use minijinja::Value;
use minijinja::value::ValueKind;
use serde::ser::{self, Impossible, Serialize};

/// A number with its Go type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// `int`, stored as `i64`; also `int64` unless [`integer_type`] is asked.
    Int(i64),
    /// `uint64` above the range of `int64`.
    Uint(u64),
    /// `float64`.
    Float(f64),
}

/// The Go type of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegerType {
    /// `int`: literals, `int`, `len`, indexes.
    Int,
    /// `int64`: what arithmetic returns, and `--set`.
    Int64,
    /// `uint64`: parts of a version.
    Uint64,
    /// `uint8`: a byte of a string or of a `[]byte`.
    Uint8,
}

/// An `int64`, which prints as an `int` does but has another name.
pub fn int64(value: i64) -> Value {
    Value::from(i128::from(value))
}

/// An `int` that counts something.
pub fn int(value: usize) -> Value {
    Value::from(i64::try_from(value).unwrap_or(i64::MAX))
}

/// A byte as Go's `uint8`.
pub fn byte(value: u8) -> Value {
    Value::from(u128::from(value))
}

/// The number in a value; integers beyond 64 bits become floats.
pub fn number(value: &Value) -> Option<Number> {
    if value.kind() != ValueKind::Number {
        return None;
    }
    if !value.is_integer() {
        return f64::try_from(value.clone()).ok().map(Number::Float);
    }
    if let Some(int) = value.as_i64() {
        return Some(Number::Int(int));
    }
    match u64::try_from(value.clone()) {
        Ok(uint) => Some(Number::Uint(uint)),
        Err(_) => f64::try_from(value.clone()).ok().map(Number::Float),
    }
}

/// The integer in a value; `None` for floats and everything else.
pub fn as_int(value: &Value) -> Option<i64> {
    match number(value)? {
        Number::Int(int) => Some(int),
        Number::Uint(_) | Number::Float(_) => None,
    }
}

/// The float in a value; `None` for integers and everything else.
pub fn as_float(value: &Value) -> Option<f64> {
    match number(value)? {
        Number::Float(float) => Some(float),
        Number::Int(_) | Number::Uint(_) => None,
    }
}

/// The Go type of an integer value; `None` for floats and everything else.
pub fn integer_type(value: &Value) -> Option<IntegerType> {
    if !value.is_integer() {
        return None;
    }
    value.serialize(Width).ok()
}

/// The integer a number is: `None` with a fraction, and beyond what floats count exactly.
pub fn whole(value: &Value) -> Option<i64> {
    /// Floats beyond have no unit digit.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Some(int) = as_int(value) {
        return Some(int);
    }
    let float = as_float(value)?;
    #[allow(clippy::cast_possible_truncation, reason = "the value was checked to be whole and small")]
    (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64)
}

impl Number {
    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        match self {
            Self::Int(int) => int == 0,
            Self::Uint(uint) => uint == 0,
            Self::Float(float) => float == 0.0,
        }
    }

    /// The number as a float, rounded where it must be.
    #[expect(clippy::cast_precision_loss, reason = "Go's conversion rounds the same way")]
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Uint(uint) => uint as f64,
            Self::Float(float) => float,
        }
    }
}

/// A serializer that learns only the width of an integer.
struct Width;

/// What is no integer has no width.
#[derive(Debug)]
struct NoInteger;

impl fmt::Display for NoInteger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an integer")
    }
}

impl std::error::Error for NoInteger {}

impl ser::Error for NoInteger {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

macro_rules! widths {
    ($($method:ident($ty:ty) => $result:expr,)*) => {
        $(fn $method(self, _: $ty) -> Result<IntegerType, NoInteger> { $result })*
    };
}

macro_rules! compounds {
    ($($method:ident($($arg:ty),*) => $compound:ident,)*) => {
        $(fn $method(self, $(_: $arg),*) -> Result<Self::$compound, NoInteger> { Err(NoInteger) })*
    };
}

impl ser::Serializer for Width {
    type Ok = IntegerType;
    type Error = NoInteger;
    type SerializeSeq = Impossible<IntegerType, NoInteger>;
    type SerializeTuple = Impossible<IntegerType, NoInteger>;
    type SerializeTupleStruct = Impossible<IntegerType, NoInteger>;
    type SerializeTupleVariant = Impossible<IntegerType, NoInteger>;
    type SerializeMap = Impossible<IntegerType, NoInteger>;
    type SerializeStruct = Impossible<IntegerType, NoInteger>;
    type SerializeStructVariant = Impossible<IntegerType, NoInteger>;

    widths! {
        serialize_i64(i64) => Ok(IntegerType::Int),
        serialize_i128(i128) => Ok(IntegerType::Int64),
        serialize_u64(u64) => Ok(IntegerType::Uint64),
        serialize_u128(u128) => Ok(IntegerType::Uint8),
        serialize_bool(bool) => Err(NoInteger),
        serialize_i8(i8) => Ok(IntegerType::Int),
        serialize_i16(i16) => Ok(IntegerType::Int),
        serialize_i32(i32) => Ok(IntegerType::Int),
        serialize_u8(u8) => Ok(IntegerType::Uint64),
        serialize_u16(u16) => Ok(IntegerType::Uint64),
        serialize_u32(u32) => Ok(IntegerType::Uint64),
        serialize_f32(f32) => Err(NoInteger),
        serialize_f64(f64) => Err(NoInteger),
        serialize_char(char) => Err(NoInteger),
        serialize_str(&str) => Err(NoInteger),
        serialize_bytes(&[u8]) => Err(NoInteger),
        serialize_unit_struct(&'static str) => Err(NoInteger),
    }

    compounds! {
        serialize_none() => Ok,
        serialize_unit() => Ok,
        serialize_unit_variant(&'static str, u32, &'static str) => Ok,
        serialize_seq(Option<usize>) => SerializeSeq,
        serialize_tuple(usize) => SerializeTuple,
        serialize_tuple_struct(&'static str, usize) => SerializeTupleStruct,
        serialize_tuple_variant(&'static str, u32, &'static str, usize) => SerializeTupleVariant,
        serialize_map(Option<usize>) => SerializeMap,
        serialize_struct(&'static str, usize) => SerializeStruct,
        serialize_struct_variant(&'static str, u32, &'static str, usize) => SerializeStructVariant,
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<IntegerType, NoInteger> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<IntegerType, NoInteger> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<IntegerType, NoInteger> {
        Err(NoInteger)
    }
}
