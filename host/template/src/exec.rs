//! Executes a parsed template, with Go's rules for nil, types and scopes.

mod call;
mod field;
mod text;

use std::sync::Arc;

use crate::ast::{At, Branch, Call, Command, Control, Expr, ExprKind, Node, Number, Pipe, Template};
use crate::error::{self, Error, ErrorKind, Via};
use crate::function::{Ctx, Failure, FnError};
use crate::program::Dialect;
use crate::value::number::{IntegerType, integer_type};
use crate::value::object::Shape;
use crate::value::print::{display, print_value};
use crate::value::{self, Value, as_byte_slice, as_list, as_map, as_object, int64, invalid};

/// What Go prints for a value that is not there.
pub(crate) const NO_VALUE: &str = "<no value>";

/// Bytes of text that cost as much as one step: so a render's memory is bounded by its steps.
const BYTES_PER_STEP: u64 = 16;

/// The state of one executing template.
pub(crate) struct Frame<'e, 'p, 'r> {
    ctx: &'e mut Ctx<'r>,
    template: &'p Template,
    /// Where its variables begin among those of the context.
    base: usize,
    at: At<'p>,
    out: &'e mut Vec<u8>,
}

/// A value, and whether Go's reflection sees it through an `interface {}`: only its errors tell.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    value: Value,
    interface: bool,
}

enum Flow {
    Next,
    Break,
    Continue,
}

type Exec<T> = Result<T, Error>;

impl Got {
    fn concrete(value: Value) -> Self {
        Self { value, interface: false }
    }

    fn interface(value: Value) -> Self {
        Self { value, interface: true }
    }

    fn type_name(&self) -> &'static str {
        if self.interface { "interface {}" } else { value::type_of(&self.value) }
    }
}

impl<'e, 'p, 'r> Frame<'e, 'p, 'r> {
    /// Appends the text of a template to `out`.
    ///
    /// # Errors
    /// When the template fails or a limit is met; `out` then has what was written before.
    pub(crate) fn execute(
        ctx: &'e mut Ctx<'r>,
        template: &'p Arc<Template>,
        dot: Value,
        out: &'e mut Vec<u8>,
    ) -> Exec<()> {
        let dot = if dot.is_none() { invalid() } else { dot };
        let dot = Got::concrete(dot);
        let base = ctx.variables.len();
        let mut frame = Frame { ctx, template, base, at: At::Start, out };
        frame.descend()?;
        frame.ctx.variables.push((0, dot.clone()));
        let result = frame.list(&dot, &template.root);
        frame.ctx.variables.truncate(base);
        frame.ctx.depth -= 1;
        result.map(|_| ())
    }

    fn descend(&mut self) -> Exec<()> {
        let limit = self.ctx.run.limits.template_depth;
        if self.ctx.depth >= limit {
            let message = format!("exceeded maximum template depth (limit template depth {limit})");
            return Err(self.error(ErrorKind::Limit("template depth"), message));
        }
        self.ctx.depth += 1;
        Ok(())
    }

    // --- errors and limits ---

    fn frame(&self) -> error::Frame {
        let Template { name, source, .. } = self.template;
        error::Frame::new(name, source, self.at.pos(), self.at.to_string()).starting_at(self.at.start())
    }

    fn error(&self, kind: ErrorKind, message: String) -> Error {
        Error::at(kind, self.frame(), message)
    }

    fn fail<T>(&self, message: impl Into<String>) -> Exec<T> {
        Err(self.error(ErrorKind::Exec, message.into()))
    }

    /// The error of a function, at the place of its call.
    fn call_failed(&self, name: &str, failure: FnError) -> Error {
        let frame = self.frame();
        let note = format!("error calling {name}");
        let (kind, message) = match *failure.0 {
            Failure::Template { error, note: None } => {
                return error.called_from(frame.note(note).via(Via::Function));
            }
            Failure::Template { error, note: Some(own) } => {
                let note = format!("{note}: {own}");
                return error.called_from(frame.note(note).via(Via::Function));
            }
            Failure::Message(message) => (ErrorKind::Function, message),
            Failure::Author(message) => (ErrorKind::Author, message),
            Failure::NoTemplate(message) => (ErrorKind::NoTemplate, message),
            Failure::NotYet(message) => (ErrorKind::NotYet, message),
            Failure::Limit { name, value } => {
                (ErrorKind::Limit(name), format!("limit of {name} ({value}) is reached"))
            }
            Failure::Cancelled => (ErrorKind::Cancelled, "render was cancelled".to_owned()),
        };
        let error = Error::at(kind, frame.note(note), message);
        match self.at.values_path() {
            Some(path) => error.reading_values(path),
            None => error,
        }
    }

