//! What plugins cost: calls, beside the same guest in a bare loop over wasmtime in the same run; loading from the
//! cache for compiled code; memory while nobody calls, and over a million calls; what a hostile plugin costs others.
//!
//! `cargo xtask bench plugins` builds the guest that is measured and writes `host/plugin/PLUGINS.md`. By
//! itself, `cargo bench -p pintle-plugin --bench plugins` takes the guest from the folder that `PINTLE_GUESTS` names,
//! or from where it was built before; without it nothing is written.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench stops at the first surprise"
)]

#[path = "plugins/bare.rs"]
mod bare;
#[path = "plugins/calls.rs"]
mod calls;
#[path = "../tests/plugin/encode.rs"]
#[allow(dead_code, reason = "of the tests' guests, of which a part is measured")]
mod encode;
#[path = "plugins/start.rs"]
mod start;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// The guest that is measured: ours, in Rust, with its SDK.
const GUEST: &str = "driver_loaded.wasm";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if arguments.get(1).is_some_and(|first| first == "idle") {
        return runtime.block_on(start::idle(Path::new(&arguments[2]), arguments[3].parse().unwrap()));
    }
    let Some(guest) = guest() else {
        return println!("{GUEST} is not there: `cargo xtask guests` builds it; nothing is measured");
    };
    // A part is run by hand while it is worked on: `calls`, `soak` or `start`. The page has all of them.
    let only = std::env::var("PINTLE_BENCH_ONLY").ok();
    let is_wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let report = runtime.block_on(async {
        let mut report = String::new();
        if is_wanted("calls") {
            report += &calls::measure(&guest).await;
        }
        if is_wanted("soak") {
            report += &calls::soak().await;
        }
        if is_wanted("start") {
            report += &start::measure(&guest).await;
        }
        report
    });
    let text = document(guest.len(), &report);
    println!("{text}");
    if only.is_none() {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("PLUGINS.md"), text).unwrap();
    }
}

/// The bytes of the guest; nothing where it was not built.
fn guest() -> Option<Vec<u8>> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest/wasm32-unknown-unknown/guest");
    let folder = std::env::var_os("PINTLE_GUESTS").map_or(built, PathBuf::from);
    fs::read(folder.join(GUEST)).ok()
}

fn document(size: usize, report: &str) -> String {
    format!(
        "# What plugins cost\n\nWritten by `cargo xtask bench plugins`. A bare loop is the same guest over \
         wasmtime with the same pool: the target made into text each time (Pintle keeps it for each version of an \
         object), a fresh store, the call; no grants, no \
         record of reads, no limits, no slots, no other threads. Both sides take turns in one run on one machine: \
         ratios carry over to other machines, times do not. The guest is `driver-loaded` of `plugins/`, {} KB.\n\n\
         {report}",
        size / 1024
    )
}

/// A table of Markdown.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rule = vec!["---".to_owned(); head.len()];
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("{}{}{rows}\n", line(&head), line(&rule))
}

/// p50 and p99 in microseconds.
pub(crate) fn percentiles(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e6;
    (at(50), at(99))
}

/// The one in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Resident memory of this process in MB; 0 where there is no `/proc`.
pub(crate) fn resident() -> f64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<f64>().ok());
    pages.unwrap_or_default() * 4096.0 / 1e6
}
