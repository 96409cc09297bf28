//! Behaviours of Helm, one by one: each case is a small chart under a sentence, rendered by both programs.
//!
//! `rows/*.txt` hold them. A case begins with `=== ROWS: sentence`, where the rows are this project's numbers of
//! the behaviours. Then come, as needed:
//!
//! - a `~` before the colon: both fail, and in words of their own, as `host/template/README.md` says why;
//! - `$ flag …`: flags of the call, words apart by spaces; `$$ word`: one word, spaces and all;
//! - `@ path`: a file of the chart, or with `/` in front one beside it; its text follows, up to the next line
//!   that begins so;
//! - a text without `@` is the template `templates/_case.tpl`, whose output is shown as JSON: it need not be YAML.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use super::{Bench, Case};

/// Of a chart that does not bring its own.
const METADATA: &str = "apiVersion: v2\nname: c\nversion: 1.2.3\nappVersion: \"4.5\"\n";

const SHOW: &str = "out: {{ include (print .Template.BasePath \"/_case.tpl\") . | toJson }}\n";

/// A case as it is written down.
#[derive(Debug)]
struct Row {
    /// Numbers of the behaviours it holds.
    numbers: Vec<String>,
    /// File and sentence.
    name: String,
    flags: Vec<String>,
    files: BTreeMap<String, String>,
    own_words: bool,
}

impl Row {
    fn parse(file: &str, text: &str) -> Self {
        let (head, body) = text.split_once('\n').unwrap();
        let (numbers, sentence) = head.split_once(": ").unwrap_or(("", head));
        let mut row = Self {
            numbers: numbers.split_whitespace().filter(|word| *word != "~").map(str::to_owned).collect(),
            own_words: numbers.ends_with('~'),
            name: format!("{file}: {sentence}"),
            flags: Vec::new(),
            files: BTreeMap::new(),
        };
        let mut path = "templates/_case.tpl".to_owned();
        for line in body.split_inclusive('\n') {
            if let Some(word) = line.strip_prefix("$$ ") {
                row.flags.push(word.trim_end_matches('\n').to_owned());
            } else if let Some(flags) = line.strip_prefix("$ ") {
                row.flags.extend(flags.split_whitespace().map(str::to_owned));
            } else if let Some(next) = line.strip_prefix("@ ") {
                path = next.trim_end().to_owned();
                row.files.insert(path.clone(), String::new());
            } else {
                row.files.entry(path.clone()).or_default().push_str(line);
            }
        }
        row
    }

    /// What the folder of the case holds, and the call.
    fn lay_out(mut self, folder: String, values: &str) -> (BTreeMap<String, Vec<u8>>, Case) {
        let mut put = |path: &str, text: &str| {
            if !self.files.contains_key(path) {
                self.files.insert(path.to_owned(), text.to_owned());
            }
        };
        put("Chart.yaml", METADATA);
        put("values.yaml", values);
        if let Some(template) = self.files.get_mut("templates/_case.tpl") {
            // The line end before the next case is no part of the text.
            template.truncate(template.trim_end_matches('\n').len());
            self.files.insert("templates/out.yaml".to_owned(), SHOW.to_owned());
        }
        let place = |path: &str| match path.strip_prefix('/') {
            Some(beside) => format!("{folder}/{beside}"),
            None => format!("{folder}/c/{path}"),
        };
        let files = self.files.iter().map(|(path, text)| (place(path), text.clone().into_bytes())).collect();
        let args = ["rel".to_owned(), "c".to_owned()].into_iter().chain(self.flags).collect();
        (files, Case { args, folder, own_words: self.own_words, ..super::case(&[]) })
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/template/rows")
}

/// All cases of a file.
fn read(path: &Path) -> Vec<Row> {
    let text = fs::read_to_string(path).unwrap();
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let texts = format!("\n{text}");
    texts.split("\n=== ").skip(1).map(|text| Row::parse(&name, &format!("{text}\n"))).collect()
}

fn compare(path: &Path, values: &Path) {
    let bench = Bench::new();
    let values = fs::read_to_string(values).unwrap();
    let mut cases = Vec::new();
    for (number, row) in read(path).into_iter().enumerate() {
        let name = row.name.clone();
        let (files, case) = row.lay_out(format!("{number}"), &values);
        bench.write(&files);
        cases.push((name, case));
    }
    bench.compare_named(&cases, 1);
}

/// One test for each file, so that they run side by side and a failure names its file.
macro_rules! rows {
    ($($test:ident: $file:literal),* $(,)?) => {
        $(#[test]
        fn $test() {
            compare(&folder().join(concat!($file, ".txt")), &folder().join("values.yaml"));
        })*

        const FILES: &[&str] = &[$($file),*];
    };
}

rows! {
    the_language_behaves_as_helms: "language",
    yaml_and_json_are_read_and_written_as_by_helm: "yaml",
    the_engine_and_its_functions_behave_as_helms: "engine",
    functions_of_charts_behave_as_in_helm: "functions",
    lines_of_set_are_read_as_helm_reads_them: "set",
    charts_values_and_manifests_are_treated_as_by_helm: "charts",
}

/// The programs that the template crate keeps with the answers it expects.
#[test]
fn the_answers_of_the_language_s_own_tests_are_helms() {
    let language = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template/tests/language");
    for entry in fs::read_dir(&language).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "txt") {
            compare(&path, &language.join("values.yaml"));
        }
    }
}

