//! Where a plugin's small memory belongs, and whether it changed.

use serde_json::Value;

use super::{Call, Save};
use crate::{Export, input};

impl Call {
    /// The key under which what a plugin keeps is stored: plugin, function, state, pool and arguments.
    /// The release is the rest of the key, since it is stored with the release.
    #[must_use]
    pub fn saved_key(&self, plugin: &str, function: Export) -> String {
        let args = Value::Object(self.args.clone());
        let parts = [plugin, function.as_str(), &self.state, &self.pool].map(Value::from);
        input::canonical(&Value::Array(parts.into_iter().chain([args]).collect()))
    }
}

impl Save {
    /// What is to be written over what was kept: nothing when both are the same.
    #[must_use]
    pub fn change(&self, before: Option<&Value>) -> Option<Save> {
        let is_same = match self {
            Self::Keep => true,
            Self::Clear => before.is_none(),
            Self::Set(value) => before == Some(value),
        };
        (!is_same).then(|| self.clone())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_bytes_are_not_written() {
        let kept = json!({"a": 1});
        assert_eq!(Save::Keep.change(Some(&kept)), None);
        assert_eq!(Save::Set(kept.clone()).change(Some(&kept)), None);
        assert_eq!(Save::Set(json!(2)).change(Some(&kept)), Some(Save::Set(json!(2))));
        assert_eq!(Save::Set(json!(2)).change(None), Some(Save::Set(json!(2))));
        assert_eq!(Save::Clear.change(None), None);
        assert_eq!(Save::Clear.change(Some(&kept)), Some(Save::Clear));
    }
}
