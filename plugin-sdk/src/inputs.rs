//! Large inputs of a call, besides target and config. Only what was read counts when the host
//! decides whether an answer may be reused.

use serde::de::DeserializeOwned;

use crate::{Failure, host, plugin::parse};

/// The custom resource, without what the host wrote into it.
///
/// # Errors
/// When it does not have the shape of `T`.
pub fn owner<T: DeserializeOwned>() -> Result<T, Failure> {
    parse("the owner", &host::owner())
}

/// Chart values after defaults and earlier mappings.
///
/// # Errors
/// When they do not have the shape of `T`.
pub fn values<T: DeserializeOwned>() -> Result<T, Failure> {
    parse("the chart values", &host::values())
}

/// What an earlier answer saved; nothing the first time.
///
/// # Errors
/// When it does not have the shape of `T`, as after a change of the plugin's own format.
pub fn saved<T: DeserializeOwned>() -> Result<Option<T>, Failure> {
    host::saved().map(|saved| parse("what was saved", &saved)).transpose()
}

/// What this plugin may do, as the Plugin object has it under `spec.grants`.
///
/// # Errors
/// When they do not have the shape of `T`.
pub fn grants<T: DeserializeOwned>() -> Result<T, Failure> {
    parse("the grants", &host::grants())
}
