//! `pintle import`: projects of operators before, as objects of ours.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use clap::Subcommand;
use serde_json::{Map, Value, json};

use crate::{Ending, new, operator::parse_period, printed, rbac, template};

/// Fields of an entry that a Watch has under the same name.
const SAME: [&str; 7] = [
    "group",
    "version",
    "kind",
    "watchDependentResources",
    "maxConcurrentReconciles",
    "reconcilePeriod",
    "selector",
];

/// Fields of an entry that a Watch has in another form.
const OTHERS: [&str; 2] = ["chart", "overrideValues"];

/// Arguments of `pintle import`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    from: Project,
}

#[derive(Debug, Subcommand)]
enum Project {
    /// A project of the hybrid or the classic Helm operator: its `watches.yaml` and the charts that it names.
    Hybrid(Hybrid),
}

#[derive(Debug, clap::Args)]
struct Hybrid {
    /// The project's folder.
    folder: PathBuf,
    /// The folder that is made.
    #[arg(long, default_value = "pintle")]
    out: PathBuf,
    /// Where the charts will be served from, as `oci://registry/charts`; default: the folders they are in.
    #[arg(long, value_parser = new::parse_repository)]
    repository: Option<String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Ending> {
    let Project::Hybrid(args) = &args.from;
    let file = args.folder.join("watches.yaml");
    let text = fs::read_to_string(&file).with_context(|| format!("could not read {}", file.display()))?;
    let entries: Vec<Value> = serde_yaml::from_str(&text)
        .with_context(|| format!("{} is no list of entries with version, kind and chart", file.display()))?;
    let Some(first) = entries.first() else {
        bail!("{} has no entries: write one with version, kind and chart for each kind", file.display())
    };
    let name = rbac::name_for(text_of(first, "group"), text_of(first, "kind"));
    if args.out.exists() {
        bail!("{} is there already; name another folder with --out", args.out.display());
    }
    let imported: Vec<(Value, PathBuf)> = entries
        .iter()
        .enumerate()
        .map(|(at, entry)| {
            watch(args, entry).with_context(|| format!("{}: entry {}", file.display(), at + 1))
        })
        .collect::<anyhow::Result<_>>()?;
    fs::create_dir_all(&args.out).with_context(|| format!("could not make {}", args.out.display()))?;
    let mut sources = definitions(&args.folder);
    let mut told = String::new();
    for (watch, chart) in &imported {
        let name = watch["metadata"]["name"].as_str().unwrap_or_default();
        let path = args.out.join(format!("watch-{name}.yaml"));
        let text = serde_yaml::to_string(watch).context("could not write YAML")?;
        fs::write(&path, text).with_context(|| format!("could not write {}", path.display()))?;
        told += &format!("{}\n", path.display());
        sources.extend([path, chart.clone()]);
    }
    let path = args.out.join("rbac.yaml");
    fs::write(&path, rbac::yaml_of(&sources, Some(&name))?)
        .with_context(|| format!("could not write {}", path.display()))?;
    printed::print(&format!("{told}{}\n{}", path.display(), next_steps(args)))?;
    Ok(Ending::Done)
}

/// What is done with what was written.
fn next_steps(args: &Hybrid) -> String {
    let out = args.out.display();
    let note = match args.repository {
        Some(_) => String::new(),
        None => new::note_of_folder("each Watch", &args.out.join("watch-….yaml")),
    };
    format!(
        "{note}next: read the comments in {out}/rbac.yaml, install the definitions of your kinds, then kubectl apply -f {out}\n"
    )
}

fn text_of<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry[field].as_str().unwrap_or_default()
}

