//! The six tools of a local control plane: found, or built once from the Go module beside this crate.
//!
//! Standard library only: `tests/xtask`, which has no dependencies, includes this file.

use std::collections::VecDeque;
use std::error::Error;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fmt, fs};

use crate::cache;

/// Names a folder that holds the six tools; it wins over `PATH` and the cache.
pub const BIN_VARIABLE: &str = "PINTLE_KUBE_BIN";

const GO_MOD: &str = include_str!("../kube/go.mod");
const GO_SUM: &str = include_str!("../kube/go.sum");

/// Without the `-X` flags the API server calls itself v0.0.0 and clients see no minor version.
const LDFLAGS: &str = "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
                       -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36";

/// The oldest Go that reads `kube/go.mod` (its `go` line).
const OLDEST_GO: (u32, u32) = (1, 26);

/// Least time between two progress lines of one build.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

/// One program of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// The store of the API server.
    Etcd,
    /// The Kubernetes API server.
    Apiserver,
    /// The controllers of Kubernetes: DaemonSets, Deployments, Jobs, garbage collection.
    ControllerManager,
    /// The scheduler.
    Scheduler,
    /// The simulated kubelets.
    Kwok,
    /// The OCI registry.
    Registry,
}

impl Tool {
    /// Every tool, in the order in which they are looked for.
    pub const ALL: [Self; 6] =
        [Self::Etcd, Self::Apiserver, Self::ControllerManager, Self::Scheduler, Self::Kwok, Self::Registry];

    /// The name of its file as `go build` gives it, which for etcd is the last part of the package's path.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Etcd => "server",
            Self::Apiserver => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
            Self::Registry => "registry",
        }
    }

    /// The name people know it by, which is also its name on `PATH`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            other => other.file_name(),
        }
    }

    /// What the first lines of `--version` contain when the version is the one of `kube/go.mod`.
    const fn version(self) -> &'static str {
        match self {
            Self::Etcd => "etcd Version: 3.6.8",
            Self::Apiserver | Self::ControllerManager | Self::Scheduler => "Kubernetes v1.36.3",
            Self::Kwok => "kwok version v0.8.0",
            Self::Registry => "v3.1.2",
        }
    }
}

/// Where each tool is. All six files existed when this was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    paths: [PathBuf; 6],
}

impl Binaries {
    /// The file to run for `tool`.
    pub const fn path(&self, tool: Tool) -> &PathBuf {
        let [etcd, apiserver, manager, scheduler, kwok, registry] = &self.paths;
        match tool {
            Tool::Etcd => etcd,
            Tool::Apiserver => apiserver,
            Tool::ControllerManager => manager,
            Tool::Scheduler => scheduler,
            Tool::Kwok => kwok,
            Tool::Registry => registry,
        }
    }

    fn from_lookup<E>(lookup: impl Fn(Tool) -> Result<PathBuf, E>) -> Result<Self, E> {
        let [etcd, apiserver, manager, scheduler, kwok, registry] = Tool::ALL.map(lookup);
        Ok(Self { paths: [etcd?, apiserver?, manager?, scheduler?, kwok?, registry?] })
    }

    fn in_folder(folder: &Path) -> Result<Self, Tool> {
        Self::from_lookup(|tool| {
            [tool.file_name(), tool.name()]
                .into_iter()
                .map(|name| folder.join(name))
                .find(|path| path.is_file())
                .ok_or(tool)
        })
    }

    fn on_path(path: &OsStr) -> Option<Self> {
        let folders: Vec<PathBuf> = env::split_paths(path).collect();
        Self::from_lookup(|tool| {
            let found = folders.iter().map(|folder| folder.join(tool.name())).find(|path| path.is_file());
            found.filter(|path| has_version(path, tool)).ok_or(())
        })
        .ok()
    }
}

/// Why the tools could not be had.
#[derive(Debug)]
pub enum BinariesError {
    /// The folder named by [`BIN_VARIABLE`] lacks a tool.
    Incomplete {
        /// The folder.
        folder: PathBuf,
        /// The first tool that is not there.
        missing: Tool,
    },
    /// There is no `go` on `PATH`.
    GoMissing,
    /// The installed Go cannot build the module.
    GoTooOld {
        /// What `go version` said.
        found: String,
    },
    /// `go build` ended with an error.
    Build {
        /// The last lines it printed.
        tail: String,
    },
    /// A file or process operation failed.
    Io {
        /// What was tried.
        action: String,
        /// Why it failed.
        source: io::Error,
    },
}

impl fmt::Display for BinariesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = OLDEST_GO;
        match self {
            Self::Incomplete { folder, missing } => write!(
                f,
                "{BIN_VARIABLE} names {}, which has no {}; unset it to have all six tools built",
                folder.display(),
                missing.name()
            ),
            Self::GoMissing => write!(
                f,
                "go was not found on PATH; install Go {major}.{minor} or later, or let {BIN_VARIABLE} name a folder with {}",
                Tool::ALL.map(Tool::name).join(", ")
            ),
            Self::GoTooOld { found } => {
                write!(
                    f,
                    "the control plane needs Go {major}.{minor} or later and `go version` says: {found}"
                )
            }
            Self::Build { tail } => {
                write!(f, "go build failed; its last lines:\n{tail}")
            }
            Self::Io { action, .. } => write!(f, "could not {action}"),
        }
    }
}

