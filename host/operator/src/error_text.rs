//! Errors as people read them: the whole chain on one line.

use std::error::Error;

/// The error and what caused it, joined by colons; a cause that says the same again is left out.
pub(crate) fn one_line(err: &dyn Error) -> String {
    let mut text = err.to_string();
    let mut next = err.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = cause.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
