//! `values.schema.json`: whether values are what a chart and the charts in it expect.

mod pattern;
mod plain;
mod slim;

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use jsonschema::{
    JsonType, ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind},
};
use pintle_template::value::{Value as GoValue, as_map};
use serde_json::Value;

use self::plain::Plain;
use crate::{
    dependencies::Node,
    values::{Values, live},
    yaml,
};

/// A `values.schema.json`, whose clones share what was made of it.
#[derive(Clone, Debug)]
pub struct Schema {
    bytes: Bytes,
    /// The schema itself, if it is a plain one.
    plain: Arc<OnceLock<Option<Plain>>>,
    /// Made when values may be refused: that takes longer than the check.
    validator: Arc<OnceLock<Result<Validator, String>>>,
}

/// Values that schemas refuse. `Display` is Helm's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// Each chart that refuses something, parents first.
    pub charts: Vec<RefusedChart>,
}

/// What one chart refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedChart {
    /// Its name.
    pub name: String,
    /// The names on the way to it from the chart that is installed; empty for that one.
    pub path: Vec<String>,
    /// What it refuses.
    pub violations: Vec<Violation>,
}

/// One thing that a schema refuses, or why the schema itself cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where in the values, as a JSON pointer; empty for their root.
    pub at: String,
    /// What is wrong.
    pub problem: String,
    /// What led to it, where it has alternatives.
    pub causes: Vec<Violation>,
    /// Whether it only holds its causes together.
    pub is_group: bool,
}

impl std::error::Error for SchemaError {}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "values don't meet the specifications of the schema(s) in the following chart(s):")?;
        for chart in &self.charts {
            writeln!(f, "{}:", chart.name)?;
            chart.violations.iter().try_for_each(|violation| violation.write(f, 0))?;
        }
        Ok(())
    }
}

impl Violation {
    fn new(at: String, problem: String, causes: Vec<Violation>) -> Self {
        Self { at, problem, causes, is_group: false }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        writeln!(f, "{:indent$}- at '{}': {}", "", self.at, self.problem, indent = depth * 2)?;
        self.causes.iter().try_for_each(|cause| cause.write(f, depth + 1))
    }
}

/// Checks what each chart of the tree sees against its schema.
///
/// # Errors
/// With all that is refused, of all charts.
pub(crate) fn check(node: Node<'_>, values: &GoValue) -> Result<(), SchemaError> {
    let mut charts = Vec::new();
    collect(node, values, &[], &mut charts);
    if charts.is_empty() { Ok(()) } else { Err(SchemaError { charts }) }
}

fn collect(node: Node<'_>, values: &GoValue, path: &[String], charts: &mut Vec<RefusedChart>) {
    if let Some(schema) = &node.chart().schema {
        let violations = match live::to_values(values) {
            Ok(values) => schema.violations(&values),
            Err(error) => vec![Violation::new(String::new(), error.to_string(), Vec::new())],
        };
        if !violations.is_empty() {
            charts.push(RefusedChart { name: node.name().to_owned(), path: path.to_vec(), violations });
        }
    }
    for child in node.children() {
        let inner = as_map(values).and_then(|values| values.get(child.name()));
        if let Some(inner) = inner.filter(|inner| as_map(inner).is_some()) {
            collect(child, &inner, &[path, &[child.name().to_owned()]].concat(), charts);
        }
    }
}

impl Schema {
    /// A schema that is read when it is first used.
    #[must_use]
    pub fn new(bytes: Bytes) -> Self {
        Self { bytes, plain: Arc::default(), validator: Arc::default() }
    }

    /// The content of the file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn violations(&self, values: &Values) -> Vec<Violation> {
        // An integer that was read as a float is one, in every draft, as Helm has it.
        let values = Value::Object(yaml::integers_of(values));
        let plain = self.plain.get_or_init(|| Plain::of(&self.bytes));
        if plain.as_ref().is_some_and(|plain| plain.fits(&values)) {
            return Vec::new();
        }
        match self.validator.get_or_init(|| compile(&self.bytes)) {
            Ok(validator) => {
                if validator.is_valid(&values) {
                    return Vec::new();
                }
                let errors: Vec<_> = validator.iter_errors(&values).collect();
                grouped(merged(&errors))
            }
            Err(problem) => {
                let problem = format!("values.schema.json: {problem}");
                vec![Violation::new(String::new(), problem, Vec::new())]
            }
        }
    }
}

