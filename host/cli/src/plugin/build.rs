//! `pintle plugin build`: from a project to a component that says who it is.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use pintle_dev::{
    guest,
    polyglot::{self, Language},
};
use serde_json::json;

use super::{Output, loaded, print, progress::Progress, section, transfer::write};

/// Arguments of `pintle plugin build`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The project: a folder with a `Cargo.toml`, `plugin.c`, `go.mod`, `package.json` or `pyproject.toml`.
    #[arg(default_value = ".")]
    project: PathBuf,
    /// The component to write; without it `NAME.wasm` in the project.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Where compilers keep what they make; without it `target/guest` of the project's workspace for Rust,
    /// and the folder `build` of the project for other languages.
    #[arg(long, value_name = "FOLDER")]
    target_dir: Option<PathBuf>,
    /// A config that the plugin accepts, where it does not accept an empty one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(super) async fn run(args: Args, output: Output, progress: &Progress) -> anyhow::Result<()> {
    let Args { project, out, target_dir, config } = args;
    let mut tell = |line: &str| progress.step(line);
    let built = match Language::of(&project) {
        // A project in Rust may have a package.json of its tools beside its manifest.
        Some(language) if !project.join("Cargo.toml").is_file() => {
            in_other(language, &project, target_dir.as_deref(), &mut tell)?
        }
        _ => in_rust(&project, target_dir.as_deref(), &mut tell)?,
    };
    let bare = loaded::read(&built.component)?;
    progress.step("asking the plugin who it is");
    let mut spec = loaded::empty_spec()?;
    if let Some(config) = &config {
        spec.config = loaded::read_yaml(config)?;
    }
    let plugin = loaded::load_bytes(&built.name, bare.clone(), spec).await?.plugin;
    let manifest = serde_json::to_string(plugin.manifest())?;
    let component = section::with_manifest(&bare, &manifest)?;
    let Built { name, language, .. } = built;
    let out = out.unwrap_or_else(|| project.join(format!("{name}.wasm")));
    write(&out, &component)?;
    let text = format!("{} ({} KiB)\n", out.display(), component.len().div_ceil(1024));
    let document = json!({"file": out, "bytes": component.len(), "name": name, "language": language});
    print(output, &text, &document)
}

/// What a compiler has made.
struct Built {
    component: PathBuf,
    name: String,
    language: String,
}

fn in_rust(project: &Path, target_dir: Option<&Path>, tell: &mut dyn FnMut(&str)) -> anyhow::Result<Built> {
    let name = package(project)?;
    let toolchain = guest::toolchain(project, tell).context("no compiler for guests")?;
    let target = guest::Target { package: &name, example: None };
    let built = guest::build_into(&toolchain, project, &[target], target_dir, tell)
        .with_context(|| format!("could not build {}", project.display()))?;
    let component = built.into_iter().next().context("cargo built nothing")?;
    Ok(Built { component, name, language: "Rust".to_owned() })
}

fn in_other(
    language: Language,
    project: &Path,
    build_folder: Option<&Path>,
    tell: &mut dyn FnMut(&str),
) -> anyhow::Result<Built> {
    let name = polyglot::name_of(project)?;
    let component = polyglot::build(language, project, build_folder, tell)?;
    Ok(Built { component, name, language: language.to_string() })
}

/// The name of the package in a project's `Cargo.toml`.
fn package(project: &Path) -> anyhow::Result<String> {
    let path = project.join("Cargo.toml");
    if !path.is_file() {
        bail!(
            "{} has no Cargo.toml, nor one of {}; `pintle plugin new NAME` writes a project",
            project.display(),
            Language::ALL.map(Language::marker).join(", ")
        )
    }
    let text = fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
    let mut in_package = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            in_package = line == "[package]";
        } else if let (true, Some((key, value))) = (in_package, line.split_once('='))
            && key.trim() == "name"
        {
            return Ok(value.trim().trim_matches('"').to_owned());
        }
    }
    bail!("{} has no package with a name", path.display())
}
