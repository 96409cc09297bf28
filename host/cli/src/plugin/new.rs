//! `pintle plugin new`: a project that builds, with a test and samples.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use serde_json::json;

use super::{
    Output, print,
    templates::{self, Templates},
    transfer::write,
};
use crate::scenario;

const MANIFEST: &str = include_str!("templates/Cargo.toml.txt");
const LINKER: &str = include_str!("templates/config.toml");
const README: &str = include_str!("templates/README.md.txt");
const TARGET: &str = include_str!("templates/target.yaml");

/// Arguments of `pintle plugin new`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What it is written in.
    #[arg(long, value_enum, default_value = "rust")]
    lang: Lang,
    /// Name of the plugin: lower case letters, digits and dashes.
    name: String,
    /// What it does.
    #[arg(long, value_enum, default_value = "readiness")]
    interface: Interface,
    /// The folder to make; without it the name.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// The folder of the SDK; without it that of the source tree of this program, else the repository.
    #[arg(long, value_name = "FOLDER")]
    sdk: Option<PathBuf>,
}

/// What a plugin is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lang {
    /// Small and fast components, with an SDK.
    Rust,
    /// Smaller still; needs python3, with which its compiler comes.
    C,
    /// Needs go, and `wasi: true` in the Plugin object.
    Go,
    /// Needs node.
    #[value(name = "javascript", alias = "js")]
    JavaScript,
    /// Needs python3.
    Python,
}

impl Lang {
    /// The project that a new one is a copy of; Rust has one for each interface.
    fn templates(self) -> Option<Templates> {
        match self {
            Self::Rust => None,
            Self::C => Some(templates::C),
            Self::Go => Some(templates::GO),
            Self::JavaScript => Some(templates::JAVASCRIPT),
            Self::Python => Some(templates::PYTHON),
        }
    }
}

/// What a plugin does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Interface {
    /// Says whether an object is ready.
    Readiness,
    /// Makes chart values, and pools of nodes.
    ValueMapper,
    /// Changes what was rendered.
    PostRenderer,
    /// Is called around a state.
    Hooks,
    /// Says what shall be there for an owner.
    Reconciler,
}

pub(super) fn run(args: &Args, output: Output) -> anyhow::Result<()> {
    let Args { lang, name, interface, dir, sdk } = args;
    let folder = dir.clone().unwrap_or_else(|| PathBuf::from(name));
    if folder.exists() {
        bail!("{} is there already; name another folder with --dir", folder.display())
    }
    let files = files_of(*lang, *interface, name, sdk.as_deref())?;
    for (path, text) in &files {
        write(&folder.join(path), text.as_bytes())?;
    }
    let paths: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
    let shown = folder.display();
    // Only a project with a known good state can be tested as it is.
    let then = match paths.contains(&"samples/target.yaml") {
        true => format!("then: pintle plugin test {}\n", folder.join(format!("{name}.wasm")).display()),
        false => String::new(),
    };
    let text = format!("{shown}: {}\nnext: pintle plugin build {shown}\n{then}", paths.join(", "));
    print(output, &text, &json!({"folder": folder, "files": paths}))
}

/// The files of a new project, by their paths below its folder.
pub(crate) fn project(
    lang: Lang,
    interface: Interface,
    name: &str,
) -> anyhow::Result<Vec<(&'static str, String)>> {
    files_of(lang, interface, name, None)
}

fn files_of(
    lang: Lang,
    interface: Interface,
    name: &str,
    sdk: Option<&Path>,
) -> anyhow::Result<Vec<(&'static str, String)>> {
    check_name(name)?;
    match lang.templates() {
        None => files(name, interface, &dependency(sdk)?),
        Some(_) if interface != Interface::Readiness => bail!(
            "`new` writes projects in {} for readiness only; another interface is another `include` in wit/world.wit",
            lang.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
        ),
        Some(templates) => Ok(templates::of(templates, name)),
    }
}

