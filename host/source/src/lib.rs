//! Charts from where owners say they are: ConfigMaps and folders.
//!
//! Each kind of repository is one file that knows how to get an index and an archive; which version is
//! meant, whether the bytes are the right ones, and what is kept, is decided once for all of them.

pub mod artifact;
pub mod bundle;

mod address;
mod cache;
mod charts;
mod config_map;
mod error;
mod folder;
mod index;
mod pack;

pub use charts::{Found, Outcome, Request, Sources};
pub use error::Error;
pub use pack::{PackError, Packed, index, pack};
