//! Go structs that functions return: what JSON makes of them.

use crate::value::object::GoObject;

/// The text `MarshalJSON` of a type gives, for types that have it.
pub(crate) fn json_text(object: &dyn GoObject) -> Option<String> {
    let _ = object;
    None
}
