//! `pintle plugin build`: from a project to a component that says who it is.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use pintle_dev::guest;
use serde_json::json;

use super::{Output, loaded, print, progress::Progress, section, transfer::write};

/// Arguments of `pintle plugin build`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The project; a folder with a `Cargo.toml`.
    #[arg(default_value = ".")]
    project: PathBuf,
    /// The component to write; without it `NAME.wasm` in the project.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Where cargo keeps what it has compiled; without it `target/guest` of the project's workspace.
    #[arg(long, value_name = "FOLDER")]
    target_dir: Option<PathBuf>,
    /// A config that the plugin accepts, where it does not accept an empty one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(super) async fn run(args: Args, output: Output, progress: &Progress) -> anyhow::Result<()> {
    let Args { project, out, target_dir, config } = args;
    let package = package(&project)?;
    let mut tell = |line: &str| progress.step(line);
    let toolchain = guest::toolchain(&project, &mut tell).context("no compiler for guests")?;
    let target = guest::Target { package: &package, example: None };
    let target_dir = target_dir.as_deref();
    let built = guest::build_into(&toolchain, &project, &[target], target_dir, &mut tell)
        .with_context(|| format!("could not build {}", project.display()))?;
    let built = built.first().context("cargo built nothing")?;
    let bare = loaded::read(built)?;
    progress.step("asking the plugin who it is");
    let mut spec = loaded::empty_spec()?;
    if let Some(config) = &config {
        spec.config = loaded::read_yaml(config)?;
    }
    let plugin = loaded::load_bytes(&package, bare.clone(), spec).await?.plugin;
    let manifest = serde_json::to_string(plugin.manifest())?;
    let component = section::with_manifest(&bare, &manifest)?;
    let out = out.unwrap_or_else(|| project.join(format!("{package}.wasm")));
    write(&out, &component)?;
    let text = format!("{} ({} KiB)\n", out.display(), component.len().div_ceil(1024));
    print(output, &text, &json!({"file": out, "bytes": component.len(), "name": package}))
}

/// The name of the package in a project's `Cargo.toml`.
fn package(project: &Path) -> anyhow::Result<String> {
    let path = project.join("Cargo.toml");
    if !path.is_file() {
        bail!(
            "{} has no Cargo.toml; `pintle plugin new NAME` writes a project, and guests in other languages \
             are built as their README says",
            project.display()
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