    fn step(&mut self, steps: u64) -> Exec<()> {
        self.ctx.charge(steps).map_err(|failure| self.stopped(failure))
    }

    /// The error of a limit, which no function is to blame for.
    fn stopped(&self, failure: FnError) -> Error {
        let (kind, message) = match *failure.0 {
            Failure::Limit { name, value } => {
                (ErrorKind::Limit(name), format!("limit of {name} ({value}) is reached"))
            }
            Failure::Cancelled => (ErrorKind::Cancelled, "render was cancelled".to_owned()),
            Failure::Message(message) => (ErrorKind::Exec, message),
            _ => (ErrorKind::Exec, "render stopped".to_owned()),
        };
        self.error(kind, message)
    }

    fn written(&mut self, from: usize) -> Exec<()> {
        let bytes = self.out.len().saturating_sub(from) as u64;
        self.ctx.check_len(self.out.len()).map_err(|failure| self.stopped(failure))?;
        self.step(bytes / BYTES_PER_STEP)
    }

    // --- nodes ---

    fn list(&mut self, dot: &Got, nodes: &'p [Node]) -> Exec<Flow> {
        for node in nodes {
            self.step(1)?;
            match node {
                Node::Text { start, end } => self.text(*start, *end)?,
                Node::Action(pipe) => self.action(dot, node, pipe)?,
                Node::Template(call) => self.template(dot, call)?,
                Node::Break => return Ok(Flow::Break),
                Node::Continue => return Ok(Flow::Continue),
                Node::Branch(branch) => match self.branch(dot, branch)? {
                    Flow::Next => {}
                    flow => return Ok(flow),
                },
            }
        }
        Ok(Flow::Next)
    }

    fn text(&mut self, start: usize, end: usize) -> Exec<()> {
        let from = self.out.len();
        let text = self.template.source.text.get(start..end).unwrap_or_default();
        self.out.extend_from_slice(text.as_bytes());
        self.written(from)
    }

    fn action(&mut self, dot: &Got, node: &'p Node, pipe: &'p Pipe) -> Exec<()> {
        match pipe.decl.is_empty() {
            true => self.print_pipeline(dot, node, pipe),
            false => self.pipeline(dot, pipe).map(drop),
        }
    }

    fn print(&mut self, node: &'p Node, pipe: &'p Pipe, value: &Value) -> Exec<()> {
        self.at = At::Node(node, pipe.pos);
        let from = self.out.len();
        if value.is_undefined() {
            self.out.extend_from_slice(NO_VALUE.as_bytes());
        } else if as_object(value).is_some_and(|object| object.shape() == Shape::Func) {
            return self.fail(format!("can't print {node} of type {}", value::type_of(value)));
        } else if let Err(err) = print_value(value, self.out) {
            return Err(self.stopped(err.into()));
        }
        self.written(from)
    }

    fn template(&mut self, dot: &Got, call: &'p Call) -> Exec<()> {
        self.at = At::Call(call);
        let Some(template) = self.ctx.templates.get(&call.name) else {
            let name = crate::quote::quote(call.name.as_bytes());
            return self.fail(format!("template {name} not defined"));
        };
        let data = match &call.pipe {
            Some(pipe) => self.pipeline(dot, pipe)?.value,
            None => invalid(),
        };
        let result = {
            let (ctx, out) = (&mut *self.ctx, &mut *self.out);
            crate::stack::grown(|| Frame::execute(ctx, &template, data, out))
        };
        result.map_err(|error| {
            self.at = At::Call(call);
            error.called_from(self.frame().via(Via::Template))
        })
    }

    fn branch(&mut self, dot: &Got, branch: &'p Branch) -> Exec<Flow> {
        let mark = self.ctx.variables.len();
        self.at = At::Pipe(&branch.pipe);
        let got = self.pipeline(dot, &branch.pipe)?;
        let flow = crate::stack::grown(|| match branch.control {
            Control::Range => self.range(dot, branch, &got),
            Control::If | Control::With if !value::is_true(&got.value) => self.list(dot, &branch.otherwise),
            Control::If => self.list(dot, &branch.list),
            Control::With => self.list(&got, &branch.list),
        });
        self.ctx.variables.truncate(mark);
        flow
    }

