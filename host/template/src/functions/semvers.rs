//! Versions.

use super::STRING;
use super::args::{any, text};
use crate::function::{Ctx, Entry, FnError, Param, Signature};
use crate::semver::{Constraint, Version};
use crate::value::object::{GoObject, Shape, downcast};
use crate::value::{Value, object_value};

pub(super) const TABLE: &[Entry] =
    &[Entry::fixed("semver", &[STRING], semver), Entry::fixed("semverCompare", &[STRING, STRING], compare)];

type Result = std::result::Result<Value, FnError>;

/// Go's `*semver.Version`.
#[derive(Debug)]
struct GoVersion(Version);

const VERSION: &str = "*semver.Version";
const OTHER: Signature = Signature::fixed(&[Param::Object(VERSION)]);
const NOTHING: Signature = Signature::fixed(&[]);

fn failed(err: &crate::semver::Error) -> FnError {
    FnError::new(err.to_string())
}

fn semver(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let version = Version::parse(&text(args, 0)?).map_err(|err| failed(&err))?;
    Ok(object_value(GoVersion(version)))
}

fn compare(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    ctx.charge(1)?;
    let constraint = Constraint::parse(&text(args, 0)?).map_err(|err| failed(&err))?;
    let version = Version::parse(&text(args, 1)?).map_err(|err| failed(&err))?;
    Ok(Value::from(constraint.matches(&version)))
}

impl GoObject for GoVersion {
    fn type_name(&self) -> &'static str {
        VERSION
    }

    fn shape(&self) -> Shape {
        Shape::Pointer
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Major" | "Minor" | "Patch" | "Prerelease" | "Metadata" | "Original" | "String" | "IncPatch"
            | "IncMinor" | "IncMajor" => Some(NOTHING),
            "Compare" | "Equal" | "LessThan" | "LessThanEqual" | "GreaterThan" | "GreaterThanEqual" => {
                Some(OTHER)
            }
            _ => None,
        }
    }

    fn call(&self, name: &str, _: &mut Ctx<'_>, args: &[Value]) -> Result {
        let version = &self.0;
        Ok(match name {
            "Major" => Value::from(version.major()),
            "Minor" => Value::from(version.minor()),
            "Patch" => Value::from(version.patch()),
            "Prerelease" => Value::from(version.pre()),
            "Metadata" => Value::from(version.metadata()),
            "Original" => Value::from(version.original()),
            "String" => Value::from(version.to_string()),
            "IncPatch" => object_value(Self(version.next_patch())),
            "IncMinor" => object_value(Self(version.next_minor())),
            "IncMajor" => object_value(Self(version.next_major())),
            _ => {
                let other = downcast::<Self>(any(args, 0)?).ok_or_else(FnError::arguments)?;
                compared(name, version, &other.0)?
            }
        })
    }

    fn text(&self) -> Option<String> {
        Some(self.0.to_string())
    }
}

fn compared(name: &str, version: &Version, other: &Version) -> Result {
    let order = version.cmp(other);
    Ok(match name {
        "Compare" => Value::from(order as i64),
        "Equal" => Value::from(order.is_eq()),
        "LessThan" => Value::from(order.is_lt()),
        "LessThanEqual" => Value::from(order.is_le()),
        "GreaterThan" => Value::from(order.is_gt()),
        "GreaterThanEqual" => Value::from(order.is_ge()),
        _ => return Err(FnError::arguments()),
    })
}
