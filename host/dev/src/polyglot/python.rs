//! Python: componentize-py puts an interpreter and the project into one component, without WASI.

use std::{fs, path::Path, process::Command};

use super::{BuildError, Language, Project, failed, interfaces::WORLD, tools};

/// The tool; a wheel of 48 MB with an interpreter inside.
const TOOL: &str = "componentize-py==0.25.1";
/// The module that has the exports.
const MODULE: &str = "app";

pub(super) fn build(project: &Project<'_>, progress: &mut dyn FnMut(&str)) -> Result<(), BuildError> {
    let tool = tools::python_package(Language::Python, TOOL, progress)?;
    // The interpreter leaves compiled modules beside the sources, so it gets a copy.
    let sources = project.build.join("python");
    let _ = fs::remove_dir_all(&sources);
    copy_modules(project.folder, &sources)?;
    progress("building with componentize-py (10 to 20 s)");
    let mut command = Command::new("python3");
    command.arg(tool.join("bin/componentize-py")).env("PYTHONPATH", &tool).env_remove("VIRTUAL_ENV");
    command.arg("--wit-path").arg(&project.staged.folder).args(["--world", WORLD, "--quiet"]);
    command.args(["componentize", "--stub-wasi", "--python-path"]).arg(&sources);
    command.arg(MODULE).arg("--output").arg(&project.out);
    tools::compile(command, "componentize-py")
}

/// Copies modules and packages: no tests, nothing hidden, nothing that was built.
fn copy_modules(from: &Path, to: &Path) -> Result<(), BuildError> {
    fs::create_dir_all(to).map_err(failed(format!("make {}", to.display())))?;
    let entries = fs::read_dir(from).map_err(failed(format!("read {}", from.display())))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_left_out = name.starts_with(['.', '_']) && name != "__init__.py";
        if is_left_out || name.starts_with("test_") || matches!(&*name, "build" | "tests" | "wit") {
            continue;
        }
        if path.is_dir() {
            copy_modules(&path, &to.join(&name))?;
        } else if name.ends_with(".py") {
            fs::copy(&path, to.join(&name)).map_err(failed(format!("copy {}", path.display())))?;
        }
    }
    Ok(())
}
