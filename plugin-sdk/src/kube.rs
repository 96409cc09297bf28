//! Objects of the cluster, read-only, into types of the plugin's own. What was read is watched until
//! the next call, so a plugin never polls.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, de::DeserializeOwned};

use crate::{Failure, ObjectQuery, ObjectRef, bindings::pintle::plugin::types, host};

/// Why there is nothing to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// Not granted; the text names the line that would grant it.
    Denied(String),
    /// It is known not to be there.
    NotFound,
    /// The cluster does not serve this kind.
    KindUnknown,
    /// Larger than the grant allows, in bytes.
    TooLarge(u64),
    /// Not known yet, or out of reach.
    Unavailable(String),
    /// It is there, and is not what the plugin expects.
    Shape(String),
}

/// Which objects, and what of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    query: ObjectQuery,
    fields: Vec<String>,
}

/// `spec.selector` of workloads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that must be equal.
    pub match_labels: BTreeMap<String, String>,
    /// Further terms.
    pub match_expressions: Vec<Expression>,
}

/// One term of a [`LabelSelector`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Expression {
    /// Key of the label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// For `In` and `NotIn`.
    #[serde(default)]
    pub values: Vec<String>,
}

/// Reads one object, and of it the fields that are named; none for all that is granted.
///
/// # Errors
/// When it is not granted, not there, or not of the shape of `T`.
pub fn get<T: DeserializeOwned>(target: &ObjectRef, fields: &[&str]) -> Result<T, ReadError> {
    let fields: Vec<String> = fields.iter().copied().map(str::to_owned).collect();
    shaped(&host::get(target, &fields)?)
}

/// Reads all objects of a query, page by page.
///
/// # Errors
/// When they are not granted, or one is not of the shape of `T`.
pub fn find<T: DeserializeOwned>(query: &Query) -> Result<Vec<T>, ReadError> {
    let (mut all, mut token) = (Vec::new(), None);
    loop {
        let page = host::find(&query.query, &query.fields, 0, token.as_deref())?;
        for item in &page.items {
            all.push(shaped(item)?);
        }
        match page.next {
            Some(next) => token = Some(next),
            None => return Ok(all),
        }
    }
}

fn shaped<T: DeserializeOwned>(json: &str) -> Result<T, ReadError> {
    serde_json::from_str(json).map_err(|error| ReadError::Shape(error.to_string()))
}

// === impl Query ===

impl Query {
    /// All objects of a kind, within the grants.
    #[must_use]
    pub fn all(api_version: &str, kind: &str) -> Self {
        let query = ObjectQuery {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: None,
            label_selector: None,
        };
        Self { query, fields: Vec::new() }
    }

    /// Only those in a namespace.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        self.query.namespace = Some(namespace.to_owned());
        self
    }

    /// Only those that the selector selects.
    #[must_use]
    pub fn selected_by(mut self, selector: &LabelSelector) -> Self {
        self.query.label_selector = Some(selector.to_query());
        self
    }

    /// Only those that a selector in the form of queries selects: `a=b,c in (d,e),!f`.
    #[must_use]
    pub fn selected_by_text(mut self, selector: &str) -> Self {
        self.query.label_selector = Some(selector.to_owned());
        self
    }

    /// Only these fields, as dotted paths; a dot in a key is `\.`.
    #[must_use]
    pub fn fields(mut self, fields: &[&str]) -> Self {
        self.fields = fields.iter().copied().map(str::to_owned).collect();
        self
    }
}

// === impl LabelSelector ===

impl LabelSelector {
    /// The form that queries take: `a=b,c in (d,e),!f`.
    #[must_use]
    pub fn to_query(&self) -> String {
        let labels = self.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
        let terms = self.match_expressions.iter().map(Expression::to_query);
        labels.chain(terms).collect::<Vec<_>>().join(",")
    }
}

impl Expression {
    fn to_query(&self) -> String {
        let Self { key, operator, values } = self;
        match operator.as_str() {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.clone(),
        }
    }
}

// === impl ReadError ===

impl From<types::ReadError> for ReadError {
    fn from(error: types::ReadError) -> Self {
        match error {
            types::ReadError::Denied(why) => Self::Denied(why),
            types::ReadError::NotFound => Self::NotFound,
            types::ReadError::KindUnknown => Self::KindUnknown,
            types::ReadError::TooLarge(bytes) => Self::TooLarge(bytes),
            types::ReadError::Unavailable(why) => Self::Unavailable(why),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(why) => write!(f, "denied: {why}"),
            Self::NotFound => f.write_str("not found"),
            Self::KindUnknown => f.write_str("the cluster does not serve this kind"),
            Self::TooLarge(bytes) => write!(f, "too large: {bytes} bytes"),
            Self::Unavailable(why) => write!(f, "unavailable: {why}"),
            Self::Shape(why) => write!(f, "not as expected: {why}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        let message = error.to_string();
        match error {
            ReadError::Unavailable(_) => Self::for_now(message),
            ReadError::Denied(_)
            | ReadError::NotFound
            | ReadError::KindUnknown
            | ReadError::TooLarge(_)
            | ReadError::Shape(_) => Self::until_changed(message),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_of_a_workload_becomes_a_query() {
        let selector: LabelSelector =
            serde_json::from_value(json!({"matchLabels": {"a": "b"}, "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["d", "e"]}, {"key": "f", "operator": "DoesNotExist"},
            {"key": "g", "operator": "NotIn", "values": ["h"]}, {"key": "i", "operator": "Exists"}]}))
            .unwrap();
        assert_eq!(selector.to_query(), "a=b,c in (d,e),!f,g notin (h),i");
    }
}
