//! The two template languages of Pintle, and YAML as Helm reads and writes it.
//!
//! Pure: text and values in, text out. No clock, no files, no cluster; what a
//! template may ask of the outside (time, randomness, `lookup`) is in [`Run`].

pub mod function;
pub mod run;
pub mod value;

pub use run::{Limits, Lookup, LookupError, Run};
