//! What every other crate of Pintle speaks: custom resources, objects, facts about the cluster,
//! verdicts, blockers, and the names of labels and annotations. No input or output happens here.

pub mod crd;
pub mod facts;
pub mod names;
mod object;
pub mod plugin;
pub mod plugin_policy;
pub mod preflight;
pub mod special_resource;
pub mod special_resource_module;
pub mod status;
mod verdict;
pub mod watch;

pub use facts::{Answer, Facts, Given, LogTail, Query, Read, Record, Recorder};
pub use jiff::Timestamp;
pub use object::{Gvk, NotAnObject, Object, ObjectRef, held_fields};
pub use plugin::Plugin;
pub use plugin_policy::PluginPolicy;
pub use special_resource::SpecialResource;
pub use verdict::{Blocker, Verdict};
pub use watch::Watch;