    // --- range ---

    fn range(&mut self, dot: &Got, branch: &'p Branch, over: &Got) -> Exec<Flow> {
        let ran = if let Some(list) = as_list(&over.value) {
            let interface = matches!(list.ty(), value::ListType::Any | value::ListType::Nil);
            self.range_items(branch, list.items().iter().cloned(), interface)?
        } else if let Some(map) = as_map(&over.value) {
            let interface = map.ty() != value::MapType::Strings;
            let entries = map.snapshot();
            let entries = entries.into_iter().map(|(key, value)| (Value::from(key), value));
            self.rounds(branch, entries, interface)?
        } else if let Some(int) = value::number::as_int(&over.value) {
            self.range_int(branch, int, &over.value)?
        } else if let Some(bytes) = as_byte_slice(&over.value) {
            self.range_items(branch, bytes.iter().map(|byte| value::number::byte(*byte)), false)?
        } else if let Some(object) = as_object(&over.value) {
            match object.shape() {
                Shape::Map | Shape::Slice => self.rounds(branch, object.entries().into_iter(), false)?,
                _ => return self.not_iterable(&over.value),
            }
        } else if value::is_nil(&over.value) {
            None
        } else {
            return self.not_iterable(&over.value);
        };
        match ran {
            Some(flow) => Ok(flow),
            None => self.list(dot, &branch.otherwise),
        }
    }

    fn not_iterable<T>(&self, value: &Value) -> Exec<T> {
        self.fail(format!("range can't iterate over {}", display(value)))
    }

    fn range_items(
        &mut self,
        branch: &'p Branch,
        items: impl Iterator<Item = Value>,
        interface: bool,
    ) -> Exec<Option<Flow>> {
        self.rounds(branch, items.enumerate().map(|(i, item)| (value::int(i), item)), interface)
    }

    fn range_int(&mut self, branch: &'p Branch, count: i64, over: &Value) -> Exec<Option<Flow>> {
        if branch.pipe.decl.len() > 1 {
            return self.fail(format!("can't use {count} to iterate over more than one variable"));
        }
        let wide = integer_type(over) == Some(IntegerType::Int64);
        let item = |i| if wide { int64(i) } else { Value::from(i) };
        self.rounds(branch, (0..count).map(|i| (invalid(), item(i))), false)
    }

    /// Runs the body for each entry; `None` when there is none.
    fn rounds(
        &mut self,
        branch: &'p Branch,
        entries: impl Iterator<Item = (Value, Value)>,
        interface: bool,
    ) -> Exec<Option<Flow>> {
        let mark = self.ctx.variables.len();
        let mut ran = None;
        for (key, item) in entries {
            ran = Some(Flow::Next);
            self.step(1)?;
            let item = Got { value: item, interface };
            self.bind(branch, key, &item)?;
            let flow = self.list(&item, &branch.list)?;
            self.ctx.variables.truncate(mark);
            if matches!(flow, Flow::Break) {
                break;
            }
        }
        Ok(ran)
    }

    fn bind(&mut self, branch: &'p Branch, key: Value, item: &Got) -> Exec<()> {
        let pipe = &branch.pipe;
        let (first, second) = match &*pipe.decl {
            [] => return Ok(()),
            [only] => (only, None),
            [first, second, ..] => (first, Some(second)),
        };
        let key = Got::concrete(key);
        let (one, two) = if second.is_some() { (&key, Some(item)) } else { (item, None) };
        for (variable, got) in [(Some(first), Some(one)), (second, two)] {
            let (Some(variable), Some(got)) = (variable, got) else {
                continue;
            };
            self.set(variable.id, &variable.name, got.clone())?;
        }
        Ok(())
    }

    // --- variables ---

    fn set(&mut self, id: u32, name: &str, got: Got) -> Exec<()> {
        let own = self.ctx.variables.get_mut(self.base..).unwrap_or_default();
        match own.iter_mut().rev().find(|(own, _)| *own == id) {
            Some((_, slot)) => {
                *slot = got;
                Ok(())
            }
            None => self.fail(format!("undefined variable: {name}")),
        }
    }

