//! Builds of Rust plugins: a std for WebAssembly, found or made, and `cargo build` with it.
//!
//! Standard library only: `tests/xtask`, which has no dependencies, includes this file.

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fmt, fs};

use crate::cache;

/// Names a toolchain with a std for WebAssembly: a folder with `bin/rustc`, or a name that rustup knows.
pub const TOOLCHAIN_VARIABLE: &str = "PINTLE_WASM_TOOLCHAIN";

const TARGET: &str = "wasm32-unknown-unknown";
const DEBIAN_SCRIPT: &str = include_str!("../guest/wasm-std.sh");

/// A compiler that has a std for WebAssembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Toolchain {
    /// The one that is active in the workspace.
    Active,
    /// One that rustup knows by name.
    Named(String),
    /// A folder with `bin/rustc`.
    Folder(PathBuf),
}

/// Why a guest could not be built.
#[derive(Debug)]
pub enum GuestError {
    /// No std for WebAssembly could be had in any way.
    NoStd {
        /// What each way said.
        tried: Vec<String>,
    },
    /// [`TOOLCHAIN_VARIABLE`] names something without a std for WebAssembly.
    WrongToolchain {
        /// What it names.
        named: String,
    },
    /// `cargo build` failed.
    Build {
        /// The package.
        package: String,
        /// What cargo and rustc said.
        output: String,
    },
    /// Cargo succeeded without making a component.
    NotBuilt {
        /// The package.
        package: String,
        /// Where its component was expected.
        expected: PathBuf,
    },
    /// A file or process operation failed.
    Io {
        /// What was tried.
        action: String,
        /// Why it failed.
        source: io::Error,
    },
}

impl fmt::Display for GuestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStd { tried } => write!(
                f,
                "no Rust std for {TARGET}: run `rustup target add {TARGET}`, or let {TOOLCHAIN_VARIABLE} name a toolchain \
                 that has one; tried here:\n{}",
                tried.join("\n")
            ),
            Self::WrongToolchain { named } => {
                write!(f, "{TOOLCHAIN_VARIABLE} names {named}, which has no std for {TARGET}")
            }
            Self::Build { package, output } => {
                write!(f, "cargo could not build the guest {package}:\n{output}")
            }
            Self::NotBuilt { package, expected } => write!(
                f,
                "cargo built {package} but not {}; a guest needs `crate-type = [\"cdylib\"]`",
                expected.display()
            ),
            Self::Io { action, .. } => write!(f, "could not {action}"),
        }
    }
}

impl Error for GuestError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::NoStd { .. } | Self::WrongToolchain { .. } | Self::Build { .. } | Self::NotBuilt { .. } => {
                None
            }
        }
    }
}

fn failed(action: impl Into<String>) -> impl FnOnce(io::Error) -> GuestError {
    let action = action.into();
    |source| GuestError::Io { action, source }
}

/// What is built: a package's library, or one of its examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The package.
    pub package: &'a str,
    /// One of its examples; none for its library.
    pub example: Option<&'a str>,
}

