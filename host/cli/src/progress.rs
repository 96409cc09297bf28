//! The moving line of long work.

use std::{io::IsTerminal as _, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

/// A moving line with the time that has passed; nothing where no person looks, or JSON is all that is wanted.
pub(crate) fn spinner(is_silent: bool) -> Option<ProgressBar> {
    let is_terminal = std::io::stderr().is_terminal() && !is_silent;
    is_terminal.then(|| {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    })
}
