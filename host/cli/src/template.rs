//! `pintle template [NAME] CHART`: what `helm template` prints, with its flags.

mod bools;
mod chart;
mod cluster;
mod failure;
mod output;
mod settings;
mod values;

use std::path::PathBuf;

use pintle_chart::{
    Capabilities, Compiled, Files, Order, Release, RenderInput, Values, capabilities::KubeVersion,
};
use pintle_template::{Lookup, NoCluster, Run};

use crate::{Ending, printed};
use failure::Failure;

/// Arguments of `pintle template`: those of `helm template`.
pub(crate) type Args = bools::Bools<Flags>;

/// Arguments by name.
#[derive(Debug, clap::Args)]
#[command(disable_version_flag = true, override_usage = "pintle template [OPTIONS] [NAME] CHART")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line are bools")]
pub(crate) struct Flags {
    /// Name of the release (`release-name` without one), and the chart: a folder, a tgz, oci://…, https://…
    /// or, with --repo, its name.
    #[arg(required = true, value_name = "CHART")]
    name_and_chart: Vec<String>,
    #[command(flatten)]
    values: values::Args,
    #[command(flatten)]
    chart: chart::Args,
    #[command(flatten)]
    output: output::Args,
    #[command(flatten)]
    refused: settings::Refused,
    #[command(flatten)]
    ignored: settings::Ignored,
    /// Namespace of the release.
    #[arg(short, long)]
    namespace: Option<String>,
    /// Version of Kubernetes that `.Capabilities.KubeVersion` says.
    #[arg(long)]
    kube_version: Option<String>,
    /// API versions that `.Capabilities.APIVersions` has besides the usual ones.
    #[arg(short, long, value_delimiter = ',')]
    api_versions: Vec<String>,
    /// Set `.Release.IsUpgrade` instead of `.Release.IsInstall`.
    #[arg(long)]
    is_upgrade: bool,
    /// Do not hold values against the schemas of charts.
    #[arg(long)]
    skip_schema_validation: bool,
    /// Make the release's name from a template.
    #[arg(long)]
    name_template: Option<String>,
    /// Accepted; without NAME the release is called `release-name`.
    #[arg(short, long)]
    generate_name: bool,
    /// `server`: ask the cluster what it serves, answer `lookup`, and hold the objects against it.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "client", default_missing_value = "client")]
    dry_run: DryRun,
    /// As --dry-run=server.
    #[arg(long, conflicts_with = "dry_run")]
    validate: bool,
    /// The kubeconfig for --dry-run=server.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Its context.
    #[arg(long)]
    kube_context: Option<String>,
    /// Print the version of this program.
    #[arg(short = 'V', action = clap::ArgAction::Version)]
    told_version: Option<bool>,
}

/// Whether a cluster is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DryRun {
    #[value(aliases = ["unset", "true"])]
    Client,
    Server,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Ending> {
    match print(args) {
        Ok(text) => {
            printed::print(&text)?;
            Ok(Ending::Done)
        }
        Err(failure) => {
            eprintln!("{failure}");
            Ok(Ending::Failed)
        }
    }
}

/// The chart in a folder or an archive.
pub(crate) fn read_chart(path: &std::path::Path) -> anyhow::Result<std::sync::Arc<pintle_chart::Chart>> {
    let read = if path.is_dir() { chart::from_folder(path) } else { chart::from_file(path) };
    read.map_err(|failure| anyhow::anyhow!("{failure}"))
}

/// What a chart renders where no cluster is asked.
///
/// # Errors
/// When it does not, in the words of `pintle template`.
pub(crate) fn render(
    chart: &std::sync::Arc<pintle_chart::Chart>,
    release: &Release,
    values: &Values,
) -> Result<pintle_chart::Rendered, Failure> {
    chart::check(chart)?;
    let compiled = Compiled::new(std::sync::Arc::clone(chart))?;
    let capabilities = Capabilities::default();
    compiled
        .render(&input(release, values, &capabilities, &NoCluster))
        .map_err(|error| Failure::of_render(error, compiled.chart(), &[]))
}

