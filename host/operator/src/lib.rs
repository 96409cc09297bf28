//! The controllers: fetch, map, render, plan, apply, report. The only crate that joins what decides
//! with what acts.

mod apply;
mod charts;
mod code_cache;
mod context;
mod edits;
mod error_text;
mod fetch;
mod front;
mod images;
mod ledger;
mod lookup;
mod map;
mod memory;
mod metrics;
mod options;
mod pass;
mod plugins;
mod queue;
mod record;
mod render;
mod report;
mod run;
mod server;
mod values_from;
mod watches;

pub use options::Options;
pub use pintle_cluster::Reach;
pub use pintle_plugin::Compiler;
pub use run::{Error, masks, run};
pub use server::ServeError;
pub use watches::file::{WatchesError, read as read_watches};
