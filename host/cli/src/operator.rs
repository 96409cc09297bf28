//! `pintle operator`: the controllers, with the flags of those they succeed.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::Context as _;
use pintle_operator::Options;
use tokio::signal::unix::{SignalKind, signal};

use crate::{Ending, logging};

/// Arguments of `pintle operator`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where metrics are served; `0` for nowhere.
    #[arg(long, visible_alias = "metrics-addr", default_value = ":8080")]
    metrics_bind_address: String,
    /// Where /healthz, /readyz and /releases are served; `0` for nowhere.
    #[arg(long, default_value = ":8081")]
    health_probe_bind_address: String,
    /// Lets only one of several operators write at a time.
    #[arg(long, visible_alias = "enable-leader-election")]
    leader_elect: bool,
    /// Name of the Lease of the election.
    #[arg(long, default_value = "pintle")]
    leader_election_id: String,
    /// Namespace of the operator, where the Lease is.
    #[arg(long, env = "OPERATOR_NAMESPACE", default_value = "pintle-system")]
    leader_election_namespace: String,
    /// Owners this operator takes care of, by label; empty: all.
    #[arg(long, default_value = "")]
    selector: String,
    /// Loads plugins that are named by a tag.
    #[arg(long)]
    allow_unsigned: bool,
    /// A registry that speaks plain HTTP, as host:port; may be given again.
    #[arg(long)]
    plain_http_registry: Vec<String>,
    /// A folder that `file://` repositories may lie in; may be given again; none: any.
    #[arg(long)]
    chart_folder: Vec<PathBuf>,
    /// Owners that are worked on at once.
    #[arg(long, default_value_t = 4)]
    max_concurrent_reconciles: usize,
    /// How often a release is looked at without an event, in seconds.
    #[arg(long, default_value_t = 600)]
    sweep_seconds: u64,
    /// A kubeconfig file; default: as kubectl, or the pod's own account.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Form of log lines.
    #[arg(long, visible_alias = "zap-encoder", value_enum, default_value = "json")]
    log_format: logging::Format,
    /// Least level of log lines: error, warn, info, debug, trace.
    #[arg(long, visible_alias = "zap-log-level", default_value = "info")]
    log_level: String,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Ending> {
    let Args { ref log_level, log_format, .. } = args;
    logging::start(log_format, log_level);
    let options = options(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = stopped().context("could not listen for signals")?;
        pintle_operator::run(options, stop).await.context("the operator stopped")
    })?;
    Ok(Ending::Done)
}

fn options(args: Args) -> anyhow::Result<Options> {
    let Args {
        metrics_bind_address,
        health_probe_bind_address,
        leader_elect,
        leader_election_id,
        leader_election_namespace,
        selector,
        allow_unsigned,
        plain_http_registry,
        chart_folder,
        max_concurrent_reconciles,
        sweep_seconds,
        kubeconfig,
        log_format: _,
        log_level: _,
    } = args;
    let reach = match kubeconfig {
        Some(path) => pintle_operator::Reach::File { path, context: None },
        None => pintle_operator::Reach::Infer,
    };
    Ok(Options {
        metrics: parse_address("--metrics-bind-address", &metrics_bind_address)?,
        health: parse_address("--health-probe-bind-address", &health_probe_bind_address)?,
        election: leader_elect.then_some(leader_election_id),
        selector,
        allow_unsigned,
        plain_http: plain_http_registry,
        chart_folders: chart_folder,
        workers: max_concurrent_reconciles,
        sweep: Duration::from_secs(sweep_seconds),
        ..Options::new(reach, &leader_election_namespace)
    })
}

/// `:8080` is every address of the machine, `0` is none.
fn parse_address(flag: &str, text: &str) -> anyhow::Result<Option<SocketAddr>> {
    if text == "0" {
        return Ok(None);
    }
    let full = if text.starts_with(':') { format!("[::]{text}") } else { text.to_owned() };
    let address = full.parse().with_context(|| format!("{flag}: `{text}` is not host:port, :port or 0"))?;
    Ok(Some(address))
}

/// Done at SIGTERM or SIGINT.
fn stopped() -> anyhow::Result<impl Future<Output = ()>> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        tracing::info!("asked to stop");
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_other_operators_write_them() {
        let read = |text: &str| parse_address("--x", text).ok().flatten().map(|address| address.to_string());
        assert_eq!(read(":8080").as_deref(), Some("[::]:8080"));
        assert_eq!(read("127.0.0.1:1").as_deref(), Some("127.0.0.1:1"));
        assert_eq!(read("0"), None);
        assert!(parse_address("--x", "nowhere").is_err_and(|err| err.to_string().contains("`nowhere`")));
    }
}
