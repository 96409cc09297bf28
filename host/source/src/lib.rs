//! Charts from where owners say they are (ConfigMaps, folders, repositories, registries), and plugins.
//!
//! Each kind of repository is one file that knows how to get an index and an archive; which version is
//! meant, whether the bytes are the right ones, and what is kept, is decided once for all of them.

pub mod artifact;
pub mod bundle;
pub mod keyring;
pub mod signature;

mod access;
mod address;
mod aged;
mod attached;
mod cache;
mod charts;
mod config_map;
mod error;
mod folder;
mod images;
mod index;
mod oci;
mod pack;
mod pull;
mod push;
mod registry;
mod remote;
mod repository;
mod settings;
mod store;
mod transport;

pub use access::{Access, Credentials, Tls};
pub use charts::{Found, Online, Outcome, Request, Sources, download};
pub use error::Error;
pub use pack::{PackError, Packed, index, pack};
pub use pintle_chart::digest_of;
pub use remote::RemoteError;
pub use settings::{Settings, SettingsError, read_settings};
pub use store::Store;
pub use transport::Limits;
