//! Errors of templates: Helm's one line with `{}`, a drawing with `{:#}`.

use std::fmt;
use std::sync::Arc;

use crate::Source;

mod draw;

/// What went wrong where, with the chain of includes that led there.
pub struct Error(Box<Repr>);

#[derive(Debug)]
struct Repr {
    kind: ErrorKind,
    /// What is wrong at the innermost place.
    message: String,
    /// Innermost first.
    frames: Vec<Frame>,
    /// What may help: a name that was probably meant, the line of a value.
    hints: Vec<String>,
    /// Keys below `.Values` that the failing expression reads.
    values_path: Vec<Arc<str>>,
}

/// The kinds of error a caller may want to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text is no template.
    Parse,
    /// A template did what values do not allow.
    Exec,
    /// A function failed.
    Function,
    /// `include` of a name nobody defines.
    NoTemplate,
    /// The chart's author stopped the render with `fail` or `required`.
    Author,
    /// A `lookup` has no answer yet; rendering again helps once it has.
    NotYet,
    /// A limit of the render was met; the name of the limit.
    Limit(&'static str),
    /// The caller cancelled the render.
    Cancelled,
}

/// How a template came to run another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// It did not: the error is here.
    Here,
    /// By `include` or `tpl`, whose text is in the error as Go chains it.
    Function,
    /// By `{{ template }}`, which leaves no trace in Go's texts.
    Template,
}

/// One place of the chain.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Name of the executing template: a file, or what a `define` says.
    pub template: Arc<str>,
    /// Text of the node, as Go quotes it.
    pub context: String,
    /// How the next inner frame was entered.
    pub via: Via,
    source: Arc<Source>,
    pos: usize,
    /// What the drawing underlines: offset and length.
    mark: (usize, usize),
    /// `error calling f`, where a function stands between this place and the message.
    note: Option<String>,
}

// === impl Frame ===

impl Frame {
    pub(crate) fn new(template: &Arc<str>, source: &Arc<Source>, pos: usize, context: String) -> Self {
        Self {
            template: Arc::clone(template),
            source: Arc::clone(source),
            pos,
            mark: (pos, context.len()),
            context,
            via: Via::Here,
            note: None,
        }
    }

    pub(crate) fn starting_at(mut self, start: usize) -> Self {
        self.mark.0 = start;
        self
    }

    /// Underlines these bytes in the drawing.
    pub(crate) fn marked(mut self, start: usize, len: usize) -> Self {
        self.mark = (start, len);
        self
    }

    pub(crate) fn note(mut self, note: String) -> Self {
        self.note = Some(note);
        self
    }

    pub(crate) fn via(mut self, via: Via) -> Self {
        self.via = via;
        self
    }

    /// Name of the source: the file of the chart, or `gotpl` for a text given to `tpl`.
    pub fn file(&self) -> &str {
        &self.source.name
    }

    /// Line, from 1.
    pub fn line(&self) -> usize {
        line_and_column(&self.source.text, self.pos).0
    }

    /// Column in bytes, as Go counts it: from 0.
    pub fn column(&self) -> usize {
        line_and_column(&self.source.text, self.pos).1
    }

    /// The line of the source, without the blanks around it; at most 160 characters.
    pub fn source_line(&self) -> String {
        const SHOWN: usize = 160;
        let line = self.source.text.lines().nth(self.line() - 1).unwrap_or_default();
        line.trim().chars().take(SHOWN).collect()
    }

    /// The part of the source that the drawing underlines.
    pub(crate) fn marked_text(&self) -> &str {
        let (start, len) = self.mark;
        self.source.text.get(start..start + len).unwrap_or_default()
    }

    fn location(&self) -> String {
        format!("{}:{}:{}", self.file(), self.line(), self.column())
    }

    fn executing(&self) -> String {
        let name = crate::quote::quote(self.template.as_bytes());
        format!("executing {name} at <{}>", self.context)
    }
}

/// Line from 1 and column in bytes from 0.
fn line_and_column(text: &str, pos: usize) -> (usize, usize) {
    let before = text.get(..pos).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    (line, before.rsplit('\n').next().map_or(0, str::len))
}

// === impl Error ===

impl Error {
    pub(crate) fn parse(source: &Arc<Source>, pos: usize, message: String) -> Self {
        let frame = Frame::new(&source.name, source, pos, String::new());
        Self::at(ErrorKind::Parse, frame, message)
    }

    pub(crate) fn at(kind: ErrorKind, frame: Frame, message: String) -> Self {
        Self(Box::new(Repr {
            kind,
            message,
            frames: vec![frame],
            hints: Vec::new(),
            values_path: Vec::new(),
        }))
    }

    /// An error without a place in a template: the name given to `render` is unknown.
    pub(crate) fn without_place(kind: ErrorKind, message: String) -> Self {
        Self(Box::new(Repr { kind, message, frames: Vec::new(), hints: Vec::new(), values_path: Vec::new() }))
    }

    pub(crate) fn pointing_at(mut self, pos: usize, len: usize) -> Self {
        if let Some(frame) = self.0.frames.first_mut() {
            frame.pos = pos;
            frame.mark = (pos, len);
        }
        self
    }

    /// The same error in other words.
    pub(crate) fn saying(mut self, message: String) -> Self {
        self.0.message = message;
        self
    }

