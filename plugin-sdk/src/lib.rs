//! Write a Pintle plugin in Rust: one struct, one function, one macro.
//!
//! A plugin answers a question about the cluster and changes nothing itself. This one says that a
//! ConfigMap is ready once it has the keys that its config names:
//!
//! ```
//! use pintle_plugin_sdk::{Answer, Blocker, Check, Failure, Manifest, Readiness, export_readiness};
//! use serde::Deserialize;
//! use std::collections::BTreeMap;
//!
//! /// `spec.config` of the Plugin object.
//! #[derive(Default, Deserialize)]
//! #[serde(default, deny_unknown_fields)]
//! struct Config {
//!     keys: Vec<String>,
//! }
//!
//! /// What this plugin looks at in a ConfigMap.
//! #[derive(Deserialize)]
//! struct ConfigMap {
//!     #[serde(default)]
//!     data: BTreeMap<String, String>,
//! }
//!
//! struct HasKeys;
//!
//! impl Readiness for HasKeys {
//!     type Config = Config;
//!
//!     fn describe() -> Manifest {
//!         Manifest::new("has-keys", "0.1.0").reasons(["KeyMissing"])
//!     }
//!
//!     fn check(check: &Check<Config>) -> Result<Answer, Failure> {
//!         let map: ConfigMap = check.target()?;
//!         let missing = check.config.keys.iter().filter(|key| !map.data.contains_key(*key));
//!         let blockers = missing.map(|key| Blocker::new("KeyMissing", format!("the key {key} is not there")));
//!         Ok(Answer::unless(blockers))
//!     }
//! }
//!
//! export_readiness!(HasKeys);
//!
//! // On the machine of its author a plugin is an ordinary function; `fake` stands in for the host.
//! # #[cfg(not(target_arch = "wasm32"))] {
//! use pintle_plugin_sdk::fake::Host;
//! use serde_json::json;
//!
//! let host = Host::new().config(json!({"keys": ["a", "b"]}));
//! let answer = host.check::<HasKeys>(json!({"data": {"a": "1"}})).unwrap();
//! assert_eq!(answer.blockers()[0].message, "the key b is not there");
//! # }
//! ```
//!
//! `cargo build --profile guest --target wasm32-unknown-unknown` makes the component. A panic ends
//! the call, and its message is in the log and in the failure that the host reports.

mod answer;
#[doc(hidden)]
pub mod bindings;
pub mod clock;
#[cfg(not(target_arch = "wasm32"))]
pub mod fake;
mod host;
pub mod inputs;
pub mod kube;
pub mod log;
pub mod logs;
mod manifest;
mod readiness;

pub use answer::{Answer, Failure, Pending};
pub use bindings::pintle::plugin::types::{
    Blocker, Condition, ConditionStatus, Context, Event, EventKind, ObjectQuery, ObjectRef, Operation,
    Release, Retry,
};
pub use manifest::{LogAccess, Manifest, ReadAccess};
#[doc(hidden)]
pub use readiness::{Adapter, is_readiness};
pub use readiness::{Check, Readiness};
