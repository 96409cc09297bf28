//! The function library of charts: Helm's and Sprig's names, for both dialects.
//!
//! A name that is not here is not known to the parser. Nothing reads a clock, a file or the
//! network: time and randomness come with the run, so that one revision renders the same bytes.

pub(crate) mod args;
mod cases;
mod convert;
mod crypto;
mod dates;
mod decimal;
mod dicts;
mod durations;
mod encoding;
mod equal;
mod flow;
mod layout;
mod lists;
mod math;
mod merge;
pub(crate) mod objects;
mod paths;
mod random;
mod regexes;
mod semvers;
mod strings;
mod times;
mod tomls;
mod urls;

use crate::function::{Entry, Param, Table};

const ANY: Param = Param::Any;
const BOOL: Param = Param::Bool;
const FLOAT: Param = Param::Float;
const INT: Param = Param::Int;
const LIST: Param = Param::List;
const MAP: Param = Param::Map;
const STRING: Param = Param::String;

/// The functions by topic.
const TOPICS: &[&[Entry]] = &[
    cases::TABLE,
    convert::TABLE,
    crypto::TABLE,
    dates::TABLE,
    dicts::TABLE,
    durations::TABLE,
    encoding::TABLE,
    flow::TABLE,
    lists::TABLE,
    math::TABLE,
    paths::TABLE,
    random::TABLE,
    regexes::TABLE,
    semvers::TABLE,
    strings::TABLE,
    tomls::TABLE,
    urls::TABLE,
];

/// The library's functions by name.
pub(crate) fn table() -> Table {
    TOPICS.iter().copied().flatten().copied().collect()
}

#[cfg(test)]
fn count() -> usize {
    TOPICS.iter().map(|topic| topic.len()).sum()
}

#[cfg(test)]
mod tests;
