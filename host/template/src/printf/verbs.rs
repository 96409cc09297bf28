//! One argument under one verb.

use minijinja::value::ValueKind;

use super::Spec;
use crate::quote::{is_print, quote, quote_ascii, quote_char, quote_char_ascii, unicode};
use crate::value::float::{format_b, format_e, format_f, format_g, format_x};
use crate::value::number::{IntegerType, Number, integer_type, number};
use crate::value::object::{GoObject, Shape, as_object};
use crate::value::print::{MAX_DEPTH, MAX_TEXT, PrintError};
use crate::value::{Value, as_byte_slice, as_list, as_map, is_nil, type_of};

type Printed = Result<(), PrintError>;

/// Appends an argument as its verb says.
pub(super) fn print_arg(arg: &Value, verb: char, spec: &Spec, out: &mut Vec<u8>) -> Printed {
    match verb {
        'T' => pad_text(type_of(arg).as_bytes(), spec, out),
        'v' if is_nil(arg) => pad(b"<nil>", spec, out),
        _ if is_nil(arg) => out.extend(format!("%!{verb}(<nil>)").bytes()),
        _ => return value(arg, verb, spec, out, 0),
    }
    Ok(())
}

fn value(arg: &Value, verb: char, spec: &Spec, out: &mut Vec<u8>, depth: usize) -> Printed {
    if depth >= MAX_DEPTH {
        return Err(PrintError::TooDeep);
    }
    if out.len() > MAX_TEXT {
        return Err(PrintError::TooLong);
    }
    match arg.kind() {
        ValueKind::Undefined | ValueKind::None | ValueKind::Invalid => {
            out.extend(if spec.sharp_v { &b"interface {}(nil)"[..] } else { b"<nil>" });
            Ok(())
        }
        ValueKind::Bool => match verb {
            'v' | 't' => {
                pad(if arg.is_true() { b"true" } else { b"false" }, spec, out);
                Ok(())
            }
            _ => bad_verb(arg, verb, spec, out),
        },
        ValueKind::Number => match number(arg) {
            Some(Number::Int(int)) => integer(arg, int.into(), verb, spec, out),
            Some(Number::Uint(uint)) => integer(arg, uint.into(), verb, spec, out),
            Some(Number::Float(float)) => floating(arg, float, verb, spec, out),
            None => Ok(()),
        },
        ValueKind::String | ValueKind::Bytes => {
            text(arg, arg.as_bytes().unwrap_or_default(), verb, spec, out)
        }
        _ => container(arg, verb, spec, out, depth),
    }
}

/// Go's marker for a verb the value does not fit; the flags still hold for the value in it.
fn bad_verb(arg: &Value, verb: char, spec: &Spec, out: &mut Vec<u8>) -> Printed {
    out.extend(format!("%!{verb}({}=", type_of(arg)).bytes());
    value(arg, 'v', spec, out, 0)?;
    out.push(b')');
    Ok(())
}

// === padding ===

/// Pads to the width, counted in characters.
fn pad(bytes: &[u8], spec: &Spec, out: &mut Vec<u8>) {
    let width = String::from_utf8_lossy(bytes).chars().count();
    let missing = spec.width.unwrap_or(0).saturating_sub(width);
    let fill = if spec.zero && !spec.minus { b'0' } else { b' ' };
    if spec.minus {
        out.extend_from_slice(bytes);
    }
    out.extend(std::iter::repeat_n(fill, missing));
    if !spec.minus {
        out.extend_from_slice(bytes);
    }
}

/// A text cut to the precision, then padded.
fn pad_text(bytes: &[u8], spec: &Spec, out: &mut Vec<u8>) {
    match spec.precision {
        None => pad(bytes, spec, out),
        Some(precision) => {
            let text = String::from_utf8_lossy(bytes);
            let cut: String = text.chars().take(precision).collect();
            pad(cut.as_bytes(), spec, out);
        }
    }
}

