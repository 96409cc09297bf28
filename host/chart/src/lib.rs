//! Charts as Helm knows them, as pure functions: bytes become a chart, a chart and values become objects.
//!
//! Nothing here reads files, a clock or a cluster. What templates may ask of the world (`lookup`, time,
//! randomness) comes in as [`pintle_template::Run`].

pub mod annotations;
pub mod archive;
pub mod capabilities;
mod chart;
mod dependencies;
pub mod files;
pub mod ignore;
pub mod manifest;
pub mod metadata;
pub mod order;
pub mod origin;
pub mod plain;
pub mod release;
mod render;
mod schema;
mod scope;
pub mod state;
pub mod values;
mod yaml;

pub use archive::File;
pub use capabilities::Capabilities;
pub use chart::{Chart, ChartError, digest_of};
pub use manifest::{Document, Hook};
pub use metadata::{Dependency, Maintainer, Metadata};
pub use order::Order;
pub use pintle_template::semver;
pub use render::{Compiled, Files, Printed, Release, RenderError, RenderInput, Rendered};
pub use schema::{RefusedChart, Schema, SchemaError, Violation, violations_of};
pub use scope::to_value as go_value;
pub use values::Values;
pub use yaml::{Error as YamlError, text_of};
