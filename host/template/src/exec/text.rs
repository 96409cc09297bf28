//! Text on its way: what a command writes goes straight into the output or into the next command, and becomes a
//! value only where one is asked for.

use super::{BYTES_PER_STEP, Exec, Frame, Got};
use crate::ast::{At, Command, ExprKind, Node, Pipe, Word};
use crate::function::Body;
use crate::value::{Value, invalid};

/// What a command of a pipeline hands to the next one.
pub(super) enum Piped {
    Nothing,
    Value(Got),
    /// The text of a Go string.
    Text(Vec<u8>),
}

impl<'p> Frame<'_, 'p, '_> {
    /// Prints what a pipeline without variables gives.
    pub(super) fn print_pipeline(&mut self, dot: &Got, node: &'p Node, pipe: &'p Pipe) -> Exec<()> {
        self.at = At::Pipe(pipe);
        let Some((last, before)) = pipe.commands.split_last() else {
            return Ok(());
        };
        let piped = self.stages(dot, before)?;
        let Some(word) = text_function(last) else {
            let piped = self.value_of(piped);
            let value = self.command(dot, last, piped)?.value;
            let value = if value.is_none() { invalid() } else { value };
            return self.print(node, pipe, &value);
        };
        let from = self.out.len();
        self.write(dot, last, word, piped, None)?;
        self.at = At::Node(node, pipe.pos);
        self.written(from)
    }

    /// What the last of some commands gives.
    pub(super) fn stages(&mut self, dot: &Got, commands: &'p [Command]) -> Exec<Piped> {
        let mut piped = Piped::Nothing;
        for command in commands {
            piped = match text_function(command) {
                Some(word) => {
                    let mut text = self.ctx.spare_text();
                    self.write(dot, command, word, piped, Some(&mut text))?;
                    Piped::Text(text)
                }
                None => {
                    let piped = self.value_of(piped);
                    let got = self.command(dot, command, piped)?;
                    // The end of a command looks into the interface: a nil in it is no value at all.
                    let value = if got.value.is_none() { invalid() } else { got.value };
                    Piped::Value(Got::concrete(value))
                }
            };
        }
        Ok(piped)
    }

    pub(super) fn value_of(&mut self, piped: Piped) -> Option<Got> {
        match piped {
            Piped::Nothing => None,
            Piped::Value(got) => Some(got),
            Piped::Text(text) => Some(Got::concrete(self.ctx.text_value(text))),
        }
    }

    /// Calls a function that gives text, which goes to the output or to a text of its own.
    fn write(
        &mut self,
        dot: &Got,
        command: &'p Command,
        word: &'p Word,
        piped: Piped,
        own: Option<&mut Vec<u8>>,
    ) -> Exec<()> {
        self.at = At::Expr(&command.first);
        self.step(1)?;
        let (values, text) = self.arguments_and_text(dot, command, word, piped)?;
        let out = match own {
            Some(own) => own,
            None => &mut *self.out,
        };
        let from = out.len();
        let result = word.entry.write(self.ctx, &values, text.as_deref(), out);
        let written = out.len().saturating_sub(from);
        self.ctx.keep_list(values);
        if let Some(text) = text {
            self.ctx.keep_text(text);
        }
        result.map_err(|failure| {
            self.at = At::Command(command);
            self.call_failed(word.entry.name, failure)
        })?;
        let checked = self.ctx.check_len(written);
        checked.and_then(|()| self.ctx.charge(written as u64 / BYTES_PER_STEP)).map_err(|failure| {
            self.at = At::Command(command);
            self.stopped(failure)
        })
    }

    /// The arguments of a function that gives text; a text that is piped into a filter stays apart.
    fn arguments_and_text(
        &mut self,
        dot: &Got,
        command: &'p Command,
        word: &'p Word,
        piped: Piped,
    ) -> Exec<(Vec<Value>, Option<Vec<u8>>)> {
        let (name, signature) = (word.entry.name, word.entry.signature);
        match (word.entry.body, piped) {
            (Body::Filter(_), Piped::Text(text)) => {
                self.check_count(name, signature, command.args.len(), true)?;
                Ok((self.written_arguments(signature, dot, &command.args)?, Some(text)))
            }
            (_, piped) => {
                let piped = self.value_of(piped);
                Ok((self.arguments(name, signature, dot, &command.args, piped)?, None))
            }
        }
    }
}

/// The function of a command, if it gives text.
fn text_function(command: &Command) -> Option<&Word> {
    match &command.first.kind {
        ExprKind::Function(word) if !matches!(word.entry.body, Body::Value(_)) => Some(word),
        _ => None,
    }
}