/// Refuses what a Watch would not say: a key that nobody knows, a period that is no time.
fn check_keys(entry: &Value) -> anyhow::Result<()> {
    let keys = entry.as_object().context("it is no map with version, kind and chart")?;
    let is_known = |key: &str| SAME.contains(&key) || OTHERS.contains(&key);
    if let Some(key) = keys.keys().find(|key| !is_known(key)) {
        bail!(
            "{key} is no key of an entry; take it away, or correct it to one of {}, {}",
            SAME.join(", "),
            OTHERS.join(", ")
        );
    }
    let Some(period) = entry.get("reconcilePeriod").filter(|period| !period.is_null()) else { return Ok(()) };
    let text = period.as_str().context("reconcilePeriod is no text; write 90s, 10m or 1h")?;
    parse_period(text).map(drop).map_err(|why| anyhow::anyhow!("reconcilePeriod: {why}"))
}

/// The Watch that says what an entry says, and the chart of it.
fn watch(args: &Hybrid, entry: &Value) -> anyhow::Result<(Value, PathBuf)> {
    check_keys(entry)?;
    let text = |field: &str| text_of(entry, field).to_owned();
    let (group, kind) = (text("group"), text("kind"));
    if kind.is_empty() || text("version").is_empty() || text("chart").is_empty() {
        bail!("it needs version, kind and chart");
    }
    let path = args.folder.join(text("chart"));
    let chart = template::read_chart(&path).with_context(|| format!("could not read {}", path.display()))?;
    let url = match &args.repository {
        Some(url) => url.clone(),
        None => {
            let path = path.canonicalize().context("could not find the chart")?;
            format!("file://{}", path.parent().unwrap_or(Path::new("/")).display())
        }
    };
    let mut spec: Map<String, Value> =
        SAME.iter().filter_map(|field| Some(((*field).to_owned(), entry.get(*field)?.clone()))).collect();
    spec.insert("group".to_owned(), json!(group));
    let repository = json!({"url": url});
    let chart = json!({"name": chart.name(), "version": chart.metadata.version, "repository": repository});
    spec.insert("chart".to_owned(), chart);
    if let Some(values) = entry.get("overrideValues").and_then(Value::as_object) {
        let is_template = |value: &Value| value.as_str().is_some_and(|text| text.contains("{{"));
        if let Some((key, _)) = values.iter().find(|(_, value)| is_template(value)) {
            bail!(
                "overrideValues.{key} is a template, which a Watch has none of; write ${{NAME}}, or keep the file and give it to the operator with --watches-file"
            );
        }
        spec.insert("overrideValues".to_owned(), Value::Object(values.clone()));
    }
    let name =
        if group.is_empty() { kind.to_lowercase() } else { format!("{}.{group}", kind.to_lowercase()) };
    let watch = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Watch", "metadata": {"name": name},
        "spec": spec});
    Ok((watch, path))
}

/// Definitions of the project's kinds, which say what their resources are called.
fn definitions(folder: &Path) -> Vec<PathBuf> {
    let bases = folder.join("config/crd/bases");
    let found = fs::read_dir(bases).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<_> = found.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    fn refused(watches: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("watches.yaml"), watches).unwrap();
        let args =
            Hybrid { folder: folder.path().to_owned(), out: folder.path().join("out"), repository: None };
        let err = run(&Args { from: Project::Hybrid(args) }).err().unwrap();
        assert!(!folder.path().join("out").exists(), "{watches}");
        format!("{err:#}")
    }

    #[test]
    fn what_a_watch_would_not_say_is_refused_with_file_entry_and_key() {
        let entry = "- {version: v1, kind: A, chart: a";
        for (watches, said) in [
            ("[]".to_owned(), "watches.yaml has no entries"),
            (format!("{entry}, reconcilePeriods: 5m}}"), "entry 1: reconcilePeriods is no key of an entry"),
            (format!("{entry}, reconcilePeriod: 5x}}"), "entry 1: reconcilePeriod: `5x` is not a time"),
            (format!("{entry}, reconcilePeriod: 5}}"), "entry 1: reconcilePeriod is no text"),
            ("- a".to_owned(), "entry 1: it is no map"),
        ] {
            let err = refused(&watches);
            assert!(err.contains(said), "{watches}: {err}");
        }
    }
}