impl Error for BinariesError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Incomplete { .. } | Self::GoMissing | Self::GoTooOld { .. } | Self::Build { .. } => None,
        }
    }
}

pub(crate) fn failed(action: impl Into<String>) -> impl FnOnce(io::Error) -> BinariesError {
    let action = action.into();
    |source| BinariesError::Io { action, source }
}

/// The tools when they are there already: in the folder named by [`BIN_VARIABLE`], on `PATH` in the right versions, or built before.
///
/// # Errors
/// [`BIN_VARIABLE`] names a folder that lacks a tool, or the cache folder is not known.
pub fn find() -> Result<Option<Binaries>, BinariesError> {
    if let Some(found) = given()? {
        return Ok(Some(found));
    }
    // Without Go nothing can be built, but what another Go built before still runs: its key is not known then.
    let Ok(go) = go_version() else {
        return Ok(newest_built());
    };
    Ok(Binaries::in_folder(&folder_for(&go)?.join("bin")).ok())
}

/// The tools, built first when they are not there: about four minutes on two free cores.
///
/// `progress` gets sentences for a person, at most one in two seconds. One process builds at a time; the others wait for it.
///
/// # Errors
/// As [`find`]; Go is missing or too old; the build failed. Each names what to do.
pub fn ensure(progress: &mut dyn FnMut(&str)) -> Result<Binaries, BinariesError> {
    if let Some(found) = find()? {
        return Ok(found);
    }
    let go = go_version()?;
    let folder = folder_for(&go)?;
    let lock = folder.with_extension("lock");
    let mut waiting = || progress("waiting for another process that builds the control plane");
    let held =
        cache::Lock::acquire(&lock, &mut waiting).map_err(failed(format!("lock {}", lock.display())))?;
    let found = match Binaries::in_folder(&folder.join("bin")) {
        Ok(built_meanwhile) => built_meanwhile,
        Err(_) => build(&folder, progress)?,
    };
    drop(held);
    Ok(found)
}

fn given() -> Result<Option<Binaries>, BinariesError> {
    if let Some(folder) = env::var_os(BIN_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from) {
        let found = Binaries::in_folder(&folder);
        return found.map(Some).map_err(|missing| BinariesError::Incomplete { folder, missing });
    }
    Ok(env::var_os("PATH").and_then(|path| Binaries::on_path(&path)))
}

fn has_version(path: &Path, tool: Tool) -> bool {
    let output = Command::new(path).arg("--version").stdin(Stdio::null()).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(tool.version()))
}

/// `~/.cache/pintle/kube-KEY`: another module, compiler or set of flags is another folder.
fn folder_for(go_version: &str) -> Result<PathBuf, BinariesError> {
    let key = cache::fingerprint(&[GO_MOD, GO_SUM, go_version, LDFLAGS]);
    Ok(cache::root().map_err(failed("find the cache folder"))?.join(format!("kube-{key}")))
}

fn newest_built() -> Option<Binaries> {
    let mut folders: Vec<PathBuf> = fs::read_dir(cache::root().ok()?)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("kube-")))
        .collect();
    folders.sort_by_key(|path| fs::metadata(path).and_then(|meta| meta.modified()).ok());
    folders.iter().rev().find_map(|folder| {
        let built = Binaries::in_folder(&folder.join("bin")).ok()?;
        Tool::ALL.into_iter().all(|tool| has_version(built.path(tool), tool)).then_some(built)
    })
}

/// What `go version` prints, when it is new enough.
pub(crate) fn go_version() -> Result<String, BinariesError> {
    let output = match Command::new("go").arg("version").stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(BinariesError::GoMissing);
        }
        Err(error) => return Err(failed("run `go version`")(error)),
    };
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match parse_go_version(&said) {
        Some(version) if version >= OLDEST_GO => Ok(said),
        _ => Err(BinariesError::GoTooOld { found: said }),
    }
}

/// `(1, 26)` of `go version go1.26.8 linux/amd64`.
fn parse_go_version(said: &str) -> Option<(u32, u32)> {
    let number = said.split_whitespace().find_map(|word| word.strip_prefix("go1."))?;
    let minor: String = number.chars().take_while(char::is_ascii_digit).collect();
    Some((1, minor.parse().ok()?))
}

