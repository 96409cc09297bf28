//! Go structs that functions return: what JSON makes of them.

use super::durations::GoDuration;
use super::times::GoTime;
use crate::value::object::GoObject;

/// The text `MarshalJSON` of a type gives, for types that have it.
pub(crate) fn json_text(object: &dyn GoObject) -> Option<String> {
    let any: &dyn std::any::Any = object;
    if let Some(time) = any.downcast_ref::<GoTime>() {
        return Some(time.rfc3339());
    }
    (object.type_name() == "*semver.Version").then(|| object.text()).flatten()
}

/// The number JSON makes of a type, for durations, which are one.
pub(crate) fn json_number(object: &dyn GoObject) -> Option<i64> {
    let any: &dyn std::any::Any = object;
    any.downcast_ref::<GoDuration>().map(|duration| duration.0)
}
