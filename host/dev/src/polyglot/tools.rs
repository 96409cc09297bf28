//! Programs of this machine, and packages that are fetched once and kept.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{BuildError, Language, failed};
use crate::cache;

/// Python 3 with pip.
pub(super) fn python(language: Language) -> Result<(), BuildError> {
    let remedy = match language {
        Language::C => {
            "the C compiler comes as a Python package; install Python 3.10 or later with pip, as by `apt install python3-pip`"
        }
        _ => "install Python 3.10 or later with pip, as by `apt install python3-pip`",
    };
    answers("python3", &["-m", "pip", "--version"], "python3 with pip", language, remedy)
}

/// Node.js with npm.
pub(super) fn node() -> Result<(), BuildError> {
    let remedy = "install Node.js 20 or later, which brings npm";
    answers("node", &["--version"], "node", Language::JavaScript, remedy)?;
    answers("npm", &["--version"], "npm", Language::JavaScript, remedy)
}

/// Go.
pub(super) fn go() -> Result<(), BuildError> {
    answers("go", &["version"], "go", Language::Go, "install Go 1.24 or later")
}

fn answers(
    program: &str,
    args: &[&str],
    called: &'static str,
    language: Language,
    remedy: &'static str,
) -> Result<(), BuildError> {
    let quiet = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match quiet {
        Ok(status) if status.success() => Ok(()),
        _ => Err(BuildError::NoProgram { program: called, language, remedy }),
    }
}

/// The folder with a package of the Python index, which pip has filled.
pub(super) fn python_package(
    language: Language,
    package: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, BuildError> {
    python(language)?;
    kept("python", package, progress, |folder| {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
        pip.args(["--only-binary", ":all:", "--target"]).arg(folder).arg(package);
        (pip, "pip")
    })
}

/// The folder with a package of npm in its `node_modules`.
pub(super) fn node_package(package: &str, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, BuildError> {
    node()?;
    kept("node", package, progress, |folder| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--no-progress", "--loglevel", "error", "--prefix"]);
        npm.arg(folder).arg(package).current_dir(folder);
        (npm, "npm")
    })
}

/// A folder of the cache that is filled by one command, by one process, whole or not at all.
fn kept(
    kind: &str,
    package: &str,
    progress: &mut dyn FnMut(&str),
    install: impl FnOnce(&Path) -> (Command, &'static str),
) -> Result<PathBuf, BuildError> {
    let root = cache::root().map_err(failed("find the cache folder"))?;
    let folder = root.join(format!("{kind}-{}", cache::fingerprint(&[package])));
    if folder.is_dir() {
        return Ok(folder);
    }
    let mut waiting = || progress(&format!("waiting for another process that gets {package}"));
    let _lock = cache::Lock::acquire(&folder.with_extension("lock"), &mut waiting)
        .map_err(failed(format!("lock {}", folder.display())))?;
    if folder.is_dir() {
        return Ok(folder);
    }
    let partial = folder.with_extension("part");
    let _ = fs::remove_dir_all(&partial);
    fs::create_dir_all(&partial).map_err(failed(format!("make {}", partial.display())))?;
    progress(&format!("getting {package} (once on this machine)"));
    let (mut command, client) = install(&partial);
    let output = command.stdin(Stdio::null()).output().map_err(failed(format!("start {client}")))?;
    if !output.status.success() {
        let package = package.to_owned();
        return Err(BuildError::NoPackage { package, client, output: last_lines(&output.stderr) });
    }
    fs::rename(&partial, &folder).map_err(failed(format!("keep {}", folder.display())))?;
    Ok(folder)
}

/// Runs a compiler; what it says is the error.
pub(super) fn compile(mut command: Command, program: &'static str) -> Result<(), BuildError> {
    let output = command.stdin(Stdio::null()).output().map_err(failed(format!("start {program}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    Err(BuildError::Refused { program, output: said.join("\n").trim().to_owned() })
}

fn last_lines(output: &[u8]) -> String {
    const LINES: usize = 3;
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().join("; ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn a_program_that_is_missing_is_named_with_how_to_get_it() {
        let error =
            answers("no-such-program", &[], "no-such-program", Language::Go, "install it").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no-such-program was not found, which plugins in Go are built with: install it"
        );
    }

    #[test]
    fn what_a_compiler_says_is_the_error() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo plugin.c:3: no; exit 1"]);
        let error = compile(shell, "the compiler").unwrap_err();
        assert_eq!(error.to_string(), "the compiler could not build the plugin:\nplugin.c:3: no");
    }
}