// === integers ===

fn integer(arg: &Value, int: i128, verb: char, spec: &Spec, out: &mut Vec<u8>) -> Printed {
    let unsigned = spec.sharp_v && integer_type(arg) == Some(IntegerType::Uint64);
    let c = || u32::try_from(int).ok().and_then(char::from_u32).unwrap_or('\u{fffd}');
    match verb {
        'v' if unsigned => digits(int, 16, "0x", false, spec, out),
        'v' | 'd' => digits(int, 10, "", false, spec, out),
        'b' => digits(int, 2, if spec.sharp { "0b" } else { "" }, false, spec, out),
        'o' => digits(int, 8, if spec.sharp { "0" } else { "" }, false, spec, out),
        'O' => digits(int, 8, "0o", false, spec, out),
        'x' => digits(int, 16, if spec.sharp { "0x" } else { "" }, false, spec, out),
        'X' => digits(int, 16, if spec.sharp { "0X" } else { "" }, true, spec, out),
        'c' => pad(c().to_string().as_bytes(), spec, out),
        'q' if spec.plus => pad(quote_char_ascii(c()).as_bytes(), spec, out),
        'q' => pad(quote_char(c()).as_bytes(), spec, out),
        'U' => pad(code_point(int, c(), spec).as_bytes(), spec, out),
        _ => return bad_verb(arg, verb, spec, out),
    }
    Ok(())
}

fn code_point(int: i128, c: char, spec: &Spec) -> String {
    if spec.sharp { unicode(c) } else { format!("U+{int:04X}") }
}

fn digits(int: i128, radix: u32, prefix: &str, upper: bool, spec: &Spec, out: &mut Vec<u8>) {
    let plain = Spec { zero: false, ..*spec };
    if spec.precision == Some(0) && int == 0 {
        return pad(b"", &plain, out);
    }
    let sign = match int {
        ..0 => "-",
        _ if spec.plus => "+",
        _ if spec.space => " ",
        _ => "",
    };
    let body = in_radix(int.unsigned_abs(), radix, upper);
    let least = match (spec.precision, spec.width) {
        (Some(precision), _) => precision,
        (None, Some(width)) if spec.zero && !spec.minus => width.saturating_sub(sign.len()),
        _ => 0,
    };
    let zeros = "0".repeat(least.saturating_sub(body.len()));
    pad(format!("{sign}{prefix}{zeros}{body}").as_bytes(), &plain, out);
}

fn in_radix(value: u128, radix: u32, upper: bool) -> String {
    match radix {
        2 => format!("{value:b}"),
        8 => format!("{value:o}"),
        16 if upper => format!("{value:X}"),
        16 => format!("{value:x}"),
        _ => value.to_string(),
    }
}

// === floats ===

fn floating(arg: &Value, float: f64, verb: char, spec: &Spec, out: &mut Vec<u8>) -> Printed {
    let text = match verb {
        'v' | 'g' => format_g(float, spec.precision),
        'G' => format_g(float, spec.precision).to_uppercase(),
        'f' | 'F' => format_f(float, Some(spec.precision.unwrap_or(6))),
        'e' => format_e(float, Some(spec.precision.unwrap_or(6))),
        'E' => format_e(float, Some(spec.precision.unwrap_or(6))).to_uppercase(),
        'x' => format_x(float, spec.precision),
        'X' => format_x(float, spec.precision).to_uppercase(),
        'b' => format_b(float),
        _ => return bad_verb(arg, verb, spec, out),
    };
    let text = if spec.sharp && float.is_finite() { sharp(text, verb, spec.precision) } else { text };
    let (sign, body) = match text.strip_prefix(['-', '+']) {
        Some(body) if text.starts_with('-') => ("-", body),
        Some(body) => (positive_sign(spec, true), body),
        None => (positive_sign(spec, false), text.as_str()),
    };
    let finite = float.is_finite();
    if spec.zero && !spec.minus && finite {
        let width = spec.width.unwrap_or(0).saturating_sub(sign.len() + body.len());
        out.extend(sign.bytes());
        out.extend(std::iter::repeat_n(b'0', width));
        out.extend(body.bytes());
    } else {
        let spec = Spec { zero: false, ..*spec };
        pad(format!("{sign}{body}").as_bytes(), &spec, out);
    }
    Ok(())
}

