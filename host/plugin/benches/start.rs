//! What it takes to have plugins: loading them from the cache for compiled code, and their memory while
//! nobody calls them.
//!
//! `PINTLE_GUESTS=<folder with driver_loaded.wasm> cargo bench -p pintle-plugin --bench start`; without the
//! folder a guest that does nothing is measured.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench stops at the first surprise"
)]

#[path = "../tests/plugin/encode.rs"]
#[allow(dead_code, reason = "of the tests' guests, of which a part is measured")]
mod encode;

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use pintle_api::plugin::PluginSpec;
use pintle_plugin::{Artifact, CacheKey, CacheOptions, Engine, Options, Origin, Plugin};
use serde_json::json;

/// Plugins in the largest cluster that is measured.
const MOST: usize = 500;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match arguments.get(1).map(String::as_str) {
        Some("idle") => runtime.block_on(idle(Path::new(&arguments[2]), arguments[3].parse().unwrap())),
        _ => runtime.block_on(measure()),
    }
}

async fn measure() {
    let folder = tempfile::tempdir().unwrap();
    let component = component();
    println!("component of {} KB", component.len() / 1024);
    let engine = engine(folder.path());
    let began = Instant::now();
    for number in 0..MOST {
        drop(load(&engine, &component, number).await);
    }
    let each = began.elapsed() / u32::try_from(MOST).unwrap();
    println!(
        "{:<48} {:>8.2} ms each",
        format!("{MOST} distinct plugins compiled, tried, described"),
        ms(each)
    );
    drop(engine);
    for count in [1, 100] {
        let engine = self::engine(folder.path());
        let began = Instant::now();
        let mut times = Vec::new();
        for number in 0..count {
            let began = Instant::now();
            let plugin = load(&engine, &component, number).await;
            times.push(began.elapsed());
            assert_eq!(plugin.origin(), Origin::Cached);
        }
        let took = began.elapsed();
        times.sort_unstable();
        let p50 = times[times.len() / 2];
        println!(
            "{:<48} {:>8.2} ms, {:.3} ms p50",
            format!("{count} from the cache, one by one"),
            ms(took),
            ms(p50)
        );
    }
    let engine = self::engine(folder.path());
    let began = Instant::now();
    let loads: Vec<_> = (0..100)
        .map(|number| {
            let (engine, component) = (engine.clone(), component.clone());
            tokio::spawn(async move { load(&engine, &component, number).await })
        })
        .collect();
    for load in loads {
        load.await.unwrap();
    }
    println!("{:<48} {:>8.2} ms", "100 from the cache, all at once", ms(began.elapsed()));
    let program = std::env::current_exe().unwrap();
    for count in [0, 50, MOST] {
        // A process of its own: what the compiler used must not count.
        let output =
            Command::new(&program).args(["idle".as_ref(), folder.path()]).arg(count.to_string()).output();
        print!("{}", String::from_utf8(output.unwrap().stdout).unwrap());
    }
}

/// Loads plugins from the cache, lets them be, and prints the memory of the process.
async fn idle(folder: &Path, count: usize) {
    let engine = engine(folder);
    let component = component();
    let before = resident();
    let mut plugins = Vec::new();
    for number in 0..count {
        plugins.push(load(&engine, &component, number).await);
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    let (after, each) = (resident(), (resident() - before) / count.max(1) as f64);
    println!("{:<48} {after:>8.2} MB, {each:.3} MB each", format!("process with {count} idle plugins"));
}

fn engine(folder: &Path) -> Engine {
    let key = CacheKey::new(&[7; 32]).unwrap();
    Engine::new(&Options {
        cache: Some(CacheOptions { folder: folder.to_owned(), key }),
        ..Options::default()
    })
    .unwrap()
}

async fn load(engine: &Engine, component: &[u8], number: usize) -> Plugin {
    let spec: PluginSpec = serde_json::from_value(json!({"image": "oci://registry.test/guest:1"})).unwrap();
    let bytes = distinct(component, number).into();
    let artifact = Artifact { name: format!("p{number}"), digest: format!("sha256:{number}"), bytes };
    Plugin::load(engine, artifact, &spec).await.unwrap()
}

/// The component with a section that no other one has.
fn distinct(component: &[u8], number: usize) -> Vec<u8> {
    let section = format!("number {number:06}");
    let size = u8::try_from(section.len() + 1).unwrap();
    [component, &[0, size, size - 1], section.as_bytes()].concat()
}

fn component() -> Vec<u8> {
    match std::env::var_os("PINTLE_GUESTS") {
        Some(folder) => std::fs::read(PathBuf::from(folder).join("driver_loaded.wasm")).unwrap(),
        None => encode::guest("ready"),
    }
}

/// Resident memory in MB; 0 where there is no `/proc`.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<f64>().ok());
    pages.unwrap_or_default() * 4096.0 / 1e6
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
