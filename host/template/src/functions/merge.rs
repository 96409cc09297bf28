//! Merging of maps as Go's `mergo` does it, which decides what charts' defaults mean.

use std::sync::Arc;

use super::args::items;
use crate::function::{Ctx, FnError};
use crate::value::print::MAX_DEPTH;
use crate::value::{Map, Value, as_map, as_object, is_nil, same_object};

/// Puts the entries of a source into a target: those the target lacks or has empty, and with
/// `overwrite` the others too. Maps on both sides are merged; what is taken over is shared.
///
/// # Errors
/// For maps nested beyond the limit, as a map within itself is.
pub(super) fn merge_into(
    ctx: &mut Ctx<'_>,
    target: &Value,
    source: &Value,
    overwrite: bool,
) -> Result<(), FnError> {
    Merge { ctx, overwrite }.maps(target, source, 0)
}

struct Merge<'c, 'r> {
    ctx: &'c mut Ctx<'r>,
    overwrite: bool,
}

impl Merge<'_, '_> {
    fn maps(&mut self, target: &Value, source: &Value, depth: usize) -> Result<(), FnError> {
        let (Some(into), Some(from)) = (as_map(target), as_map(source)) else {
            return Ok(());
        };
        if depth > MAX_DEPTH {
            return Err(FnError::limit("value depth", MAX_DEPTH));
        }
        if same_object(target, source) {
            return Ok(());
        }
        let entries = from.snapshot();
        self.ctx.charge(entries.len() as u64 / 4)?;
        for (key, value) in entries {
            if let Some(value) = self.entry(into, &key, value, depth)? {
                self.ctx.entangle(target, &value);
                into.insert(key, value);
            }
        }
        Ok(())
    }

    /// What to put under a key; `None` when the target keeps what it has.
    fn entry(
        &mut self,
        into: &Map,
        key: &Arc<str>,
        value: Value,
        depth: usize,
    ) -> Result<Option<Value>, FnError> {
        if is_nil(&value) {
            return Ok(self.overwrite.then_some(value));
        }
        let Some(present) = into.get(key) else {
            return Ok(Some(value));
        };
        if as_map(&value).is_some() && as_map(&present).is_some() {
            self.maps(&present, &value, depth + 1)?;
        }
        if is_unset(&present) || (self.overwrite && items(&value).is_some()) {
            return Ok(Some(value));
        }
        let both_maps = as_map(&value).is_some() && as_map(&present).is_some();
        Ok((self.overwrite && !both_maps).then_some(value))
    }
}

/// What a merge takes for not there: nil, and what is empty but for structs.
fn is_unset(value: &Value) -> bool {
    as_object(value).is_none() && crate::value::is_empty(value)
}
