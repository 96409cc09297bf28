//! The files of a project, told apart by what is in them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use pintle_api::{Watch, watch::WatchSpec};
use serde_json::Value;

/// An object, and where it was read.
pub(super) struct Found<T> {
    pub(super) file: String,
    pub(super) object: T,
    /// As it was written.
    pub(super) raw: Value,
}

/// Objects in the files of a folder.
pub(super) struct Project {
    folder: PathBuf,
    objects: Vec<Found<Value>>,
}

/// Reads each file of a folder that ends `.yaml` or `.yml`; what is below it is not its own.
///
/// # Errors
/// When one cannot be read or is no YAML.
pub(super) fn read(folder: &Path) -> anyhow::Result<Project> {
    let listed = fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))?;
    let mut paths = listed.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "yaml" || end == "yml"));
    paths.sort();
    let mut objects = Vec::new();
    for path in paths {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
        for part in text.split("\n---") {
            let object: Value = serde_yaml::from_str(part.trim_start_matches('-'))
                .with_context(|| format!("{} is no YAML", path.display()))?;
            if !object.is_null() {
                objects.push(Found { file: file.clone(), raw: object.clone(), object });
            }
        }
    }
    Ok(Project { folder: folder.to_owned(), objects })
}

/// Where the chart of a Watch is: where it was said, else where the Watch says.
///
/// # Errors
/// When that is no folder of this machine.
pub(super) fn chart_of(watch: &Found<Watch>, named: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let chart = &watch.object.spec.chart;
    let Some(folder) = chart.repository.url.strip_prefix("file://") else {
        bail!(
            "{}: the chart is in {:?}, which is not asked here; name its folder or archive with --chart",
            watch.file,
            chart.repository.url
        );
    };
    Ok(Path::new(folder).join(&chart.name))
}

// === impl Project ===

impl Project {
    /// The Watches.
    ///
    /// # Errors
    /// When there is none, or one cannot be read.
    pub(super) fn watches(&self) -> anyhow::Result<Vec<Found<Watch>>> {
        let all = self.of_kind("Watch").map(|found| {
            let object = serde_json::from_value(found.object.clone())
                .with_context(|| format!("{}: the Watch cannot be read", found.file))?;
            Ok(Found { file: found.file.clone(), raw: found.raw.clone(), object })
        });
        let all = all.collect::<anyhow::Result<Vec<_>>>()?;
        if all.is_empty() {
            bail!(
                "no file of {} holds a Watch; name the folder of a project, as `pintle new` makes one",
                self.folder.display()
            );
        }
        Ok(all)
    }

    pub(super) fn definition_of(&self, watch: &WatchSpec) -> Option<&Found<Value>> {
        self.of_kind("CustomResourceDefinition").find(|found| {
            let spec = &found.object["spec"];
            spec["group"] == watch.group.as_str() && spec["names"]["kind"] == watch.kind.as_str()
        })
    }

    /// Objects of the kind that a Watch binds.
    pub(super) fn objects_of(&self, watch: &WatchSpec) -> Vec<&Found<Value>> {
        let version = match watch.group.as_str() {
            "" => watch.version.clone(),
            group => format!("{group}/{}", watch.version),
        };
        let is_one = |found: &&Found<Value>| {
            found.object["apiVersion"] == version.as_str() && found.object["kind"] == watch.kind.as_str()
        };
        self.objects.iter().filter(is_one).collect()
    }

    pub(super) fn roles(&self) -> impl Iterator<Item = &Found<Value>> {
        self.of_kind("ClusterRole")
    }

    fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Found<Value>> {
        self.objects.iter().filter(move |found| found.object["kind"] == kind)
    }
}
