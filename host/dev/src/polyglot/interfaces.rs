//! The interfaces of a project: its own world beside those of Pintle, and components made for it.

use std::{fs, path::Path};

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::{PackageId, Resolve, WorldId};

use super::{BuildError, failed};

/// Pintle's interfaces, as this program speaks them.
const INTERFACES: &str = include_str!("../../../../wit/plugin.wit");
/// What every project calls its world.
pub(super) const WORLD: &str = "plugin";

/// The interfaces of a project, put together.
pub(super) struct Staged {
    /// The folder with all of them, for tools that read it themselves.
    pub(super) folder: std::path::PathBuf,
    /// The same, read.
    pub(super) resolve: Resolve,
    pub(super) world: WorldId,
}

/// The name of a project: that of the package in its folder `wit`.
///
/// # Errors
/// There is none, or it is not WIT.
pub fn name_of(project: &Path) -> Result<String, BuildError> {
    let (resolve, package) = read(&project.join("wit"))?;
    let package = resolve.packages.get(package);
    Ok(package.map(|package| package.name.name.clone()).unwrap_or_default())
}

/// Puts the project's world and Pintle's interfaces into one folder.
pub(super) fn stage(project: &Path, build: &Path) -> Result<Staged, BuildError> {
    let (own, folder) = (project.join("wit"), build.join("wit"));
    let _ = fs::remove_dir_all(&folder);
    let deps = folder.join("deps/pintle-plugin");
    fs::create_dir_all(&deps).map_err(failed(format!("make {}", deps.display())))?;
    let write =
        |path: &Path, text: &str| fs::write(path, text).map_err(failed(format!("write {}", path.display())));
    write(&deps.join("plugin.wit"), INTERFACES)?;
    for (name, text) in sources(&own)? {
        write(&folder.join(name), &text)?;
    }
    let (resolve, package) = read(&own)?;
    let world = resolve.select_world(&[package], Some(WORLD)).map_err(|why| wrong(&own, &why))?;
    Ok(Staged { folder, resolve, world })
}

fn read(folder: &Path) -> Result<(Resolve, PackageId), BuildError> {
    let mut resolve = Resolve::default();
    resolve.push_str("plugin.wit", INTERFACES).map_err(|why| wrong(folder, &why))?;
    let whole: String = sources(folder)?.into_iter().map(|(_, text)| text + "\n").collect();
    if whole.is_empty() {
        return Err(BuildError::Interfaces {
            folder: folder.to_owned(),
            why: "it has no file that ends in .wit; `pintle plugin new` writes one".to_owned(),
        });
    }
    let package = resolve.push_str("world.wit", &whole).map_err(|why| wrong(folder, &why))?;
    Ok((resolve, package))
}

/// The files of the folder in the order of their names; none where there is no such folder.
fn sources(folder: &Path) -> Result<Vec<(String, String)>, BuildError> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut sources = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".wit") {
            let text = fs::read_to_string(&path).map_err(failed(format!("read {}", path.display())))?;
            sources.push((name, text));
        }
    }
    sources.sort();
    Ok(sources)
}

fn wrong(folder: &Path, why: &dyn std::fmt::Display) -> BuildError {
    BuildError::Interfaces { folder: folder.to_owned(), why: format!("{why:#}") }
}

/// The component of a module that says itself which world it was made for.
pub(super) fn component(module: &[u8]) -> Result<Vec<u8>, BuildError> {
    let adapter = (WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER);
    // The adapter is only taken where the module asks for WASI.
    let encoder = ComponentEncoder::default().validate(true).module(module);
    let encoder = encoder.and_then(|encoder| encoder.adapter(adapter.0, adapter.1));
    let encoded = encoder.and_then(|mut encoder| encoder.encode());
    encoded.map_err(|why| BuildError::Component(format!("{why:#}")))
}

impl Staged {
    /// The component of a module that only has the right imports and exports.
    pub(super) fn component_of_bare(&self, mut module: Vec<u8>) -> Result<Vec<u8>, BuildError> {
        wit_component::embed_component_metadata(&mut module, &self.resolve, self.world, StringEncoding::UTF8)
            .map_err(|why| BuildError::Component(format!("{why:#}")))?;
        component(&module)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn a_world_may_ask_for_more_than_those_of_pintle_and_names_the_project() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("wit")).unwrap();
        let world = "package vendor:gpu-ready;\nworld plugin {\n  include pintle:plugin/readiness-plugin@0.1.0;\n  \
                     import pintle:plugin/pod-logs@0.1.0;\n}\n";
        fs::write(folder.path().join("wit/world.wit"), world).unwrap();
        assert_eq!(name_of(folder.path()).unwrap(), "gpu-ready");
        let staged = stage(folder.path(), &folder.path().join("build")).unwrap();
        assert!(staged.resolve.worlds[staged.world].imports.len() > 4);
        assert!(staged.folder.join("deps/pintle-plugin/plugin.wit").is_file());
        fs::write(folder.path().join("wit/world.wit"), "package vendor:a;\nworld other {}\n").unwrap();
        let error = stage(folder.path(), &folder.path().join("build")).err().unwrap();
        assert!(error.to_string().contains("plugin"), "{error}");
    }
}
