//! The functions Go's template package brings.

mod compare;

use crate::function::{Ctx, Entry, FnError, Param, Table};
use crate::printf;
use crate::value::number::{Number, number};
use crate::value::object::{GoObject, Shape};
use crate::value::print::{is_print_string, print_value};
use crate::value::{
    self, Value, as_byte_slice, as_list, as_map, as_object, is_nil, is_string, is_true, nil, type_of,
};

const ANY: Param = Param::Any;

/// The functions by name.
pub(crate) fn table() -> Table {
    Table::from_iter([
        // The executor runs these two itself, to stop at the deciding argument.
        Entry::variadic("and", &[ANY], ANY, last),
        Entry::variadic("or", &[ANY], ANY, last),
        Entry::fixed("not", &[ANY], not),
        Entry::variadic("eq", &[ANY], ANY, compare::eq),
        Entry::fixed("ne", &[ANY, ANY], compare::ne),
        Entry::fixed("lt", &[ANY, ANY], compare::lt),
        Entry::fixed("le", &[ANY, ANY], compare::le),
        Entry::fixed("gt", &[ANY, ANY], compare::gt),
        Entry::fixed("ge", &[ANY, ANY], compare::ge),
        Entry::variadic("index", &[ANY], ANY, index),
        Entry::variadic("slice", &[ANY], ANY, slice),
        Entry::fixed("len", &[ANY], len),
        Entry::variadic("call", &[ANY], ANY, call),
        Entry::texts("print", &[], ANY, print),
        Entry::variadic("println", &[], ANY, println),
        Entry::texts("printf", &[Param::String], ANY, sprintf),
        Entry::variadic("html", &[], ANY, html),
        Entry::variadic("js", &[], ANY, js),
        Entry::variadic("urlquery", &[], ANY, urlquery),
    ])
}

/// A complex constant, which templates can print and nothing else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Complex {
    pub(crate) real: f64,
    pub(crate) imaginary: f64,
}

impl GoObject for Complex {
    fn type_name(&self) -> &'static str {
        "complex128"
    }

    fn shape(&self) -> Shape {
        Shape::Complex
    }

    fn text(&self) -> Option<String> {
        let [real, imaginary] = [self.real, self.imaginary].map(value::float::float_text);
        let plus = if imaginary.starts_with(['-', '+']) { "" } else { "+" };
        Some(format!("({real}{plus}{imaginary}i)"))
    }

    fn is_true(&self) -> bool {
        self.real != 0.0 || self.imaginary != 0.0
    }
}

fn last(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    Ok(args.last().cloned().unwrap_or_else(nil))
}

fn not(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    Ok(Value::from(!args.first().is_some_and(is_true)))
}

// === containers ===

fn len(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    let [value] = args else {
        return Err(FnError::arguments());
    };
    if is_nil(value) {
        return Err(FnError::new("len of nil pointer"));
    }
    match length(value) {
        Some(len) => Ok(value::int(len)),
        None => Err(FnError::new(format!("len of type {}", type_of(value)))),
    }
}

fn length(value: &Value) -> Option<usize> {
    if is_string(value) {
        return value.as_bytes().map(<[u8]>::len);
    }
    if let Some(map) = as_map(value) {
        return Some(map.len());
    }
    if let Some(list) = as_list(value) {
        return Some(list.items().len());
    }
    if let Some(bytes) = as_byte_slice(value) {
        return Some(bytes.len());
    }
    let object = as_object(value)?;
    matches!(object.shape(), Shape::Map | Shape::Slice).then(|| object.entries().len())
}

fn index(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    let Some((item, indexes)) = args.split_first() else {
        return Err(FnError::arguments());
    };
    if is_nil(item) {
        return Err(FnError::new("index of untyped nil"));
    }
    let mut item = item.clone();
    for index in indexes {
        if is_nil(&item) {
            return Err(FnError::new("index of nil pointer"));
        }
        item = index_one(&item, index)?;
    }
    Ok(item)
}

fn index_one(item: &Value, index: &Value) -> Result<Value, FnError> {
    if let Some(map) = as_map(item) {
        return Ok(map.get_or_zero(map_key(index)?));
    }
    if let Some(list) = as_list(item) {
        let index = position(index, list.items().len())?;
        return list.items().get(index).cloned().ok_or_else(|| out_of_range("slice"));
    }
    if let Some(bytes) = as_byte_slice(item) {
        return byte_at(bytes, index, "slice");
    }
    if is_string(item) {
        return byte_at(item.as_bytes().unwrap_or_default(), index, "string");
    }
    match as_object(item) {
        Some(object) if object.shape() == Shape::Map => {
            Ok(object.field(map_key(index)?).unwrap_or_else(|| object.zero()))
        }
        Some(object) if object.shape() == Shape::Slice => {
            let entries = object.entries();
            let index = position(index, entries.len())?;
            let entry = entries.into_iter().nth(index);
            entry.map(|(_, value)| value).ok_or_else(|| out_of_range("slice"))
        }
        _ => Err(FnError::new(format!("can't index item of type {}", type_of(item)))),
    }
}

fn byte_at(bytes: &[u8], index: &Value, what: &str) -> Result<Value, FnError> {
    let index = position(index, bytes.len())?;
    bytes.get(index).map(|byte| value::number::byte(*byte)).ok_or_else(|| out_of_range(what))
}

/// Go lets an index equal to the length through its own check, and reflection then refuses it.
fn out_of_range(what: &str) -> FnError {
    FnError::new(format!("reflect: {what} index out of range"))
}

fn map_key(index: &Value) -> Result<&str, FnError> {
    if is_nil(index) {
        return Err(FnError::new("value is nil; should be of type string"));
    }
    match index.as_str() {
        Some(key) => Ok(key),
        None if is_string(index) => Ok(""),
        None => Err(FnError::new(format!("value has type {}; should be string", type_of(index)))),
    }
}

