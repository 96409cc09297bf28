//! What differs between two answers, one line each, for people.

use std::collections::BTreeSet;

use serde_json::Value;

/// Characters of a value that a line shows.
const SHOWN: usize = 160;

/// The differences, each with its path, what was and what is. Lists of objects with a key are compared by
/// it, so that a new first entry does not change all others.
pub(super) fn changes(was: &Value, is: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", was, is, &mut lines);
    lines
}

fn compare(path: &str, was: &Value, is: &Value, lines: &mut Vec<String>) {
    match (was, is) {
        _ if was == is => {}
        (Value::Object(before), Value::Object(after)) => {
            let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for key in keys {
                let at = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let of = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                compare(&at, &of(before), &of(after), lines);
            }
        }
        (Value::Array(before), Value::Array(after)) => compare_lists(path, before, after, lines),
        (Value::Null, is) => lines.push(format!("{path}: new: {}", shown(is))),
        (was, Value::Null) => lines.push(format!("{path}: gone: {}", shown(was))),
        (was, is) => lines.push(format!("{path}: {} -> {}", shown(was), shown(is))),
    }
}

fn compare_lists(path: &str, before: &[Value], after: &[Value], lines: &mut Vec<String>) {
    let names = |list: &[Value]| {
        let names = list.iter().enumerate().map(|(at, value)| name(value).unwrap_or_else(|| at.to_string()));
        names.collect::<Vec<_>>()
    };
    let (olds, news) = (names(before), names(after));
    let find = |names: &[String], list: &[Value], name: &str| {
        let at = names.iter().position(|known| known == name)?;
        list.get(at).cloned()
    };
    let (mut seen, told) = (BTreeSet::new(), lines.len());
    for name in olds.iter().chain(&news).filter(|name| seen.insert((*name).clone())) {
        let (was, is) = (find(&olds, before, name), find(&news, after, name));
        compare(&format!("{path}[{name}]"), &was.unwrap_or_default(), &is.unwrap_or_default(), lines);
    }
    if lines.len() == told {
        lines.push(format!("{path}: in another order, or more often"));
    }
}

/// What names an entry of a list over versions: its key, its edit, its object and node with the reason.
fn name(value: &Value) -> Option<String> {
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    if let Some(key) = ["key", "replace", "add", "drop", "type"].into_iter().find_map(text) {
        return Some(key.to_owned());
    }
    let reason = text("reason")?;
    let object = value.pointer("/object/name").and_then(Value::as_str);
    let parts = [Some(reason), text("node"), object];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_is_told_with_its_path_and_entries_are_compared_by_their_names() {
        let was = json!({"verdict": "pending", "blockers": [
            {"reason": "NotLoaded", "node": "a", "message": "0/2"}, {"reason": "NotLoaded", "node": "b", "message": "x"}]});
        let is = json!({"verdict": "pending", "blockers": [
            {"reason": "NoLog", "node": "c", "message": "n"}, {"reason": "NotLoaded", "node": "a", "message": "1/2"}]});
        assert_eq!(
            changes(&was, &is),
            [
                "blockers[NotLoaded a].message: 0/2 -> 1/2",
                "blockers[NotLoaded b]: gone: {\"message\":\"x\",\"node\":\"b\",\"reason\":\"NotLoaded\"}",
                "blockers[NoLog c]: new: {\"message\":\"n\",\"node\":\"c\",\"reason\":\"NoLog\"}",
            ]
            .map(str::to_owned)
        );
        assert_eq!(
            changes(&json!({"verdict": "ready"}), &json!({"verdict": "pending"})),
            ["verdict: ready -> pending"]
        );
        assert_eq!(changes(&was, &was), Vec::<String>::new());
    }

    #[test]
    fn no_difference_is_lost_in_a_list() {
        let twice = json!({"a": [{"key": "x"}, {"key": "x"}]});
        assert_eq!(changes(&json!({"a": [{"key": "x"}]}), &twice).len(), 1);
        let (one, two) =
            (json!({"a": [{"key": "x"}, {"key": "y"}]}), json!({"a": [{"key": "y"}, {"key": "x"}]}));
        assert_eq!(changes(&one, &two), ["a: in another order, or more often"]);
        let long = json!({"a": "x".repeat(1000)});
        assert!(changes(&json!({"a": 1}), &long).iter().all(|line| line.len() < 300));
    }
}
