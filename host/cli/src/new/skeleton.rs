//! The plugin in a new project: code of a vendor's own beside the chart, which works before it is written.

use std::path::Path;

use anyhow::bail;
use clap::ValueEnum as _;

use crate::plugin::{self, Interface, Lang};

/// Folder of the plugin in the project.
pub(super) const FOLDER: &str = "plugin";

/// What the plugin of a project is written in, where it has one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted(Option<Lang>);

/// A plugin that nothing uses yet.
pub(super) struct Skeleton {
    name: String,
    interface: Interface,
    lang: Lang,
    files: Vec<(&'static str, String)>,
}

/// A language, or `none`.
pub(super) fn parse_wanted(text: &str) -> Result<Wanted, String> {
    if text == "none" {
        return Ok(Wanted(None));
    }
    let known = || Lang::value_variants().iter().filter_map(|lang| lang.to_possible_value());
    let names: Vec<_> = known().map(|value| value.get_name().to_owned()).collect();
    Lang::from_str(text, true)
        .map(|lang| Wanted(Some(lang)))
        .map_err(|_| format!("write one of {}, or none", names.join(", ")))
}

/// The plugin for a kind; nothing where none is wanted. Without `interface` it makes values, in a language whose
/// projects can, else it says whether an object is ready.
pub(super) fn of(
    wanted: Wanted,
    interface: Option<Interface>,
    kind: &str,
) -> anyhow::Result<Option<Skeleton>> {
    let Some(lang) = wanted.0 else { return Ok(None) };
    let usual = if lang == Lang::Rust { Interface::ValueMapper } else { Interface::Readiness };
    let interface = interface.unwrap_or(usual);
    let does = match interface {
        Interface::ValueMapper => "values",
        Interface::Hooks => "hooks",
        Interface::PostRenderer => "objects",
        Interface::Readiness => "ready",
        Interface::Reconciler => bail!(
            "a reconciler stands in the place of a chart: `pintle plugin new NAME --interface reconciler` writes one"
        ),
    };
    let name = format!("{}-{does}", kind.to_lowercase());
    let files = plugin::project(lang, interface, &name)?;
    Ok(Some(Skeleton { name, interface, lang, files }))
}

// === impl Skeleton ===

impl Skeleton {
    /// Its files by their paths below [`FOLDER`].
    pub(super) fn files(&self) -> &[(&'static str, String)] {
        &self.files
    }

    /// What goes to the end of the Watch's `spec`: the lines that name the plugin, as comments.
    pub(super) fn lines_of_watch(&self) -> String {
        let Self { name, interface, .. } = self;
        let (what, then) = match interface {
            Interface::ValueMapper => (
                "makes values of each object",
                format!("take\n  # the marks away:\n  #valueMapper:\n  #  plugin: {name}\n"),
            ),
            Interface::Hooks => (
                "is called around each release",
                format!("take\n  # the marks away:\n  #hooks:\n  #- plugin: {name}\n"),
            ),
            Interface::PostRenderer => (
                "changes what was rendered",
                format!(
                    "name it\n  # in Chart.yaml, under annotations:\n  #   pintle.dev/post-renderer: {name}\n"
                ),
            ),
            Interface::Readiness | Interface::Reconciler => (
                "says when an object is ready",
                format!(
                    "annotate\n  # that object in the chart:\n  #   pintle.dev/wait: builtin && {name}\n"
                ),
            ),
        };
        format!("  # The plugin in {FOLDER}/ {what}. Once it is installed (README.md), {then}")
    }

    /// The line of `test.sh` that runs its tests.
    pub(super) fn test(&self) -> &'static str {
        match self.lang {
            Lang::Rust => "(cd plugin && cargo test)",
            Lang::C => "(cd plugin && sh tests/run.sh)",
            Lang::Go => "(cd plugin && go test)",
            Lang::JavaScript => "(cd plugin && node --test)",
            Lang::Python => "(cd plugin && python3 -m unittest)",
        }
    }

    /// What the README says of it.
    pub(super) fn readme(&self) -> String {
        let name = &self.name;
        let component = Path::new(FOLDER).join(format!("{name}.wasm"));
        let component = component.display();
        format!(
            "## The plugin\n\n`{FOLDER}/` is code of your own beside the chart, to begin with; the end of `watch.yaml` says \
             what it\nis for. Nothing uses it until it is installed and named there:\n\n\
             ```console\npintle plugin build {FOLDER}\n\
             pintle plugin push {component} oci://registry.example/plugins/{name}:0.1.0\n\
             pintle plugin inspect {component}   # ends with the Plugin object: set its image, and apply it\n```\n\n\
             What it may read or return must be the operator's right too: `pintle rbac PLUGIN.yaml` prints it.\n"
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use pintle_api::watch::WatchSpec;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_watch_without_the_marks_names_the_plugin() {
        for (interface, pointer) in
            [(Interface::ValueMapper, "/valueMapper/plugin"), (Interface::Hooks, "/hooks/0/plugin")]
        {
            let skeleton = of(Wanted(Some(Lang::Rust)), Some(interface), "Cache").unwrap().unwrap();
            let lines = skeleton.lines_of_watch();
            let spec = json!({"spec": {"group": "a.b", "version": "v1", "kind": "Cache"}});
            let text = serde_yaml::to_string(&spec).unwrap();
            let as_written: Value = serde_yaml::from_str(&format!("{text}{lines}")).unwrap();
            assert_eq!(as_written, spec, "{lines}");
            let marked = |line: &str| match line.strip_prefix("  #") {
                Some(rest) if !rest.starts_with(" The") && !rest.starts_with(" the") => {
                    format!("  {rest}\n")
                }
                _ => format!("{line}\n"),
            };
            let wired = format!("{text}{}", lines.lines().map(marked).collect::<String>());
            let wired: Value = serde_yaml::from_str(&wired).unwrap();
            assert_eq!(wired["spec"].pointer(pointer), Some(&json!(skeleton.name)), "{wired}");
            serde_json::from_value::<WatchSpec>(wired["spec"].clone()).unwrap();
        }
    }

    #[test]
    fn what_no_project_is_written_for_is_refused() {
        assert!(parse_wanted("none").is_ok_and(|wanted| wanted.0.is_none()));
        assert!(parse_wanted("js").is_ok_and(|wanted| wanted.0 == Some(Lang::JavaScript)));
        let unknown = parse_wanted("cobol").err().unwrap();
        assert!(unknown.contains("rust, c, go, javascript, python, or none"), "{unknown}");
        let reconciler = of(Wanted(Some(Lang::Rust)), Some(Interface::Reconciler), "A").err().unwrap();
        assert!(reconciler.to_string().contains("in the place of a chart"), "{reconciler}");
        assert!(of(Wanted(Some(Lang::Go)), Some(Interface::Hooks), "A").is_err());
    }
}