/// What goes to standard output.
pub(crate) fn print(args: &Args) -> Result<String, Failure> {
    let args = &args.0;
    args.refused.check()?;
    let capabilities = capabilities(args)?;
    let (name, place) = name_and_chart(args)?;
    let mut chart = chart::locate(&args.chart, &place)?;
    let (values, origins) = values::read(&args.values)?;
    chart::check(&chart)?;
    check_name(&name)?;
    if args.skip_schema_validation {
        chart = chart::without_schemas(&chart);
    }
    let compiled = Compiled::new(chart)?;
    let release = Release {
        name,
        namespace: settings::namespace(args.namespace.as_deref(), args.kubeconfig.as_deref()),
        revision: 1,
        is_upgrade: args.is_upgrade,
    };
    let failed = |error| Failure::of_render(error, compiled.chart(), &origins);
    let printed = if args.validate || args.dry_run == DryRun::Server {
        let cluster = cluster::Cluster::connect(args.kubeconfig.as_deref(), args.kube_context.as_deref())?;
        let capabilities = cluster.capabilities()?;
        let input = input(&release, &values, &capabilities, &cluster);
        let printed = compiled.print(&input).map_err(failed)?;
        cluster.check(&compiled.render(&input)?, &release)?;
        printed
    } else {
        compiled.print(&input(&release, &values, &capabilities, &NoCluster)).map_err(failed)?
    };
    output::text(&args.output, &compiled, &values, &release.name, &printed)
}

fn input<'a>(
    release: &'a Release,
    values: &'a Values,
    capabilities: &'a Capabilities,
    lookup: &'a dyn Lookup,
) -> RenderInput<'a> {
    let run = Run { seed: rand::random(), time: settings::now(), ..Run::new(lookup) };
    RenderInput { release, values, capabilities, files: Files::All, order: Order::Install, run }
}

fn capabilities(args: &Flags) -> Result<Capabilities, Failure> {
    let Flags { kube_version, api_versions, .. } = args;
    let assumed = match kube_version {
        Some(version) => Capabilities::assumed(
            KubeVersion::parse(version)
                .map_err(|error| Failure::new(format!("invalid kube version '{version}': {error}")))?,
        ),
        None => Capabilities::default(),
    };
    Ok(assumed.with(api_versions.iter().cloned()))
}

/// The name of the release, and where the chart is, as Helm takes them from its arguments.
fn name_and_chart(args: &Flags) -> Result<(String, String), Failure> {
    let words: Vec<&str> = args.name_and_chart.iter().map(String::as_str).collect();
    let template = args.name_template.as_deref().filter(|template| !template.is_empty());
    match (words.as_slice(), template) {
        ([_, _], None) if args.generate_name => {
            Err(Failure::new("cannot set --generate-name and also specify a name"))
        }
        ([name, chart], None) => Ok(((*name).to_owned(), (*chart).to_owned())),
        ([_, _], Some(_)) => Err(Failure::new("cannot set --name-template and also specify a name")),
        ([chart], None) => Ok(("release-name".to_owned(), (*chart).to_owned())),
        ([chart], Some(template)) => Ok((settings::name_from(template)?, (*chart).to_owned())),
        (more, _) => {
            let more = more.get(2..).unwrap_or_default().join(", ");
            Err(Failure::new(format!("expected at most two arguments, unexpected arguments: {more}")))
        }
    }
}

fn check_name(name: &str) -> Result<(), Failure> {
    let part = |part: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-')
    };
    if name.is_empty() {
        return Err(Failure::new("release name check failed: release name \"\": no name provided"));
    }
    if name.len() <= pintle_chart::plain::MAX_RELEASE_NAME && name.split('.').all(part) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "release name check failed: release name \"{name}\": invalid release name, must match regex \
         ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ and the length must not be longer than \
         53"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_helm_allows() {
        for name in ["a", "a-b.c", "0", &"a".repeat(53)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "A", "a_b", "-a", "a-", "a..b", ".a", &"a".repeat(54), "ä"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
