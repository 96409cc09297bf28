//! Pipelines, commands and operands.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Parsed, Parser, ROOT};
use crate::ast::{Command, Expr, ExprKind, Fields, Literal, Pipe, Special, Variable, Word};
use crate::lexer::{Kind, Token};
use crate::literal::parse_number;
use crate::quote::{quote, unquote};
use crate::value::string_value;

/// Variables before `=` or `:=`.
type Declared = SmallVec<[Variable; 2]>;

impl<'s> Parser<'s> {
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Parsed<Pipe> {
        let pos = self.peek_solid().pos;
        let mut decl = Declared::new();
        let assign = self.declarations(&mut decl, context)?;
        let start = self.commands.len();
        loop {
            let token = self.take_solid();
            if token.kind == end {
                break;
            }
            if !starts_operand(token.kind) {
                return Err(self.unexpected(&token, context));
            }
            self.back();
            let command = self.command()?;
            self.commands.push(command);
        }
        let commands = self.commands.drain(start..).collect();
        let pipe = Pipe { pos, assign, decl: decl.into_iter().collect(), commands };
        self.check_pipeline(&pipe, context)?;
        Ok(pipe)
    }

    /// The variables before `=` or `:=`, and whether it is the former.
    fn declarations(&mut self, decl: &mut Declared, context: &str) -> Parsed<bool> {
        loop {
            let start = self.next;
            let token = self.peek_solid();
            if token.kind != Kind::Variable {
                self.next = start;
                return Ok(false);
            }
            self.take();
            let next = self.peek_solid();
            match next.kind {
                Kind::Assign | Kind::Declare => {
                    self.take();
                    self.declare(decl, &token);
                    return Ok(next.kind == Kind::Assign);
                }
                Kind::Char if next.text == "," => {
                    self.take();
                    self.declare(decl, &token);
                    self.check_comma(decl, context)?;
                }
                _ => {
                    self.next = start;
                    return Ok(false);
                }
            }
        }
    }

    fn check_comma(&mut self, decl: &[Variable], context: &str) -> Parsed<()> {
        if context != "range" || decl.len() >= 2 {
            return Err(self.error(format!("too many declarations in {context}")));
        }
        match self.peek_solid().kind {
            Kind::Variable | Kind::RightDelim | Kind::RightParen => Ok(()),
            _ => Err(self.error("range can only initialize variables")),
        }
    }

    fn declare(&mut self, decl: &mut Declared, token: &Token<'s>) {
        let variable = self.variable(token);
        self.scope.variables.push(Arc::clone(&variable.name));
        decl.push(variable);
    }

    fn variable(&mut self, token: &Token<'s>) -> Variable {
        let fields = Fields::default();
        if token.text == ROOT {
            return Variable { name: self.names.name(ROOT), id: 0, fields };
        }
        let ids = &mut self.scope.ids;
        let id = ids.iter().position(|name| **name == *token.text).unwrap_or_else(|| {
            ids.push(self.names.name(token.text));
            ids.len() - 1
        });
        let name = ids.get(id).map(Arc::clone).unwrap_or_default();
        Variable { name, id: u32::try_from(id + 1).unwrap_or(u32::MAX), fields }
    }

    fn check_pipeline(&self, pipe: &Pipe, context: &str) -> Parsed<()> {
        if pipe.commands.is_empty() {
            return Err(self.error(format!("missing value for {context}")));
        }
        for (index, command) in pipe.commands.iter().enumerate().skip(1) {
            let value = matches!(
                command.first.kind,
                ExprKind::Bool(_)
                    | ExprKind::Dot
                    | ExprKind::Nil
                    | ExprKind::Number(_)
                    | ExprKind::Str { .. }
            );
            if value {
                let stage = index + 1;
                return Err(self.error(format!("non executable command in pipeline stage {stage}")));
            }
        }
        Ok(())
    }

    fn command(&mut self) -> Parsed<Command> {
        let pos = self.peek_solid().pos;
        let mut first = None;
        let start = self.args.len();
        loop {
            self.peek_solid();
            if let Some(operand) = self.operand()? {
                match first {
                    None => first = Some(operand),
                    Some(_) => self.args.push(operand),
                }
            }
            let token = self.take();
            match token.kind {
                Kind::Space => {}
                Kind::RightDelim | Kind::RightParen => {
                    self.back();
                    break;
                }
                Kind::Pipe => break,
                _ => return Err(self.unexpected(&token, "operand")),
            }
        }
        match first {
            Some(first) => Ok(Command { pos, first, args: self.args.drain(start..).collect() }),
            None => Err(self.error("empty command")),
        }
    }

