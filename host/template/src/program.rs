//! Parsed templates, and their render.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::ast::Template;
use crate::builtin;
use crate::error::{Error, ErrorKind};
use crate::exec::Frame;
use crate::function::{Ctx, Table};
use crate::jinja::Jinja;
use crate::parser::{Names, is_blank, parse};
use crate::run::Run;
use crate::value::Value;

/// A template file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name errors and `.Template.Name` have: `simple-kmod/templates/0000-buildconfig.yaml`.
    pub name: Arc<str>,
    /// Its text.
    pub text: Arc<str>,
}

/// The templates of a chart, parsed once and rendered often, from any number of threads.
#[derive(Debug)]
pub struct Program {
    templates: Arc<Set>,
    dialect: Dialect,
    cache: Cache,
    jinja: Option<Jinja>,
}

/// Which functions there are and what a missing key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// All of Helm's functions. A missing key is nil, and `<no value>` leaves the output.
    Helm,
    /// Go's own functions only. A missing key is no value, and `<no value>` stays.
    Plain,
}

/// Templates by name; what `tpl` defines lies over what was there.
#[derive(Debug, Default)]
pub(crate) struct Set {
    own: HashMap<Arc<str>, Arc<Template>, foldhash::fast::RandomState>,
    under: Option<Arc<Set>>,
}

/// Texts given to `tpl`, parsed: a chart gives the same ones at every render.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<HashMap<Box<str>, Arc<Set>, foldhash::fast::RandomState>>);

/// The name Helm's engine gives its root template; `tpl` texts run under it.
pub(crate) const ROOT: &str = "gotpl";

/// Texts the cache of `tpl` keeps; beyond that it starts anew.
const CACHED_TEXTS: usize = 2_000;

static HELM: LazyLock<Table> = LazyLock::new(|| {
    let mut table = builtin::table();
    table.extend(crate::functions::table().iter().copied());
    table.extend(crate::engine_functions::table().iter().copied());
    table
});

static PLAIN: LazyLock<Table> = LazyLock::new(builtin::table);

// === impl Dialect ===

impl Dialect {
    /// The functions of the dialect.
    pub fn functions(self) -> &'static Table {
        match self {
            Self::Helm => &HELM,
            Self::Plain => &PLAIN,
        }
    }
}

// === impl Program ===

impl Program {
    /// Parses the files of a chart in Helm's dialect, in the given order: of two definitions of one
    /// name the later wins, unless it is blank.
    ///
    /// # Errors
    /// The first mistake of the first file that has one.
    pub fn parse(sources: &[Source]) -> Result<Self, Error> {
        Self::parse_in(Dialect::Helm, sources)
    }

    /// Parses files in a dialect.
    ///
    /// # Errors
    /// The first mistake of the first file that has one.
    pub fn parse_in(dialect: Dialect, sources: &[Source]) -> Result<Self, Error> {
        let (program, mut errors) = Self::parse_all(dialect, sources);
        if errors.is_empty() { Ok(program) } else { Err(errors.swap_remove(0)) }
    }

    /// Parses what can be parsed, and returns the first mistake of each other file: for a linter.
    pub fn parse_all(dialect: Dialect, sources: &[Source]) -> (Self, Vec<Error>) {
        let mut set = Set::default();
        let mut errors = Vec::new();
        let mut names = Names::of(sources.iter().map(|source| source.text.len()).sum());
        for source in sources {
            match parse(&Arc::new(source.clone()), &source.name, dialect.functions(), &mut names) {
                Ok(templates) => templates.into_iter().for_each(|template| set.add(template)),
                Err(error) => errors.push(error),
            }
        }
        (Self { templates: Arc::new(set), dialect, cache: Cache::default(), jinja: None }, errors)
    }

    /// Adds Jinja files, whose names are paths from the top chart: they include, import and extend each
    /// other by path, and `include("name")` in them reaches what Go files define.
    ///
    /// # Errors
    /// The first mistake of the first file that has one.
    pub fn with_jinja(mut self, sources: &[Source]) -> Result<Self, Error> {
        self.jinja = Some(Jinja::parse(sources)?);
        Ok(self)
    }

    /// Whether there is a template of that name: a file or a definition.
    pub fn contains(&self, name: &str) -> bool {
        self.templates.get(name).is_some() || self.jinja.as_ref().is_some_and(|jinja| jinja.contains(name))
    }

