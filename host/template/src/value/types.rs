//! Names of Go kinds and types, as `kindOf`, `typeOf`, `%T` and errors say them.

use minijinja::Value;
use minijinja::value::ValueKind;

use super::number::{IntegerType, integer_type};
use super::object::{Shape, as_object};
use super::{ListType, MapType, as_byte_slice, as_list, as_map};

/// The Go kind: `string`, `map`, `invalid` for nil.
pub fn kind_of(value: &Value) -> &'static str {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None | ValueKind::Invalid => "invalid",
        ValueKind::Bool => "bool",
        ValueKind::Number => number_name(value),
        ValueKind::String | ValueKind::Bytes => "string",
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable | ValueKind::Plain => container_kind(value),
        _ => "interface",
    }
}

/// The Go type, as `%T` prints it: `[]interface {}`, `<nil>` for nil.
pub fn type_of(value: &Value) -> &'static str {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None | ValueKind::Invalid => "<nil>",
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable | ValueKind::Plain => container_type(value),
        _ => kind_of(value),
    }
}

fn number_name(value: &Value) -> &'static str {
    match integer_type(value) {
        Some(IntegerType::Int) => "int",
        Some(IntegerType::Int64) => "int64",
        Some(IntegerType::Uint64) => "uint64",
        Some(IntegerType::Uint8) => "uint8",
        None => "float64",
    }
}

fn container_kind(value: &Value) -> &'static str {
    if let Some(object) = as_object(value) {
        return match object.shape() {
            Shape::Struct => "struct",
            Shape::Pointer => "ptr",
            Shape::Map => "map",
            Shape::Slice => "slice",
            Shape::Func => "func",
            Shape::Complex => "complex128",
        };
    }
    match value.kind() {
        ValueKind::Map => "map",
        ValueKind::Plain => "struct",
        _ => "slice",
    }
}

fn container_type(value: &Value) -> &'static str {
    if let Some(map) = as_map(value) {
        return match map.ty() {
            MapType::Any => "map[string]interface {}",
            MapType::Values => "common.Values",
            MapType::Strings => "map[string]string",
        };
    }
    if let Some(list) = as_list(value) {
        return match list.ty() {
            ListType::Any | ListType::Nil => "[]interface {}",
            ListType::Strings => "[]string",
            ListType::Ints => "[]int",
            ListType::Lists => "[][]interface {}",
        };
    }
    if as_byte_slice(value).is_some() {
        return "[]uint8";
    }
    match as_object(value) {
        Some(object) => object.type_name(),
        None => "interface {}",
    }
}
