//! `pintle new`: a kind for a chart, as a folder that a vendor goes on from.

mod schema;
mod skeleton;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use pintle_chart::Chart;
use serde_json::{Value, json};

use crate::{Ending, plugin::Interface, printed, rbac, template};
use skeleton::{Skeleton, Wanted};

/// Arguments of `pintle new`.
#[derive(Debug, clap::Args)]
#[command(disable_version_flag = true)]
pub(crate) struct Args {
    /// The kind in the singular, as `Memcached`.
    kind: String,
    /// The chart that each object of the kind becomes: a folder or an archive.
    #[arg(long)]
    chart: PathBuf,
    /// Group of the kind.
    #[arg(long, default_value = "charts.example.com")]
    group: String,
    /// Version of the kind.
    #[arg(long, default_value = "v1alpha1")]
    version: String,
    /// Where the chart will be served from, as `oci://registry/charts`; default: the folder it is in.
    #[arg(long, value_parser = parse_repository)]
    repository: Option<String>,
    /// The folder that is made; default: the kind in small letters.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Language of a plugin to begin with: rust, c, go, javascript or python; none: no plugin.
    #[arg(long, value_name = "LANGUAGE", default_value = "rust", value_parser = skeleton::parse_wanted)]
    plugin: Wanted,
    /// What that plugin does; default: value-mapper in Rust, else readiness.
    #[arg(long, value_enum)]
    interface: Option<Interface>,
    /// Print the version of this program.
    #[arg(short = 'V', action = clap::ArgAction::Version)]
    told_version: Option<bool>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Ending> {
    check(args)?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(args.kind.to_lowercase()));
    if out.exists() {
        bail!("{} is there already; name another folder with --out", out.display());
    }
    let chart = template::read_chart(&args.chart)
        .with_context(|| format!("could not read {}", args.chart.display()))?;
    let objects = [
        ("crd.yaml", definition(args, &chart)),
        ("watch.yaml", watch(args, &chart)?),
        ("sample.yaml", sample(args, &chart)),
    ];
    let skeleton = skeleton::of(args.plugin, args.interface, &args.kind)?;
    for (name, object) in &objects {
        let text = serde_yaml::to_string(object).context("could not write YAML")?;
        // The `spec` is the last of a Watch's fields.
        let more = skeleton.as_ref().filter(|_| *name == "watch.yaml").map(Skeleton::lines_of_watch);
        write(&out, name, &(text + &more.unwrap_or_default()))?;
    }
    let sources = [out.join("crd.yaml"), out.join("watch.yaml"), args.chart.clone()];
    write(&out, "rbac.yaml", &rbac::yaml_of(&sources, Some(&rbac::name_for(&args.group, &args.kind)))?)?;
    for (path, text) in skeleton.iter().flat_map(Skeleton::files) {
        write(&out.join(skeleton::FOLDER), path, text)?;
    }
    write(&out, "test.sh", &test_script(args, skeleton.as_ref())?)?;
    write(&out, "README.md", &readme(args, skeleton.as_ref()))?;
    let test = out.join("test.sh");
    let mut text = format!(
        "{} is made; see {}\nnext: sh {}\n",
        out.display(),
        out.join("README.md").display(),
        test.display()
    );
    if args.repository.is_none() {
        text += &note_of_folder("the Watch", &out.join("watch.yaml"));
    }
    printed::print(&text)?;
    Ok(Ending::Done)
}

/// What to know of a Watch whose chart lies in a folder of this machine.
pub(crate) fn note_of_folder(what: &str, place: &Path) -> String {
    format!(
        "note: {what} names a folder of this machine (file://…), which an operator inside of a cluster cannot \
         read; push the chart and name its repository with --repository oci://REGISTRY/PATH, or edit \
         chart.repository.url in {}\n",
        place.display()
    )
}

/// An address that a Watch takes for a repository of charts.
pub(crate) fn parse_repository(text: &str) -> Result<String, String> {
    const SCHEMES: [&str; 6] = ["oci", "https", "http", "cm", "configmap", "file"];
    match text.split_once("://") {
        Some((scheme, rest))
            if SCHEMES.contains(&scheme.to_ascii_lowercase().as_str())
                && !rest.trim_matches('/').is_empty() =>
        {
            Ok(text.to_owned())
        }
        _ => Err(format!(
            "it is no address of a repository; write oci://registry/charts, or one that begins with {}",
            SCHEMES.map(|scheme| format!("{scheme}://")).join(", ")
        )),
    }
}

fn check(args: &Args) -> anyhow::Result<()> {
    let is_kind = args.kind.starts_with(|c: char| c.is_ascii_uppercase())
        && args.kind.chars().all(|c| c.is_ascii_alphanumeric());
    if !is_kind {
        bail!("`{}` is no kind: write it as Memcached, letters and digits with a capital first", args.kind);
    }
    if !args.group.contains('.') {
        bail!("`{}` is no group of a kind: it has a dot, as charts.example.com", args.group);
    }
    Ok(())
}

