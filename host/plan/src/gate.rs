//! What must hold for an object before the next state may start, as its annotations say it.

use pintle_api::{Object, names};
use pintle_template::re2;
use regex::Regex;
use serde_json::{Map, Value};

/// Everything that must hold for one object.
#[derive(Clone, Debug)]
pub struct Gate {
    /// All of them must hold; empty: ready once applied.
    pub terms: Vec<Term>,
}

/// One condition of a gate.
#[derive(Clone, Debug)]
pub enum Term {
    /// The rule Pintle knows for the kind.
    Builtin {
        /// Whether a workload that no node or replica asks for is ready.
        empty_is_ready: bool,
    },
    /// The log of each pod matches.
    Logs {
        /// The expression as the chart has it.
        text: String,
        /// The same, compiled.
        pattern: Regex,
    },
    /// A plugin says so.
    Plugin {
        /// Name of the Plugin.
        name: String,
        /// Arguments as JSON text with sorted keys.
        args: String,
    },
}

/// A plugin as an annotation or a Watch names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Named {
    /// Name of the Plugin.
    pub plugin: String,
    /// Arguments as JSON text with sorted keys.
    pub args: String,
}

/// Why an annotation is no gate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// The text of a term is broken.
    #[error("annotation {annotation}: `{term}` is not a term: {problem}")]
    Syntax {
        /// Key of the annotation.
        annotation: &'static str,
        /// The term as it stands there.
        term: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// A regular expression is broken.
    #[error("annotation {annotation}: `{pattern}` is not a regular expression (RE2): {problem}")]
    Pattern {
        /// Key of the annotation.
        annotation: &'static str,
        /// The expression as it stands there.
        pattern: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The annotation is known and this version cannot serve it.
    #[error("annotation {0} is not served by this version; use {wait} with a plugin", wait = names::WAIT)]
    NotServed(&'static str),
}

/// Reads all gate annotations of an object; `by_default` gates it with the builtin rule where no
/// annotation says anything.
///
/// # Errors
/// When an annotation cannot be read. The chart must change.
pub fn parse_gate(object: &Object, by_default: bool) -> Result<Gate, GateError> {
    if object.annotation(names::READY_WHEN).is_some() {
        return Err(GateError::NotServed(names::READY_WHEN));
    }
    let explicit = object.annotation(names::WAIT);
    let mut terms = explicit.map(parse_wait).transpose()?.unwrap_or_default();
    if object.annotation(names::SRO_WAIT) == Some("true") && !terms.iter().any(Term::is_builtin) {
        terms.push(Term::Builtin { empty_is_ready: true });
    }
    if let Some(pattern) = object.annotation(names::SRO_WAIT_FOR_LOGS).filter(|text| !text.is_empty()) {
        terms.push(parse_logs(names::SRO_WAIT_FOR_LOGS, pattern)?);
    }
    if terms.is_empty() && explicit.is_none() && by_default {
        terms.push(Term::Builtin { empty_is_ready: true });
    }
    Ok(Gate { terms })
}

/// Reads `pintle.dev/wait`: terms joined by `&&`, which does not split inside quotes.
///
/// # Errors
/// When a term cannot be read.
pub fn parse_wait(text: &str) -> Result<Vec<Term>, GateError> {
    let parts = split_terms(text);
    if let [only] = parts.as_slice()
        && only.trim() == "none"
    {
        return Ok(Vec::new());
    }
    parts.into_iter().map(|part| parse_term(part.trim())).collect()
}

/// Reads a list of plugins: `NAME` or `NAME(key=value, …)`, separated by commas, in order.
///
/// # Errors
/// When one of them cannot be read.
pub fn parse_plugins(annotation: &'static str, text: &str) -> Result<Vec<Named>, GateError> {
    let parts = split_outside_parentheses(text);
    let parts = parts.into_iter().map(str::trim).filter(|part| !part.is_empty());
    let named: Vec<Named> = parts.map(|part| parse_plugin(annotation, part)).collect::<Result<_, _>>()?;
    if named.is_empty() {
        let problem = "it names no plugin".to_owned();
        return Err(GateError::Syntax { annotation, term: text.to_owned(), problem });
    }
    Ok(named)
}

fn parse_plugin(annotation: &'static str, part: &str) -> Result<Named, GateError> {
    let read = split_call(part).and_then(|(name, inside)| {
        let args = parse_arguments(part, inside.unwrap_or_default())?;
        Ok(Named { plugin: name.to_owned(), args: Value::Object(args).to_string() })
    });
    read.map_err(|err| match err {
        GateError::Syntax { term, problem, .. } => {
            let problem = if problem.starts_with("a term is") {
                "it takes names of Plugins, as driver-checks or driver-checks(strict=true)".to_owned()
            } else {
                problem
            };
            GateError::Syntax { annotation, term, problem }
        }
        other => other,
    })
}

/// Splits at commas that stand neither in quotes nor in parentheses.
fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let (mut parts, mut open) = (Vec::new(), None::<usize>);
    for part in split_outside_quotes(text, ",") {
        let start = part.as_ptr() as usize - text.as_ptr() as usize;
        let begin = open.unwrap_or(start);
        let whole = text.get(begin..start + part.len()).unwrap_or_default();
        if is_balanced(whole) {
            parts.push(whole);
            open = None;
        } else {
            open = Some(begin);
        }
    }
    parts.extend(open.and_then(|begin| text.get(begin..)));
    parts
}

fn is_balanced(text: &str) -> bool {
    let outside = split_outside_quotes(text, "(").len();
    let closing = split_outside_quotes(text, ")").len();
    outside <= closing
}

// === impl Term ===

impl Term {
    fn is_builtin(&self) -> bool {
        matches!(self, Self::Builtin { .. })
    }
}

fn parse_term(term: &str) -> Result<Term, GateError> {
    let (name, inside) = split_call(term)?;
    match (name, inside) {
        ("none", _) => Err(syntax(term, "`none` stands alone")),
        ("builtin", inside) => parse_builtin(term, inside.unwrap_or_default()),
        ("logs", Some(inside)) => match serde_json::from_str::<String>(inside) {
            Ok(pattern) => parse_logs(names::WAIT, &pattern),
            Err(_) => Err(syntax(term, "it takes one quoted expression, as logs(\"loaded\")")),
        },
        ("logs", None) => Err(syntax(term, "it takes one quoted expression, as logs(\"loaded\")")),
        (name, inside) => {
            let args = parse_arguments(term, inside.unwrap_or_default())?;
            Ok(Term::Plugin { name: name.to_owned(), args: Value::Object(args).to_string() })
        }
    }
}

fn parse_builtin(term: &str, inside: &str) -> Result<Term, GateError> {
    let mut args = parse_arguments(term, inside)?;
    let empty_is_ready = match args.remove("emptyIsReady") {
        None => true,
        Some(Value::Bool(flag)) => flag,
        Some(_) => return Err(syntax(term, "emptyIsReady is true or false")),
    };
    match args.keys().next() {
        None => Ok(Term::Builtin { empty_is_ready }),
        Some(key) => Err(syntax(term, &format!("it has no argument `{key}`, only emptyIsReady"))),
    }
}

fn parse_logs(annotation: &'static str, pattern: &str) -> Result<Term, GateError> {
    let logs = |regex| Term::Logs { text: pattern.to_owned(), pattern: regex };
    re2::translate(pattern).map(logs).map_err(|err| GateError::Pattern {
        annotation,
        pattern: pattern.to_owned(),
        problem: err.to_string().lines().last().unwrap_or_default().to_owned(),
    })
}

/// `name` or `name(inside)`.
fn split_call(term: &str) -> Result<(&str, Option<&str>), GateError> {
    let (name, inside) = match term.split_once('(') {
        None => (term, None),
        Some((name, rest)) => match rest.strip_suffix(')') {
            Some(inside) => (name, Some(inside)),
            None => return Err(syntax(term, "the closing parenthesis is missing")),
        },
    };
    let is_reference = name.starts_with("oci://");
    let fits = |c: char| {
        let is_of_reference = c.is_ascii_uppercase() || matches!(c, '/' | ':' | '@' | '_');
        c.is_ascii_lowercase()
            || c.is_ascii_digit()
            || matches!(c, '-' | '.')
            || (is_reference && is_of_reference)
    };
    if name.is_empty() || !name.chars().all(fits) {
        return Err(syntax(
            term,
            "a term is builtin, logs(\"…\"), none, the name of a Plugin, or oci://…@sha256:…",
        ));
    }
    Ok((name, inside))
}

/// `key=value, …` with JSON scalars as values.
fn parse_arguments(term: &str, inside: &str) -> Result<Map<String, Value>, GateError> {
    let mut arguments = Map::new();
    for part in split_outside_quotes(inside, ",") {
        let part = part.trim();
        if part.is_empty() {
            continue;
        }
        let Some((key, value)) = part.split_once('=') else {
            return Err(syntax(term, &format!("`{part}` is not of the form key=value")));
        };
        match serde_json::from_str::<Value>(value.trim()) {
            Ok(value) if !value.is_object() && !value.is_array() => {
                arguments.insert(key.trim().to_owned(), value);
            }
            _ => {
                let problem = format!("`{}` is not a JSON scalar; quote texts with \"\"", value.trim());
                return Err(syntax(term, &problem));
            }
        }
    }
    Ok(arguments)
}

fn split_terms(text: &str) -> Vec<&str> {
    split_outside_quotes(text, "&&")
}

fn split_outside_quotes<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let (mut parts, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, c) in text.char_indices() {
        let inside = quoted;
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => {}
        }
        let is_separator = text.get(at..).is_some_and(|rest| rest.starts_with(separator));
        if !inside && at >= start && is_separator {
            parts.push(text.get(start..at).unwrap_or_default());
            start = at + separator.len();
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

fn syntax(term: &str, problem: &str) -> GateError {
    GateError::Syntax { annotation: names::WAIT, term: term.to_owned(), problem: problem.to_owned() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    fn show(text: &str) -> String {
        match parse_wait(text) {
            Err(err) => err.to_string(),
            Ok(terms) => terms.iter().map(show_term).collect::<Vec<_>>().join(" AND "),
        }
    }

    fn show_term(term: &Term) -> String {
        match term {
            Term::Builtin { empty_is_ready } => format!("builtin/{empty_is_ready}"),
            Term::Logs { text, .. } => format!("logs/{text}"),
            Term::Plugin { name, args } => format!("{name}{args}"),
        }
    }

    #[test]
    fn terms_are_read() {
        for (text, expected) in [
            ("builtin && driver-loaded", "builtin/true AND driver-loaded{}"),
            ("builtin(emptyIsReady=false)", "builtin/false"),
            ("none", ""),
            (r#"logs("a && b")"#, "logs/a && b"),
            (
                "oci://r.example:5000/v/p@sha256:0a && builtin",
                "oci://r.example:5000/v/p@sha256:0a{} AND builtin/true",
            ),
            (r#"p(lines=3, text="x, \" y", on=true)"#, r#"p{"lines":3,"on":true,"text":"x, \" y"}"#),
        ] {
            assert_eq!(show(text), expected, "{text}");
        }
    }

    #[test]
    fn broken_terms_say_what_is_wrong_with_them() {
        for (text, part) in [
            ("builtin &&", "is not a term"),
            ("none && builtin", "stands alone"),
            ("builtin(x=1)", "no argument `x`"),
            ("logs(loaded)", "quoted"),
            ("logs(\"(\")", "regular expression"),
            ("p(a=b)", "not a JSON scalar"),
            ("p(a", "closing parenthesis"),
            ("My Plugin", "name of a Plugin"),
        ] {
            assert!(show(text).contains(part), "{text}: {}", show(text));
        }
    }

    #[test]
    fn lists_of_plugins_are_read_in_order() {
        let show = |text: &str| match parse_plugins(names::HOOKS, text) {
            Err(err) => err.to_string(),
            Ok(named) => {
                let shown = named.iter().map(|named| format!("{}{}", named.plugin, named.args));
                shown.collect::<Vec<_>>().join(" THEN ")
            }
        };
        assert_eq!(show("a, b"), "a{} THEN b{}");
        assert_eq!(show(r#"a(x=1, y="p, (q"), b"#), r#"a{"x":1,"y":"p, (q"} THEN b{}"#);
        for (text, part) in [
            ("", "names no plugin"),
            ("a, My Plugin", "as driver-checks"),
            ("a(x=1", "closing parenthesis"),
            ("a(x)", "key=value"),
        ] {
            let said = show(text);
            assert!(said.contains(part) && said.contains(names::HOOKS), "{text}: {said}");
        }
    }

    #[test]
    fn annotations_of_both_kinds_are_joined() {
        let object = Object::new(serde_json::json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {
                names::WAIT: "p", names::SRO_WAIT: "true", names::SRO_WAIT_FOR_LOGS: "touch /tmp/ready"
            }}
        }))
        .unwrap();
        assert_eq!(parse_gate(&object, false).unwrap().terms.len(), 3);
    }
}
