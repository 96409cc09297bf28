//! What was rendered, as Helm prints or writes it.

use std::{
    collections::HashSet,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use pintle_chart::{Compiled, Printed, Values, manifest, manifest::HookEvent, values};

use super::{failure::Failure, values::open_failed};

/// What is printed, and where.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(super) struct Args {
    /// The objects under crds/ come first.
    #[arg(long)]
    include_crds: bool,
    /// Leave hooks out.
    #[arg(long)]
    no_hooks: bool,
    /// Leave the hooks out that are tests.
    #[arg(long)]
    skip_tests: bool,
    /// Only what these templates render (templates/service.yaml, patterns are allowed).
    #[arg(short, long)]
    show_only: Vec<String>,
    /// Write into this folder, a file for each template.
    #[arg(long)]
    output_dir: Option<PathBuf>,
    /// A folder of the release's name below --output-dir.
    #[arg(long)]
    release_name: bool,
}

/// A document under its source.
struct Piece<'a> {
    source: &'a str,
    text: &'a str,
}

/// What goes to standard output; files are written meanwhile.
pub(super) fn text(
    args: &Args,
    compiled: &Compiled,
    values: &Values,
    release: &str,
    printed: &Printed,
) -> Result<String, Failure> {
    let crds = if args.include_crds { compiled.crd_files(values)? } else { Vec::new() };
    let hooks: Vec<Piece<'_>> = match args.no_hooks {
        true => Vec::new(),
        false => pieces(&printed.hooks).filter(|hook| !(args.skip_tests && is_test(hook.text))).collect(),
    };
    let all = match &args.output_dir {
        Some(folder) => {
            let mut writer = Writer { folder, told: String::new(), written: HashSet::new() };
            for crd in &crds {
                writer.write(folder, &crd.path, &crd.text())?;
            }
            let below = if args.release_name { folder.join(release) } else { folder.clone() };
            for piece in pieces(&printed.manifest) {
                writer.write(&below, piece.source, piece.text)?;
            }
            for hook in &hooks {
                writer.append_to_what_is_there(&below, hook.source);
                writer.write(&below, hook.source, hook.text)?;
            }
            format!("{}\n", writer.told)
        }
        None => {
            let mut manifest: String = crds.iter().map(|crd| under(&crd.path, &crd.text())).collect();
            manifest.push_str(&printed.manifest);
            let hooks: String = hooks.iter().map(|hook| under(hook.source, hook.text)).collect();
            format!("{}\n{hooks}", go_trim(&manifest))
        }
    };
    if args.show_only.is_empty() { Ok(all) } else { only(&all, &args.show_only) }
}

fn under(source: &str, text: &str) -> String {
    format!("---\n# Source: {source}\n{text}\n")
}

/// White space as Go's `strings.TrimSpace` knows it.
fn go_trim(text: &str) -> &str {
    text.trim_matches(char::is_whitespace)
}

/// The documents of a manifest. No document has a line that starts with `---`, so a separator is one.
fn pieces(manifest: &str) -> impl Iterator<Item = Piece<'_>> {
    const START: &str = "---\n# Source: ";
    let documents = manifest.strip_prefix(START).unwrap_or_default();
    let documents = documents.strip_suffix('\n').unwrap_or(documents);
    let documents = documents.split("\n---\n# Source: ").filter(|document| !document.is_empty());
    documents.map(|document| {
        let (source, text) = document.split_once('\n').unwrap_or((document, ""));
        Piece { source, text }
    })
}

fn is_test(hook: &str) -> bool {
    let Ok(object) = values::parse(hook) else { return false };
    let events = object.get("metadata").and_then(|metadata| metadata.get("annotations")?.get("helm.sh/hook"));
    let events = events.and_then(|events| events.as_str()).unwrap_or_default();
    events.split(',').any(|event| HookEvent::parse(event) == Some(HookEvent::Test))
}

/// The documents of the templates that are named, in the order of the names.
fn only(all: &str, names: &[String]) -> Result<String, Failure> {
    let documents: Vec<&str> = manifest::split(all).into_iter().map(|(_, document)| document).collect();
    let mut shown = String::new();
    for name in names {
        let fits = |document: &&&str| template_of(document).is_some_and(|path| path_matches(name, path));
        let found: Vec<_> = documents.iter().filter(fits).collect();
        if found.is_empty() {
            return Err(Failure::new(format!("could not find template {name} in chart")));
        }
        for document in found {
            shown.push_str("---\n");
            shown.push_str(document);
            shown.push('\n');
        }
    }
    Ok(shown)
}

/// The path inside the chart of the first line that says `# Source: chart/path`.
fn template_of(document: &str) -> Option<&str> {
    document.lines().find_map(|line| {
        let (_, source) = line.split_once("# Source: ")?;
        let (chart, path) = source.split_once('/')?;
        (!chart.is_empty() && !path.is_empty()).then_some(path)
    })
}

