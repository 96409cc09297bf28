//! Values from the command line, in Helm's order.

use std::{cell::RefCell, io::Read as _, time::Instant};

use pintle_chart::{Values, values};

use super::{chart, failure::Failure};

/// Where values come from.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(super) struct Args {
    /// Values as YAML: a file, `-` for standard input, or an address; later ones over earlier ones.
    #[arg(short = 'f', long = "values", value_delimiter = ',')]
    files: Vec<String>,
    /// Values as a.b=c,d[0]=e.
    #[arg(long)]
    set: Vec<String>,
    /// The same where every value is a text.
    #[arg(long)]
    set_string: Vec<String>,
    /// The same where every value is JSON, or one JSON object.
    #[arg(long)]
    set_json: Vec<String>,
    /// The same where every value is the content of a file.
    #[arg(long)]
    set_file: Vec<String>,
    /// One key and the text behind its `=`, whatever is in it.
    #[arg(long)]
    set_literal: Vec<String>,
}

/// All of them over each other.
pub(super) fn read(args: &Args) -> Result<Values, Failure> {
    let Args { files, set, set_string, set_json, set_file, set_literal } = args;
    let mut all = Values::new();
    for place in files {
        let text = read_file(place)?;
        let read = values::parse(&text).map_err(|error| not_values(place, &error))?;
        all = values::overlay([&all, &read]);
    }
    for line in set_json {
        all = json(line, all)?;
    }
    let failed = |flag: &'static str| {
        move |error: values::SetError| Failure::new(format!("failed parsing {flag} data: {}", in_go(&error)))
    };
    for line in set {
        values::set(line, &mut all).map_err(failed("--set"))?;
    }
    for line in set_string {
        values::set_string(line, &mut all).map_err(failed("--set-string"))?;
    }
    for line in set_file {
        let fault = RefCell::new(None);
        let content = |path: &str| {
            read_file(path).unwrap_or_else(|failure| {
                fault.replace(Some(failure));
                String::new()
            })
        };
        values::set_file(line, &content, &mut all).map_err(failed("--set-file"))?;
        if let Some(failure) = fault.into_inner() {
            return Err(failure.within("failed parsing --set-file data"));
        }
    }
    for line in set_literal {
        values::set_literal(line, &mut all).map_err(failed("--set-literal"))?;
    }
    Ok(all)
}

/// As Go says it where its words are not ours.
fn in_go(error: &values::SetError) -> String {
    match error {
        values::SetError::Index(text) => {
            format!("error parsing index: strconv.Atoi: parsing {text:?}: invalid syntax")
        }
        other => other.to_string(),
    }
}

fn json(line: &str, mut all: Values) -> Result<Values, Failure> {
    if !line.trim_start().starts_with('{') {
        let set = values::set_json(line, &mut all);
        return set.map(|()| all).map_err(|_| Failure::new(format!("failed parsing --set-json data {line}")));
    }
    let wrong = || Failure::new(format!("failed parsing --set-json data JSON: {line}"));
    serde_json::from_str::<Values>(line).map_err(|_| wrong())?;
    // As YAML, which JSON is: numbers become what they are in a values file.
    let read = values::parse(line).map_err(|_| wrong())?;
    Ok(values::overlay([&all, &read]))
}

fn not_values(place: &str, error: &values::Error) -> Failure {
    let said = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    Failure::new(format!("failed to parse {place}: cannot unmarshal yaml document: {said}"))
}

fn read_file(place: &str) -> Result<String, Failure> {
    let place = place.trim();
    let bytes = if place == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin().read_to_end(&mut bytes);
        read.map(|_| bytes).map_err(|error| Failure::new(format!("read standard input: {error}")))?
    } else if place.starts_with("https://") || place.starts_with("http://") {
        chart::download(place, Instant::now())?
    } else {
        std::fs::read(place).map_err(|error| open_failed(place, &error))?
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// As Go says it.
pub(super) fn open_failed(path: &str, error: &std::io::Error) -> Failure {
    let said = match error.kind() {
        std::io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::IsADirectory => return Failure::new(format!("read {path}: is a directory")),
        _ => error.to_string(),
    };
    Failure::new(format!("open {path}: {said}"))
}
