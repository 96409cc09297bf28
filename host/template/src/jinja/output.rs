//! What a Jinja template writes: values as YAML reads them, and where the text goes.

use std::borrow::Cow;
use std::io;

use minijinja::{Error as JinjaError, ErrorKind, Output, State};

use super::{arguments, host};
use crate::function::FnError;
use crate::value::object::as_object;
use crate::value::{Value, nil};
use crate::yaml::json::{Layout, to_json};

/// Bytes of text that cost as much as one step, as in Go templates.
const BYTES_PER_STEP: u64 = 16;

/// The text of a template, up to a limit.
pub(super) struct Sink<'o> {
    out: &'o mut Vec<u8>,
    limit: usize,
    full: bool,
}

impl<'o> Sink<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>, limit: usize) -> Self {
        Self { out, limit, full: false }
    }

    /// Whether something was refused.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }
}

impl io::Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.out.len() + bytes.len() > self.limit {
            self.full = true;
            return Err(io::Error::other("limit of output"));
        }
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a value: minijinja's formatter.
pub(super) fn emit(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), JinjaError> {
    // The other end of `a if b`: what is not there was refused before.
    if value.is_undefined() {
        return Ok(());
    }
    if let Some(text) = value.as_str().filter(|text| (text.len() as u64) < BYTES_PER_STEP) {
        return out.write_str(text).map_err(JinjaError::from);
    }
    let mut written = String::new();
    host::call(state, "print", |ctx| {
        let text = text_of(value)?;
        ctx.check_len(text.len())?;
        ctx.charge(text.len() as u64 / BYTES_PER_STEP)?;
        written = text.into_owned();
        Ok(nil())
    })?;
    out.write_str(&written).map_err(|_| JinjaError::new(ErrorKind::WriteFailure, "cannot write"))
}

/// The text of a value: a string as it is, else what YAML reads as that value (`true`, `null`, `8080`;
/// lists and mappings in flow style).
///
/// # Errors
/// For macros and the like, and for values deeper or longer than the limits.
pub(super) fn text_of(value: &Value) -> Result<Cow<'_, str>, FnError> {
    if let Some(bytes) = value.as_bytes() {
        return Ok(String::from_utf8_lossy(bytes));
    }
    if let Some(text) = as_object(value).and_then(|object| object.text()) {
        return Ok(Cow::Owned(text));
    }
    let value = arguments::golden(value)?;
    let text = to_json(&value, Layout::default()).map_err(|err| FnError::new(err.to_string()))?;
    Ok(Cow::Owned(text))
}
