//! x
pub mod artifact;