/// The validator of a schema, or why it cannot be used.
fn compile(schema: &[u8]) -> Result<Validator, String> {
    let schema: Value = serde_json::from_slice(schema).map_err(|error| error.to_string())?;
    jsonschema::validator_for(&schema).map_err(|error| error.to_string())
}

/// What a JSON Schema refuses of a JSON text, each with its place.
///
/// # Errors
/// When the schema is none, with what is wrong with it.
pub fn violations_of(schema: &Value, json: &Value) -> Result<Vec<Violation>, String> {
    let validator = jsonschema::validator_for(schema).map_err(|error| error.to_string())?;
    let errors: Vec<_> = validator.iter_errors(json).collect();
    Ok(merged(&errors))
}

/// What is wrong at one place below the root, under one line where it is more than one thing.
fn grouped(violations: Vec<Violation>) -> Vec<Violation> {
    let mut groups: Vec<Violation> = Vec::new();
    for violation in violations {
        let first = groups.iter_mut().find(|known| known.at == violation.at && !violation.at.is_empty());
        match first {
            None => groups.push(violation),
            Some(group) if group.is_group => group.causes.push(violation),
            Some(first) => {
                let group = Violation {
                    is_group: true,
                    ..Violation::new(violation.at.clone(), "validation failed".to_owned(), Vec::new())
                };
                let first = std::mem::replace(first, group);
                if let Some(group) = groups.iter_mut().find(|known| known.is_group && known.at == first.at) {
                    group.causes.extend([first, violation]);
                }
            }
        }
    }
    groups
}

/// The violations, properties that miss at one place in one line.
fn merged(errors: &[ValidationError<'_>]) -> Vec<Violation> {
    let mut violations: Vec<Violation> = Vec::new();
    let mut missing: Vec<(String, String, Vec<String>)> = Vec::new();
    let stopped = errors.iter().filter(|error| stops(error)).map(|error| (place(error), stop_rank(error)));
    let stopped: Vec<_> = stopped.collect();
    for error in errors {
        let (place, rank) = (place(error), stop_rank(error));
        if stopped.iter().any(|(known, first)| *known == place && *first < rank) {
            continue;
        }
        let at = error.instance_path().to_string();
        if let ValidationErrorKind::Required { property } = error.kind() {
            let name = property.as_str().map_or_else(|| property.to_string(), str::to_owned);
            let keyword = error.schema_path().to_string();
            match missing.iter_mut().find(|(place, by, _)| *place == at && *by == keyword) {
                Some((_, _, names)) => names.push(name),
                None => missing.push((at, keyword, vec![name])),
            }
        } else {
            violations.push(Violation::new(at, problem(error), causes(error)));
        }
    }
    let missing = missing.into_iter().map(|(at, by, names)| {
        let noun = if names.len() == 1 { "property" } else { "properties" };
        let problem = match by.rsplit_once("/dependentRequired/") {
            Some((_, property)) => format!("properties {} required, if '{property}' exists", quoted(&names)),
            None => format!("missing {noun} {}", quoted(&names)),
        };
        Violation::new(at, problem, Vec::new())
    });
    missing.chain(violations).collect()
}

/// The value and the schema an error is about.
fn place(error: &ValidationError<'_>) -> (String, String) {
    let schema = error.schema_path().to_string();
    let parent = schema.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned();
    (error.instance_path().to_string(), parent)
}

/// Where a value has another type than its schema wants, or is not the one it wants, Helm looks no further.
fn stops(error: &ValidationError<'_>) -> bool {
    stop_rank(error) < 3
}

fn stop_rank(error: &ValidationError<'_>) -> u8 {
    match error.kind() {
        ValidationErrorKind::Type { .. } => 0,
        ValidationErrorKind::Constant { .. } => 1,
        ValidationErrorKind::Enum { .. } => 2,
        _ => 3,
    }
}

fn causes(error: &ValidationError<'_>) -> Vec<Violation> {
    match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            context.iter().flat_map(|errors| merged(errors)).collect()
        }
        ValidationErrorKind::PropertyNames { error } => merged(std::slice::from_ref(&**error)),
        _ => Vec::new(),
    }
}