/// Builds into a folder beside `folder` and renames it: what is found there is always complete.
fn build(folder: &Path, progress: &mut dyn FnMut(&str)) -> Result<Binaries, BinariesError> {
    let scratch = folder.with_extension("part");
    if scratch.exists() {
        fs::remove_dir_all(&scratch).map_err(failed("remove an unfinished build"))?;
    }
    fs::create_dir_all(&scratch).map_err(failed(format!("make {}", scratch.display())))?;
    for (name, text) in [("go.mod", GO_MOD), ("go.sum", GO_SUM)] {
        fs::write(scratch.join(name), text).map_err(failed(format!("write {name}")))?;
    }
    progress(
        "building the control plane: kube-apiserver, controllers, scheduler, etcd, kwok, registry (once, 4 to 8 minutes)",
    );
    run_go_build(&scratch, LDFLAGS, progress)?;
    fs::rename(&scratch, folder).map_err(failed(format!("move the build to {}", folder.display())))?;
    progress("the control plane is built");
    Binaries::in_folder(&folder.join("bin"))
        .map_err(|missing| BinariesError::Incomplete { folder: folder.to_path_buf(), missing })
}

/// Builds the tools of the module in `scratch` into `scratch/bin`.
pub(crate) fn run_go_build(
    scratch: &Path,
    ldflags: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<(), BinariesError> {
    let mut child = Command::new("go")
        .args(["build", "-v", "-mod=readonly", "-o", "bin/", "-ldflags", ldflags, "tool"])
        .current_dir(scratch)
        .env_remove("GOFLAGS")
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed("start `go build`"))?;
    let mut report = Progress::new(progress);
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            report.line(line);
        }
    }
    let status = child.wait().map_err(failed("wait for `go build`"))?;
    if status.success() { Ok(()) } else { Err(BinariesError::Build { tail: report.tail() }) }
}

/// Turns the lines of `go build -v` into few lines for a person, and keeps the last ones for an error.
struct Progress<'a> {
    tell: &'a mut dyn FnMut(&str),
    downloads: usize,
    packages: usize,
    last: Instant,
    tail: VecDeque<String>,
}

impl<'a> Progress<'a> {
    /// Lines of a failed build worth showing: the compiler's own errors are rarely longer.
    const TAIL: usize = 20;

    fn new(tell: &'a mut dyn FnMut(&str)) -> Self {
        Self { tell, downloads: 0, packages: 0, last: Instant::now(), tail: VecDeque::new() }
    }

    fn line(&mut self, line: String) {
        if line.starts_with("go: downloading ") {
            self.downloads += 1;
        } else {
            self.packages += 1;
        }
        if self.last.elapsed() >= PROGRESS_EVERY {
            self.last = Instant::now();
            let Self { downloads, packages, .. } = self;
            (self.tell)(&format!("{downloads} modules fetched, {packages} packages compiled; now {line}"));
        }
        if self.tail.len() == Self::TAIL {
            self.tail.pop_front();
        }
        self.tail.push_back(line);
    }

    fn tail(self) -> String {
        Vec::from(self.tail).join("\n")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn the_go_version_is_read_from_what_go_says() {
        assert_eq!(parse_go_version("go version go1.26.8 linux/amd64"), Some((1, 26)));
        assert_eq!(parse_go_version("go version go1.27rc1 linux/arm64"), Some((1, 27)));
        assert_eq!(parse_go_version("go: cannot find main module"), None);
    }

    #[test]
    fn the_module_file_names_the_versions_we_check_for() {
        let resolved = |module: &str| {
            let line = GO_MOD.lines().map(str::trim).find(|line| line.starts_with(&format!("{module} v")));
            line.unwrap().split_whitespace().nth(1).unwrap().trim_start_matches('v')
        };
        assert!(Tool::Apiserver.version().ends_with(resolved("k8s.io/kubernetes")));
        assert!(LDFLAGS.contains(&format!("gitVersion=v{}", resolved("k8s.io/kubernetes"))));
        assert!(Tool::Etcd.version().ends_with(resolved("go.etcd.io/etcd/server/v3")));
        assert!(Tool::Kwok.version().ends_with(resolved("sigs.k8s.io/kwok")));
        assert!(Tool::Registry.version().ends_with(resolved("github.com/distribution/distribution/v3")));
    }

    #[test]
    fn a_folder_that_lacks_one_tool_is_not_enough() {
        let folder = tempfile::tempdir().unwrap();
        for tool in Tool::ALL {
            assert_eq!(Binaries::in_folder(folder.path()), Err(tool));
            fs::write(folder.path().join(tool.name()), "").unwrap();
        }
        let found = Binaries::in_folder(folder.path()).unwrap();
        assert!(found.path(Tool::Etcd).ends_with("etcd"));
    }

    #[test]
    fn tools_of_another_version_on_path_are_not_taken() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let put = |tool: Tool, says: &str| {
            let path = folder.path().join(tool.name());
            fs::write(&path, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        for tool in Tool::ALL {
            put(tool, tool.version());
        }
        let path = env::join_paths([folder.path()]).unwrap();
        assert!(Binaries::on_path(&path).is_some());
        put(Tool::Apiserver, "Kubernetes v1.30.0");
        assert!(Binaries::on_path(&path).is_none());
    }
}
