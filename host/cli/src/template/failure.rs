//! Why nothing was printed: Helm's sentence, and below it what a person needs besides.

use std::fmt;

use pintle_chart::{
    Chart, ChartError, RenderError, ignore, manifest, metadata,
    origin::{self, Origin},
    values,
};
use serde_json::Value;

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

    /// The same with more to see below the sentence.
    pub(super) fn drawn_as(mut self, drawn: String) -> Self {
        self.drawn = drawn;
        self
    }

    /// A chart that could not be rendered, with the places its values come from.
    pub(super) fn of_render(error: RenderError, chart: &Chart, origins: &[Origin]) -> Self {
        let hints = origin::hints(&error, chart, origins);
        match error {
            RenderError::Template(error) => {
                RenderError::Template(hints.into_iter().fold(error, pintle_template::Error::hint)).into()
            }
            RenderError::Schema(_) => Self::from(error).drawn_as(hints.join("\n")),
            other => other.into(),
        }
    }

    /// An error with its sources in one line.
    pub(super) fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        Self::new(chain(error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error: {}", self.text)?;
        if self.drawn.is_empty() || self.drawn == self.text {
            Ok(())
        } else {
            write!(f, "\n\n{}", self.drawn)
        }
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
            RenderError::Values(found @ values::Error::NotATable { .. }) => {
                Self { text: of_values(found), drawn: chain(&error) }
            }
            RenderError::Values(values::Error::Deciding(found)) => Self {
                text: format!("chart dependencies processing failed: {}", of_values(found)),
                drawn: chain(&error),
            },
            _ => Self::of(&error),
        }
    }
}

impl From<ChartError> for Failure {
    fn from(error: ChartError) -> Self {
        Self { text: helms(&error), drawn: chain(&error) }
    }
}

/// Helm's sentence for values that do not fit a tree of charts.
fn of_values(error: &values::Error) -> String {
    match error {
        values::Error::NotATable { key, value, .. } => {
            format!("type mismatch on {key}: {}", as_bool(value))
        }
        other => chain(other),
    }
}

/// Helm's sentence for files that are no chart.
fn helms(error: &ChartError) -> String {
    match error {
        ChartError::NoMetadata => "Chart.yaml file is missing".to_owned(),
        ChartError::Metadata(metadata::Error::Yaml { file, source, .. }) => {
            format!("cannot load {file}: {source}")
        }
        ChartError::Metadata(metadata::Error::Field { helms, .. }) => helms.to_string(),
        ChartError::Yaml { file, source, .. } if file == "values.yaml" => {
            format!("cannot load {file}: cannot unmarshal yaml document: {source}")
        }
        ChartError::Yaml { file, source, .. } => format!("cannot load {file}: {source}"),
        ChartError::Subchart { name, parent, source } => {
            format!("error unpacking subchart {name} in {parent}: {}", helms(source))
        }
        ChartError::Ignore(ignore::Error::DoubleStar { .. }) => {
            "double-star (**) syntax is not supported".to_owned()
        }
        ChartError::Ignore(ignore::Error::Pattern { .. }) => "syntax error in pattern".to_owned(),
        ChartError::Archive(_) | ChartError::TooDeep => chain(error),
    }
}

/// What Go prints for a value where it was told to print a bool.
fn as_bool(value: &Value) -> String {
    match value {
        Value::Null => "%!t(<nil>)".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) if number.is_f64() => {
            format!(
                "%!t(float64={})",
                pintle_template::value::float::float_text(number.as_f64().unwrap_or_default())
            )
        }
        Value::Number(number) => format!("%!t(int64={number})"),
        Value::String(text) => format!("%!t(string={text})"),
        Value::Array(items) => format!("[{}]", items.iter().map(as_bool).collect::<Vec<_>>().join(" ")),
        Value::Object(_) => "map[]".to_owned(),
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
