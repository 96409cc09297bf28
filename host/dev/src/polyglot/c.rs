//! C: bindings of ours, and a C compiler that comes as a Python package with a libc for WebAssembly.

use std::{fs, process::Command};

use wit_bindgen_core::Files;

use super::{BuildError, Language, Project, failed, interfaces, tools};

/// The compiler; a wheel that unpacks to 430 MB.
const COMPILER: &str = "ziglang==0.17.1";

pub(super) fn build(project: &Project<'_>, progress: &mut dyn FnMut(&str)) -> Result<(), BuildError> {
    let compiler = tools::python_package(Language::C, COMPILER, progress)?;
    let bindings = project.build.join("bindings");
    write_bindings(project, &bindings)?;
    progress("building with zig cc (20 s the first time, when it makes its libc)");
    let module = project.build.join("module.wasm");
    let cache = compiler.with_extension("cache");
    let mut command = Command::new("python3");
    command
        .env("PYTHONPATH", &compiler)
        .env("ZIG_GLOBAL_CACHE_DIR", &cache)
        .env("ZIG_LOCAL_CACHE_DIR", &cache);
    command.args(["-m", "ziglang", "cc", "-target", "wasm32-wasi", "-mexec-model=reactor"]);
    command.args(["-std=c11", "-Oz", "-s", "-Wall", "-Wextra", "-Werror=implicit-function-declaration"]);
    command.arg("-I").arg(&bindings).arg("-o").arg(&module);
    command.args(sources(project)?);
    command
        .arg("-Wno-unused-parameter")
        .args(["plugin.c", "plugin_component_type.o"].map(|name| bindings.join(name)));
    tools::compile(command, "zig cc")?;
    let module = fs::read(&module).map_err(failed(format!("read {}", module.display())))?;
    let component = interfaces::component(&module)?;
    fs::write(&project.out, component).map_err(failed(format!("write {}", project.out.display())))
}

/// The C files beside `plugin.c`; tests are in a folder below.
fn sources(project: &Project<'_>) -> Result<Vec<std::path::PathBuf>, BuildError> {
    let entries =
        fs::read_dir(project.folder).map_err(failed(format!("read {}", project.folder.display())))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut sources: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "c")).collect();
    sources.sort();
    Ok(sources)
}

fn write_bindings(project: &Project<'_>, folder: &std::path::Path) -> Result<(), BuildError> {
    fs::create_dir_all(folder).map_err(failed(format!("make {}", folder.display())))?;
    let (mut resolve, mut files) = (project.staged.resolve.clone(), Files::default());
    let generated =
        wit_bindgen_c::Opts::default().build().generate(&mut resolve, project.staged.world, &mut files);
    generated.map_err(|why| BuildError::Component(format!("{why:#}")))?;
    for (name, contents) in files.iter() {
        let path = folder.join(name);
        fs::write(&path, contents).map_err(failed(format!("write {}", path.display())))?;
    }
    Ok(())
}
