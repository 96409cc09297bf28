//! Annotations of ours that nobody knows: errors of the chart, found before anything is applied.

use pintle_api::{Object, names};

/// An annotation under `pintle.dev/` that Pintle does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: annotation {key:?} is unknown{}", suggestion(.nearest.as_deref()))]
pub struct UnknownAnnotation {
    /// The object with its file, or `Chart.yaml`.
    pub place: String,
    /// The annotation's key.
    pub key: String,
    /// The known key it looks most like.
    pub nearest: Option<String>,
}

/// Checks the keys of annotations that stand at `place`. Those of others, and unknown ones of the Special
/// Resource Operator, are ignored.
///
/// # Errors
/// For the first key under `pintle.dev/` that is not known.
pub fn check<'a>(place: &str, keys: impl IntoIterator<Item = &'a str>) -> Result<(), UnknownAnnotation> {
    let unknown = |key: &&str| key.starts_with(names::PREFIX) && !names::CHART_ANNOTATIONS.contains(key);
    match keys.into_iter().find(unknown) {
        None => Ok(()),
        Some(key) => Err(UnknownAnnotation {
            place: place.to_owned(),
            key: key.to_owned(),
            nearest: nearest(key).map(str::to_owned),
        }),
    }
}

/// Checks the annotations of an object and of the pods it makes.
///
/// # Errors
/// As [`check`].
pub fn check_object(file: &str, object: &Object) -> Result<(), UnknownAnnotation> {
    let place = format!("{file}: {}", object.reference());
    let annotations = object.at("/metadata/annotations").and_then(serde_json::Value::as_object);
    check(&place, annotations.into_iter().flatten().map(|(key, _)| key.as_str()))
}

fn nearest(key: &str) -> Option<&'static str> {
    let distances = names::CHART_ANNOTATIONS.iter().map(|known| (distance(key, known), *known));
    distances
        .min()
        .filter(|(distance, known)| *distance * 2 < known.len() - names::PREFIX.len() + 2)
        .map(|(_, known)| known)
}

/// Letters to change, add or drop (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, against) in other.iter().enumerate() {
            let change = diagonal + usize::from(letter != *against);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

fn suggestion(nearest: Option<&str>) -> String {
    match nearest {
        Some(nearest) => format!(": did you mean {nearest:?}?"),
        None => format!(": known are {}", names::CHART_ANNOTATIONS.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unknown_annotation_names_file_object_and_the_nearest_known_one() {
        let object = Object::new(json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "d", "namespace": "n", "annotations": {"pintle.dev/wiat": "builtin"}}}))
        .unwrap();
        let error = check_object("c/templates/x.yaml", &object).unwrap_err();
        assert_eq!(
            error.to_string(),
            "c/templates/x.yaml: DaemonSet n/d: annotation \"pintle.dev/wiat\" is unknown: did you mean \"pintle.dev/wait\"?"
        );
        let error = check("Chart.yaml", ["pintle.dev/completely-different"]).unwrap_err();
        assert!(error.to_string().contains("known are pintle.dev/wait, "), "{error}");
    }

    #[test]
    fn what_is_known_or_not_ours_passes() {
        for key in names::CHART_ANNOTATIONS {
            assert_eq!(check("", [key]), Ok(()));
        }
        assert_eq!(check("", ["specialresource.openshift.io/from-configmap", "helm.sh/hook", "x"]), Ok(()));
    }
}
