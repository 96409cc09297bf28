//! Values from the command line, in Helm's order.

use std::{cell::RefCell, io::Read as _, time::Instant};

use pintle_chart::{Values, YamlError, origin::Origin, values};

use serde_json::Value;

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

/// All of them over each other, and each by itself.
pub(super) fn read(args: &Args) -> Result<(Values, Vec<Origin>), Failure> {
    let mut origins = Vec::new();
    let values = lay(args, &mut origins)?;
    Ok((values, origins))
}

fn lay(args: &Args, origins: &mut Vec<Origin>) -> Result<Values, Failure> {
    let Args { files, set, set_string, set_json, set_file, set_literal } = args;
    let mut all = Values::new();
    for place in files {
        let bytes = read_bytes(place)?;
        let text = pintle_chart::text_of(&bytes).map_err(|error| no_text(place, &error))?.to_owned();
        let read = values::parse(&text).map_err(|error| not_values(place, &text, &error))?;
        all = values::overlay([&all, &read]);
        origins.push(Origin::File { name: place.trim().to_owned(), text });
    }
    let of_files = all.clone();
    for line in set_json {
        all = json(line, all)?;
    }
    let failed = |flag: &'static str| {
        move |error: values::SetError| Failure::new(format!("failed parsing {flag} data: {error}"))
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
    origins.push(Origin::Other { name: "a --set flag".to_owned(), values: changed(&of_files, &all) });
    Ok(all)
}

/// What is in `after` and not, or not so, in `before`.
fn changed(before: &Values, after: &Values) -> Values {
    let changed = after.iter().filter_map(|(key, value)| match (before.get(key), value) {
        (Some(known), value) if known == value => None,
        (Some(Value::Object(before)), Value::Object(after)) => {
            Some((key.clone(), Value::Object(changed(before, after))))
        }
        _ => Some((key.clone(), value.clone())),
    });
    changed.collect()
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

fn not_values(place: &str, text: &str, error: &values::Error) -> Failure {
    let said = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    let failure = Failure::new(format!("failed to parse {place}: cannot unmarshal yaml document: {said}"));
    match error {
        values::Error::Yaml { line, .. } if *line > 0 => {
            let shown = text.lines().nth(line - 1).unwrap_or_default();
            failure.drawn_as(format!("{place}:{line}: {shown}"))
        }
        _ => failure,
    }
}

fn no_text(place: &str, error: &YamlError) -> Failure {
    let failure = Failure::new(format!("failed to parse {place}: cannot unmarshal yaml document: {error}"));
    failure.drawn_as(format!("{place}:{}: not UTF-8", error.line))
}

fn read_file(place: &str) -> Result<String, Failure> {
    let wrong = || {
        Failure::new(format!("{place} is not UTF-8, which a value must be: put it under files/ of the chart"))
    };
    String::from_utf8(read_bytes(place)?).map_err(|_| wrong())
}

fn read_bytes(place: &str) -> Result<Vec<u8>, Failure> {
    let place = place.trim();
    if place == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin().read_to_end(&mut bytes);
        read.map(|_| bytes).map_err(|error| Failure::new(format!("read standard input: {error}")))
    } else if place.starts_with("https://") || place.starts_with("http://") {
        chart::download(place, Instant::now())
    } else {
        std::fs::read(place).map_err(|error| open_failed(place, &error))
    }
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