/// The flag `#`: a decimal point in every case, and for `%g` the zeros that its precision asks for.
fn sharp(text: String, verb: char, precision: Option<usize>) -> String {
    let is_hex = matches!(verb, 'x' | 'X');
    let end = if is_hex { text.find(['p', 'P']) } else { text.find(['e', 'E']) };
    let (number, tail) = text.split_at(end.unwrap_or(text.len()));
    let wanted = match verb {
        'v' | 'g' | 'G' | 'x' => precision.unwrap_or(6),
        'b' => return text,
        _ => 0,
    };
    // Go counts the prefix of hexadecimal digits too, and no digit before the first that is not zero.
    let unsigned = number.trim_start_matches('-');
    let has_point = unsigned.contains('.');
    let counted = unsigned.chars().filter(|c| *c != '.').skip_while(|c| *c == '0').count();
    let is_zero = usize::from(!has_point && unsigned == "0");
    let zeros = "0".repeat(wanted.saturating_sub(counted + is_zero));
    format!("{number}{}{zeros}{tail}", if has_point { "" } else { "." })
}

/// The sign before what is not negative; an infinity has its own.
fn positive_sign(spec: &Spec, infinite: bool) -> &'static str {
    if spec.plus || (infinite && !spec.space) {
        "+"
    } else if spec.space {
        " "
    } else {
        ""
    }
}

// === text ===

fn text(arg: &Value, bytes: &[u8], verb: char, spec: &Spec, out: &mut Vec<u8>) -> Printed {
    match verb {
        'v' if spec.sharp_v => quoted(bytes, &Spec { sharp: false, ..*spec }, out),
        'v' | 's' => pad_text(bytes, spec, out),
        'q' => quoted(bytes, spec, out),
        'x' => hex(bytes, false, spec, out),
        'X' => hex(bytes, true, spec, out),
        _ => return bad_verb(arg, verb, spec, out),
    }
    Ok(())
}

fn quoted(bytes: &[u8], spec: &Spec, out: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(bytes);
    let raw = spec.sharp && text.chars().all(|c| c != '`' && (c == '\t' || is_print(c)));
    let cut: Vec<u8> = match spec.precision {
        Some(precision) => text.chars().take(precision).collect::<String>().into_bytes(),
        None => bytes.to_vec(),
    };
    let literal = match raw {
        true => format!("`{}`", String::from_utf8_lossy(&cut)),
        false if spec.plus => quote_ascii(&cut),
        false => quote(&cut),
    };
    pad(literal.as_bytes(), spec, out);
}

fn hex(bytes: &[u8], upper: bool, spec: &Spec, out: &mut Vec<u8>) {
    let bytes = bytes.get(..spec.precision.unwrap_or(bytes.len())).unwrap_or(bytes);
    let prefix = match (spec.sharp, upper) {
        (false, _) => "",
        (true, false) => "0x",
        (true, true) => "0X",
    };
    let mut literal = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        if spec.space && index > 0 {
            literal.push(' ');
        }
        if index == 0 || spec.space {
            literal.push_str(prefix);
        }
        literal.push_str(&in_byte(*byte, upper));
    }
    pad(literal.as_bytes(), spec, out);
}

fn in_byte(byte: u8, upper: bool) -> String {
    if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }
}

// === containers ===

