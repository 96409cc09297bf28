//! The table of what users asked for: each row names a test that exists, or says why there is none.
#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::{collections::BTreeSet, fs, path::Path};

const TABLE: &str = include_str!("../REQUESTS.md");

/// Names of all functions that are tests in a folder's Rust files.
fn tests_in(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_in(&path, found);
            continue;
        }
        if path.extension().is_none_or(|end| end != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with("#[test") || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if let Some((_, name)) = line.split_once("fn ").filter(|_| is_test) {
                found.insert(name.split('(').next().unwrap_or_default().to_owned());
                is_test = false;
            }
        }
    }
}

#[test]
fn each_request_has_a_test_that_exists_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut known = BTreeSet::new();
    tests_in(&root.join("tests"), &mut known);
    tests_in(&root.join("../host/operator/src"), &mut known);
    let rows: Vec<Vec<&str>> = TABLE
        .lines()
        .filter(|line| line.starts_with("| A-"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let numbers: Vec<String> = (100..=119).map(|number| format!("A-{number}")).collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), numbers);
    for row in rows {
        let answer = row[2];
        let is_reason = answer.strip_prefix("none: ").is_some_and(|reason| reason.len() > 10);
        let name = answer.trim_matches('`');
        assert!(is_reason || known.contains(name), "{}: there is no test {name}", row[0]);
    }
}
