//! Projects that new ones are copies of: the plugins in `plugins/guests`, which the tests build and call.

/// Files of a project, each with its path.
pub(super) type Templates = &'static [(&'static str, &'static str)];

/// The name of those plugins.
const NAME: &str = "wait-for";

/// The files of one project, by their paths below it.
macro_rules! files {
    ($folder:literal: $($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../../../plugins/guests/", $folder, "/", $path)))),+]
    };
}

pub(super) const C: Templates = files!("c": "README.md", ".gitignore", "wit/world.wit", "plugin.c", "logic.h", "logic.c",
    "json.h", "json.c", "tests/run.sh", "tests/test_logic.c", "samples/args.json", "samples/target.yaml", "samples/objects/web.yaml");
pub(super) const GO: Templates = files!("go": "README.md", ".gitignore", "wit/world.wit", "go.mod", "main.go", "logic.go",
    "logic_test.go", "app.go", "abi.go", "samples/args.json", "samples/target.yaml", "samples/objects/web.yaml");
pub(super) const JAVASCRIPT: Templates = files!("javascript": "README.md", ".gitignore", "wit/world.wit", "package.json",
    "logic.js", "logic.test.js", "app.js", "samples/args.json", "samples/target.yaml", "samples/objects/web.yaml");
pub(super) const PYTHON: Templates = files!("python": "README.md", ".gitignore", "wit/world.wit", "pyproject.toml",
    "logic.py", "test_logic.py", "app.py", "samples/args.json", "samples/target.yaml", "samples/objects/web.yaml");

/// The files under another name.
pub(super) fn of(templates: Templates, name: &str) -> Vec<(&'static str, String)> {
    templates.iter().map(|(path, text)| (*path, text.replace(NAME, name))).collect()
}
