//! The function library of charts: Helm's and Sprig's names, for both dialects.
//!
//! A name that is not here is not known to the parser. Nothing reads a clock, a file or the
//! network: time and randomness come with the run, so that one revision renders the same bytes.

mod args;
mod cases;
mod convert;
mod decimal;
mod dicts;
mod encoding;
mod equal;
mod flow;
mod lists;
mod math;
mod merge;
pub(crate) mod objects;
mod strings;

use crate::function::{Param, Table};

const ANY: Param = Param::Any;
const BOOL: Param = Param::Bool;
const FLOAT: Param = Param::Float;
const INT: Param = Param::Int;
const MAP: Param = Param::Map;
const STRING: Param = Param::String;

/// The library's functions by name.
pub(crate) fn table() -> Table {
    let topics = [
        cases::TABLE,
        convert::TABLE,
        dicts::TABLE,
        encoding::TABLE,
        flow::TABLE,
        lists::TABLE,
        math::TABLE,
        strings::TABLE,
    ];
    topics.into_iter().flatten().copied().collect()
}
