//! YAML, JSON and TOML in and out of templates.

use super::args::{any, bytes, text};
use super::{ANY, STRING};
use crate::function::{Ctx, Entry, FnError};
use crate::value::{
    Entries, MapType, Value, as_list, as_map, is_nil, is_string, list_value, map_value, nil_map, number,
};
use crate::yaml;
use crate::yaml::json::{JsonError, Layout, to_json};
use crate::yaml::json_read::from_json;

pub(super) const TABLE: &[Entry] = &[
    Entry::text("toYaml", &[ANY], to_yaml),
    Entry::text("mustToYaml", &[ANY], must_to_yaml),
    Entry::fixed("toYamlPretty", &[ANY], |ctx, args| {
        or_nothing(ctx, yaml_text(yaml::emit_pretty(any(args, 0)?)))
    }),
    Entry::fixed("fromYaml", &[STRING], from_yaml),
    Entry::fixed("fromYamlArray", &[STRING], from_yaml_array),
    Entry::fixed("toJson", &[ANY], |ctx, args| or_nothing(ctx, json(args, ESCAPED))),
    Entry::fixed("mustToJson", &[ANY], |ctx, args| or_fail(ctx, json(args, ESCAPED))),
    Entry::fixed("toPrettyJson", &[ANY], |ctx, args| or_nothing(ctx, json(args, PRETTY))),
    Entry::fixed("mustToPrettyJson", &[ANY], |ctx, args| or_fail(ctx, json(args, PRETTY))),
    Entry::fixed("toRawJson", &[ANY], |ctx, args| or_fail(ctx, json(args, RAW))),
    Entry::fixed("mustToRawJson", &[ANY], |ctx, args| or_fail(ctx, json(args, RAW))),
    Entry::fixed("fromJson", &[STRING], from_json_map),
    Entry::fixed("fromJsonArray", &[STRING], from_json_array),
    Entry::fixed("mustFromJson", &[STRING], must_from_json),
];

const RAW: Layout = Layout { escape_html: false, pretty: false };
const ESCAPED: Layout = Layout { escape_html: true, pretty: false };
const PRETTY: Layout = Layout { escape_html: true, pretty: true };

/// Go's name of a map a text is decoded into.
const MAP: &str = "map[string]interface {}";
/// Go's name of a list a text is decoded into.
const LIST: &str = "[]interface {}";

type Result = std::result::Result<Value, FnError>;
type Text = std::result::Result<String, FnOrJson>;

/// Why there is no text.
enum FnOrJson {
    Fn(FnError),
    Json(JsonError),
}

impl From<FnError> for FnOrJson {
    fn from(err: FnError) -> Self {
        Self::Fn(err)
    }
}

impl From<JsonError> for FnOrJson {
    fn from(err: JsonError) -> Self {
        match err {
            // A limit is never a quiet empty text.
            JsonError::TooLong => Self::Fn(FnError::limit("value text", crate::value::print::MAX_TEXT)),
            err => Self::Json(err),
        }
    }
}

fn to_yaml(ctx: &mut Ctx<'_>, args: &[Value], out: &mut Vec<u8>) -> std::result::Result<(), FnError> {
    let from = out.len();
    match write_yaml(any(args, 0)?, out) {
        Ok(()) => ctx.charge((out.len() - from) as u64 / 64),
        Err(FnOrJson::Json(_)) => Ok(()),
        Err(FnOrJson::Fn(err)) => Err(err),
    }
}

fn must_to_yaml(ctx: &mut Ctx<'_>, args: &[Value], out: &mut Vec<u8>) -> std::result::Result<(), FnError> {
    let from = out.len();
    write_yaml(any(args, 0)?, out).map_err(FnError::from)?;
    ctx.charge((out.len() - from) as u64 / 64)
}

/// Appends the text without the line break at its end.
fn write_yaml(value: &Value, out: &mut Vec<u8>) -> std::result::Result<(), FnOrJson> {
    let from = out.len();
    yaml::emit_into(value, out)?;
    if out.len() > from && out.last() == Some(&b'\n') {
        out.pop();
    }
    Ok(())
}

