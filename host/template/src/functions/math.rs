//! Arithmetic.

use super::args::{any, int, rest, to_float, to_int};
use super::decimal::Decimal;
use super::{ANY, FLOAT, INT};
use crate::function::{Ctx, Entry, FnError};
use crate::value::print::print_value;
use crate::value::{ListType, Value, int64, typed_list};

pub(super) const TABLE: &[Entry] = &[
    Entry::fixed("int", &[ANY], |_, args| Ok(Value::from(to_int(any(args, 0)?)))),
    Entry::fixed("int64", &[ANY], |_, args| Ok(int64(to_int(any(args, 0)?)))),
    Entry::fixed("float64", &[ANY], |_, args| Ok(Value::from(to_float(any(args, 0)?)))),
    Entry::fixed("atoi", &[super::STRING], atoi),
    Entry::fixed("toDecimal", &[ANY], to_decimal),
    Entry::fixed("add1", &[ANY], |_, args| Ok(int64(to_int(any(args, 0)?).wrapping_add(1)))),
    Entry::variadic("add", &[], ANY, |_, args| Ok(int64(args.iter().map(to_int).fold(0, i64::wrapping_add)))),
    Entry::fixed("sub", &[ANY, ANY], |_, args| {
        Ok(int64(to_int(any(args, 0)?).wrapping_sub(to_int(any(args, 1)?))))
    }),
    Entry::variadic("mul", &[ANY], ANY, |_, args| {
        Ok(int64(args.iter().map(to_int).fold(1, i64::wrapping_mul)))
    }),
    Entry::fixed("div", &[ANY, ANY], |_, args| divided(args, i64::wrapping_div)),
    Entry::fixed("mod", &[ANY, ANY], |_, args| divided(args, i64::wrapping_rem)),
    Entry::fixed("add1f", &[ANY], |_, args| {
        decimal(Decimal::of(to_float(any(args, 0)?))?.add(&Decimal::of(1.0)?))
    }),
    Entry::variadic("addf", &[], ANY, |_, args| folded(Decimal::of(0.0)?, args, |a, b| Ok(a.add(&b)))),
    Entry::variadic("subf", &[ANY], ANY, |_, args| {
        folded(Decimal::of(to_float(any(args, 0)?))?, rest(args, 1), |a, b| Ok(a.sub(&b)))
    }),
    Entry::variadic("mulf", &[ANY], ANY, |_, args| {
        folded(Decimal::of(to_float(any(args, 0)?))?, rest(args, 1), |a, b| Ok(a.mul(&b)))
    }),
    Entry::variadic("divf", &[ANY], ANY, |_, args| {
        folded(Decimal::of(to_float(any(args, 0)?))?, rest(args, 1), |a, b| a.div(&b))
    }),
    Entry::variadic("max", &[ANY], ANY, |_, args| extreme(args, i64::max)),
    Entry::variadic("biggest", &[ANY], ANY, |_, args| extreme(args, i64::max)),
    Entry::variadic("min", &[ANY], ANY, |_, args| extreme(args, i64::min)),
    Entry::variadic("maxf", &[ANY], ANY, |_, args| extreme_float(args, f64::max)),
    Entry::variadic("minf", &[ANY], ANY, |_, args| extreme_float(args, f64::min)),
    Entry::fixed("floor", &[ANY], |_, args| Ok(Value::from(to_float(any(args, 0)?).floor()))),
    Entry::fixed("ceil", &[ANY], |_, args| Ok(Value::from(to_float(any(args, 0)?).ceil()))),
    Entry::variadic("round", &[ANY, INT], FLOAT, round),
    Entry::fixed("until", &[INT], until),
    Entry::fixed("untilStep", &[INT, INT, INT], until_step),
    Entry::variadic("seq", &[], INT, seq),
];

type Result<T = Value> = std::result::Result<T, FnError>;

/// `strconv.Atoi`: decimal digits only, 0 for everything else.
fn atoi(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(Value::from(super::args::text(args, 0)?.parse::<i64>().unwrap_or(0)))
}