    /// The text of a template. It may change the maps in `dot`: later renders of the same chart see
    /// that, as they do in Helm.
    ///
    /// Bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// When the template is unknown or fails, when a limit is met, when it is cancelled. Only
    /// [`ErrorKind::NotYet`] may go away by itself.
    pub fn render(&self, name: &str, dot: &Value, run: &Run<'_>) -> Result<String, Error> {
        if let Some(jinja) = self.jinja.as_ref().filter(|jinja| jinja.contains(name)) {
            return self.render_jinja(jinja, name, dot, run);
        }
        let Some(template) = self.templates.get(name) else {
            let quoted = crate::quote::quote(name.as_bytes());
            let text = format!("template: no template {quoted} associated with template \"{ROOT}\"");
            return Err(Error::without_place(ErrorKind::NoTemplate, text));
        };
        let mut ctx = Ctx::for_program(run, name, self);
        let mut out = Vec::with_capacity(template.source.text.len());
        let result = crate::stack::grown(|| Frame::execute(&mut ctx, &template, dot.clone(), &mut out));
        ctx.break_cycles(dot);
        result?;
        if self.dialect == Dialect::Helm {
            drop_no_value(&mut out, 0);
        }
        Ok(String::from_utf8(out).unwrap_or_else(|err| String::from_utf8_lossy(err.as_bytes()).into_owned()))
    }

    fn render_jinja(&self, jinja: &Jinja, name: &str, dot: &Value, run: &Run<'_>) -> Result<String, Error> {
        let mut ctx = Ctx::for_program(run, name, self);
        let mut out = Vec::new();
        let result = jinja.render(&mut ctx, &Arc::from(name), dot, &mut out);
        ctx.break_cycles(dot);
        result?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    pub(crate) fn jinja(&self) -> Option<&Jinja> {
        self.jinja.as_ref()
    }

    pub(crate) fn templates(&self) -> &Arc<Set> {
        &self.templates
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The dialect the files were parsed in.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }
}

/// Takes Go's text for a missing value out of what stands behind a place, as Helm does before it hands text out:
/// even where the chart's author wrote it.
pub(crate) fn drop_no_value(out: &mut Vec<u8>, from: usize) {
    let marker = crate::exec::NO_VALUE.as_bytes();
    let text = out.get(from..).unwrap_or_default();
    if memchr::memmem::find(text, marker).is_none() {
        return;
    }
    let mut kept = Vec::with_capacity(text.len());
    let mut start = 0;
    for at in memchr::memmem::find_iter(text, marker) {
        kept.extend_from_slice(text.get(start..at).unwrap_or_default());
        start = at + marker.len();
    }
    kept.extend_from_slice(text.get(start..).unwrap_or_default());
    out.truncate(from);
    out.append(&mut kept);
}

// === impl Set ===

impl Set {
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Template>> {
        let mut set = self;
        loop {
            match (set.own.get(name), &set.under) {
                (Some(template), _) => return Some(Arc::clone(template)),
                (None, Some(under)) => set = under,
                (None, None) => return None,
            }
        }
    }

    fn add(&mut self, template: Template) {
        if is_blank(&template) && self.own.contains_key(&template.name) {
            return;
        }
        self.own.insert(Arc::clone(&template.name), Arc::new(template));
    }

    /// The templates of a text for `tpl`, to be laid over others.
    ///
    /// # Errors
    /// When the text is no template.
    pub(crate) fn parse_text(text: &str, functions: &'static Table) -> Result<Self, Error> {
        let source = Arc::new(Source { name: Arc::from(ROOT), text: Arc::from(text) });
        let mut set = Self::default();
        for template in parse(&source, &source.name, functions, &mut Names::of(text.len()))? {
            set.add(template);
        }
        Ok(set)
    }

    /// The template of a text that defines no others.
    pub(crate) fn alone(&self) -> Option<&Arc<Template>> {
        self.own.get(ROOT).filter(|_| self.own.len() == 1)
    }

    /// These templates over others. A text that defines nothing costs one entry.
    pub(crate) fn over(&self, under: &Arc<Self>) -> Self {
        let keep = |template: &Template| !is_blank(template) || under.get(&template.name).is_none();
        let own = self.own.iter().filter(|(name, template)| &***name == ROOT || keep(template));
        let own = own.map(|(name, template)| (Arc::clone(name), Arc::clone(template))).collect();
        Self { own, under: Some(Arc::clone(under)) }
    }
}

// === impl Cache ===

impl Cache {
    /// The parsed text, from the cache or new.
    ///
    /// # Errors
    /// When the text is no template.
    pub(crate) fn parse(&self, text: &str, functions: &'static Table) -> Result<Arc<Set>, Error> {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = texts.get(text) {
            return Ok(Arc::clone(set));
        }
        let set = Arc::new(Set::parse_text(text, functions)?);
        if texts.len() >= CACHED_TEXTS {
            texts.clear();
        }
        texts.insert(text.into(), Arc::clone(&set));
        Ok(set)
    }
}
