//! `pintle operator`: the controllers, with the flags of those they succeed.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail};
use pintle_api::watch::WatchSpec;
use pintle_operator::{Compiler, Options};
use pintle_source::signature::TrustRoot;
use tokio::signal::unix::{SignalKind, signal};

use crate::{Ending, logging};

/// Variable with which operators before were limited to namespaces.
const SCOPE: &str = "WATCH_NAMESPACE";

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
    /// Mirrors and certificates of registries (YAML: `registries: {HOST: {mirrors: [HOST/PATH], caFile: FILE}}`).
    #[arg(long)]
    registries_file: Option<PathBuf>,
    /// Credentials for registries besides those of Plugins, as in `~/.docker/config.json`.
    #[arg(long)]
    registry_config: Option<PathBuf>,
    /// Authorities and logs for signatures (Sigstore's `trusted_root.json`); default: the public instance's.
    #[arg(long)]
    trust_root: Option<PathBuf>,
    /// A folder of this operator alone, where plugins and their compiled code are kept.
    #[arg(long)]
    plugin_cache: Option<PathBuf>,
    /// A folder that `file://` plugins may lie in; may be given again; none: no plugin may.
    #[arg(long)]
    plugin_folder: Vec<PathBuf>,
    /// A folder that `file://` repositories may lie in; may be given again; none: any.
    #[arg(long)]
    chart_folder: Vec<PathBuf>,
    /// Kinds to serve besides those of Watch objects, in the form of the hybrid operator; default:
    /// `watches.yaml` where the operator runs, if it is there.
    #[arg(long)]
    watches_file: Option<PathBuf>,
    /// Owners that are worked on at once.
    #[arg(long, default_value_t = 4, value_parser = parse_count)]
    max_concurrent_reconciles: usize,
    /// How often a release is looked at without an event, as 90s, 10m or 1h.
    #[arg(long, default_value = "10m", value_parser = parse_period)]
    reconcile_period: Duration,
    #[command(flatten)]
    unused: Unused,
    /// A kubeconfig file; default: as kubectl, or the pod's own account.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Form of log lines.
    #[arg(long, visible_alias = "zap-encoder", value_enum, default_value = "json")]
    log_format: logging::Format,
    /// Least level of log lines: error, warn, info, debug, trace; default: as `RUST_LOG` says, else info.
    #[arg(long, visible_alias = "zap-log-level")]
    log_level: Option<String>,
}

/// Flags that the operators before had and that change nothing here; the log names those that are given.
#[derive(Debug, clap::Args)]
struct Unused {
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    metrics_secure: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    metrics_require_rbac: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    enable_http2: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    suppress_override_values: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    zap_devel: Option<String>,
    #[arg(long, hide = true)]
    zap_stacktrace_level: Option<String>,
    #[arg(long, hide = true)]
    zap_time_encoding: Option<String>,
}

// === impl Unused ===

impl Unused {
    fn warn(&self) {
        let Self {
            metrics_secure,
            metrics_require_rbac,
            enable_http2,
            suppress_override_values,
            zap_devel,
            zap_stacktrace_level,
            zap_time_encoding,
        } = self;
        let flags = [
            ("--metrics-secure", metrics_secure),
            ("--metrics-require-rbac", metrics_require_rbac),
            ("--enable-http2", enable_http2),
            ("--suppress-override-values", suppress_override_values),
            ("--zap-devel", zap_devel),
            ("--zap-stacktrace-level", zap_stacktrace_level),
            ("--zap-time-encoding", zap_time_encoding),
        ];
        for (flag, value) in flags {
            if value.as_deref().is_some_and(|value| value != "false") {
                tracing::warn!(flag, "the flag is accepted and changes nothing here; take it away");
            }
        }
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<Ending> {
    let Args { ref log_level, log_format, .. } = args;
    logging::start(log_format, log_level.as_deref())?;
    args.unused.warn();
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
        registries_file,
        registry_config,
        trust_root,
        plugin_cache,
        plugin_folder,
        chart_folder,
        max_concurrent_reconciles,
        watches_file,
        reconcile_period,
        unused: _,
        kubeconfig,
        log_format: _,
        log_level: _,
    } = args;
    refuse_scope(std::env::var(SCOPE).ok().as_deref())?;
    check_paths(registry_config.as_deref(), &plugin_folder, &chart_folder)?;
    let usual = PathBuf::from("watches.yaml");
    let watches_file = watches_file.or_else(|| usual.is_file().then_some(usual));
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
        registries: registries_file
            .as_deref()
            .map(pintle_source::read_settings)
            .transpose()?
            .unwrap_or_default(),
        registry_config,
        trust_root: trust_root.as_deref().map(read_trust_root).transpose()?,
        plugin_cache,
        plugin_folders: plugin_folder,
        chart_folders: chart_folder,
        workers: max_concurrent_reconciles,
        sweep: reconcile_period,
        watches: watches(watches_file.as_deref())?,
        watches_file,
        compiler: compiler(),
        ..Options::new(reach, &leader_election_namespace)
    })
}