/// The behaviours of Helm's templates and charts, by this project's numbers: B-01 to B-12 the language, B-20 to B-39
/// and B-45 functions and YAML, B-50 to B-61 the engine, B-70 to B-76 what templates see, B-80 to B-100 charts and
/// values, B-110 to B-115 hooks, and the groups of Helm's own tests (C).
const BEHAVIOURS: &[&str] = &[
    "B-01", "B-02", "B-03", "B-04", "B-05", "B-06", "B-07", "B-08", "B-09", "B-10", "B-11", "B-12", "B-20",
    "B-21", "B-22", "B-23", "B-24", "B-25", "B-26", "B-27", "B-28", "B-29", "B-30", "B-31", "B-32", "B-33",
    "B-34", "B-35", "B-36", "B-37", "B-38", "B-39", "B-45", "B-50", "B-51", "B-52", "B-53", "B-54", "B-57",
    "B-58", "B-60", "B-61", "B-70", "B-71", "B-72", "B-73", "B-74", "B-75", "B-76", "B-80", "B-81", "B-82",
    "B-83", "B-84", "B-85", "B-86", "B-87", "B-88", "B-89", "B-90", "B-91", "B-92", "B-93", "B-94", "B-95",
    "B-96", "B-97", "B-98", "B-100", "B-110", "B-111", "B-113", "B-114", "B-115", "C-03", "C-20", "C-21",
    "C-22", "C-23", "C-24", "C-25", "C-26", "C-27", "C-28", "C-29", "C-34",
];

/// Behaviours that the command line of Helm cannot show, with the test that holds each.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("B-55: a lint goes on", "template/tests/program.rs", "a_lint_run_goes_on_after_required_and_fail"),
    ("B-56: strict keys", "template/tests/program.rs", "strict_runs_refuse_missing_keys"),
    ("B-31: lookup with a cluster", "template/tests/program.rs", "lookup_asks_the_caller_s_cluster"),
    ("B-111: weights of hooks", "chart/src/manifest.rs", "hooks_are_apart_with_weight_events_and_policies"),
    ("C-29: the order of removing", "chart/src/order.rs", "both_lists_of_helm_name_the_same_kinds"),
];

#[test]
fn every_file_of_cases_is_compared_and_every_behaviour_has_a_case() {
    let there = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let there: BTreeSet<String> = there
        .filter(|path| path.extension().is_some_and(|ending| ending == "txt"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(there, FILES.iter().map(|&name| name.to_owned()).collect());
    let rows = FILES.iter().flat_map(|name| read(&folder().join(format!("{name}.txt"))));
    let held: BTreeSet<String> = rows.flat_map(|row| row.numbers).collect();
    let wanted: BTreeSet<String> = BEHAVIOURS.iter().map(|&number| number.to_owned()).collect();
    assert_eq!(held, wanted);
    for (behaviour, file, test) in ELSEWHERE {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)).unwrap();
        assert!(text.contains(&format!("fn {test}()")), "{behaviour}: {file} has no test {test}");
    }
}
