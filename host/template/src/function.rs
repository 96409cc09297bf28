//! The contract between the engine and its functions.
//!
//! A function is a plain `fn` over arguments that already fit its [`Signature`]: the engine checks
//! number and types as Go's reflection does, with Go's texts, so a function may rely on them. Nil
//! and absent arguments both arrive as `None`. A value piped into a call is its last argument.

mod include;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::exec::Got;
use crate::jinja::Running;
use crate::program::{Cache, Dialect, Program, Set};
use crate::run::{Limits, LookupError, Run};
use crate::value::print::{PrintError, print_value};
use crate::value::{Value, as_map, string_value};

/// The body of a template function.
pub type Function = fn(&mut Ctx<'_>, &[Value]) -> Result<Value, FnError>;

/// The body of a function whose result is text: appends it.
pub type Writer = fn(&mut Ctx<'_>, &[Value], &mut Vec<u8>) -> Result<(), FnError>;

/// The body of a function that makes a text of its last argument, which comes apart: appends it.
pub type Filter = fn(&mut Ctx<'_>, &[Value], &[u8], &mut Vec<u8>) -> Result<(), FnError>;

/// The Go type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    /// `interface {}`: anything, nil too.
    Any,
    /// `string`: [`crate::value::as_string`] is `Some`.
    String,
    /// `int`: an `int64` or a float is refused, a literal `3.0` becomes 3.
    Int,
    /// `int64`: an `int` is refused unless it is a literal.
    Int64,
    /// `float64`: an integer is refused unless it is a literal.
    Float,
    /// `bool`
    Bool,
    /// `map[string]interface {}`: [`crate::value::as_map`] is `Some`, or the argument is nil.
    Map,
    /// `[]interface {}`: [`crate::value::as_list`] is `Some`, or the argument is nil.
    List,
    /// An object of this type name, say `sprig.certificate`.
    Object(&'static str),
}

/// The parameters of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Types of the parameters that must be given.
    pub fixed: &'static [Param],
    /// Type of each further argument; `None` where there may be none.
    pub rest: Option<Param>,
}

/// A function under its name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name templates call it by.
    pub name: &'static str,
    /// Its parameters.
    pub signature: Signature,
    /// Its body.
    pub body: Body,
}

/// What a function gives. Text goes where it is wanted without becoming a value on the way, which most text of
/// charts does not need to be.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// A value.
    Value(Function),
    /// Text.
    Text(Writer),
    /// Text made of a text.
    Filter(Filter),
}

/// Functions by name.
#[derive(Clone, Debug, Default)]
pub struct Table {
    entries: HashMap<&'static str, Entry, BuildHasherDefault<NameHasher>>,
}

/// FNV-1a: the keys are our own names, which nobody can choose so that they collide.
#[derive(Clone, Copy, Debug)]
struct NameHasher(u64);

/// Why a function failed.
#[derive(Debug)]
pub struct FnError(pub(crate) Box<Failure>);

/// The kinds of failure, which become different errors of the template.
#[derive(Debug)]
pub(crate) enum Failure {
    /// `error calling f: TEXT`
    Message(String),
    /// `required` and `fail`: the text is the chart author's, for the user.
    Author(String),
    /// A limit of the render: name and value.
    Limit { name: &'static str, value: u64 },
    /// The caller set the cancel flag.
    Cancelled,
    /// A template that does not exist: the whole text.
    NoTemplate(String),
    /// A lookup without an answer so far.
    NotYet(String),
    /// A template the function ran failed; the note says what the function was doing.
    Template { error: Error, note: Option<String> },
}

/// What functions may use of the render they run in.
pub struct Ctx<'r> {
    pub(crate) run: &'r Run<'r>,
    pub(crate) steps: u64,
    pub(crate) dialect: Dialect,
    pub(crate) templates: Arc<Set>,
    cache: Option<&'r Cache>,
    /// The names that are being included right now.
    included: Vec<Arc<str>>,
    /// Variables of the templates that run, the innermost's last: one list for all, which is made once.
    pub(crate) variables: Vec<(u32, Got)>,
    /// Empty lists for the arguments of calls, and for texts of includes: with the room they once had.
    spare_lists: Vec<Vec<Value>>,
    spare_texts: Vec<Vec<u8>>,
    /// Templates within templates right now.
    pub(crate) depth: usize,
    /// The Jinja template that is running, if any.
    pub(crate) jinja: Running<'r>,
    /// Maps that were put something into which may contain them.
    entangled: Vec<Value>,
    stream: Stream,
}

/// Bytes of a text that is kept for the next one; most includes write less.
const SPARE_TEXT: usize = 64 << 10;

