//! Progress: a moving line on a terminal, plain lines elsewhere, nothing where JSON is wanted.

use std::sync::{Mutex, PoisonError};

use indicatif::ProgressBar;

use crate::progress::spinner;

/// Where progress is shown.
pub(super) struct Screen {
    bar: Option<ProgressBar>,
    is_silent: bool,
    last_detail: Mutex<String>,
}

// === impl Screen ===

impl Screen {
    /// Silent where one JSON document is all that is wanted.
    pub(super) fn new(is_silent: bool) -> Self {
        Self { bar: spinner(is_silent), is_silent, last_detail: Mutex::new(String::new()) }
    }

    /// A new part of the work.
    pub(super) fn step(&self, text: &str) {
        match &self.bar {
            Some(bar) => {
                bar.println(format!("• {text}"));
                bar.set_message(text.to_owned());
            }
            None => self.line(&format!("* {text}")),
        }
    }

    /// Progress inside a part.
    pub(super) fn detail(&self, text: &str) {
        let mut last = self.last_detail.lock().unwrap_or_else(PoisonError::into_inner);
        if *last == text {
            return;
        }
        text.clone_into(&mut last);
        match &self.bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None => self.line(&format!("  {text}")),
        }
    }

    /// A line that stays.
    pub(super) fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => self.line(text),
        }
    }

    /// Takes the moving line away.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        if !self.is_silent {
            eprintln!("{text}");
        }
    }
}
