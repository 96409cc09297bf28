//! The events of a text, from a port of libyaml whose faults at the end of the text are mended.

use std::io::{Chain, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};

use libyaml_safer::{EventData, Parser, ScalarStyle};

use super::error::{Error, Problem};

/// An event and where it starts, from 0.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) kind: Kind,
    pub(super) line: u64,
    pub(super) column: u64,
}

/// What happens in a stream of YAML.
#[derive(Debug)]
pub(super) enum Kind {
    DocumentStart,
    Alias {
        anchor: String,
    },
    Scalar {
        anchor: Option<String>,
        tag: Option<String>,
        value: String,
        plain: bool,
    },
    Sequence {
        anchor: Option<String>,
    },
    Mapping {
        anchor: Option<String>,
    },
    /// A sequence, mapping or document ends.
    End,
    StreamEnd,
}

/// The events of one text.
pub(super) struct Events<'t> {
    parser: Parser<Chain<&'t [u8], &'static [u8]>>,
    text: &'t str,
    name: &'t str,
    line: u64,
    column: u64,
}

impl<'t> Events<'t> {
    pub(super) fn new(text: &'t str, name: &'t str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // The port fails in a block scalar whose last line has no end, so every text gets one.
        let end: &[u8] = if text.ends_with('\n') { b"" } else { b"\n" };
        let mut parser = Parser::new();
        parser.set_encoding(libyaml_safer::Encoding::Utf8);
        parser.set_input(text.strip_prefix('\u{feff}').unwrap_or(text).as_bytes().chain(end));
        Self { parser, text, name, line: 0, column: 0 }
    }

    /// An error of this text.
    pub(super) fn fail(&self, problem: Problem, line: u64, column: u64) -> Error {
        Error::new(self.name, problem, line, column)
    }

    /// The next event.
    pub(super) fn next(&mut self) -> Result<Event, Error> {
        loop {
            let event = self.parse()?;
            (self.line, self.column) = (event.start_mark.line, event.start_mark.column);
            let end = event.end_mark.index;
            if let Some(kind) = self.kind(event.data, end) {
                return Ok(Event { kind, line: self.line, column: self.column });
            }
        }
    }

    /// The port's next event. A tag before a comma (`[!a, b]`) makes it panic where libyaml has an
    /// error, and so becomes one here.
    fn parse(&mut self) -> Result<libyaml_safer::Event, Error> {
        match catch_unwind(AssertUnwindSafe(|| self.parser.parse())) {
            Ok(Ok(event)) => Ok(event),
            Ok(Err(err)) => Err(Error::syntax(self.name, &err)),
            Err(_) => {
                let problem = "did not find expected whitespace or line break".to_owned();
                Err(self.fail(Problem::Syntax(problem), self.line, self.column))
            }
        }
    }

    fn kind(&self, data: EventData, end: u64) -> Option<Kind> {
        Some(match data {
            EventData::StreamStart { .. } => return None,
            EventData::StreamEnd => Kind::StreamEnd,
            EventData::DocumentStart { .. } => Kind::DocumentStart,
            EventData::DocumentEnd { .. } | EventData::SequenceEnd | EventData::MappingEnd => Kind::End,
            EventData::Alias { anchor } => Kind::Alias { anchor },
            EventData::Scalar { anchor, tag, mut value, plain_implicit, style, .. } => {
                let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                if block && end >= self.text.len() as u64 && self.ends_with_our_break(&value) {
                    value.pop();
                }
                Kind::Scalar { anchor, tag, value, plain: plain_implicit }
            }
            EventData::SequenceStart { anchor, .. } => Kind::Sequence { anchor },
            EventData::MappingStart { anchor, .. } => Kind::Mapping { anchor },
        })
    }

    /// Whether the last break of a block scalar at the end of the text is the one that was added.
    fn ends_with_our_break(&self, value: &str) -> bool {
        let Some(content) = value.strip_suffix('\n') else {
            return false;
        };
        if self.text.ends_with('\n') {
            return false;
        }
        let last_line = self.text.rsplit('\n').next().unwrap_or_default();
        // A last line of indentation alone adds a break only to a scalar that keeps them all.
        let indentation = last_line.bytes().all(|b| b == b' ') && !content.ends_with(' ');
        !indentation || content.is_empty() || content.ends_with('\n')
    }
}
