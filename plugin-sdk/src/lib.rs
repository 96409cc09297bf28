//! Write a Pintle plugin in Rust: one type, one function, one macro.
//!
//! A plugin answers a question about the cluster and changes nothing itself. This one says that a
//! ConfigMap is ready once it has the keys that its config names:
//!
//! ```
#![doc = include_str!("../examples/has_keys.rs")]
//! # example();
//! ```
//!
//! | a plugin that | has the trait | and answers with |
//! |---|---|---|
//! | says whether an object is ready | [`Readiness`] | [`Answer`] |
//! | makes chart values, and pools of nodes | [`ValueMapper`] | [`Mapping`] |
//! | changes what was rendered | [`PostRenderer`] | [`Edits`] |
//! | is called around a state, and wants objects meanwhile | [`Hooks`] | [`Step`] |
//! | says what shall be there for an owner | [`Reconciler`] | [`Desired`] |
//!
//! All of them are a [`Plugin`], read the cluster through [`kube`], [`logs`] and [`images`], their large
//! inputs through [`inputs`], and tell conditions, events, actions and status with their answer. The
//! same inputs and reads must give the same answer: what was read is watched, and a change calls again.
//!
//! `pintle plugin build` makes the component (so does `cargo build --profile guest --target
//! wasm32-unknown-unknown`). A panic ends the call, and its message is in the log and in the failure
//! that the host reports. Natively [`fake::Host`] stands in for the host, so tests need no WebAssembly.

#[cfg(test)]
extern crate self as pintle_plugin_sdk;

mod answer;
#[doc(hidden)]
pub mod bindings;
pub mod clock;
pub mod config;
#[cfg(not(target_arch = "wasm32"))]
pub mod fake;
mod hooks;
mod host;
pub mod images;
pub mod inputs;
pub mod kube;
pub mod log;
pub mod logs;
mod manifest;
mod mapper;
mod own;
mod plugin;
mod readiness;
mod reconciler;
mod renderer;
mod report;

pub use answer::{Answer, Failure, Pending};
pub use bindings::{
    hooks::{Outcome, Phase},
    pintle::plugin::types::{
        Action, Blocker, Condition, ConditionStatus, Context, Event, EventKind, ObjectQuery, ObjectRef,
        Operation, Ownership, Release, Report, Retry,
    },
};
pub use hooks::{Around, Hooks, Step};
pub use manifest::{LogAccess, Manifest, ObjectAccess, ReadAccess};
pub use mapper::{Mapping, Pool, ValueMapper};
pub use own::Live;
#[doc(hidden)]
pub use plugin::Adapter;
pub use plugin::{Call, Json, Plugin};
pub use readiness::Readiness;
pub use reconciler::{Desired, Reconciler};
pub use renderer::{Edits, PostRenderer, Rendered};
#[doc(hidden)]
pub use serde;
