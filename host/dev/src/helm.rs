//! The `helm` that ours is compared with: found, or built once from the Go module beside this crate.
//!
//! Standard library only: `tests/xtask`, which has no dependencies, includes this file.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::binaries::{BinariesError, failed, go_version, run_go_build};
use crate::cache;

/// Names the program; it wins over `PATH` and the cache.
pub const HELM_VARIABLE: &str = "PINTLE_HELM";

/// The version whose bytes are ours to match.
pub const VERSION: &str = "v4.3.1";

const GO_MOD: &str = include_str!("../helm/go.mod");
const GO_SUM: &str = include_str!("../helm/go.sum");

/// What a release of Helm is built with; templates can see the version.
const LDFLAGS: &str = "-s -w -X helm.sh/helm/v4/internal/version.version=v4.3.1";

/// The program when it is there already: named by [`HELM_VARIABLE`], on `PATH` in the right version, or built before.
pub fn find() -> Option<PathBuf> {
    if let Some(given) = env::var_os(HELM_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from) {
        return has_version(&given).then_some(given);
    }
    let folders: Vec<PathBuf> =
        env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
    let on_path = folders.iter().map(|folder| folder.join("helm")).find(|path| path.is_file());
    let built = || Some(folder_for(&go_version().ok()?).ok()?.join("bin/helm")).filter(|path| path.is_file());
    on_path.filter(|path| has_version(path)).or_else(built)
}

/// The program, built first when it is not there: about a minute on two free cores.
///
/// `progress` gets sentences for a person. One process builds at a time; the others wait for it.
///
/// # Errors
/// Go is missing or too old, or the build failed. Each names what to do.
pub fn ensure(progress: &mut dyn FnMut(&str)) -> Result<PathBuf, BinariesError> {
    if let Some(found) = find() {
        return Ok(found);
    }
    let folder = folder_for(&go_version()?)?;
    let lock = folder.with_extension("lock");
    let mut waiting = || progress("waiting for another process that builds helm");
    let held =
        cache::Lock::acquire(&lock, &mut waiting).map_err(failed(format!("lock {}", lock.display())))?;
    let program = folder.join("bin/helm");
    if !program.is_file() {
        build(&folder, progress)?;
    }
    drop(held);
    Ok(program)
}

fn folder_for(go_version: &str) -> Result<PathBuf, BinariesError> {
    let key = cache::fingerprint(&[GO_MOD, GO_SUM, go_version, LDFLAGS]);
    Ok(cache::root().map_err(failed("find the cache folder"))?.join(format!("helm-{key}")))
}

/// Builds into a folder beside `folder` and renames it: what is found there is always complete.
fn build(folder: &Path, progress: &mut dyn FnMut(&str)) -> Result<(), BinariesError> {
    let scratch = folder.with_extension("part");
    if scratch.exists() {
        fs::remove_dir_all(&scratch).map_err(failed("remove an unfinished build"))?;
    }
    fs::create_dir_all(&scratch).map_err(failed(format!("make {}", scratch.display())))?;
    for (name, text) in [("go.mod", GO_MOD), ("go.sum", GO_SUM)] {
        fs::write(scratch.join(name), text).map_err(failed(format!("write {name}")))?;
    }
    progress("building helm (once, about a minute)");
    run_go_build(&scratch, LDFLAGS, progress)?;
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed("remove an incomplete build"))?;
    }
    fs::rename(&scratch, folder).map_err(failed(format!("move the build to {}", folder.display())))
}

fn has_version(program: &Path) -> bool {
    let output = Command::new(program).args(["version", "--short"]).stdin(Stdio::null()).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim().starts_with(VERSION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_file_names_the_version_we_check_for() {
        let line = GO_MOD.lines().map(str::trim).find(|line| line.starts_with("helm.sh/helm/v4 v"));
        assert!(line.is_some_and(|line| line.contains(VERSION)), "{line:?}");
        assert!(LDFLAGS.ends_with(VERSION));
    }

    #[test]
    fn another_program_is_not_taken_for_helm() {
        assert!(!has_version(Path::new("/bin/echo")));
        assert!(!has_version(Path::new("/nonexistent/helm")));
    }
}
