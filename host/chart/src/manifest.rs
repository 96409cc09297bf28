//! Rendered text as documents: split and sorted as Helm does, hooks apart, each an object with its place.

use std::sync::Arc;

use pintle_api::{NotAnObject, Object, names};
use serde_json::Value;

use crate::{annotations, order::Order, yaml};

/// One rendered object.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Template it came from: `simple-kmod/templates/0000-buildconfig.yaml`.
    pub source: Arc<str>,
    /// Which document of the rendered template, counted from 0; items of a list share theirs.
    pub index: usize,
    /// Line of the rendered template that it starts on, counted from 1.
    pub line: usize,
    /// The whole document as it was rendered.
    pub text: Arc<str>,
    /// The object, its integers kept.
    pub object: Object,
}

/// One rendered hook.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    /// The object with its place.
    pub document: Document,
    /// When it runs.
    pub events: Vec<HookEvent>,
    /// Lower runs first.
    pub weight: i64,
    /// When it goes; empty means before the next of its kind is created.
    pub delete_policies: Vec<DeletePolicy>,
    /// When its log is kept.
    pub output_log_policies: Vec<String>,
}

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are Helm's own")]
pub enum HookEvent {
    PreInstall,
    PostInstall,
    PreDelete,
    PostDelete,
    PreUpgrade,
    PostUpgrade,
    PreRollback,
    PostRollback,
    Test,
}

/// When a hook's object goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeletePolicy {
    /// Before it is created again; Helm's default.
    BeforeHookCreation,
    /// After it succeeded.
    HookSucceeded,
    /// After it failed.
    HookFailed,
}

/// Why a rendered text is no list of objects.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not YAML.
    #[error(
        "YAML parse error on {file}: rendered line {line}: {excerpt:?}: quote the value, or mend the indentation"
    )]
    Yaml {
        /// Template.
        file: String,
        /// Line of the rendered text, counted from 1.
        line: usize,
        /// That line.
        excerpt: String,
        /// What the reader says.
        #[source]
        source: yaml::Error,
    },
    /// No kind, apiVersion or name.
    #[error("{file}: the document at rendered line {line} has no {field}: {fix}")]
    NoObject {
        /// Template.
        file: String,
        /// Line of the rendered text, counted from 1.
        line: usize,
        /// What is missing.
        field: &'static str,
        /// What to do.
        fix: &'static str,
    },
    /// An annotation of ours that nobody knows.
    #[error(transparent)]
    Annotation(#[from] annotations::UnknownAnnotation),
    /// A chart that would install what decides about its own rights.
    #[error("{file}: {object} is of group pintle.dev, which a chart must not install: an administrator does")]
    OwnKind {
        /// Template.
        file: String,
        /// The object.
        object: String,
    },
}

/// A document before it is known to be an object: Helm keeps those of comments alone in its manifest.
#[derive(Clone, Debug)]
pub(crate) struct Piece<'t> {
    pub(crate) source: Arc<str>,
    pub(crate) index: usize,
    pub(crate) line: usize,
    pub(crate) text: &'t str,
    pub(crate) value: Value,
}

/// A hook before it is known to be an object.
#[derive(Clone, Debug)]
pub(crate) struct HookPiece<'t> {
    pub(crate) piece: Piece<'t>,
    events: Vec<HookEvent>,
}

/// The documents of rendered files, hooks apart, each in the order of kinds.
#[derive(Debug, Default)]
pub(crate) struct Sorted<'t> {
    pub(crate) pieces: Vec<Piece<'t>>,
    pub(crate) hooks: Vec<HookPiece<'t>>,
}

/// How much of a document is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What sorting needs; [`documents`] and [`HookPiece::hook`] then have no object to give.
    Head,
    /// All.
    Whole,
}

/// Splits, reads and sorts rendered files, which are (template, text) sorted by template.
pub(crate) fn sort(files: &[(Arc<str>, String)], order: Order, extent: Extent) -> Result<Sorted<'_>, Error> {
    let mut sorted = Sorted::default();
    for (source, text) in files {
        for (index, (line, text)) in split(text).into_iter().enumerate() {
            let value = read(source, line, text, extent)?;
            let piece = Piece { source: Arc::clone(source), index, line, text, value };
            sorted.add(piece);
        }
    }
    sorted.pieces.sort_by_cached_key(|piece| order.key(piece.kind()));
    sorted.hooks.sort_by_cached_key(|hook| order.key(hook.piece.kind()));
    Ok(sorted)
}