/// Files and folders that must be there when the operator starts: without one it would look for plugins and
/// charts in vain, and say so only at the first.
fn check_paths(
    registry_config: Option<&Path>,
    plugin_folders: &[PathBuf],
    chart_folders: &[PathBuf],
) -> anyhow::Result<()> {
    if let Some(path) = registry_config {
        let text = std::fs::read_to_string(path).with_context(|| {
            format!(
                "--registry-config: {} cannot be read; name a file as ~/.docker/config.json",
                path.display()
            )
        })?;
        serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text).with_context(|| {
            format!("--registry-config: {} is no JSON object with `auths`", path.display())
        })?;
    }
    let of = |flag, folders: &[PathBuf]| folders.iter().map(move |folder| (flag, folder.clone())).collect();
    let named: [Vec<(&str, PathBuf)>; 2] =
        [of("--plugin-folder", plugin_folders), of("--chart-folder", chart_folders)];
    match named.into_iter().flatten().find(|(_, folder)| !folder.is_dir()) {
        Some((flag, folder)) => {
            bail!("{flag}: {} is no folder; make it, or name another one", folder.display())
        }
        None => Ok(()),
    }
}

/// The document, read now: one that is broken is told at the start, not with the first plugin.
pub(crate) fn read_trust_root(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?;
    TrustRoot::parse(&text).with_context(|| format!("could not use {}", path.display()))?;
    Ok(text)
}

/// A process of its own compiles plugins: what a component does to the compiler ends with that process.
pub(crate) fn compiler() -> Compiler {
    match std::env::current_exe() {
        Ok(program) => Compiler::Child { program, args: vec!["compile".into()] },
        Err(_) => Compiler::InProcess,
    }
}

/// Namespaces that operators before were limited to. Serving all of them instead would surprise.
fn refuse_scope(scope: Option<&str>) -> anyhow::Result<()> {
    match scope.filter(|scope| !scope.trim().is_empty()) {
        Some(scope) => bail!(
            "{SCOPE}={scope} is not served: this operator serves every namespace its roles reach; unset the \
             variable, and limit owners with --selector or with the selector of a Watch"
        ),
        None => Ok(()),
    }
}

/// The watches of a file.
fn watches(path: Option<&Path>) -> anyhow::Result<Vec<WatchSpec>> {
    path.map_or_else(|| Ok(Vec::new()), |path| Ok(pintle_operator::read_watches(path)?))
}

/// `90s`, `10m`, `1h30m`: units of hours, minutes and seconds.
pub(crate) fn parse_period(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time; write 90s, 10m or 1h");
    let (mut seconds, mut rest) = (0_u64, text);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (digits, behind) = rest.split_at_checked(end).ok_or_else(wrong)?;
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        let (factor, behind) = match behind.as_bytes().first() {
            Some(b'h') => (3600, behind.get(1..)),
            Some(b'm') => (60, behind.get(1..)),
            Some(b's') => (1, behind.get(1..)),
            _ => return Err(wrong()),
        };
        seconds = number.checked_mul(factor).and_then(|more| seconds.checked_add(more)).ok_or_else(wrong)?;
        rest = behind.unwrap_or_default();
    }
    if seconds == 0 { Err(wrong()) } else { Ok(Duration::from_secs(seconds)) }
}

fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("nothing would ever be worked on; write 1 or more".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err(format!("`{text}` is no number; write 1 or more")),
    }
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
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    #[test]
    fn a_limit_to_namespaces_is_refused_by_name() {
        assert!(refuse_scope(None).is_ok() && refuse_scope(Some("")).is_ok());
        let refused = refuse_scope(Some("a,b")).unwrap_err().to_string();
        assert!(refused.starts_with("WATCH_NAMESPACE=a,b is not served"), "{refused}");
    }

    #[test]
    fn what_the_operator_could_not_use_is_refused_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let (here, gone) = (folder.path().to_owned(), folder.path().join("nope"));
        let config = folder.path().join("config.json");
        std::fs::write(&config, "{\"auths\": {}}").unwrap();
        let one = std::slice::from_ref;
        assert!(check_paths(Some(&config), one(&here), one(&here)).is_ok());
        for (flag, refused) in [
            ("--registry-config", check_paths(Some(&gone), &[], &[])),
            ("--plugin-folder", check_paths(None, one(&gone), &[])),
            ("--chart-folder", check_paths(None, &[], one(&gone))),
        ] {
            assert!(refused.is_err_and(|err| err.to_string().starts_with(flag)), "{flag}");
        }
        assert!(parse_count("0").is_err() && parse_count("x").is_err());
        assert_eq!(parse_count("1"), Ok(1));
    }

    #[test]
    fn periods_are_sums_of_hours_minutes_and_seconds() {
        assert_eq!(parse_period("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_period("90s"), Ok(Duration::from_secs(90)));
        for wrong in ["", "0s", "soon", "10", "5d", "99999999999999999999h"] {
            let said = parse_period(wrong).unwrap_err();
            assert!(said.contains("write 90s, 10m or 1h"), "{said}");
        }
    }

    #[test]
    fn addresses_are_read_as_other_operators_write_them() {
        let read = |text: &str| parse_address("--x", text).ok().flatten().map(|address| address.to_string());
        assert_eq!(read(":8080").as_deref(), Some("[::]:8080"));
        assert_eq!(read("127.0.0.1:1").as_deref(), Some("127.0.0.1:1"));
        assert_eq!(read("0"), None);
        assert!(parse_address("--x", "nowhere").is_err_and(|err| err.to_string().contains("`nowhere`")));
    }
}
