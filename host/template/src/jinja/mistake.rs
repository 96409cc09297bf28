//! minijinja's errors as errors of templates: place, excerpt, chain of callers, and what was meant.

use std::sync::Arc;

use minijinja::{Error as JinjaError, ErrorKind as JinjaKind};

use super::{File, Jinja, library};
use crate::error::{Error, ErrorKind, Frame, Via};
use crate::function::{Failure, FnError, closest};
use crate::program::Source;
use crate::run::Limits;
use crate::value::{Value, as_map};

/// What is known about a render that failed.
pub(super) struct Context<'a> {
    pub(super) engine: &'a Jinja,
    /// The template that was to be rendered, which may be no file of the chart.
    pub(super) file: &'a File,
    pub(super) data: &'a Value,
    pub(super) limits: Limits,
    /// Whether the output met its limit.
    pub(super) full: bool,
}

/// The error of a text that is no template.
pub(super) fn in_file(err: &JinjaError, source: &Arc<Source>) -> Error {
    let (from, to) = match err.range() {
        Some(range) => (range.start, range.end),
        None => line_range(&source.text, err.line().unwrap_or(1)),
    };
    Error::parse(source, from, text_of(err)).pointing_at(from, to.saturating_sub(from))
}

/// The error of a template that could not even start.
pub(super) fn at_start(file: &File, failure: FnError) -> Error {
    let frame = Frame::new(&file.source.name, &file.source, 0, String::new());
    failed(frame, None, failure)
}

/// The error of a name that no template has.
pub(super) fn no_template(engine: &Jinja, name: &str) -> Error {
    let text = format!("template {name:?} does not exist");
    let near = near_template(engine, name);
    Error::without_place(ErrorKind::NoTemplate, text).did_you_mean(near.as_deref())
}

impl Context<'_> {
    /// The error of the template, with the failure of the function it is due to, if any.
    pub(super) fn error(&self, err: &JinjaError, failure: Option<(Arc<str>, FnError)>) -> Error {
        let chain = chain_of(err);
        let mut frames = chain.iter().rev().map(|err| self.frame(err));
        let innermost = frames
            .next()
            .unwrap_or_else(|| Frame::new(&self.file.source.name, &self.file.source, 0, String::new()));
        let cause = chain.last().copied().unwrap_or(err);
        let error = match failure {
            Some((name, failure)) => self.pointed(failed(innermost, Some(&name), failure)),
            None => self.own(innermost, cause),
        };
        frames.fold(error, |error, frame| error.called_from(frame.via(Via::Function)))
    }

    /// The place of one error of the chain.
    fn frame(&self, err: &JinjaError) -> Frame {
        let named = err.name().and_then(|name| self.engine.files.get(name));
        let file = named.unwrap_or(self.file);
        let origin = err.range().and_then(|range| file.printed.origin(&range));
        let text = &file.source.text;
        let (from, to) = origin.unwrap_or_else(|| line_range(text, err.line().unwrap_or(1)));
        let (from, context) = trimmed(text, from, to);
        let shown: String = context.chars().take(60).collect();
        let len = context.lines().next().map_or(0, str::len);
        Frame::new(&file.source.name, &file.source, from, one_line(&shown)).marked(from, len)
    }

    /// An error that minijinja found itself.
    fn own(&self, frame: Frame, err: &JinjaError) -> Error {
        let text = text_of(err);
        let limit = |name: &'static str, value: u64| {
            (ErrorKind::Limit(name), format!("limit of {name} ({value}) is reached"))
        };
        let (kind, message) = match err.kind() {
            JinjaKind::OutOfFuel => limit("steps", self.limits.steps),
            _ if self.full => limit("output", self.limits.output as u64),
            _ if text.contains("recursion limit") => {
                limit("template depth", self.limits.template_depth.min(self.limits.include_depth) as u64)
            }
            JinjaKind::TemplateNotFound => (ErrorKind::NoTemplate, text),
            JinjaKind::SyntaxError => (ErrorKind::Parse, text),
            _ => (ErrorKind::Exec, text),
        };
        let error = Error::at(kind, frame, message.clone());
        match err.kind() {
            JinjaKind::UndefinedError => self.explained(error, &message),
            JinjaKind::UnknownFunction => {
                let name = message.split_whitespace().next().unwrap_or_default();
                error.did_you_mean(closest(name, library::function_names()))
            }
            JinjaKind::TemplateNotFound => {
                let name = message.split('"').nth(1).unwrap_or_default();
                error.did_you_mean(near_template(self.engine, name).as_deref())
            }
            _ => error,
        }
    }

    /// Adds which key was probably meant, and which values were read.
    fn explained(&self, error: Error, message: &str) -> Error {
        match message.split('`').nth(1) {
            Some(path) => with_path(error, path, self.data),
            None => self.pointed(error),
        }
    }

    /// Finds the path that is not there in the text of the expression, where a function of ours refused
    /// it and could not know how it was written.
    fn pointed(&self, error: Error) -> Error {
        if !error.message().contains("undefined") {
            return error;
        }
        let text = error.place().map(|frame| frame.marked_text().to_owned()).unwrap_or_default();
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let words = text.split(|c: char| !is_word(c)).filter(|word| !word.is_empty());
        match { words }.find(|path| is_missing(path, self.data)) {
            Some(path) => with_path(error.saying(format!("`{path}` is undefined")), path, self.data),
            None => error,
        }
    }
}

