//! TOML as Helm writes and reads it.

use std::fmt::Write as _;
use std::sync::Arc;

use minijinja::value::ValueKind;

use super::args::{any, text};
use super::times::GoTime;
use super::{ANY, STRING};
use crate::function::{Ctx, Entry, FnError};
use crate::value::float::float_text;
use crate::value::number::{Number, number};
use crate::value::object::downcast;
use crate::value::print::{MAX_DEPTH, MAX_TEXT};
use crate::value::{
    Entries, Value, as_map, as_object, as_text, int64, is_nil, kind_of, list_value, map_value, object_value,
};

pub(super) const TABLE: &[Entry] = &[
    Entry::fixed("toToml", &[ANY], to_toml),
    Entry::fixed("mustToToml", &[ANY], must_to_toml),
    Entry::fixed("fromToml", &[STRING], from_toml),
];

type Result<T = Value> = std::result::Result<T, FnError>;

fn to_toml(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    match encode(any(args, 0)?) {
        Ok(text) => ctx.text(text),
        Err(Fault::Limit) => Err(FnError::limit("value text", MAX_TEXT)),
        Err(Fault::Nil(text)) => Err(FnError::new(text)),
        // What cannot be written is told in its place, as Helm does.
        Err(Fault::Value(message)) => Ok(Value::from(message)),
    }
}

fn must_to_toml(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    match encode(any(args, 0)?) {
        Ok(text) => ctx.text(text),
        Err(Fault::Limit) => Err(FnError::limit("value text", MAX_TEXT)),
        Err(Fault::Nil(text)) => Err(FnError::new(text)),
        Err(Fault::Value(message)) => Err(FnError::new(message)),
    }
}

/// Why a value has no TOML.
enum Fault {
    /// Go's encoder does not survive a nil, whichever function asks.
    Nil(&'static str),
    Value(String),
    Limit,
}

fn encode(value: &Value) -> std::result::Result<String, Fault> {
    if is_nil(value) {
        let text = "reflect: call of reflect.Value.Type on zero Value";
        return Err(Fault::Nil(text));
    }
    let mut writer = Writer { out: String::new(), written: false };
    writer.item(&mut Vec::new(), value)?;
    Ok(writer.out)
}

struct Writer {
    out: String,
    /// A line break before the first table of a document would be one too many.
    written: bool,
}

type Written = std::result::Result<(), Fault>;

impl Writer {
    fn item(&mut self, path: &mut Vec<Arc<str>>, value: &Value) -> Written {
        if path.len() > MAX_DEPTH || self.out.len() > MAX_TEXT {
            return Err(Fault::Limit);
        }
        if is_nil(value) {
            return Ok(());
        }
        match super::args::items(value) {
            _ if entries(value).is_some() => self.table(path, value),
            Some(items) if is_tables(&items)? => self.tables(path, &items),
            _ => self.pair(path, value),
        }
    }

    fn pair(&mut self, path: &[Arc<str>], value: &Value) -> Written {
        if let Some(key) = path.last() {
            self.indent(path);
            self.put(&format!("{} = ", quoted_key(key)));
        }
        self.element(value, 0)?;
        if !path.is_empty() {
            self.line();
        }
        Ok(())
    }

    fn table(&mut self, path: &mut Vec<Arc<str>>, value: &Value) -> Written {
        if path.len() == 1 {
            self.line();
        }
        if !path.is_empty() {
            self.indent(path);
            self.put(&format!("[{}]", dotted(path)));
            self.line();
        }
        self.entries(path, value)
    }

    fn tables(&mut self, path: &mut Vec<Arc<str>>, items: &[Value]) -> Written {
        if path.is_empty() {
            return Err(Fault::Value("toml: top-level values must be Go maps or structs".to_owned()));
        }
        for item in items {
            self.line();
            self.indent(path);
            self.put(&format!("[[{}]]", dotted(path)));
            self.line();
            self.entries(path, item)?;
        }
        Ok(())
    }

    /// Plain values before tables, each sorted by key.
    fn entries(&mut self, path: &mut Vec<Arc<str>>, value: &Value) -> Written {
        let (plain, tables) = split(value)?;
        for (key, value) in plain.into_iter().chain(tables) {
            path.push(key);
            self.item(path, &value)?;
            path.pop();
        }
        Ok(())
    }

    fn element(&mut self, value: &Value, depth: usize) -> Written {
        if depth > MAX_DEPTH || self.out.len() > MAX_TEXT {
            return Err(Fault::Limit);
        }
        if let Some(number) = number(value) {
            self.put(&number_text(number));
        } else if let Some(text) = as_text(value) {
            self.put(&quoted(&text));
        } else if let Some(time) = downcast::<GoTime>(value) {
            self.put(&time.rfc3339());
        } else if let Some(items) = super::args::items(value) {
            self.put("[");
            for (index, item) in items.iter().enumerate() {
                self.put(if index > 0 { ", " } else { "" });
                self.element(item, depth + 1)?;
            }
            self.put("]");
        } else if entries(value).is_some() {
            return self.inline(value, depth);
        } else if value.kind() == ValueKind::Bool {
            self.put(if value.is_true() { "true" } else { "false" });
        } else if let Some(text) = as_object(value).and_then(|object| object.text()) {
            self.put(&quoted(&text));
        } else {
            return Err(Fault::Value(format!("unexpected type: {}", kind_of(value))));
        }
        Ok(())
    }

