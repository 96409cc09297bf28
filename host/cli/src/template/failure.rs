//! Why nothing was printed: Helm's sentence, and below it what a person needs besides.

use std::fmt;

use pintle_chart::{RenderError, manifest};

/// Helm's sentence, and our excerpt.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    /// Where it is, drawn; empty where there is nothing to draw.
    drawn: String,
}

impl Failure {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), drawn: String::new() }
    }

    /// The same as a part of what was tried.
    pub(super) fn within(mut self, what: &str) -> Self {
        self.text = format!("{what}: {}", self.text);
        self
    }

    /// An error with its sources in one line.
    pub(super) fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        Self::new(chain(error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error: {}", self.text)?;
        if self.drawn.is_empty() { Ok(()) } else { write!(f, "\n\n{}", self.drawn) }
    }
}

impl From<RenderError> for Failure {
    fn from(error: RenderError) -> Self {
        match &error {
            RenderError::Library { .. } => Self::new("library charts are not installable"),
            RenderError::MissingDependencies { missing, .. } => Self::new(missing_dependencies(missing)),
            RenderError::Template(template) => {
                let text = template.to_string();
                // The drawing repeats the message where that is all there is to say.
                let drawn = format!("{template:#}");
                Self { drawn: if drawn == text { String::new() } else { drawn }, text }
            }
            RenderError::Manifest(manifest::Error::Yaml { file, line, excerpt, source }) => Self {
                text: format!("YAML parse error on {file}: {source}"),
                drawn: format!("line {line} of what {file} renders: {excerpt}"),
            },
            _ => Self::of(&error),
        }
    }
}

/// Helm's sentence for charts that `Chart.yaml` names and nobody packed.
pub(super) fn missing_dependencies(names: &str) -> String {
    format!(
        "an error occurred while checking for chart dependencies. You may need to run 'helm dependency build' to \
         fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: {names}"
    )
}

fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