/// Maps remembered by [`Ctx::entangle`]; charts that nest more are not leaking by accident.
const MAX_ENTANGLED: usize = 10_000;

/// Bytes that depend on the seed, the file being rendered and how many were drawn before.
///
/// SHA-256 in counter mode: stable over releases of Pintle, which no generator of a crate promises,
/// and stable passwords are the point of a recorded seed.
struct Stream {
    seed: [u8; 32],
    file: Box<str>,
    /// Made of both when it is first needed: few files draw anything.
    key: Option<[u8; 32]>,
    counter: u64,
    block: [u8; 32],
    used: usize,
}

// === impl Signature ===

impl Signature {
    /// Exactly these parameters.
    pub const fn fixed(fixed: &'static [Param]) -> Self {
        Self { fixed, rest: None }
    }

    /// These parameters, then any number of another type.
    pub const fn variadic(fixed: &'static [Param], rest: Param) -> Self {
        Self { fixed, rest: Some(rest) }
    }

    /// The type of the parameter at an index; `None` beyond the last.
    pub fn param(&self, index: usize) -> Option<Param> {
        self.fixed.get(index).copied().or(self.rest)
    }
}

// === impl Entry ===

impl Entry {
    /// A function with exactly these parameters.
    pub const fn fixed(name: &'static str, params: &'static [Param], call: Function) -> Self {
        Self { name, signature: Signature::fixed(params), body: Body::Value(call) }
    }

    /// A function with these parameters, then any number of another type.
    pub const fn variadic(name: &'static str, params: &'static [Param], rest: Param, call: Function) -> Self {
        Self { name, signature: Signature::variadic(params, rest), body: Body::Value(call) }
    }

    /// A function with exactly these parameters that gives text.
    pub const fn text(name: &'static str, params: &'static [Param], write: Writer) -> Self {
        Self { name, signature: Signature::fixed(params), body: Body::Text(write) }
    }

    /// A function with these parameters, then any number of another type, that gives text.
    pub const fn texts(name: &'static str, params: &'static [Param], rest: Param, write: Writer) -> Self {
        Self { name, signature: Signature::variadic(params, rest), body: Body::Text(write) }
    }

    /// A function with exactly these parameters, the last of them a string, that makes text of that one.
    pub const fn filter(name: &'static str, params: &'static [Param], write: Filter) -> Self {
        Self { name, signature: Signature::fixed(params), body: Body::Filter(write) }
    }

    /// The result for arguments that fit the signature.
    ///
    /// # Errors
    /// When the function fails.
    pub fn call(&self, ctx: &mut Ctx<'_>, args: &[Value]) -> Result<Value, FnError> {
        if let Body::Value(call) = self.body {
            return call(ctx, args);
        }
        let mut out = ctx.spare_text();
        self.write(ctx, args, None, &mut out)?;
        ctx.check_len(out.len())?;
        Ok(ctx.text_value(out))
    }

    /// Appends the result of a function that gives text; the last argument may come apart.
    ///
    /// # Errors
    /// When the function fails; what was appended by then stays.
    pub(crate) fn write(
        &self,
        ctx: &mut Ctx<'_>,
        args: &[Value],
        text: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), FnError> {
        match (self.body, text) {
            (Body::Text(write), _) => write(ctx, args, out),
            (Body::Filter(write), Some(text)) => write(ctx, args, text, out),
            (Body::Filter(write), None) => {
                let (last, args) = args.split_last().ok_or_else(FnError::arguments)?;
                write(ctx, args, last.as_bytes().ok_or_else(FnError::arguments)?, out)
            }
            (Body::Value(call), _) => Ok(print_value(&call(ctx, args)?, out)?),
        }
    }
}

// === impl NameHasher ===

impl Default for NameHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 = bytes.iter().fold(self.0, mix);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

// === impl Table ===

impl Table {
    /// The function of a name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// The known name closest to a misspelt one, if one is close: for "did you mean".
    pub fn closest(&self, name: &str) -> Option<&'static str> {
        closest(name, self.entries.keys().copied())
    }

    /// All functions, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }
}

impl Extend<Entry> for Table {
    fn extend<I: IntoIterator<Item = Entry>>(&mut self, entries: I) {
        self.entries.extend(entries.into_iter().map(|entry| (entry.name, entry)));
    }
}

impl FromIterator<Entry> for Table {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        let mut table = Self::default();
        table.extend(entries);
        table
    }
}

