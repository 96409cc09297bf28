//! The functions that need the engine itself: `include`, `tpl`, `required`, `fail`, `lookup`.

use crate::function::{Ctx, Entry, FnError, Param, Table};
use crate::value::{Value, as_text, is_nil};

const STRING: Param = Param::String;
const ANY: Param = Param::Any;

/// The functions by name.
pub(crate) fn table() -> Table {
    Table::from_iter([
        Entry::text("include", &[STRING, ANY], include),
        Entry::text("tpl", &[STRING, ANY], tpl),
        Entry::fixed("required", &[STRING, ANY], required),
        Entry::fixed("fail", &[STRING], fail),
        Entry::fixed("lookup", &[STRING, STRING, STRING, STRING], lookup),
    ])
}

fn include(ctx: &mut Ctx<'_>, args: &[Value], out: &mut Vec<u8>) -> Result<(), FnError> {
    let [name, data] = args else {
        return Err(FnError::arguments());
    };
    ctx.include(&as_text(name).unwrap_or_default(), data.clone(), out)
}

fn tpl(ctx: &mut Ctx<'_>, args: &[Value], out: &mut Vec<u8>) -> Result<(), FnError> {
    let [text, data] = args else {
        return Err(FnError::arguments());
    };
    ctx.tpl(&as_text(text).unwrap_or_default(), data.clone(), out)
}

fn required(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    let [message, value] = args else {
        return Err(FnError::arguments());
    };
    if is_nil(value) || value.as_str() == Some("") {
        return author(ctx, message);
    }
    Ok(value.clone())
}

fn fail(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    let [message] = args else {
        return Err(FnError::arguments());
    };
    author(ctx, message)
}

/// A linter goes on where a render stops: the values it has are not the user's.
fn author(ctx: &Ctx<'_>, message: &Value) -> Result<Value, FnError> {
    if ctx.run().lint {
        return Ok(Value::from(""));
    }
    Err(FnError::author(as_text(message).unwrap_or_default()))
}

fn lookup(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
    let texts: Vec<_> = args.iter().filter_map(as_text).collect();
    let [api_version, kind, namespace, name] = texts.as_slice() else {
        return Err(FnError::arguments());
    };
    ctx.charge(100)?;
    Ok(ctx.run().lookup.lookup(api_version, kind, namespace, name)?)
}
