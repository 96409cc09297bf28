//! Where log lines go, and in which form.

use std::io::IsTerminal as _;

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// Form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// Levels that may be given.
const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// Starts logging to standard error, at `level`; without one as `RUST_LOG` says, else at `info`.
///
/// # Errors
/// When the level is none.
pub(crate) fn start(format: Format, level: Option<&str>) -> anyhow::Result<()> {
    let filter = match level {
        Some(level) => filter_of(level)?,
        None => EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info")),
    };
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match format {
        Format::Json => lines.json().flatten_event(true).try_init(),
        Format::Text => lines.try_init(),
    };
    if let Err(err) = started {
        eprintln!("warning: logging was started before: {err}");
    }
    Ok(())
}

/// A level, or directives as `info,kube=debug` for each part.
fn filter_of(level: &str) -> anyhow::Result<EnvFilter> {
    // As operators before had them: numbers are steps below info.
    let level = match (level.parse::<u32>(), level) {
        (Ok(0), _) => "info",
        (Ok(1), _) => "debug",
        (Ok(_), _) => "trace",
        (_, "panic" | "fatal") => "error",
        (_, level) => level,
    };
    // Without `=` a directive is the name of a part, so that a mistyped level would hide every line.
    let is_level = |part: &str| part.contains('=') || LEVELS.contains(&part.to_lowercase().as_str());
    if !level.split(',').map(str::trim).all(is_level) {
        bail!("--log-level: `{level}` is no level; write error, warn, info, debug or trace")
    }
    EnvFilter::try_new(level).with_context(|| format!("--log-level: `{level}` cannot be used"))
}

/// Shows on standard error what plugins say, in plain lines: for their authors, who have no log.
pub(crate) fn start_for_authors() {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error,plugin[{release}]=debug"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let _ = lines.without_time().with_target(false).with_ansi(false).try_init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_is_none_is_refused_by_name() {
        for level in ["info", "DEBUG", "1", "panic", "off", "info,kube=debug"] {
            assert!(filter_of(level).is_ok(), "{level}");
        }
        for level in ["foo", "", "info,foo", "kube=loud"] {
            assert!(filter_of(level).is_err_and(|err| err.to_string().contains("--log-level")), "{level}");
        }
    }
}
