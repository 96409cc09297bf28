//! Go templates outside charts: a SpecialResource that is itself a template, and names made from an owner.
//!
//! These know Go's own functions and none of Helm's, and a missing key leaves the text `<no value>`.

use std::sync::Arc;

use pintle_template::{Dialect, NoCluster, Program, Run, Source};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::scope;

/// Longest name of a release; Helm's limit.
pub const MAX_RELEASE_NAME: usize = 53;

/// Why a template outside a chart gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The template cannot be read, or failed.
    #[error("the template of {0} failed")]
    Template(String, #[source] pintle_template::Error),
    /// What came out is no JSON, mostly because of quotes inside `{{ }}`.
    #[error("{0} is no JSON once its templates are filled in: use no quotes inside {{{{ }}}}")]
    NotJson(String, #[source] serde_json::Error),
    /// A name that no release can have.
    #[error(
        "release name {0:?} is not allowed: lower case letters, digits, - and . between them, at most {MAX_RELEASE_NAME} characters"
    )]
    Name(String),
}

/// The text of a template over `data`; `name` stands in errors.
///
/// # Errors
/// When it is no template, or fails.
pub fn render(name: &str, text: &str, data: &Value) -> Result<String, Error> {
    let fail = |error| Error::Template(name.to_owned(), error);
    let source = Source { name: Arc::from(name), text: Arc::from(text) };
    let program = Program::parse_in(Dialect::Plain, &[source]).map_err(fail)?;
    program.render(name, &scope::to_value(data), &Run::new(&NoCluster)).map_err(fail)
}

/// A SpecialResource (or any JSON) with its templates filled in: `.Values` are the facts of the cluster. The
/// whole is one template, so a value may be made from a fact, and quotes inside `{{ }}` break it.
///
/// # Errors
/// When a template in it fails, or the result is no JSON.
pub fn fill_in(name: &str, value: &Value, facts: &Map<String, Value>) -> Result<Value, Error> {
    let text = value.to_string();
    if !text.contains("{{") {
        return Ok(value.clone());
    }
    let data = Value::Object(Map::from_iter([("Values".to_owned(), Value::Object(facts.clone()))]));
    let text = render(name, &text, &data)?;
    serde_json::from_str(&text).map_err(|error| Error::NotJson(name.to_owned(), error))
}

/// The name of an owner's release: its own, or what `template` makes of the owner. A name that is too long
/// becomes its first 40 characters, `-` and twelve digits of its sha256.
///
/// # Errors
/// When the template fails, or makes a name that no release can have.
pub fn release_name(template: &str, owner: &Value) -> Result<String, Error> {
    let own = owner.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let name = if template.is_empty() { own.to_owned() } else { render("releaseName", template, owner)? };
    let name = name.trim();
    if !is_release_name(name) {
        return Err(Error::Name(name.to_owned()));
    }
    Ok(shortened(name))
}

/// True for lower case letters and digits with `-` inside, in parts between dots.
fn is_release_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.split('.').all(|part| {
        let bytes = part.as_bytes();
        let ends = [bytes.first(), bytes.last()];
        ends.iter().all(|end| end.is_some_and(|byte| plain(*byte)))
            && bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
    })
}

fn shortened(name: &str) -> String {
    if name.len() <= MAX_RELEASE_NAME {
        return name.to_owned();
    }
    let hash = hex::encode(Sha256::digest(name));
    let (head, hash) = (name.get(..40).unwrap_or(name), hash.get(..12).unwrap_or(&hash));
    format!("{}-{hash}", head.trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    #[test]
    fn facts_are_filled_into_a_special_resource() {
        let set = json!({"image": "r:v{{.Values.kernelFullVersion}}", "n": 3, "gone": "{{ .Values.nope }}"});
        let facts = json!({"kernelFullVersion": "4.18.0"}).as_object().unwrap().clone();
        let filled = fill_in("SpecialResource x", &set, &facts).unwrap();
        assert_eq!(filled, json!({"image": "r:v4.18.0", "n": 3, "gone": "<no value>"}));
        let plain = json!({"a": [1, "x"]});
        assert_eq!(fill_in("SpecialResource x", &plain, &facts).unwrap(), plain);
    }

    #[test]
    fn functions_of_helm_are_not_known_there() {
        let error = render("t", "{{ .a | upper }}", &json!({"a": "x"})).unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("function \"upper\" not defined"), "{source}");
    }

    #[test]
    fn a_release_is_named_as_its_owner_or_by_template() {
        let owner = json!({"metadata": {"name": "mem", "namespace": "apps"}});
        assert_eq!(release_name("", &owner).unwrap(), "mem");
        assert_eq!(
            release_name("{{ .metadata.namespace }}-{{ .metadata.name }}", &owner).unwrap(),
            "apps-mem"
        );
        for template in ["{{ .nope }}", "Upper", "-a", "a..b", "a_b"] {
            assert!(matches!(release_name(template, &owner), Err(Error::Name(_))), "{template}");
        }
    }

    #[test]
    fn long_names_are_cut_and_stay_different() {
        let name = |last: char| format!("{}{last}", "a".repeat(60));
        let owner = |last| json!({"metadata": {"name": name(last)}});
        let (one, other) = (release_name("", &owner('b')).unwrap(), release_name("", &owner('c')).unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), MAX_RELEASE_NAME);
        assert!(one.starts_with(&"a".repeat(40)) && is_release_name(&one));
    }
}
