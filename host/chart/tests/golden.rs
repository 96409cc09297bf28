//! Public charts rendered as `helm template` renders them, byte for byte.
//!
//! The charts and Helm's answers lie outside of the project: in `conformance/charts` of the folder that
//! `PINTLE_SHARED` names, or of `shared` beside the checkout. Without them these tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use flate2::read::GzDecoder;
use pintle_chart::{
    Capabilities, Chart, Compiled, Files, Order, Printed, Release, RenderInput, Values,
    capabilities::KubeVersion, plain, values,
};
use pintle_template::{NoCluster, Run};
use serde_json::Value;

/// The folder of the charts, where it is present.
fn folder() -> Option<PathBuf> {
    let beside = || {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let up = checkout.canonicalize().ok()?;
        up.ancestors().map(|folder| folder.join("shared")).find(|shared| shared.is_dir())
    };
    let shared = std::env::var_os("PINTLE_SHARED").map(PathBuf::from).or_else(beside)?;
    Some(shared.join("conformance/charts")).filter(|folder| folder.is_dir())
}

/// The cases of a list, or nothing where the charts are absent.
fn cases(list: &str) -> Option<(PathBuf, Vec<Value>)> {
    let Some(folder) = folder() else {
        eprintln!("skipped: {list} is in conformance/charts of PINTLE_SHARED, which is absent");
        return None;
    };
    let text = fs::read_to_string(folder.join(list)).unwrap();
    let cases = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Some((folder, cases))
}

fn read(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_some_and(|end| end == "gz") {
        let mut text = String::new();
        GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        return text;
    }
    String::from_utf8(bytes).unwrap()
}

fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or_default()
}

fn user_values(folder: &Path, case: &Value) -> Values {
    let file = case["valuesFile"].as_str().map(|file| values::parse(&read(&folder.join(file))).unwrap());
    let inline = case["values"].as_object().cloned().unwrap_or_default();
    let inline = values::parse(&Value::Object(inline).to_string()).unwrap();
    values::overlay([&file.unwrap_or_default(), &inline])
}

/// What `helm template` does with a case: the result, or the whole text of the error.
fn render(folder: &Path, case: &Value) -> Result<Printed, String> {
    let name = text(case, "release");
    let owner = serde_json::json!({"metadata": {"name": name}});
    if plain::release_name("", &owner).is_ok_and(|allowed| allowed == name) {
        let chart = Chart::from_archive(&fs::read(folder.join(text(case, "chart"))).unwrap());
        let compiled = Compiled::new(Arc::new(chart.map_err(chain)?)).map_err(chain)?;
        let version = text(case, "kubeVersion");
        let kube_version = KubeVersion::parse(version)
            .map_err(|error| format!("invalid kube version '{version}': {error}"))?;
        let more = case["apiVersions"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let release = Release {
            name: name.to_owned(),
            namespace: text(case, "namespace").to_owned(),
            revision: 1,
            is_upgrade: case["isUpgrade"].as_bool().unwrap_or_default(),
        };
        let input = RenderInput {
            release: &release,
            values: &user_values(folder, case),
            capabilities: &Capabilities::assumed(kube_version).with(more),
            files: Files::All,
            order: Order::Install,
            run: Run::new(&NoCluster),
        };
        return compiled.print(&input).map_err(chain);
    }
    Err("invalid release name".to_owned())
}

fn chain(error: impl std::error::Error + 'static) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text = format!("{text}: {error}");
        next = error.source();
    }
    text
}

/// The first line that differs, with both sides.
fn difference(ours: &str, helms: &str) -> String {
    let (mut our, mut helm) = (ours.lines(), helms.lines());
    let mut line = 0;
    loop {
        line += 1;
        match (our.next(), helm.next()) {
            (None, None) => return format!("ends differ: {} and {} bytes", ours.len(), helms.len()),
            (one, other) if one == other => {}
            (one, other) => return format!("line {line}: ours {one:?}, Helm's {other:?}"),
        }
    }
}

/// Runs `check` over all cases on two threads and gives what it says, by case.
fn faults(
    list: &str,
    check: impl Fn(&Path, &Value) -> Result<(), String> + Sync,
) -> Option<(usize, Vec<String>)> {
    let (folder, cases) = cases(list)?;
    let only = std::env::var("PINTLE_CASE").unwrap_or_default();
    let cases: Vec<Value> = cases.into_iter().filter(|case| text(case, "id").contains(&only)).collect();
    let next = AtomicUsize::new(0);
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(fault) = check(&folder, case) {
                        faults.lock().unwrap().push(format!("{}: {fault}", text(case, "id")));
                    }
                }
            });
        }
    });
    let mut faults = faults.into_inner().unwrap();
    faults.sort();
    println!("{list}: {} of {} equal", cases.len() - faults.len(), cases.len());
    Some((cases.len(), faults))
}

#[track_caller]
fn expect_all(list: &str, check: impl Fn(&Path, &Value) -> Result<(), String> + Sync) {
    if let Some((count, faults)) = faults(list, check) {
        let differ = faults.len();
        assert!(faults.is_empty(), "{differ} of {count} cases of {list} differ:\n{}", faults.join("\n"));
    }
}

#[test]
fn public_charts_render_as_helm_renders_them() {
    expect_all("cases.jsonl", |folder, case| {
        let ours = render(folder, case)?;
        let ours = format!("{}\n{}", ours.manifest.trim(), ours.hooks);
        let helms = read(&folder.join(text(case, "gold")));
        if ours == helms { Ok(()) } else { Err(difference(&ours, &helms)) }
    });
}

#[test]
fn notes_are_those_of_helm() {
    let Some((_, notes)) = cases("notes.jsonl") else { return };
    let wanted = |id: &str| notes.iter().find(|note| text(note, "id") == id).map(|note| text(note, "notes"));
    expect_all("cases.jsonl", |folder, case| {
        let ours = render(folder, case)?.notes;
        let helms = wanted(text(case, "id")).unwrap_or_default();
        if ours == helms { Ok(()) } else { Err(difference(&ours, helms)) }
    });
}

#[test]
fn what_helm_refuses_is_refused_with_its_words() {
    expect_all("errors.jsonl", |folder, case| {
        let ours = render(folder, case).err().ok_or("it was rendered")?;
        let helms = text(case, "error");
        // Names of releases are refused before a chart is looked at, in words of our own.
        if helms.starts_with("release name check failed") {
            return if ours == "invalid release name" { Ok(()) } else { Err(ours) };
        }
        // Of YAML that cannot be read we also say where it is.
        let same = match helms.split_once(": error converting") {
            Some((file, problem)) => ours.starts_with(file) && ours.ends_with(problem),
            None => ours == helms,
        };
        if same { Ok(()) } else { Err(format!("ours {ours:?}\n  Helm's {helms:?}")) }
    });
}
