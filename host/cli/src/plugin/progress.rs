//! Progress of long work: a moving line on a terminal, plain lines elsewhere, nothing beside JSON.

use indicatif::ProgressBar;

use crate::progress::spinner;

/// Where progress is shown.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    is_silent: bool,
}

impl Progress {
    /// Silent where one JSON document is all that is wanted.
    pub(super) fn new(is_silent: bool) -> Self {
        Self { bar: spinner(is_silent), is_silent }
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