/// The objects of a piece: none for comments alone, several for a list.
pub(crate) fn documents(piece: &Piece<'_>) -> Result<Vec<Document>, Error> {
    if piece.value.is_null() {
        return Ok(Vec::new());
    }
    let text: Arc<str> = Arc::from(piece.text);
    items(&piece.value).iter().cloned().map(|value| document(piece, &text, value)).collect()
}

/// The objects of a document: those of a list one by one.
#[must_use]
pub fn items(document: &Value) -> &[Value] {
    let is_list = document.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    let items = document.get("items").filter(|_| is_list).and_then(Value::as_array);
    items.map_or(std::slice::from_ref(document), Vec::as_slice)
}

/// Helm's manifest: each document under its separator and its source.
pub(crate) fn text_of<'p, 't: 'p>(pieces: impl Iterator<Item = &'p Piece<'t>> + Clone) -> String {
    let parts = |piece: &'p Piece<'t>| ["---\n# Source: ", &*piece.source, "\n", piece.text, "\n"];
    let len = pieces.clone().flat_map(parts).map(str::len).sum();
    let mut out = String::with_capacity(len);
    out.extend(pieces.flat_map(parts));
    out
}

/// The documents of a text with the line each starts on (from 1): separators are lines that start with
/// `---`, whatever follows on them, and white space before a document goes.
#[must_use]
pub fn split(text: &str) -> Vec<(usize, &str)> {
    let mut documents = Vec::new();
    let text_start = text.len() - text.trim_start().len();
    let mut start = text_start;
    let first = text.get(text_start..).filter(|rest| rest.starts_with("---")).map(|_| text_start);
    let mut next = first.or_else(|| separator(text, text_start));
    while let Some(at) = next {
        documents.push(start..at);
        let dashes = text.get(at + 3..).unwrap_or_default();
        start = at + 3 + (dashes.len() - dashes.trim_start_matches([' ', '\t']).len());
        next = separator(text, start);
    }
    documents.push(start..text.len());
    let mut lines = LineCounter { text, at: 0, line: 1 };
    documents
        .into_iter()
        .filter_map(|range| {
            let whole = text.get(range.clone())?;
            let document = whole.trim_start();
            let start = range.start + whole.len() - document.len();
            (!document.is_empty()).then(|| (lines.line_at(start), document))
        })
        .collect()
}

/// Where the next line that starts with `---` begins.
fn separator(text: &str, from: usize) -> Option<usize> {
    let rest = text.as_bytes().get(from..)?;
    memchr::memmem::find(rest, b"\n---").map(|at| from + at + 1)
}

struct LineCounter<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl LineCounter<'_> {
    fn line_at(&mut self, at: usize) -> usize {
        self.line +=
            self.text.get(self.at..at).map_or(0, |text| memchr::memchr_iter(b'\n', text.as_bytes()).count());
        self.at = at;
        self.line
    }
}

// === impl Sorted ===

impl<'t> Sorted<'t> {
    fn add(&mut self, piece: Piece<'t>) {
        let Some(events) = piece.annotation(names::HELM_HOOK) else {
            self.pieces.push(piece);
            return;
        };
        // One unknown event drops the object without a word; that is Helm's contract.
        let events: Option<Vec<HookEvent>> = events.split(',').map(HookEvent::parse).collect();
        self.hooks.extend(events.map(|events| HookPiece { piece, events }));
    }
}

// === impl HookPiece ===

impl HookPiece<'_> {
    /// The hook.
    ///
    /// # Errors
    /// When it is no object.
    pub(crate) fn hook(&self) -> Result<Hook, Error> {
        let piece = &self.piece;
        let words = |key| {
            let words = piece.annotation(key).unwrap_or_default().split(',');
            words.map(|word| word.trim().to_lowercase()).filter(|word| !word.is_empty())
        };
        Ok(Hook {
            document: document(piece, &Arc::from(piece.text), piece.value.clone())?,
            events: self.events.clone(),
            weight: piece.annotation(names::HELM_HOOK_WEIGHT).and_then(|text| text.parse().ok()).unwrap_or(0),
            delete_policies: words(names::HELM_HOOK_DELETE_POLICY)
                .filter_map(|word| DeletePolicy::parse(&word))
                .collect(),
            output_log_policies: words("helm.sh/hook-output-log-policy").collect(),
        })
    }
}

// === impl Piece ===

impl Piece<'_> {
    pub(crate) fn kind(&self) -> &str {
        self.value.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.value.get("metadata")?.get("annotations")?.get(key)?.as_str()
    }
}

// === impl HookEvent ===

