//! The peers, built from their Go modules, once a machine.
//!
//! A module's main package is built as a dependency of a module of ours that has its very requirements, so what
//! its makers tested is what runs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, bail, ensure};
use pintle_dev::cache;
use serde_json::Value;

/// A Go module whose root is a program or holds definitions of kinds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Module {
    pub path: &'static str,
    pub version: &'static str,
}

pub(crate) const HELM_CONTROLLER: Module =
    Module { path: "github.com/fluxcd/helm-controller", version: "v1.6.2" };
/// Of this one only the definitions are used: the chart's artifact is put into a status by hand.
pub(crate) const SOURCE_CONTROLLER: Module =
    Module { path: "github.com/fluxcd/source-controller", version: "v1.9.6" };
pub(crate) const HELM_OPERATOR: Module =
    Module { path: "github.com/operator-framework/helm-operator-plugins", version: "v0.8.0" };

/// As the images of the peers are built.
const BUILD: [&str; 4] = ["build", "-trimpath", "-buildvcs=false", "-mod=mod"];

// === impl Module ===

impl Module {
    fn name(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }

    /// Its program, built first when no run before did: two to five minutes on two cores.
    pub(crate) fn program(&self) -> anyhow::Result<PathBuf> {
        let go = output(&mut go(&["version"]))?;
        let key = cache::fingerprint(&[self.path, self.version, go.trim(), &BUILD.join(" ")]);
        let folder = cache::root()?.join(format!("peer-{}-{key}", self.name()));
        let program = folder.join("bin").join(self.name());
        let mut waiting = || eprintln!("waiting for another process that builds {}", self.name());
        let held = cache::Lock::acquire(&folder.with_extension("lock"), &mut waiting)?;
        if !program.is_file() {
            self.build(&folder)?;
        }
        drop(held);
        Ok(program)
    }

    /// The definitions of its kinds.
    pub(crate) fn definitions(&self) -> anyhow::Result<Vec<Value>> {
        let folder = self.fetch()?.join("config/crd/bases");
        let mut definitions = Vec::new();
        for entry in fs::read_dir(&folder).with_context(|| format!("could not read {}", folder.display()))? {
            let text = fs::read_to_string(entry?.path())?;
            definitions.push(serde_yaml::from_str(text.trim_start().trim_start_matches("---"))?);
        }
        Ok(definitions)
    }

    /// The folder of its sources.
    fn fetch(&self) -> anyhow::Result<PathBuf> {
        let wanted = format!("{}@{}", self.path, self.version);
        let mut command = go(&["mod", "download", "-json", &wanted]);
        let said = output(command.current_dir(std::env::temp_dir()))?;
        let said: Value = serde_json::from_str(&said).context("`go mod download` gave no JSON")?;
        let folder = said["Dir"].as_str().with_context(|| format!("{wanted} was not fetched: {said}"))?;
        Ok(folder.into())
    }

    /// Builds beside `folder` and renames: what is found there is always complete.
    fn build(&self, folder: &Path) -> anyhow::Result<()> {
        let sources = self.fetch()?;
        let scratch = folder.with_extension("part");
        if scratch.exists() {
            fs::remove_dir_all(&scratch)?;
        }
        fs::create_dir_all(&scratch)?;
        let theirs = fs::read_to_string(sources.join("go.mod"))?;
        fs::write(scratch.join("go.mod"), self.module_file(&theirs))?;
        fs::write(scratch.join("go.sum"), fs::read(sources.join("go.sum"))?)?;
        eprintln!("building {} {} (once, some minutes)", self.path, self.version);
        let mut build = go(&BUILD);
        build.args(["-o", "bin/", self.path]).current_dir(&scratch).env("CGO_ENABLED", "0");
        let status = build.stdout(Stdio::null()).status().context("could not start `go build`")?;
        ensure!(status.success(), "`go build` of {} failed", self.path);
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        Ok(fs::rename(&scratch, folder)?)
    }

    /// Its module file as one of ours: its requirements and replacements hold, but for those by folders of its own,
    /// which are modules with versions of their own.
    fn module_file(&self, theirs: &str) -> String {
        let is_kept = |line: &&str| !line.starts_with("module ") && !line.contains("=> ./");
        let kept: Vec<&str> = theirs.lines().filter(is_kept).collect();
        format!("module pintle.dev/peer\n\nrequire {} {}\n{}\n", self.path, self.version, kept.join("\n"))
    }
}

fn go(arguments: &[&str]) -> Command {
    let mut command = Command::new("go");
    command.args(arguments).env_remove("GOFLAGS").env("GOWORK", "off").stdin(Stdio::null());
    command
}

fn output(command: &mut Command) -> anyhow::Result<String> {
    let output =
        command.stderr(Stdio::inherit()).output().context("could not start go; it builds the peers")?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
