//! The template language, program by program, with everything it prints and says.
//!
//! `language/*.txt` hold programs under a sentence each; `language/values.yaml` what they see. The
//! answers are those of Helm 4, error texts included, where a program is one Helm can run.

#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use pintle_template::value::{MapType, Value, as_map, map_value, typed_map};
use pintle_template::{NoCluster, Program, Run, Source, yaml};

const FILE: &str = "c/templates/t.yaml";

fn dot() -> Value {
    let text = include_str!("language/values.yaml");
    let values = yaml::load(text, "values.yaml").unwrap();
    let mut values = as_map(&values).unwrap().read().clone();
    values.retain(|_, value| !value.is_none());
    let values = (Arc::from("Values"), typed_map(values, MapType::Values));
    map_value([values].into_iter().collect())
}

fn answer(text: &str) -> String {
    let source = Source { name: FILE.into(), text: text.into() };
    let result =
        Program::parse(&[source]).and_then(|program| program.render(FILE, &dot(), &Run::new(&NoCluster)));
    match result {
        Ok(out) => out,
        Err(err) => format!("ERROR {err}\n{err:#}"),
    }
}

fn check(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut out = String::new();
    for case in text.split("=== ").skip(1) {
        let (name, program) = case.split_once('\n').unwrap();
        let answer = answer(program.strip_suffix('\n').unwrap_or(program));
        write!(out, "=== {name}\n{answer}\n").unwrap();
    }
    insta::assert_snapshot!(out);
}

#[test]
fn programs_print_and_fail_as_in_helm() {
    insta::glob!("language/*.txt", check);
}
