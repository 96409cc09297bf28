//! Draws an error: Helm's line, the source line with a caret, and the chain of callers.

use std::fmt;

use super::{Error, ErrorKind, Frame, line_and_column};

/// Columns of a source line that are shown; longer lines are cut around the mistake.
const WIDTH: usize = 100;

/// Callers that are drawn before the rest is only counted.
const CALLERS: usize = 8;

pub(super) fn error(error: &Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(place) = error.place() else {
        return f.write_str(error.message());
    };
    write!(f, "{}", error.message())?;
    if let Some(note) = &place.note
        && error.kind() != ErrorKind::Author
    {
        write!(f, "\n({note})")?;
    }
    excerpt(place, f)?;
    for hint in error.hints() {
        write!(f, "\n     = {hint}")?;
    }
    let callers = error.frames().get(1..).unwrap_or_default();
    for frame in callers.iter().take(CALLERS) {
        write!(f, "\ncalled from {}", frame.template)?;
        excerpt(frame, f)?;
    }
    match callers.len().saturating_sub(CALLERS) {
        0 => Ok(()),
        more => write!(f, "\n({more} more callers)"),
    }
}

/// Place, line and caret, each on a line of its own.
fn excerpt(frame: &Frame, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (start, len) = frame.mark;
    let (number, byte_column) = line_and_column(&frame.source.text, start);
    let line = frame.source.text.lines().nth(number - 1).unwrap_or_default();
    let column = line.get(..byte_column).unwrap_or(line).chars().count();
    let cut = if column > WIDTH * 3 / 4 { column - WIDTH / 2 } else { 0 };
    let shown: String = line.chars().skip(cut).take(WIDTH).map(visible).collect();
    let rest = shown.chars().count().saturating_sub(column - cut).max(1);
    let carets = "^".repeat(len.clamp(1, rest));
    let gutter = " ".repeat(number.to_string().len().max(4));
    write!(f, "\n{gutter}--> {}:{number}:{}", frame.file(), byte_column + 1)?;
    write!(f, "\n{gutter} |\n{number:>4} | {shown}\n{gutter} | ")?;
    write!(f, "{}{carets}", " ".repeat(column - cut))
}

fn visible(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}
