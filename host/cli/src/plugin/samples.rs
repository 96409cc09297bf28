//! The folder `samples` of a project, where a plugin's author keeps what calls are made with.

use std::path::{Path, PathBuf};

use pintle_dev::polyglot::Language;

/// Folders that samples are looked for in; of these the first that is there counts.
#[derive(Clone, Debug)]
pub(super) struct Samples(Vec<PathBuf>);

impl Default for Samples {
    fn default() -> Self {
        Self(vec![PathBuf::from("samples")])
    }
}

impl Samples {
    /// Those beside a component, or of the project around it; else those in the working directory.
    pub(super) fn of(plugin: &str) -> Self {
        let mut folders = match plugin.starts_with("oci://") {
            true => Vec::new(),
            false => around(Path::new(plugin)),
        };
        folders.push(PathBuf::from("samples"));
        Self(folders)
    }

    /// A file or folder of the samples, where it is there.
    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        let folder = self.0.iter().find(|folder| folder.is_dir())?;
        Some(folder.join(name)).filter(|path| path.exists())
    }
}

/// `samples` beside a component, and in the folders above it up to its project's; without a project above it
/// only beside it.
fn around(component: &Path) -> Vec<PathBuf> {
    let absolute = std::path::absolute(component).unwrap_or_default();
    let above: Vec<&Path> = absolute.ancestors().skip(1).collect();
    let count = above.iter().position(|folder| is_project(folder)).map_or(1, |at| at + 1);
    above.into_iter().take(count).map(|folder| folder.join("samples")).collect()
}

fn is_project(folder: &Path) -> bool {
    folder.join("Cargo.toml").is_file()
        || Language::ALL.iter().any(|language| folder.join(language.marker()).is_file())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use std::fs;

    use super::*;

    #[test]
    fn samples_of_the_project_around_a_component_are_found_and_none_further_up() {
        let folder = tempfile::tempdir().unwrap();
        let made = |path: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(&path).unwrap();
            path
        };
        let (above, own) = (made("samples"), made("mine/samples"));
        fs::write(above.join("owner.yaml"), "").unwrap();
        fs::write(own.join("target.yaml"), "").unwrap();
        let component = made("mine/build/deep").join("a.wasm").display().to_string();
        assert_eq!(Samples::of(&component).find("target.yaml"), None, "there is no project yet");
        fs::write(folder.path().join("mine/go.mod"), "").unwrap();
        assert_eq!(Samples::of(&component).find("target.yaml"), Some(own.join("target.yaml")));
        assert_eq!(Samples::of(&component).find("owner.yaml"), None);
    }
}