fn files(name: &str, interface: Interface, sdk: &str) -> anyhow::Result<Vec<(&'static str, String)>> {
    let filled = |template: &str| template.replace("{name}", name).replace("{sdk}", sdk);
    let mut files = vec![
        ("Cargo.toml", filled(MANIFEST)),
        (".cargo/config.toml", LINKER.to_owned()),
        (".gitignore", "/target\n*.wasm\n".to_owned()),
        ("src/lib.rs", interface.source(name)?),
    ];
    let is_readiness = interface == Interface::Readiness;
    let more = if is_readiness {
        files.push(("samples/target.yaml", TARGET.to_owned()));
        format!("pintle plugin test {name}.wasm      the contract, with the state in samples/\n")
    } else {
        String::new()
    };
    let readme = filled(README).replace("{more}", &more).replace("{interface}", interface.word());
    files.push(("README.md", readme));
    Ok(files)
}

impl Interface {
    fn word(self) -> &'static str {
        match self {
            Self::Readiness => "readiness",
            Self::ValueMapper => "value-mapper",
            Self::PostRenderer => "post-renderer",
            Self::Hooks => "hooks",
            Self::Reconciler => "reconciler",
        }
    }

    /// The SDK's example of this interface, and its name there.
    fn example(self) -> (&'static str, &'static str) {
        match self {
            Self::Readiness => ("has-keys", include_str!("../../../../plugin-sdk/examples/has_keys.rs")),
            Self::ValueMapper => ("replicas", include_str!("../../../../plugin-sdk/examples/replicas.rs")),
            Self::PostRenderer => ("labels", include_str!("../../../../plugin-sdk/examples/labels.rs")),
            Self::Hooks => ("backup-first", include_str!("../../../../plugin-sdk/examples/backup_first.rs")),
            Self::Reconciler => ("greeter", include_str!("../../../../plugin-sdk/examples/greeter.rs")),
        }
    }

    /// The example under another name, its check at the end as a unit test.
    fn source(self, name: &str) -> anyhow::Result<String> {
        let (own, text) = self.example();
        let (logic, check) =
            text.split_once("/// On the machine of its author").context("an example has no check")?;
        let (_, body) = check.split_once("pub fn example() {\n").context("an example has no check")?;
        let logic = logic.replace(&format!("Manifest::new(\"{own}\""), &format!("Manifest::new(\"{name}\""));
        let body: String = body.trim_end().trim_end_matches('}').lines().map(indented).collect();
        Ok(format!(
            "{logic}#[cfg(test)]\nmod tests {{\n    use super::*;\n\n    #[test]\n    fn it_works_natively() {{\n{body}    }}\n}}\n"
        ))
    }
}

fn indented(line: &str) -> String {
    if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") }
}

/// A Plugin object has this name, and so has a package of cargo.
fn check_name(name: &str) -> anyhow::Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if begins && name.bytes().all(is_plain) && !name.ends_with('-') && name.len() <= 63 {
        return Ok(());
    }
    bail!("{name:?} cannot be the name of a Plugin: use lower case letters, digits and dashes, as gpu-ready")
}

/// Where cargo finds the SDK.
fn dependency(named: Option<&Path>) -> anyhow::Result<String> {
    let own = scenario::source_tree().join("plugin-sdk");
    let folder = named.map(Path::to_owned).or_else(|| own.is_dir().then_some(own));
    let Some(folder) = folder else {
        return Ok(format!(
            "git = \"{}\", tag = \"v{}\"",
            env!("CARGO_PKG_REPOSITORY"),
            env!("CARGO_PKG_VERSION")
        ));
    };
    let folder = folder.canonicalize().with_context(|| format!("there is no SDK in {}", folder.display()))?;
    if !folder.join("Cargo.toml").is_file() {
        bail!("there is no SDK in {}; --sdk names the folder `plugin-sdk` of a checkout", folder.display())
    }
    Ok(format!("path = {:?}", folder.display().to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn every_interface_has_a_source_with_its_name_and_a_test() {
        for interface in Interface::value_variants() {
            let source = interface.source("gpu-ready").unwrap();
            assert!(source.contains("Manifest::new(\"gpu-ready\""), "{source}");
            assert!(source.contains("fn it_works_natively() {\n"), "{source}");
            assert!(!source.contains("pub fn example"), "{source}");
        }
    }

    #[test]
    fn a_name_that_no_plugin_can_have_is_refused() {
        for name in ["", "GPU", "1a", "a_b", "a-", "a/b"] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name("gpu-ready-2").is_ok());
    }
}
