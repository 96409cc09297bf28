//! Where log lines go, and in which form.

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

/// Starts logging to standard error. `RUST_LOG` goes before `level`.
pub(crate) fn start(format: Format, level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        Format::Json => lines.json().flatten_event(true).try_init(),
        Format::Text => lines.try_init(),
    };
    if let Err(err) = started {
        eprintln!("warning: logging was started before: {err}");
    }
}

/// Shows on standard error what plugins say, in plain lines: for their authors, who have no log.
pub(crate) fn start_for_authors() {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error,plugin[{release}]=debug"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let _ = lines.without_time().with_target(false).with_ansi(false).try_init();
}