/// The text of the value read as octal.
fn to_decimal(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let mut text = Vec::new();
    print_value(any(args, 0)?, &mut text)?;
    let number = String::from_utf8(text).ok().and_then(|text| i64::from_str_radix(&text, 8).ok());
    Ok(int64(number.unwrap_or(0)))
}

fn divided(args: &[Value], divide: fn(i64, i64) -> i64) -> Result {
    let (a, b) = (to_int(any(args, 0)?), to_int(any(args, 1)?));
    if b == 0 {
        return Err(FnError::new("runtime error: integer divide by zero"));
    }
    Ok(int64(divide(a, b)))
}

fn folded(start: Decimal, args: &[Value], fold: fn(Decimal, Decimal) -> Result<Decimal>) -> Result {
    decimal(args.iter().try_fold(start, |sum, arg| fold(sum, Decimal::of(to_float(arg))?))?)
}

fn decimal(decimal: Decimal) -> Result {
    Ok(Value::from(decimal.to_float()))
}

fn extreme(args: &[Value], pick: fn(i64, i64) -> i64) -> Result {
    Ok(int64(args.iter().map(to_int).reduce(pick).unwrap_or(0)))
}

fn extreme_float(args: &[Value], pick: fn(f64, f64) -> f64) -> Result {
    let floats: Vec<f64> = args.iter().map(to_float).collect();
    if floats.iter().any(|float| float.is_nan()) {
        return Ok(Value::from(f64::NAN));
    }
    Ok(Value::from(floats.into_iter().reduce(pick).unwrap_or(0.0)))
}

/// Rounds at a decimal place, up from the given fraction on (by default a half).
fn round(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let places = i32::try_from(int(args, 1)?).unwrap_or(0);
    let threshold = args.get(2).map_or(0.5, to_float);
    let power = 10f64.powi(places);
    let digits = power * to_float(any(args, 0)?);
    let rounded = if digits.fract() >= threshold { digits.ceil() } else { digits.floor() };
    Ok(Value::from(rounded / power))
}

fn until(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let count = int(args, 0)?;
    ints(steps(ctx, 0, count, if count < 0 { -1 } else { 1 })?)
}

fn until_step(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    ints(steps(ctx, int(args, 0)?, int(args, 1)?, int(args, 2)?)?)
}

fn ints(numbers: Vec<i64>) -> Result {
    Ok(typed_list(numbers.into_iter().map(Value::from).collect(), ListType::Ints))
}

/// The numbers from a start up to, and without, a stop; none when the step leads away.
fn steps(ctx: &mut Ctx<'_>, start: i64, stop: i64, step: i64) -> Result<Vec<i64>> {
    let leads_away = if stop < start { step >= 0 } else { step <= 0 };
    if leads_away {
        return Ok(Vec::new());
    }
    let count = start.abs_diff(stop).div_ceil(step.unsigned_abs());
    let items = usize::try_from(count).unwrap_or(usize::MAX);
    ctx.check_items(items)?;
    ctx.charge(count)?;
    Ok((0..items)
        .scan(start, |next, _| {
            let number = *next;
            *next = next.saturating_add(step);
            Some(number)
        })
        .collect())
}

fn seq(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let numbers = (0..args.len()).map(|index| int(args, index)).collect::<Result<Vec<_>>>()?;
    let (start, step, end) = match numbers.as_slice() {
        [end] => (1, None, *end),
        [start, end] => (*start, None, *end),
        [start, step, end] => (*start, Some(*step), *end),
        _ => return Ok(Value::from("")),
    };
    let direction = if end < start { -1 } else { 1 };
    let step = step.unwrap_or(direction);
    if direction < 0 && step > 0 {
        return Ok(Value::from(""));
    }
    let numbers = steps(ctx, start, end.saturating_add(direction), step)?;
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    Ok(Value::from(texts.join(" ")))
}
