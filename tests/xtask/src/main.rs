//! `cargo xtask`: the tests and benches of the whole workspace, with what they need built first.
//!
//! No dependencies, so that it runs a second after a clone: it includes the files of `host/dev` that find and build
//! the control plane and the guests.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{env, fs, io};

#[path = "../../../host/dev/src/binaries.rs"]
#[allow(dead_code, unreachable_pub, reason = "a library's file, of which a part is used here")]
mod binaries;
#[path = "../../../host/dev/src/cache.rs"]
#[allow(unreachable_pub, reason = "a library's file")]
mod cache;
#[path = "../../../host/dev/src/guest.rs"]
#[allow(dead_code, unreachable_pub, reason = "a library's file, of which a part is used here")]
mod guest;
#[path = "../../../host/dev/src/helm.rs"]
#[allow(dead_code, unreachable_pub, reason = "a library's file, of which a part is used here")]
mod helm;

/// Names a bench.
const BENCH: &str = "--bench";

const USAGE: &str = "\
usage: cargo xtask COMMAND [ARGUMENTS]

  test [ARGUMENTS]   build control plane and guests, then `cargo test --workspace ARGUMENTS`
  bench [NAME] [ARGUMENTS]
                     build control plane and guests, then `cargo bench --workspace ARGUMENTS`, of the benches with
                     that name where one is named
  bench peers [ARGUMENTS]
                     build control plane, release and other operators, then measure them beside each other
  guests             build the guests of plugins/
  kube               build the control plane, or say where it is";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", [].as_slice()),
    };
    let mut phases = Phases::default();
    let done = match command {
        "test" => with_all_built(&mut phases, rest, "test"),
        "bench" => match rest.split_first() {
            Some((name, rest)) if name == "peers" => bench_peers(&mut phases, rest),
            _ => with_all_built(&mut phases, &named_bench(rest), "bench"),
        },
        "guests" => phases.time("guests", build_guests),
        "kube" => phases.time("control plane", || build_kube().map(|folder| println!("{folder}"))),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    phases.print();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Told) => ExitCode::FAILURE,
        Err(Failure::Why(why)) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Why a command failed.
enum Failure {
    /// What ran has said so itself.
    Told,
    /// Nobody has said so yet.
    Why(String),
}

impl Failure {
    fn of(error: &dyn Error) -> Self {
        let mut text = error.to_string();
        let mut next = error.source();
        while let Some(cause) = next {
            text = format!("{text}: {cause}");
            next = cause.source();
        }
        Self::Why(text)
    }
}

/// Builds everything, the slowest in the background, and runs `cargo test` or `cargo bench`. The output of the test
/// runner is kept, so that its summaries can be the last thing on the screen.
fn with_all_built(phases: &mut Phases, rest: &[String], what: &str) -> Result<(), Failure> {
    // One after the other, so that they take no more than one core from the compiler.
    let kube = thread::spawn(|| build_kube().map(|folder| (folder, build_helm())));
    // What is named alone is built alone.
    let named = rest.iter().map(String::as_str).take(if is_named_bench(rest) { 2 } else { 0 });
    let build: Vec<&str> = [what, "--workspace", "--no-run"].into_iter().chain(named).collect();
    let building = phases.time("compile", || cargo(&build, &[]));
    let guests = building.and_then(|()| phases.time("guests", build_guests));
    let folder = phases.time("control plane (rest of its build)", || joined(kube));
    guests?;
    let (folder, helm) = folder?;
    let variables = [(binaries::BIN_VARIABLE, folder.as_str()), (helm::HELM_VARIABLE, helm.as_str())];
    let arguments: Vec<&str> = rest.iter().map(String::as_str).collect();
    phases.time(what, || {
        let command = [&[what, "--workspace", "--no-fail-fast"], arguments.as_slice()].concat();
        cargo_with_summary(&command, &variables)
    })
}

/// `plugins …` as `--bench plugins …`.
fn named_bench(rest: &[String]) -> Vec<String> {
    let is_name = rest.first().is_some_and(|first| !first.starts_with('-'));
    let flag = is_name.then(|| BENCH.to_owned());
    flag.into_iter().chain(rest.iter().cloned()).collect()
}

fn is_named_bench(rest: &[String]) -> bool {
    rest.len() > 1 && rest.first().is_some_and(|first| first == BENCH)
}

/// Measures the operator that is built for release. What measures it need not be, and so is built as tests are.
fn bench_peers(phases: &mut Phases, rest: &[String]) -> Result<(), Failure> {
    let folder = phases.time("control plane", build_kube)?;
    phases.time("release", || cargo(&["build", "--release"], &[]))?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let operator = fs::canonicalize(target.join("release/pintle")).map_err(|error| Failure::of(&error))?;
    let operator = operator.display().to_string();
    let variables = [(binaries::BIN_VARIABLE, folder.as_str()), ("PINTLE_BENCH_OPERATOR", operator.as_str())];
    let bench = ["bench", "--workspace", "--profile", "dev", "--bench", "peers", "--"];
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    phases.time("peers", || cargo(&[&bench, rest.as_slice()].concat(), &variables))
}

fn joined<T>(kube: JoinHandle<Result<T, Failure>>) -> Result<T, Failure> {
    kube.join().unwrap_or_else(|_| Err(Failure::Why("the build of the control plane panicked".to_owned())))
}

/// The folder of the control plane's programs.
fn build_kube() -> Result<String, Failure> {
    let tell = &mut |line: &str| say(&format!("control plane: {line}"));
    let built = binaries::ensure(tell).map_err(|error| Failure::of(&error))?;
    let folder = built.path(binaries::Tool::Apiserver).parent().unwrap_or(Path::new("."));
    Ok(folder.display().to_string())
}