/// The text without the line break at its end.
fn yaml_text(text: std::result::Result<String, JsonError>) -> Text {
    let mut text = text?;
    text.truncate(text.strip_suffix('\n').map_or(text.len(), str::len));
    Ok(text)
}

impl From<FnOrJson> for FnError {
    fn from(err: FnOrJson) -> Self {
        match err {
            FnOrJson::Fn(err) => err,
            FnOrJson::Json(err) => Self::new(err.to_string()),
        }
    }
}

fn json(args: &[Value], layout: Layout) -> Text {
    Ok(to_json(any(args, 0)?, layout)?)
}

fn or_nothing(ctx: &mut Ctx<'_>, text: Text) -> Result {
    match text {
        Ok(text) => charged(ctx, text),
        Err(FnOrJson::Json(_)) => Ok(Value::from("")),
        Err(FnOrJson::Fn(err)) => Err(err),
    }
}

fn or_fail(ctx: &mut Ctx<'_>, text: Text) -> Result {
    match text {
        Ok(text) => charged(ctx, text),
        Err(err) => Err(err.into()),
    }
}

fn charged(ctx: &mut Ctx<'_>, text: String) -> Result {
    ctx.charge(text.len() as u64 / 64)?;
    ctx.text(text)
}

/// A map with the text of an error under `Error`: what a failed `fromYaml` is.
fn error_map(message: String) -> Value {
    map_value([("Error".into(), Value::from(message))].into())
}

fn error_list(message: String) -> Value {
    list_value(vec![Value::from(message)])
}

fn yaml_value(ctx: &mut Ctx<'_>, args: &[Value]) -> std::result::Result<Loaded, FnError> {
    let text = text(args, 0)?;
    ctx.charge(text.len() as u64 / 32)?;
    Ok(yaml::load(&text, "").map_err(|err| err.go_text()))
}

type Loaded = std::result::Result<Value, String>;

fn from_yaml(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(match yaml_value(ctx, args)? {
        Ok(value) => expect_map(value, "error unmarshaling JSON: while decoding JSON: "),
        Err(message) => error_map(message),
    })
}

fn from_yaml_array(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(match yaml_value(ctx, args)? {
        Ok(value) => expect_list(value, "error unmarshaling JSON: while decoding JSON: "),
        Err(message) => error_list(message),
    })
}

fn from_json_map(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(match json_value(ctx, args)? {
        // Go decodes `null` into a map that is nil.
        Ok(value) if value.is_none() => nil_map(MapType::Any),
        Ok(value) => expect_map(value, ""),
        Err(message) => error_map(message),
    })
}

fn from_json_array(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    Ok(match json_value(ctx, args)? {
        Ok(value) => expect_list(value, ""),
        Err(message) => error_list(message),
    })
}

fn must_from_json(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    json_value(ctx, args)?.map_err(FnError::new)
}

fn json_value(ctx: &mut Ctx<'_>, args: &[Value]) -> std::result::Result<Loaded, FnError> {
    let text = bytes(args, 0)?;
    ctx.charge(text.len() as u64 / 32)?;
    Ok(from_json(text).map_err(|err| err.to_string()))
}

fn expect_map(value: Value, context: &str) -> Value {
    match () {
        () if as_map(&value).is_some() => value,
        () if is_nil(&value) => map_value(Entries::new()),
        () => error_map(mismatch(&value, MAP, context)),
    }
}

fn expect_list(value: Value, context: &str) -> Value {
    match () {
        () if as_list(&value).is_some() => value,
        () if is_nil(&value) => list_value(Vec::new()),
        () => error_list(mismatch(&value, LIST, context)),
    }
}

fn mismatch(value: &Value, wanted: &str, context: &str) -> String {
    let found = if as_map(value).is_some() {
        "object"
    } else if as_list(value).is_some() {
        "array"
    } else if is_string(value) {
        "string"
    } else if number(value).is_some() {
        "number"
    } else {
        "bool"
    };
    format!("{context}json: cannot unmarshal {found} into Go value of type {wanted}")
}
