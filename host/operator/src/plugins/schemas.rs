//! Config of plugins and arguments of annotations, held against the schemas in their manifests.

use pintle_chart::{Violation, violations_of};
use pintle_plugin::SchemaCheck;
use serde_json::Value;

/// Checks with the same library that checks values of charts.
pub(crate) struct Schemas;

impl SchemaCheck for Schemas {
    fn violations(&self, schema: &Value, json: &Value) -> Vec<String> {
        match violations_of(schema, json) {
            Ok(found) => found.iter().map(sentence).collect(),
            Err(problem) => vec![format!("the schema in the plugin's manifest cannot be used: {problem}")],
        }
    }
}

/// `/mounts/0/path: got number, want string`; of alternatives, what each of them refuses.
fn sentence(violation: &Violation) -> String {
    let Violation { at, problem, causes, .. } = violation;
    let place = if at.is_empty() { "/" } else { at };
    let causes: Vec<_> = causes.iter().map(sentence).collect();
    let causes = if causes.is_empty() { String::new() } else { format!(" ({})", causes.join("; ")) };
    format!("{place}: {problem}{causes}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_refused_is_named_with_its_path() {
        let schema = json!({"type": "object", "properties": {
            "least": {"type": "integer", "minimum": 1},
            "names": {"type": "array", "items": {"type": "string"}},
            "either": {"anyOf": [{"type": "string"}, {"type": "null"}]}
        }, "additionalProperties": false});
        for (config, says) in [
            (json!({"least": 0}), vec!["/least: minimum: got 0, want 1"]),
            (json!({"names": ["a", 1]}), vec!["/names/1: got number, want string"]),
            (json!({"nmaes": []}), vec!["/: additional properties 'nmaes' not allowed"]),
            (
                json!({"either": 3}),
                vec![
                    "/either: 'anyOf' failed (/either: got number, want string; /either: got number, want null)",
                ],
            ),
            (json!({"least": 2, "names": ["a"], "either": null}), vec![]),
        ] {
            assert_eq!(Schemas.violations(&schema, &config), says);
        }
        let broken = Schemas.violations(&json!({"type": 3}), &json!({}));
        assert!(broken.iter().all(|text| text.starts_with("the schema in the plugin's manifest cannot")));
        assert_eq!(broken.len(), 1);
    }
}