/// Go's `filepath.Match`: `*` and `?` stop at `/`, `[a-z]` and `[^a]` are classes, `\` takes the next letter
/// as it is. A broken pattern fits nothing.
fn path_matches(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<char>, Vec<char>) = (pattern.chars().collect(), path.chars().collect());
    glob(&pattern, &path)
}

fn glob(pattern: &[char], path: &[char]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        (['*', rest @ ..], _) => {
            glob(rest, path) || matches!(path, [letter, after @ ..] if *letter != '/' && glob(pattern, after))
        }
        (['?', rest @ ..], [letter, after @ ..]) => *letter != '/' && glob(rest, after),
        (['[', class @ ..], [letter, after @ ..]) => match in_class(class, *letter) {
            Some((true, rest)) => *letter != '/' && glob(rest, after),
            _ => false,
        },
        (['\\', wanted, rest @ ..] | [wanted, rest @ ..], [letter, after @ ..]) => {
            wanted == letter && glob(rest, after)
        }
        _ => false,
    }
}

/// Whether a letter is in the class that starts here, and what follows the class.
fn in_class(class: &[char], letter: char) -> Option<(bool, &[char])> {
    let (negated, mut rest) = match class {
        ['^', rest @ ..] => (true, rest),
        _ => (false, class),
    };
    let mut found = false;
    let mut any = false;
    loop {
        if let ([']', after @ ..], true) = (rest, any) {
            return Some((found != negated, after));
        }
        let (low, after) = class_letter(rest)?;
        let (high, after) = match after {
            ['-', after @ ..] => class_letter(after)?,
            _ => (low, after),
        };
        found |= (low..=high).contains(&letter);
        (any, rest) = (true, after);
    }
}

fn class_letter(class: &[char]) -> Option<(char, &[char])> {
    match class {
        ['\\', letter, rest @ ..] => Some((*letter, rest)),
        [] | ['-' | ']' | '\\', ..] => None,
        [letter, rest @ ..] => Some((*letter, rest)),
    }
}

/// Writes files as Helm does: one for each template, its documents one after the other.
struct Writer<'a> {
    folder: &'a Path,
    told: String,
    written: HashSet<String>,
}

impl Writer<'_> {
    /// Hooks go behind what is there already, also from an earlier run.
    fn append_to_what_is_there(&mut self, below: &Path, source: &str) {
        if below.join(source).exists() {
            self.written.insert(source.to_owned());
        }
    }

    fn write(&mut self, below: &Path, source: &str, text: &str) -> Result<(), Failure> {
        // Names of templates come from the chart: none leads out of the folder.
        if Path::new(source).components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
            return Err(Failure::new(format!("{source} leads out of {}", self.folder.display())));
        }
        let path = format!("{}/{source}", below.display());
        let failed = |error: std::io::Error| open_failed(&path, &error);
        if let Some(parent) = Path::new(&path).parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let append = !self.written.insert(source.to_owned());
        let mut options = fs::OpenOptions::new();
        let options = options.create(true).write(true);
        let options = if append { options.append(true) } else { options.truncate(true) };
        options
            .open(&path)
            .and_then(|mut file| file.write_all(under(source, text).as_bytes()))
            .map_err(failed)?;
        self.told.push_str(&format!("wrote {path}\n"));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_gos_do() {
        for (pattern, path, fits) in [
            ("templates/a.yaml", "templates/a.yaml", true),
            ("templates/*", "templates/a.yaml", true),
            ("templates/*", "templates/b/a.yaml", false),
            ("templates/?.yaml", "templates/a.yaml", true),
            ("templates/[a-c].yaml", "templates/b.yaml", true),
            ("templates/[^a-c].yaml", "templates/b.yaml", false),
            ("templates/[", "templates/[", false),
            ("templates/[]a]", "templates/a", false),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("*", "a/b", false),
        ] {
            assert_eq!(path_matches(pattern, path), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn documents_are_found_again() {
        let text = format!("{}{}", under("c/templates/a.yaml", "a: 1\n"), under("c/templates/b.yaml", "# b"));
        let found: Vec<_> = pieces(&text).map(|piece| (piece.source, piece.text)).collect();
        assert_eq!(found, [("c/templates/a.yaml", "a: 1\n"), ("c/templates/b.yaml", "# b")]);
        assert_eq!(pieces("").count(), 0);
    }

    #[test]
    fn tests_are_told_from_other_hooks() {
        assert!(is_test("metadata: {annotations: {helm.sh/hook: 'pre-install, test'}}"));
        assert!(!is_test("metadata: {annotations: {helm.sh/hook: pre-install}}"));
    }
}
