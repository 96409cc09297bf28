//! `pintle check`: tests a project of `pintle new` without a cluster.

mod definition;
mod project;

use std::path::PathBuf;

use clap::ValueEnum;
use pintle_api::{Object, Watch};
use pintle_chart::{Chart, Release, annotations, plain, values};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Ending, printed, rbac, template};
use project::{Found, Project};

/// Arguments of `pintle check`.
#[derive(Debug, clap::Args)]
#[command(disable_version_flag = true)]
pub(crate) struct Args {
    /// The folder with the Watch, the definition of its kind, rights, and objects of the kind.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// The chart, a folder or an archive; default: where the Watch says, if that is a folder of this machine.
    #[arg(long)]
    chart: Option<PathBuf>,
    /// `json` prints one document for machines.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
    /// Print the version of this program.
    #[arg(short = 'V', action = clap::ArgAction::Version)]
    told_version: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// One thing that was looked at.
#[derive(Debug, PartialEq, Serialize)]
struct Check {
    /// The file that it is about.
    file: String,
    /// What holds, or would.
    what: String,
    /// What is wrong; empty where nothing is.
    problems: Vec<String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Ending> {
    let project = project::read(&args.folder)?;
    let mut checks = Vec::new();
    for watch in project.watches()? {
        let chart = template::read_chart(&project::chart_of(&watch, args.chart.as_deref())?)?;
        checks.extend(checks_of(&project, &watch, &chart)?);
    }
    let is_good = checks.iter().all(|check| check.problems.is_empty());
    printed::print(&match args.output {
        Output::Text => checks.iter().map(Check::text).collect(),
        Output::Json => format!("{}\n", serde_json::to_string_pretty(&checks)?),
    })?;
    Ok(if is_good { Ending::Done } else { Ending::Failed })
}

/// What is looked at for one Watch.
fn checks_of(
    project: &Project,
    watch: &Found<Watch>,
    chart: &std::sync::Arc<Chart>,
) -> anyhow::Result<Vec<Check>> {
    let spec = &watch.object.spec;
    let mut checks = Vec::new();
    let definition = project.definition_of(spec);
    let samples = project.objects_of(spec);
    let kind = &spec.kind;
    let missing = samples.is_empty().then(|| {
        format!("no file here holds a {kind} of {}/{}; write one to test with", spec.group, spec.version)
    });
    checks.extend(missing.map(|problem| watch.check("has an object to test with", vec![problem])));
    for sample in samples {
        let found = definition.map(|definition| definition::problems(&definition.object, &sample.object));
        checks.extend(found.map(|problems| sample.check("the definition takes it", problems)));
        checks.push(rendered(watch, sample, chart));
    }
    let sources: Vec<&Value> = definition.iter().map(|found| &found.object).chain([&watch.raw]).collect();
    let roles: Vec<&Value> = project.roles().map(|role| &role.object).collect();
    let lacking = rbac::lacking(&roles, &sources, chart);
    let file = project.roles().next().map_or(&watch.file, |role| &role.file);
    checks.push(Check {
        file: file.clone(),
        what: "the operator may do what it must".to_owned(),
        problems: lacking,
    });
    Ok(checks)
}

/// The chart with the values of one object.
fn rendered(watch: &Found<Watch>, sample: &Found<Value>, chart: &std::sync::Arc<Chart>) -> Check {
    match render(watch, &sample.object, chart) {
        Ok((objects, problems)) => {
            sample.check(&format!("the chart renders {objects} objects with it"), problems)
        }
        Err(problem) => sample.check("the chart renders with it", vec![problem]),
    }
}

/// How many objects the chart renders, and what the operator would refuse of them.
fn render(
    watch: &Found<Watch>,
    owner: &Value,
    chart: &std::sync::Arc<Chart>,
) -> Result<(usize, Vec<String>), String> {
    let spec = &watch.object.spec;
    let told = |err: &dyn std::error::Error| err.to_string();
    let empty = Map::new();
    let own = owner["spec"].as_object().unwrap_or(&empty);
    let values = values::for_watch(&[], own, &[], &spec.override_values)
        .map_err(|err| format!("overrideValues in {}: {err}", watch.file))?;
    let name = plain::release_name(&spec.release_name, owner).map_err(|err| told(&err))?;
    let own = owner["metadata"]["namespace"].as_str().unwrap_or("default");
    let namespace = if spec.target_namespace.is_empty() { own } else { &spec.target_namespace };
    let release = Release { name, namespace: namespace.to_owned(), revision: 1, is_upgrade: false };
    let rendered = template::render(chart, &release, &values).map_err(|failure| failure.to_string())?;
    let hooks = rendered.hooks.iter().map(|hook| &hook.document);
    let all: Vec<_> = rendered.documents.iter().chain(hooks).collect();
    let refused = all.iter().filter_map(|document| refusal(&document.source, &document.object));
    Ok((all.len(), refused.collect()))
}

/// Why the operator would not apply an object.
fn refusal(source: &str, object: &Object) -> Option<String> {
    if object.api_version().starts_with("pintle.dev/") {
        return Some(format!("{source}: {} is a kind of ours, which no chart may bring", object.kind()));
    }
    annotations::check_object(source, object).err().map(|err| err.to_string())
}

// === impl Check ===

impl Check {
    fn text(&self) -> String {
        let Self { file, what, problems } = self;
        let word = if problems.is_empty() { "ok    " } else { "failed" };
        let lines: String = problems
            .iter()
            .flat_map(|problem| problem.lines())
            .map(|line| format!("         {line}\n"))
            .collect();
        format!("{word}  {file}: {what}\n{lines}")
    }
}

impl<T> Found<T> {
    fn check(&self, what: &str, problems: Vec<String>) -> Check {
        Check { file: self.file.clone(), what: what.to_owned(), problems }
    }
}