    fn inline(&mut self, value: &Value, depth: usize) -> Written {
        let (plain, tables) = split(value)?;
        self.put("{");
        let all: Vec<_> = plain.into_iter().chain(tables).filter(|(_, value)| !is_nil(value)).collect();
        for (index, (key, value)) in all.iter().enumerate() {
            self.put(if index > 0 { ", " } else { "" });
            self.put(&format!("{} = ", quoted_key(key)));
            self.element(value, depth + 1)?;
        }
        self.put("}");
        Ok(())
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        self.written = true;
    }

    fn line(&mut self) {
        if self.written {
            self.out.push('\n');
        }
    }

    fn indent(&mut self, path: &[Arc<str>]) {
        self.put(&"  ".repeat(path.len().saturating_sub(1)));
    }
}

type Pairs = Vec<(Arc<str>, Value)>;

/// The entries of what TOML has as a table.
fn entries(value: &Value) -> Option<Pairs> {
    if let Some(map) = as_map(value) {
        return Some(map.glance());
    }
    let object = as_object(value)
        .filter(|object| object.text().is_none() && matches!(kind_of(value), "map" | "struct" | "ptr"))?;
    let named = |(key, value): (Value, Value)| Some((as_text(&key)?.into(), value));
    Some(object.entries().into_iter().filter_map(named).collect())
}

fn split(value: &Value) -> std::result::Result<(Pairs, Pairs), Fault> {
    let (mut plain, mut tables) = (Vec::new(), Vec::new());
    for (key, value) in entries(value).unwrap_or_default() {
        let is_table = match super::args::items(&value) {
            Some(items) => is_tables(&items)?,
            None => entries(&value).is_some(),
        };
        if is_table { &mut tables } else { &mut plain }.push((key, value));
    }
    Ok((plain, tables))
}

fn is_tables(items: &[Value]) -> std::result::Result<bool, Fault> {
    if items.iter().any(is_nil) {
        return Err(Fault::Value("toml: cannot encode array with nil element".to_owned()));
    }
    Ok(!items.is_empty() && items.iter().all(|item| entries(item).is_some()))
}

fn number_text(number: Number) -> String {
    match number {
        Number::Int(int) => int.to_string(),
        Number::Uint(uint) => uint.to_string(),
        Number::Float(float) if float.is_nan() => "nan".to_owned(),
        Number::Float(f64::INFINITY) => "inf".to_owned(),
        Number::Float(f64::NEG_INFINITY) => "-inf".to_owned(),
        Number::Float(float) => {
            let text = float_text(float);
            if text.contains(['.', 'e']) { text } else { format!("{text}.0") }
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' | '\u{7f}' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

fn quoted_key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(bare) { key.to_owned() } else { quoted(key) }
}

fn dotted(path: &[Arc<str>]) -> String {
    path.iter().map(|key| quoted_key(key)).collect::<Vec<_>>().join(".")
}

/// A text that is not TOML becomes a map with the reason under `Error`.
fn from_toml(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let text = text(args, 0)?;
    ctx.charge(text.len() as u64 / 16)?;
    let entries = match text.parse::<toml::Table>() {
        Ok(table) => table.into_iter().map(|(key, value)| (key.into(), read(value))).collect(),
        Err(err) => Entries::from([("Error".into(), Value::from(error_text(&text, &err)))]),
    };
    Ok(map_value(entries))
}

fn error_text(text: &str, err: &toml::de::Error) -> String {
    let before = err.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    format!("toml: line {line}: {}", err.message().lines().collect::<Vec<_>>().join(" "))
}

fn read(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::from(text),
        toml::Value::Integer(int) => int64(int),
        toml::Value::Float(float) => Value::from(float),
        toml::Value::Boolean(bool) => Value::from(bool),
        toml::Value::Datetime(time) => date(&time.to_string()),
        toml::Value::Array(items) => list_value(items.into_iter().map(read).collect()),
        toml::Value::Table(table) => {
            map_value(table.into_iter().map(|(key, value)| (key.into(), read(value))).collect())
        }
    }
}

fn date(text: &str) -> Value {
    const LAYOUTS: [&str; 4] = ["2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02", "15:04:05"];
    let time = LAYOUTS.iter().find_map(|layout| super::layout::parse(layout, text).ok());
    time.map_or_else(|| Value::from(text), object_value)
}
