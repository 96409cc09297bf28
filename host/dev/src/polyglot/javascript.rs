//! JavaScript: componentize-js puts an engine and the project into one component, without WASI.

use std::process::Command;

use super::{BuildError, Project, interfaces::WORLD, tools};

/// The tool; with what it needs 385 MB.
const TOOL: &str = "@bytecodealliance/componentize-js@0.23.0";
/// Its program.
const PROGRAM: &str = "node_modules/@bytecodealliance/componentize-js/src/cli.js";
/// The module that has the exports.
const MODULE: &str = "app.js";

pub(super) fn build(project: &Project<'_>, progress: &mut dyn FnMut(&str)) -> Result<(), BuildError> {
    let tool = tools::node_package(TOOL, progress)?;
    progress("building with componentize-js (10 to 20 s)");
    let mut command = Command::new("node");
    command.arg(tool.join(PROGRAM)).arg(project.folder.join(MODULE));
    command.arg("--wit").arg(&project.staged.folder).args(["--world-name", WORLD]);
    command.arg("--out").arg(&project.out);
    // Each of these would be an import of WASI.
    command.args(["--disable", "stdio", "random", "clocks", "http", "fetch-event"]);
    tools::compile(command, "componentize-js")
}
