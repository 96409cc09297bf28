//! The functions of the host: the real ones inside a component, a fake's everywhere else.
//!
//! They are plain functions, because a component imports exactly the functions that are reachable.

#[cfg(target_arch = "wasm32")]
mod guest;
#[cfg(not(target_arch = "wasm32"))]
mod native;

#[cfg(target_arch = "wasm32")]
pub(crate) use guest::*;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use native::*;
