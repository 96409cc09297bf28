//! Calls: number and types of arguments as Go's reflection checks them, then the function.

use super::{BYTES_PER_STEP, Exec, Frame, Got};
use crate::ast::{At, Expr, ExprKind, Number, Special, Word};
use crate::function::{Param, Signature};
use crate::value::number::{IntegerType, integer_type};
use crate::value::{self, Value, as_list, as_map, as_object, int64, is_string, is_true, nil};

impl<'p> Frame<'_, 'p, '_> {
    pub(super) fn function(
        &mut self,
        dot: &Got,
        word: &'p Word,
        at: At<'p>,
        args: &'p [Expr],
        piped: Option<Got>,
    ) -> Exec<Got> {
        self.step(1)?;
        let name = word.entry.name;
        let values = match word.special {
            Special::And | Special::Or => {
                return self.logic(dot, word, args, piped);
            }
            Special::Call => {
                let written = callee_text(args, piped.as_ref());
                let mut values = self.arguments(name, word.entry.signature, dot, args, piped)?;
                values.insert(0, Value::from(written));
                values
            }
            Special::None => self.arguments(name, word.entry.signature, dot, args, piped)?,
        };
        let result = word.entry.call(self.ctx, &values);
        self.ctx.keep_list(values);
        let value = result.map_err(|failure| {
            self.at = at;
            self.call_failed(name, failure)
        })?;
        if let Some(bytes) = value.as_bytes() {
            let checked = self.ctx.check_len(bytes.len());
            let steps = bytes.len() as u64 / BYTES_PER_STEP;
            checked.and_then(|()| self.ctx.charge(steps)).map_err(|failure| {
                self.at = at;
                self.stopped(failure)
            })?;
        }
        Ok(Got::concrete(value))
    }

    /// `and` and `or` evaluate no argument after the deciding one, and return that.
    fn logic(&mut self, dot: &Got, word: &'p Word, args: &'p [Expr], piped: Option<Got>) -> Exec<Got> {
        self.check_count(word.entry.name, word.entry.signature, args.len(), piped.is_some())?;
        let decides = word.special == Special::Or;
        let mut last = Got::concrete(nil());
        for arg in args {
            last = self.operand(dot, arg)?;
            if is_true(&last.value) == decides {
                return Ok(last);
            }
        }
        Ok(piped.unwrap_or(last))
    }

    /// The arguments of a call, checked against the parameters.
    pub(super) fn arguments(
        &mut self,
        name: &str,
        signature: Signature,
        dot: &Got,
        args: &'p [Expr],
        piped: Option<Got>,
    ) -> Exec<Vec<Value>> {
        self.check_count(name, signature, args.len(), piped.is_some())?;
        let mut values = self.written_arguments(signature, dot, args)?;
        if let Some(piped) = piped {
            let param = signature.param(args.len()).unwrap_or(Param::Any);
            values.push(self.fit(piped, param)?);
        }
        Ok(values)
    }

    /// The arguments that stand in the template.
    pub(super) fn written_arguments(
        &mut self,
        signature: Signature,
        dot: &Got,
        args: &'p [Expr],
    ) -> Exec<Vec<Value>> {
        let mut values = self.ctx.spare_list();
        for (index, arg) in args.iter().enumerate() {
            let param = signature.param(index).unwrap_or(Param::Any);
            values.push(self.argument(dot, arg, param)?);
        }
        Ok(values)
    }

    pub(super) fn check_count(
        &self,
        name: &str,
        signature: Signature,
        given: usize,
        piped: bool,
    ) -> Exec<()> {
        let count = given + usize::from(piped);
        let want = signature.fixed.len();
        if signature.rest.is_some() && count < want {
            return self.fail(format!("wrong number of args for {name}: want at least {want} got {given}"));
        }
        if signature.rest.is_none() && count != want {
            return self.fail(format!("wrong number of args for {name}: want {want} got {count}"));
        }
        Ok(())
    }

