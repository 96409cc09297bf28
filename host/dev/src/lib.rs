//! A local control plane with real Kubernetes components, simulated nodes and vendors, and guest builds:
//! what `pintle dev`, `pintle demo`, `pintle plugin build` and the end-to-end tests stand on.

pub mod audit;
pub mod binaries;
pub mod cache;
pub mod cluster;
pub mod faults;
pub mod guest;
pub mod helm;
pub mod nodes;
pub mod openshift;
pub mod polyglot;
pub mod registry;
pub mod simulate;
pub mod stages;

pub use cluster::{ControlPlane, Options};