    fn variable(&self, id: u32, name: &str) -> Exec<Got> {
        match self.find(id) {
            Some(got) => Ok(got.clone()),
            None => self.fail(format!("undefined variable: {name}")),
        }
    }

    fn find(&self, id: u32) -> Option<&Got> {
        let own = self.ctx.variables.get(self.base..).unwrap_or_default();
        let found = own.iter().rev().find(|(own, _)| *own == id);
        found.map(|(_, got)| got)
    }

    // --- pipelines ---

    fn pipeline(&mut self, dot: &Got, pipe: &'p Pipe) -> Exec<Got> {
        self.at = At::Pipe(pipe);
        let piped = self.stages(dot, &pipe.commands)?;
        let got = self.value_of(piped).unwrap_or_else(|| Got::concrete(invalid()));
        for variable in &pipe.decl {
            if pipe.assign {
                self.set(variable.id, &variable.name, got.clone())?;
            } else {
                self.ctx.variables.push((variable.id, got.clone()));
            }
        }
        Ok(got)
    }

    fn command(&mut self, dot: &Got, command: &'p Command, piped: Option<Got>) -> Exec<Got> {
        let Command { first, args, .. } = command;
        match &first.kind {
            ExprKind::Function(word) => {
                self.at = At::Expr(first);
                self.function(dot, word, At::Command(command), args, piped)
            }
            ExprKind::Field(_) | ExprKind::Chain { .. } => self.fields(dot, first, args, piped),
            ExprKind::Variable(variable) if !variable.fields.is_empty() => {
                self.fields(dot, first, args, piped)
            }
            ExprKind::Pipe(_) => {
                self.no_arguments(first, args, piped.as_ref())?;
                self.operand(dot, first)
            }
            _ => {
                self.at = At::Expr(first);
                self.no_arguments(first, args, piped.as_ref())?;
                if matches!(first.kind, ExprKind::Nil) {
                    return self.fail("nil is not a command");
                }
                self.operand(dot, first)
            }
        }
    }

    fn no_arguments(&self, first: &Expr, args: &[Expr], piped: Option<&Got>) -> Exec<()> {
        if args.is_empty() && piped.is_none() {
            return Ok(());
        }
        self.fail(format!("can't give argument to non-function {}", first.bare()))
    }

    /// The value of an operand that is given no arguments.
    fn operand(&mut self, dot: &Got, expr: &'p Expr) -> Exec<Got> {
        self.at = At::Expr(expr);
        Ok(match &expr.kind {
            ExprKind::Dot => dot.clone(),
            ExprKind::Nil => Got::interface(value::nil()),
            ExprKind::Bool(value) => Got::concrete(Value::from(*value)),
            ExprKind::Number(number) => Got::concrete(self.constant(number)?),
            ExprKind::Str { value, .. } => Got::concrete(value.clone()),
            ExprKind::Variable(variable) if variable.fields.is_empty() => {
                self.variable(variable.id, &variable.name)?
            }
            ExprKind::Field(_) | ExprKind::Variable(_) | ExprKind::Chain { .. } => {
                self.fields(dot, expr, &[], None)?
            }
            ExprKind::Function(word) => self.function(dot, word, At::Expr(expr), &[], None)?,
            ExprKind::Pipe(pipe) => crate::stack::grown(|| self.pipeline(dot, pipe))?,
        })
    }

    /// A constant where nothing says which type it has to be.
    fn constant(&self, number: &Number) -> Exec<Value> {
        if let Some((real, imaginary)) = number.complex {
            return Ok(value::object_value(crate::builtin::Complex { real, imaginary }));
        }
        let text = &*number.text;
        let hex = text.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("0x");
        let hex_int = hex && !text.contains(['p', 'P']);
        let looks_float = !hex_int && !text.starts_with('\'') && text.contains(['.', 'e', 'E', 'p', 'P']);
        match (number.float, number.int) {
            (Some(float), _) if looks_float => Ok(Value::from(float)),
            (_, Some(int)) => Ok(Value::from(int)),
            _ => self.fail(format!("{text} overflows int")),
        }
    }

    fn missing(&self) -> Value {
        match self.ctx.dialect {
            Dialect::Helm => value::nil(),
            Dialect::Plain => invalid(),
        }
    }
}
