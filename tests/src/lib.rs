//! What the end-to-end tests stand on: one control plane a process, an operator a test.

pub mod account;
mod arrows;
pub mod objects;
pub mod requests;
pub mod snapshot;
pub mod stage;
mod wishes;

pub use account::Account;
pub use stage::Stage;
