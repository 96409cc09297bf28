//! How long public charts take: the whole way, and with the chart parsed once; minimum of some runs, summed.
//!
//! `cargo bench -p pintle-chart`; the charts are in `conformance/charts` of the folder that `PINTLE_SHARED`
//! names. An argument limits the run to charts whose name contains it, `PINTLE_RUNS` sets the runs.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench measures, prints and stops at the first surprise"
)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use pintle_chart::{
    Capabilities, Chart, Compiled, Files, Order, Release, RenderInput, Values, capabilities::KubeVersion,
    values,
};
use pintle_template::{NoCluster, Run};
use serde_json::Value;

/// A case: a chart's archive, and what it is rendered with.
struct Case {
    chart: Vec<u8>,
    release: Release,
    values: Values,
    capabilities: Capabilities,
}

/// Times of the parts of one run.
#[derive(Clone, Copy, Default)]
struct Times {
    load: Duration,
    first: Duration,
    again: Duration,
}

fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("PINTLE_SHARED").map_or(beside, PathBuf::from);
    Some(shared.join("conformance/charts")).filter(|folder| folder.is_dir())
}

fn case(folder: &Path, case: &Value) -> Case {
    let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
    let file = case["valuesFile"].as_str().map(|file| fs::read_to_string(folder.join(file)).unwrap());
    let more = case["apiVersions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let version = KubeVersion::parse(&text("kubeVersion")).unwrap();
    Case {
        chart: fs::read(folder.join(text("chart"))).unwrap(),
        release: Release {
            name: text("release"),
            namespace: text("namespace"),
            revision: 1,
            is_upgrade: case["isUpgrade"].as_bool().unwrap_or_default(),
        },
        values: values::parse(&file.unwrap_or_default()).unwrap(),
        capabilities: Capabilities::assumed(version).with(more),
    }
}

fn once(case: &Case) -> Times {
    let input = RenderInput {
        release: &case.release,
        values: &case.values,
        capabilities: &case.capabilities,
        files: Files::All,
        order: Order::Install,
        run: Run::new(&NoCluster),
    };
    let start = Instant::now();
    let chart = Chart::from_archive(&case.chart).unwrap();
    let compiled = Compiled::new(Arc::new(chart)).unwrap();
    let load = start.elapsed();
    let start = Instant::now();
    compiled.print(&input).unwrap();
    let first = start.elapsed();
    let start = Instant::now();
    compiled.print(&input).unwrap();
    Times { load, first, again: start.elapsed() }
}

fn main() {
    let Some(folder) = folder() else {
        println!("skipped: no conformance/charts (PINTLE_SHARED)");
        return;
    };
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    let runs: usize = std::env::var("PINTLE_RUNS").map_or(5, |runs| runs.parse().unwrap());
    let list = fs::read_to_string(folder.join("cases.jsonl")).unwrap();
    let mut charts: BTreeMap<String, (usize, Times)> = BTreeMap::new();
    for line in list.lines() {
        let json: Value = serde_json::from_str(line).unwrap();
        let name = json["chart"].as_str().unwrap_or_default().to_owned();
        if !name.contains(&wanted) {
            continue;
        }
        let case = case(&folder, &json);
        let all: Vec<Times> = (0..runs).map(|_| once(&case)).collect();
        let least = |part: fn(&Times) -> Duration| all.iter().map(part).min().unwrap_or_default();
        let (count, sum) = charts.entry(name).or_default();
        *count += 1;
        sum.load += least(|times| times.load);
        sum.first += least(|times| times.first);
        sum.again += least(|times| times.again);
    }
    let mut total = Times::default();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    for (name, (count, times)) in &charts {
        let Times { load, first, again } = *times;
        println!(
            "{name} ({count}): load {:.2} ms, first {:.2} ms, again {:.2} ms",
            ms(load),
            ms(first),
            ms(again)
        );
        total.load += load;
        total.first += first;
        total.again += again;
    }
    println!(
        "all: load {:.1} ms, first {:.1} ms, whole way {:.1} ms, parsed once {:.1} ms",
        ms(total.load),
        ms(total.first),
        ms(total.load + total.first),
        ms(total.again)
    );
}