/// The sentence Helm has for it, where it has one of its own.
fn problem(error: &ValidationError<'_>) -> String {
    let got = error.instance();
    let length = got.as_str().map_or(0, |text| text.chars().count());
    match error.kind() {
        ValidationErrorKind::Type { kind } => format!("got {}, want {}", type_of(got), wanted(kind)),
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            format!("additional properties {} not allowed", quoted(unexpected))
        }
        ValidationErrorKind::Enum { options } => {
            let options: Vec<String> = options.as_array().into_iter().flatten().map(shown).collect();
            format!("value must be one of {}", options.join(", "))
        }
        ValidationErrorKind::Constant { expected_value } => {
            format!("value must be {}", shown(expected_value))
        }
        ValidationErrorKind::MinLength { limit } => format!("minLength: got {length}, want {limit}"),
        ValidationErrorKind::MaxLength { limit } => format!("maxLength: got {length}, want {limit}"),
        ValidationErrorKind::Pattern { pattern } => {
            format!("{} does not match pattern '{pattern}'", shown(got))
        }
        ValidationErrorKind::FalseSchema => "false schema".to_owned(),
        _ => size_problem(error).or_else(|| choice_problem(error)).unwrap_or_else(|| error.to_string()),
    }
}

/// What is wrong with a number, or with how many there are.
fn size_problem(error: &ValidationError<'_>) -> Option<String> {
    let got = error.instance();
    let size =
        got.as_array().map(Vec::len).or_else(|| got.as_object().map(serde_json::Map::len)).unwrap_or(0);
    Some(match error.kind() {
        ValidationErrorKind::Minimum { limit } => format!("minimum: got {got}, want {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("maximum: got {got}, want {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => {
            format!("exclusiveMinimum: got {got}, want {limit}")
        }
        ValidationErrorKind::ExclusiveMaximum { limit } => {
            format!("exclusiveMaximum: got {got}, want {limit}")
        }
        ValidationErrorKind::MultipleOf { multiple_of } => {
            format!("multipleOf: got {got}, want {multiple_of}")
        }
        ValidationErrorKind::MinItems { limit } => format!("minItems: got {size}, want {limit}"),
        ValidationErrorKind::MaxItems { limit } => format!("maxItems: got {size}, want {limit}"),
        ValidationErrorKind::MinProperties { limit } => format!("minProperties: got {size}, want {limit}"),
        ValidationErrorKind::MaxProperties { limit } => format!("maxProperties: got {size}, want {limit}"),
        ValidationErrorKind::UniqueItems => {
            let (one, other) = equal_items(got.as_array()?)?;
            format!("items at {one} and {other} are equal")
        }
        _ => return None,
    })
}

/// What is wrong where a schema has alternatives.
fn choice_problem(error: &ValidationError<'_>) -> Option<String> {
    Some(match error.kind() {
        ValidationErrorKind::AnyOf { .. } => "'anyOf' failed".to_owned(),
        ValidationErrorKind::OneOfNotValid { .. } => "'oneOf' failed, none matched".to_owned(),
        ValidationErrorKind::OneOfMultipleValid { context } => {
            let mut fit = context.iter().enumerate().filter(|(_, errors)| errors.is_empty());
            let (one, other) = (fit.next()?.0, fit.next()?.0);
            format!("'oneOf' failed, subschemas {one}, {other} matched")
        }
        ValidationErrorKind::Not { .. } => "'not' failed".to_owned(),
        ValidationErrorKind::Contains => "no items match contains schema".to_owned(),
        _ => return None,
    })
}

fn equal_items(items: &[Value]) -> Option<(usize, usize)> {
    let equal = |(at, item): (usize, &Value)| {
        let before = items.get(..at)?.iter().position(|known| known == item)?;
        Some((before, at))
    };
    items.iter().enumerate().find_map(equal)
}

fn wanted(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => name_of(*one).to_owned(),
        TypeKind::Multiple(set) => set.iter().map(name_of).collect::<Vec<_>>().join(" or "),
    }
}

fn name_of(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Null => "null",
        JsonType::Boolean => "boolean",
        JsonType::Integer => "integer",
        JsonType::Number => "number",
        JsonType::String => "string",
        JsonType::Array => "array",
        JsonType::Object => "object",
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| format!("'{text}'"))
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;
    use crate::{
        chart::tests::chart,
        dependencies::{Tree, settle},
        values::{coalesce, parse},
    };

    fn refused(files: &[(&str, &str)], user: &str) -> Option<String> {
        let user = parse(user).unwrap();
        let tree = settle(&Tree::new(&Arc::new(chart(files))), &user, &mut Vec::new()).unwrap();
        let values = coalesce(tree.root(), live::of(&user), &mut Vec::new()).unwrap();
        check(tree.root(), &values).err().map(|error| error.to_string())
    }

    const META: (&str, &str) = ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n");
    const HEAD: &str = "values don't meet the specifications of the schema(s) in the following chart(s):\n";

    #[test]
    fn what_is_refused_is_said_in_helms_words() {
        for (schema, user, says) in [
            (r#"{"required": ["policy"]}"#, "{}", "- at '': missing property 'policy'\n"),
            (r#"{"required": ["a", "b"]}"#, "{}", "- at '': missing properties 'a', 'b'\n"),
            (
                r#"{"properties": {"n": {"type": "number"}}}"#,
                "'n': two",
                "- at '/n': got string, want number\n",
            ),
            (
                r#"{"properties": {"n": {"type": ["number", "null"]}}}"#,
                "'n': two",
                "- at '/n': got string, want null or number\n",
            ),
            (
                r#"{"properties": {"l": {"enum": ["A", 1]}}}"#,
                "l: B",
                "- at '/l': value must be one of 'A', 1\n",
            ),
            (
                r#"{"properties": {"x": {}}, "additionalProperties": false}"#,
                "'y': 1",
                "- at '': additional properties 'y' not allowed\n",
            ),
            (
                r#"{"properties": {"x": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}"#,
                "x: 1",
                "- at '/x': 'anyOf' failed\n  - at '/x': got number, want string\n  - at '/x': got number, want null\n",
            ),
        ] {
            let expected = format!("{HEAD}c:\n{says}");
            assert_eq!(refused(&[META, ("values.schema.json", schema)], user), Some(expected), "{schema}");
        }
    }

    #[test]
    fn integers_of_values_files_are_integers_in_every_draft() {
        for draft in ["http://json-schema.org/draft-04/schema#", "http://json-schema.org/schema#"] {
            let schema = format!(r#"{{"$schema": "{draft}", "properties": {{"n": {{"type": "integer"}}}}}}"#);
            assert_eq!(refused(&[META, ("values.schema.json", &schema)], "'n': 3"), None, "{draft}");
        }
    }

    #[test]
    fn sub_charts_are_checked_with_their_own_values() {
        let files = [
            META,
            ("charts/sub/Chart.yaml", "name: sub\nversion: 1.0.0\n"),
            ("charts/sub/values.schema.json", r#"{"properties": {"a": {"type": "string"}}}"#),
        ];
        assert_eq!(refused(&files, "a: 1"), None);
        assert_eq!(
            refused(&files, "sub: {a: 1}").unwrap(),
            format!("{HEAD}sub:\n- at '/a': got number, want string\n")
        );
    }

    #[test]
    fn a_schema_that_cannot_be_used_is_said_so() {
        let text = refused(&[META, ("values.schema.json", "{")], "{}").unwrap();
        assert!(text.contains("- at '': values.schema.json: "), "{text}");
        let remote = r#"{"$ref": "http://example.invalid/x.json"}"#;
        assert!(refused(&[META, ("values.schema.json", remote)], "{}").is_some());
    }
}
