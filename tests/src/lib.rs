//! What the end-to-end tests stand on: one control plane a process, an operator a test.

mod arrows;
pub mod stage;

pub use stage::Stage;
