//! Fields that a kind's schema does not have. A server-side apply refuses them, where every other way of
//! writing drops them with a warning; charts rely on the latter.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use pintle_api::ObjectRef;
use serde_json::Value;

use super::error::{ApiError, Cause};

/// How long a field that a kind has no place for is left out without being tried: a schema may get it.
const LEFT_OUT: Duration = Duration::from_mins(5);

/// Whole fields of statuses that kinds have no place for.
#[derive(Default)]
pub(super) struct Gaps(Mutex<HashMap<String, (Instant, Vec<String>)>>);

impl Gaps {
    /// Takes out what a kind had no place for lately; gives a warning for each.
    pub(super) fn drop_from(&self, body: &mut Value, target: &ObjectRef) -> Vec<String> {
        let known = self.lock();
        let Some((since, paths)) = known.get(&kind_of(target)) else { return Vec::new() };
        if since.elapsed() > LEFT_OUT {
            return Vec::new();
        }
        let gone = paths.iter().filter(|path| remove(body, path));
        gone.map(|path| warning(path)).collect()
    }

    /// Remembers what a kind has no place for. Items of lists are not remembered: they come and go.
    pub(super) fn learn(&self, target: &ObjectRef, warnings: &[String]) {
        let paths = warnings.iter().filter_map(|warning| path_of(warning)).filter(|path| !path.contains('['));
        let paths: Vec<_> = paths.map(str::to_owned).collect();
        if !paths.is_empty() {
            self.lock().insert(kind_of(target), (Instant::now(), paths));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Instant, Vec<String>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn kind_of(target: &ObjectRef) -> String {
    format!("{} {}", target.api_version, target.kind)
}

fn warning(path: &str) -> String {
    format!("unknown field \"{path}\", dropped")
}

fn path_of(warning: &str) -> Option<&str> {
    warning.strip_prefix("unknown field \"")?.strip_suffix("\", dropped")
}

/// What the server says of such a field.
const UNDECLARED: &str = "field not declared in schema";

/// Takes the fields out of `body` that the server did not know; gives a warning for each. Nothing when the
/// error is about anything else.
pub(super) fn drop_from(body: &mut Value, error: &ApiError) -> Option<Vec<String>> {
    let Cause::Invalid(fields) = error.cause() else { return None };
    let warnings = fields.iter().map(|field| {
        (field.message == UNDECLARED && remove(body, &field.path)).then(|| warning(&field.path))
    });
    warnings.collect::<Option<Vec<_>>>().filter(|warnings| !warnings.is_empty())
}

/// Removes what a path such as `spec.containers[name="c"].env[0].x` names; false when it names nothing.
fn remove(value: &mut Value, path: &str) -> bool {
    let Some((step, rest)) = first(path) else { return false };
    match step {
        Step::Field(name) if rest.is_empty() => {
            value.as_object_mut().is_some_and(|map| map.remove(name).is_some())
        }
        Step::Field(name) => value.get_mut(name).is_some_and(|inner| remove(inner, rest)),
        Step::Index(index) => value.get_mut(index).is_some_and(|inner| remove(inner, rest)),
        Step::Keys(keys) => {
            // The server fills in keys that have a default, such as the protocol of a port.
            let fits = |item: &&mut Value| {
                let has = |key: &str| item.get(key).is_some();
                keys.iter().any(|(key, _)| has(key))
                    && keys.iter().all(|(key, wanted)| item.get(key).is_none_or(|value| value == wanted))
            };
            let items = value.as_array_mut().into_iter().flatten();
            items.into_iter().find(fits).is_some_and(|inner| remove(inner, rest))
        }
    }
}

/// One step of a path.
enum Step<'a> {
    Field(&'a str),
    Index(usize),
    /// The item of a list with these keys.
    Keys(Vec<(String, Value)>),
}

fn first(path: &str) -> Option<(Step<'_>, &str)> {
    let path = path.strip_prefix('.').unwrap_or(path);
    let Some(inside) = path.strip_prefix('[') else {
        let end = path.find(['.', '[']).unwrap_or(path.len());
        let (name, rest) = path.split_at_checked(end)?;
        return (!name.is_empty()).then_some((Step::Field(name), rest));
    };
    let (inside, rest) = inside.split_once(']')?;
    if let Ok(index) = inside.parse() {
        return Some((Step::Index(index), rest));
    }
    let keys = inside.split(',').map(|pair| {
        let (key, value) = pair.split_once('=')?;
        Some((key.to_owned(), serde_json::from_str(value).ok()?))
    });
    Some((Step::Keys(keys.collect::<Option<_>>()?), rest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_of_the_server_are_followed() {
        let mut body =
            json!({"spec": {"surprise": 1, "list": [{"name": "a"}, {"name": "b", "port": 1, "x": 2}]}});
        assert!(remove(&mut body, "spec.surprise"));
        assert!(remove(&mut body, ".spec.list[name=\"b\",port=1].x"));
        assert!(remove(&mut body, "spec.list[name=\"b\",protocol=\"TCP\"].port"), "a key with a default");
        assert!(remove(&mut body, "spec.list[0].name"));
        assert_eq!(body, json!({"spec": {"list": [{}, {"name": "b"}]}}));
    }

    #[test]
    fn what_a_kind_has_no_place_for_is_left_out_of_that_kind_next_time() {
        let gaps = Gaps::default();
        let backup = ObjectRef::new("example.com/v1", "Backup", "a");
        let warnings = [warning("status.conditions"), warning("status.list[0].x"), "deprecated".to_owned()];
        gaps.learn(&backup, &warnings);
        let status = json!({"status": {"conditions": [], "list": [{"x": 1}], "phase": "Ready"}});
        let mut body = status.clone();
        assert_eq!(gaps.drop_from(&mut body, &backup), [warning("status.conditions")]);
        assert_eq!(
            body,
            json!({"status": {"list": [{"x": 1}], "phase": "Ready"}}),
            "items of lists are tried again"
        );
        let mut body = json!({"status": {"phase": "Ready"}});
        assert_eq!(gaps.drop_from(&mut body, &backup), Vec::<String>::new(), "only what is there is told");
        let mut body = status.clone();
        assert!(gaps.drop_from(&mut body, &ObjectRef::new("example.com/v1", "Restore", "a")).is_empty());
        assert_eq!(body, status);
    }

    #[test]
    fn a_path_that_leads_nowhere_removes_nothing() {
        let mut body = json!({"spec": {"a": 1}});
        for path in ["spec.b", "spec.a.b", "spec[0]", "spec[name=\"a\"].x", "", "[", "spec.a[", "a..b"] {
            assert!(!remove(&mut body, path), "{path}");
        }
        assert_eq!(body, json!({"spec": {"a": 1}}));
    }
}
