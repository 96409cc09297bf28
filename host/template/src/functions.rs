//! The function library.

pub(crate) mod objects;

/// The library's functions by name.
pub(crate) fn table() -> crate::function::Table {
    crate::function::Table::default()
}
