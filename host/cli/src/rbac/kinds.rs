//! Kinds that a template may render, read from its text: what it renders with some values is not enough.

use std::collections::BTreeSet;

/// Kinds in the text of one template, by group and kind.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) rendered: BTreeSet<(String, String)>,
    pub(super) looked_up: BTreeSet<(String, String)>,
    /// Lines with a kind or a version that the text alone does not tell.
    pub(super) unknown: Vec<usize>,
}

/// What one document of a template may be.
#[derive(Default)]
struct Document {
    groups: BTreeSet<String>,
    kinds: BTreeSet<String>,
    unknown: Vec<usize>,
}

/// Kinds that any branch of a template may render or look up.
pub(super) fn scan(text: &str) -> Found {
    let mut found = Found { looked_up: lookups(text), ..Found::default() };
    let mut document = Document::default();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("---") {
            found.take(std::mem::take(&mut document));
        } else if let Some(version) = field(line, "apiVersion") {
            match version {
                "" => document.unknown.push(index + 1),
                version => drop(document.groups.insert(group_of(version))),
            }
        } else if let Some(kind) = field(line, "kind") {
            match kind {
                "" => document.unknown.push(index + 1),
                kind => drop(document.kinds.insert(kind.to_owned())),
            }
        }
    }
    found.take(document);
    found
}

impl Found {
    fn take(&mut self, document: Document) {
        for group in &document.groups {
            self.rendered.extend(document.kinds.iter().map(|kind| (group.clone(), kind.clone())));
        }
        self.unknown.extend(document.unknown);
    }
}

/// The value of a field at the left edge of a document; empty where a template makes it.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let value = line.strip_prefix(name)?.strip_prefix(':')?;
    let value = value.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']);
    Some(if value.contains("{{") { "" } else { value })
}

fn group_of(version: &str) -> String {
    version.split_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default()
}

/// `lookup "v1" "Secret"` wherever it stands.
fn lookups(text: &str) -> BTreeSet<(String, String)> {
    let calls = text.split("lookup ").skip(1).filter_map(|rest| {
        let mut words = rest.split('"');
        let (before, version, between, kind) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let is_call = before.trim().is_empty() && between.trim().is_empty() && !kind.is_empty();
        is_call.then(|| (group_of(version), kind.to_owned()))
    });
    calls.collect()
}

/// What the API calls the objects of a kind, by the rule that all built-in kinds but one follow.
pub(crate) fn plural(kind: &str) -> String {
    let word = kind.to_lowercase();
    let is_vowel = |c: Option<char>| c.is_some_and(|c| "aeiou".contains(c));
    match word.as_str() {
        "endpoints" => word,
        _ if word.ends_with('s') || word.ends_with('x') || word.ends_with("ch") || word.ends_with("sh") => {
            format!("{word}es")
        }
        _ => match word.strip_suffix('y') {
            Some(stem) if !is_vowel(stem.chars().next_back()) => format!("{stem}ies"),
            _ => format!("{word}s"),
        },
    }
}

/// True for groups whose kinds follow the rule.
pub(super) fn is_built_in(group: &str) -> bool {
    group.is_empty() || group.ends_with(".k8s.io") || !group.contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_called_as_the_api_calls_them() {
        for (kind, resource) in [
            ("Ingress", "ingresses"),
            ("NetworkPolicy", "networkpolicies"),
            ("Gateway", "gateways"),
            ("Endpoints", "endpoints"),
            ("ConfigMap", "configmaps"),
            ("StorageClass", "storageclasses"),
        ] {
            assert_eq!(plural(kind), resource);
        }
    }
}