/// The candidate at the smallest edit distance, if that is at most a third of the name's length.
pub(crate) fn closest<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    candidates
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= (name.len() / 3).max(1))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edits (a letter more, less, other, or two swapped) between two names, without regard to case.
fn distance(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|name| name.to_ascii_lowercase().into_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut least = at(&above, j) + usize::from(x != y);
            least = least.min(at(&above, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                least = least.min(at(&before, j - 1) + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    at(&above, b.len())
}

// === impl FnError ===

impl FnError {
    /// A failure with this text; the engine adds the function's name and the place.
    pub fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Failure::Message(message.into())))
    }

    /// The chart's author stopped the render with this text: what `fail` and `required` do.
    pub fn author(message: impl Into<String>) -> Self {
        Self(Box::new(Failure::Author(message.into())))
    }

    /// A limit was met.
    pub fn limit(name: &'static str, value: impl TryInto<u64>) -> Self {
        Self(Box::new(Failure::Limit { name, value: value.try_into().unwrap_or(u64::MAX) }))
    }

    /// The engine gave a function other arguments than its signature says.
    pub fn arguments() -> Self {
        Self::new("unexpected arguments")
    }

    pub(crate) fn cancelled() -> Self {
        Self(Box::new(Failure::Cancelled))
    }

    /// The failure in words, for an error that only carries text.
    pub(crate) fn text(&self) -> String {
        match &*self.0 {
            Failure::Message(text)
            | Failure::Author(text)
            | Failure::NoTemplate(text)
            | Failure::NotYet(text) => text.clone(),
            Failure::Limit { name, value } => format!("limit of {name} ({value}) is reached"),
            Failure::Cancelled => "render was cancelled".to_owned(),
            Failure::Template { error, .. } => error.message().to_owned(),
        }
    }

    pub(crate) fn template(error: Error, note: Option<String>) -> Self {
        Self(Box::new(Failure::Template { error, note }))
    }

    pub(crate) fn no_template(message: String) -> Self {
        Self(Box::new(Failure::NoTemplate(message)))
    }
}

impl From<LookupError> for FnError {
    fn from(err: LookupError) -> Self {
        match err {
            LookupError::NotYet(_) => Self(Box::new(Failure::NotYet(err.to_string()))),
            LookupError::Denied(_) | LookupError::Failed(_) => Self::new(err.to_string()),
        }
    }
}

impl From<PrintError> for FnError {
    fn from(err: PrintError) -> Self {
        Self::new(err.to_string())
    }
}

// === impl Ctx ===

impl<'r> Ctx<'r> {
    /// A context for one file of a run; `file` takes part in what random functions give.
    pub fn new(run: &'r Run<'r>, file: &str) -> Self {
        Self {
            run,
            steps: run.limits.steps,
            dialect: Dialect::Helm,
            templates: Arc::default(),
            cache: None,
            included: Vec::new(),
            variables: Vec::new(),
            spare_lists: Vec::new(),
            spare_texts: Vec::new(),
            depth: 0,
            jinja: Running::default(),
            entangled: Vec::new(),
            stream: Stream::new(&run.seed, file),
        }
    }

    /// A context whose `include` and `tpl` see the templates of a program.
    pub(crate) fn for_program(run: &'r Run<'r>, file: &str, program: &'r Program) -> Self {
        Self {
            dialect: program.dialect(),
            templates: Arc::clone(program.templates()),
            cache: Some(program.cache()),
            jinja: Running::new(program.jinja()),
            ..Self::new(run, file)
        }
    }

    /// The run, with time and lookup.
    pub fn run(&self) -> &'r Run<'r> {
        self.run
    }

