//! Where charts and plugins come from.
pub mod artifact;
mod stand_in;
pub use stand_in::*;