/// Whether the first of the names is known, and one of the others is not.
fn is_missing(path: &str, data: &Value) -> bool {
    let mut value = data.clone();
    for (index, name) in path.split('.').enumerate() {
        let Some(map) = as_map(&value) else {
            return false;
        };
        match map.get(name) {
            Some(next) => value = next,
            None => return index > 0,
        }
    }
    false
}

/// Adds to an error what is known of a path like `Values.image.tgo`.
fn with_path(error: Error, path: &str, data: &Value) -> Error {
    let names: Vec<&str> = path.split('.').collect();
    let is_name = |name: &&str| name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.is_empty();
    if !names.iter().all(is_name) {
        return error;
    }
    let error = match names.split_first() {
        Some((&"Values", keys)) => {
            error.reading_values(&keys.iter().map(|key| Arc::from(*key)).collect::<Vec<_>>())
        }
        _ => error,
    };
    let mut value = data.clone();
    for name in names {
        let Some(map) = as_map(&value) else {
            return error;
        };
        match map.get(name) {
            Some(next) => value = next,
            None => {
                let keys = map.keys();
                let near = closest(name, keys.iter().map(|key| &**key)).map(str::to_owned);
                return error.did_you_mean(near.as_deref());
            }
        }
    }
    error
}

fn near_template(engine: &Jinja, name: &str) -> Option<String> {
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let wanted = base(name);
    let names: Vec<(String, &str)> = engine.files.keys().map(|path| (base(path), &**path)).collect();
    let near = closest(&wanted, names.iter().map(|(base, _)| base.as_str()))?;
    names.iter().find(|(base, _)| base == near).map(|(_, path)| (*path).to_owned())
}

/// The error of a function, at the place of its call.
fn failed(frame: Frame, name: Option<&str>, failure: FnError) -> Error {
    let note = |name: &str| format!("error calling {name}");
    let frame = match name {
        Some(name) => frame.note(note(name)),
        None => frame,
    };
    let (kind, message) = match *failure.0 {
        Failure::Template { error, note: _ } => return error.called_from(frame.via(Via::Function)),
        Failure::Message(message) => (ErrorKind::Function, message),
        Failure::Author(message) => (ErrorKind::Author, message),
        Failure::NoTemplate(message) => (ErrorKind::NoTemplate, message),
        Failure::NotYet(message) => (ErrorKind::NotYet, message),
        Failure::Limit { name, value } => {
            (ErrorKind::Limit(name), format!("limit of {name} ({value}) is reached"))
        }
        Failure::Cancelled => (ErrorKind::Cancelled, "render was cancelled".to_owned()),
    };
    Error::at(kind, frame, message)
}

/// An error and those it is due to, outermost first, minijinja's only.
fn chain_of(err: &JinjaError) -> Vec<&JinjaError> {
    let mut chain = vec![err];
    let mut next = std::error::Error::source(err);
    while let Some(inner) = next {
        chain.extend(inner.downcast_ref::<JinjaError>());
        next = inner.source();
    }
    chain
}

/// What an error says, without its place.
fn text_of(err: &JinjaError) -> String {
    match err.detail() {
        Some(detail) => detail.to_owned(),
        None => err.kind().to_string(),
    }
}

/// The offsets of a line, from 1.
fn line_range(text: &str, line: usize) -> (usize, usize) {
    let mut start = 0;
    for (index, own) in text.split('\n').enumerate() {
        if index + 1 == line {
            return (start, start + own.len());
        }
        start += own.len() + 1;
    }
    (text.len(), text.len())
}

/// A place without the signs of the tag it is in.
fn trimmed(text: &str, from: usize, to: usize) -> (usize, &str) {
    let part = text.get(from..to.min(text.len())).unwrap_or_default();
    let start = part.trim_start_matches(['{', '%', '-', '+', ' ', '\t', '\n', '\r', '|', '(', ',', '=']);
    let at = from + (part.len() - start.len());
    (at, start.trim_end_matches(['}', '%', '-', ' ', '\t', '\n', '\r']))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