    pub(crate) fn did_you_mean(self, name: Option<&str>) -> Self {
        match name {
            Some(name) => self.hint(format!("did you mean {name}?")),
            None => self,
        }
    }

    pub(crate) fn reading_values(mut self, path: &[Arc<str>]) -> Self {
        self.0.values_path = path.to_vec();
        self
    }

    /// Adds a line of help to the drawing, say the place a value comes from.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hints.push(hint.into());
        self
    }

    /// Adds the place that called the template the error is in.
    pub(crate) fn called_from(mut self, frame: Frame) -> Self {
        self.0.frames.push(frame);
        self
    }

    /// What sort of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What is wrong, without place.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The chain of places, innermost first.
    pub fn frames(&self) -> &[Frame] {
        &self.0.frames
    }

    /// The place of the mistake itself.
    pub fn place(&self) -> Option<&Frame> {
        self.0.frames.first()
    }

    /// What may help: a name that was probably meant, and what [`Error::hint`] added.
    pub fn hints(&self) -> &[String] {
        &self.0.hints
    }

    /// The keys below `.Values` the failing expression reads, if it reads values: a caller that has
    /// the values files can name file and line.
    pub fn values_path(&self) -> &[Arc<str>] {
        &self.0.values_path
    }

    /// The frames Go's chain shows, outermost first.
    fn chain(&self) -> impl Iterator<Item = &Frame> {
        self.0.frames.iter().rev().filter(|frame| frame.via != Via::Template)
    }

    /// The text Go's own error has: one long line.
    pub(crate) fn go_text(&self) -> String {
        let repr = &*self.0;
        if repr.kind == ErrorKind::Parse && repr.frames.len() == 1 {
            let line = repr.frames.first().map_or(1, Frame::line);
            let file = repr.frames.first().map_or("", |frame| frame.file());
            return format!("template: {file}:{line}: {}", repr.message);
        }
        let mut out = String::new();
        for link in bounded(self.chain().collect()) {
            match link {
                Link::Frame(frame) => {
                    out.push_str(&format!("template: {}: {}: ", frame.location(), frame.executing()));
                    out.extend(frame.note.iter().flat_map(|note| [note.as_str(), ": "]));
                }
                Link::Omitted(count) => out.push_str(&format!("({count} more) ")),
            }
        }
        out.push_str(&repr.message);
        out
    }

    /// Helm's trace: place, node and message on lines of their own, repeated lines once.
    fn trace(&self) -> String {
        let mut steps: Vec<String> = Vec::new();
        let frames: Vec<&Frame> = self.chain().collect();
        let last = frames.len().saturating_sub(1);
        for (index, frame) in frames.iter().enumerate() {
            let message = match &frame.note {
                Some(note) if index < last || self.0.kind == ErrorKind::NoTemplate => {
                    format!("{note}:")
                }
                Some(note) => format!("{note}: {}", self.0.message),
                None => self.0.message.clone(),
            };
            let step = format!("{}\n  {}:\n    {message}", frame.location(), frame.executing());
            if steps.last() != Some(&step) {
                steps.push(step);
            }
        }
        if self.0.kind == ErrorKind::NoTemplate {
            steps.push(self.0.message.clone());
        }
        let omitted = |count| format!("({count} more)");
        let lines = bounded(steps).into_iter().map(|link| match link {
            Link::Frame(step) => step,
            Link::Omitted(count) => omitted(count),
        });
        lines.collect::<Vec<_>>().join("\n").trim().to_owned()
    }
}

enum Link<T> {
    Frame(T),
    Omitted(usize),
}

/// The first and last ten of a long chain: a thousand includes are no message.
fn bounded<T>(chain: Vec<T>) -> Vec<Link<T>> {
    const KEPT: usize = 10;
    let len = chain.len();
    let omitted = len.saturating_sub(2 * KEPT);
    let mut links = Vec::with_capacity(len.min(2 * KEPT + 1));
    for (index, item) in chain.into_iter().enumerate() {
        if omitted > 0 && index == KEPT {
            links.push(Link::Omitted(omitted));
        }
        if omitted == 0 || index < KEPT || index >= len - KEPT {
            links.push(Link::Frame(item));
        }
    }
    links
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return draw::error(self, f);
        }
        let repr = &*self.0;
        match (repr.kind, self.chain().next()) {
            (_, None) => f.write_str(&repr.message),
            (ErrorKind::Parse, Some(frame)) if repr.frames.len() == 1 => {
                // Helm keeps what follows the last colon of Go's sentence; the drawing has all of it.
                let last = repr.message.rsplit(": ").next().unwrap_or_default();
                write!(f, "parse error at ({}:{}): {last}", frame.file(), frame.line())
            }
            (ErrorKind::Author, Some(frame)) => {
                write!(f, "execution error at ({}): {}", frame.location(), repr.message)
            }
            (ErrorKind::Function | ErrorKind::Parse | ErrorKind::NotYet, _) => f.write_str(&self.go_text()),
            (ErrorKind::Exec | ErrorKind::NoTemplate, _) if self.passed_tpl() => f.write_str(&self.go_text()),
            _ => f.write_str(&self.trace()),
        }
    }
}

impl Error {
    /// Helm gives up reformatting where a function put words of its own between two places.
    fn passed_tpl(&self) -> bool {
        let mut notes = self.0.frames.iter().filter_map(|frame| frame.note.as_deref());
        notes.any(|note| note.starts_with("error calling tpl: "))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {}