    fn operand(&mut self) -> Parsed<Option<Expr>> {
        let Some(mut expr) = self.term()? else {
            return Ok(None);
        };
        let start = expr.start;
        let first = self.peek();
        if first.kind != Kind::Field {
            return Ok(Some(expr));
        }
        let mut end = first;
        while self.peek().kind == Kind::Field {
            end = self.take();
        }
        let end = end.pos + end.text.len();
        let begin = if matches!(expr.kind, ExprKind::Field(_)) { start } else { first.pos };
        let fields = self.names.chain(self.source.text.get(begin..end).unwrap_or_default());
        match &mut expr.kind {
            // As in Go, the position moves to the first field that was added.
            ExprKind::Field(own) => *own = fields,
            ExprKind::Variable(variable) => variable.fields = fields,
            ExprKind::Function(_) | ExprKind::Pipe(_) | ExprKind::Chain { .. } => {
                let kind = ExprKind::Chain { of: Box::new(expr), fields };
                return Ok(Some(Expr { pos: first.pos, start, kind }));
            }
            ExprKind::Dot
            | ExprKind::Nil
            | ExprKind::Bool(_)
            | ExprKind::Number(_)
            | ExprKind::Str { .. } => {
                let term = quote(expr.to_string().as_bytes());
                return Err(self.error(format!("unexpected . after term {term}")));
            }
        }
        expr.pos = first.pos;
        Ok(Some(expr))
    }

    fn term(&mut self) -> Parsed<Option<Expr>> {
        let token = self.take_solid();
        let kind = match token.kind {
            Kind::Identifier => ExprKind::Function(self.function(&token)?),
            Kind::Dot => ExprKind::Dot,
            Kind::Nil => ExprKind::Nil,
            Kind::Variable => ExprKind::Variable(self.use_variable(&token)?),
            Kind::Field => ExprKind::Field(self.names.chain(token.text)),
            Kind::Bool => ExprKind::Bool(token.text == "true"),
            Kind::CharConstant | Kind::Complex | Kind::Number => {
                let number = self.names.number(token.text, || parse_number(token.text, token.kind));
                ExprKind::Number(number.map_err(|message| self.error(message))?)
            }
            Kind::LeftParen => {
                let pipe = self.nested(|p| p.pipeline("parenthesized pipeline", Kind::RightParen))?;
                let (pos, kind) = (pipe.pos, ExprKind::Pipe(Box::new(pipe)));
                return Ok(Some(Expr { pos, start: pos, kind }));
            }
            Kind::Str | Kind::RawStr => self.text(&token)?,
            _ => {
                self.back();
                return Ok(None);
            }
        };
        Ok(Some(Expr { pos: token.pos, start: token.pos, kind }))
    }

    fn text(&mut self, token: &Token<'_>) -> Parsed<ExprKind> {
        let is_special = |byte| matches!(byte, b'\\' | b'"' | b'\n');
        let inner = token.text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        if let Some(inner) = inner.filter(|inner| !inner.bytes().any(is_special)) {
            return Ok(ExprKind::Str { literal: Literal::Quoted, value: self.names.text(inner) });
        }
        let value = unquote(token.text).ok_or_else(|| self.error("invalid syntax"))?;
        let literal = Literal::Written(token.text.into());
        Ok(ExprKind::Str { literal, value: string_value(value) })
    }

    fn function(&self, token: &Token<'_>) -> Parsed<Word> {
        let Some(entry) = self.functions.get(token.text) else {
            let error = self.error(format!("function {} not defined", quote(token.text.as_bytes())));
            return Err(error
                .pointing_at(token.pos, token.text.len())
                .did_you_mean(self.functions.closest(token.text)));
        };
        let special = match entry.name {
            "and" => Special::And,
            "or" => Special::Or,
            "call" => Special::Call,
            _ => Special::None,
        };
        Ok(Word { entry, special })
    }

    fn use_variable(&mut self, token: &Token<'s>) -> Parsed<Variable> {
        if token.text == ROOT || self.scope.variables.iter().any(|name| **name == *token.text) {
            return Ok(self.variable(token));
        }
        let known = self.scope.variables.iter().map(|name| &**name);
        let near = crate::function::closest(token.text, known);
        let error = self.error(format!("undefined variable {}", quote(token.text.as_bytes())));
        Err(error.pointing_at(token.pos, token.text.len()).did_you_mean(near))
    }
}

fn starts_operand(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Bool
            | Kind::CharConstant
            | Kind::Complex
            | Kind::Dot
            | Kind::Field
            | Kind::Identifier
            | Kind::Number
            | Kind::Nil
            | Kind::RawStr
            | Kind::Str
            | Kind::Variable
            | Kind::LeftParen
    )
}
