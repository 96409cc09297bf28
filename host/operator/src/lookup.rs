//! `lookup` of templates, answered from facts.

use pintle_api::{Answer, Facts, ObjectRef, Query};
use pintle_template::{Lookup, LookupError, value::Value};
use serde_json::json;

/// Answers `lookup` from the caches.
pub(crate) struct FactsLookup<'a>(pub(crate) &'a dyn Facts);

impl Lookup for FactsLookup<'_> {
    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Value, LookupError> {
        let within = (!namespace.is_empty()).then(|| namespace.to_owned());
        let what = || format!("{kind} {namespace}/{name}");
        let answer = if name.is_empty() {
            let query = Query {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                namespace: within,
                label_selector: None,
            };
            self.0.list(&query).map(|items| {
                let items: Vec<_> = items.iter().map(|item| item.to_value()).collect();
                json!({"apiVersion": api_version, "kind": format!("{kind}List"), "metadata": {}, "items": items})
            })
        } else {
            let target = ObjectRef { namespace: within, ..ObjectRef::new(api_version, kind, name) };
            self.0.get(&target).map(|object| object.to_value())
        };
        match answer {
            Answer::Found(json) => Ok(pintle_chart::go_value(&json)),
            Answer::Missing | Answer::KindUnknown => Ok(pintle_chart::go_value(&json!({}))),
            Answer::NotYet => Err(LookupError::NotYet(what())),
            Answer::Denied(why) => Err(LookupError::Denied(why)),
        }
    }
}
