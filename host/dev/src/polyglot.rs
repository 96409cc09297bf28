//! Builds of plugins in other languages than Rust, with tools that come from the registries of those
//! languages by their ordinary clients and are kept in the cache folder.

mod c;
mod go;
mod interfaces;
mod javascript;
mod python;
mod tools;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use interfaces::Staged;
pub use interfaces::name_of;

/// What a plugin is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    /// C11, without a libc's files and clock.
    C,
    /// Go, with the standard toolchain.
    Go,
    /// JavaScript, as modules.
    JavaScript,
    /// Python 3.
    Python,
}

/// Why a plugin could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A program is not on this machine.
    #[error("{program} was not found, which plugins in {language} are built with: {remedy}")]
    NoProgram {
        /// What it is called.
        program: &'static str,
        /// Who needs it.
        language: Language,
        /// How to get it.
        remedy: &'static str,
    },
    /// A package registry did not give what is needed.
    #[error("could not get {package} by {client}: {output}")]
    NoPackage {
        /// Package and version.
        package: String,
        /// The client of its registry.
        client: &'static str,
        /// The last lines of what it said.
        output: String,
    },
    /// The compiler of the language refused.
    #[error("{program} could not build the plugin:\n{output}")]
    Refused {
        /// Which program.
        program: &'static str,
        /// All that it said.
        output: String,
    },
    /// The folder `wit` does not say which interfaces the plugin has.
    #[error("{} does not name the interfaces of the plugin: {why}", folder.display())]
    Interfaces {
        /// The folder.
        folder: PathBuf,
        /// What is wrong, with the place.
        why: String,
    },
    /// The compiled module does not fit the interfaces.
    #[error("the compiled module is no component of its world: {0}")]
    Component(String),
    /// A file operation failed.
    #[error("could not {action}")]
    Io {
        /// What was tried.
        action: String,
        /// Why it failed.
        source: io::Error,
    },
}

/// What a build goes by.
pub(crate) struct Project<'a> {
    folder: &'a Path,
    /// For what is made on the way; nothing in it is worth keeping.
    build: PathBuf,
    staged: Staged,
    out: PathBuf,
}

/// Builds the component of a project and returns its path, below the folder `build` of the project unless
/// `build_folder` names another. The first build on a machine fetches tools.
///
/// # Errors
/// A tool is missing, a registry out of reach (a retry may help), or the project does not compile.
pub fn build(
    language: Language,
    folder: &Path,
    build_folder: Option<&Path>,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, BuildError> {
    let folder = &folder.canonicalize().map_err(failed(format!("find {}", folder.display())))?;
    let build = match build_folder {
        Some(named) => std::path::absolute(named).map_err(failed(format!("find {}", named.display())))?,
        None => folder.join("build"),
    };
    fs::create_dir_all(&build).map_err(failed(format!("make {}", build.display())))?;
    let staged = interfaces::stage(folder, &build)?;
    let out = build.join("component.wasm");
    let project = Project { folder, build, staged, out };
    match language {
        Language::C => c::build(&project, progress)?,
        Language::Go => go::build(&project, progress)?,
        Language::JavaScript => javascript::build(&project, progress)?,
        Language::Python => python::build(&project, progress)?,
    }
    Ok(project.out)
}

fn failed(action: impl Into<String>) -> impl FnOnce(io::Error) -> BuildError {
    let action = action.into();
    |source| BuildError::Io { action, source }
}

// === impl Language ===

impl Language {
    /// Every language, in the order of their names.
    pub const ALL: [Self; 4] = [Self::C, Self::Go, Self::JavaScript, Self::Python];

    /// The language of the project in a folder, told from the file that each project in it has.
    #[must_use]
    pub fn of(folder: &Path) -> Option<Self> {
        Self::ALL.into_iter().find(|language| folder.join(language.marker()).is_file())
    }

    /// The file that tells a project in this language from others.
    #[must_use]
    pub fn marker(self) -> &'static str {
        match self {
            Self::C => "plugin.c",
            Self::Go => "go.mod",
            Self::JavaScript => "package.json",
            Self::Python => "pyproject.toml",
        }
    }

    /// Says why plugins in this language cannot be built here; nothing where they can, as far as can be
    /// told without a registry.
    #[must_use]
    pub fn lacks(self) -> Option<BuildError> {
        let found = match self {
            Self::C | Self::Python => tools::python(self),
            Self::Go => tools::go(),
            Self::JavaScript => tools::node(),
        };
        found.err()
    }
}

impl std::fmt::Display for Language {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::C => "C",
            Self::Go => "Go",
            Self::JavaScript => "JavaScript",
            Self::Python => "Python",
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn a_language_is_told_from_the_files_of_a_project() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Language::of(folder.path()), None);
        for language in Language::ALL {
            let project = folder.path().join(language.to_string());
            fs::create_dir(&project).unwrap();
            fs::write(project.join(language.marker()), "").unwrap();
            assert_eq!(Language::of(&project), Some(language));
        }
    }

    #[test]
    fn a_project_without_interfaces_says_what_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let error = build(Language::C, folder.path(), None, &mut |_| ()).unwrap_err();
        assert!(matches!(&error, BuildError::Interfaces { .. }), "{error}");
        assert!(error.to_string().contains("wit does not name the interfaces of the plugin"), "{error}");
    }
}
