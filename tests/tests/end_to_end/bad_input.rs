//! Bad input: what the operator says of it, what stays applied, and that mending it is enough.
//!
//! [`table::ROWS`] holds one row a fault and one test has each row's name. `tests/BAD_INPUT.md` is
//! written from it.

#[path = "bad_input/case.rs"]
mod case;
#[path = "bad_input/chart.rs"]
pub(crate) mod chart;
#[path = "bad_input/charts.rs"]
mod charts;
#[path = "bad_input/cluster.rs"]
mod cluster;
#[path = "bad_input/document.rs"]
mod document;
#[path = "bad_input/operators.rs"]
mod operators;
#[path = "bad_input/owners.rs"]
mod owners;
#[path = "bad_input/plugins.rs"]
mod plugins;
#[path = "bad_input/registry.rs"]
mod registry;
#[path = "bad_input/repositories.rs"]
mod repositories;
#[path = "../../../host/source/tests/fetch/server.rs"]
#[allow(dead_code, reason = "of the source crate's tests, of which a part is used here")]
pub(crate) mod server;
#[path = "bad_input/table.rs"]
mod table;
#[path = "bad_input/templates.rs"]
mod templates;

#[path = "../../../host/plugin/tests/plugin/encode.rs"]
#[allow(dead_code, reason = "of the plugin crate's tests, of which a part is used here")]
pub(crate) mod encode;