/// The program, or nothing: without it the tests that compare with it say so and are passed over.
fn build_helm() -> String {
    match helm::ensure(&mut |line| say(&format!("helm: {line}"))) {
        Ok(program) => program.display().to_string(),
        Err(error) => {
            say(&format!("helm: {error}; what is compared with it is left out"));
            String::new()
        }
    }
}

fn build_guests() -> Result<(), Failure> {
    let root = root();
    let tell = &mut |line: &str| say(&format!("guests: {line}"));
    let toolchain = guest::toolchain(&root, tell).map_err(|error| Failure::of(&error))?;
    let names = guest_names(&root.join("plugins")).map_err(|error| Failure::of(&error))?;
    let targets: Vec<guest::Target<'_>> =
        names.iter().map(|package| guest::Target { package, example: None }).collect();
    guest::build_all(&toolchain, &root, &targets, tell).map(drop).map_err(|error| Failure::of(&error))
}

/// A folder of `plugins/` with a `Cargo.toml` is a package of the folder's name; other guests have other tools.
fn guest_names(plugins: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(plugins)? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn cargo_command(arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root()).envs(variables.iter().copied()).stdin(Stdio::null());
    command
}

fn cargo(arguments: &[&str], variables: &[(&str, &str)]) -> Result<(), Failure> {
    say(&format!("cargo {}", arguments.join(" ")));
    match cargo_command(arguments, variables).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Failure::Told),
        Err(error) => Err(Failure::of(&error)),
    }
}

/// Runs cargo with its output on the screen, and repeats the runner's own summary lines at the end, under the names of
/// the binaries they are of.
fn cargo_with_summary(arguments: &[&str], variables: &[(&str, &str)]) -> Result<(), Failure> {
    say(&format!("cargo {}", arguments.join(" ")));
    let spawned = cargo_command(arguments, variables).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|error| Failure::of(&error))?;
    let summary = Mutex::new(Summary::default());
    thread::scope(|scope| {
        if let Some(stderr) = child.stderr.take() {
            scope.spawn(|| {
                each_line(stderr, |line| {
                    eprintln!("{line}");
                    lock(&summary).running(line);
                })
            });
        }
        if let Some(stdout) = child.stdout.take() {
            each_line(stdout, |line| {
                println!("{line}");
                lock(&summary).printed(line);
            });
        }
    });
    let status = child.wait().map_err(|error| Failure::of(&error))?;
    lock(&summary).print();
    if status.success() { Ok(()) } else { Err(Failure::Told) }
}

fn each_line(from: impl io::Read, mut with: impl FnMut(&str)) {
    use io::BufRead;
    let mut reader = io::BufReader::new(from);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        with(String::from_utf8_lossy(&line).trim_end_matches('\n'));
        line.clear();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the test runner says about each binary.
#[derive(Default)]
struct Summary {
    /// Cargo names the binaries on one stream and the runner ends them on the other, both in order.
    binaries: Vec<String>,
    results: Vec<String>,
    failed: Vec<String>,
}

impl Summary {
    fn running(&mut self, line: &str) {
        let line = line.trim_start();
        if line.starts_with("Running ") || line.starts_with("Doc-tests ") {
            self.binaries.push(line.split(" (").next().unwrap_or(line).to_owned());
        }
    }

    fn printed(&mut self, line: &str) {
        if line.starts_with("test result: ") {
            self.results.push(line.to_owned());
        } else if line.starts_with("test ") && line.ends_with(" ... FAILED") {
            self.failed.push(line.to_owned());
        }
    }

    fn print(&self) {
        println!();
        for line in self.lines() {
            println!("{line}");
        }
    }

    fn lines(&self) -> Vec<String> {
        let unnamed = "a test binary".to_owned();
        let names = self.binaries.iter().chain(std::iter::repeat(&unnamed));
        let named = self.results.iter().zip(names).map(|(result, name)| format!("{result} [{name}]"));
        self.failed.iter().cloned().chain(named).collect()
    }
}

/// Seconds of each phase, printed at the end.
#[derive(Default)]
struct Phases(Vec<(String, Duration)>);

impl Phases {
    fn time<T>(&mut self, name: &str, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = work();
        self.0.push((name.to_owned(), begun.elapsed()));
        result
    }

    fn print(&self) {
        let all: Vec<String> =
            self.0.iter().map(|(name, took)| format!("{name} {:.1} s", took.as_secs_f32())).collect();
        // Standard output ends with the runner's summary.
        eprintln!("xtask: {}", all.join(", "));
    }
}

fn say(line: &str) {
    eprintln!("xtask: {line}");
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn a_summary_names_the_binary_of_each_result_and_what_failed() {
        let mut summary = Summary::default();
        summary.running("     Running unittests src/lib.rs (target/debug/deps/a-1)");
        summary.printed("test one ... ok");
        summary.printed("test two ... FAILED");
        summary.printed("test result: FAILED. 1 passed; 1 failed");
        summary.running("   Doc-tests a");
        summary.printed("test result: ok. 0 passed");
        let lines = summary.lines();
        assert_eq!(lines[0], "test two ... FAILED");
        assert_eq!(lines[1], "test result: FAILED. 1 passed; 1 failed [Running unittests src/lib.rs]");
        assert_eq!(lines[2], "test result: ok. 0 passed [Doc-tests a]");
    }

    #[test]
    fn every_rust_plugin_of_the_workspace_is_a_guest() {
        assert!(guest_names(&root().join("plugins")).unwrap().contains(&"driver-loaded".to_owned()));
    }
}