impl HookEvent {
    /// Reads one event of the annotation.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text.trim().to_lowercase().as_str() {
            "pre-install" => Self::PreInstall,
            "post-install" => Self::PostInstall,
            "pre-delete" => Self::PreDelete,
            "post-delete" => Self::PostDelete,
            "pre-upgrade" => Self::PreUpgrade,
            "post-upgrade" => Self::PostUpgrade,
            "pre-rollback" => Self::PreRollback,
            "post-rollback" => Self::PostRollback,
            "test" | "test-success" => Self::Test,
            _ => return None,
        })
    }
}

impl DeletePolicy {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "before-hook-creation" => Self::BeforeHookCreation,
            "hook-succeeded" => Self::HookSucceeded,
            "hook-failed" => Self::HookFailed,
            _ => return None,
        })
    }
}

fn read(file: &str, line: usize, text: &str, extent: Extent) -> Result<Value, Error> {
    let value = match extent {
        Extent::Head => yaml::load_head(text).and_then(|head| head_shape(&head).map(|()| head)),
        Extent::Whole => yaml::load(text),
    };
    value.map_err(|source| {
        let within = source.line.max(1);
        let excerpt = text.lines().nth(within - 1).unwrap_or_default().trim().to_owned();
        Error::Yaml { file: file.to_owned(), line: line + within - 1, excerpt, source }
    })
}

/// Whether a head can be read into the fields that Helm reads, with its words where it cannot. The objects of
/// [`documents`] are held to more, in words of our own.
fn head_shape(head: &Value) -> Result<(), yaml::Error> {
    const METADATA: &str =
        r#"struct { Name string "json:\"name\""; Annotations map[string]string "json:\"annotations\"" }"#;
    let wrong = |value: &Value, place: &str| {
        let message = format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go {place}",
            go_kind(value)
        );
        Err(yaml::Error { line: 0, message })
    };
    let is_text = |value: &Value| !value.is_object() && !value.is_array();
    let fields = match head {
        Value::Null => return Ok(()),
        Value::Object(fields) => fields,
        other => return wrong(other, "value of type util.SimpleHead"),
    };
    for key in ["apiVersion", "kind"] {
        if let Some(value) = fields.get(key).filter(|value| !is_text(value)) {
            return wrong(value, &format!("struct field SimpleHead.{key} of type string"));
        }
    }
    let metadata = match fields.get("metadata") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(metadata)) => metadata,
        Some(other) => return wrong(other, &format!("struct field SimpleHead.metadata of type {METADATA}")),
    };
    if let Some(name) = metadata.get("name").filter(|name| !is_text(name)) {
        return wrong(name, "struct field .metadata.name of type string");
    }
    match metadata.get("annotations") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(annotations)) => match annotations.values().find(|value| !is_text(value)) {
            Some(value) => wrong(value, "struct field .metadata.annotations of type string"),
            None => Ok(()),
        },
        Some(other) => wrong(other, "struct field .metadata.annotations of type map[string]string"),
    }
}

fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn document(piece: &Piece<'_>, text: &Arc<str>, value: Value) -> Result<Document, Error> {
    let missing =
        |field, fix| Error::NoObject { file: piece.source.to_string(), line: piece.line, field, fix };
    let object = Object::new(value).map_err(|error| match error {
        NotAnObject::Missing("kind") => missing("kind", "add `kind:`, or remove the document"),
        NotAnObject::Missing(_) => missing("apiVersion", "add `apiVersion:`, or remove the document"),
        NotAnObject::NotAMapping => {
            missing("fields", "a document must be a mapping with `apiVersion` and `kind`")
        }
    })?;
    if object.name().is_empty() && object.str_at("/metadata/generateName").is_none_or(str::is_empty) {
        return Err(missing("metadata.name", "name the object: a value in its name may be empty"));
    }
    if object.gvk().group == names::GROUP {
        let (file, object) = (piece.source.to_string(), object.reference().to_string());
        return Err(Error::OwnKind { file, object });
    }
    annotations::check_object(&piece.source, &object)?;
    let Piece { source, index, line, .. } = piece;
    Ok(Document { source: Arc::clone(source), index: *index, line: *line, text: Arc::clone(text), object })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
    use super::*;

    /// Sorted, of files that live as long as the test.
    fn sorted(files: &[(&str, &str)]) -> Result<Sorted<'static>, Error> {
        let files: Vec<_> = files.iter().map(|(name, text)| ((*name).into(), (*text).to_owned())).collect();
        sort(files.leak(), Order::Install, Extent::Whole)
    }

    fn fault(text: &str) -> String {
        let sorted = match sorted(&[("c/templates/x.yaml", text)]) {
            Ok(sorted) => sorted,
            Err(error) => return error.to_string(),
        };
        sorted.pieces.iter().map(documents).find_map(Result::err).unwrap().to_string()
    }

    #[test]
    fn documents_are_split_as_helm_splits_them() {
        for (text, expected) in [
            ("", vec![]),
            ("\n \n---\n", vec![]),
            ("a: 1\n", vec![(1, "a: 1\n")]),
            ("---\na: 1\n---\nb: 2\n", vec![(2, "a: 1\n"), (4, "b: 2\n")]),
            ("\n\n--- \na: 1\n\n---\t\n\n  b: 2", vec![(4, "a: 1\n\n"), (8, "b: 2")]),
            ("a: 1\n---b: 2\n", vec![(1, "a: 1\n"), (2, "b: 2\n")]),
            ("a: |\n  ---\n  x\n", vec![(1, "a: |\n  ---\n  x\n")]),
            ("# only\n---\n# words\n", vec![(1, "# only\n"), (3, "# words\n")]),
            ("a: ---\nb: 1\n", vec![(1, "a: ---\nb: 1\n")]),
            ("----\na: 1", vec![(1, "-\na: 1")]),
        ] {
            assert_eq!(split(text), expected, "{text:?}");
        }
    }

    #[test]
    fn objects_come_in_the_order_of_kinds_then_files() {
        let file = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n";
        let other = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n";
        let sorted = sorted(&[("c/templates/a.yaml", file), ("c/templates/b.yaml", other)]).unwrap();
        let documents: Vec<Document> =
            sorted.pieces.iter().flat_map(|piece| documents(piece).unwrap()).collect();
        let names: Vec<_> = documents
            .iter()
            .map(|document| (document.object.name(), document.index, document.line))
            .collect();
        assert_eq!(names, [("b", 1, 5), ("a", 0, 1), ("s", 0, 1)]);
        assert!(
            text_of(sorted.pieces.iter())
                .starts_with("---\n# Source: c/templates/a.yaml\napiVersion: v1\nkind: Secret\n")
        );
    }

    #[test]
    fn hooks_are_apart_with_weight_events_and_policies() {
        let hook = |hooks: &str| {
            format!(
                "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations:\n    helm.sh/hook: \"{hooks}\"\n    helm.sh/hook-weight: \"-5\"\n    helm.sh/hook-delete-policy: Hook-Succeeded, before-hook-creation\n"
            )
        };
        let sorted1 = sorted(&[("c/t", &hook("pre-install, Post-Upgrade"))]).unwrap();
        assert!(sorted1.pieces.is_empty());
        let found = sorted1.hooks.first().unwrap().hook().unwrap();
        assert_eq!(found.events, [HookEvent::PreInstall, HookEvent::PostUpgrade]);
        assert_eq!(found.weight, -5);
        assert_eq!(found.delete_policies, [DeletePolicy::HookSucceeded, DeletePolicy::BeforeHookCreation]);
        let dropped = sorted(&[("c/t", &hook("pre-install,crd-install"))]).unwrap();
        assert!(dropped.hooks.is_empty() && dropped.pieces.is_empty());
    }

    #[test]
    fn comments_alone_are_nothing_and_lists_are_their_items() {
        let text = "# words\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n";
        let sorted = sorted(&[("c/t", text)]).unwrap();
        let names: Vec<String> = sorted
            .pieces
            .iter()
            .flat_map(|piece| documents(piece).unwrap())
            .map(|document| document.object.name().to_owned())
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(sorted.pieces.len(), 2);
    }

    #[test]
    fn what_is_no_object_names_file_line_and_fix() {
        assert_eq!(
            fault("---\n# c\nmetadata: {name: x}\napiVersion: v1\n"),
            "c/templates/x.yaml: the document at rendered line 2 has no kind: add `kind:`, or remove the document"
        );
        assert!(fault("kind: X\nmetadata: {name: x}\n").contains("has no apiVersion: "));
        assert!(fault("apiVersion: v1\nkind: X\n").contains("has no metadata.name: "));
        assert!(fault("- a\n").contains("has no fields: a document must be a mapping"));
        let yaml = fault("a: 1\n---\nb: {\nc: d: e\n");
        assert!(yaml.starts_with("YAML parse error on c/templates/x.yaml: rendered line "), "{yaml}");
        let own = fault("apiVersion: pintle.dev/v1alpha1\nkind: Plugin\nmetadata: {name: p}\n");
        assert!(own.contains("Plugin p is of group pintle.dev, which a chart must not install"), "{own}");
        let unknown =
            fault("apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {pintle.dev/waits: x}}\n");
        assert!(unknown.contains("did you mean \"pintle.dev/wait\"?"), "{unknown}");
    }
}