fn container(arg: &Value, verb: char, spec: &Spec, out: &mut Vec<u8>, depth: usize) -> Printed {
    if let Some(map) = as_map(arg) {
        let entries = map.glance();
        let entries = entries.into_iter().map(|(key, value)| (Value::from(key), value)).collect();
        return mapping(arg, entries, verb, spec, out, depth);
    }
    if let Some(list) = as_list(arg) {
        return sequence(arg, list.items(), verb, spec, out, depth);
    }
    if let Some(bytes) = as_byte_slice(arg) {
        if matches!(verb, 's' | 'q' | 'x' | 'X') {
            return text(arg, bytes, verb, spec, out);
        }
        let items: Vec<Value> = bytes.iter().map(|byte| crate::value::number::byte(*byte)).collect();
        return sequence(arg, &items, verb, spec, out, depth);
    }
    match as_object(arg) {
        Some(object) => self::object(arg, object, verb, spec, out, depth),
        None => bad_verb(arg, verb, spec, out),
    }
}

fn object(
    arg: &Value,
    object: &dyn GoObject,
    verb: char,
    spec: &Spec,
    out: &mut Vec<u8>,
    depth: usize,
) -> Printed {
    if object.shape() == Shape::Complex && verb != 'v' {
        return bad_verb(arg, verb, spec, out);
    }
    if let Some(own) = object.text()
        && matches!(verb, 'v' | 's' | 'x' | 'X' | 'q')
        && !spec.sharp_v
    {
        return text(arg, own.as_bytes(), verb, spec, out);
    }
    let entries = object.entries();
    match object.shape() {
        Shape::Map => mapping(arg, entries, verb, spec, out, depth),
        Shape::Slice => {
            let items: Vec<Value> = entries.into_iter().map(|(_, value)| value).collect();
            sequence(arg, &items, verb, spec, out, depth)
        }
        Shape::Struct | Shape::Pointer => fields(arg, entries, verb, spec, out, depth),
        Shape::Func | Shape::Complex => bad_verb(arg, verb, spec, out),
    }
}

fn mapping(
    arg: &Value,
    entries: Vec<(Value, Value)>,
    verb: char,
    spec: &Spec,
    out: &mut Vec<u8>,
    depth: usize,
) -> Printed {
    open(arg, "map[", spec, out);
    for (index, (key, item)) in entries.iter().enumerate() {
        separate(index, spec, out);
        value(key, verb, spec, out, depth + 1)?;
        out.push(b':');
        value(item, verb, spec, out, depth + 1)?;
    }
    out.push(if spec.sharp_v { b'}' } else { b']' });
    Ok(())
}

fn sequence(
    arg: &Value,
    items: &[Value],
    verb: char,
    spec: &Spec,
    out: &mut Vec<u8>,
    depth: usize,
) -> Printed {
    open(arg, "[", spec, out);
    for (index, item) in items.iter().enumerate() {
        separate(index, spec, out);
        value(item, verb, spec, out, depth + 1)?;
    }
    out.push(if spec.sharp_v { b'}' } else { b']' });
    Ok(())
}

fn fields(
    arg: &Value,
    entries: Vec<(Value, Value)>,
    verb: char,
    spec: &Spec,
    out: &mut Vec<u8>,
    depth: usize,
) -> Printed {
    open(arg, "{", spec, out);
    for (index, (name, item)) in entries.iter().enumerate() {
        separate(index, spec, out);
        if spec.plus_v || spec.sharp_v {
            out.extend_from_slice(name.as_bytes().unwrap_or_default());
            out.push(b':');
        }
        value(item, verb, spec, out, depth + 1)?;
    }
    out.push(b'}');
    Ok(())
}

fn open(arg: &Value, bracket: &str, spec: &Spec, out: &mut Vec<u8>) {
    if spec.sharp_v {
        out.extend(type_of(arg).bytes());
        out.push(b'{');
    } else {
        out.extend(bracket.bytes());
    }
}

fn separate(index: usize, spec: &Spec, out: &mut Vec<u8>) {
    if index > 0 {
        out.extend(if spec.sharp_v { &b", "[..] } else { b" " });
    }
}
