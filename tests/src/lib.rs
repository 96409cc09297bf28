//! What the end-to-end tests stand on: one control plane a process, an operator a test.

mod arrows;
pub mod account;
pub mod objects;
pub mod requests;
pub mod snapshot;
pub mod stage;

pub use account::Account;
pub use stage::Stage;
