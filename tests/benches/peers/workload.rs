//! The chart, and the values of each release.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pintle_source::Packed;
use serde_json::{Value, json};

/// Namespace of everything that is made.
pub(crate) const NAMESPACE: &str = "bench";
/// Releases worked on at once, by every operator.
pub(crate) const WORKERS: usize = 10;

/// The chart's folder.
pub(crate) fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/charts/bench")
}

/// The chart as an archive.
pub(crate) fn archive() -> anyhow::Result<Packed> {
    let (folder, mut files) = (chart(), Vec::new());
    for inside in [folder.clone(), folder.join("templates")] {
        for entry in fs::read_dir(inside)? {
            let path = entry?.path();
            if path.is_file() {
                let name = path.strip_prefix(&folder)?.to_string_lossy().into_owned();
                files.push(pintle_chart::File::new(name, &fs::read(&path)?));
            }
        }
    }
    Ok(pintle_source::pack(files)?)
}

/// Name of one owner, of its release and of all objects of it.
pub(crate) fn name(number: usize) -> String {
    format!("app-{number}")
}

/// What one release sets: unlike all others.
pub(crate) fn values(number: usize) -> Value {
    json!({
        "fullnameOverride": name(number),
        "page": {"title": format!("Page {number}"), "color": format!("#{:06x}", number * 4099 % 0x00ff_ffff)},
        "settings": {"greeting": format!("number {number} is {{{{ .Release.Name }}}} in {{{{ .Release.Namespace }}}}")},
    })
}