fn definition(args: &Args, chart: &Chart) -> Value {
    let plural = rbac::plural(&args.kind);
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let column = json!({"name": "Ready", "type": "string",
        "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{}", args.group)},
        "spec": {
            "group": args.group, "scope": "Namespaced",
            "names": {"kind": args.kind, "listKind": format!("{}List", args.kind), "plural": plural,
                      "singular": args.kind.to_lowercase()},
            "versions": [{
                "name": args.version, "served": true, "storage": true, "subresources": {"status": {}},
                "additionalPrinterColumns": [column],
                "schema": {"openAPIV3Schema": {"type": "object",
                    "properties": {"spec": schema::of_chart(chart), "status": free}}}
            }]
        }
    })
}

fn watch(args: &Args, chart: &Chart) -> anyhow::Result<Value> {
    let url = match &args.repository {
        Some(url) => url.clone(),
        None => {
            let path = args.chart.canonicalize().context("could not find the chart")?;
            format!("file://{}", path.parent().unwrap_or(Path::new("/")).display())
        }
    };
    Ok(json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Watch",
        "metadata": {"name": args.kind.to_lowercase()},
        "spec": {
            "group": args.group, "version": args.version, "kind": args.kind,
            "chart": {"name": chart.name(), "version": chart.metadata.version, "repository": {"url": url}}
        }
    }))
}

fn sample(args: &Args, chart: &Chart) -> Value {
    json!({
        "apiVersion": format!("{}/{}", args.group, args.version), "kind": args.kind,
        "metadata": {"name": "sample", "namespace": "default"},
        "spec": defaults(chart)
    })
}

/// The chart's defaults with integers as they were written.
fn defaults(chart: &Chart) -> Value {
    match serde_yaml::from_str(&chart.values_text) {
        Ok(Value::Object(values)) => Value::Object(values),
        _ => Value::Object(chart.values()),
    }
}

/// What tests the project without a cluster.
fn test_script(args: &Args, skeleton: Option<&Skeleton>) -> anyhow::Result<String> {
    let chart = args.chart.canonicalize().context("could not find the chart")?;
    let chart = chart.display().to_string().replace('\'', "'\\''");
    let plugin = skeleton.map(|skeleton| format!("{}\n", skeleton.test())).unwrap_or_default();
    Ok(format!(
        "#!/bin/sh\n# Tests this project without a cluster. CHART: a folder or an archive of the chart, where it lies \
         elsewhere\n# by now; PINTLE: the program.\nset -eu\ncd \"$(dirname \"$0\")\"\n\
         chart='{chart}'\n\"${{PINTLE:-pintle}}\" check . --chart \"${{CHART:-$chart}}\"\n{plugin}"
    ))
}

fn readme(args: &Args, skeleton: Option<&Skeleton>) -> String {
    let kind = &args.kind;
    let (tests, plugin) = match skeleton {
        Some(skeleton) => (" Then the plugin's own tests run.", format!("\n{}", skeleton.readme())),
        None => ("", String::new()),
    };
    format!(
        "# {kind}\n\nEach {kind} becomes a release of a chart.\n\n\
         - `crd.yaml` is the kind, with a schema from the chart's values.\n\
         - `watch.yaml` binds it to the chart.\n\
         - `rbac.yaml` is what the operator may do for it; read the comments in it.\n\
         - `sample.yaml` is one {kind} with the chart's defaults.\n\n\
         ```console\nkubectl apply -f crd.yaml -f rbac.yaml -f watch.yaml\nkubectl apply -f sample.yaml\n\
         kubectl wait --for=condition=Ready {}/sample\n```\n\n\
         ## Test\n\n```console\nsh test.sh\n```\n\n\
         No cluster is needed: `pintle check` holds each {kind} in this folder against the definition, renders the\n\
         chart with it, and looks whether `rbac.yaml` names what is rendered.{tests}\n{plugin}",
        kind.to_lowercase()
    )
}

fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = folder.join(name);
    let within = path.parent().unwrap_or(folder);
    fs::create_dir_all(within).with_context(|| format!("could not make {}", within.display()))?;
    fs::write(&path, text).with_context(|| format!("could not write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_an_address() {
        for address in ["oci://registry/charts", "https://charts.example.com", "cm://namespace/name"] {
            assert_eq!(parse_repository(address).as_deref(), Ok(address));
        }
        for wrong in ["foo", "", "oci://", "foo://bar"] {
            assert!(parse_repository(wrong).is_err(), "{wrong}");
        }
    }
}
