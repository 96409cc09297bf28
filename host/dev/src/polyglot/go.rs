//! Go: the standard toolchain makes a module for WASI, whose imports and exports the project lays out
//! itself. Such a plugin needs `wasi: true` in its Plugin object.

use std::{fs, process::Command};

use super::{BuildError, Project, failed, tools};

pub(super) fn build(project: &Project<'_>, progress: &mut dyn FnMut(&str)) -> Result<(), BuildError> {
    tools::go()?;
    progress("building with go (10 s the first time)");
    let module = project.build.join("module.wasm");
    let mut command = Command::new("go");
    command.args(["build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o"]).arg(&module).arg(".");
    command.current_dir(project.folder).env("GOOS", "wasip1").env("GOARCH", "wasm").env_remove("GOFLAGS");
    tools::compile(command, "go build")?;
    let module = fs::read(&module).map_err(failed(format!("read {}", module.display())))?;
    let component = project.staged.component_of_bare(module)?;
    fs::write(&project.out, component).map_err(failed(format!("write {}", project.out.display())))
}
