//! Runs plugins: loads a WASM component, gives it what it was granted and nothing else, calls it
//! within limits, and hands back an answer that was checked.
//!
//! A plugin never writes. It reads through [`pintle_api::Facts`], and each read, misses included,
//! is in the [`CallResult`]: the record is at once the watch set and the transcript of the call.
//!
//! ```no_run
//! # async fn example(bytes: Vec<u8>, spec: pintle_api::plugin::PluginSpec, call: pintle_plugin::Call,
//! #     target: std::sync::Arc<pintle_api::Object>) -> Result<(), Box<dyn std::error::Error>> {
//! use pintle_plugin::{Artifact, Engine, Options, Outcome, Plugin};
//!
//! let engine = Engine::new(&Options::default())?;
//! let artifact = Artifact { name: "driver-loaded".into(), digest: "sha256:…".into(), bytes: bytes.into() };
//! let plugin = Plugin::load(&engine, artifact, &spec).await?;
//! let result = plugin.check(call, target).await;
//! match result.outcome {
//!     Outcome::Answered(checked) => println!("{:?}", checked.verdict),
//!     Outcome::NeedsFacts(reads) => println!("fetch {} facts and call again", reads.len()),
//!     Outcome::Failed(failure) => println!("{failure}, {:?}", failure.retry()),
//! }
//! # Ok(())
//! # }
//! ```

mod ability;
mod bindings;
mod breaker;
mod call;
mod churn;
mod code;
mod engine;
#[cfg(test)]
mod fuzz;
mod grants;
mod input;
pub mod limits;
mod load;
mod manifest;
mod mask;
mod memo;
pub mod policy;
mod reads;
mod seal;
mod selector;
mod slots;
mod state;
mod text;
pub mod transcript;

pub use breaker::{Admission, Breaker, Breakers};
pub use call::{
    Action, Call, CallResult, Called, Checked, Event, Hold, Keyed, Operation, Outcome, Ownership,
    PluginCondition, Release, Report, Save, Stats, StepClock,
    failure::{CallFailure, Retry},
    hooks::{HookOutcome, Phase, Stepped},
    post_renderer::{Edit, PostRendered, Rendered},
    reconciler::Desired,
    value_mapper::{Mapped, Pool, PoolsOverlap, merge_patch, nodes_of_pools},
};
pub use churn::Churn;
pub use code::{
    CacheKey, CacheOptions, ChildError, CompileError, Compiler, Origin, ShortKey, compile_in_child,
};
pub use engine::{Allocation, Engine, EngineError, NotAProfile, Options, Profile, SchemaCheck};
pub use grants::GrantError;
pub use limits::LimitError;
pub use load::{Artifact, Export, LoadError, Plugin};
pub use manifest::{Manifest, ManifestError, Needs};
pub use seal::{Misplaced, SealedValues};
