//! What Helm takes from its environment, and flags that are refused or have no effect here.

use std::{
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use kube::config::Kubeconfig;
use pintle_template::{NoCluster, Program, Run, Source, value::nil};

use super::failure::Failure;

/// Flags of Helm that this program does not serve: each is refused by name.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(super) struct Refused {
    /// Refused: run `helm dependency build` in the chart's folder.
    #[arg(long)]
    dependency_update: bool,
    /// Refused: plugins of Helm are not run.
    #[arg(long)]
    post_renderer: Option<String>,
    /// Refused: signatures of charts are not checked.
    #[arg(long)]
    verify: bool,
    /// Refused: names are not resolved while a chart is rendered.
    #[arg(long)]
    enable_dns: bool,
}

/// Flags of `helm install` that `helm template` takes and that change nothing that is printed.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line are bools")]
pub(super) struct Ignored {
    #[arg(long, hide = true)]
    create_namespace: bool,
    #[arg(long, hide = true)]
    description: Option<String>,
    #[arg(long, hide = true)]
    disable_openapi_validation: bool,
    #[arg(long, hide = true)]
    force_conflicts: bool,
    #[arg(long, hide = true)]
    force_replace: bool,
    #[arg(long, hide = true)]
    replace: bool,
    #[arg(long, hide = true)]
    rollback_on_failure: bool,
    #[arg(long, hide = true)]
    skip_crds: bool,
    #[arg(long, hide = true)]
    take_ownership: bool,
    #[arg(long, hide = true)]
    wait_for_jobs: bool,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "watcher")]
    wait: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    server_side: Option<String>,
    #[arg(long, hide = true)]
    timeout: Option<String>,
    #[arg(short, long, hide = true)]
    labels: Vec<String>,
    #[arg(long, hide = true)]
    atomic: bool,
    #[arg(long, hide = true)]
    render_subchart_notes: bool,
    #[arg(long, hide = true)]
    hide_notes: bool,
    #[arg(long, hide = true)]
    debug: bool,
    #[arg(long, hide = true)]
    post_renderer_args: Vec<String>,
    #[arg(long, hide = true)]
    keyring: Option<String>,
    #[arg(long, hide = true)]
    burst_limit: Option<String>,
    #[arg(long, hide = true)]
    qps: Option<String>,
    #[arg(long, hide = true, alias = "colour")]
    color: Option<String>,
    #[arg(long, hide = true)]
    content_cache: Option<String>,
    #[arg(long, hide = true)]
    repository_cache: Option<String>,
}

impl Refused {
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Self { dependency_update, post_renderer, verify, enable_dns } = self;
        let refused = [
            (*dependency_update, "--dependency-update", "run `helm dependency build` in the chart's folder"),
            (post_renderer.is_some(), "--post-renderer", "pipe what is printed through it"),
            (*verify, "--verify", "pin the chart's digest instead"),
            (*enable_dns, "--enable-dns", "names are not resolved while a chart is rendered"),
        ];
        match refused.into_iter().find(|(is_set, ..)| *is_set) {
            Some((_, flag, instead)) => Err(Failure::new(format!("{flag} is not served: {instead}"))),
            None => Ok(()),
        }
    }
}

/// The namespace, from where Helm takes it: the flag, its variable, the kubeconfig's context.
pub(super) fn namespace(given: Option<&str>, kubeconfig: Option<&Path>) -> String {
    let named = |text: String| Some(text).filter(|text| !text.is_empty());
    given
        .and_then(|given| named(given.to_owned()))
        .or_else(|| std::env::var("HELM_NAMESPACE").ok().and_then(named))
        .or_else(|| of_context(kubeconfig).and_then(named))
        .unwrap_or_else(|| "default".to_owned())
}

fn of_context(kubeconfig: Option<&Path>) -> Option<String> {
    let config = match kubeconfig {
        Some(path) => Kubeconfig::read_from(path).ok()?,
        None => Kubeconfig::read().ok()?,
    };
    let current = config.current_context?;
    config.contexts.into_iter().find(|context| context.name == current)?.context?.namespace
}

/// Seconds since 1970: what `now` says in templates.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// A name made by a template, which has all functions and no values.
pub(super) fn name_from(template: &str) -> Result<String, Failure> {
    const NAME: &str = "name-template";
    // Helm gives Go's own sentence here, not the one it makes of those of charts.
    let failed = |error: pintle_template::Error| match error.place() {
        Some(place) if error.kind() == pintle_template::ErrorKind::Parse => {
            Failure::new(format!("template: {}:{}: {}", place.file(), place.line(), error.message()))
        }
        _ => Failure::new(error.to_string()),
    };
    let program =
        Program::parse(&[Source { name: Arc::from(NAME), text: Arc::from(template) }]).map_err(failed)?;
    let run = Run { seed: rand::random(), time: now(), ..Run::new(&NoCluster) };
    program.render(NAME, &nil(), &run).map_err(failed)
}
