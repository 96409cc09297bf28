//! Fields, map entries and methods: `.a.b`, `$x.a`, `(f).a`.

use std::sync::Arc;

use super::{Exec, Frame, Got};
use crate::ast::{At, Expr, ExprKind};
use crate::error::{Error, ErrorKind};
use crate::value::object::Shape;
use crate::value::{GoObject, MapType, Value, as_map, as_object, invalid};

/// One step of a field chain.
struct Access<'a, 'p> {
    dot: &'a Got,
    /// The whole chain, which errors quote.
    at: At<'p>,
    name: &'a str,
    args: &'p [Expr],
    piped: Option<Got>,
}

impl Access<'_, '_> {
    fn has_arguments(&self) -> bool {
        !self.args.is_empty() || self.piped.is_some()
    }
}

impl<'p> Frame<'_, 'p, '_> {
    /// The value at the end of a chain; the arguments go to its last link, which must be a method.
    pub(super) fn fields(
        &mut self,
        dot: &Got,
        expr: &'p Expr,
        args: &'p [Expr],
        piped: Option<Got>,
    ) -> Exec<Got> {
        self.at = At::Expr(expr);
        if args.is_empty()
            && piped.is_none()
            && let Some(got) = self.entries(dot, expr)
        {
            return Ok(got);
        }
        let (receiver, names) = match &expr.kind {
            ExprKind::Field(names) => (dot.clone(), names),
            ExprKind::Variable(variable) => (self.variable(variable.id, &variable.name)?, &variable.fields),
            ExprKind::Chain { of, fields } => {
                let got = self.operand(dot, of)?;
                // What a chain starts from is an argument without a type: nil in it is nothing.
                let value = if got.value.is_none() { invalid() } else { got.value };
                (Got { value, ..got }, fields)
            }
            _ => return self.operand(dot, expr),
        };
        let Some((last, names)) = names.split_last() else {
            return Ok(receiver);
        };
        let at = At::Expr(expr);
        let start = receiver.value.clone();
        let result = self
            .links(dot, at, receiver, names)
            .and_then(|receiver| self.field(receiver, Access { dot, at, name: last, args, piped }));
        result.map_err(|error| explained(error, expr, &start))
    }

    /// The end of a chain that runs through maps only, which nearly all do; `None` for all others,
    /// errors included.
    fn entries(&self, dot: &Got, expr: &Expr) -> Option<Got> {
        let (start, names) = match &expr.kind {
            ExprKind::Field(names) => (dot, names),
            ExprKind::Variable(variable) => (self.find(variable.id)?, &variable.fields),
            _ => return None,
        };
        let (first, names) = names.split_first()?;
        let mut map_type = as_map(&start.value)?.ty();
        let mut value = as_map(&start.value)?.get(first)?;
        for name in names {
            let map = as_map(&value)?;
            map_type = map.ty();
            let next = map.get(name)?;
            value = next;
        }
        Some(Got { value, interface: map_type != MapType::Strings })
    }

    fn links(&mut self, dot: &Got, at: At<'p>, mut receiver: Got, names: &[Arc<str>]) -> Exec<Got> {
        for name in names {
            receiver = self.field(receiver, Access { dot, at, name, args: &[], piped: None })?;
        }
        Ok(receiver)
    }

    fn field(&mut self, receiver: Got, access: Access<'_, 'p>) -> Exec<Got> {
        let name = access.name;
        if receiver.value.is_undefined() {
            return match self.ctx.run.strict {
                true => self.fail(format!("nil data; no entry for key {}", quoted(name))),
                false => Ok(Got::concrete(invalid())),
            };
        }
        if receiver.value.is_none() {
            return self.fail(format!("nil pointer evaluating interface {{}}.{name}"));
        }
        if let Some(map) = as_map(&receiver.value) {
            if access.has_arguments() {
                return self.fail(format!("{name} is not a method but has arguments"));
            }
            let value = match map.get(name) {
                Some(value) => value,
                None => self.missing_entry(name, map.zero())?,
            };
            return Ok(Got { value, interface: map.ty() != MapType::Strings });
        }
        match as_object(&receiver.value) {
            Some(object) => self.object_field(object, &receiver, access),
            None => self.no_field(name, &receiver),
        }
    }

    fn missing_entry(&self, name: &str, zero: Value) -> Exec<Value> {
        if self.ctx.run.strict {
            return self.fail(format!("map has no entry for key {}", quoted(name)));
        }
        Ok(if zero.is_none() { self.missing() } else { zero })
    }

    fn object_field(&mut self, object: &dyn GoObject, receiver: &Got, access: Access<'_, 'p>) -> Exec<Got> {
        let name = access.name;
        if let Some(signature) = object.method(name) {
            let args = self.arguments(name, signature, access.dot, access.args, access.piped)?;
            let result = object.call(name, self.ctx, &args);
            self.ctx.keep_list(args);
            return result.map(Got::concrete).map_err(|failure| {
                self.at = access.at;
                self.call_failed(name, failure)
            });
        }
        let is_map = object.shape() == Shape::Map;
        if access.has_arguments() && (is_map || object.field(name).is_some()) {
            let what = match is_map {
                true => "is not a method but has arguments",
                false => "has arguments but cannot be invoked as function",
            };
            return self.fail(format!("{name} {what}"));
        }
        match object.field(name) {
            Some(value) => Ok(Got { interface: value.is_none(), value }),
            None if is_map => {
                let value = self.missing_entry(name, object.zero())?;
                Ok(Got { interface: value.is_none(), value })
            }
            None => self.no_field(name, receiver),
        }
    }

    fn no_field<T>(&self, name: &str, receiver: &Got) -> Exec<T> {
        self.fail(format!("can't evaluate field {name} in type {}", receiver.type_name()))
    }
}

/// Adds to the error of a chain which key it probably meant and which values it reads.
fn explained(error: Error, expr: &Expr, start: &Value) -> Error {
    if error.kind() != ErrorKind::Exec || error.frames().len() != 1 {
        return error;
    }
    let near = misspelt(expr, start);
    let error = error.did_you_mean(near.as_deref());
    match expr.values_path() {
        Some(path) => error.reading_values(path),
        None => error,
    }
}

/// The key of a map that is close to the first missing key of a chain.
fn misspelt(expr: &Expr, start: &Value) -> Option<String> {
    let names = match &expr.kind {
        ExprKind::Field(names) => names,
        ExprKind::Variable(variable) => &variable.fields,
        ExprKind::Chain { fields, .. } => fields,
        _ => return None,
    };
    let mut value = start.clone();
    for name in names.iter() {
        let map = as_map(&value)?;
        match map.get(name) {
            Some(next) => value = next,
            None => {
                let keys = map.keys();
                let near = crate::function::closest(name, keys.iter().map(|key| &**key));
                return near.map(str::to_owned);
            }
        }
    }
    None
}

fn quoted(name: &str) -> String {
    crate::quote::quote(name.as_bytes())
}
