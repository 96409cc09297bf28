//! `tests/BAD_INPUT.md`: the table for people, written from [`super::table`].

use std::{collections::BTreeSet, fmt::Write as _, path::PathBuf};

use super::table::ROWS;

const HEAD: &str = "\
# Bad input

What the operator says of bad input, what stays applied meanwhile, and what ends it. It never needs a restart.
Written from `tests/tests/end_to_end/bad_input/table.rs` by `PINTLE_WRITE=1 cargo test -p pintle-tests bad_input::document`;
each row is a test of its name on a real control plane, in the folder of that file.

Condition and reason are those of the SpecialResource, the blocker is the reason in `status.states[]` or `status.blocked`; where there is
none, the message of the condition says it all. Gaps in messages are marked by ` … `. What a retry may mend is
Progressing at first and, after three tries, Errored for `FailedToDeployChart`; it is tried again all the same.

| test | fault | condition: reason | blocker | message | stays applied | ended by |
|---|---|---|---|---|---|---|
";

fn document() -> String {
    let mut text = HEAD.to_owned();
    for row in ROWS {
        let says = row.says.join(" … ").replace('|', "\\|");
        let blocker = if row.blocker.is_empty() { String::new() } else { format!("`{}`", row.blocker) };
        writeln!(
            text,
            "| {} | {} | {}: `{}` | {blocker} | {says} | {} | {} |",
            row.name.replace('-', "_"),
            row.fault,
            row.condition,
            row.reason,
            row.stays,
            row.ends
        )
        .unwrap();
    }
    text
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("BAD_INPUT.md")
}

#[test]
fn the_table_for_people_is_current() {
    if std::env::var_os("PINTLE_WRITE").is_some() {
        std::fs::write(path(), document()).unwrap();
    }
    let there = std::fs::read_to_string(path()).unwrap_or_default();
    assert!(there == document(), "tests/BAD_INPUT.md is out of date: run this test with PINTLE_WRITE=1");
}

#[test]
fn every_row_has_a_test_and_a_name_of_its_own() {
    let sources = [
        include_str!("charts.rs"),
        include_str!("cluster.rs"),
        include_str!("operators.rs"),
        include_str!("owners.rs"),
        include_str!("plugins.rs"),
        include_str!("repositories.rs"),
        include_str!("templates.rs"),
    ];
    let names: BTreeSet<_> = ROWS.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), ROWS.len());
    for name in names {
        let test = format!("\nasync fn {}() {{", name.replace('-', "_"));
        assert!(sources.iter().any(|source| source.contains(&test)), "{name} has no test");
    }
}
