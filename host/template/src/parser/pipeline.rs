//! Pipelines, commands and operands.

use std::sync::Arc;

use super::{Parsed, Parser};
use crate::ast::{Command, Expr, ExprKind, Pipe, Special, Variable, Word};
use crate::lexer::{Kind, Token};
use crate::literal::parse_number;
use crate::quote::{quote, unquote};
use crate::value::string_value;

impl<'s> Parser<'s> {
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Parsed<Pipe> {
        let pos = self.peek_solid().pos;
        let mut pipe = Pipe { pos, assign: false, decl: Vec::new(), commands: Vec::new() };
        self.declarations(&mut pipe, context)?;
        loop {
            let token = self.take_solid();
            if token.kind == end {
                break;
            }
            if !starts_operand(token.kind) {
                return Err(self.unexpected(&token, context));
            }
            self.back();
            pipe.commands.push(self.command()?);
        }
        self.check_pipeline(&pipe, context)?;
        Ok(pipe)
    }

    fn declarations(&mut self, pipe: &mut Pipe, context: &str) -> Parsed<()> {
        loop {
            let start = self.next;
            let token = self.peek_solid();
            if token.kind != Kind::Variable {
                self.next = start;
                return Ok(());
            }
            self.take();
            let next = self.peek_solid();
            match next.kind {
                Kind::Assign | Kind::Declare => {
                    self.take();
                    pipe.assign = next.kind == Kind::Assign;
                    self.declare(pipe, &token);
                    return Ok(());
                }
                Kind::Char if next.text == "," => {
                    self.take();
                    self.declare(pipe, &token);
                    self.check_comma(pipe, context)?;
                }
                _ => {
                    self.next = start;
                    return Ok(());
                }
            }
        }
    }

    fn check_comma(&mut self, pipe: &Pipe, context: &str) -> Parsed<()> {
        if context != "range" || pipe.decl.len() >= 2 {
            return Err(self.error(format!("too many declarations in {context}")));
        }
        match self.peek_solid().kind {
            Kind::Variable | Kind::RightDelim | Kind::RightParen => Ok(()),
            _ => Err(self.error("range can only initialize variables")),
        }
    }

    fn declare(&mut self, pipe: &mut Pipe, token: &Token<'s>) {
        let variable = self.variable(token);
        self.scope.variables.push(Arc::clone(&variable.name));
        pipe.decl.push(variable);
    }

    fn variable(&mut self, token: &Token<'s>) -> Variable {
        let free = u32::try_from(self.scope.ids.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = Arc::from(token.text);
        let id = *self.scope.ids.entry(Arc::clone(&name)).or_insert(free);
        Variable { name, id, fields: Vec::new() }
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
        let mut args = Vec::new();
        loop {
            self.peek_solid();
            if let Some(operand) = self.operand()? {
                match first {
                    None => first = Some(operand),
                    Some(_) => args.push(operand),
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
            Some(first) => Ok(Command { pos, first, args }),
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
        let mut fields = Vec::new();
        while self.peek().kind == Kind::Field {
            fields.push(field_name(self.take().text));
        }
        match &mut expr.kind {
            // As in Go, the position moves to the first field that was added.
            ExprKind::Field(own) => own.append(&mut fields),
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
            Kind::Field => ExprKind::Field(vec![field_name(token.text)]),
            Kind::Bool => ExprKind::Bool(token.text == "true"),
            Kind::CharConstant | Kind::Complex | Kind::Number => {
                let number = parse_number(token.text, token.kind);
                ExprKind::Number(number.map_err(|message| self.error(message))?)
            }
            Kind::LeftParen => {
                let pipe = self.nested(|p| p.pipeline("parenthesized pipeline", Kind::RightParen))?;
                let (pos, kind) = (pipe.pos, ExprKind::Pipe(Box::new(pipe)));
                return Ok(Some(Expr { pos, start: pos, kind }));
            }
            Kind::Str | Kind::RawStr => {
                let value = unquote(token.text).ok_or_else(|| self.error("invalid syntax"))?;
                ExprKind::Str { literal: token.text.into(), value: string_value(value) }
            }
            _ => {
                self.back();
                return Ok(None);
            }
        };
        Ok(Some(Expr { pos: token.pos, start: token.pos, kind }))
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
        Ok(Word { entry: *entry, special })
    }

    fn use_variable(&mut self, token: &Token<'s>) -> Parsed<Variable> {
        if self.scope.variables.iter().any(|name| **name == *token.text) {
            return Ok(self.variable(token));
        }
        let known = self.scope.variables.iter().map(|name| &**name);
        let near = crate::function::closest(token.text, known.filter(|name| *name != "$"));
        let error = self.error(format!("undefined variable {}", quote(token.text.as_bytes())));
        Err(error.pointing_at(token.pos, token.text.len()).did_you_mean(near))
    }
}

fn field_name(text: &str) -> Arc<str> {
    Arc::from(text.strip_prefix('.').unwrap_or(text))
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
