//! What it takes to have plugins: loading them from the cache for compiled code, and their memory while nobody
//! calls them.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use pintle_api::plugin::PluginSpec;
use pintle_plugin::{Artifact, CacheKey, CacheOptions, Engine, Options, Origin, Plugin};
use serde_json::json;

use crate::{guest, median, resident, table};

/// Plugins in the largest cluster that is measured.
const MOST: usize = 500;
/// Plugins at a start.
const SOME: usize = 100;
/// Starts that are timed.
const STARTS: usize = 9;

/// The part of the report about having plugins.
pub(crate) async fn measure(component: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let compiled = fill(folder.path(), component).await;
    let mut rows = vec![vec![
        format!("{MOST} distinct plugins compiled, tried, described, each"),
        ms(compiled),
        "-".into(),
    ]];
    let (mut each, mut whole, mut together) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let (times, all) = one_by_one(folder.path(), component).await;
        each.extend(times);
        whole.push(all);
        together.push(all_at_once(folder.path(), component).await);
    }
    let (each, whole, together) = (median(each), median(whole), median(together));
    rows.push(vec!["one plugin from the cache, p50".into(), ms(each), "0.5 ms".into()]);
    rows.push(vec![format!("{SOME} plugins from the cache, one by one"), ms(whole), "50 ms".into()]);
    rows.push(vec![format!("{SOME} plugins from the cache, all at once"), ms(together), "50 ms".into()]);
    let starts = table(&["start", "ms", "budget"], &rows);
    let program = std::env::current_exe().unwrap();
    let mut rows = Vec::new();
    for count in [0, 50, MOST] {
        // A process of its own: what the compiler used must not count.
        let arguments = ["idle".as_ref(), folder.path().as_os_str()];
        let output = Command::new(&program).args(arguments).arg(count.to_string()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        rows.push(text.split_whitespace().map(str::to_owned).chain(["0.3 MB each".to_owned()]).collect());
    }
    let idle = table(
        &["distinct idle plugins", "process, MB", "each, MB", "each, MB of code in files", "budget"],
        &rows,
    );
    format!(
        "## Having them\n\n{starts}{idle}Code lies in files without names, where the disk has such: the kernel reads \
         in what is used of it, and takes it back when memory is short.\n"
    )
}

/// Fills the cache; gives seconds for each plugin.
async fn fill(folder: &Path, component: &[u8]) -> f64 {
    let (engine, began) = (engine(folder), Instant::now());
    for number in 0..MOST {
        drop(load(&engine, artifact(component, number)).await);
    }
    let took = began.elapsed();
    // What was said on first calls is written by threads that nobody waits for.
    let said = || {
        let all = std::fs::read_dir(folder).unwrap().filter_map(Result::ok);
        all.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "said")).count()
    };
    while said() < MOST {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    took.as_secs_f64() / MOST as f64
}

/// Seconds for each plugin, and for all.
async fn one_by_one(folder: &Path, component: &[u8]) -> (Vec<f64>, f64) {
    let (engine, mut times, mut plugins) = (engine(folder), Vec::new(), Vec::new());
    for artifact in artifacts(component) {
        let began = Instant::now();
        plugins.push(load(&engine, artifact).await);
        times.push(began.elapsed().as_secs_f64());
    }
    assert!(plugins.iter().all(|plugin| plugin.origin() == Origin::Cached));
    let all = times.iter().sum();
    (times, all)
}

async fn all_at_once(folder: &Path, component: &[u8]) -> f64 {
    let (engine, artifacts) = (engine(folder), artifacts(component));
    let began = Instant::now();
    let loads = artifacts.into_iter().map(|artifact| {
        let engine = engine.clone();
        tokio::spawn(async move { load(&engine, artifact).await })
    });
    let loads: Vec<_> = loads.collect();
    let mut plugins = Vec::new();
    for load in loads {
        plugins.push(load.await.unwrap());
    }
    began.elapsed().as_secs_f64()
}

/// Loads plugins from the cache, lets them be, and prints their number, the memory of the process, and of each.
pub(crate) async fn idle(folder: &Path, count: usize) {
    let engine = engine(folder);
    let component = guest().unwrap();
    let before = resident();
    let mut plugins = Vec::new();
    for number in 0..count {
        plugins.push(load(&engine, artifact(&component, number)).await);
    }
    drop(component);
    // Threads that only load go after half a second.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (after, of_each) = (resident(), |whole: f64| whole / count.max(1) as f64);
    println!("{count} {after:.1} {:.3} {:.3}", of_each(after - before), of_each(in_files()));
}

/// Memory of this process that is that of files without names, in MB; 0 where there is no `/proc`.
fn in_files() -> f64 {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let sizes = maps.lines().filter(|line| line.ends_with("(deleted)")).filter_map(|line| {
        let (from, to) = line.split_whitespace().next()?.split_once('-')?;
        let at = |digits| u64::from_str_radix(digits, 16).ok();
        Some(at(to)? - at(from)?)
    });
    sizes.sum::<u64>() as f64 / 1e6
}

fn engine(folder: &Path) -> Engine {
    let key = CacheKey::new(&[7; 32]).unwrap();
    let cache = Some(CacheOptions { folder: folder.to_owned(), key });
    Engine::new(&Options { cache, ..Options::default() }).unwrap()
}

async fn load(engine: &Engine, artifact: Artifact) -> Plugin {
    let spec: PluginSpec = serde_json::from_value(json!({"image": "oci://registry.test/guest:1"})).unwrap();
    Plugin::load(engine, artifact, &spec).await.unwrap()
}

fn artifacts(component: &[u8]) -> Vec<Artifact> {
    (0..SOME).map(|number| artifact(component, number)).collect()
}

/// The component with a section that no other one has.
fn artifact(component: &[u8], number: usize) -> Artifact {
    let section = format!("number {number:06}");
    let size = u8::try_from(section.len() + 1).unwrap();
    let bytes = [component, &[0, size, size - 1], section.as_bytes()].concat().into();
    Artifact { name: format!("p{number}"), digest: format!("sha256:{number}"), bytes }
}

fn ms(seconds: f64) -> String {
    format!("{:.2}", seconds * 1e3)
}
