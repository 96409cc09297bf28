//! Why a text could not be read as YAML, and where.

use std::fmt;

use libyaml_safer as libyaml;

/// A text that is not the YAML it should be, with its place.
#[derive(Debug)]
pub struct Error(Box<Repr>);

#[derive(Debug)]
struct Repr {
    name: String,
    place: Option<Place>,
    /// The line Helm would name: Go's parser counts from 0 or 1, by the kind of error.
    go_line: u64,
    problem: Problem,
}

/// Line and column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
}

/// What is wrong with the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Not YAML.
    #[error("{0}")]
    Syntax(String),
    /// An alias of no anchor.
    #[error("unknown anchor '{0}' referenced")]
    UnknownAnchor(String),
    /// An anchor within its own value.
    #[error("anchor '{0}' value contains itself")]
    Cycle(String),
    /// Aliases that expand to far more than is written (limit alias budget).
    #[error("document contains excessive aliasing")]
    Aliases,
    /// Nested too deeply (limit depth).
    #[error("exceeded max depth of {0}")]
    Depth(usize),
    /// A scalar whose tag says another type than its text has.
    #[error("cannot decode {0} `{1}` as a {2}")]
    Tag(&'static str, String, &'static str),
    /// `!!binary` that is not base64.
    #[error("!!binary value contains invalid base64 data")]
    Binary,
    /// A merge of something that is no mapping.
    #[error("map merge requires map or sequence of maps as the value")]
    Merge,
    /// A list or mapping as a key.
    #[error("invalid map key: {0}")]
    CompositeKey(&'static str),
    /// A key JSON has no text for: null, or an integer above int64.
    #[error("unsupported map key of type: {0}")]
    Key(&'static str),
    /// A number JSON has no text for.
    #[error("json: unsupported value: {0}")]
    Number(&'static str),
}

impl Error {
    pub(super) fn new(name: &str, problem: Problem, line: u64, column: u64) -> Self {
        let place = Some(Place { line: line + 1, column: column + 1 });
        Self(Box::new(Repr { name: name.to_owned(), place, go_line: 0, problem }))
    }

    pub(super) fn syntax(name: &str, err: &libyaml::Error) -> Self {
        let mark = err.problem_mark();
        let place = mark.map(|mark| Place { line: mark.line + 1, column: mark.column + 1 });
        let problem = Problem::Syntax(err.problem().to_owned());
        Self(Box::new(Repr { name: name.to_owned(), place, go_line: go_line(err), problem }))
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// Where; `None` when the text holds a character YAML does not know.
    pub fn place(&self) -> Option<Place> {
        self.0.place
    }

    /// The text Go's library has for it, which `fromYaml` gives under `Error`.
    pub fn go_text(&self) -> String {
        let problem = &self.0.problem;
        match problem {
            Problem::Key(_) | Problem::Number(_) => {
                format!("error converting YAML to JSON: {problem}")
            }
            _ if self.0.go_line > 0 => {
                format!("error converting YAML to JSON: yaml: line {}: {problem}", self.0.go_line)
            }
            _ => format!("error converting YAML to JSON: yaml: {problem}"),
        }
    }
}

/// The line in Go's message: none on the first line, and only scanner errors count from 1.
fn go_line(err: &libyaml::Error) -> u64 {
    let scanner = u64::from(err.kind() == libyaml::ErrorKind::Scanner);
    match err.problem_mark() {
        Some(mark) if mark.line != 0 => mark.line + scanner,
        _ => err.context_mark().map_or(0, |mark| mark.line),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.name.is_empty() {
            write!(f, "{}:", self.0.name)?;
        }
        match self.0.place {
            Some(place) => write!(f, "{}:{}: {}", place.line, place.column, self.0.problem),
            None if self.0.name.is_empty() => write!(f, "{}", self.0.problem),
            None => write!(f, " {}", self.0.problem),
        }
    }
}

impl std::error::Error for Error {}