    /// The limits of the run.
    pub fn limits(&self) -> &'r Limits {
        &self.run.limits
    }

    /// Takes steps from the render's budget; a function whose work grows with its input calls it.
    ///
    /// # Errors
    /// When the budget is spent or the render was cancelled.
    pub fn charge(&mut self, steps: u64) -> Result<(), FnError> {
        if self.run.is_cancelled() {
            return Err(FnError::cancelled());
        }
        match self.steps.checked_sub(steps) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => Err(FnError::limit("steps", self.run.limits.steps)),
        }
    }

    /// A Go string of these bytes, if a render may make one so long.
    ///
    /// # Errors
    /// When it is longer than the limit of the output.
    pub fn text(&self, bytes: impl Into<Vec<u8>>) -> Result<Value, FnError> {
        let bytes = bytes.into();
        self.check_len(bytes.len())?;
        Ok(string_value(bytes))
    }

    /// An empty text with the room an earlier one had; [`Ctx::text_value`] or [`Ctx::keep_text`] takes it back.
    pub(crate) fn spare_text(&mut self) -> Vec<u8> {
        self.spare_texts.pop().unwrap_or_default()
    }

    pub(crate) fn keep_text(&mut self, mut text: Vec<u8>) {
        if text.capacity() <= SPARE_TEXT {
            text.clear();
            self.spare_texts.push(text);
        }
    }

    /// An empty list for arguments; [`Ctx::keep_list`] takes it back.
    pub(crate) fn spare_list(&mut self) -> Vec<Value> {
        self.spare_lists.pop().unwrap_or_else(|| Vec::with_capacity(4))
    }

    pub(crate) fn keep_list(&mut self, mut list: Vec<Value>) {
        list.clear();
        self.spare_lists.push(list);
    }

    /// A text as a Go string.
    pub(crate) fn text_value(&mut self, text: Vec<u8>) -> Value {
        let value = match str::from_utf8(&text) {
            Ok(text) => Value::from(text),
            Err(_) => Value::from_bytes(text.clone()),
        };
        self.keep_text(text);
        value
    }

    /// Guards a text that is about to be made.
    ///
    /// # Errors
    /// When it would be longer than the limit of the output.
    pub fn check_len(&self, len: usize) -> Result<(), FnError> {
        let limit = self.run.limits.output;
        if len > limit { Err(FnError::limit("output", limit as u64)) } else { Ok(()) }
    }

    /// Guards a list that is about to be made.
    ///
    /// # Errors
    /// When it would have more items than the limit.
    pub fn check_items(&self, len: usize) -> Result<(), FnError> {
        let limit = self.run.limits.items;
        if len > limit { Err(FnError::limit("items", limit as u64)) } else { Ok(()) }
    }

    /// Remembers that a map was put something into. Functions that change maps (`set`, `merge`) call
    /// it, so that a map within itself does not outlive the render.
    pub fn entangle(&mut self, map: &Value, with: &Value) {
        let container = with.as_object().is_some();
        if container && as_map(map).is_some() && self.entangled.len() < MAX_ENTANGLED {
            self.entangled.push(map.clone());
        }
    }

    /// Empties the maps of this render that contain themselves, unless `kept` reaches them.
    pub(crate) fn break_cycles(&mut self, kept: &Value) {
        crate::value::cycle::break_own(std::mem::take(&mut self.entangled), kept);
    }

    /// Fills a buffer with the next random bytes of this file.
    pub fn random(&mut self, buffer: &mut [u8]) {
        self.stream.fill(buffer);
    }
}

impl std::fmt::Debug for Ctx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ctx").field("run", self.run).field("steps", &self.steps).finish()
    }
}

// === impl Stream ===

impl Stream {
    fn new(seed: &[u8; 32], file: &str) -> Self {
        Self { seed: *seed, file: file.into(), key: None, counter: 0, block: [0; 32], used: 32 }
    }

    fn key(&mut self) -> [u8; 32] {
        let (seed, file) = (self.seed, &*self.file);
        let key = || Sha256::new().chain_update(seed).chain_update(file).finalize().into();
        *self.key.get_or_insert_with(key)
    }

    fn fill(&mut self, buffer: &mut [u8]) {
        for byte in buffer {
            if self.used == self.block.len() {
                let hash = Sha256::new().chain_update(self.key());
                self.block = hash.chain_update(self.counter.to_le_bytes()).finalize().into();
                self.counter += 1;
                self.used = 0;
            }
            *byte = self.block.get(self.used).copied().unwrap_or_default();
            self.used += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::NoCluster;

    #[test]
    fn a_misspelt_name_has_a_closest_one() {
        let names = ["include", "indent", "nindent", "toYaml", "port", "image"];
        let cases = [
            ("includ", Some("include")),
            ("toyaml", Some("toYaml")),
            ("nindnt", Some("nindent")),
            ("prot", Some("port")),
            ("imgae", Some("image")),
            ("frobnicate", None),
            ("", None),
        ];
        for (name, near) in cases {
            assert_eq!(closest(name, names.into_iter()), near, "{name}");
        }
    }

    #[test]
    fn random_bytes_depend_on_seed_file_and_order_alone() {
        let draw = |seed: u8, file: &str| {
            let run = Run { seed: [seed; 32], ..Run::new(&NoCluster) };
            let mut ctx = Ctx::new(&run, file);
            let mut bytes = [0; 100];
            ctx.random(&mut bytes);
            bytes
        };
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        let run = Run::new(&NoCluster);
        let mut ctx = Ctx::new(&run, "a");
        let (mut first, mut second) = ([0; 40], [0; 60]);
        ctx.random(&mut first);
        ctx.random(&mut second);
        let whole = draw(0, "a");
        assert_eq!([&first[..], &second[..]].concat(), whole);
    }
}