/// Builds the package `package` of the workspace at `workspace` and returns the path of its component.
///
/// The first build of a machine may have to fetch a std first. The build has a target folder of its own
/// (`target/guest`), so it does not wait for the cargo that runs us. `progress` gets sentences for a person.
///
/// # Errors
/// No std can be had, or the package does not compile.
pub fn build(workspace: &Path, package: &str, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, GuestError> {
    let toolchain = toolchain(workspace, progress)?;
    build_with(&toolchain, workspace, package, progress)
}

/// Builds a package with a toolchain that is already known.
///
/// # Errors
/// The package does not compile.
pub fn build_with(
    toolchain: &Toolchain,
    workspace: &Path,
    package: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, GuestError> {
    let targets = [Target { package, example: None }];
    let built = build_all(toolchain, workspace, &targets, progress)?;
    built.into_iter().next().ok_or_else(|| GuestError::NotBuilt {
        package: package.to_owned(),
        expected: PathBuf::from(package).with_extension("wasm"),
    })
}

/// Builds several at once, which share what they depend on, and returns their components in the same order.
///
/// # Errors
/// One of them does not compile.
pub fn build_all(
    toolchain: &Toolchain,
    workspace: &Path,
    targets: &[Target<'_>],
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<PathBuf>, GuestError> {
    build_into(toolchain, workspace, targets, None, progress)
}

/// As [`build_all`], with a target folder of the caller's choice. `workspace` may be a folder inside of one.
///
/// # Errors
/// One of them does not compile.
pub fn build_into(
    toolchain: &Toolchain,
    workspace: &Path,
    targets: &[Target<'_>],
    target_folder: Option<&Path>,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<PathBuf>, GuestError> {
    let workspace = workspace.canonicalize().map_err(failed(format!("find {}", workspace.display())))?;
    let target_folder = match target_folder {
        Some(named) => std::path::absolute(named).map_err(failed(format!("find {}", named.display())))?,
        None => root_of(&workspace).join("target").join("guest"),
    };
    // Libraries and examples are two calls: `--lib` and `--example` would hold for every package.
    let (examples, libraries): (Vec<_>, Vec<_>) =
        targets.iter().copied().partition(|target| target.example.is_some());
    for group in [libraries, examples] {
        if !group.is_empty() {
            run_cargo(toolchain, &workspace, &target_folder, &group, progress)?;
        }
    }
    let built = target_folder.join(TARGET).join("guest");
    targets.iter().map(|target| target.find(&built)).collect()
}

fn run_cargo(
    toolchain: &Toolchain,
    workspace: &Path,
    target_folder: &Path,
    targets: &[Target<'_>],
    progress: &mut dyn FnMut(&str),
) -> Result<(), GuestError> {
    let names: Vec<&str> = targets.iter().map(Target::name).collect();
    progress(&format!("building {}", names.join(", ")));
    let mut cargo = cargo(toolchain, workspace);
    cargo.args(["build", "--profile", "guest", "--target", TARGET, "--target-dir"]).arg(target_folder);
    for target in targets {
        cargo.args(["--package", target.package]);
        if let Some(example) = target.example {
            cargo.args(["--example", example]);
        }
    }
    // Once for all packages.
    if targets.iter().any(|target| target.example.is_none()) {
        cargo.arg("--lib");
    }
    let mut child = cargo
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed("start cargo"))?;
    let stderr = child.stderr.take();
    let mut output = Vec::new();
    for line in stderr.into_iter().flat_map(|stderr| BufReader::new(stderr).lines().map_while(Result::ok)) {
        if line.trim_start().starts_with("Compiling") {
            progress(line.trim());
        }
        output.push(line);
    }
    if child.wait().map_err(failed("wait for cargo"))?.success() {
        return Ok(());
    }
    Err(GuestError::Build { package: names.join(", "), output: output.join("\n") })
}

/// The folder of the workspace that a package is in: the first at or above it whose
/// manifest has a `[workspace]`; without any the folder itself.
fn root_of(folder: &Path) -> PathBuf {
    let has_workspace = |folder: &&Path| {
        let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        text.lines().any(|line| line.trim() == "[workspace]")
    };
    folder.ancestors().find(has_workspace).unwrap_or(folder).to_path_buf()
}

impl Target<'_> {
    fn name(&self) -> &str {
        self.example.unwrap_or(self.package)
    }

    /// Where cargo has put the component.
    fn find(&self, built: &Path) -> Result<PathBuf, GuestError> {
        let component = match self.example {
            Some(example) => built.join("examples").join(format!("{example}.wasm")),
            None => built.join(format!("{}.wasm", self.package.replace('-', "_"))),
        };
        if component.is_file() {
            return Ok(component);
        }
        Err(GuestError::NotBuilt { package: self.name().to_owned(), expected: component })
    }
}

/// A toolchain with a std for WebAssembly: the one named by [`TOOLCHAIN_VARIABLE`], the active one (after
/// `rustup target add` when needed), or one made from Debian's packages, which takes 45 s once a machine.
///
/// # Errors
/// None of these ways led to one; the error says what each said.
pub fn toolchain(workspace: &Path, progress: &mut dyn FnMut(&str)) -> Result<Toolchain, GuestError> {
    if let Some(named) = env::var(TOOLCHAIN_VARIABLE).ok().filter(|named| !named.is_empty()) {
        let toolchain = parse_toolchain(&named);
        return if has_std(&toolchain, workspace) {
            Ok(toolchain)
        } else {
            Err(GuestError::WrongToolchain { named })
        };
    }
    if has_std(&Toolchain::Active, workspace) {
        return Ok(Toolchain::Active);
    }
    let made = made_folder(workspace)?;
    if has_std(&Toolchain::Folder(made.clone()), workspace) {
        return Ok(Toolchain::Folder(made));
    }
    let mut tried = Vec::new();
    progress(&format!("adding the std for {TARGET} to the active toolchain"));
    match rustup_target_add(workspace) {
        Ok(()) if has_std(&Toolchain::Active, workspace) => return Ok(Toolchain::Active),
        Ok(()) => tried.push("rustup target add: no std after it".to_owned()),
        Err(why) => tried.push(format!("rustup target add: {why}")),
    }
    progress("making a std for WebAssembly from Debian's packages (once, about 45 s)");
    match make_from_debian(&made, workspace, progress) {
        Ok(()) if has_std(&Toolchain::Folder(made.clone()), workspace) => Ok(Toolchain::Folder(made)),
        Ok(()) => Err(GuestError::NoStd {
            tried: [tried, vec!["Debian's packages: no std in them".to_owned()]].concat(),
        }),
        Err(why) => {
            Err(GuestError::NoStd { tried: [tried, vec![format!("Debian's packages: {why}")]].concat() })
        }
    }
}

fn parse_toolchain(named: &str) -> Toolchain {
    if named.contains('/') {
        Toolchain::Folder(PathBuf::from(named))
    } else {
        Toolchain::Named(named.to_owned())
    }
}

/// A command that runs in the workspace with the compiler of `toolchain`.
fn with_toolchain(program: &str, toolchain: &Toolchain, workspace: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(workspace);
    // A cargo that runs us names its own toolchain, which need not be that of the workspace.
    command.env_remove("RUSTC").env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    match toolchain {
        Toolchain::Active => {}
        Toolchain::Named(name) => {
            command.env("RUSTUP_TOOLCHAIN", name);
        }
        Toolchain::Folder(folder) => {
            command.env("RUSTC", folder.join("bin").join("rustc"));
        }
    }
    command
}

fn cargo(toolchain: &Toolchain, workspace: &Path) -> Command {
    let mut cargo = with_toolchain("cargo", toolchain, workspace);
    // Flags meant for the host (coverage, denied warnings) must not reach guests; the paths of this machine neither.
    cargo.env_remove("RUSTFLAGS").env_remove("CARGO_TARGET_DIR").env_remove("CARGO_BUILD_TARGET");
    cargo.env("CARGO_ENCODED_RUSTFLAGS", build_flags(workspace));
    cargo
}

/// Panic messages name source files; these flags keep the machine's folders out of them and of the digest.
fn build_flags(workspace: &Path) -> OsString {
    let home = env::var_os("HOME").map(PathBuf::from);
    let cargo_home =
        env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| home.map(|home| home.join(".cargo")));
    let mut flags = OsString::from("--remap-path-prefix=");
    flags.push(workspace);
    flags.push("=.");
    if let Some(cargo_home) = cargo_home {
        flags.push("\u{1f}--remap-path-prefix=");
        flags.push(cargo_home);
        flags.push("=cargo");
    }
    flags
}

fn sysroot(toolchain: &Toolchain, workspace: &Path) -> Option<PathBuf> {
    if let Toolchain::Folder(folder) = toolchain {
        return Some(folder.clone());
    }
    let output = with_toolchain("rustc", toolchain, workspace).args(["--print", "sysroot"]).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(path.trim()))
}

fn has_std(toolchain: &Toolchain, workspace: &Path) -> bool {
    let Some(sysroot) = sysroot(toolchain, workspace) else {
        return false;
    };
    let Ok(files) = fs::read_dir(sysroot.join("lib/rustlib").join(TARGET).join("lib")) else {
        return false;
    };
    files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("libstd-"))
}

fn rustup_target_add(workspace: &Path) -> Result<(), String> {
    let mut rustup = with_toolchain("rustup", &Toolchain::Active, workspace);
    let output = rustup.args(["target", "add", TARGET]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(last_lines(&output.stderr)) }
}

/// Where a toolchain from Debian's packages is kept: it links to the active toolchain, so that names it.
fn made_folder(workspace: &Path) -> Result<PathBuf, GuestError> {
    let active = sysroot(&Toolchain::Active, workspace).unwrap_or_default();
    let key = cache::fingerprint(&[DEBIAN_SCRIPT, &active.to_string_lossy()]);
    Ok(cache::root().map_err(failed("find the cache folder"))?.join(format!("wasm-{key}")))
}

fn make_from_debian(folder: &Path, workspace: &Path, progress: &mut dyn FnMut(&str)) -> Result<(), String> {
    let has_apt = Command::new("apt-get").arg("--version").stdout(Stdio::null()).status();
    if !has_apt.is_ok_and(|status| status.success()) {
        return Err("this system has no apt-get".to_owned());
    }
    let mut waiting = || progress("waiting for another process that makes a std for WebAssembly");
    let lock = cache::Lock::acquire(&folder.with_extension("lock"), &mut waiting)
        .map_err(|error| error.to_string())?;
    if has_std(&Toolchain::Folder(folder.to_path_buf()), workspace) {
        return Ok(());
    }
    let script = folder.with_extension("sh");
    fs::write(&script, DEBIAN_SCRIPT).map_err(|error| error.to_string())?;
    let mut bash = with_toolchain("bash", &Toolchain::Active, workspace);
    let output =
        bash.arg(&script).arg(folder).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    drop(lock);
    if output.status.success() { Ok(()) } else { Err(last_lines(&output.stderr)) }
}

fn last_lines(output: &[u8]) -> String {
    const LINES: usize = 5;
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().join("; ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    fn workspace() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
    }

    #[test]
    fn a_toolchain_is_named_by_folder_or_by_name() {
        assert_eq!(parse_toolchain("/opt/wasm"), Toolchain::Folder(PathBuf::from("/opt/wasm")));
        assert_eq!(parse_toolchain("nightly"), Toolchain::Named("nightly".to_owned()));
    }

    #[test]
    fn a_folder_without_a_std_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let toolchain = Toolchain::Folder(folder.path().to_path_buf());
        assert!(!has_std(&toolchain, &workspace()));
        let lib = folder.path().join("lib/rustlib").join(TARGET).join("lib");
        fs::create_dir_all(&lib).unwrap();
        fs::write(lib.join("libcore-1.rlib"), "").unwrap();
        assert!(!has_std(&toolchain, &workspace()), "a core alone is not enough");
        fs::write(lib.join("libstd-1.rlib"), "").unwrap();
        assert!(has_std(&toolchain, &workspace()));
    }

    #[test]
    fn a_failed_script_is_quoted_by_its_last_lines() {
        assert_eq!(last_lines(b"1\n2\n\n3\n4\n5\n6\n"), "2; 3; 4; 5; 6");
    }
}