    fn argument(&mut self, dot: &Got, expr: &'p Expr, param: Param) -> Exec<Value> {
        self.at = At::Expr(expr);
        match &expr.kind {
            ExprKind::Nil if can_be_nil(param) => Ok(nil()),
            ExprKind::Nil => self.fail(format!("cannot assign nil to {}", type_name(param))),
            ExprKind::Bool(_) | ExprKind::Number(_) | ExprKind::Str { .. } => self.literal(dot, expr, param),
            _ => {
                let got = self.operand(dot, expr)?;
                self.fit(got, param)
            }
        }
    }

    /// A literal takes the type of the parameter, if it can.
    fn literal(&mut self, dot: &Got, expr: &'p Expr, param: Param) -> Exec<Value> {
        let expected = match (&expr.kind, param) {
            (_, Param::Any) => return self.operand(dot, expr).map(|got| got.value),
            (ExprKind::Str { value, .. }, Param::String) => return Ok(value.clone()),
            (ExprKind::Bool(value), Param::Bool) => return Ok(Value::from(*value)),
            (ExprKind::Number(number), Param::Int | Param::Int64 | Param::Float) => {
                match number_as(number, param) {
                    Some(value) => return Ok(value),
                    None if param == Param::Float => "float",
                    None => "integer",
                }
            }
            (_, Param::String) => "string",
            (_, Param::Bool) => "bool",
            (_, Param::Int | Param::Int64) => "integer",
            (_, Param::Float) => "float",
            (_, Param::Map | Param::List | Param::Object(_)) => {
                let name = type_name(param);
                return self.fail(format!("can't handle {expr} for arg of type {name}"));
            }
        };
        self.fail(format!("expected {expected}; found {expr}"))
    }

    /// A value as an argument of that type: Go converts nothing here.
    fn fit(&self, got: Got, param: Param) -> Exec<Value> {
        let value = got.value;
        if value.is_undefined() {
            return match can_be_nil(param) {
                true => Ok(nil()),
                false => self.fail(format!("invalid value; expected {}", type_name(param))),
            };
        }
        if fits(&value, param) {
            return Ok(value);
        }
        let found = if value.is_none() { "interface {}" } else { value::type_of(&value) };
        let expected = type_name(param);
        self.fail(format!("wrong type for value; expected {expected}; got {found}"))
    }
}

/// How the callee of `call` was written; Go knows only the type of a piped one.
fn callee_text(args: &[Expr], piped: Option<&Got>) -> String {
    match (args.first(), piped) {
        (Some(arg), _) => arg.bare().to_string(),
        (None, Some(got)) => match value::as_text(&got.value) {
            Some(text) => text.into_owned(),
            None if got.value.is_undefined() => "<invalid Value>".to_owned(),
            None => format!("<{} Value>", value::type_of(&got.value)),
        },
        (None, None) => String::new(),
    }
}

fn number_as(number: &Number, param: Param) -> Option<Value> {
    match param {
        Param::Int => number.int.map(Value::from),
        Param::Int64 => number.int.map(int64),
        _ => number.float.map(Value::from),
    }
}

fn can_be_nil(param: Param) -> bool {
    matches!(param, Param::Any | Param::Map | Param::List)
}

fn fits(value: &Value, param: Param) -> bool {
    match param {
        Param::Any => true,
        Param::String => is_string(value),
        Param::Int => integer_type(value) == Some(IntegerType::Int),
        Param::Int64 => integer_type(value) == Some(IntegerType::Int64),
        Param::Float => value.is_number() && !value.is_integer(),
        Param::Bool => matches!(value.kind(), minijinja::value::ValueKind::Bool),
        Param::Map => as_map(value).is_some_and(|map| map.ty() != value::MapType::Strings),
        Param::List => as_list(value)
            .is_some_and(|list| matches!(list.ty(), value::ListType::Any | value::ListType::Nil)),
        Param::Object(name) => as_object(value).is_some_and(|object| object.type_name() == name),
    }
}

fn type_name(param: Param) -> &'static str {
    match param {
        Param::Any => "interface {}",
        Param::String => "string",
        Param::Int => "int",
        Param::Int64 => "int64",
        Param::Float => "float64",
        Param::Bool => "bool",
        Param::Map => "map[string]interface {}",
        Param::List => "[]interface {}",
        Param::Object(name) => name,
    }
}