fn position(index: &Value, cap: usize) -> Result<usize, FnError> {
    if is_nil(index) {
        return Err(FnError::new("cannot index slice/array with nil"));
    }
    let out_of_range = |index: &dyn std::fmt::Display| FnError::new(format!("index out of range: {index}"));
    match number(index) {
        Some(Number::Int(int)) => match usize::try_from(int) {
            Ok(index) if index <= cap => Ok(index),
            _ => Err(out_of_range(&int)),
        },
        Some(Number::Uint(uint)) => Err(out_of_range(&uint)),
        Some(Number::Float(_)) | None => {
            let found = type_of(index);
            Err(FnError::new(format!("cannot index slice/array with type {found}")))
        }
    }
}

fn slice(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    let Some((item, indexes)) = args.split_first() else {
        return Err(FnError::arguments());
    };
    if is_nil(item) {
        return Err(FnError::new("slice of untyped nil"));
    }
    if indexes.len() > 3 {
        return Err(FnError::new(format!("too many slice indexes: {}", indexes.len())));
    }
    if is_string(item) {
        if indexes.len() == 3 {
            return Err(FnError::new("cannot 3-index slice a string"));
        }
        let bytes = item.as_bytes().unwrap_or_default();
        let (from, to) = bounds(indexes, bytes.len())?;
        return Ok(value::string_value(bytes.get(from..to).unwrap_or_default().to_vec()));
    }
    if let Some(list) = as_list(item) {
        let (from, to) = bounds(indexes, list.items().len())?;
        let items = list.items().get(from..to).unwrap_or_default().to_vec();
        return Ok(value::typed_list(items, list.ty()));
    }
    if let Some(bytes) = as_byte_slice(item) {
        let (from, to) = bounds(indexes, bytes.len())?;
        return Ok(value::bytes_value(bytes.get(from..to).unwrap_or_default()));
    }
    Err(FnError::new(format!("can't slice item of type {}", type_of(item))))
}

fn bounds(indexes: &[Value], len: usize) -> Result<(usize, usize), FnError> {
    let mut bounds = [0, len, len];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = position(index, len)?;
    }
    let [from, to, cap] = bounds;
    for (low, high) in [(from, to), (to, cap)] {
        if low > high {
            return Err(FnError::new(format!("invalid slice index: {low} > {high}")));
        }
    }
    Ok((from, to))
}

/// The first argument is how the callee was written: the executor puts it there.
fn call(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    let [written, callee, args @ ..] = args else {
        return Err(FnError::arguments());
    };
    if is_nil(callee) {
        return Err(FnError::new("call of nil"));
    }
    match as_object(callee) {
        Some(object) if object.shape() == Shape::Func => object.call("", ctx, args),
        _ => {
            let (name, ty) = (value::print::display(written), type_of(callee));
            Err(FnError::new(format!("non-function {name} of type {ty}")))
        }
    }
}

// === text ===

fn print(_: &mut Ctx<'_>, args: &[Value], out: &mut Vec<u8>) -> Result<(), FnError> {
    join_into(args, out)
}

fn joined(args: &[Value]) -> Result<Vec<u8>, FnError> {
    let mut out = Vec::new();
    join_into(args, &mut out)?;
    Ok(out)
}

/// Go's `Sprint`: a space between two operands that are both no strings.
fn join_into(args: &[Value], out: &mut Vec<u8>) -> Result<(), FnError> {
    let mut after_string = true;
    for arg in args {
        let string = is_print_string(arg);
        if !string && !after_string {
            out.push(b' ');
        }
        print_value(arg, out)?;
        after_string = string;
    }
    Ok(())
}

fn println(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    let mut out = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        print_value(arg, &mut out)?;
    }
    out.push(b'\n');
    Ok(value::string_value(out))
}

fn sprintf(_: &mut Ctx<'_>, args: &[Value], out: &mut Vec<u8>) -> Result<(), FnError> {
    let Some((format, args)) = args.split_first() else {
        return Err(FnError::arguments());
    };
    Ok(printf::sprintf_into(format.as_bytes().unwrap_or_default(), args, out)?)
}

/// The arguments of an escaper as one text.
fn escapee(args: &[Value]) -> Result<Vec<u8>, FnError> {
    let args: Vec<Value> = args
        .iter()
        .map(|arg| if is_nil(arg) { Value::from(crate::exec::NO_VALUE) } else { arg.clone() })
        .collect();
    joined(&args)
}

fn html(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    let mut out = Vec::new();
    for byte in escapee(args)? {
        match byte {
            0 => out.extend("\u{fffd}".bytes()),
            b'"' => out.extend(b"&#34;"),
            b'\'' => out.extend(b"&#39;"),
            b'&' => out.extend(b"&amp;"),
            b'<' => out.extend(b"&lt;"),
            b'>' => out.extend(b"&gt;"),
            byte => out.push(byte),
        }
    }
    ctx.text(out)
}

fn js(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    let text = escapee(args)?;
    let mut out = String::new();
    for c in String::from_utf8_lossy(&text).chars() {
        match c {
            '\\' | '\'' | '"' => out.extend(['\\', c]),
            '<' | '>' | '&' | '=' => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c if c.is_ascii_control() && c != '\u{7f}' => {
                out.push_str(&format!("\\u{:04X}", u32::from(c)));
            }
            c if !c.is_ascii() && !crate::quote::is_print(c) => {
                out.push_str(&format!("\\u{:04X}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    ctx.text(out)
}

fn urlquery(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    let mut out = String::new();
    for byte in escapee(args)? {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            b' ' => out.push('+'),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    ctx.text(out)
}
