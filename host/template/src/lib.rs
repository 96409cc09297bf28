//! The two template languages of Pintle, and YAML as Helm reads and writes it.
//!
//! Pure: text and values in, text out. No clock, no files, no cluster; what a
//! template may ask of the outside (time, randomness, `lookup`) is in [`Run`].

mod ast;
mod builtin;
mod engine_functions;
pub mod error;
mod exec;
pub mod function;
mod functions;
mod jinja;
mod lexer;
mod literal;
mod parser;
mod printf;
mod program;
mod quote;
pub mod re2;
pub mod run;
pub mod semver;
mod stack;
pub mod value;
pub mod yaml;

pub use error::{Error, ErrorKind};
pub use program::{Dialect, Program, Source};
pub use run::{Cancel, Limits, Lookup, LookupError, NoCluster, Run};
