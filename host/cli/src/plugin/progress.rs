//! Progress of long work: a moving line on a terminal, plain lines elsewhere, nothing beside JSON.

use std::{io::IsTerminal as _, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

/// Where progress is shown.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    is_silent: bool,
}

impl Progress {
    /// Silent where one JSON document is all that is wanted.
    pub(super) fn new(is_silent: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal() && !is_silent;
        let bar = is_terminal.then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self { bar, is_silent }
    }

    /// What is done now.
    pub(super) fn step(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None if self.is_silent => {}
            None => eprintln!("{text}"),
        }
    }

    /// Takes the moving line away.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
